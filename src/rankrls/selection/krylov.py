"""The systems that conjugate gradients solve, and one regularization value by them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls._comparisons import Comparisons, LabelledItems, Setting
from rankrls.kernels import Kernel
from rankrls.numerics.graph import Array, LabelledGraph
from rankrls.numerics.krylov import FeatureSystem, KernelSystem, MultiShiftCG, Status, System
from rankrls.numerics.products import FeatureProducts, LaplacianProduct
from rankrls.numerics.scorer import Scorer
from rankrls.selection.least_squares import LeastSquares

Watched = Any  # row numbers of the training items, or a matrix of other items; None watches nothing


@dataclass(frozen=True, eq=False)
class KrylovSystems:
    """Comparisons of items that are a feature matrix, or a kernel matrix or operator; X is never copied."""

    comparisons: Comparisons
    kernel: Kernel
    setting: Setting

    @cached_property
    def _features(self) -> FeatureProducts:
        return FeatureProducts(self.comparisons.X)

    @property
    def _rows(self) -> NDArray[np.intp]:
        """The rows of X of all items: a LinearOperator has those of weight zero too."""
        data = self.comparisons
        if data.kept is not None and not hasattr(data.X, "__getitem__"):
            return np.flatnonzero(data.kept)
        return np.arange(data.n_rows, dtype=np.intp)

    def build(self, train: NDArray[np.intp] | None, watched: Watched) -> list[tuple[System, Array]]:
        """A system with its right side for each target; ``train`` are the units to fit, None for all."""
        comparisons = self.comparisons
        part = comparisons if train is None else comparisons.take(train, items=False)
        every = self._rows
        rows = every if train is None or not isinstance(comparisons, LabelledItems) else every[train]
        out: list[tuple[System, Array]] = []
        for graph in part.numeric_graphs(self.setting):
            here = replace(graph, rows=rows[graph.rows]) if isinstance(graph, LabelledGraph) else graph
            columns = [np.ascontiguousarray(t) for t in here.target.T]
            if self.kernel.is_linear:
                product = LaplacianProduct(self._features, here)
                of_features = FeatureSystem(product, *self._scorer(watched))
                out += [(of_features, product.right_side(t)) for t in columns]
                continue
            by_number = isinstance(watched, np.ndarray) and watched.ndim == 1
            count = 0 if watched is None else watched.shape[0]
            others = every[watched] if by_number else watched
            of_kernel = KernelSystem(comparisons.X, here, others, count)
            out += [(of_kernel, t) for t in columns]
        return out

    def _scorer(self, watched: Watched) -> tuple[Callable[[Array], Array] | None, int]:
        if watched is None:
            return None, 0
        if isinstance(watched, np.ndarray) and watched.ndim == 1:
            return lambda p: self._features.scores(watched, p), len(watched)
        other, every = FeatureProducts(watched), np.arange(watched.shape[0], dtype=np.intp)
        return lambda p: other.scores(every, p), len(every)


class Convergence(NamedTuple):
    """How a solution was reached: the worst status, the largest relative residual and the most iterations."""

    status: Status
    residual: float
    iterations: int


def iterate(
    candidate: LeastSquares, data: Comparisons, alpha: float, tol: float, max_iter: int
) -> tuple[Scorer, Convergence]:
    """The function of one alpha by conjugate gradients, and how it was reached."""
    cg, kernel, found = MultiShiftCG(tol, max_iter), candidate.kernel, []
    columns = []
    items = data if kernel.is_linear else replace(data, X=kernel(data.X))
    for system, right in KrylovSystems(items, kernel, candidate.setting).build(None, None):
        run = cg.solve(system, right, np.array([alpha]))
        x = run.solution(0)
        found.append(Convergence(cg.verify(run, 0), run.true_residual(alpha, x), int(run.iterations[0])))
        columns.append(system.items(x) if isinstance(system, KernelSystem) else x)
    a = np.column_stack(columns)
    own_items = None if kernel.name == "precomputed" else data.X
    scorer = Scorer(a) if kernel.is_linear else Scorer(None, a, kernel, own_items)
    status, residuals, iterations = zip(*found, strict=True)
    failed = [one for one in status if one is not Status.CONVERGED]
    return scorer, Convergence(failed[0] if failed else Status.CONVERGED, max(residuals), max(iterations))
