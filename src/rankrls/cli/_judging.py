"""Scores to measures, with their uncertainty."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls._queries import QueryLayout, query_layout
from rankrls.cli._data import labels_of
from rankrls.io._rows import SAVE_AS_UTF8, objects, quoted
from rankrls.metrics import Measure, RankingMeasure, resolve_measure

if TYPE_CHECKING:
    from rankrls.io import ColumnTable, LetorTable

__all__ = ["Judgement", "check_measures", "document_ids", "judge", "measures_for", "show"]

_GRADED = ("map", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "p@1", "p@5", "p@10", "mrr", "disagreement")
_ANY = ("disagreement", "tau")
_BINARY_TOP = 31  # 2^label - 1 is a sensible gain up to here
_DRAWS = 2000
_ESCAPE = re.compile("[\udc80-\udcff]")  # a byte of a comment that is not UTF-8
_DOCNO = re.compile(r"docid\s*[=:]\s*(\S+)")


@dataclass(frozen=True)
class Judgement:
    """One measure of one ranking.

    Attributes
    ----------
    value, standard_error : float
        Average over queries, and its standard error; NaN where too few were judged.
    per_query : ndarray of shape (q,)
        NaN is a query that the measure does not judge.
    unit : str
        What was judged, if not queries.
    """

    value: float
    standard_error: float
    per_query: NDArray[np.float64]
    unit: str = "queries"

    @property
    def judged(self) -> int:
        """Queries (or preferences) that were judged."""
        return int(np.sum(~np.isnan(self.per_query)))

    def interval(self) -> tuple[float, float] | None:
        """95 % bootstrap interval over queries, or 1.96 standard errors of preferences; None for fewer than two."""
        from rankrls.comparison.significance import bootstrap_interval

        if self.judged < 2 or np.isnan(self.standard_error):
            return None
        if self.unit != "queries":
            reach = 1.96 * self.standard_error
            return max(self.value - reach, 0.0), min(self.value + reach, 1.0)
        found = bootstrap_interval(self.per_query, n_resamples=_DRAWS, random_state=0)
        return found.low, found.high

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"value": self.value, "standard_error": self.standard_error, self.unit: self.judged}

    def with_interval(self) -> dict[str, Any]:
        """The same with the interval."""
        return {**self.as_dict(), "interval": self.interval(), "confidence": 0.95}

    def row(self) -> list[str]:
        """Mean, interval and how much was judged, for a table."""
        ends = self.interval()
        return [show(self.value), "-" if ends is None else f"{ends[0]:.4f} to {ends[1]:.4f}", str(self.judged)]


def measures_for(y: NDArray[np.float64], first: Iterable[str] = ()) -> tuple[str, ...]:
    """Measures that suit these labels; ``first`` come first."""
    graded = bool(((y >= 0) & (y <= _BINARY_TOP) & (y == np.floor(y))).all())
    return tuple(dict.fromkeys((*first, *(_GRADED if graded else _ANY))))


def check_measures(names: Iterable[str] | None, convention: str) -> None:
    """Refuse measures, and a convention, that are none."""
    for name in names or ("map",):
        resolve_measure(name, convention)


def judge(
    names: Sequence[str],
    convention: str,
    table: LetorTable | ColumnTable,
    scores: NDArray[np.float64],
    *,
    must_judge: Iterable[str] = (),
) -> dict[str, Judgement]:
    """Judge one ranking by several measures.

    Raises
    ------
    ValueError
        Where one of ``must_judge`` judges no query at all.
    """
    layout = query_layout(table.qid, table.n_rows)
    required = set(must_judge)
    out = {}
    for name in names:
        out[name] = _judge(resolve_measure(name, convention), table, scores, layout)
        if name in required and not out[name].judged:
            raise InputError("{0} judges nothing here: no query has what it looks for.", name, file=table.path)
    return out


def _judge(
    measure: RankingMeasure, table: LetorTable | ColumnTable, scores: NDArray[np.float64], layout: QueryLayout
) -> Judgement:
    docno = None
    if isinstance(measure, Measure) and not measure.uses_sample_weight and measure.choices.ties == "docno":
        docno = document_ids(table)
    values, average = measure.judge(labels_of(table), scores[:, None], layout, None, docno)
    per_query = values[:, 0]
    judged = per_query[~np.isnan(per_query)]
    error = float(np.std(judged, ddof=1) / np.sqrt(len(judged))) if len(judged) > 1 else np.nan
    return Judgement(float(average[0]), error, per_query)


def document_ids(table: LetorTable | ColumnTable) -> NDArray[Any] | None:
    """A table's column of ids, or ``docid = ...`` of the comments where every row has one; None otherwise."""
    comments = getattr(table, "comments", None)
    if comments is None:
        ids = getattr(table, "ids", None)
        return None if ids is None else objects(map(str, ids.tolist()))
    found = [_DOCNO.search(comment) for comment in comments] if comments else [None]
    if not all(found):
        return None
    ids = [m.group(1) for m in found if m]
    for row, name in enumerate(ids):
        if not name.isascii() and _ESCAPE.search(name):
            shown = quoted(name.encode("utf-8", "surrogateescape"))
            problem = "row {0}, counted from 0: the docid {1} is not UTF-8 text:"
            raise InputError(problem, row, shown, remedy=SAVE_AS_UTF8, file=table.path, row=row)
    return objects(ids)


def show(value: float, error: float | None = None) -> str:
    """A measure as people read it; a dash where there is none."""
    if np.isnan(value):
        return "-"
    return f"{value:.4f}" + ("" if error is None or np.isnan(error) else f" ± {error:.4f}")
