"""The learning-to-rank plugins of Elasticsearch and OpenSearch: ``model/linear``."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rankrls.export._definitions import QUERY_TEXT, Engine, for_engine
from rankrls.export._linear import OFFSET_FEATURE, Exported, json_text, linear_scorer
from rankrls.preprocessing import EncodedFeature

_MS = 86_400_000  # of a day
_ALL: dict[str, Any] = {"match_all": {}}


def to_elasticsearch(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    offset: float | None = None,
    target: int | None = None,
) -> Exported:
    """A linear model for the learning-to-rank plugin of Elasticsearch.

    The score is ``sum_j weight_j norm_j(feature_j)`` in float32, where a standard normalizer is ``(x - mean) /
    standard_deviation``. A feature whose query does not match a document has the value 0 there, before it is
    normalized.

    Parameters
    ----------
    model : fitted linear estimator of rankrls, or a Pipeline that ends in one
        Scalers before it may be scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler, and first
        of all there may be a TableEncoder.
    name : str, default="rankrls"
        The model's name in Elasticsearch.
    feature_names : sequence of str, optional
        The features' names in the feature set, one a column. Those of the data frame by default.
    offset : float, optional
        A constant to add to every score, because Elasticsearch refuses negative ones: as the weight of a feature
        ``rankrls_offset`` that has to be defined as the constant 1 (see the notes of the result). See
        :func:`positive_offset`.
    target : int, optional
        Which target, for a model of several.

    Returns
    -------
    Exported
        JSON to post to ``_ltr/_featureset/<feature set>/_createmodel``; of a model behind a TableEncoder also
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
    scorer = linear_scorer(model, feature_names, target, offset)
    scorer, definitions, notes = for_engine(scorer, ELASTICSEARCH, offset)
    notes.append("A feature of the feature set that the model does not name silently has weight 0.")
    if offset is None:
        notes.append("Scores must not be negative there: an offset makes them positive.")
    elif definitions is None:
        template = json.dumps({"name": OFFSET_FEATURE, "params": [], "template": _ALL})
        notes.append(f"Define {OFFSET_FEATURE} in the feature set: {template}.")
    weights, normalizers = {}, {}
    for feature, weight, centre, spread in scorer.rows():
        weights[feature] = weight
        if (centre, spread) != (0.0, 1.0):
            normalizers[feature] = {"standard": {"mean": centre, "standard_deviation": spread}}
    inner: dict[str, Any] = {"type": "model/linear", "definition": json.dumps(weights, ensure_ascii=False)}
    if normalizers:
        inner["feature_normalizers"] = normalizers
    text = json_text({"model": {"name": name, "model": inner}})
    if definitions is None:
        return Exported("elasticsearch", text, tuple(notes))
    features = [
        {
            "name": feature,
            "params": [QUERY_TEXT] if "match" in template else [],
            "template_language": "mustache",
            "template": template,
        }
        for feature, template in definitions
    ]
    return Exported("elasticsearch", text, tuple(notes), json_text({"featureset": {"features": features}}))


def to_opensearch(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    offset: float | None = None,
    target: int | None = None,
) -> Exported:
    """A linear model for the learning-to-rank plugin of OpenSearch, whose format is that of Elasticsearch's.

    Parameters
    ----------
    model, name, feature_names, offset, target : as for :func:`to_elasticsearch`

    Returns
    -------
    Exported
        JSON to post to ``_ltr/_featureset/<feature set>/_createmodel``.

    Raises
    ------
    ValueError
        As :func:`to_elasticsearch`.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import to_opensearch
    >>> model = RankRLS(alpha=2.0).fit([[0.0], [2.0]], [0, 4])
    >>> to_opensearch(model, "toy", feature_names=["bm25_title"], offset=3).notes[-1]
    'Define rankrls_offset in the feature set: {"name": "rankrls_offset", "params": [], "template": {"match_all": {}}}.'
    """
    same = to_elasticsearch(model, name, feature_names=feature_names, offset=offset, target=target)
    return replace(same, format="opensearch")


def _script(feature: EncodedFeature, source: str) -> dict[str, Any]:
    given = {"field": feature.column, "fill": feature.fill, "origin": round(feature.origin * _MS)}
    used = {name: value for name, value in given.items() if f"params.{name}" in source}
    script = {"lang": "painless", "source": source, "params": used}
    return {"function_score": {"query": _ALL, "script_score": {"script": script}}}


def _refused(feature: EncodedFeature) -> str:
    return "{{ stands for a parameter there" if "{{" in feature.value or "{{" in feature.column else ""


def _define(feature: EncodedFeature) -> list[dict[str, Any]]:
    """Queries whose scores are features, with Painless scripts."""
    column = feature.column
    age = f"(params.origin - doc[params.field].value.toInstant().toEpochMilli()) / {_MS}.0"
    match feature.kind:
        case "number" if feature.least >= 0.0:
            factor = {"field": column, "missing": feature.fill}
            return [{"function_score": {"query": _ALL, "field_value_factor": factor}}]
        case "number" | "age":
            known = "doc[params.field].value" if feature.kind == "number" else age
            known = f"doc[params.field].size() == 0 ? params.fill : {known}"
            return [_script(feature, f"Math.max(0.0, {value})") for value in (known, f"-({known})")]
        case "sine" | "cosine":
            wave = f"1.0 + Math.{feature.kind[:3]}({2.0 * math.pi / feature.days!r} * ({age}))"
            return [_script(feature, f"doc[params.field].size() == 0 ? 1.0 : {wave}")]
        case "missing" | "none":
            return [{"constant_score": {"filter": {"bool": {"must_not": {"exists": {"field": column}}}}}}]
        case "matches":
            return [{"match": {column: f"{{{{{QUERY_TEXT}}}}}"}}]
    return [{"constant_score": {"filter": {"term": {column: feature.value}}}}]


ELASTICSEARCH = Engine(
    "Elasticsearch",
    _ALL,
    {
        "": "The definitions name each field as the table names its column.",
        "category": "Fields of categories are of type keyword, with the cells' text as it is in the table.",
        "age": "Ages count from {origin}, not from today: this changes no order.",
        "matches": f"Give the query's text with each request, as the parameter {QUERY_TEXT}; the field {{column!r}} "
        'needs "similarity": "boolean", by which each word of the query that it has counts 1.',
    },
    _refused,
    _define,
)
