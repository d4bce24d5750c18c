"""Result of an export; a linear model and its scalers as one sum over the features of an engine."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankrls._errors import InputError
from rankrls._typing import Array
from rankrls.io import atomic_write
from rankrls.metrics._scorer import unwrapped
from rankrls.models._pipelines import (
    check_target,
    fitted_names,
    fitted_ranker,
    linear_weights,
    names_of_features,
    table_encoder,
)
from rankrls.models.ranker import Ranker
from rankrls.preprocessing import EncodedFeature, LogScaler, QueryMinMaxScaler, QueryStandardScaler, TableEncoder

_EXPORTED = "Fit with StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler of scikit-learn."
TEXT_WEIGHTS = dict.fromkeys(("similarity", "tfidf"), "the engine computes TF-IDF differently")
"""Kinds of features that depend on word frequencies in the training texts, and the reason why engines lack them."""


@dataclass(frozen=True)
class Exported:
    """A model in another system's format.

    Attributes
    ----------
    content : str or bytes
        Content of the file or the request; bytes for ONNX.
    notes : tuple of str
        Notes for deployment: limits of the system, and features that must be defined there.
    factor : float
        Scores in the system are ``factor * predict``, plus the offset. A power of ten; 1 in formats of float64.
    files : mapping of str to str
        Contents of further files by their names: for models with a :class:`~rankrls.preprocessing.TableEncoder`
        ``features.json``, the definitions of the features in Solr, Elasticsearch and OpenSearch, and ``fields.json``,
        the fields of the index; for JSON the scorers ``score.py`` and ``score.mjs``.
    """

    content: str | bytes
    notes: tuple[str, ...]
    factor: float = 1.0
    files: Mapping[str, str] = field(default_factory=dict)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the content to a file, and the further files to its folder, each atomically.

        Parameters
        ----------
        path : path

        Raises
        ------
        InputError
            If the file would have the name of a further file.
        OSError
            If a file cannot be written; a file of the same name keeps its old content.
        """
        target = Path(path)
        if target.name in self.files:
            problem = f"{target.name} is the name of a further file of this format. Give the model another name."
            raise InputError(problem, parameter="path")
        for name, data in {target.name: self.content, **self.files}.items():
            with atomic_write(target.with_name(name)) as file:
                file.write(data.encode() if isinstance(data, str) else data)

    def json(self) -> Any:
        """The content as Python objects, for a client that posts it; only for formats that are JSON."""
        return json.loads(self.content)


def json_text(value: Any) -> str:
    """Indented JSON that ends with a newline."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True)
class Term:
    """Contribution of a feature to the score, ``weight (x - centre) / spread``, with x the value of the feature.

    ``name`` is the name of the feature in the engine.
    """

    name: str
    feature: EncodedFeature
    weight: float
    centre: float = 0.0
    spread: float = 1.0


@dataclass(frozen=True)
class LinearModel:
    """A fitted model as one sum, ``constant + sum of terms``, which is ``factor`` times ``predict``.

    Attributes
    ----------
    terms : list of Term
        Terms, without those of weight 0 and of rare categories.
    constant : float
        Contribution of a row of rare categories.
    factor : float
        A power of ten, see :func:`score_factor`.
    encoder : TableEncoder or None
        First step of the pipeline, if it is one. Without it, the columns are the features.
    """

    terms: list[Term]
    constant: float
    factor: float
    encoder: TableEncoder | None

    def notes(self, offset: float | None) -> list[str]:
        """Notes on the effect of float32 and the factor on scores."""
        reach = abs(offset or 0.0) + abs(self.constant) + 10.0 * sum(abs(term.weight) for term in self.terms)
        exact = reach * (len(self.terms) + 4) * 2.0**-24
        notes = [
            f"The engine computes in float32: scores are exact to about {exact:.1g} while the scaled features are "
            "between -10 and 10."
        ]
        if self.factor != 1.0:
            times = f"Scores are those of predict times {self.factor:g}"
            notes.append(f"{times}, so that float32 tells them apart. The ranking is the same.")
        return notes


def linear_model(model: Any, feature_names: Sequence[str] | None, target: int | None) -> LinearModel:
    """The model as one sum. Errors name the part of a pipeline that no engine can compute."""
    final = fitted_ranker(model)
    remedy = " Fit a linear model. Kernel models and RankBoost can be exported as ONNX or JSON."
    weights = linear_weights(final, target, "this format has one weight for each feature.", remedy)
    factor = score_factor(final, target)
    weights = factor * weights
    centres, spreads = affine_steps(model, len(weights))
    features = table_features(model, feature_names, len(weights))
    encoder = table_encoder(model)
    constant = _without_others(features, weights, centres, spreads)
    used = weights != 0.0
    if not used.any():
        raise InputError("All weights are 0: there is nothing to export.", parameter="model")
    names = [feature.name for feature in features]
    parts = zip(names, features, weights.tolist(), centres.tolist(), spreads.tolist(), strict=True)
    terms = [Term(*part) for part in compress(parts, used)]
    return LinearModel(terms, constant, factor, encoder)


def score_factor(final: Ranker, target: int | None) -> float:
    """Power of ten by which scores of a linear model are multiplied for engines that compute in float32.

    Strong regularization shrinks the differences of scores below the resolution of an offset. The norm of the weights
    is the standard deviation of the scores if features are independent and scaled; it becomes 10 to 100 unless it is
    between 1 and 100.
    """
    if not hasattr(final, "coef_"):
        return 1.0
    norm = float(np.linalg.norm(linear_weights(final, target, "")))
    if norm == 0.0 or 1.0 <= norm <= 100.0:
        return 1.0
    return float(10.0 ** (1 - math.floor(math.log10(norm))))


def table_features(model: Any, feature_names: Sequence[str] | None, n: int) -> Sequence[EncodedFeature]:
    """Features of the TableEncoder, or numbers with the names of the columns."""
    encoder = table_encoder(model)
    if encoder is None:
        return [EncodedFeature(name, "number") for name in _check_names(model, feature_names, n)]
    if feature_names is not None:
        problem = "The TableEncoder names the features, so feature_names cannot be used. Leave it out."
        raise InputError(problem, parameter="feature_names")
    features: Sequence[EncodedFeature] = encoder.features_
    return features


def refuse(system: str, reasons: Iterable[tuple[EncodedFeature, str]], matches: bool = True) -> None:
    """Raise one error about all features that a system cannot compute, with the reasons; empty reasons are supported.

    ``matches`` is whether the system can compare words with those of a query.
    """
    refused = dict.fromkeys((feature.column, why) for feature, why in reasons if why)
    if refused:
        listed = "; ".join(f"{column!r} ({why})" for column, why in refused)
        instead = ", or fit with text_features='matches'" if matches else ""
        problem = f"{system} cannot compute what the model needs: {listed}. Rename or leave out the columns (ignore)"
        settings = {"text_features": "matches"} if matches else {}
        raise InputError(f"{problem}{instead}.", parameter="model", column=next(iter(refused))[0], settings=settings)


def _without_others(features: Sequence[EncodedFeature], weights: Array, centres: Array, spreads: Array) -> float:
    """Remove features of rare and unseen categories from the sum, in place; returns the constant that replaces them.

    The features of such a column add up to 1, so engines need not test for values outside the other categories.
    """
    constant = 0.0
    for other in (j for j, feature in enumerate(features) if feature.kind == "other"):
        column = features[other].column
        family = [j for j, f in enumerate(features) if f.column == column and f.kind in ("category", "none", "other")]
        weights[family] /= spreads[family]
        constant += float(weights[other] - weights[family] @ centres[family])
        weights[family] -= weights[other]
        centres[family] = 0.0
        spreads[family] = 1.0
    return constant


@dataclass(frozen=True)
class Scaling:
    """One step of a pipeline: ``(x - centre) / spread``, with asinh(x) instead of x after a logarithm."""

    centre: Array
    spread: Array
    logarithm: bool = False


def scaling_steps(model: Any, n_features: int) -> list[Scaling]:
    """The scalers of a pipeline, one after another."""
    return [_scaling(step, n_features) for step in unwrapped(model)[0][table_encoder(model) is not None :]]


def affine_steps(model: Any, n_features: int) -> tuple[Array, Array]:
    """Centres and spreads of all scalers of a pipeline together; logarithms are refused."""
    centres = np.zeros(n_features)
    spreads = np.ones(n_features)
    for step in scaling_steps(model, n_features):
        if step.logarithm:
            problem = f"The engine's normalizers have no logarithm, which the pipeline's LogScaler needs. {_EXPORTED}"
            raise InputError(problem, parameter="model")
        centres += spreads * step.centre
        spreads *= step.spread
    return centres, spreads


def _scaling(step: Any, n_features: int) -> Scaling:
    if isinstance(step, LogScaler):
        return replace(_scaling(step.scaler_, n_features), logarithm=True)
    name = type(step).__name__
    if isinstance(step, QueryMinMaxScaler | QueryStandardScaler):
        if step.fitted_with_qid_:
            problem = f"{name} scales within queries, but an engine scores each document on its own."
            raise InputError(f"{problem} {_EXPORTED}", parameter="model")
        return _scaling(step.scaler_, n_features)
    if isinstance(step, MinMaxScaler) and not step.clip:
        return Scaling(step.data_min_ - step.feature_range[0] / step.scale_, 1.0 / step.scale_)
    centre = None
    if isinstance(step, StandardScaler):
        centre = step.mean_ if step.with_mean else None
    elif isinstance(step, RobustScaler):
        centre = step.center_
    elif not isinstance(step, MaxAbsScaler):
        clip = "(clip=True)" if isinstance(step, MinMaxScaler) else ""
        raise InputError(f"The pipeline's step {name}{clip} cannot be exported. {_EXPORTED}", parameter="model")
    spread = np.ones(n_features) if step.scale_ is None else step.scale_
    return Scaling(np.zeros(n_features) if centre is None else centre, spread)


def _check_names(model: Any, given: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """Names of the features, which must be unique."""
    if given is None and fitted_names(model) is None:
        problem = f"The engine identifies features by name, but this model was fitted to {n} columns without names."
        remedy = "Pass feature_names, one per column in their order, or fit to a data frame."
        raise InputError(f"{problem} {remedy}", parameter="feature_names")
    names = names_of_features(model, given, n)
    twice = [name for j, name in enumerate(names) if name in names[:j]]
    if twice:
        raise InputError(f"Two features are called {twice[0]!r}: names must differ.", parameter="feature_names")
    return names


def positive_offset(model: Any, X: Any, target: int | None = None) -> float:
    """Compute the offset that makes the scores of some items positive in an engine.

    Some engines refuse negative scores. A constant does not change the ranking; its size depends on the items.

    Parameters
    ----------
    model : estimator of rankrls, or a Pipeline that ends in one
    X : as for ``predict``
        Representative items, such as the training data.
    target : int, optional
        Number of the target, for a model with several.

    Returns
    -------
    float
        With the scores ``s`` in the engine (``predict`` times :class:`Exported`), ``max(0, (max s - min s) / 100
        - min s)``. New items may have lower scores.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import positive_offset
    >>> model = RankRLS(alpha=1e-9).fit([[0.0], [1.0], [3.0]], [0, -2, -6])
    >>> round(positive_offset(model, [[0.0], [3.0]]), 6)
    6.06
    """
    scores = score_factor(fitted_ranker(model), target) * np.asarray(model.predict(X), dtype=np.float64)
    if scores.ndim == 2:
        scores = scores[:, check_target(target, scores.shape[1])]
    return float(max(0.0, 0.01 * np.ptp(scores) - scores.min()))
