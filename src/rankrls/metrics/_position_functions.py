"""The measures over positions as functions of labels and scores."""

from __future__ import annotations

from typing import Any

from rankrls.metrics._evaluate import measure_function

__all__ = ["average_precision", "ndcg", "precision", "reciprocal_rank"]


@measure_function("ndcg")
def ndcg(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    k: int | None = None,
    convention: str = "letor",
    gain: Any = None,
    discount: Any = None,
    empty: float | str | None = None,
    ties: str | None = None,
    single_scores: bool | None = None,
    docno: Any = None,
    per_query: bool = False,
) -> Any:
    """Normalised discounted cumulative gain.

    DCG@k = sum over positions i = 1..k of ``gain(label at i) * discount(i)``; NDCG@k is DCG@k over the DCG@k of the
    best order of the query's own items; averaged over queries.

    Parameters
    ----------
    y_true : array-like of shape (m,)
        Labels, not negative unless the gain says what a negative one is worth.
    y_score : array-like of shape (m,) or (m, columns)
        Scores, greater is better; a value per column.
    qid : array-like of shape (m,), optional
        One query id per row, any order. Without it every row belongs to one query.
    k : int, optional
        Positions looked at; all by default. A shorter query is judged on all it has.
    convention : {"letor", "trec", "sklearn", "lightgbm", "xgboost", "ranklib"}
        The tool whose choices are used; see the table in the notes.
    gain : {"exp2", "linear", "positive"}, sequence or callable, optional
        ``2^rel - 1``, ``rel``, ``max(rel, 0)``, the gains of labels 0, 1, 2, ..., or ``gain(labels)``.
    discount : {"log2", "letor"} or callable, optional
        ``1 / log2(i + 1)``; 1, 1, then ``1 / log2(i)``; or ``discount(positions)``.
    empty : float or "skip", optional
        The value of a query without any gain; "skip" leaves it out of the mean.
    ties : {"row", "docno", "average"}, optional
        Equal scores stay in row order; the greater document id comes first; or the mean over all their orders.
    single_scores : bool, optional
        Round scores to single precision first; what then is equal is tied.
    docno : array-like of shape (m,), optional
        Document ids for ``ties="docno"``, compared as text. Without them such ties stay in row order.
    per_query : bool
        Return each query's value instead.

    Returns
    -------
    float or ndarray
        A float, or (columns,) for scores with columns. With ``per_query`` (q,) or (q, columns), queries in order of
        first appearance, NaN for a skipped query.

    Raises
    ------
    ValueError
        For labels or scores that are not finite (naming the row), labels without a gain, lengths that differ, unknown
        options, and if every query is skipped.

    Notes
    -----
    The conventions (i is the position, from 1; "AP" average precision, "RR" reciprocal rank; the last two columns
    concern AP, RR and precision):

    ==========  ===========  ============  =============  ===================  ========  ============
    convention  gain         discount      empty query    equal scores         relevant  denominator
    ==========  ===========  ============  =============  ===================  ========  ============
    letor       2^rel - 1    letor         0              row                  rel >= 1  nominal
    trec        max(rel, 0)  1/log2(i+1)   0              docno, as float32    rel >= 1  nominal
    sklearn     rel          1/log2(i+1)   0              average (a)          rel >= 1  nominal
    lightgbm    2^rel - 1    1/log2(i+1)   1 (b)          row                  rel >= 1  reachable
    xgboost     2^rel - 1    1/log2(i+1)   1 (b)          row, as float32      rel >= 1  reachable
    ranklib     2^rel - 1    1/log2(i+1)   0              row                  rel >= 1  reachable (c)
    ==========  ===========  ============  =============  ===================  ========  ============

    letor's discount is 1, 1, 1/log2(3), 1/log2(4), ... "nominal" precision at k divides by k and AP at k by all
    relevant items of the query; "reachable" divides by min(k, items) and by min(k, relevant items). What a tool lacks
    (scikit-learn a reciprocal rank, say) follows the rest of its row.

    (a) AP retrieves equal scores together, at the end of their group. (b) Precision counts such a query 0. (c) AP
    divides by all relevant items.

    O(m log m) time per column, in compiled code on all threads.

    Examples
    --------
    >>> from rankrls.metrics import ndcg
    >>> y = [2, 0, 1, 0, 1]
    >>> scores = [0.3, 0.5, 0.1, 0.2, 0.7]
    >>> qid = [1, 1, 1, 2, 2]
    >>> round(ndcg(y, scores, qid=qid, k=10), 4)
    0.9539
    >>> round(ndcg(y, scores, qid=qid, k=10, convention="sklearn"), 4)
    0.8348
    """


@measure_function("average_precision")
def average_precision(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    k: int | None = None,
    convention: str = "letor",
    relevant: float | None = None,
    empty: float | str | None = None,
    ties: str | None = None,
    denominator: str | None = None,
    single_scores: bool | None = None,
    docno: Any = None,
    per_query: bool = False,
) -> Any:
    """Mean average precision: the precisions at the relevant items' positions, over the relevant items, per query.

    Parameters
    ----------
    y_true, y_score, qid, k, convention, empty, single_scores, docno, per_query
        As for :func:`ndcg`; a query is empty if nothing in it is relevant.
    relevant : float, optional
        Labels from here up are relevant; 1 in every convention.
    ties : {"row", "docno", "average", "threshold"}, optional
        As for :func:`ndcg`; "threshold" retrieves equal scores together (and takes no k).
    denominator : {"nominal", "reachable"}, optional
        With k: divide by the query's relevant items, or by min(k, relevant items).

    Returns
    -------
    float or ndarray
        As for :func:`ndcg`.

    Notes
    -----
    The conventions' table is in :func:`ndcg`. O(m log m) time per column, in compiled code on all threads.

    Examples
    --------
    >>> from rankrls.metrics import average_precision
    >>> average_precision([1, 0, 2, 0], [0.9, 0.7, 0.5, 0.3], relevant=1).__round__(4)
    0.8333
    """


@measure_function("precision")
def precision(
    y_true: Any,
    y_score: Any,
    *,
    k: int,
    qid: Any = None,
    convention: str = "letor",
    relevant: float | None = None,
    empty: float | str | None = None,
    ties: str | None = None,
    denominator: str | None = None,
    single_scores: bool | None = None,
    docno: Any = None,
    per_query: bool = False,
) -> Any:
    """Precision at k: the relevant items among the first k, over k, averaged over queries.

    Parameters
    ----------
    y_true, y_score, qid, convention, single_scores, docno, per_query
        As for :func:`ndcg`.
    k : int
        Positions looked at. Required.
    relevant : float, optional
        Labels from here up are relevant; 1 in every convention.
    empty : float or "skip", optional
        The value of a query without relevant items; 0 in every convention.
    ties : {"row", "docno", "average"}, optional
        As for :func:`ndcg`.
    denominator : {"nominal", "reachable"}, optional
        Divide by k, or by min(k, items of the query).

    Returns
    -------
    float or ndarray
        As for :func:`ndcg`.

    Notes
    -----
    The conventions' table is in :func:`ndcg`. O(m log m) time per column, in compiled code on all threads.

    Examples
    --------
    >>> from rankrls.metrics import precision
    >>> precision([1, 0, 2, 0], [0.9, 0.7, 0.5, 0.3], k=2)
    0.5
    """


@measure_function("reciprocal_rank")
def reciprocal_rank(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    k: int | None = None,
    convention: str = "letor",
    relevant: float | None = None,
    empty: float | str | None = None,
    ties: str | None = None,
    single_scores: bool | None = None,
    docno: Any = None,
    per_query: bool = False,
) -> Any:
    """Mean reciprocal rank: 1 / the position of the first relevant item, 0 if none is among the first k.

    Parameters
    ----------
    y_true, y_score, qid, k, convention, empty, single_scores, docno, per_query
        As for :func:`ndcg`; a query is empty if nothing in it is relevant.
    relevant : float, optional
        Labels from here up are relevant; 1 in every convention.
    ties : {"row", "docno", "average"}, optional
        As for :func:`ndcg`.

    Returns
    -------
    float or ndarray
        As for :func:`ndcg`.

    Notes
    -----
    The conventions' table is in :func:`ndcg`. O(m log m) time per column, in compiled code on all threads.

    Examples
    --------
    >>> from rankrls.metrics import reciprocal_rank
    >>> reciprocal_rank([0, 1, 0, 1], [0.9, 0.7, 0.5, 0.3])
    0.5
    """
