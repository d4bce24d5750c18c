"""One regularization value by conjugate gradients, for RankRLS and over a basis of items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from rankrls._comparisons import Comparisons
from rankrls.numerics.basis import Basis
from rankrls.numerics.chunks import chunk_rows, chunks, left_fold, map_chunks
from rankrls.numerics.eigen import EPS
from rankrls.numerics.graph import Array, Graph, LabelledGraph
from rankrls.numerics.krylov import FeatureSystem, KernelSystem, MultiShiftCG, Status, System
from rankrls.numerics.products import FeatureProducts, LaplacianProduct
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.smoother import Equations
from rankrls.selection.least_squares import BasisForm, DualForm, LeastSquares, PrimalForm

_SAMPLED = 4
"""Rows for each basis item from which the preconditioner is made."""


class Convergence(NamedTuple):
    """How a solution was reached: the worst status, the largest relative residual and the most iterations."""

    status: Status
    residual: float
    iterations: int


def iterate(candidate: LeastSquares, data: Comparisons, alpha: float, tol: float, max_iter: int) -> Any:
    """The function of one alpha by conjugate gradients, and how it was reached.

    Returns
    -------
    scorer : Scorer
    convergence : Convergence
    """
    cg, scorers, each = MultiShiftCG(tol, max_iter), [], []
    graphs: list[Any] = list(data.numeric_graphs(candidate.setting))
    for t, graph in enumerate(graphs):
        if candidate.basis is not None:
            sample = _sample(candidate, data, graph, t)
            coefficients, found = _over_basis(cg, data.X, graph, sample, candidate.basis, alpha)
            scorers.append(BasisForm(data.X, graph, candidate.basis).read(coefficients))
        elif candidate.kernel.is_linear:
            product = LaplacianProduct(FeatureProducts(data.X), graph)
            right = np.column_stack([product.right_side(t) for t in graph.target.T])
            coefficients, found = _solutions(cg, FeatureSystem(product), right, alpha)
            scorers.append(PrimalForm(data.X, graph).read(coefficients))
        else:
            system = KernelSystem(candidate.kernel(data.X), graph)
            c, found = _solutions(cg, system, graph.target, alpha)
            scorers.append(DualForm(data.X, graph, candidate.kernel).read(system.items(c)))
        each += found
    failed = [one.status for one in each if one.status is not Status.CONVERGED]
    residual, iterations = max(one.residual for one in each), max(one.iterations for one in each)
    return Scorer.side_by_side(scorers), Convergence(failed[0] if failed else Status.CONVERGED, residual, iterations)


def _solutions(cg: MultiShiftCG, system: System, right: Array, alpha: float) -> tuple[Array, list[Convergence]]:
    """A column for each right side."""
    columns, each = [], []
    for t in right.T:
        run = cg.solve(system, np.ascontiguousarray(t), np.array([alpha]))
        x = run.solution(0)
        each.append(Convergence(cg.verify(run, 0), run.true_residual(alpha, x), int(run.iterations[0])))
        columns.append(x)
    return np.column_stack(columns), each


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
