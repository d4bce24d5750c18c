"""A linear model as one sum over the features of a search engine: their names, definitions, and fields."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, compress, count
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls._typing import Array
from rankrls.export._model import SCALERS, Exported, json_text, refuse, scaling_steps, table_features
from rankrls.models._pipelines import check_target, fitted_ranker, linear_weights, table_encoder
from rankrls.preprocessing import EncodedFeature, TableEncoder
from rankrls.preprocessing._table_encoder import Categories, Encoding, Numbers

TEXT_WEIGHTS = dict.fromkeys(("similarity", "tfidf"), "the engine computes TF-IDF differently")
"""Kinds of features that depend on word frequencies in the training texts, and the reason why engines lack them."""
OFFSET_FEATURE = "rankrls_offset"
QUERY_TEXT = "query_text"
"""Parameter of the definitions that contains the text of the query."""
LETTER = r"[\p{L}\p{N}_]"
"""A letter of a word, as TableEncoder splits texts, in Java's regular expressions."""
WORDS = "rankrls_words"
"""Name of the analyzer that splits texts into these words."""
EVERY_FIELD = (
    "Each field must have the name of its column, and one value. fields.json defines all of them. Index an empty cell "
    "as no field."
)
ONE_NAME = "Names of models cannot be used twice: give every new model a new one, such as shop_v2."
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d+)?")


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
    factor = score_factor(weights)
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


def score_factor(weights: Array) -> float:
    """Power of ten by which scores of a linear model are multiplied for engines that compute in float32.

    Strong regularization shrinks the differences of scores below the resolution of an offset. The norm of the weights
    is the standard deviation of the scores if features are independent and scaled; it becomes 10 to 100 unless it is
    between 1 and 100.
    """
    norm = float(np.linalg.norm(weights))
    if norm == 0.0 or 1.0 <= norm <= 100.0:
        return 1.0
    return float(10.0 ** (1 - math.floor(math.log10(norm))))


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


def affine_steps(model: Any, n_features: int) -> tuple[Array, Array]:
    """Centres and spreads of all scalers of a pipeline together; logarithms are refused."""
    centres = np.zeros(n_features)
    spreads = np.ones(n_features)
    for step in scaling_steps(model, n_features):
        if step.logarithm:
            problem = f"The engine's normalizers have no logarithm, which the pipeline's LogScaler needs. {SCALERS}"
            raise InputError(problem, parameter="model")
        centres += spreads * step.centre
        spreads *= step.spread
    return centres, spreads


@dataclass(frozen=True)
class Engine:
    """A search engine, whose features are scores of queries.

    Attributes
    ----------
    name : str
    one : mapping
        Definition of a feature that is always 1, without its name.
    conditions : mapping of str to str
        Conditions under which definitions mean the same in the engine: for all features (""), and for kinds of them.
    refused : callable
        Reason why the engine cannot name a column or a value; empty if it can.
    define : callable
        Definitions of a feature, the rules by its kind: the value itself; or, if scores cannot be negative, its
        positive part and that of its negative, and for a sine or cosine, the value plus 1.
    fields : callable
        Content of ``fields.json`` for columns of "number", "date", "category", "boolean" or "words".
    """

    name: str
    one: Mapping[str, Any]
    conditions: Mapping[str, str]
    refused: Callable[[EncodedFeature], str]
    define: Callable[[EncodedFeature], list[dict[str, Any]]]
    fields: Callable[[Mapping[str, str]], dict[str, Any]]


@dataclass(frozen=True)
class EngineModel:
    """A linear model over an engine's features; definitions are None if they are the user's own."""

    terms: list[Term]
    factor: float
    definitions: list[dict[str, Any]] | None
    fields: dict[str, Any]
    notes: list[str]

    def exported(self, model: Any, definitions: Any, notes: Sequence[str]) -> Exported:
        """The model, the definitions of features in the engine's format, and the fields of the index."""
        files = {}
        if definitions is not None:
            files = {"features.json": json_text(definitions), "fields.json": json_text(self.fields)}
        return Exported(json_text(model), (*notes, ONE_NAME), self.factor, files)


def engine_model(
    model: Any,
    engine: Engine,
    feature_names: Sequence[str] | None,
    offset: float | None,
    target: int | None,
) -> EngineModel:
    """A linear model over an engine's features, with an offset as the weight of a feature that is always 1."""
    linear = linear_model(model, feature_names, target)
    notes = linear.notes(offset)
    terms = linear.terms
    definitions = None
    fields: dict[str, Any] = {}
    if linear.encoder is not None:
        refuse(engine.name, ((term.feature, engine.refused(term.feature)) for term in linear.terms))
        terms, definitions = _defined(linear.terms, engine)
        notes += conditions(linear.terms, engine.conditions)
        fields = engine.fields(uses(linear.encoder, (term.feature for term in linear.terms)))
    if offset is not None:
        always_one = EncodedFeature(OFFSET_FEATURE, "number")
        terms = [*terms, Term(OFFSET_FEATURE, always_one, offset + linear.constant)]
        one = {"name": OFFSET_FEATURE, **engine.one}
        if definitions is None:
            notes.append(f"Define {OFFSET_FEATURE} in the engine: {json.dumps(one)}.")
        else:
            definitions.append(one)
    elif linear.constant != 0.0:
        problem = f"{engine.name}'s linear model has no intercept: its scores are lower by {linear.constant:.6g}"
        notes.append(f"{problem}. The ranking is the same.")
    return EngineModel(terms, linear.factor, definitions, fields, notes)


def uses(encoder: TableEncoder | None, features: Iterable[EncodedFeature]) -> dict[str, str]:
    """Contents of the fields of some features: "number", "date", "category", "boolean" or "words"."""
    encodings = [] if encoder is None else encoder.encodings_
    columns = {feature.column for feature in features}
    return {encoding.column: _use(encoding) for encoding in encodings if encoding.column in columns}


def _use(encoding: Encoding) -> str:
    """Contents of a column; categories that are all numbers, or all truth values, count as such."""
    if isinstance(encoding, Numbers):
        return encoding.kind
    if not isinstance(encoding, Categories):
        return "words"
    words = [word for word in (*encoding.known, *encoding.rare) if word is not None]
    if all(word in ("true", "false") for word in words):
        return "boolean"
    return "number" if all(map(_NUMBER.fullmatch, words)) else "category"


def conditions(terms: Sequence[Term], texts: Mapping[str, str]) -> list[str]:
    """Conditions of an engine that apply to the features of some terms."""
    kinds = {"": terms[-1].feature, **{term.feature.kind: term.feature for term in terms}}
    found = [(kinds[kind], text) for kind, text in texts.items() if kind in kinds]
    return [text.format(column=feature.column, origin=instant(feature.origin)) for feature, text in found]


def _defined(terms: Sequence[Term], engine: Engine) -> tuple[list[Term], list[dict[str, Any]]]:
    """The sum over an engine's own features, and their definitions."""
    parts = list[Term]()
    definitions = list[dict[str, Any]]()
    for term in terms:
        bodies = engine.define(term.feature)
        above = replace(term, centre=term.centre + (term.feature.kind in ("sine", "cosine")))
        below = replace(term, name=f"{term.name}_below_0", weight=-term.weight, centre=0.0)
        parts += [above, below][: len(bodies)]
        definitions += bodies
    names = _engine_names(part.name for part in parts)
    parts = [replace(part, name=name) for part, name in zip(parts, names, strict=True)]
    return parts, [{"name": name, **body} for name, body in zip(names, definitions, strict=True)]


def _engine_names(wanted: Iterable[str]) -> list[str]:
    """Unique names of letters, digits and underscores, close to the wanted ones."""
    taken = [OFFSET_FEATURE]
    for text in wanted:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or "feature"
        plain = f"f_{plain}" if plain[0].isdigit() else plain
        numbered = (f"{plain}_{k}" for k in count(2))
        taken.append(next(name for name in chain([plain], numbered) if name not in taken))
    return taken[1:]


def instant(days: float) -> str:
    """A day, counted from 1970, as ISO 8601 in UTC."""
    return (datetime(1970, 1, 1) + timedelta(days=days)).isoformat(timespec="milliseconds") + "Z"


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
    final = fitted_ranker(model)
    factor = score_factor(linear_weights(final, target, "")) if hasattr(final, "coef_") else 1.0
    scores = factor * np.asarray(model.predict(X), dtype=np.float64)
    if scores.ndim == 2:
        scores = scores[:, check_target(target, scores.shape[1])]
    return float(max(0.0, 0.01 * np.ptp(scores) - scores.min()))
