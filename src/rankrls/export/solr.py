"""Solr's learning-to-rank module: ``org.apache.solr.ltr.model.LinearModel``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankrls.export._exported import Exported, json_text
from rankrls.export._linear import OFFSET_FEATURE, LinearScorer, linear_scorer

__all__ = ["to_solr"]

_PACKAGE = "org.apache.solr.ltr"


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
        Scalers before it may be scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler.
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
        JSON to upload to ``/schema/model-store``.

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
    notes = list(scorer.notes())
    if offset is not None:
        scorer = scorer.with_offset_feature()
        notes.append(
            f"Define {OFFSET_FEATURE} in the feature store: "
            f'{{"name": "{OFFSET_FEATURE}", "class": "{_PACKAGE}.feature.ValueFeature", "params": {{"value": 1}}}}.'
        )
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
    return Exported("solr", json_text(value), tuple(notes))


def _normalizer(scorer: LinearScorer, j: int) -> dict[str, Any]:
    if not scorer.scaled[j]:
        return {}
    centre, spread = float(scorer.centres[j]), float(scorer.spreads[j])
    kind, params = "StandardNormalizer", {"avg": repr(centre), "std": repr(spread)}
    if scorer.unit_range:
        kind, params = "MinMaxNormalizer", {"min": repr(centre), "max": repr(centre + spread)}
    return {"norm": {"class": f"{_PACKAGE}.norm.{kind}", "params": params}}
