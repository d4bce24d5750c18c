"""The 2007 paper's protocol, section 3.1: choose on a fold's validation queries, judge on its test queries.

A method is fitted on one fold at a time and gives scores of the test documents, of the choice and of the choices that
the validation queries cannot tell from it. Everything else is judged here, for all methods alike.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _letor_data import Fold, Rows
from numpy.typing import NDArray

from rankrls.metrics import Measure, average_precision, evaluate

__all__ = ["CHOICE", "MEASURES", "NEARLY_EQUAL", "Family", "Fitted", "Method", "Outcome", "run_fold", "timed"]

MEASURES = ("map", *(f"ndcg@{k}" for k in range(1, 11)), *(f"p@{k}" for k in range(1, 11)))
CHOICE = Measure("map", convention="letor")
"""What everything is chosen by, on the validation queries."""
NEARLY_EQUAL = 0.005
"""Differences of this size in MAP are called none, between the paper and us as between choices on validation data."""


@dataclass(frozen=True)
class Fitted:
    """What a method made of a fold.

    Attributes
    ----------
    scores : ndarray of shape (test documents,)
    settings : dict
        What was chosen, plain values.
    selection : str
        How, in words.
    chosen_by : float
        Validation MAP of the choice.
    fit_seconds : float
        Choosing included.
    predict_seconds : float
        All test documents.
    equally_good : ndarray of shape (test documents, choices), optional
        Scores of the choices whose validation MAP is within ``NEARLY_EQUAL`` of the best.
    at_edge : bool
        Whether the choice is at an end of its grid.
    """

    scores: NDArray[np.float64]
    settings: dict[str, Any]
    selection: str
    chosen_by: float
    fit_seconds: float
    predict_seconds: float
    equally_good: NDArray[np.float64] | None = None
    at_edge: bool = False


@dataclass(frozen=True)
class Method(ABC):
    """One learner of the tables.

    Attributes
    ----------
    name, what : str
    paper : str, optional
        The name in the paper's tables of what it is compared with.
    variant : bool
        Whether it is another of the same kind, which takes no part in the tests of pairs of methods.
    """

    name: str
    what: str
    paper: str | None = field(default=None, kw_only=True)
    variant: bool = field(default=False, kw_only=True)

    @abstractmethod
    def fit(self, fold: Fold) -> Fitted:
        """Learn from the training queries, choose by the validation queries, score the test queries."""

    def words(self, settings: dict[str, Any]) -> str:
        """The settings, short enough for a table."""
        return ", ".join(f"{name} {value}" for name, value in settings.items())


@dataclass(frozen=True)
class Family:
    """Methods of one kind, the note that goes with them, and why they cannot be run here (None where they can)."""

    name: str
    methods: tuple[Method, ...]
    note: str
    missing: Callable[[], str | None] = lambda: None


@dataclass(frozen=True)
class Outcome:
    """One method on one fold.

    Attributes
    ----------
    test : dict from a measure to its mean over the test queries
    per_query : dict from a measure to its value for each test query
    ranges : dict from a measure to the least and largest figure of equally good choices; empty where there are none
    """

    fold: int
    settings: dict[str, Any]
    selection: str
    chosen_by: float
    fit_seconds: float
    predict_seconds: float
    test: dict[str, float]
    per_query: dict[str, NDArray[np.float64]] = field(repr=False)
    ranges: dict[str, tuple[float, float]]
    map_of_label_2: float
    at_edge: bool


def run_fold(method: Method, fold: Fold) -> Outcome:
    """Fit, and judge on the test queries."""
    fitted = method.fit(fold)
    per_query, means, strict = judged(fold.test, fitted.scores)
    ranges = {}
    if fitted.equally_good is not None:
        figures = evaluate(fold.test.y, fitted.equally_good, qid=fold.test.qid, measures=MEASURES, convention="letor")
        ranges = {measure: (float(np.min(values)), float(np.max(values))) for measure, values in figures.items()}
    return Outcome(
        fold.number,
        fitted.settings,
        fitted.selection,
        fitted.chosen_by,
        fitted.fit_seconds,
        fitted.predict_seconds,
        means,
        per_query,
        ranges,
        strict,
        fitted.at_edge,
    )


def judged(test: Rows, scores: NDArray[np.float64]) -> tuple[dict[str, NDArray[np.float64]], dict[str, float], float]:
    """Every measure of each query, their means, and the MAP that counts label 2 alone as relevant."""
    per_query = evaluate(test.y, scores, qid=test.qid, measures=MEASURES, convention="letor", per_query=True)
    means = {measure: float(np.mean(values)) for measure, values in per_query.items()}
    strict = average_precision(test.y, scores, qid=test.qid, convention="letor", relevant=2)
    return per_query, means, float(strict)


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of one run, and what it returned."""
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result
