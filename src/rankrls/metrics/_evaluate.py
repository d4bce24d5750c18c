"""Evaluation of one ranking with several measures, or against preferences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls._preferences import check_preferences
from rankrls._typing import Array
from rankrls.metrics._measure import named_measures
from rankrls.metrics._values import check_scores


def evaluate(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    measures: Sequence[Any] = ("map", "mrr", "p@5", "p@10", "ndcg@1", "ndcg@5", "ndcg@10", "disagreement"),
    convention: str | None = None,
    sample_weight: Any = None,
    docno: Any = None,
    per_query: bool = False,
) -> dict[str, Any]:
    """Evaluate one ranking with several measures.

    Parameters
    ----------
    y_true : array-like of shape (m,)
        Labels, any finite numbers; NDCG needs labels with a gain.
    y_score : array-like of shape (m,) or (m, columns)
        Scores, greater is better; each column is evaluated separately.
    qid : array-like of shape (m,), optional
        One query id per row, in any order. By default, all rows belong to one query.
    measures : sequence of str, Measure or callable
        Names (with a depth), measures or functions (:func:`rankrls.metrics.resolve_measure`);
        :class:`rankrls.metrics.Measure` lists the names.
    convention : {"letor", "trec", "sklearn", "lightgbm", "xgboost", "ranklib", "catboost"}, optional
        Evaluation tool whose definitions apply to measures given by name; "letor" by default.
    sample_weight : array-like of shape (m,), optional
        Row weights, used by measures over pairs and ignored by the others.
    docno : array-like of shape (m,), optional
        Document ids, which order equal scores in the convention "trec", as in trec_eval.
    per_query : bool
        Whether to return each query's value instead, in order of first appearance; NaN for queries without a value.

    Returns
    -------
    dict
        Value of each measure under its name, in the order of ``measures``: a float, or shape (columns,) if scores have
        columns; with ``per_query``, shape (q,) or (q, columns).

    Raises
    ------
    ValueError
        If a measure is unknown; if labels, scores or weights are not finite (the message names the row), a weight is
        negative, lengths differ, or a label has no gain; and if no query has a value.

    See Also
    --------
    Measure : One measure, with options and values of each query.
    evaluate_run : TREC judgements and runs.
    rankrls.comparison.compare_rankings : Intervals and paired tests.

    Notes
    -----
    :class:`rankrls.metrics.Measure` describes equal scores, equal labels and queries without relevant items. O(m log m)
    per measure and column, in compiled code on all threads.

    Examples
    --------
    >>> from rankrls.metrics import evaluate
    >>> evaluate([1, 0, 2, 0], [0.9, 0.7, 0.5, 0.3], measures=["mrr", "p@2", "disagreement"])
    {'mrr': 1.0, 'p@2': 0.5, 'disagreement': 0.4}
    """
    data: dict[str, Any] = {"qid": qid, "sample_weight": sample_weight, "docno": docno, "per_query": per_query}
    return {name: measure(y_true, y_score, **data) for name, measure in named_measures(measures, convention).items()}


def preference_accuracy(
    y_score: Any,
    winners: Any,
    losers: Any,
    *,
    strength: Any = None,
    weight: Any = None,
    per_pair: bool = False,
) -> Any:
    r"""Weighted share of preferences whose winner has the higher score.

    .. math::

        \frac{\sum_e c_e H(\mathrm{sign}(s_e) (f_{i_e} - f_{j_e}))}{\sum_e c_e}, \qquad
        H(a) = 1, \tfrac12, 0 \text{ for } a > 0, a = 0, a < 0,

    over the preferences e = (i, j) with nonzero strength s. This is one minus the loss in equation 2 of Airola,
    Pahikkala and Salakoski (2010), averaged over the pairs.

    Parameters
    ----------
    y_score : array-like of shape (m,) or (m, columns)
        Scores of the items, greater is better; each column is evaluated separately.
    winners, losers : array-like of int, shape (p,)
        Row numbers of the scores. Repeated and contradictory preferences are allowed.
    strength : array-like of shape (p,), optional
        Strengths, of which only the sign is used: ties (0) are ignored, and a negative strength reverses a preference.
    weight : array-like of shape (p,), optional
        Weight of each preference; 1 by default.
    per_pair : bool
        Whether to return 1, 1/2 or 0 for each preference instead, and NaN for ignored ones.

    Returns
    -------
    float or ndarray
        A float, or shape (columns,) if scores have columns; with ``per_pair``, shape (p,) or (p, columns).

    Raises
    ------
    ValueError
        If scores, row numbers, strengths or weights are invalid (the message names the preference), and if all
        preferences are ignored.

    Notes
    -----
    Equal scores count half. O(p) per column.

    Examples
    --------
    >>> from rankrls.metrics import preference_accuracy
    >>> preference_accuracy([0.3, 0.1, 0.2, 0.2], winners=[0, 0, 1, 2], losers=[1, 2, 2, 3])
    0.625
    """
    scores = check_scores(y_score)
    given = check_preferences(winners, losers, len(scores), strength, weight)
    columns = scores if scores.ndim == 2 else scores[:, None]
    right, counts = right_order(columns[given.winners] - columns[given.losers], given.strength, given.weight)
    if not counts.any():
        raise InputError("There are no preferences to evaluate: each one has strength 0 or weight 0.")
    if per_pair:
        values = np.where((counts > 0.0)[:, None], right, np.nan)
        return values if scores.ndim == 2 else values[:, 0]
    share = counts @ right / counts.sum()
    return share if scores.ndim == 2 else float(share[0])


def right_order(differences: Array, strength: Array, weight: Array) -> tuple[Array, Array]:
    """Agreement of score differences with preferences, and the weight of each preference.

    Parameters
    ----------
    differences : ndarray of shape (p, columns)
        Scores of winners minus those of losers.
    strength, weight : ndarray of shape (p,)

    Returns
    -------
    right : ndarray of shape (p, columns)
        1, 1/2 (equal scores) or 0.
    counts : ndarray of shape (p,)
        Weight of each preference; 0 for ties.
    """
    sign = np.sign(strength)
    right = (np.sign(differences) * sign[:, None] + 1.0) / 2.0
    return right, np.where(sign == 0.0, 0.0, weight)
