"""One ranking evaluated with several measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankrls.metrics._measure import resolve_measure


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
        Labels, any finite numbers; those of NDCG must have a gain.
    y_score : array-like of shape (m,) or (m, columns)
        Scores, greater is better; a value per column.
    qid : array-like of shape (m,), optional
        One query id per row, any order. Without it every row belongs to one query.
    measures : sequence of str, Measure or callable
        Names with a depth, measures or functions, as :func:`resolve_measure` takes them; :class:`Measure` lists them.
    convention : {"letor", "trec", "sklearn", "lightgbm", "xgboost", "ranklib"}, optional
        The evaluation tool whose choices the measures given by name follow; "letor" by default.
    sample_weight : array-like of shape (m,), optional
        Row weights, for the measures over pairs; the others look at positions and ignore them.
    docno : array-like of shape (m,), optional
        Document ids, by which measures of the convention "trec" order equal scores, as trec_eval does.
    per_query : bool
        Return each query's values instead, queries in order of first appearance, NaN for a query that has no value.

    Returns
    -------
    dict
        From the measure, as it was named, to its value, in the order of ``measures``: a float, or (columns,) for scores
        with columns; with ``per_query`` (q,) or (q, columns).

    Raises
    ------
    ValueError
        For unknown measures; for labels, scores or weights that are not finite (naming the row), negative weights,
        lengths that differ, labels without a gain; and if no query has a value.

    Notes
    -----
    What equal scores, equal labels and queries with nothing relevant do is in :class:`Measure`. O(m log m) for each
    measure and column, in compiled code on all threads.

    Examples
    --------
    >>> from rankrls.metrics import evaluate
    >>> evaluate([1, 0, 2, 0], [0.9, 0.7, 0.5, 0.3], measures=["mrr", "p@2", "disagreement"])
    {'mrr': 1.0, 'p@2': 0.5, 'disagreement': 0.4}
    """
    if isinstance(measures, str) or not isinstance(measures, Sequence):
        measures = [measures]
    resolved = [resolve_measure(measure, convention) for measure in measures]
    data: dict[str, Any] = {"qid": qid, "sample_weight": sample_weight, "docno": docno, "per_query": per_query}
    return {
        name if isinstance(name, str) else str(measure): measure(y_true, y_score, **data)
        for name, measure in zip(measures, resolved, strict=True)
    }
