"""Evaluation of one ranking with several measures, each with its uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankrls._checks import refuse_where
from rankrls._errors import InputError
from rankrls._typing import AnyArray, Array
from rankrls.comparison.significance import bootstrap_interval
from rankrls.io import PairTable, Rows
from rankrls.metrics import Measure, evaluate, preference_accuracy
from rankrls.metrics._values import mean_and_error

_DRAWS = 2000
_GRADED = ("map", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "p@1", "p@5", "p@10", "mrr", "disagreement")
_ANY = ("disagreement", "tau")
_BINARY_TOP = 31  # largest label for which 2^label - 1 is a sensible gain


@dataclass(frozen=True)
class Judgement:
    """Value of one measure for one ranking.

    Attributes
    ----------
    value, standard_error : float
        Average over queries and its standard error; NaN if too few queries have a value.
    judged : int
        Number of queries (or preferences) with a value.
    per_query : ndarray of shape (q,)
        Value of each query; NaN if undefined.
    unit : {"queries", "preferences"}
    """

    value: float
    standard_error: float
    judged: int
    per_query: Any
    unit: str = "queries"

    def interval(self) -> tuple[float, float] | None:
        """95 % interval: bootstrap over queries, or 1.96 standard errors of a share of preferences; None if unknown."""
        if np.isnan(self.standard_error):
            return None
        if self.unit == "queries":
            found = bootstrap_interval(self.per_query, n_resamples=_DRAWS, random_state=0)
            return found.low, found.high
        return max(self.value - 1.96 * self.standard_error, 0.0), min(self.value + 1.96 * self.standard_error, 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"value": self.value, "standard_error": self.standard_error, self.unit: self.judged}


def suitable_measures(y: Array, first: Iterable[str] = ()) -> tuple[str, ...]:
    """Names of measures that suit the labels, starting with ``first``. Missing labels are NaN."""
    known = y[~np.isnan(y)]
    graded = bool(((known >= 0) & (known <= _BINARY_TOP) & (known == np.floor(known))).all())
    return tuple(dict.fromkeys((*first, *(_GRADED if graded else _ANY))))


def judge(
    names: Sequence[str | Measure],
    convention: str,
    table: Rows,
    scores: Array,
    *,
    weights: Array | None = None,
) -> dict[str, Judgement]:
    """Evaluate scores of the rows of a table using its labels; rows with a missing label (NaN) are left out."""
    assert table.y is not None
    rows = np.flatnonzero(~np.isnan(table.y))

    def known(column: AnyArray | None) -> AnyArray | None:
        return None if column is None else column[rows]

    values = evaluate(
        known(table.y),
        scores[rows],
        qid=known(table.qid),
        measures=names,
        convention=convention,
        sample_weight=known(weights),
        docno=known(table.docids),
        per_query=True,
    )
    return {name: judgement_of(of_queries) for name, of_queries in values.items()}


def judgement_of(per_query: Array) -> Judgement:
    """Average of the values of queries; NaN marks a query without a value."""
    mean, error = mean_and_error(per_query[:, None])
    judged = int((~np.isnan(per_query)).sum())
    return Judgement(float(mean[0]), float(error[0]), judged, per_query)


def judge_pairs(pairs: PairTable, scores: Array, qid: AnyArray | None = None) -> Judgement:
    """Weighted share of preferences that the scores order correctly.

    The standard error is over groups of preferences if the file has them, otherwise over preferences. ``qid`` is passed
    for a model that compares items only within queries.

    Raises
    ------
    InputError
        If no preference counts, or if one is between items of two queries.
    """
    problem = "Preference {} is between items of different queries, whose scores cannot be compared."
    try:
        if qid is not None:
            refuse_where(qid[pairs.winners] != qid[pairs.losers], "qid", problem.format)
        values = preference_accuracy(
            scores, pairs.winners, pairs.losers, strength=pairs.strength, weight=pairs.weight, per_pair=True
        )
    except InputError as error:
        raise error.replace(file=pairs.path) from None
    judged = ~np.isnan(values)
    weight = np.ones(len(values))[judged] if pairs.weight is None else pairs.weight[judged]
    mean = float(np.average(values[judged], weights=weight))
    parts = weight * (values[judged] - mean)
    if pairs.groups is not None:
        parts = np.bincount(np.unique(pairs.groups[judged], return_inverse=True)[1], parts)
    spread = float(np.linalg.norm(parts) / weight.sum()) if len(parts) > 1 else np.nan
    return Judgement(mean, spread, int(judged.sum()), values, unit="preferences")
