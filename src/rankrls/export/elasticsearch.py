"""Linear models for Elasticsearch and OpenSearch: in their learning-to-rank plugins, and as a plain query."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankrls.export._engines import (
    EVERY_FIELD,
    LETTER,
    QUERY_TEXT,
    TEXT_WEIGHTS,
    WORDS,
    Engine,
    Term,
    conditions,
    engine_model,
    linear_model,
    uses,
)
from rankrls.export._model import Exported, json_text, refuse
from rankrls.preprocessing import EncodedFeature

_ALL: dict[str, Any] = {"match_all": {}}
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
    inner: dict[str, Any] = {"type": "model/linear", "definition": json.dumps(weights, ensure_ascii=False)}
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


def _rescoring(terms: Sequence[Term], constant: float, name: str) -> tuple[dict[str, Any], float]:
    """The function_score query of a sum of terms, and the sum of the weights of words.

    A script adds up most features. Filters find words; they cannot have negative weights, so the complement has a
    positive one. Queries count matching words.
    """
    features: list[dict[str, Any]] = []
    categories: dict[str, dict[str, float]] = {}
    words: list[dict[str, Any]] = []
    matches: list[dict[str, Any]] = []
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


def _template(query: dict[str, Any], *parameters: str) -> dict[str, Any]:
    return {"params": [*parameters], "template_language": "mustache", "template": query}


def _elasticsearch_refuses(feature: EncodedFeature) -> str:
    if feature.kind in TEXT_WEIGHTS:
        return TEXT_WEIGHTS[feature.kind]
    return "{{ marks a parameter in the engine" if "{{" in feature.value or "{{" in feature.column else ""


def _condition(feature: EncodedFeature) -> dict[str, Any]:
    """The filter of a feature that is 1 or 0."""
    if feature.kind in ("missing", "none"):
        return {"bool": {"must_not": [{"exists": {"field": feature.column}}]}}
    return {"term": {feature.column: feature.value}}


def _summand(feature: EncodedFeature, weight: float) -> dict[str, Any]:
    """A number, a date or a missing cell for the script that adds them up."""
    kind = "missing" if feature.kind == "none" else feature.kind
    fill = {"number": feature.fill, "age": feature.fill, "missing": 1.0}.get(kind, 0.0)
    date = {"origin": round(feature.origin * 86_400_000)} if kind in ("age", "sine", "cosine") else {}
    wave = {"angle": 2.0 * math.pi / feature.days} if feature.days else {}
    return {"kind": kind, "field": feature.column, "weight": weight, "fill": fill, **date, **wave}


def _script(constant: float, features: list[dict[str, Any]]) -> dict[str, Any]:
    """A constant and features that a script adds up; a negative sum counts as 0."""
    params = {"constant": constant, "features": features}
    return {"script_score": {"script": {"lang": "painless", "source": _SUM, "params": params}}}


def _elasticsearch_queries(feature: EncodedFeature) -> list[dict[str, Any]]:
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


def _elasticsearch_fields(held: Mapping[str, str]) -> dict[str, Any]:
    """The body that creates an index."""
    types = {"number": "double", "date": "date", "category": "keyword", "boolean": "boolean", "words": "text"}
    words = {"analyzer": WORDS, "search_analyzer": _QUERY_WORDS, "similarity": "boolean"}
    properties = {name: {"type": types[use], **(words if use == "words" else {})} for name, use in held.items()}
    body: dict[str, Any] = {"mappings": {"properties": properties}}
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
