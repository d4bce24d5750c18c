"""Items ranked by a model."""

from __future__ import annotations

from typing import Any

from rankrls.models._pipelines import item_scores
from rankrls.ranking import Ranking, rank_scores


def rank_items(
    model: Any, X: Any, *, qid: Any = None, k: int | None = None, docno: Any = None, target: int | None = None
) -> Ranking:
    """Rank items by a model inside each query, and keep the best k.

    Parameters
    ----------
    model : fitted estimator of rankrls, or a Pipeline that ends in one
        Scalers of :mod:`rankrls.preprocessing` that work inside queries are given ``qid``.
    X : as for ``predict``
    qid : array-like of shape (m,), optional
        One query id per row. None ranks all items together, which a model fitted with qid refuses.
    k : int, optional
        How many items of each query to keep. All by default.
    docno : array-like of shape (m,), optional
        Document ids, which then decide between equal scores as in trec_eval: the greater id first. Without them equal
        scores stand in row order.
    target : int, optional
        Which target, of a model of several.

    Returns
    -------
    Ranking
        Row numbers best first, their positions and scores.

    See Also
    --------
    rankrls.RankRLS.rank : each row's position, in the order of the rows.
    rank_scores : the same for scores from anywhere.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.inspection import rank_items
    >>> X, qid = [[1.0], [3.0], [2.0], [5.0], [4.0]], ["a", "a", "a", "b", "b"]
    >>> model = RankRLS().fit(X, [0, 2, 1, 1, 0], qid=qid)
    >>> best = rank_items(model, X, qid=qid, k=1)
    >>> best.rows.tolist(), best.qid.tolist()
    ([1, 3], ['a', 'b'])
    """
    return rank_scores(item_scores(model, X, qid, "rank_items", target), qid=qid, k=k, docno=docno)
