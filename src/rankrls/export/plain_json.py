"""Plain JSON, for programs that compute the sum themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankrls.export._definitions import Defined, defined
from rankrls.export._exported import Exported, json_text
from rankrls.export._linear import linear_scorer

_TFIDF = ("similarity", "tfidf")


def to_json(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    scaler: str = "beside",
    offset: float | None = None,
    target: int | None = None,
) -> Exported:
    """A linear model as plain JSON: ``score = constant + sum_j weight_j (x_j - centre_j) / spread_j``.

    Parameters
    ----------
    model : fitted linear estimator of rankrls, or a Pipeline that ends in one
        Scalers before it may be scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler, and first
        of all there may be a TableEncoder: "of" then says what a feature is made of, as
        :class:`~rankrls.preprocessing.EncodedFeature` does.
    name : str, default="rankrls"
    feature_names : sequence of str, optional
        One a column; those of the data frame by default.
    scaler : {"beside", "fold"}, default="beside"
        Scales as centres and spreads, or folded into the weights and the constant.
    offset : float, optional
        A constant to add to every score.
    target : int, optional
        Which target, for a model of several.

    Returns
    -------
    Exported
        JSON; the numbers are float64 and read back the same.

    Raises
    ------
    ValueError
        For a model that is not linear, scaling by query, missing or repeated names.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import to_json
    >>> model = RankRLS(alpha=2.0).fit([[0.0], [2.0]], [0, 4])
    >>> to_json(model, "toy", feature_names=["length"]).json()["features"]
    [{'name': 'length', 'weight': 1.0, 'centre': 0.0, 'spread': 1.0}]
    """
    scorer = linear_scorer(model, feature_names, target, scaler, offset)
    if scorer.encoded:  # of what cannot travel nothing is written
        defined(scorer, "Plain JSON", lambda f: "its words are not written" if f.kind in _TFIDF else Defined([]))
    made_of = [{}] * len(scorer.names) if not scorer.encoded else [{"of": vars(each)} for each in scorer.encoded]
    rows = zip(scorer.names, scorer.weights, scorer.centres, scorer.spreads, strict=True)
    value = {
        "name": name,
        "type": "linear",
        "score": "constant + sum of weight * (value - centre) / spread",
        "constant": scorer.constant,
        "features": [
            {"name": feature, "weight": float(w), "centre": float(c), "spread": float(s), **of}
            for (feature, w, c, s), of in zip(rows, made_of, strict=True)
        ],
    }
    return Exported("json", json_text(value), scorer.notes()[1:])
