"""The measures as functions of labels and scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar, cast

from rankrls._queries import query_layout
from rankrls.metrics._checks import check_labels, check_scores, check_weights
from rankrls.metrics._evaluate import value_of
from rankrls.metrics._measure import Measure

__all__ = [
    "average_precision",
    "disagreement_error",
    "kendall_tau",
    "ndcg",
    "pair_accuracy",
    "pair_squared_error",
    "precision",
    "reciprocal_rank",
]

_DATA = ("qid", "sample_weight", "docno", "per_query")
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _measure(name: str) -> Callable[[_Function], _Function]:
    """Give a function its body: its parameters other than the data are the depth and the choices of a measure."""

    def decorate(function: _Function) -> _Function:
        defaults = cast(FunctionType, function).__kwdefaults__ or {}

        @wraps(function)
        def judge(y_true: Any, y_score: Any, **options: Any) -> Any:
            function(y_true, y_score, **options)  # refuses what the signature does not have
            choices = {**defaults, **options}
            qid, sample_weight, docno, per_query = (choices.pop(key, None) for key in _DATA)
            measure = Measure(name, **choices)
            y = check_labels(y_true)
            scores = check_scores(y_score, len(y))
            weights = check_weights(sample_weight, len(y))
            return value_of(measure, y, scores, query_layout(qid, len(y)), weights, docno, per_query)

        return cast(_Function, judge)

    return decorate


@_measure("disagreement")
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


@_measure("pair_accuracy")
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


@_measure("kendall_tau")
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


@_measure("pair_squared_error")
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


@_measure("ndcg")
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


@_measure("average_precision")
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


@_measure("precision")
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


@_measure("reciprocal_rank")
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
