"""The one search: candidates times the values of their parameter, judged by a plan, chosen by a rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import Comparisons
from rankrls.problems.problem import Problem, Solutions
from rankrls.problems.spreads import Spreads
from rankrls.selection.candidates import Candidate
from rankrls.selection.choice import check_judged, is_better
from rankrls.selection.judging import Curve
from rankrls.selection.plans import Plan
from rankrls.selection.progress import Meter
from rankrls.selection.rules import RULES, best

_AT_EDGE = "_at_edge_"
_JUDGED = ("mean_score", "standard_error", "low", "high")
"""Columns of ``cv_results_``; the last two if a curve has an interval."""


def choices_at_edges(estimator: Any) -> dict[str, bool]:
    """Of each parameter that a fitted estimator chose from a grid (its name in ``best_params_``): is it at an edge?"""
    return {
        name.removesuffix(_AT_EDGE): bool(value) for name, value in vars(estimator).items() if name.endswith(_AT_EDGE)
    }


def ends_of_grids(estimator: Any) -> dict[str, str]:
    """Of each parameter that was chosen at an edge of its grid: is it the "largest" or the "smallest" value?

    The ends are those of all combinations: an automatic grid is each one's own, and the nearer end then counts.
    """
    out = {}
    for name in (name for name, at_edge in choices_at_edges(estimator).items() if at_edge):
        value = estimator.best_params_[name]
        tried = [v for v in estimator.cv_results_[name].tolist() if v is not None]  # other kernels may not have it
        low, high = min(tried), max(tried)
        out[name] = "largest" if value == high or (value != low and value**2 > low * high) else "smallest"
    return out


@dataclass(frozen=True, eq=False)
class Chosen:
    """A candidate that was chosen, its solution, and what its problem knows of the features."""

    candidate: Candidate
    solutions: Solutions
    spreads: Spreads | None


@dataclass
class Results:
    """Collects one curve a candidate and keeps the best one's state, so that only that much stays in memory.

    ``values`` has the measure of each query or block at every entry of each curve, if it is known.

    The rule works inside each curve; between candidates the best value decides, and of equals the first.
    """

    greater_is_better: bool
    rule: str
    parameter: str = "alpha"
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    best_index: int = -1
    best_value: float = np.nan
    best_score: float = np.nan
    best_error: float = np.nan
    best_choices: dict[str, Any] = field(default_factory=dict)
    best_state: Any = None
    best_values: NDArray[np.float64] | None = None
    best_scores: NDArray[np.float64] | None = None
    at_edge: bool = False
    values: list[NDArray[np.float64] | None] = field(default_factory=list)
    _top: float = -np.inf

    def add(self, choices: dict[str, Any], values: NDArray[np.float64], curve: Curve) -> bool:
        """Take the curve of one candidate: the values of ``parameter``, the simplest model first.

        Returns whether it is the best one so far.
        """
        first = len(self.rows)
        self.values.append(curve.values)
        columns = (values, curve.mean, curve.error, *(curve.interval or ()))
        self.rows.extend((choices, *numbers) for numbers in zip(*(c.tolist() for c in columns), strict=True))
        goodness = curve.mean if self.greater_is_better else -curve.mean
        check_judged(goodness)
        top = best(goodness, curve.error, curve.size)
        if not is_better(goodness[top], self._top, curve.size[top]):
            return False
        self._top = float(goodness[top])
        k = RULES[self.rule](goodness, curve.error, curve.size)
        self.best_index = first + k
        self.best_value = float(values[k])
        self.best_score, self.best_error = float(curve.mean[k]), float(curve.error[k])
        self.best_choices, self.best_state = choices, None
        self.best_values = None if curve.values is None else curve.values[:, k].copy()
        self.best_scores = None if curve.scores is None else curve.scores[:, k].copy()
        self.at_edge = len(values) > 2 and k in (0, len(values) - 1)
        return True

    @property
    def edges(self) -> dict[str, bool]:
        """Of the parameter, and of each choice among several numbers: is the best at an end of three or more?

        A choice is compared with those of the candidates that differ from the best in nothing else.
        """
        out = {self.parameter: self.at_edge}
        for name, value in self.best_choices.items():
            others = self.best_choices | {name: None}
            tried = {choices[name] for choices, *_ in self.rows if choices | {name: None} == others}
            if isinstance(value, Real) and len(tried) > 1:
                out[name] = len(tried) > 2 and value in (min(tried), max(tried))
        return out

    def table(self) -> dict[str, NDArray[Any]]:
        """Columns for ``cv_results_``."""
        columns: dict[str, NDArray[Any]] = {}
        for name in dict.fromkeys(name for choices, *_ in self.rows for name in choices):
            column = np.empty(len(self.rows), dtype=object)
            column[:] = [choices.get(name) for choices, *_ in self.rows]
            columns[name] = column
        numbers = np.array([row[1:] for row in self.rows], dtype=np.float64).T
        return columns | dict(zip((self.parameter, *_JUDGED), numbers.copy(), strict=False))


def search(
    candidates: Iterable[Candidate],
    comparisons: Comparisons,
    plan: Plan,
    rule: str,
    values: NDArray[np.float64] | None,
    meter: Meter | None = None,
) -> Results:
    """Judge every candidate at every value, and solve for the one that is chosen, the state of the results.

    Parameters
    ----------
    candidates : iterable of Candidate
        A generator if candidates hold much: one at a time is in memory, with its problem.
    comparisons : Comparisons
    plan : Plan
    rule : str
        One of :data:`rankrls.selection.rules.RULES`.
    values : ndarray or None
        The values of the problems' parameter, the simplest model first; None for an automatic grid of each.
    meter : Meter, optional
        Is told of each candidate that has been judged.
    """
    results = Results(plan.greater_is_better, rule)
    for candidate in candidates:
        problem = candidate.problem(comparisons)
        results.parameter = problem.parameter
        grid = plan.axis(problem) if values is None else values
        curve = plan.curve(comparisons, candidate, problem, grid)
        if results.add(candidate.choices, grid, curve):
            # What is kept of the best candidate is small; its problem may hold matrices of all items.
            results.best_state = _chosen(candidate, problem, results.best_value)
        del candidate, problem, curve
        if meter is not None:
            meter.step(results.best_score)
    return results


def _chosen(candidate: Candidate, problem: Problem, value: float) -> Chosen:
    return Chosen(candidate, problem.path(np.array([value])), problem.spreads)
