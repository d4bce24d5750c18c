"""Solr's learning-to-rank module: ``org.apache.solr.ltr.model.LinearModel``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from rankrls.export._definitions import AGES, QUERY_TEXT, Defined, Part, conditions, instant, split_by_sign, with_offset
from rankrls.export._exported import Exported, json_text
from rankrls.export._linear import OFFSET_FEATURE, LinearScorer, linear_scorer
from rankrls.preprocessing import EncodedFeature

_PACKAGE = "org.apache.solr.ltr"
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def to_solr(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    store: str | None = None,
    scaler: str = "beside",
    offset: float | None = None,
    target: int | None = None,
) -> Exported:
    """A linear model for Solr's learning-to-rank module.

    The score is ``sum_j weight_j norm_j(feature_j)`` in float32, where a StandardNormalizer is ``(x - avg) / std`` and
    a MinMaxNormalizer ``(x - min) / (max - min)``.

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
    scaler : {"beside", "fold"}, default="beside"
        Scales as Solr's normalizers, or folded into the weights. Folded scores differ from ``predict`` by a constant,
        and lose digits in float32 if a feature's mean is much larger than its spread.
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
        For a model that is not linear, scaling by query, missing or repeated names, numbers beyond float32.

    References
    ----------
    Apache Solr reference guide, Learning To Rank; javadoc of ``LinearModel``, ``StandardNormalizer`` and
    ``MinMaxNormalizer``: weights are JSON numbers with a decimal point, the normalizers' parameters strings.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import to_solr
    >>> model = RankRLS(alpha=2.0).fit([[0.0, 1.0], [2.0, 1.0]], [0, 4])
    >>> print(to_solr(model, "toy", feature_names=["bm25_title", "is_new"]).content)
    {
      "class": "org.apache.solr.ltr.model.LinearModel",
      "name": "toy",
      "features": [
        {
          "name": "bm25_title"
        }
      ],
      "params": {
        "weights": {
          "bm25_title": 1.0
        }
      }
    }
    <BLANKLINE>
    """
    scorer = linear_scorer(model, feature_names, target, scaler, offset)
    notes = [*scorer.notes(), *conditions(scorer.encoded, _CONDITIONS)]
    if gapless := [f.column for f in scorer.encoded if f.kind == "number" and not f.gaps and f.fill]:
        notes.append(
            f"A document without {', '.join(map(repr, gapless))} counts as 0 there, and as the filled value in "
            "predict: no training row lacked it."
        )
    one = _feature("ValueFeature", value=1)
    scorer, definitions = with_offset(scorer, "Solr", _defined, offset, one)
    if offset is not None and definitions is None:
        notes.append(f"Define {OFFSET_FEATURE} in the feature store: {json.dumps({'name': OFFSET_FEATURE, **one})}.")
    elif scorer.constant != 0.0:
        notes.append(
            f"Solr's linear model has no intercept: its scores are those of predict {-scorer.constant:+.6g}, which "
            "changes no order."
        )
    features = [{"name": feature, **_normalizer(scorer, j)} for j, feature in enumerate(scorer.names)]
    value: dict[str, Any] = {"class": f"{_PACKAGE}.model.LinearModel", "name": name}
    if store is not None:
        value["store"] = store
    value |= {"features": features, "params": {"weights": scorer.weight_of()}}
    if definitions is None:
        return Exported("solr", json_text(value), tuple(notes))
    place = {} if store is None else {"store": store}
    store_text = json_text([{"name": feature, **place, **definition} for feature, definition in definitions])
    return Exported("solr", json_text(value), tuple(notes), store_text)


def _feature(kind: str, **params: Any) -> dict[str, Any]:
    return {"class": f"{_PACKAGE}.feature.{kind}", "params": params}


def _defined(feature: EncodedFeature) -> Defined | str:
    """A feature by Solr's feature classes and function queries. Scores of queries are never negative there."""
    column, fill = feature.column, f"{feature.fill!r}"
    query = lambda text: _feature("SolrFeature", q=text)
    function = lambda text: query("{!func}" + text)
    age = f"div(ms({instant(feature.origin)},{column}),86400000)"
    if not _FIELD.fullmatch(column):
        return "this is no name of a field there"
    if "${" in feature.value:
        return "${ stands for a parameter there"
    if feature.kind == "number" and not feature.gaps:
        return Defined([Part(_feature("FieldValueFeature", field=column))])
    if feature.kind in ("number", "age"):
        known = f"def({column},{fill})" if feature.kind == "number" else f"if(exists({column}),{age},{fill})"
        return split_by_sign(function, feature, f"max(0,{known})", f"max(0,sub(0,{known}))")
    if feature.kind in ("sine", "cosine"):
        wave = f"{feature.kind[:3]}(product({age},{2.0 * math.pi / feature.days!r}))"
        return Defined([Part(function(f"if(exists({column}),sum(1,{wave}),1)"))], -1.0)
    if feature.kind in ("missing", "none"):
        return Defined([Part(function(f"if(exists({column}),0,1)"))])
    if feature.kind in ("category", "word"):
        return Defined([Part(_feature("SolrFeature", fq=[f"{{!term f={column}}}{feature.value}"]))])
    if feature.kind == "matches":
        return Defined([Part(query(f"{{!dismax qf={column} mm=0}}${{{QUERY_TEXT}}}"))])
    return "a list's numbers are not seen there" if feature.kind == "element" else "TF-IDF is computed otherwise there"


_CONDITIONS = {
    "": "The definitions name each field as the table names its column; numbers and dates need docValues.",
    "category": "Fields of categories are strings that are not analysed, with the cells' text as it is in the table.",
    "age": AGES,
    "matches": f"Give the query's text with each request, efi.{QUERY_TEXT}='red shoes'; the field {{column!r}} needs "
    "BooleanSimilarityFactory, by which each word of the query that it has counts 1.",
}


def _normalizer(scorer: LinearScorer, j: int) -> dict[str, Any]:
    if not scorer.scaled[j]:
        return {}
    centre, spread = float(scorer.centres[j]), float(scorer.spreads[j])
    kind, params = "StandardNormalizer", {"avg": repr(centre), "std": repr(spread)}
    if scorer.unit_range:
        kind, params = "MinMaxNormalizer", {"min": repr(centre), "max": repr(centre + spread)}
    return {"norm": {"class": f"{_PACKAGE}.norm.{kind}", "params": params}}
