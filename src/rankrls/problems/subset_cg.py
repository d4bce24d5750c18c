r"""Sparse RankRLS by preconditioned conjugate gradients: O(m r) an iteration instead of O(m r^2) once.

In the coordinates ``v`` of :mod:`rankrls.problems.subset`, ``a = T v``, the system is ``(A + alpha I) v = b`` with
``A = T'K_RM L K_MR T``. A sample of s rows of ``F K_MR T``, whole queries or their like, gives
``A_s = (m / s) B_s'B_s``, and with the Cholesky factor ``A_s + alpha I = R'R`` the system in ``z = R v`` has
eigenvalues near one:

.. math::

    R'^{-1} ( A + \alpha I ) R^{-1} z = R'^{-1} b .

That is what FALKON does for plain least squares (Rudi, Carratino, Rosasco 2017), whose preconditioner takes the basis
items themselves for the sample. Here rows are sampled for themselves, because ``L`` couples the rows of a query, and
few of them are in the basis; and four times as many, which halves the iterations. Kernel values are evaluated anew at
each iteration: nothing of size m x r is held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls._compiled.threads import map_threads, n_threads, one_blas_thread
from rankrls.equations.krylov import MultiShiftCG, Status
from rankrls.features.rows import FactorRows, rows_gram
from rankrls.graph import Graph
from rankrls.problems.problem import PathSolutions, Problem
from rankrls.problems.subset import Basis

__all__ = ["SubsetCG", "SubsetCGProblem", "solve_subset_by_cg"]

_SAMPLE = 4
"""Rows sampled for each basis item."""


@dataclass(frozen=True)
class SubsetCG:
    """What a run came to.

    Attributes
    ----------
    coefficients : ndarray of shape (r, targets)
        Of the basis items.
    status : list of Status
        One a target.
    iterations : ndarray of shape (targets,)
    residuals : ndarray of shape (targets,)
        Norm of the preconditioned residual, relative to the right side.
    """

    coefficients: NDArray[np.float64]
    status: list[Status]
    iterations: NDArray[np.intp]
    residuals: NDArray[np.float64]


@dataclass
class _Preconditioned:
    """``R'^-1 (T' B'B T + alpha I) R^-1`` by its products; B are the rows of ``F Phi``."""

    size: int
    n_watched: int

    rows: FactorRows
    pieces: list[Any]
    whitening: NDArray[np.float64] | None
    factor: NDArray[np.float64]
    alpha: float

    def apply(self, p: NDArray[np.float64]) -> tuple[NDArray[np.float64], None]:
        v = self.back(p)
        x = self.unwhitened(v)
        image = self.over_rows(lambda B, piece: B.T @ (B @ x))
        return self.forth(self.whitened(image) + self.alpha * v), None

    def over_rows(self, function: Any) -> NDArray[np.float64]:
        """Sum of ``function(rows of B, their numbers)`` over blocks."""

        def run(some: list[Any]) -> Any:
            return sum(function(self.rows.factor(piece), piece) for piece in some)

        threads = min(n_threads(), len(self.pieces))
        cuts = np.linspace(0, len(self.pieces), threads + 1).astype(int)
        with one_blas_thread():
            parts = map_threads(run, [self.pieces[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)])
        return np.asarray(sum(parts))

    def back(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """``R^-1 z``."""
        return np.asarray(linalg.solve_triangular(self.factor, z, check_finite=False))

    def forth(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """``R'^-1 v``."""
        return np.asarray(linalg.solve_triangular(self.factor, v, trans=1, check_finite=False))

    def unwhitened(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        return v if self.whitening is None else np.asarray(self.whitening @ v)

    def whitened(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return x if self.whitening is None else np.asarray(self.whitening.T @ x)


def solve_subset_by_cg(
    X: Any,
    basis: Basis,
    graph: Graph,
    target: NDArray[np.float64],
    alpha: float,
    *,
    tol: float = 1e-8,
    max_iter: int = 200,
) -> SubsetCG:
    """Minimise ``||F K_MR a - target||^2 + alpha a'K_RR a``.

    Parameters
    ----------
    X, basis, graph, target : as for :class:`rankrls.problems.subset.SubsetProblem`
    alpha : float
        Positive.
    tol : float
        A target has converged where the norm of its preconditioned residual is at most ``tol`` times that of the
        right side.
    max_iter : int

    Notes
    -----
    The preconditioner takes O(r^3) time and O(r^2) memory, an iteration O(m r) and an evaluation of the m x r kernel
    values, for each target anew.
    """
    rows = graph.factor_rows(basis.columns(X))
    sampled = _sampled(rows, _SAMPLE * max(basis.size, 1))
    gram, _ = rows_gram(rows, sampled, np.zeros((rows.n_rows, 0)))
    T = basis.whitening
    gram = gram if T is None else T.T @ gram @ T
    gram *= rows.n_rows / max(len(sampled), 1)
    gram[np.diag_indices_from(gram)] += alpha
    # A rounding error of the sampled part must not make it indefinite.
    gram[np.diag_indices_from(gram)] += len(gram) * np.finfo(np.float64).eps * np.trace(gram)
    factor = linalg.cholesky(gram, overwrite_a=True, check_finite=False)
    system = _Preconditioned(len(factor), 0, rows, rows.pieces(slice(0, rows.n_rows)), T, factor, alpha)
    right = system.whitened(system.over_rows(lambda B, piece: B.T @ target[piece]))
    solver = MultiShiftCG(tol=tol, max_iter=max_iter)
    coefficients, status, iterations, residuals = [], [], [], []
    for t in range(target.shape[1]):
        run = solver.solve(system, system.forth(right[:, t]), np.zeros(1))
        coefficients.append(basis.to_items @ system.back(run.solution(0)))
        status.append(run.status[0])
        iterations.append(run.iteration)
        residuals.append(float(run.residuals[0]))
    return SubsetCG(np.column_stack(coefficients), status, np.array(iterations), np.array(residuals))


def _sampled(rows: FactorRows, wanted: int) -> NDArray[np.intp]:
    rng = np.random.default_rng(0)  # fixed: the same data give the same iterates
    if wanted >= rows.n_rows:
        return np.arange(rows.n_rows, dtype=np.intp)
    return rows.sample(wanted, rng)


@dataclass(frozen=True, eq=False)
class SubsetCGProblem(Problem):
    """Minimise ``||F K_MR a - target||^2 + alpha a'K_RR a`` for one alpha after the other, by iteration."""

    X: Any
    basis: Basis
    graph: Graph
    target: NDArray[np.float64]
    tol: float
    max_iter: int

    def path(self, values: NDArray[np.float64]) -> PathSolutions:
        runs = [
            solve_subset_by_cg(self.X, self.basis, self.graph, self.target, value, tol=self.tol, max_iter=self.max_iter)
            for value in values.tolist()
        ]
        return PathSolutions(np.stack([run.coefficients for run in runs]), self.basis.read, runs)
