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
from rankrls.equations.krylov import MultiShiftCG
from rankrls.features.rows import rows_gram
from rankrls.graph import Graph
from rankrls.problems.krylov_problem import Convergence
from rankrls.problems.problem import PathSolutions, Problem
from rankrls.problems.subset import Basis

_SAMPLE = 4
"""Rows sampled for each basis item."""


@dataclass
class _Preconditioned:
    """``R'^-1 (A + alpha I) R^-1`` by its products, and by those with a triangle."""

    problem: SubsetCGProblem
    alpha: float
    factor: NDArray[np.float64]
    n_watched: int = 0

    @property
    def size(self) -> int:
        return len(self.factor)

    def apply(self, p: NDArray[np.float64]) -> tuple[NDArray[np.float64], None]:
        v = self.back(p)
        x = self.problem.unwhitened(v)
        image = self.problem.over_rows(lambda B, piece: B.T @ (B @ x))
        return self.forth(self.problem.whitened(image) + self.alpha * v), None

    def back(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """``R^-1 z``."""
        return np.asarray(linalg.solve_triangular(self.factor, z, check_finite=False))

    def forth(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """``R'^-1 v``."""
        return np.asarray(linalg.solve_triangular(self.factor, v, trans=1, check_finite=False))


class SubsetCGProblem(Problem):
    """Minimise ``||F K_MR a - target||^2 + alpha a'K_RR a`` for one alpha after the other, by iteration.

    Parameters
    ----------
    X, basis, graph, target : as for :class:`rankrls.problems.subset.SubsetProblem`
    tol : float
        A target has converged where the norm of its preconditioned residual is at most ``tol`` times that of the
        right side.
    max_iter : int

    Notes
    -----
    The sample takes O(r^3) time and O(r^2) memory once, its factor O(r^3) for each alpha, an iteration O(m r) and an
    evaluation of the m x r kernel values, for each target anew. The details of a solution are its
    :class:`rankrls.problems.krylov_problem.Convergence`.
    """

    def __init__(
        self,
        X: Any,
        basis: Basis,
        graph: Graph,
        target: NDArray[np.float64],
        *,
        tol: float = 1e-8,
        max_iter: int = 200,
    ) -> None:
        self.basis, self.graph = basis, graph
        self._method = MultiShiftCG(tol=tol, max_iter=max_iter)
        self._rows = rows = graph.factor_rows(basis.columns(X))
        self._pieces = rows.pieces(slice(0, rows.n_rows))
        sampled = np.arange(rows.n_rows, dtype=np.intp)
        if (wanted := _SAMPLE * max(basis.size, 1)) < rows.n_rows:
            sampled = rows.sample(wanted, np.random.default_rng(0))  # fixed: the same data give the same iterates
        gram, _ = rows_gram(rows, sampled, np.zeros((rows.n_rows, 0)))
        self._gram = self.whitened(self.whitened(gram).T) * (rows.n_rows / max(len(sampled), 1))
        self._right = self.whitened(self.over_rows(lambda B, piece: B.T @ target[piece]))

    def path(self, values: NDArray[np.float64]) -> PathSolutions:
        found, details = zip(*[self._solved(value) for value in values.tolist()], strict=True)
        return PathSolutions(np.stack(found), self.basis.read, details)

    def _solved(self, alpha: float) -> tuple[NDArray[np.float64], Convergence]:
        gram = self._gram.copy()
        gram[np.diag_indices_from(gram)] += alpha
        # A rounding error of the sampled part must not make it indefinite.
        gram[np.diag_indices_from(gram)] += len(gram) * np.finfo(np.float64).eps * np.trace(gram)
        system = _Preconditioned(self, alpha, linalg.cholesky(gram, overwrite_a=True, check_finite=False))
        runs = [self._method.solve(system, system.forth(right), np.zeros(1)) for right in self._right.T]
        found = [self.basis.to_items @ system.back(run.solution(0)) for run in runs]
        each = [(run.status[0], run.residuals[0], run.iteration) for run in runs]
        return np.column_stack(found), Convergence.worst(each)

    def over_rows(self, function: Any) -> NDArray[np.float64]:
        """Sum of ``function(rows B of F K_MR, their numbers)`` over blocks."""

        def run(some: list[Any]) -> Any:
            return sum(function(self._rows.factor(piece), piece) for piece in some)

        threads = min(n_threads(), len(self._pieces))
        cuts = np.linspace(0, len(self._pieces), threads + 1).astype(int)
        with one_blas_thread():
            parts = map_threads(run, [self._pieces[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)])
        return np.asarray(sum(parts))

    def unwhitened(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients of the columns that are evaluated, from coordinates v."""
        return v if self.basis.whitening is None else np.asarray(self.basis.whitening @ v)

    def whitened(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Products with those columns, in the coordinates v."""
        return x if self.basis.whitening is None else np.asarray(self.basis.whitening.T @ x)
