"""The measures over pairs as functions of labels and scores."""

from __future__ import annotations

from typing import Any

from rankrls.metrics._evaluate import measure_function

__all__ = ["disagreement_error", "kendall_tau", "pair_accuracy", "pair_squared_error"]


@measure_function("disagreement")
def disagreement_error(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    sample_weight: Any = None,
    tied_labels: str = "ignore",
    average: str = "query",
    per_query: bool = False,
) -> Any:
    r"""Share of the ordered pairs that the scores put in the wrong order.

    For query :math:`Q` with labels y and scores f,

    .. math::

        e_Q = \frac{1}{N_Q} \sum_{i, j \in Q,\; y_i < y_j} w_i w_j H(f_i - f_j), \qquad
        H(a) = 1, \tfrac12, 0 \text{ for } a > 0, a = 0, a < 0,

    where N_Q is the weight of the pairs with ``y_i < y_j`` (Airola, Pahikkala and Salakoski 2010, eq. 1). 0 is a
    perfect ranking, 0.5 what random or constant scores get. With one query and two labels this is 1 - AUC.

    Parameters
    ----------
    y_true : array-like of shape (m,)
        Labels, any finite numbers; labels are tied where they are equal as float64.
    y_score : array-like of shape (m,) or (m, columns)
        Scores, greater is better; a value per column.
    qid : array-like of shape (m,), optional
        One query id per row, any order. Without it every row belongs to one query.
    sample_weight : array-like of shape (m,), optional
        Row weights w, not negative; a pair weighs ``w_i w_j``. 1 by default.
    tied_labels : {"ignore", "half"}
        "ignore": pairs with equal labels do not exist. "half": they are relevant pairs too, and one that the scores
        keep apart is half an error: the cost of Pahikkala et al. 2007, eq. 3, with
        ``d = |sign(y_i - y_j) - sign(f_i - f_j)| / 2``, divided by the weight of all pairs of the query.
    average : {"query", "pair"}
        "query": mean over the queries that have a pair. "pair": all errors over all pairs, so that long queries
        count more (Airola et al. 2010, eq. 2, normalised); with ``tied_labels="half"`` the error is divided by all
        relevant pairs, as in Tsivtsivadze et al. 2008, eq. 1.
    per_query : bool
        Return each query's error instead.

    Returns
    -------
    float or ndarray
        A float, or (columns,) for scores with columns. With ``per_query`` (q,) or (q, columns), queries in order of
        first appearance, NaN for a query without a pair.

    Raises
    ------
    ValueError
        For labels, scores or weights that are not finite (naming the row), negative weights, lengths that differ,
        unknown options, and if no query has an ordered pair.

    Notes
    -----
    Equal scores of an ordered pair are half an error. A query of one item has no pair and is not judged.
    O(m log m) time per column, in compiled code on all threads; nothing is quadratic, not even in one long query.

    Examples
    --------
    >>> from rankrls.metrics import disagreement_error
    >>> y = [2, 1, 0, 1, 0]
    >>> scores = [0.9, 0.1, 0.4, 0.3, 0.3]
    >>> round(disagreement_error(y, scores, qid=["a", "a", "a", "b", "b"]), 4)
    0.4167
    >>> disagreement_error(y, scores, qid=["a", "a", "a", "b", "b"], per_query=True).round(4)
    array([0.3333, 0.5   ])
    """


@measure_function("pair_accuracy")
def pair_accuracy(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    sample_weight: Any = None,
    tied_labels: str = "ignore",
    average: str = "query",
    per_query: bool = False,
) -> Any:
    """Share of the ordered pairs in the right order: 1 - :func:`disagreement_error`, with the same parameters.

    With one query and two labels this is AUC; with one query and real labels the concordance index without censoring.

    Parameters
    ----------
    y_true, y_score, qid, sample_weight, tied_labels, average, per_query
        As for :func:`disagreement_error`.

    Returns
    -------
    float or ndarray
        As for :func:`disagreement_error`.

    Examples
    --------
    >>> from rankrls.metrics import pair_accuracy
    >>> pair_accuracy([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """


@measure_function("kendall_tau")
def kendall_tau(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    sample_weight: Any = None,
    empty: float | str = "skip",
    per_query: bool = False,
) -> Any:
    r"""Kendall's tau-b between labels and scores, per query and averaged.

    .. math:: \tau_b = \frac{C - D}{\sqrt{(C + D + T_f)(C + D + T_y)}}

    with C, D the weight of the concordant and discordant pairs, T_f of those tied in the scores only and T_y of those
    tied in the labels only.

    Parameters
    ----------
    y_true, y_score, qid, sample_weight, per_query
        As for :func:`disagreement_error`.
    empty : "skip" or float
        The value of a query whose labels or scores are all tied, for which tau-b is 0 / 0. "skip" leaves it out of
        the mean. A query of one item is such a query.

    Returns
    -------
    float or ndarray
        As for :func:`disagreement_error`.

    Notes
    -----
    O(m log m) time per column, in compiled code on all threads.

    Examples
    --------
    >>> from rankrls.metrics import kendall_tau
    >>> round(kendall_tau([3, 2, 1, 1], [0.9, 0.2, 0.4, 0.1]), 4)
    0.5477
    """


@measure_function("pair_squared_error")
def pair_squared_error(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    sample_weight: Any = None,
    per_query: bool = False,
) -> Any:
    r"""Mean squared error of score differences over all pairs of a query: the loss of RankRLS as a measure.

    .. math:: e_Q = \frac{1}{N_Q} \sum_{i < j \in Q} w_i w_j ( (y_i - y_j) - (f_i - f_j) )^2 ,
              \qquad N_Q = \sum_{i < j \in Q} w_i w_j

    It is in squared units of the labels, so that it compares models of the same labels only. Pairs with equal labels
    count like all others, and so do scores that are tied.

    Parameters
    ----------
    y_true, y_score, qid, sample_weight, per_query
        As for :func:`disagreement_error`.

    Returns
    -------
    float or ndarray
        As for :func:`disagreement_error`; NaN for a query of one item.

    Notes
    -----
    O(m) time per column.

    Examples
    --------
    >>> from rankrls.metrics import pair_squared_error
    >>> pair_squared_error([3, 1, 2, 2], [13.0, 10.0, 12.0, 12.0])
    0.5
    """
