"""A linear model and the scalers before it as one sum over named features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from rankrls._errors import InputError
from rankrls.models._base import Ranker
from rankrls.models._pipelines import linear_weights
from rankrls.preprocessing import QueryMinMaxScaler, QueryStandardScaler

__all__ = [
    "OFFSET_FEATURE",
    "LinearScorer",
    "affine_steps",
    "check_names",
    "check_offset",
    "final_model",
    "linear_scorer",
    "positive_offset",
]

OFFSET_FEATURE = "rankrls_offset"
SCALER_CHOICES = ("beside", "fold")
_TRAVELS = "StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler of scikit-learn travel"


@dataclass(frozen=True)
class LinearScorer:
    """``score = sum_j weights_j (x_j - centres_j) / spreads_j + constant``.

    Attributes
    ----------
    names : tuple of str
    weights, centres, spreads : ndarray of shape (n,)
        Spreads are positive.
    constant : float
    unit_range : bool
        Whether centre and centre + spread are the least and the largest training value (a MinMaxScaler to 0..1).
    left_out : int
        Features of weight 0, which are in none of the arrays.
    """

    names: tuple[str, ...]
    weights: NDArray[np.float64]
    centres: NDArray[np.float64]
    spreads: NDArray[np.float64]
    constant: float = 0.0
    unit_range: bool = False
    left_out: int = 0

    @property
    def scaled(self) -> NDArray[np.bool_]:
        """Which features have a scale of their own."""
        return (self.centres != 0.0) | (self.spreads != 1.0)

    def folded(self) -> LinearScorer:
        """The same scores without scales: they go into the weights and the constant."""
        weights = self.weights / self.spreads
        return replace(
            self,
            weights=weights,
            centres=np.zeros_like(weights),
            spreads=np.ones_like(weights),
            constant=self.constant - float(weights @ self.centres),
            unit_range=False,
        )

    def with_offset_feature(self) -> LinearScorer:
        """The constant as the weight of one more feature that is always 1, for engines without an intercept."""
        if OFFSET_FEATURE in self.names:
            raise ValueError(f"A feature is called {OFFSET_FEATURE!r}, which is the name of the offset.")
        if abs(self.constant) > float(np.finfo(np.float32).max):
            raise ValueError(
                f"The offset makes a constant of {self.constant:.6g}, which does not fit into float32, in which search "
                "engines compute."
            )
        return replace(
            self,
            names=(*self.names, OFFSET_FEATURE),
            weights=np.append(self.weights, self.constant),
            centres=np.append(self.centres, 0.0),
            spreads=np.append(self.spreads, 1.0),
            constant=0.0,
        )

    def weight_of(self) -> dict[str, float]:
        """Weights by the features' names."""
        return dict(zip(self.names, self.weights.tolist(), strict=True))

    def in_single_precision(self) -> None:
        """Refuse numbers that float32 cannot hold; the engines compute in it."""
        with np.errstate(over="ignore"):
            parts = [np.asarray(part, dtype=np.float32) for part in (self.weights, self.centres, self.spreads)]
        bad = ~np.isfinite(parts).all(axis=0) | (parts[2] <= 0.0)
        if bad.any():
            j = int(np.argmax(bad))
            raise ValueError(
                f"Feature {self.names[j]!r} cannot be exported: its weight {self.weights[j]:.6g}, centre "
                f"{self.centres[j]:.6g} or spread {self.spreads[j]:.6g} does not fit into float32, in which search "
                "engines compute. Rescale the feature before fitting."
            )

    def notes(self) -> tuple[str, ...]:
        """What holds for every engine."""
        out = ["The engine computes in float32: scores agree with predict to about seven digits."]
        if self.left_out:
            out.append(f"{self.left_out} features have weight 0 and are left out: the engine need not compute them.")
        return tuple(out)


def linear_scorer(
    model: Any, feature_names: Sequence[str] | None, target: int | None, scaler: str, offset: float | None
) -> LinearScorer:
    """The model as a sum over named features; errors say which part of a pipeline no engine can compute."""
    if scaler not in SCALER_CHOICES:
        raise ValueError(f"scaler must be 'beside' or 'fold'; got {scaler!r}.")
    offset = check_offset(offset)
    final = final_model(model)
    instead = "Fit with {kernel='linear'}, or export" if hasattr(final, "_kernel_") else "Export"
    what = f"this format holds one weight a feature. {instead} to ONNX ({{to_onnx}})."
    weights = linear_weights(final, target, what)
    centres, spreads, unit_range = affine_steps(model, len(weights))
    names = check_names(model, feature_names, len(weights))
    used = weights != 0.0
    if not used.any():
        raise ValueError("All weights are 0: there is nothing to export.")
    scorer = LinearScorer(
        tuple(name for name, keep in zip(names, used, strict=True) if keep),
        weights[used],
        centres[used],
        spreads[used],
        float(offset or 0.0),
        unit_range,
        int((~used).sum()),
    )
    scorer = scorer.folded() if scaler == "fold" else scorer
    scorer.in_single_precision()
    return scorer


def final_model(model: Any) -> Any:
    """The ranker of a model or a pipeline, fitted."""
    final = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(final, Ranker):
        raise ValueError(
            f"Only a fitted estimator of rankrls, or a Pipeline that ends in one, can be exported; got "
            f"{type(final).__name__}."
        )
    check_is_fitted(final)
    return final


def affine_steps(model: Any, n_features: int) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """Centres and spreads of all scalers of a pipeline together, and whether they are ranges of one MinMaxScaler."""
    centres, spreads = np.zeros(n_features), np.ones(n_features)
    steps = [step for _, step in model.steps[:-1]] if isinstance(model, Pipeline) else []
    steps = [step for step in steps if step is not None and step != "passthrough"]
    for step in steps:
        centre, spread = _affine(step, n_features)
        centres += spreads * centre
        spreads *= spread
    unit = len(steps) == 1 and isinstance(steps[0], MinMaxScaler) and tuple(steps[0].feature_range) == (0, 1)
    return centres, spreads, unit


def _affine(step: Any, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centre and spread of a scaler: it makes ``(z - centre) / spread`` of z."""
    name = type(step).__name__
    if isinstance(step, QueryMinMaxScaler | QueryStandardScaler) and step.fitted_with_qid_:
        raise InputError(
            "The pipeline scales by query ({0}), and an engine that scores one document cannot know its query's other "
            "documents.",
            name,
            remedy=f"{_TRAVELS}: refit with one of them.",
            parameter="scale",
        )
    if isinstance(step, QueryMinMaxScaler | QueryStandardScaler):
        return step.affine()
    zeros, ones = np.zeros(n), np.ones(n)
    if isinstance(step, StandardScaler):
        return zeros if not step.with_mean else step.mean_.copy(), ones if step.scale_ is None else step.scale_
    if isinstance(step, MinMaxScaler):
        if step.clip:
            raise ValueError("MinMaxScaler(clip=True) is not linear and cannot be exported; refit with clip=False.")
        return step.data_min_ - step.feature_range[0] / step.scale_, 1.0 / step.scale_
    if isinstance(step, MaxAbsScaler):
        return zeros, step.scale_
    if isinstance(step, RobustScaler):
        return zeros if step.center_ is None else step.center_, ones if step.scale_ is None else step.scale_
    raise ValueError(f"The pipeline's step {name} cannot be exported; {_TRAVELS}.")


def check_names(model: Any, given: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """The features' names: one each, none twice."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else model
    known = getattr(first, "feature_names_in_", None)
    if given is None and known is None:
        raise InputError(
            "The engine knows features by name, and this model was fitted on {0} columns without names.",
            n,
            remedy="Give {feature_names}, one a column in the order of the columns, or fit on a data frame.",
            parameter="feature_names",
        )
    names = tuple(str(name) for name in (known if given is None else given))  # type: ignore[union-attr]
    if len(names) != n:
        raise InputError(
            "{feature_names} has {0} names; the model has {1} features.", len(names), n, parameter="feature_names"
        )
    if given is not None and known is not None and names != tuple(str(name) for name in known):
        j = next(k for k, (a, b) in enumerate(zip(names, known, strict=True)) if a != str(b))
        raise InputError(
            "{feature_names} differs from the names that the model was fitted with: column {0} is {1!r} there and "
            "{2!r} here.",
            *(j, str(known[j]), names[j]),
            remedy="Leave {feature_names} out, or fit on columns of the engine's names.",
            parameter="feature_names",
            column=j,
        )
    seen: dict[str, int] = {}
    for j, name in enumerate(names):
        if not name.strip():
            raise ValueError(f"The name of feature {j} is empty.")
        if name in seen:
            raise ValueError(f"Features {seen[name]} and {j} are both called {name!r}; names must differ.")
        seen[name] = j
    return names


def check_offset(offset: Any) -> float | None:
    """A finite number, or None."""
    if offset is None:
        return None
    try:
        value = float(offset)
    except (TypeError, ValueError):
        raise InputError("{offset} must be a finite number or None; got {0!r}.", offset, parameter="offset") from None
    if not np.isfinite(value):
        raise InputError("{offset} must be a finite number or None; got {0!r}.", offset, parameter="offset")
    return value


def positive_offset(model: Any, X: Any, *, margin: float = 1.0) -> float:
    """The offset that makes the scores of some items positive.

    Some engines refuse negative scores. A constant changes no order; how large it has to be depends on the items.

    Parameters
    ----------
    model : estimator of rankrls, or a Pipeline that ends in one
    X : as for ``predict``
        Items that stand for those to come, such as the training data.
    margin : float, default=1.0
        What the least score becomes, where it is not larger by itself. Items to come may score lower.

    Returns
    -------
    float
        ``max(0, margin - least score)``.

    Raises
    ------
    ValueError
        For a pipeline that scales by query or has another step that no export holds, and where X is empty.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import positive_offset
    >>> model = RankRLS(alpha=1e-9).fit([[0.0], [1.0], [3.0]], [0, -1, -3])
    >>> round(positive_offset(model, [[0.0], [3.0]]), 6)
    4.0
    """
    affine_steps(model, int(final_model(model).n_features_in_))
    scores = np.asarray(model.predict(X), dtype=np.float64)
    if not len(scores):
        raise ValueError("X is empty: there are no scores to make positive.")
    return max(0.0, margin - float(scores.min()))
