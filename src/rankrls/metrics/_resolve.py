"""From what a user writes to a measure: names with a depth, measures, functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls._queries import QueryLayout
from rankrls.metrics._measure import ALIASES, PAIRWISE, RANKED, Measure, RankingMeasure, mean_of_judged

__all__ = ["FunctionMeasure", "resolve_measure"]

_NAME = re.compile(r"\s*([A-Za-z_]+)\s*(?:@\s*([0-9]+))?\s*")


@dataclass(frozen=True)
class FunctionMeasure(RankingMeasure):
    """A user's ``function(y_true, y_score) -> float``, called once a query and column; greater is better.

    A function that returns NaN does not judge the query.
    """

    function: Callable[[NDArray[np.float64], NDArray[np.float64]], float]
    greater_is_better: bool = True

    def __str__(self) -> str:
        return str(getattr(self.function, "__name__", repr(self.function)))

    def judge(
        self,
        y_true: NDArray[np.float64],
        y_score: NDArray[np.float64],
        layout: QueryLayout,
        sample_weight: NDArray[np.float64] | None = None,
        docno: Any = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values = np.empty((layout.n_queries, y_score.shape[1]))
        for q in range(layout.n_queries):
            rows = layout.rows(q)
            labels, scores = y_true[rows], y_score[rows]
            for column in range(y_score.shape[1]):
                values[q, column] = _number(self, self.function(labels, scores[:, column]))
        return values, mean_of_judged(values)


def _number(measure: FunctionMeasure, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"the measure {measure} must return one number per query; it returned {value!r}.") from None


def resolve_measure(measure: Any, convention: str | None = None) -> RankingMeasure:
    """The measure that a name, a measure or a function stands for.

    Parameters
    ----------
    measure : str, Measure or callable
        A name, with ``@k`` for a depth (``"ndcg@10"``, ``"map"``, ``"p@5"``, ``"mrr"``, ``"tau"``,
        ``"disagreement"``, ``"pair_accuracy"``); a :class:`Measure`, returned as it is; or
        ``function(y_true, y_score) -> float``, called once a query, greater is better.
    convention : str, optional
        The convention of a name; "letor" by default.

    Returns
    -------
    RankingMeasure
        With ``greater_is_better``, ``per_query`` and ``mean``.

    Raises
    ------
    ValueError
        For anything else; the message lists the known names.

    Examples
    --------
    >>> from rankrls.metrics import resolve_measure
    >>> resolve_measure("p@5").k
    5
    >>> print(resolve_measure("ndcg@3", convention="sklearn"))
    ndcg(convention='sklearn')@3
    """
    if isinstance(measure, RankingMeasure):
        return measure
    if isinstance(measure, str):
        match = _NAME.fullmatch(measure)
        name = match.group(1).lower() if match else ""
        if match is None or name not in {*PAIRWISE, *RANKED, *ALIASES}:
            known = ", ".join(sorted({*PAIRWISE, *RANKED, *ALIASES}))
            raise InputError(
                "unknown measure {0!r}; known are {1}, those over positions with a depth such as 'ndcg@10'.",
                *(measure, known),
            )
        depth = None if match.group(2) is None else int(match.group(2))
        return Measure(name, k=depth, convention="letor" if convention is None else convention)
    if callable(measure):
        return FunctionMeasure(measure)
    raise ValueError(
        "a measure is a name such as 'ndcg@10', a rankrls.metrics.Measure or a function of (y_true, y_score); "
        f"got {measure!r}."
    )
