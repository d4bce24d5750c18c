"""How far a search has come, and how long the rest will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankrls.selection.costs import SURELY_SHORT, Cost, Speed, in_words

_SECONDS_BETWEEN_LINES = 0.5
_WORTH_SAYING = 2.0
_USUAL = Speed(1e-10, 3e-10)
_OVERHEAD = 0.05
"""Seconds that a candidate takes besides."""


class Step(NamedTuple):
    """Where a search is, before the first candidate and after each.

    Attributes
    ----------
    done, total : int
        Candidates; a total of 0 is not known.
    score : float
        The best measure so far; NaN before the first.
    left : float
        Seconds that the rest will take, estimated; NaN if nothing is known.
    """

    done: int
    total: int
    score: float
    left: float

    def words(self, measure: str = "best") -> str:
        """The same in words."""
        found = "" if np.isnan(self.score) else f", {measure} so far {self.score:.4f}"
        return f"{self.done}{f' of {self.total}' if self.total else ''} candidates{found}"


class Meter:
    """Tells how far a search has come.

    Parameters
    ----------
    report : callable or None
        Is given each :class:`Step`.
    costs : sequence of Cost
        Of the candidates, in their order. How long the rest takes follows from what those that are done have taken.
    """

    def __init__(self, report: Callable[[Step], None] | None, costs: Sequence[Cost]) -> None:
        self._report, self._done, self._start = report, 0, time.perf_counter()
        total = sum(costs, Cost())
        measured = report is not None and total.products + total.cubes > SURELY_SHORT
        speed = Speed.measured() if measured else _USUAL
        self._seconds = [speed.seconds(cost) + _OVERHEAD for cost in costs]
        self._tell(np.nan)

    def step(self, score: float) -> None:
        """A candidate is done."""
        self._done += 1
        self._tell(score)

    def _tell(self, score: float) -> None:
        if self._report is not None:
            self._report(Step(self._done, len(self._seconds), score, self._left()))

    def _left(self) -> float:
        before, rest = sum(self._seconds[: self._done]), sum(self._seconds[self._done :])
        took = time.perf_counter() - self._start
        if before > 0.0:
            return rest * took / before
        return rest if rest > 0.0 else np.nan


def time_left(seconds: float) -> str:
    """The end of a sentence; nothing if it is not known."""
    return f", about {in_words(seconds)} left" if seconds > 0.0 else ""


def reporter(verbose: Any, name: str) -> Callable[[Any], None] | None:
    """What ``verbose`` stands for: nothing, lines on standard error, or a function of each step."""
    if callable(verbose):
        return verbose
    return progress_lines(name) if verbose else None


def progress_lines(name: str) -> Callable[[Any], None]:
    """Writes a line on standard error now and then, the first one at once if there is some time to wait.

    So is one that says what memory will be taken.
    """
    last = [time.monotonic()]

    def report(at: Any) -> None:
        now = time.monotonic()
        first = getattr(at, "done", 1) == 0 and (at.left > _WORTH_SAYING or hasattr(at, "memory"))
        if now - last[0] < _SECONDS_BETWEEN_LINES and not first:
            return
        last[0] = now
        sys.stderr.write(f"{name}: {at.words()}{time_left(at.left)}\n")

    return report
