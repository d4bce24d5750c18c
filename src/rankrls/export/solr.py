"""Solr's learning-to-rank module: ``org.apache.solr.ltr.model.LinearModel``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from rankrls.export._definitions import QUERY_TEXT, Engine, for_engine, instant
from rankrls.export._linear import OFFSET_FEATURE, Exported, json_text, linear_scorer
from rankrls.preprocessing import EncodedFeature

_PACKAGE = "org.apache.solr.ltr"


def to_solr(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    store: str | None = None,
    offset: float | None = None,
    target: int | None = None,
) -> Exported:
    """A linear model for Solr's learning-to-rank module.

    The score is ``sum_j weight_j norm_j(feature_j)`` in float32, where a StandardNormalizer is ``(x - avg) / std``.

    Parameters
    ----------
    model : fitted linear estimator of rankrls, or a Pipeline that ends in one
        Scalers before it may be scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler, and first
        of all there may be a TableEncoder.
    name : str, default="rankrls"
        The model's name in Solr.
    feature_names : sequence of str, optional
        The features' names in Solr's feature store, one a column. Those of the data frame by default.
    store : str, optional
        The feature store; Solr's default store if None.
    offset : float, optional
        A constant to add to every score, as the weight of a feature ``rankrls_offset`` that has to be defined as the
        constant 1 (see the notes of the result). See :func:`positive_offset`.
    target : int, optional
        Which target, for a model of several.

    Returns
    -------
    Exported
        JSON to upload to ``/schema/model-store``; of a model behind a TableEncoder also ``definitions``, JSON to upload
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
    scorer = linear_scorer(model, feature_names, target, offset)
    gapless = [f.column for f in scorer.encoded if f.kind == "number" and not f.gaps and f.fill]
    scorer, definitions, notes = for_engine(scorer, SOLR, offset)
    if gapless:
        listed = ", ".join(map(repr, gapless))
        notes.append(f"A document without {listed} counts as 0 there, as the filled value in predict.")
    if offset is not None and definitions is None:
        feature = json.dumps({"name": OFFSET_FEATURE, **SOLR.one})
        notes.append(f"Define {OFFSET_FEATURE} in the feature store: {feature}.")
    place = {} if store is None else {"store": store}
    features, weights = [], {}
    for feature, weight, centre, spread in scorer.rows():
        norm = _class("norm.StandardNormalizer", avg=repr(centre), std=repr(spread))
        features.append({"name": feature, **({} if (centre, spread) == (0.0, 1.0) else {"norm": norm})})
        weights[feature] = weight
    head = {"class": f"{_PACKAGE}.model.LinearModel", "name": name, **place}
    text = json_text({**head, "features": features, "params": {"weights": weights}})
    made = definitions and json_text([{"name": feature, **place, **made} for feature, made in definitions])
    return Exported("solr", text, tuple(notes), made)


def _class(kind: str, **params: Any) -> dict[str, Any]:
    return {"class": f"{_PACKAGE}.{kind}", "params": params}


def _function(text: str) -> dict[str, Any]:
    return _class("feature.SolrFeature", q="{!func}" + text)


def _refused(feature: EncodedFeature) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", feature.column):
        return "this is no name of a field there"
    return "${ stands for a parameter there" if "${" in feature.value else ""


def _define(feature: EncodedFeature) -> list[dict[str, Any]]:
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
            return [_class("feature.SolrFeature", q=f"{{!dismax qf={column} mm=0}}${{{QUERY_TEXT}}}")]
    return [_class("feature.SolrFeature", fq=[f"{{!term f={column}}}{feature.value}"])]


SOLR = Engine(
    "Solr",
    _class("feature.ValueFeature", value=1),
    {
        "": "The definitions name each field as the table names its column; numbers and dates need docValues.",
        "category": "Fields of categories are strings that are not analysed, with the cells' text as in the table.",
        "age": "Ages count from {origin}, not from today: this changes no order.",
        "matches": f"Give the query's text with each request, efi.{QUERY_TEXT}='red shoes'; the field {{column!r}} "
        "needs BooleanSimilarityFactory, by which each word of the query that it has counts 1.",
    },
    _refused,
    _define,
)
