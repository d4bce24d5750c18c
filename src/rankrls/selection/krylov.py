"""The systems that conjugate gradients solve, and one regularization value by them, for RankRLS and over a basis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls._cached import cached_property
from rankrls._comparisons import Comparisons, LabelledItems, Setting
from rankrls.kernels import Kernel
from rankrls.numerics.basis import Basis
from rankrls.numerics.chunks import chunk_rows, chunks, left_fold, map_chunks
from rankrls.numerics.eigen import EPS
from rankrls.numerics.graph import Array, Graph, LabelledGraph
from rankrls.numerics.krylov import FeatureSystem, KernelSystem, MultiShiftCG, Status, System
from rankrls.numerics.products import FeatureProducts, LaplacianProduct
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.smoother import Equations
from rankrls.selection.least_squares import BasisForm, LeastSquares

Watched = Any  # row numbers of the training items, or a matrix of other items; None watches nothing
_SAMPLED = 4
"""Rows for each basis item from which the preconditioner is made."""


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
    if candidate.basis is not None:
        scorers = []
        graphs: list[Any] = list(data.numeric_graphs(candidate.setting))
        for t, graph in enumerate(graphs):
            sample = _sample(candidate, data, graph, t)
            coefficients, each = _over_basis(cg, data.X, graph, sample, candidate.basis, alpha)
            scorers.append(BasisForm(data.X, graph, candidate.basis).read(coefficients))
            found += each
        scorer = Scorer.side_by_side(scorers)
    else:
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


def _sample(candidate: LeastSquares, data: Comparisons, graph: Graph, t: int) -> Graph:
    """The graph of some rows or preferences, always the same: four for each basis item."""
    assert candidate.basis is not None
    size, rng = _SAMPLED * len(candidate.basis.to_items), np.random.default_rng(0)
    if isinstance(graph, LabelledGraph):
        some, rows = data.sample(size, rng)
        own = some.numeric_graphs(candidate.setting)[t]
        return replace(own, rows=rows[own.rows])
    groups = rng.permutation(len(graph.starts) - 1)
    count = int(np.searchsorted(np.cumsum(np.diff(graph.starts)[groups]), size)) + 1
    return graph.take(np.sort(groups[:count]))


def _over_basis(
    cg: MultiShiftCG, X: Any, graph: Graph, sample: Graph, basis: Basis, alpha: float
) -> tuple[Array, list[Convergence]]:
    """Coefficients of the basis items: conjugate gradients on ``R'^-1 (A + alpha I) R^-1``, ``R'R`` of a sample of A.

    O(r^3) for the preconditioner; an iteration evaluates the m x r kernel values again.
    """
    features, T = basis.features(X), basis.whitening
    blocks = [graph.part(a, b) for a, b in chunks(graph.starts, chunk_rows(features.shape[1]))]
    right = left_fold(map_chunks(_right_side(features), blocks))
    right = right if T is None else T.T @ right
    A = Equations.of(sample, features).whitened(T).gram * (graph.n_rows / sample.n_rows)
    A.flat[:: len(A) + 1] += alpha + len(A) * EPS * np.trace(A)
    system = _Preconditioned(blocks, features, T, alpha, linalg.cholesky(A, check_finite=False))
    columns, each = [], []
    for t in right.T:
        run = cg.solve(system, system.forth(t), np.zeros(1))
        columns.append(system.back(run.solution(0)))
        each.append(Convergence(run.status[0], float(run.residuals[0]), int(run.iterations[0])))
    v = np.column_stack(columns)
    return v if T is None else T @ v, each


def _right_side(features: Any) -> Any:
    def right_side(part: Graph) -> Array:
        return np.asarray(part.factor_rows(features).T @ part.target)

    return right_side


@dataclass(frozen=True, eq=False)
class _Preconditioned:
    """``R'^-1 (A + alpha I) R^-1`` by its products."""

    blocks: list[Any]
    features: Any
    whitening: Array | None
    alpha: float
    factor: Array
    n_watched: int = 0

    @property
    def size(self) -> int:
        """Orthonormal features."""
        return len(self.factor)

    def apply(self, p: Array) -> tuple[Array, None]:
        """The product with p; no scores."""
        v = self.back(p)
        x = v if self.whitening is None else self.whitening @ v

        def image(part: LabelledGraph) -> Array:
            Z = part.factor_rows(self.features)
            return np.asarray(Z.T @ (Z @ x))

        product = left_fold(map_chunks(image, self.blocks))
        product = product if self.whitening is None else self.whitening.T @ product
        return self.forth(product + self.alpha * v), None

    def back(self, z: Array) -> Array:
        """``R^-1 z``."""
        return np.asarray(linalg.solve_triangular(self.factor, z, check_finite=False))

    def forth(self, v: Array) -> Array:
        """``R'^-1 v``."""
        return np.asarray(linalg.solve_triangular(self.factor, v, trans=1, check_finite=False))
