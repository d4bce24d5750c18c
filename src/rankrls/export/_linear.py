"""A linear model and the scalers before it as one sum over named features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankrls._checks import check_word
from rankrls._errors import InputError
from rankrls.metrics._scorer import unwrapped
from rankrls.models._pipelines import (
    fitted_names,
    fitted_ranker,
    linear_weights,
    table_encoder,
)
from rankrls.preprocessing import EncodedFeature, QueryMinMaxScaler, QueryStandardScaler

OFFSET_FEATURE = "rankrls_offset"
_SINGLE = "float32, in which search engines compute"
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
    encoded : tuple of EncodedFeature
        What the features are made of, for a model behind a TableEncoder; else empty.
    """

    names: tuple[str, ...]
    weights: NDArray[np.float64]
    centres: NDArray[np.float64]
    spreads: NDArray[np.float64]
    constant: float = 0.0
    unit_range: bool = False
    left_out: int = 0
    encoded: tuple[EncodedFeature, ...] = ()

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
            problem = "A feature is called {0!r}, which is the name of the offset."
            raise InputError(problem, OFFSET_FEATURE, parameter="feature_names", column=OFFSET_FEATURE)
        if abs(self.constant) > float(np.finfo(np.float32).max):
            problem = "The {offset} makes a constant of {0:.6g}, which does not fit into {1}."
            raise InputError(problem, self.constant, _SINGLE)
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
            raise InputError(
                "Feature {0!r} cannot be exported: its weight {1:.6g}, centre {2:.6g} or spread {3:.6g} does not fit "
                "into {4}.",
                *(self.names[j], self.weights[j], self.centres[j], self.spreads[j], _SINGLE),
                remedy="Rescale the feature before fitting.",
                column=self.names[j],
            )

    def notes(self) -> tuple[str, ...]:
        """Notes that hold for every engine."""
        out = ["The engine computes in float32: scores agree with predict to about seven digits."]
        if self.left_out:
            out.append(f"{self.left_out} features have weight 0 and are left out: the engine need not compute them.")
        return tuple(out)


def linear_scorer(
    model: Any, feature_names: Sequence[str] | None, target: int | None, scaler: str, offset: float | None
) -> LinearScorer:
    """The model as a sum over named features; errors say which part of a pipeline no engine can compute."""
    check_word("scaler", scaler, ("beside", "fold"))
    offset = check_offset(offset)
    final = fitted_ranker(model)
    instead = "Fit with {kernel='linear'}, or export" if hasattr(final, "_kernel_") else "Export"
    what = f"this format holds one weight a feature. {instead} to ONNX ({{to_onnx}})."
    weights = linear_weights(final, target, what).copy()
    centres, spreads, unit_range = affine_steps(model, len(weights))
    encoder = table_encoder(model)
    constant, encoded = float(offset or 0.0), () if encoder is None else encoder.features_
    if encoder is None:
        names = check_names(model, feature_names, len(weights))
    else:
        if feature_names is not None:
            problem = "The model names its features itself: they are those of its TableEncoder."
            raise InputError(problem, remedy="Leave {feature_names} out.", parameter="feature_names")
        names = tuple(feature.name for feature in encoded)
        constant += _without_others(encoded, weights, centres, spreads)
    used = weights != 0.0
    if not used.any():
        raise InputError("All weights are 0: there is nothing to export.", parameter="model")
    scorer = LinearScorer(
        tuple(compress(names, used)),
        weights[used],
        centres[used],
        spreads[used],
        constant,
        unit_range,
        int((~used).sum()) - sum(feature.kind == "other" for feature in encoded),
        tuple(compress(encoded, used)),
    )
    scorer = scorer.folded() if scaler == "fold" else scorer
    scorer.in_single_precision()
    return scorer


def _without_others(
    encoded: Sequence[EncodedFeature],
    weights: NDArray[np.float64],
    centres: NDArray[np.float64],
    spreads: NDArray[np.float64],
) -> float:
    """Take the features of rare and unseen categories out of the sum, in place; the constant that takes their place.

    The features of a column that has one add up to 1, so that no engine has to look for what is none of the others.
    """
    constant = 0.0
    for other in (j for j, feature in enumerate(encoded) if feature.kind == "other"):
        column, kinds = encoded[other].column, ("category", "none", "other")
        family = [j for j, feature in enumerate(encoded) if feature.column == column and feature.kind in kinds]
        weights[family] /= spreads[family]
        constant += float(weights[other] - weights[family] @ centres[family])
        weights[family] -= weights[other]
        centres[family], spreads[family] = 0.0, 1.0
    return constant


def affine_steps(model: Any, n_features: int) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """Centres and spreads of all scalers of a pipeline together, and whether they are ranges of one MinMaxScaler."""
    centres, spreads = np.zeros(n_features), np.ones(n_features)
    steps = unwrapped(model)[0]
    steps = steps if table_encoder(model) is None else steps[1:]
    for step in steps:
        centre, spread = _affine(step, n_features)
        centres += spreads * centre
        spreads *= spread
    unit = len(steps) == 1 and isinstance(steps[0], MinMaxScaler) and tuple(steps[0].feature_range) == (0, 1)
    return centres, spreads, unit


def _affine(step: Any, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centre and spread of a scaler: it makes ``(z - centre) / spread`` of z."""
    name = type(step).__name__
    centre, spread = None, None
    if isinstance(step, QueryMinMaxScaler | QueryStandardScaler):
        if step.fitted_with_qid_:
            raise InputError(
                "The pipeline scales by query ({0}), and an engine that scores one document cannot know its query's "
                "other documents.",
                name,
                remedy=f"{_TRAVELS}: refit with one of them.",
                parameter="model",
            )
        centre, spread = step.affine()
    elif isinstance(step, MinMaxScaler):
        if step.clip:
            problem = "MinMaxScaler(clip=True) is not linear and cannot be exported."
            raise InputError(problem, remedy="Refit with clip=False.", parameter="model")
        centre, spread = step.data_min_ - step.feature_range[0] / step.scale_, 1.0 / step.scale_
    elif isinstance(step, StandardScaler):
        centre, spread = step.mean_ if step.with_mean else None, step.scale_
    elif isinstance(step, RobustScaler | MaxAbsScaler):
        centre, spread = getattr(step, "center_", None), step.scale_
    else:
        raise InputError("The pipeline's step {0} cannot be exported.", name, remedy=f"{_TRAVELS}.", parameter="model")
    return np.zeros(n) if centre is None else centre, np.ones(n) if spread is None else spread


def check_names(model: Any, given: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """The features' names: one each, none twice."""
    fitted = fitted_names(model)
    known = None if fitted is None else tuple(map(str, fitted))
    names = known if given is None else tuple(map(str, given))
    if names is None:
        raise InputError(
            "The engine knows features by name, and this model was fitted on {0} columns without names.",
            n,
            remedy="Give {feature_names}, one a column in the order of the columns, or fit on a data frame.",
            parameter="feature_names",
        )
    if len(names) != n:
        raise InputError("{feature_names} has {0} names; the model has {1} features.", len(names), n)
    for j, (name, own) in enumerate(zip(names, known or names, strict=True)):
        if name != own:
            problem = (
                "{feature_names} differs from the names that the model was fitted with: column {0} is {1!r} there and "
                "{2!r} here."
            )
            remedy = "Leave {feature_names} out, or fit on columns of the engine's names."
            raise InputError(problem, j, own, name, remedy=remedy, column=j)
        if not name.strip():
            raise InputError("The name of feature {0} is empty.", j, parameter="feature_names", column=j)
        if name in names[:j]:
            problem = "Features {0} and {1} are both called {2!r}; names must differ."
            raise InputError(problem, names.index(name), j, name, parameter="feature_names", column=j)
    return names


def check_offset(offset: Any) -> float | None:
    """A finite number, or None."""
    if offset is None:
        return None
    try:
        value = float(offset)
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        raise InputError("{offset} must be a finite number or None; got {0!r}.", offset)
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
        What the least score becomes, unless it is larger already. Items to come may score lower.

    Returns
    -------
    float
        ``max(0, margin - least score)``.

    Raises
    ------
    ValueError
        For a pipeline that scales by query or has another step that no export can hold, and if X is empty.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import positive_offset
    >>> model = RankRLS(alpha=1e-9).fit([[0.0], [1.0], [3.0]], [0, -1, -3])
    >>> round(positive_offset(model, [[0.0], [3.0]]), 6)
    4.0
    """
    affine_steps(model, int(fitted_ranker(model).n_features_in_))
    scores = np.asarray(model.predict(X), dtype=np.float64)
    if not len(scores):
        raise InputError("{X} is empty: there are no scores to make positive.")
    return max(0.0, margin - float(scores.min()))
