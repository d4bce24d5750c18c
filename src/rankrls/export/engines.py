"""Linear models for search engines: one sum over an engine's features, with their definitions and fields.

Elasticsearch and OpenSearch, in their learning-to-rank plugins and as a plain query; Solr's learning-to-rank module.
"""

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
from rankrls._typing import Array, Params, Values
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
    one: Params
    conditions: Mapping[str, str]
    refused: Callable[[EncodedFeature], str]
    define: Callable[[EncodedFeature], list[Values]]
    fields: Callable[[Mapping[str, str]], Values]


@dataclass(frozen=True)
class EngineModel:
    """A linear model over an engine's features; definitions are None if they are the user's own."""

    terms: list[Term]
    factor: float
    definitions: list[Values] | None
    fields: Values
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
    fields: Values = {}
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


def _defined(terms: Sequence[Term], engine: Engine) -> tuple[list[Term], list[Values]]:
    """The sum over an engine's own features, and their definitions."""
    parts = list[Term]()
    definitions = list[Values]()
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


_ALL: Values = {"match_all": {}}
_QUERY_WORDS = "rankrls_query_words"
_NOT_NEGATIVE = (
    "Queries cannot have negative scores: the offset and all features but the words of texts add up to 0 at least. "
    "Choose an offset that is large enough."
)
_SUM = """double score = params.constant;
for (f in params.features) {
  double x = f.fill;
  if (doc.containsKey(f.field) && doc[f.field].size() > 0) {
    def value = doc[f.field].value;
    if (f.kind == 'number') { x = value; }
    else if (f.kind == 'missing') { x = 0.0; }
    else if (f.kind == 'category') {
      String key = value.toString();
      if (value instanceof Number) { key = new BigDecimal(key).stripTrailingZeros().toPlainString(); }
      x = f.weights.containsKey(key) ? f.weights[key] : 0.0;
    } else {
      x = (f.origin - value.toInstant().toEpochMilli()) / 86400000.0;
      if (f.kind == 'sine') { x = Math.sin(f.angle * x); }
      if (f.kind == 'cosine') { x = Math.cos(f.angle * x); }
    }
  }
  score += f.weight * x;
}
return Math.max(0.0, score);"""
"""The Painless script that adds up features, without words."""


def to_elasticsearch(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    offset: float | None = None,
    target: int | None = None,
) -> Exported:
    """Export a linear model for the learning-to-rank plugins of Elasticsearch and OpenSearch.

    The score is ``sum_j weight_j norm_j(feature_j)`` in float32, where a standard normalizer is ``(x - mean) /
    standard_deviation``. A feature whose query does not match a document has the value 0 there, before it is
    normalized.

    Parameters
    ----------
    model : fitted linear estimator of rankrls, or a Pipeline that ends in one
        The pipeline can have a TableEncoder first, and scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler and
        RobustScaler.
    name : str, default="rankrls"
        Name of the model in the engine, which cannot be used twice. A new version of a model needs a new name.
    feature_names : sequence of str, optional
        Names of the features in the feature set, one per column. By default those of the data frame.
    offset : float, optional
        Constant to add to every score after the factor, as the weight of a feature ``rankrls_offset`` that must be
        defined as the constant 1 (see the notes of the result). See :func:`positive_offset`.
    target : int, optional
        Number of the target, for a model with several.

    Returns
    -------
    Exported
        JSON to post to ``_ltr/_featureset/<feature set>/_createmodel``. For a model with a TableEncoder the further
        files are ``fields.json``, the body that creates the index, and ``features.json``, JSON to post to
        ``_ltr/_featureset/<feature set>`` first. Scores are ``predict`` times ``factor``, plus the offset.

    Raises
    ------
    ValueError
        For a model that is not linear, scaling by query, missing or repeated names.

    References
    ----------
    Elasticsearch Learning to Rank, Uploading A Trained Model: linear models, feature normalization.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import to_elasticsearch
    >>> model = RankRLS(alpha=2.0).fit([[0.0, 1.0], [2.0, 1.0]], [0, 4])
    >>> to_elasticsearch(model, "toy", feature_names=["bm25_title", "is_new"]).json()
    {'model': {'name': 'toy', 'model': {'type': 'model/linear', 'definition': '{"bm25_title": 1.0}'}}}
    """
    made = engine_model(model, ELASTICSEARCH, feature_names, offset, target)
    notes = ["A feature of the feature set that the model does not name silently has weight 0.", *made.notes]
    if offset is None:
        notes.append("An offset that makes scores positive is recommended: parts of the engine refuse negative ones.")
    normalizers = {
        term.name: {"standard": {"mean": term.centre, "standard_deviation": term.spread}}
        for term in made.terms
        if (term.centre, term.spread) != (0.0, 1.0)
    }
    weights = {term.name: term.weight for term in made.terms}
    inner: Values = {"type": "model/linear", "definition": json.dumps(weights, ensure_ascii=False)}
    if normalizers:
        inner["feature_normalizers"] = normalizers
    definitions = None if made.definitions is None else {"featureset": {"features": made.definitions}}
    return made.exported({"model": {"name": name, "model": inner}}, definitions, notes)


to_opensearch = to_elasticsearch


def to_elasticsearch_query(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    offset: float | None = None,
    target: int | None = None,
) -> Exported:
    """Export a linear model as a rescoring query for Elasticsearch and OpenSearch, which needs no plugin.

    A ``function_score`` query adds up filters for words, and a Painless script for all other features, in float64; the
    sum is rounded to float32.

    Parameters
    ----------
    model : fitted linear estimator of rankrls, or a Pipeline that ends in one
        As for :func:`to_elasticsearch`. Without a TableEncoder, each feature is a field with numbers.
    name : str, default="rankrls"
        Name of the query, which responses list in ``matched_queries``.
    feature_names : sequence of str, optional
        Names of the fields, one per column. By default those of the data frame.
    offset : float, optional
        Constant to add to every score after the factor. The engine refuses negative scores, so a negative sum of all
        features but words counts as 0. See :func:`positive_offset`, and add a margin for words.
    target : int, optional
        Number of the target, for a model with several.

    Returns
    -------
    Exported
        JSON with the key ``rescore``, to merge into the body of a search; ``fields.json`` is the body that creates the
        index. Scores are ``predict`` times ``factor``, plus the offset.

    Raises
    ------
    ValueError
        As :func:`to_elasticsearch`; and for a negative weight of the number of matching words, which no query can
        subtract.

    References
    ----------
    Elasticsearch reference: Function score query; Rescore filtered search results.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import to_elasticsearch_query
    >>> model = RankRLS(alpha=2.0).fit([[0.0, 1.0], [2.0, 1.0]], [0, 4])
    >>> exported = to_elasticsearch_query(model, "toy", feature_names=["clicks", "is_new"], offset=10.0)
    >>> query = exported.json()["rescore"]["query"]["rescore_query"]["function_score"]
    >>> query["score_mode"], query["functions"][0]["script_score"]["script"]["params"]
    ('sum', {'constant': 10.0, 'features': [{'kind': 'number', 'field': 'clicks', 'weight': 1.0, 'fill': 0.0}]})
    """
    linear = linear_model(model, feature_names, target)
    refuse("A query", ((term.feature, _query_refuses(term)) for term in linear.terms))
    terms = [replace(term, weight=term.weight / term.spread, spread=1.0) for term in linear.terms]
    score, margin = _rescoring(terms, linear.constant + (offset or 0.0), name)
    query = {"rescore_query": score, "query_weight": 0.0, "rescore_query_weight": 1.0}
    notes = [_NOT_NEGATIVE, *linear.notes(offset)]
    if margin:
        notes.append(f"The weights of words need {margin:.3g} more than the offset of positive_offset.")
    files = {}
    if linear.encoder is None:
        notes.append("Each feature is a field with numbers. In a document without the field it counts as 0.")
    else:
        notes += conditions(linear.terms, ELASTICSEARCH.conditions)
        held = uses(linear.encoder, (term.feature for term in linear.terms))
        files["fields.json"] = json_text(_elasticsearch_fields(held))
    text = json_text({"rescore": {"window_size": 100, "query": query}})
    return Exported(text, tuple(notes), linear.factor, files)


def _rescoring(terms: Sequence[Term], constant: float, name: str) -> tuple[Values, float]:
    """The function_score query of a sum of terms, and the sum of the weights of words.

    A script adds up most features. Filters find words; they cannot have negative weights, so the complement has a
    positive one. Queries count matching words.
    """
    features: list[Values] = []
    categories: dict[str, dict[str, float]] = {}
    words: list[Values] = []
    matches: list[Values] = []
    for term in terms:
        feature = term.feature
        constant -= term.weight * term.centre
        if feature.kind == "category":
            categories.setdefault(feature.column, {})[feature.value] = term.weight
        elif feature.kind == "matches":
            asked = {"query": f"{{{{{QUERY_TEXT}}}}}", "boost": term.weight}
            matches.append({"match": {feature.column: asked}})
        elif feature.kind == "word":
            condition = _condition(feature)
            if term.weight < 0.0:
                constant += term.weight
                condition = {"bool": {"must_not": [condition]}}
            words.append({"filter": condition, "weight": abs(term.weight)})
        else:
            features.append(_summand(feature, term.weight))
    features += [
        {"kind": "category", "field": column, "weight": 1.0, "fill": 0.0, "weights": weights}
        for column, weights in categories.items()
    ]
    body = {
        "query": {"bool": {"filter": [_ALL], "should": matches}} if matches else _ALL,
        "functions": [_script(constant, features), *words],
        "score_mode": "sum",
        "boost_mode": "sum" if matches else "replace",
        "_name": name,
    }
    return {"function_score": body}, sum(each["weight"] for each in words)


def _query_refuses(term: Term) -> str:
    if term.feature.kind == "matches" and term.weight < 0.0:
        return "its weight is negative, and a query cannot subtract the score of another"
    return _elasticsearch_refuses(term.feature)


def _template(query: Values, *parameters: str) -> Values:
    return {"params": [*parameters], "template_language": "mustache", "template": query}


def _elasticsearch_refuses(feature: EncodedFeature) -> str:
    if feature.kind in TEXT_WEIGHTS:
        return TEXT_WEIGHTS[feature.kind]
    return "{{ marks a parameter in the engine" if "{{" in feature.value or "{{" in feature.column else ""


def _condition(feature: EncodedFeature) -> Values:
    """The filter of a feature that is 1 or 0."""
    if feature.kind in ("missing", "none"):
        return {"bool": {"must_not": [{"exists": {"field": feature.column}}]}}
    return {"term": {feature.column: feature.value}}


def _summand(feature: EncodedFeature, weight: float) -> Values:
    """A number, a date or a missing cell for the script that adds them up."""
    kind = "missing" if feature.kind == "none" else feature.kind
    fill = {"number": feature.fill, "age": feature.fill, "missing": 1.0}.get(kind, 0.0)
    date = {"origin": round(feature.origin * 86_400_000)} if kind in ("age", "sine", "cosine") else {}
    wave = {"angle": 2.0 * math.pi / feature.days} if feature.days else {}
    return {"kind": kind, "field": feature.column, "weight": weight, "fill": fill, **date, **wave}


def _script(constant: float, features: list[Values]) -> Values:
    """A constant and features that a script adds up; a negative sum counts as 0."""
    params = {"constant": constant, "features": features}
    return {"script_score": {"script": {"lang": "painless", "source": _SUM, "params": params}}}


def _elasticsearch_queries(feature: EncodedFeature) -> list[Values]:
    """Queries whose scores are a feature, or its positive part and that of its negative; a sine or cosine and 1."""
    match feature.kind:
        case "matches":
            return [_template({"match": {feature.column: f"{{{{{QUERY_TEXT}}}}}"}}, QUERY_TEXT)]
        case "number" | "age":
            sums = [(0.0, 1.0), (0.0, -1.0)]
        case "sine" | "cosine":
            sums = [(1.0, 1.0)]
        case _:
            return [_template({"constant_score": {"filter": _condition(feature)}})]
    scripts = [_script(constant, [_summand(feature, weight)]) for constant, weight in sums]
    return [_template({"function_score": {"query": _ALL, **script, "boost_mode": "replace"}}) for script in scripts]


def _elasticsearch_fields(held: Mapping[str, str]) -> Values:
    """The body that creates an index."""
    types = {"number": "double", "date": "date", "category": "keyword", "boolean": "boolean", "words": "text"}
    words = {"analyzer": WORDS, "search_analyzer": _QUERY_WORDS, "similarity": "boolean"}
    properties = {name: {"type": types[use], **(words if use == "words" else {})} for name, use in held.items()}
    body: Values = {"mappings": {"properties": properties}}
    if "words" in held.values():
        found = {"type": "custom", "tokenizer": WORDS, "filter": ["lowercase"]}
        analysis = {
            "tokenizer": {WORDS: {"type": "pattern", "pattern": f"({LETTER}+)", "group": 1}},
            "analyzer": {WORDS: found, _QUERY_WORDS: {**found, "filter": ["lowercase", "unique"]}},
        }
        body = {"settings": {"analysis": analysis}, **body}
    return body


ELASTICSEARCH = Engine(
    "Elasticsearch",
    _template(_ALL),
    {
        "": EVERY_FIELD,
        "category": "Fields of categories must be keywords, numbers or booleans. Index the table's values, without "
        "blanks around them.",
        "age": "Ages are counted from {origin}, not from today. This does not change the ranking.",
        "matches": f"Send the query's text with each request, as {QUERY_TEXT}. The field {{column!r}} "
        "needs the analyzers and the similarity of fields.json, so that each matching word counts 1.",
        "word": "The field {column!r} needs the analyzer of fields.json: its words are those of the encoder.",
    },
    _elasticsearch_refuses,
    _elasticsearch_queries,
    _elasticsearch_fields,
)


_SOLR = "org.apache.solr.ltr"
_REPEATED = rf"(?ius)(?<!{LETTER})({LETTER}++)(?=(?!{LETTER}).*(?<!{LETTER})\1(?!{LETTER}))"
"""A word that comes once more."""


def to_solr(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    store: str | None = None,
    offset: float | None = None,
    target: int | None = None,
) -> Exported:
    """Export a linear model for Solr's learning-to-rank module.

    The score is ``sum_j weight_j norm_j(feature_j)`` in float32, where a StandardNormalizer is ``(x - avg) / std``.

    Parameters
    ----------
    model : fitted linear estimator of rankrls, or a Pipeline that ends in one
        The pipeline can have a TableEncoder first, and scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler and
        RobustScaler.
    name : str, default="rankrls"
        The model's name in Solr, which cannot be used twice. A new version of a model needs a new name.
    feature_names : sequence of str, optional
        The features' names in Solr's feature store, one per column. By default those of the data frame.
    store : str, optional
        The feature store. By default, for a model with a TableEncoder the model's name, because a store keeps its old
        definitions; else Solr's default store.
    offset : float, optional
        Constant to add to every score after the factor, as the weight of a feature ``rankrls_offset`` that must be
        defined as the constant 1 (see the notes of the result). See :func:`positive_offset`.
    target : int, optional
        Number of the target, for a model with several.

    Returns
    -------
    Exported
        JSON to upload to ``/schema/model-store``. For a model with a TableEncoder the further files are
        ``fields.json``, commands for ``/schema``, and ``features.json`` for ``/schema/feature-store``, in this order.
        Scores are ``predict`` times ``factor``, plus the offset.

    Raises
    ------
    ValueError
        For a model that is not linear, scaling by query, missing or repeated names.

    References
    ----------
    Apache Solr reference guide, Learning To Rank; javadoc of ``LinearModel`` and ``StandardNormalizer``: weights are
    JSON numbers with a decimal point, the normalizers' parameters strings.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import to_solr
    >>> model = RankRLS(alpha=2.0).fit([[0.0, 1.0], [2.0, 1.0]], [0, 4])
    >>> to_solr(model, "toy", feature_names=["bm25_title", "is_new"]).json()["params"]
    {'weights': {'bm25_title': 1.0}}
    """
    made = engine_model(model, SOLR, feature_names, offset, target)
    if store is None and made.definitions is not None:
        store = name
    place = {} if store is None else {"store": store}
    features = []
    for term in made.terms:
        norm = _class("norm.StandardNormalizer", avg=repr(term.centre), std=repr(term.spread))
        scaled = (term.centre, term.spread) != (0.0, 1.0)
        features.append({"name": term.name, **({"norm": norm} if scaled else {})})
    weights = {term.name: term.weight for term in made.terms}
    head = {"class": f"{_SOLR}.model.LinearModel", "name": name, **place}
    definitions = None if made.definitions is None else [{**feature, **place} for feature in made.definitions]
    return made.exported({**head, "features": features, "params": {"weights": weights}}, definitions, made.notes)


def _class(kind: str, **params: Any) -> Values:
    return {"class": f"{_SOLR}.{kind}", "params": params}


def _function(text: str) -> Values:
    return _class("feature.SolrFeature", q="{!func}" + text)


def _solr_refuses(feature: EncodedFeature) -> str:
    if feature.kind in TEXT_WEIGHTS:
        return TEXT_WEIGHTS[feature.kind]
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", feature.column):
        return "not a valid field name in Solr"
    if feature.kind in ("age", "sine", "cosine") and re.match(r"NOW|.[0-9]", feature.column):
        return "Solr's function ms reads the name of this column as a date"
    return "${ marks a parameter in Solr" if "${" in feature.value else ""


def _solr_features(feature: EncodedFeature) -> list[Values]:
    """Solr's feature classes and function queries."""
    column = feature.column
    age = f"div(ms({instant(feature.origin)},{column}),86400000)"
    match feature.kind:
        case "number":
            return [_class("feature.FieldValueFeature", field=column, defaultValue=feature.fill)]
        case "age":
            known = f"if(exists({column}),{age},{feature.fill!r})"
            return [_function(f"max(0,{known})"), _function(f"max(0,sub(0,{known}))")]
        case "sine" | "cosine":
            wave = f"{feature.kind[:3]}(product({age},{2.0 * math.pi / feature.days!r}))"
            return [_function(f"if(exists({column}),sum(1,{wave}),1)")]
        case "missing" | "none":
            return [_class("feature.SolrFeature", fq=[f"-{column}:[* TO *]"])]
        case "matches":
            query = f"{{!simple qf={column} q.op=OR q.operators=''}}${{{QUERY_TEXT}}}"
            return [_class("feature.SolrFeature", q=query)]
    return [_class("feature.SolrFeature", fq=[f"{{!term f={column}}}{feature.value}"])]


def _solr_fields(held: Mapping[str, str]) -> Values:
    """Commands of Solr's Schema API, with the names of types that its default configuration has."""
    types = {"number": "pdouble", "date": "pdate", "category": "string", "boolean": "boolean", "words": WORDS}
    once = {"class": "solr.PatternReplaceCharFilterFactory", "pattern": _REPEATED, "replacement": ""}
    analyzer = {
        "tokenizer": {"class": "solr.PatternTokenizerFactory", "pattern": f"{LETTER}+", "group": "0"},
        "filters": [{"class": "solr.LowerCaseFilterFactory"}],
    }
    words = {
        "name": WORDS,
        "class": "solr.TextField",
        "indexAnalyzer": analyzer,
        "queryAnalyzer": {"charFilters": [once], **analyzer},
        "similarity": {"class": "solr.BooleanSimilarityFactory"},
    }
    fields = [{"name": name, "type": types[use], "docValues": use != "words"} for name, use in held.items()]
    return {**({"add-field-type": words} if "words" in held.values() else {}), "add-field": fields}


SOLR = Engine(
    "Solr",
    _class("feature.ValueFeature", value=1),
    {
        "": EVERY_FIELD,
        "number": "Numbers need Solr 8.9 or later, where FieldValueFeature has a defaultValue.",
        "category": "Fields of categories must be strings, numbers or booleans. Index the table's values, without "
        "blanks around them.",
        "age": "Ages are counted from {origin}, not from today. This does not change the ranking.",
        "matches": f"Send the query's text with each request: efi.{QUERY_TEXT}=$asked, and asked=red shoes. The field "
        f"{{column!r}} needs the type {WORDS} of fields.json, so that each matching word counts 1.",
        "word": f"The field {{column!r}} needs the type {WORDS} of fields.json: its words are those of the encoder.",
    },
    _solr_refuses,
    _solr_features,
    _solr_fields,
)
