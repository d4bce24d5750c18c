"""Evaluation of runs against judgements, which need not cover the same documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls._queries import QueryLayout, query_layout
from rankrls._typing import AnyArray, Array, Mask, Values
from rankrls.metrics._measure import Measure, mean_of_judged, named_measures

ByDocument = Mapping[str, Mapping[str, float]]
"""Labels or scores of the documents of each query."""
RUN_MEASURES = ("map", "ndcg@10", "p@10", "recall@100", "mrr", "bpref")


@dataclass(frozen=True, eq=False)
class JoinedRun:
    """Judged and retrieved documents of every judged query, one row each.

    Attributes
    ----------
    y, scores : ndarray of shape (m,)
        Labels, 0 for documents without a judgement; and scores, -inf for documents that were not retrieved.
    judged : ndarray of shape (m,), bool
        Whether a document has a nonnegative judgement. In a query without any, the first document, which is not
        relevant, takes their place.
    docno : ndarray of shape (m,)
    layout : QueryLayout
    counts : dict of str to int
        Number of queries, and numbers of queries and documents that only the run or only the judgements have.
    """

    y: Array
    scores: Array
    judged: Mask
    docno: AnyArray
    layout: QueryLayout
    counts: dict[str, int]

    def per_query(self, measure: Measure) -> Array:
        """Value of each judged query; NaN for queries without a value."""
        if measure.name == "pair_squared_error" or callable(measure.name):
            problem = f"{measure} needs a score for every judged document, but a run has scores of retrieved ones only."
            raise InputError(problem, parameter="measures")
        rows = np.flatnonzero(self.judged) if measure.definition.judged_only else np.arange(len(self.y))
        layout = query_layout(self.layout.codes[rows], len(rows))
        return measure.per_query(self.y[rows], self.scores[rows, None], layout, docno=self.docno[rows])[:, 0]


def join_run(qrels: ByDocument, run: ByDocument) -> JoinedRun:
    """Join a run with judgements; the queries are those with judgements, in the same order.

    Raises
    ------
    InputError
        If they have no query in common, or a label or score is not a finite number.
    """
    qrels = {query: labels for query, labels in qrels.items() if labels}
    if not qrels.keys() & run.keys():
        problem = "The run and the judgements have no query in common."
        if qrels and run:
            problem += f" Judgements begin with query {next(iter(qrels))!r}, and the run with {next(iter(run))!r}."
        raise InputError(problem, parameter="run")
    rows = [
        (query, document, labels.get(document, np.nan), run.get(query, {}).get(document, -np.inf))
        for query, labels in qrels.items()
        for document in {**labels, **run.get(query, {})}
    ]
    queries, documents, *numbers = zip(*rows, strict=True)
    y, scores = np.array(numbers, dtype=np.float64)
    if np.isinf(y).any() or not (scores < np.inf).all():
        raise InputError("Labels and scores must be finite numbers.", parameter="run")
    known = ~np.isnan(y)
    retrieved = scores > -np.inf
    counts = {
        "queries": len(qrels),
        "queries_without_results": len(qrels.keys() - run.keys()),
        "queries_without_judgements": len(run.keys() - qrels.keys()),
        "relevant_not_retrieved": int((~retrieved & (y >= 1)).sum()),
        "retrieved_not_judged": int((retrieved & ~known).sum()),
    }
    layout = query_layout(np.array(queries, dtype=object), len(queries))
    judged = known & (y >= 0)
    first = layout.starts[:-1]
    judged[first] |= ~np.logical_or.reduceat(judged, first)
    return JoinedRun(
        y=np.where(known, y, 0.0),
        scores=scores,
        judged=judged,
        docno=np.array(documents, dtype=object),
        layout=layout,
        counts=counts,
    )


def evaluate_run(
    qrels: ByDocument,
    run: ByDocument,
    *,
    measures: Sequence[Any] = RUN_MEASURES,
    convention: str | None = "trec",
    per_query: bool = False,
) -> Values:
    """Evaluate a run, whose documents need not be the judged ones.

    Parameters
    ----------
    qrels : mapping of str to mapping of str to float
        Labels of each query's judged documents (:func:`rankrls.io.load_qrels`).
    run : mapping of str to mapping of str to float
        Scores of each query's retrieved documents, greater is better (:func:`rankrls.io.load_run`).
    measures : sequence of str or Measure
        See :func:`resolve_measure`.
    convention : str, default="trec"
        Convention of the measures given by name.
    per_query : bool
        Whether to return each judged query's value instead, in the order of ``qrels``; NaN for queries without a value.

    Returns
    -------
    dict
        Value of each measure under its name.

    Raises
    ------
    InputError
        If no query has both judgements and results, if values are not finite, and for pair_squared_error and functions,
        which need a score for every judged document.

    Notes
    -----
    Relevant documents that were not retrieved have no position, but count as relevant. Retrieved documents without a
    judgement are not relevant; measures over pairs and bpref leave them out, as they do documents with a negative
    judgement. A query without results has the value of an empty list, as with ``trec_eval -c``. Queries without
    judgements are left out. O(m log m) per measure.

    Examples
    --------
    >>> from rankrls.metrics import evaluate_run
    >>> qrels = {"q1": {"a": 1, "b": 0, "c": 2}, "q2": {"d": 1}}
    >>> run = {"q1": {"b": 3.5, "x": 2.0, "c": 1.5}}
    >>> evaluate_run(qrels, run, measures=["map", "bpref"], per_query=True)
    {'map': array([0.16666667, 0.        ]), 'bpref': array([0., 0.])}
    """
    joined = join_run(qrels, run)
    found: Values = {}
    for name, measure in named_measures(measures, convention).items():
        values = joined.per_query(measure)
        found[name] = values if per_query else float(mean_of_judged(values))
    return found
