"""Search over candidates and values of their parameter, evaluated by a plan and selected by a rule.

Rounding must not decide: averages that are equal in exact arithmetic differ in their last digits, depending on the
order of the rows and on the number of threads. Every selection by a measure therefore compares with ``is_better`` and
``reaches``. To add a rule, add a function and its name to ``RULES``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from rankrls._comparisons import Data
from rankrls._compiled import blas_threads_for
from rankrls._curves import Curve
from rankrls._errors import InputError
from rankrls._problems import Candidate, S, Solutions
from rankrls._typing import AnyArray, Array, Mask, Values
from rankrls.selection.plans import Plan

T = TypeVar("T")
_BAR: ContextVar[bool] = ContextVar("bar", default=False)
"""Whether a bar is shown: jobs inside it show no other."""
EQUAL = 1e-10
"""Relative difference up to which averages count as equal.

It is far above the rounding of an average and far below any difference that a selection should rest on.
"""
Rule = Callable[[Array, Array, Array], int]
"""Function of the goodness of each value (NaN if it could not be evaluated), its standard error, and the scale of its
rounding; the simplest model is first."""


def best(goodness: Array, error: Array, scale: Array) -> int:
    """Index of the best value; ties go to the simplest."""
    return int(best_within_rounding(goodness, scale).argmax())


def one_standard_error(goodness: Array, error: Array, scale: Array) -> int:
    """Index of the simplest value within one standard error of the best one (Breiman et al. 1984)."""
    top = best(goodness, error, scale)
    if np.isnan(error[top]):
        return top
    return int(reaches(goodness, goodness[top] - error[top], scale[top]).argmax())


RULES: dict[str, Rule] = {"best": best, "one_se": one_standard_error}


def best_within_rounding(goodness: Array, scale: Any) -> Mask:
    """Mask of the entries that equal the largest one of their column, ignoring NaN."""
    return np.asarray(reaches(goodness, np.fmax.reduce(goodness), scale))


def is_better(new: Any, old: Any, scale: Any) -> Any:
    """Whether a value exceeds another by more than rounding, for single values or arrays."""
    return new > old + EQUAL * scale


def reaches(value: Any, level: Any, scale: Any) -> Any:
    """Whether a value is at least a level, up to rounding, for single values or arrays. False for NaN."""
    return value >= level - EQUAL * scale


class Entry(NamedTuple):
    """A row of the table of results: a candidate at one value of its parameter.

    Attributes
    ----------
    choices : dict
        Parameters chosen with the candidate.
    numbers : tuple of float
        The value, mean and standard error of the measure, and the bounds of its interval, if any.
    """

    choices: Values
    numbers: tuple[float, ...]


@dataclass
class SearchState(Generic[S]):
    """Collects one curve per candidate and stores only the state of the best one, to bound memory.

    ``mutual`` is that of the plan. ``per_block`` contains the measure of each query or block at every entry of each
    curve, if known. A search adds the best ``candidate``, its ``solutions`` at the selected value, and the feature that
    rounding hides.

    The rule applies inside each curve; between candidates, the best value decides, and ties go to the first.
    """

    greater_is_better: bool
    rule: str
    parameter: str = "alpha"
    mutual: bool = False
    rows: list[Entry] = field(default_factory=list)
    best_index: int = -1
    best_value: float = np.nan
    best_score: float = np.nan
    best_error: float = np.nan
    best_choices: Values = field(default_factory=dict)
    candidate: Candidate[S] | None = None
    solutions: S | None = None
    lost_feature: int | None = None
    best_block_scores: Array | None = None
    best_scores: Array | None = None
    best_shift: float = 0.0
    at_edge: bool = False
    per_block: list[Array] = field(default_factory=list)
    _top: float = -np.inf

    def add(self, choices: Values, values: Array, curve: Curve) -> bool:
        """Add the curve of one candidate: the values of ``parameter``, the simplest model first.

        Returns whether it is the best one so far.
        """
        first = len(self.rows)
        self.per_block.append(curve.per_block)
        columns = (values, curve.mean, curve.error, *(() if curve.interval is None else curve.interval))
        self.rows.extend(Entry(choices, tuple(numbers)) for numbers in np.column_stack(columns).tolist())
        goodness = curve.mean if self.greater_is_better else -curve.mean
        check_evaluated(goodness)
        top = best(goodness, curve.error, curve.size)
        if not is_better(goodness[top], self._top, curve.size[top]):
            return False
        self._top = float(goodness[top])
        k = RULES[self.rule](goodness, curve.error, curve.size)
        self.best_index = first + k
        self.best_choices = choices
        self.best_value, self.best_score, self.best_error = (float(c[k]) for c in columns[:3])
        self.best_block_scores = curve.per_block[:, k].copy()
        self.best_scores = None if curve.scores is None else curve.scores(k)
        self.best_shift = curve.shift_of(k)
        self.at_edge = bool(at_open_end(k, goodness, curve.size[k]))
        return True

    @property
    def edges(self) -> dict[str, bool]:
        """Whether the best value of the parameter, and of each choice among numbers, is at an end of three or more.

        A choice is compared with those of the candidates that differ from the best in nothing else.
        """
        out = {self.parameter: self.at_edge}
        for name, value in self.best_choices.items():
            others = self.best_choices | {name: None}
            tried = {choices[name] for choices, _ in self.rows if choices | {name: None} == others}
            if isinstance(value, Real) and len(tried) > 1:
                out[name] = len(tried) > 2 and value in (min(tried), max(tried))
        return out

    def table(self) -> dict[str, AnyArray]:
        """Columns for ``cv_results_``."""
        columns: dict[str, AnyArray] = {}
        for name in dict.fromkeys(name for choices, _ in self.rows for name in choices):
            columns[name] = np.fromiter((choices.get(name) for choices, _ in self.rows), dtype=object)
        numbers = np.array([row.numbers for row in self.rows], dtype=np.float64).T
        names = (self.parameter, "mean_score", "standard_error", "low", "high")  # the last two if there is an interval
        return columns | dict(zip(names, numbers.copy(), strict=False))


def search(
    candidates: Iterable[Candidate[S]], data: Data, plan: Plan, rule: str, values: Array | None
) -> SearchState[S]:
    """Evaluate every candidate at every value, and solve for the selected one.

    Parameters
    ----------
    candidates : iterable
        Candidates; a generator if they are large, because only one is in memory at a time, with its problem.
    data : Data
    plan : Plan
    rule : str
        Key of :data:`RULES`.
    values : ndarray or None
        Values of the problems' parameter, the simplest model first; None for an automatic grid for each problem.
    """
    results: SearchState[S] = SearchState(plan.measure.greater_is_better, rule, mutual=plan.mutual)
    for candidate in progress(candidates):
        # a small fit ends before BLAS threads that wake up do useful work
        with blas_threads_for(_operations(candidate, data)):
            problem = candidate.problem(data)
            results.parameter = problem.parameter
            grid = problem.axis() if values is None else values
            curve = plan.curve(data, candidate, problem, grid)
            if results.add(candidate.choices, grid, curve):
                # The stored state of the best candidate is small; its problem may contain matrices of all items.
                results.candidate = candidate
                results.solutions = problem.path(np.array([results.best_value]))
                results.lost_feature = problem.lost_feature
            del candidate, problem, curve
    return results


def _operations(candidate: Candidate[Solutions], data: Data) -> float:
    """Approximate number of multiplications for a candidate."""
    rows, columns = data.size
    coefficients = min(rows, columns) if candidate.kernel.is_linear else rows
    return float(coefficients) ** 2 * max(rows, columns)


def progress(items: Iterable[T], what: str = "candidates") -> Iterator[T]:
    """Yield the items. On a terminal, a bar shows the number done, unless it would be inside another bar."""
    if _BAR.get() or sys.stderr is None or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    _BAR.set(True)
    try:
        yield from track(items, what, console=Console(stderr=True), transient=True)
    finally:
        _BAR.set(False)


def check_evaluated(averages: Array) -> None:
    """Refuse averages that are all NaN."""
    if np.isnan(averages).all():
        raise InputError(
            "No held-out query has two different labels, or the measure is NaN for each, so nothing can be evaluated. "
            "Use other folds (cv) or validation data.",
            parameter="cv",
        )


def at_open_end(k: Any, goodness: Array, size: Any) -> Any:
    """Whether value k is the first or last of three or more and differs from its neighbour: others may be better."""
    ends = ((0, 1), (len(goodness) - 1, len(goodness) - 2)) if len(goodness) > 2 else ()
    apart = [(k == end) & ~(abs(goodness[end] - goodness[inner]) <= EQUAL * size) for end, inner in ends]
    return np.any(apart, axis=0)
