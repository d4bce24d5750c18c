"""Conjugate gradients evaluated at every iteration: their systems, and the surface of alphas by iterations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from rankrls._comparisons import DataInMemory, Setting
from rankrls._curves import Curve, scale_of
from rankrls._typing import Array, Index, Mask, Matrix
from rankrls.kernels import Kernel
from rankrls.metrics._values import mean_and_error
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.krylov import FeatureSystem, KernelSystem, KrylovRun, MultiShiftCG, Status, System
from rankrls.numerics.products import LaplacianProduct, RowProducts
from rankrls.selection.optimism import bias_of_choice, runs_of_blocks
from rankrls.selection.rules import RULES, best_within_rounding, is_better, reaches
from rankrls.selection.search import check_evaluated, progress

_BLOCKS = 200
"""Values of the surface are kept of so many blocks; of more, the means of runs of them."""


@dataclass(frozen=True, eq=False)
class KrylovSystems:
    """Comparisons of items that are a feature matrix, or a kernel matrix or operator; X is never copied."""

    comparisons: DataInMemory
    kernel: Kernel
    setting: Setting

    @property
    def _rows(self) -> Index:
        """The rows of X of all items: a LinearOperator has those of weight zero too."""
        data = self.comparisons
        if data.kept is not None and isinstance(data.X, LinearOperator):
            return np.flatnonzero(data.kept)
        return np.arange(data.n_rows, dtype=np.intp)

    def build(self, train: Index | None, watched: Matrix) -> list[tuple[System, Array]]:
        """A system with its right side for each target; ``train`` are the units to fit, None for all.

        ``watched`` are the numbers of items whose scores are evaluated, a matrix of other items, or None.
        """
        data = self.comparisons
        every = self._rows
        part = data if train is None else data.take(train, items=False)
        rows = every if train is None else every[data.items_of(train)]
        by_number = isinstance(watched, np.ndarray) and watched.ndim == 1
        count = 0 if watched is None else watched.shape[0]
        scores = None
        if self.kernel.is_linear and watched is not None:
            scores = (RowProducts(data.X, watched) if by_number else RowProducts(watched, np.arange(count))).scores
        out: list[tuple[System, Array]] = []
        for graph in part.numeric_graphs(self.setting):
            here = replace(graph, rows=rows[graph.rows]) if isinstance(graph, LabelledGraph) else graph
            columns = [np.ascontiguousarray(t) for t in here.target.T]
            if self.kernel.is_linear:
                product = LaplacianProduct(data.X, here)
                of_features = FeatureSystem(product, scores, count)
                out += [(of_features, product.right_side(t)) for t in columns]
            else:
                of_kernel = KernelSystem(data.X, here, every[watched] if by_number else watched, count)
                out += [(of_kernel, t) for t in columns]
        return out


@dataclass(eq=False)
class Watched:
    """A training part: its runs, one for each target, and the function that evaluates their scores."""

    runs: list[KrylovRun]
    evaluate: Callable[..., Curve]
    curve: Curve | None = None

    def look(self, moved: Mask) -> Curve:
        """The measure of every alpha; only those that have moved are evaluated again."""
        which = np.flatnonzero(moved | (self.curve is None))
        found = self.evaluate(self.scores(which))
        if self.curve is None:
            self.curve = found
            return found
        self.curve.mean[which] = found.mean
        self.curve.error[which] = found.error
        if self.curve.per_block is not None:
            self.curve.per_block[:, which] = found.per_block
        return self.curve

    def scores(self, which: Index) -> Array:
        """Scores by the iterates of some alphas, (items, alphas, targets)."""
        return np.stack([run.scores_of(which) for run in self.runs], axis=2)


@dataclass(eq=False)
class Surface:
    """Advances all runs, records the surface, and remembers the best point.

    Parameters
    ----------
    cg : MultiShiftCG
    alphas : ndarray
    final : list of KrylovRun
        The runs of the model, one a target.
    parts : list of Watched
        What is evaluated; may hold the final runs themselves. Empty: nothing is chosen.
    every_iteration : bool
        Whether all iterations are looked at (hybrid, early stopping), or only where each alpha ended (Tikhonov).
    patience : int
        With ``every_iteration``: an alpha is done after so many iterations without getting better.
    greater_is_better : bool
    verbose : int
        1 shows a progress bar over the iterations; 0 only on a terminal.
    """

    cg: MultiShiftCG
    alphas: Array
    final: list[KrylovRun]
    parts: list[Watched]
    every_iteration: bool
    patience: int
    greater_is_better: bool
    verbose: int = 0
    best: tuple[int, int] = (-1, 0)  # number of the alpha, iterations
    iteration: int = 0

    def __post_init__(self) -> None:
        self.sign = 1.0 if self.greater_is_better else -1.0
        # of each alpha after each iteration: the measure, its standard error, and the scale of its rounding
        self._means = list[Array]()
        self._errors = list[Array]()
        self._sizes = list[Array]()
        self._values = list[Array]()  # of each block and alpha
        self._best_goodness = -np.inf
        self._row = 0
        self._improved = np.zeros(len(self.alphas), dtype=np.intp)
        self._own_best = np.full(len(self.alphas), -np.inf)
        runs = {id(run): run for run in [*self.final, *(run for part in self.parts for run in part.runs)]}
        self._runs = list(runs.values())

    def run(self) -> None:
        """Iterate until nothing moves or patience ends; the measure is evaluated after each iteration."""
        for _ in progress(range(self.cg.max_iter), self.verbose, "iterations"):
            moving = np.any([run.running for run in self._runs], axis=0)
            waiting = self.iteration - self._improved < self.patience
            # what has nothing to learn from is evaluated once, too
            if self.iteration and not (moving & waiting if self.every_iteration else moving).any():
                break
            for run in self._runs:
                self.cg.step(run)
            self.iteration += 1
            if self.parts:
                self._record([part.look(moving) for part in self.parts])
            else:
                self._choose(0)

    def choose_by(self, rule: str, restart: Callable[[], list[KrylovRun]]) -> None:
        """Choose by a rule from the whole surface: the largest alpha first, then the fewest iterations.

        The best entry's solution was kept on the way; another one is reached by running as far again.
        """
        if not self._means or rule == "best":
            return
        order = np.argsort(-self.alphas, kind="stable")
        rows = slice(None if self.every_iteration else -1, None)
        every = (np.array(values[rows]).T[order] for values in (self._means, self._errors, self._sizes))
        mean, error, size = (values.ravel() for values in every)
        place, row = divmod(RULES[rule](self.sign * mean, error, size), len(mean) // len(order))
        k = int(order[place])
        if self.every_iteration:
            if (k, row) == (self.best[0], self._row):
                return
            self._row = row
            self.final = restart()
            for _ in range(row + 1):
                for run in self.final:
                    self.cg.step(run)
        self._choose(k)

    def optimism(self, rule: str) -> float:
        """Optimism of the measure of the choice; see :func:`bias_of_choice`."""
        if not self._values:
            return np.nan
        order = np.argsort(-self.alphas, kind="stable")
        kept = self._values if self.every_iteration else self._values[-1:]
        values = np.stack(kept, axis=2)[:, order]
        place = int(np.flatnonzero(order == self.best[0])[0])
        own = place * len(kept) + (self._row if self.every_iteration else 0)

        def choose(values: Array, counts: Array, mean: Array, error: Array) -> int:
            return RULES[rule](mean, error, np.abs(mean))

        return bias_of_choice(self.sign * values.reshape(len(values), -1), own, choose, mutual=len(self.parts) > 1)

    def at_best(self) -> tuple[float, float]:
        """The measure of the choice and its standard error."""
        if not self._means:
            return np.nan, np.nan
        return float(self._means[self._row][self.best[0]]), float(self._errors[self._row][self.best[0]])

    def solutions(self) -> list[Array]:
        """The best entry's coefficients, one array a target."""
        return [np.asarray(run.marked) for run in self.final]

    def table(self) -> Array:
        """The surface, (alphas, iterations)."""
        return np.reshape(self._means, (-1, len(self.alphas))).T

    def readings(self) -> dict[str, NDArray[Any]]:
        """Of each alpha: its measure, at its best iteration or in the end, the standard error, and the iterations."""
        every = np.arange(len(self.alphas))
        n_iter = self.iterations()
        mean = error = np.full(len(every), np.nan)
        if self._means:
            n_iter = np.maximum(self._improved, 1) if self.every_iteration else n_iter
            rows = n_iter - 1 if self.every_iteration else -1
            mean, error = (np.array(values)[rows, every] for values in (self._means, self._errors))
        return {"alpha": self.alphas, "mean_score": mean, "standard_error": error, "n_iter": n_iter}

    def iterations(self) -> Index:
        """Iterations of each alpha's solution, the most of any target."""
        return np.asarray(np.max([run.iterations for run in self.final], axis=0).astype(np.intp))

    def status(self) -> list[str]:
        """The status of each alpha, the worst of all targets; "stopped" where patience ended first."""
        order = [Status.CONVERGED, Status.RUNNING, Status.MAX_ITER, Status.STAGNATED, Status.BREAKDOWN]
        worst = [max(words, key=order.index) for words in zip(*(run.status for run in self.final), strict=True)]
        return ["stopped" if word is Status.RUNNING else str(word) for word in worst]

    @property
    def still_improving(self) -> bool:
        """Whether the iterations ended before patience did, with the best entry among the last."""
        waiting = self.iteration - self._row <= self.patience
        return self.every_iteration and self.iteration >= self.cg.max_iter and waiting

    def _record(self, curves: list[Curve]) -> None:
        """Record the present measures, and mark the best point so far."""
        mean = curves[0].mean.copy()
        error = curves[0].error.copy()
        size = curves[0].size
        values = np.vstack([curve.per_block for curve in curves if curve.per_block is not None])
        if len(curves) > 1:
            (mean, error), size = mean_and_error(values), scale_of(values)
        self._values.append(runs_of_blocks(values[~np.isnan(values).any(axis=1)], _BLOCKS))
        check_evaluated(mean)
        goodness = self.sign * mean
        for known, new in ((self._means, mean), (self._errors, error), (self._sizes, size)):
            known.append(new)
        better = is_better(goodness, self._own_best, size)
        self._improved[better] = self.iteration
        self._own_best[better] = goodness[better]
        equal = np.flatnonzero(best_within_rounding(goodness, size))
        first = int(equal[self.alphas[equal].argmax()])
        top = float(goodness[first])
        least = self._best_goodness
        larger = self.alphas[first] > self.alphas[self.best[0]]
        replaces = is_better(top, least, size[first]) or (larger and reaches(top, least, size[first]))
        # Without a look at every iteration the last column decides: where each alpha ended.
        if replaces or not self.every_iteration:
            self._choose(first)
            self._best_goodness = top
            self._row = len(self._means) - 1

    def _choose(self, k: int) -> None:
        """Mark the present solution of alpha number k."""
        n_iter = int(max(run.iterations[k] for run in self.final))
        for run in self.final:
            run.mark(k)
        self.best = k, n_iter if not self.parts else min(n_iter, self.iteration)
