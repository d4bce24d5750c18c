"""Conversion of scores to positions and ranked lists, with the order of tied items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankrls._checks import check_count, check_finite, numbers_of, vector_of
from rankrls._errors import InputError
from rankrls._queries import QueryLayout, query_layout
from rankrls._typing import AnyArray, Array, IdsLike, Index, VectorLike

__all__ = ["Ranking", "docno_order", "rank_positions", "rank_scores"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows of each query in descending order of score, with the queries in order of first appearance.

    Attributes
    ----------
    rows : ndarray of intp
        Row numbers of the ranked rows.
    positions : ndarray of intp
        Position of each row in its query, from 1.
    scores : ndarray of float64
        Score of each row.
    qid : ndarray or None
        Query of each row; None if all rows were ranked together.
    """

    rows: Index
    positions: Index
    scores: Array
    qid: AnyArray | None


def rank_scores(
    scores: VectorLike, *, qid: IdsLike | None = None, k: int | None = None, docno: IdsLike | None = None
) -> Ranking:
    """Rank items by their scores within each query, and return the best k.

    Parameters
    ----------
    scores : array-like of shape (m,)
        Finite scores; higher is better.
    qid : array-like of shape (m,), optional
        One query id per row, in any order. None ranks all rows together.
    k : int, optional
        Maximum number of rows per query; all by default.
    docno : array-like of shape (m,), optional
        Document ids, which order equal scores as in trec_eval: the greater id (as text) first. Without them, equal
        scores remain in row order.

    Returns
    -------
    Ranking

    Raises
    ------
    ValueError
        If scores are not finite numbers, or the number of ids is not that of the rows.

    Notes
    -----
    O(m log m). The same scores give the same lists on every machine, because all sorts are stable.

    Examples
    --------
    >>> from rankrls.ranking import rank_scores
    >>> ranking = rank_scores([0.5, 0.9, 0.5, 0.1, 0.7], qid=["a", "a", "a", "b", "b"], k=2)
    >>> ranking.rows.tolist(), ranking.positions.tolist()
    ([1, 0, 4, 3], [1, 2, 1, 2])
    """
    values = vector_of("scores", scores, "one target at a time")
    check_finite("scores", values, "score")
    layout = query_layout(qid, len(values))
    rows = layout.order if docno is None else docno_order(docno, layout)
    rows = rows[np.lexsort((-values[rows], layout.codes[rows]))]  # stable: equal scores keep their order
    positions = np.arange(len(rows), dtype=np.intp) - np.repeat(layout.starts[:-1], layout.counts) + 1
    if k is not None:
        kept = positions <= check_count("k", k, none="all")
        rows = rows[kept]
        positions = positions[kept]
    ids = None if qid is None else layout.ids[layout.codes[rows]]
    return Ranking(rows, positions, values[rows], ids)


def rank_positions(scores: VectorLike, *, qid: IdsLike | None = None, docno: IdsLike | None = None) -> Index:
    """Return the position of each row in its query, from 1 for the highest score.

    Parameters
    ----------
    scores : array-like of shape (m,) or (m, targets)
    qid, docno : as for :func:`rank_scores`

    Returns
    -------
    ndarray of shape (m,) or (m, targets)
        Positions in row order. Rows with equal scores get different positions: in row order, or by ``docno``.

    Examples
    --------
    >>> from rankrls.ranking import rank_positions
    >>> rank_positions([0.5, 0.9, 0.5, 0.1, 0.7], qid=["a", "a", "a", "b", "b"])
    array([2, 1, 3, 2, 1])
    """
    values = numbers_of("scores", scores)
    if values.ndim == 2:
        return np.column_stack([rank_positions(column, qid=qid, docno=docno) for column in values.T])
    ranking = rank_scores(values, qid=qid, docno=docno)
    out = np.empty(len(values), dtype=np.intp)
    out[ranking.rows] = ranking.positions
    return out


def docno_order(docno: IdsLike, layout: QueryLayout) -> Index:
    """Rows query by query, with the greater document id (as text, by code points) first."""
    ids = np.asarray(docno)
    if ids.shape != (layout.n_rows,):
        raise InputError(
            f"docno must contain one id per row, shape ({layout.n_rows},); got {ids.shape}.", parameter="docno"
        )
    _, rank = np.unique(ids.astype(str), return_inverse=True)
    return np.lexsort((-rank, layout.codes))
