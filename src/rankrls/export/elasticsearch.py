"""The learning-to-rank plugins of Elasticsearch and OpenSearch: ``model/linear``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rankrls.export._exported import Exported, json_text
from rankrls.export._linear import OFFSET_FEATURE, LinearScorer, linear_scorer

__all__ = ["to_elasticsearch", "to_opensearch"]


def to_elasticsearch(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    scaler: str = "beside",
    offset: float | None = None,
    target: int | None = None,
) -> Exported:
    """A linear model for the learning-to-rank plugin of Elasticsearch.

    The score is ``sum_j weight_j norm_j(feature_j)`` in float32, where a standard normalizer is ``(x - mean) /
    standard_deviation`` and a min-max one ``(x - minimum) / (maximum - minimum)``. A feature whose query does not match
    a document has the value 0 there, before it is normalized.

    Parameters
    ----------
    model : fitted linear estimator of rankrls, or a Pipeline that ends in one
        Scalers before it may be scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler.
    name : str, default="rankrls"
        The model's name in Elasticsearch.
    feature_names : sequence of str, optional
        The features' names in the feature set, one a column. Those of the data frame by default.
    scaler : {"beside", "fold"}, default="beside"
        Scales as ``feature_normalizers``, or folded into the weights. Folded scores differ from ``predict`` by a
        constant, and lose digits in float32 if a feature's mean is much larger than its spread.
    offset : float, optional
        A constant to add to every score, because Elasticsearch refuses negative ones: as the weight of a feature
        ``rankrls_offset`` that has to be defined as the constant 1 (see the notes of the result). See
        :func:`positive_offset`.
    target : int, optional
        Which target, for a model of several.

    Returns
    -------
    Exported
        JSON to post to ``_ltr/_featureset/<feature set>/_createmodel``.

    Raises
    ------
    ValueError
        For a model that is not linear, scaling by query, missing or repeated names, numbers beyond float32.

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
    scorer = linear_scorer(model, feature_names, target, scaler, offset)
    notes = [
        *scorer.notes(),
        "A feature of the feature set that the model does not name silently has weight 0; a feature whose query does "
        "not match a document has the value 0.",
    ]
    if offset is not None:
        scorer = scorer.with_offset_feature()
        notes.append(
            f"Define {OFFSET_FEATURE} in the feature set: "
            f'{{"name": "{OFFSET_FEATURE}", "params": [], "template": {{"match_all": {{}}}}}}.'
        )
    else:
        shift = f" Its scores are those of predict {-scorer.constant:+.6g}." if scorer.constant else ""
        notes.append(
            "The engine's linear model has no intercept, and its scores must not be negative: an offset makes them "
            f"positive.{shift}"
        )
    inner: dict[str, Any] = {"type": "model/linear", "definition": json.dumps(scorer.weight_of(), ensure_ascii=False)}
    normalizers = {feature: _normalizer(scorer, j) for j, feature in enumerate(scorer.names) if scorer.scaled[j]}
    if normalizers:
        inner["feature_normalizers"] = normalizers
    return Exported("elasticsearch", json_text({"model": {"name": name, "model": inner}}), tuple(notes))


def to_opensearch(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    scaler: str = "beside",
    offset: float | None = None,
    target: int | None = None,
) -> Exported:
    """A linear model for the learning-to-rank plugin of OpenSearch, whose format is that of Elasticsearch's.

    Parameters
    ----------
    model, name, feature_names, scaler, offset, target : as for :func:`to_elasticsearch`

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
    same = to_elasticsearch(model, name, feature_names=feature_names, scaler=scaler, offset=offset, target=target)
    return replace(same, format="opensearch")


def _normalizer(scorer: LinearScorer, j: int) -> dict[str, Any]:
    centre, spread = float(scorer.centres[j]), float(scorer.spreads[j])
    if scorer.unit_range:
        return {"min_max": {"minimum": centre, "maximum": centre + spread}}
    return {"standard": {"mean": centre, "standard_deviation": spread}}
