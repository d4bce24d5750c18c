"""Conjugate gradients evaluated after every iteration: their systems, and the surface of alphas by iterations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator

from rankrls._comparisons import DataInMemory, GraphSetting
from rankrls._curves import Curve, joined_curves
from rankrls._typing import AnyArray, Array, Index, Matrix
from rankrls.kernels import Kernel
from rankrls.numerics.krylov import (
    FeatureSystem,
    KernelSystem,
    KrylovRun,
    LaplacianProduct,
    RowProducts,
    Status,
    System,
)
from rankrls.selection.optimism import bias_of_choice, runs_of_blocks
from rankrls.selection.search import RULES, best_within_rounding, check_evaluated, is_better, progress

_BLOCKS = 200
"""Number of blocks whose values on the surface are stored; for more blocks, means of runs of them."""


def krylov_systems(
    data: DataInMemory, kernel: Kernel, setting: GraphSetting, train: Index | None = None, watched: Matrix = None
) -> list[tuple[System, Array]]:
    """System and right side for each target; X, a feature matrix, or a kernel matrix or operator, is never copied.

    Parameters
    ----------
    train : ndarray of int, or None
        Units to fit; None for all.
    watched : ndarray of int, matrix or None
        Numbers of items whose scores are evaluated, or a matrix of other items.
    """
    every = np.arange(data.n_rows, dtype=np.intp)
    if data.kept is not None and isinstance(data.X, LinearOperator):  # which contains items of weight zero
        every = np.flatnonzero(data.kept)
    part = data if train is None else data.take(train, items=False)
    rows = every if train is None else every[data.items_of(train)]
    by_number = isinstance(watched, np.ndarray) and watched.ndim == 1
    count = 0 if watched is None else watched.shape[0]
    scores = None
    if kernel.is_linear and watched is not None:
        products = RowProducts(data.X, watched) if by_number else RowProducts(watched, np.arange(count))
        scores = products.scores
    out: list[tuple[System, Array]] = []
    for graph in part.numeric_graphs(setting):
        here = graph.inside(rows, data.X.shape[0])
        columns = [np.ascontiguousarray(t) for t in here.target.T]
        if kernel.is_linear:
            product = LaplacianProduct(data.X, here)
            of_features = FeatureSystem(product, scores, count)
            out += [(of_features, product.right_side(t)) for t in columns]
        else:
            of_kernel = KernelSystem(data.X, here, every[watched] if by_number else watched, count)
            out += [(of_kernel, t) for t in columns]
    return out


class Watched(NamedTuple):
    """A training part: its runs, one per target, and the function that evaluates their scores."""

    runs: list[KrylovRun]
    evaluate: Callable[[Array], Curve]

    def curve(self) -> Curve:
        """Measure of every alpha."""
        every = np.arange(len(self.runs[0].alphas))
        return self.evaluate(np.stack([run.scores_of(every) for run in self.runs], axis=2))


@dataclass(eq=False)
class Surface:
    """Advances all runs, records the surface, and stores the best point.

    Parameters
    ----------
    alphas : ndarray
    final : list of KrylovRun
        Runs of the model, one per target.
    parts : list of Watched
        Evaluated runs, which may include the final runs. If empty, nothing is selected.
    every_iteration : bool
        Whether all iterations are evaluated (hybrid, early stopping), or only the last one of each alpha (Tikhonov).
    patience : int
        With ``every_iteration``, number of iterations without improvement after which an alpha is done.
    sign : float
        1 if a greater value of the measure is better, otherwise -1.
    """

    alphas: Array
    final: list[KrylovRun]
    parts: list[Watched]
    every_iteration: bool
    patience: int
    sign: float
    best: tuple[int, int] = (-1, 0)  # number of the alpha, number of iterations
    iteration: int = 0

    def __post_init__(self) -> None:
        self._columns = list[Curve]()
        self._best_goodness = -np.inf
        self._row = 0
        self._order = np.argsort(-self.alphas, kind="stable")
        self._selected = 0
        self.solutions = list[Array]()
        self._max_iter = self.final[0].max_iter
        self._improved = np.zeros(len(self.alphas), dtype=np.intp)
        self._own_best = np.full(len(self.alphas), -np.inf)
        runs = {id(run): run for run in [*self.final, *(run for part in self.parts for run in part.runs)]}
        self._runs = list(runs.values())

    def run(self) -> None:
        """Iterate until nothing changes or patience ends; the measure is evaluated after each iteration."""
        for _ in progress(range(self._max_iter), "iterations"):
            moving = np.any([run.running for run in self._runs], axis=0)
            if self.every_iteration:
                moving &= self.iteration - self._improved < self.patience
            # systems without anything to learn are evaluated once, too
            if self.iteration and not moving.any():
                break
            for run in self._runs:
                run.step()
            self.iteration += 1
            if self.parts:
                self._record([part.curve() for part in self.parts])
            else:
                self._choose(0)

    def choose_by(self, rule: str, restart: Callable[[], list[KrylovRun]]) -> None:
        """Select by a rule from the whole surface: the largest alpha first, then the fewest iterations.

        The solution of the best entry was stored; another one needs a second run up to it.
        """
        if not self._columns:
            return
        columns = self._compared
        parts = [(column.mean, column.error, column.size) for column in columns]
        mean, error, size = np.stack(parts, axis=2)[:, self._order].reshape(3, -1)
        self._selected = RULES[rule](self.sign * mean, error, size)
        place, row = divmod(self._selected, len(columns))
        k = int(self._order[place])
        if self.every_iteration:
            if (k, row) == (self.best[0], self._row):
                return
            self._row = row
            self.final = restart()
            for _ in range(row + 1):
                for run in self.final:
                    run.step()
        self._choose(k)

    def optimism(self, rule: str) -> float:
        """Optimism of the measure of the selected model; see :func:`bias_of_choice`."""
        if not self._columns:
            return np.nan
        blocks = np.stack([column.per_block for column in self._compared], axis=2)[:, self._order]
        values = self.sign * blocks.reshape(len(blocks), -1)

        def choose(values: Array, counts: Array, mean: Array, error: Array) -> int:
            return RULES[rule](mean, error, np.abs(mean))

        return bias_of_choice(values, self._selected, choose, mutual=len(self.parts) > 1)

    @property
    def _compared(self) -> list[Curve]:
        """Columns among which a model is selected."""
        return self._columns if self.every_iteration else self._columns[-1:]

    def at_best(self) -> tuple[float, float, float]:
        """Measure of the selected model, its standard error, and its change if rows are shuffled."""
        if not self._columns:
            return np.nan, np.nan, np.nan
        column = self._columns[self._row]
        k = self.best[0]
        return float(column.mean[k]), float(column.error[k]), column.shift_of(k)

    def table(self) -> Array:
        """The surface, (alphas, iterations)."""
        return np.reshape([column.mean for column in self._columns], (-1, len(self.alphas))).T

    def readings(self) -> dict[str, AnyArray]:
        """Measure of each alpha, at its best or last iteration, with standard error and number of iterations."""
        every = np.arange(len(self.alphas))
        n_iter = self.iterations()
        mean = error = np.full(len(every), np.nan)
        if self._columns:
            n_iter = np.maximum(self._improved, 1) if self.every_iteration else n_iter
            rows = n_iter - 1 if self.every_iteration else -1
            mean, error = np.stack([(column.mean, column.error) for column in self._columns])[rows, :, every].T
        return {"alpha": self.alphas, "mean_score": mean, "standard_error": error, "n_iter": n_iter}

    def iterations(self) -> Index:
        """Number of iterations of each alpha's solution, the maximum over targets."""
        return np.asarray(np.max([run.iterations for run in self.final], axis=0).astype(np.intp))

    def status(self) -> list[str]:
        """Status of each alpha, the worst over targets; "stopped" if patience ended first."""
        order = [Status.CONVERGED, Status.RUNNING, Status.MAX_ITER, Status.STAGNATED, Status.BREAKDOWN]
        worst = [max(words, key=order.index) for words in zip(*(run.status for run in self.final), strict=True)]
        return ["stopped" if word is Status.RUNNING else str(word) for word in worst]

    @property
    def still_improving(self) -> bool:
        """Whether the iterations ended before patience, with the best entry among the last ones."""
        waiting = self.iteration - self._row <= self.patience
        return self.every_iteration and self.iteration >= self._max_iter and waiting

    def _record(self, curves: list[Curve]) -> None:
        """Record the current measures, and mark the best point so far."""
        curve = joined_curves(curves)
        size = curve.size
        values = curve.per_block
        check_evaluated(curve.mean)
        self._columns.append(replace(curve, per_block=runs_of_blocks(values[~np.isnan(values).any(axis=1)], _BLOCKS)))
        goodness = self.sign * curve.mean
        better = is_better(goodness, self._own_best, size)
        self._improved[better] = self.iteration
        self._own_best[better] = goodness[better]
        equal = np.flatnonzero(best_within_rounding(goodness, size))
        first = int(equal[self.alphas[equal].argmax()])
        top = float(goodness[first])
        # If not every iteration is evaluated, the last column decides, with each alpha at its end.
        if is_better(top, self._best_goodness, size[first]) or not self.every_iteration:
            self._choose(first)
            self._best_goodness = top
            self._row = len(self._columns) - 1

    def _choose(self, k: int) -> None:
        """Mark the current solution of alpha number k."""
        self.solutions = [run.solution(k) for run in self.final]
        self.best = k, int(max(run.iterations[k] for run in self.final))
