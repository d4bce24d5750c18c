"""Solr's learning-to-rank module: ``org.apache.solr.ltr.model.LinearModel``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rankrls.export._definitions import AGES, QUERY_TEXT, for_engine, instant
from rankrls.export._linear import OFFSET_FEATURE, Exported, LinearScorer, json_text, linear_scorer
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
    Apache Solr reference guide, Learning To Rank; javadoc of ``LinearModel``, ``StandardNormalizer`` and
    ``MinMaxNormalizer``: weights are JSON numbers with a decimal point, the normalizers' parameters strings.

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
    scorer, definitions, notes = for_engine(scorer, Solr(), offset)
    if gapless:
        listed = ", ".join(map(repr, gapless))
        notes.append(f"A document without {listed} counts as 0 there, as the filled value in predict.")
    if offset is not None and definitions is None:
        feature = json.dumps({"name": OFFSET_FEATURE, **Solr.one})
        notes.append(f"Define {OFFSET_FEATURE} in the feature store: {feature}.")
    place = {} if store is None else {"store": store}
    features = [{"name": feature, **_normalizer(scorer, j)} for j, feature in enumerate(scorer.names)]
    head = {"class": f"{_PACKAGE}.model.LinearModel", "name": name, **place}
    text = json_text({**head, "features": features, "params": {"weights": scorer.weight_of()}})
    if definitions is None:
        return Exported("solr", text, tuple(notes))
    made = json_text([{"name": feature, **place, **definition} for feature, definition in definitions])
    return Exported("solr", text, tuple(notes), made)


def _normalizer(scorer: LinearScorer, j: int) -> dict[str, Any]:
    if not scorer.scaled[j]:
        return {}
    centre, spread = float(scorer.centres[j]), float(scorer.spreads[j])
    kind, params = "StandardNormalizer", {"avg": repr(centre), "std": repr(spread)}
    if scorer.unit_range:
        kind, params = "MinMaxNormalizer", {"min": repr(centre), "max": repr(centre + spread)}
    return {"norm": {"class": f"{_PACKAGE}.norm.{kind}", "params": params}}


def _feature(kind: str, **params: Any) -> dict[str, Any]:
    return {"class": f"{_PACKAGE}.feature.{kind}", "params": params}


def _function(text: str) -> dict[str, Any]:
    return _feature("SolrFeature", q="{!func}" + text)


class Solr:
    """Solr's feature classes and function queries."""

    name = "Solr"
    one = _feature("ValueFeature", value=1)
    conditions: ClassVar[Mapping[str, str]] = {
        "": "The definitions name each field as the table names its column; numbers and dates need docValues.",
        "category": "Fields of categories are strings that are not analysed, with the cells' text as in the table.",
        "age": AGES,
        "matches": f"Give the query's text with each request, efi.{QUERY_TEXT}='red shoes'; the field {{column!r}} "
        "needs BooleanSimilarityFactory, by which each word of the query that it has counts 1.",
    }

    def refused(self, feature: EncodedFeature) -> str:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", feature.column):
            return "this is no name of a field there"
        return "${ stands for a parameter there" if "${" in feature.value else ""

    def field(self, feature: EncodedFeature) -> Any:
        return None if feature.gaps else _feature("FieldValueFeature", field=feature.column)

    def positive(self, feature: EncodedFeature, sign: int) -> Any:
        column, fill = feature.column, f"{feature.fill!r}"
        known = f"def({column},{fill})"
        if feature.kind == "age":
            known = f"if(exists({column}),{self._age(feature)},{fill})"
        return _function(f"max(0,{known if sign > 0 else f'sub(0,{known})'})")

    def wave(self, feature: EncodedFeature) -> Any:
        wave = f"{feature.kind[:3]}(product({self._age(feature)},{2.0 * math.pi / feature.days!r}))"
        return _function(f"if(exists({feature.column}),sum(1,{wave}),1)")

    def absent(self, feature: EncodedFeature) -> Any:
        return _function(f"if(exists({feature.column}),0,1)")

    def term(self, feature: EncodedFeature) -> Any:
        return _feature("SolrFeature", fq=[f"{{!term f={feature.column}}}{feature.value}"])

    def matches(self, feature: EncodedFeature) -> Any:
        return _feature("SolrFeature", q=f"{{!dismax qf={feature.column} mm=0}}${{{QUERY_TEXT}}}")

    def _age(self, feature: EncodedFeature) -> str:
        return f"div(ms({instant(feature.origin)},{feature.column}),86400000)"
