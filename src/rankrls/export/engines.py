"""Linear models in search engines: Solr, and the learning-to-rank plugins of Elasticsearch and OpenSearch."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from rankrls.export._linear import Engine, Exported, instant, json_text, linear_model
from rankrls.preprocessing import EncodedFeature

_SOLR = "org.apache.solr.ltr"
_QUERY_TEXT = "query_text"
"""The parameter of the definitions that takes the text of the query."""
_MS = 86_400_000  # of a day
_ALL: dict[str, Any] = {"match_all": {}}


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
        The model's name in Solr.
    feature_names : sequence of str, optional
        The features' names in Solr's feature store, one per column. By default those of the data frame.
    store : str, optional
        The feature store; Solr's default store if None.
    offset : float, optional
        A constant to add to every score, as the weight of a feature ``rankrls_offset`` that must be defined as the
        constant 1 (see the notes of the result). See :func:`positive_offset`.
    target : int, optional
        Which target, for a model of several.

    Returns
    -------
    Exported
        JSON to upload to ``/schema/model-store``; for a model with a TableEncoder also ``definitions``, JSON to upload
        to ``/schema/feature-store`` first.

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
    rows, definitions, notes = linear_model(model, SOLR, feature_names, target, offset)
    place = {} if store is None else {"store": store}
    features, weights = [], {}
    for feature, weight, centre, spread in rows:
        norm = _class("norm.StandardNormalizer", avg=repr(centre), std=repr(spread))
        features.append({"name": feature, **({} if (centre, spread) == (0.0, 1.0) else {"norm": norm})})
        weights[feature] = weight
    head = {"class": f"{_SOLR}.model.LinearModel", "name": name, **place}
    text = json_text({**head, "features": features, "params": {"weights": weights}})
    made = None if definitions is None else json_text([{**feature, **place} for feature in definitions])
    return Exported(text, tuple(notes), made)


def _class(kind: str, **params: Any) -> dict[str, Any]:
    return {"class": f"{_SOLR}.{kind}", "params": params}


def _function(text: str) -> dict[str, Any]:
    return _class("feature.SolrFeature", q="{!func}" + text)


def _solr_refuses(feature: EncodedFeature) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", feature.column):
        return "not a valid field name in Solr"
    return "${ marks a parameter in Solr" if "${" in feature.value else ""


def _solr_features(feature: EncodedFeature) -> list[dict[str, Any]]:
    """Solr's feature classes and function queries."""
    column, fill = feature.column, repr(feature.fill)
    age = f"div(ms({instant(feature.origin)},{column}),86400000)"
    match feature.kind:
        case "number" if not feature.gaps:
            return [_class("feature.FieldValueFeature", field=column)]
        case "number" | "age":
            known = f"def({column},{fill})" if feature.kind == "number" else f"if(exists({column}),{age},{fill})"
            return [_function(f"max(0,{known})"), _function(f"max(0,sub(0,{known}))")]
        case "sine" | "cosine":
            wave = f"{feature.kind[:3]}(product({age},{2.0 * math.pi / feature.days!r}))"
            return [_function(f"if(exists({column}),sum(1,{wave}),1)")]
        case "missing" | "none":
            return [_function(f"if(exists({column}),0,1)")]
        case "matches":
            return [_class("feature.SolrFeature", q=f"{{!dismax qf={column} mm=0}}${{{_QUERY_TEXT}}}")]
    return [_class("feature.SolrFeature", fq=[f"{{!term f={column}}}{feature.value}"])]


SOLR = Engine(
    "Solr",
    _class("feature.ValueFeature", value=1),
    {
        "": "Each field must have the name of its column. Fields of numbers and dates need docValues.",
        "number": "If no training row lacks a number, a document without it counts as 0, but predict imputes it.",
        "category": "Fields of categories must be strings that are not analysed, with the same text as in the table.",
        "age": "Ages are counted from {origin}, not from today. This does not change the ranking.",
        "matches": f"Send the query's text with each request, efi.{_QUERY_TEXT}='red shoes'. The field {{column!r}} "
        "needs BooleanSimilarityFactory, so that each matching word counts 1.",
    },
    _solr_refuses,
    _solr_features,
)


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
        The model's name in the engine.
    feature_names : sequence of str, optional
        The features' names in the feature set, one per column. By default those of the data frame.
    offset : float, optional
        A constant to add to every score, because the engine refuses negative ones: as the weight of a feature
        ``rankrls_offset`` that must be defined as the constant 1 (see the notes of the result). See
        :func:`positive_offset`.
    target : int, optional
        Which target, for a model of several.

    Returns
    -------
    Exported
        JSON to post to ``_ltr/_featureset/<feature set>/_createmodel``; for a model with a TableEncoder also
        ``definitions``, JSON to post to ``_ltr/_featureset/<feature set>`` first.

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
    rows, made, notes = linear_model(model, ELASTICSEARCH, feature_names, target, offset)
    notes = ["A feature of the feature set that the model does not name silently has weight 0.", *notes]
    if offset is None:
        notes.append("The engine needs scores of at least 0. Add an offset to make them positive.")
    weights, normalizers = {}, {}
    for feature, weight, centre, spread in rows:
        weights[feature] = weight
        if (centre, spread) != (0.0, 1.0):
            normalizers[feature] = {"standard": {"mean": centre, "standard_deviation": spread}}
    inner: dict[str, Any] = {"type": "model/linear", "definition": json.dumps(weights, ensure_ascii=False)}
    if normalizers:
        inner["feature_normalizers"] = normalizers
    text = json_text({"model": {"name": name, "model": inner}})
    return Exported(text, tuple(notes), None if made is None else json_text({"featureset": {"features": made}}))


to_opensearch = to_elasticsearch


def _query(template: dict[str, Any], *parameters: str) -> dict[str, Any]:
    return {"params": [*parameters], "template_language": "mustache", "template": template}


def _filter(condition: dict[str, Any]) -> dict[str, Any]:
    return _query({"constant_score": {"filter": condition}})


def _script(feature: EncodedFeature, source: str) -> dict[str, Any]:
    params = {"field": feature.column, "fill": feature.fill, "origin": round(feature.origin * _MS)}
    script = {"lang": "painless", "source": source, "params": params}
    return _query({"function_score": {"query": _ALL, "script_score": {"script": script}}})


def _elasticsearch_refuses(feature: EncodedFeature) -> str:
    return "{{ marks a parameter in the engine" if "{{" in feature.value or "{{" in feature.column else ""


def _elasticsearch_queries(feature: EncodedFeature) -> list[dict[str, Any]]:
    """Queries whose scores are features, with Painless scripts."""
    column = feature.column
    age = f"(params.origin - doc[params.field].value.toInstant().toEpochMilli()) / {_MS}.0"
    match feature.kind:
        case "number" if feature.least >= 0.0:
            factor = {"field": column, "missing": feature.fill}
            return [_query({"function_score": {"query": _ALL, "field_value_factor": factor}})]
        case "number" | "age":
            known = "doc[params.field].value" if feature.kind == "number" else age
            known = f"doc[params.field].size() == 0 ? params.fill : {known}"
            return [_script(feature, f"Math.max(0.0, {value})") for value in (known, f"-({known})")]
        case "sine" | "cosine":
            wave = f"1.0 + Math.{feature.kind[:3]}({2.0 * math.pi / feature.days!r} * ({age}))"
            return [_script(feature, f"doc[params.field].size() == 0 ? 1.0 : {wave}")]
        case "missing" | "none":
            return [_filter({"bool": {"must_not": {"exists": {"field": column}}}})]
        case "matches":
            return [_query({"match": {column: f"{{{{{_QUERY_TEXT}}}}}"}}, _QUERY_TEXT)]
    return [_filter({"term": {column: feature.value}})]


ELASTICSEARCH = Engine(
    "Elasticsearch",
    _query(_ALL),
    {
        "": "Each field must have the name of its column.",
        "category": "Fields of categories must have the type keyword, with the same text as in the table.",
        "age": "Ages are counted from {origin}, not from today. This does not change the ranking.",
        "matches": f"Send the query's text with each request, as the parameter {_QUERY_TEXT}. The field {{column!r}} "
        'needs "similarity": "boolean", so that each matching word counts 1.',
    },
    _elasticsearch_refuses,
    _elasticsearch_queries,
)
