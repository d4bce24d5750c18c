"""Linear models for Solr's learning-to-rank module."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rankrls.export._engines import EVERY_FIELD, LETTER, QUERY_TEXT, TEXT_WEIGHTS, WORDS, Engine, engine_model, instant
from rankrls.export._model import Exported
from rankrls.preprocessing import EncodedFeature

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


def _class(kind: str, **params: Any) -> dict[str, Any]:
    return {"class": f"{_SOLR}.{kind}", "params": params}


def _function(text: str) -> dict[str, Any]:
    return _class("feature.SolrFeature", q="{!func}" + text)


def _solr_refuses(feature: EncodedFeature) -> str:
    if feature.kind in TEXT_WEIGHTS:
        return TEXT_WEIGHTS[feature.kind]
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", feature.column):
        return "not a valid field name in Solr"
    if feature.kind in ("age", "sine", "cosine") and re.match(r"NOW|.[0-9]", feature.column):
        return "Solr's function ms reads the name of this column as a date"
    return "${ marks a parameter in Solr" if "${" in feature.value else ""


def _solr_features(feature: EncodedFeature) -> list[dict[str, Any]]:
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


def _solr_fields(held: Mapping[str, str]) -> dict[str, Any]:
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
