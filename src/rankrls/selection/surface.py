"""One validation surface, alphas by iterations, and the ways to read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rankrls.metrics._averages import mean_and_error
from rankrls.numerics.krylov import KrylovRun, MultiShiftCG, Status
from rankrls.selection.choice import best_within_rounding, check_judged, is_better, reaches, scale_of
from rankrls.selection.judging import Judge
from rankrls.selection.progress import progress
from rankrls.selection.rules import RULES


@dataclass
class Watched:
    """A training part: its runs, one a target, and what they are judged by.

    With ``late`` standard errors are not computed at each look but at the end, of the scores that :meth:`keep` kept:
    one of a single ranking takes several times as long as the measure.
    """

    runs: list[KrylovRun]
    judge: Judge
    late: bool = False
    mean: NDArray[np.float64] = field(init=False)
    error: NDArray[np.float64] = field(init=False)
    values: NDArray[np.float64] | None = None
    _seen: tuple[NDArray[np.intp], NDArray[np.float64]] | None = None
    _kept: NDArray[np.float64] | None = None

    @property
    def size(self) -> NDArray[np.float64]:
        """Mean absolute value of what was averaged, of each alpha."""
        assert self.values is not None
        return scale_of(self.values)

    def look(self, moved: NDArray[np.bool_]) -> None:
        """Judge anew the alphas that have moved."""
        which = np.flatnonzero(moved | (self.values is None))  # the first look is at all, moved or not
        self._seen = None
        if not len(which):
            return
        scores = np.stack([run.scores_of(which) for run in self.runs], axis=2)
        curve = self.judge.curve(scores, error=not self.late)
        assert curve.values is not None
        if self.late:
            self._seen = which, scores
        if self.values is None:
            self.mean, self.error = np.full((2, len(moved)), np.nan)
            self.values = np.full((len(curve.values), len(moved)), np.nan)
        self.mean[which], self.error[which], self.values[:, which] = curve.mean, curve.error, curve.values

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Remember the scores of some alphas, of those among them that the last look was at."""
        if self._seen is None:
            return
        places, scores = self._seen
        if self._kept is None:
            self._kept = scores.copy()
        own = which[places]
        self._kept[:, places[own]] = scores[:, own]

    def errors(self) -> NDArray[np.float64]:
        """The standard error of each alpha where it was kept last."""
        assert self._kept is not None
        return self.judge.curve(self._kept).error


@dataclass(frozen=True)
class Reading:
    """Which entry of the surface is the model.

    Attributes
    ----------
    every_iteration : bool
        Whether all iterations are looked at (hybrid, early stopping), or only where each alpha ended (Tikhonov).
    patience : int
        With ``every_iteration``: an alpha is done after so many iterations without getting better.
    """

    every_iteration: bool
    patience: int


class Surface:
    """Moves all runs, fills the surface, and knows the best entry.

    Parameters
    ----------
    cg : MultiShiftCG
    alphas : ndarray
    final : list of KrylovRun
        The runs of the model, one a target.
    parts : list of Part
        What is judged; may hold the final runs themselves. Empty: nothing is chosen.
    reading : Reading
    greater_is_better : bool
    verbose : int
        1 shows a progress bar over the iterations; 0 only on a terminal.
    """

    def __init__(
        self,
        cg: MultiShiftCG,
        alphas: NDArray[np.float64],
        final: list[KrylovRun],
        parts: list[Watched],
        reading: Reading,
        greater_is_better: bool,
        verbose: int = 0,
    ) -> None:
        self.cg, self.alphas, self.final, self.parts, self.reading = cg, alphas, final, parts, reading
        self.sign = 1.0 if greater_is_better else -1.0
        self.verbose = verbose
        self.columns: list[NDArray[np.float64]] = []
        self.errors: list[NDArray[np.float64]] = []
        self.scales: list[NDArray[np.float64]] = []
        self.best = (-1, 0)  # number of the alpha, iterations
        self.best_goodness = -np.inf
        self.iteration = 0
        self._improved = np.zeros(len(alphas), dtype=np.intp)
        self._own_best = np.full(len(alphas), -np.inf)
        runs = {id(run): run for run in [*final, *(run for part in parts for run in part.runs)]}
        self._runs = list(runs.values())
        self._late = [part for part in parts if part.late] if len(parts) == 1 else []

    def run(self) -> None:
        """To the end of the reading."""
        for _ in progress(range(self.cg.max_iter), self.verbose, "iterations"):
            if self._finished():
                break
            self.step()

    def step(self) -> None:
        """One iteration of everything that still moves."""
        moved = self._moving()
        for run in self._runs:
            self.cg.step(run)
        self.iteration += 1
        for part in self.parts:
            part.look(moved)
        self._record()

    def choose_by(self, rule: str, restart: Callable[[], list[KrylovRun]]) -> None:
        """Choose by a rule from the whole surface: the largest alpha first, then the fewest iterations.

        The best entry's solution was kept on the way; another one is reached by running as far again.
        """
        if not self.columns or rule == "best":
            return
        table, errors, scales = self.table(), np.column_stack(self.errors), np.column_stack(self.scales)
        if not self.reading.every_iteration:
            table, errors, scales = table[:, -1:], errors[:, -1:], scales[:, -1:]
        order = np.argsort(-self.alphas, kind="stable")
        found = RULES[rule](self.sign * table[order].ravel(), errors[order].ravel(), scales[order].ravel())
        k, column = int(order[found // table.shape[1]]), found % table.shape[1]
        if not self.reading.every_iteration:
            self._choose(k, float(self.sign * table[k, 0]))
        elif (k, column + 1) != self.best:
            self.final = restart()
            for _ in range(column + 1):
                for run in self.final:
                    self.cg.step(run)
            self._choose(k, float(self.sign * table[k, column]))

    def at_best(self, scores: NDArray[np.float64], errors: NDArray[np.float64]) -> tuple[float, float]:
        """The measure of the choice and its standard error, given the readings of each alpha."""
        k, n_iter = self.best
        if not self.columns or not self.reading.every_iteration:
            return float(scores[k]), float(errors[k])
        place = min(max(n_iter, 1), len(self.columns)) - 1
        return float(self.columns[place][k]), float((errors if self._late else self.errors[place])[k])

    def solutions(self) -> list[NDArray[np.float64]]:
        """The best entry's coefficients, one array a target."""
        found = [run.marked() for run in self.final]
        return [np.zeros(run.system.size) if x is None else x for run, x in zip(self.final, found, strict=True)]

    def table(self) -> NDArray[np.float64]:
        """The surface, (alphas, iterations)."""
        return np.column_stack(self.columns) if self.columns else np.empty((len(self.alphas), 0))

    def readings(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
        """Of each alpha: its measure as it is read, the standard error, and the iterations."""
        count = len(self.alphas)
        if not self.columns:
            return np.full(count, np.nan), np.full(count, np.nan), self.iterations()
        table, errors = self.table(), np.column_stack(self.errors)
        n_iter = self.iterations()
        if self.reading.every_iteration:
            n_iter = np.maximum(self._improved, 1)
        place = np.minimum(np.maximum(n_iter, 1), table.shape[1]) - 1
        every = np.arange(count)
        read = self._late[0].errors() if self._late else errors[every, place]
        return table[every, place], read, n_iter

    def iterations(self) -> NDArray[np.intp]:
        """Iterations of each alpha's solution, the most of any target."""
        return np.max([run.iterations for run in self.final], axis=0).astype(np.intp)

    def status(self) -> list[str]:
        """What became of each alpha, the worst of all targets; "stopped" where the reading did not wait."""
        order = [Status.CONVERGED, Status.RUNNING, Status.MAX_ITER, Status.STAGNATED, Status.BREAKDOWN]
        worst = [max(words, key=order.index) for words in zip(*(run.status for run in self.final), strict=True)]
        return ["stopped" if word is Status.RUNNING else str(word) for word in worst]

    @property
    def still_improving(self) -> bool:
        """Whether the iterations ended before patience did, with the best entry among the last."""
        waiting = self.iteration - self.best[1] < self.reading.patience
        return self.reading.every_iteration and self.iteration >= self.cg.max_iter and waiting

    def _moving(self) -> NDArray[np.bool_]:
        return np.any([run.running for run in self._runs], axis=0)

    def _finished(self) -> bool:
        if self.iteration >= self.cg.max_iter:
            return True
        if not self.iteration:
            return False  # what has nothing to learn from is judged once, too
        moving = self._moving()
        if not self.reading.every_iteration:
            return not moving.any()
        impatient = self.iteration - self._improved < self.reading.patience
        return not (moving & impatient).any()

    def _record(self) -> None:
        if not self.parts:
            self._choose(0)
            return
        if len(self.parts) == 1:
            mean, error, size = self.parts[0].mean, self.parts[0].error, self.parts[0].size
        else:
            values = np.vstack([part.values for part in self.parts if part.values is not None])
            mean, error = mean_and_error(values)
            size = scale_of(values)
        self.columns.append(np.array(mean))
        self.errors.append(np.array(error))
        self.scales.append(np.array(size))
        check_judged(mean)
        goodness, scale = self.sign * mean, self.scales[-1]
        better = is_better(goodness, self._own_best, scale)
        for part in self._late:
            part.keep(better if self.reading.every_iteration else self.iterations() >= self.iteration)
        self._improved[better] = self.iteration
        self._own_best[better] = goodness[better]
        if self.reading.every_iteration:
            if not better.any():
                return
            goodness[~better] = np.nan
        equal = best_within_rounding(goodness, scale)
        first = int(max(np.flatnonzero(equal), key=lambda k: self.alphas[k]))
        top = float(goodness[first])
        larger = self.alphas[first] > self.alphas[self.best[0]]
        replaces = is_better(top, self.best_goodness, scale[first]) or (
            larger and reaches(top, self.best_goodness, scale[first])
        )
        # Without a look at every iteration the last column decides: where each alpha ended.
        if replaces or not self.reading.every_iteration:
            self._choose(first, top)

    def _choose(self, k: int, goodness: float = np.nan) -> None:
        n_iter = int(max(run.iterations[k] for run in self.final))
        for run in self.final:
            run.mark(k)
        self.best, self.best_goodness = (k, n_iter if not self.parts else min(n_iter, self.iteration)), goodness
