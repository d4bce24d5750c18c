r"""The dual problem: ``(F K F' + alpha I) c = F y``, ``a = F'c``, ``f = K a``.

Equal to ``a = (LK + alpha I)^-1 L y`` (Pahikkala et al. 2007, theorem 1), but symmetric, so that one symmetric
eigendecomposition serves every alpha, and without their assumption that K is strictly positive definite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import eigsh

from rankrls._cached import cached_property
from rankrls._compiled.threads import map_threads
from rankrls.equations.dual_holdout import dual_holdout_scores
from rankrls.equations.spectrum import Spectrum, solve_one, spectrum
from rankrls.features.blocks import mirror, row_slices
from rankrls.features.rows import FactorRows
from rankrls.graph import Graph
from rankrls.kernels import Kernel
from rankrls.problems.problem import Expansion, PathSolutions, Problem, matrix_columns, spectral_resolution
from rankrls.problems.scorer import Scorer
from rankrls.problems.spreads import Spreads

_CACHED = 64
"""F takes several passes over so many columns: in the cache they take half the time."""
_SMALL = 500
"""Up to here a spectrum costs less than working around it."""


def factored_kernel(K: NDArray[np.float64], graph: Graph) -> NDArray[np.float64]:
    """``F K F'``, in K's own memory where F is square.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Destroyed.
    graph : Graph
    """
    m = K.shape[0]
    if graph.n_rows == m:

        def left(columns: slice) -> None:
            K[:, columns] = graph.F @ K[:, columns]

        def right(rows: slice) -> None:
            K[rows] = (graph.F @ K[rows].T).T

        map_threads(left, row_slices(0, m, _CACHED))
        map_threads(right, row_slices(0, m, _CACHED))
        return K
    half = graph.F @ K
    return np.ascontiguousarray((graph.F @ half.T).T)


class DualProblem(Problem):
    """Minimise ``||F K a - target||^2 + alpha a'Ka`` over ``a = F'c``.

    Parameters
    ----------
    graph : Graph
    target : ndarray of shape (rows of F, targets)
    C : ndarray of shape (rows of F, rows of F)
        ``F K F'``.
    unseen : ndarray of shape (q + faint rows, rows of F)
        Rows of ``K F'`` for what F does not see or hardly sees: the mean of each query, then each faint item less the
        mean of its query (see :attr:`rankrls.graph.Graph.faint_rows`). For pairs faint differences alone.

    Notes
    -----
    O(m^3) for one alpha by Cholesky, about O(10 m^3) for the spectrum and O(m^2) for each alpha after it. One m x m
    matrix besides the eigenvectors.
    """

    def __init__(
        self,
        graph: Graph,
        target: NDArray[np.float64],
        C: NDArray[np.float64],
        unseen: NDArray[np.float64],
        read: Callable[[NDArray[np.float64]], Scorer] = matrix_columns,
    ) -> None:
        self.graph = graph
        self.read = read
        self.target = target
        self.C: NDArray[np.float64] | None = C
        self.unseen = unseen
        self.size = C.shape[0]
        self._rows: FactorRows | None = None  # of features, if the kernel is theirs

    @classmethod
    def from_kernel(
        cls,
        K: NDArray[np.float64],
        graph: Graph,
        target: NDArray[np.float64],
        read: Callable[[NDArray[np.float64]], Scorer] = matrix_columns,
    ) -> DualProblem:
        """From the kernel matrix, which is destroyed; ``read`` makes functions of the items' coefficients."""
        unseen = (graph.F @ graph.unseen(K).T).T
        return cls(graph, target, factored_kernel(K, graph), unseen, read)

    @classmethod
    def from_features(cls, X: Any, graph: Graph, target: NDArray[np.float64]) -> DualProblem:
        """The linear kernel of X with more columns than rows.

        Of dense X ``F X`` is held, so that no offset is squared; of CSR the Gram matrix of its rows.
        """
        rows = graph.factor_rows(X)
        pieces = graph.unseen_features(rows)
        if sparse.issparse(X):
            # F X' = F (X shifted)': the rows that F does not see keep their own offset, once.
            Z = rows.X.astype(np.float64)
            C = factored_kernel((Z @ Z.T).toarray(), graph)
            images = [(graph.F @ (Z @ piece.T)).T for piece in pieces]
        else:
            FX = rows.factor(slice(0, rows.n_rows))
            C = FX @ FX.T
            images = [piece @ FX.T for piece in pieces]
        unseen = np.vstack([np.empty((0, len(C))), *images])
        out = cls(graph, target, C, unseen, Expansion(Kernel("linear"), X, graph))
        out._rows = rows
        return out

    @property
    def spreads(self) -> Spreads | None:
        """None of sparse features, which are centred elsewhere. O(m n)."""
        rows = self._rows
        if rows is None or sparse.issparse(rows.X):
            return None
        return Spreads(rows.energies(), max(rows.X.shape), in_features=False)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Of ``F K F'``, whose memory it takes over."""
        assert self.C is not None
        C, self.C = self.C, None
        return spectrum(C, self.size, overwrite=True)

    def inverse(self, alpha: float, null: NDArray[np.float64] | None = None, lift: float = 0.0) -> NDArray[np.float64]:
        """``(F K F' + lift null null' + alpha I)^-1``, in memory of its own. O(m^3).

        ``null`` is a unit vector that F does not see: lifted, it does not make the condition ``1 / alpha``. By Cholesky
        where there is no spectrum yet.
        """
        if self.C is None:
            s = self.spectrum
            weights = 1.0 / (s.values + alpha)
            blind = s.values == 0.0
            if null is not None and blind.sum() == 1:
                weights[blind] = 1.0 / (lift + alpha)
                return np.asarray((s.vectors * weights) @ s.vectors.T)
            out = (s.vectors * weights) @ s.vectors.T
            if null is not None:
                out += (1.0 / (lift + alpha) - 1.0 / alpha) * np.outer(null, null)
            return np.asarray(out)
        A = self.C.T.copy(order="F")  # the same matrix, and LAPACK's order of it without a transposition
        if null is not None:
            A = linalg.blas.dsyr(lift, null, lower=1, a=A, overwrite_a=1)
        A[np.diag_indices_from(A)] += alpha
        A, failed = linalg.lapack.dpotrf(A, lower=1, overwrite_a=1, clean=0)
        if failed:  # alpha is lost in the rounding of C, or C is indefinite: the spectrum tells the two apart
            self.spectrum.inverse(np.array([alpha]))
            return self.inverse(alpha, null, lift)
        A, _ = linalg.lapack.dpotri(A, lower=1, overwrite_c=1)
        mirror(A)  # LAPACK leaves one triangle
        return A.T

    def extreme_values(self) -> NDArray[np.float64]:
        """The largest eigenvalue, and the smallest or 0, without all the others where that can be had cheaper."""
        if self.C is None or self.size < _SMALL:
            return np.array([self.values.min(), self.values.max()])
        start = np.random.default_rng(0).normal(size=self.size)  # fixed: the same data give the same grid
        high = float(eigsh(self.C, k=1, which="LA", v0=start, tol=1e-6, return_eigenvectors=False)[0])
        A = self.C.T.copy(order="F")
        A[np.diag_indices_from(A)] += 1e-9 * high
        if linalg.lapack.dpotrf(A, lower=1, overwrite_a=1, clean=0)[1]:
            return np.array([self.values.min(), self.values.max()])
        return np.array([0.0, high])

    def spectrum_bound(self) -> float:
        """At least the largest eigenvalue, without a decomposition."""
        return float(np.trace(self.C) if self.C is not None else self.values.max(initial=0.0))

    @property
    def values(self) -> NDArray[np.float64]:
        return self.spectrum.values

    def path(self, values: NDArray[np.float64]) -> PathSolutions:
        """The solutions of some alphas: by the spectrum, or of a single one by Cholesky if there is no spectrum yet."""
        if len(values) == 1 and self.C is not None:
            found = [solve_one(self.C, self.target, float(values[0]), self.size)]
        else:
            found = list(self.spectrum.apply_inverse(values, self.target))
        return PathSolutions(np.stack([self.graph.F.T @ c for c in found]), self.read)

    def resolution(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return spectral_resolution(float(self.values.max(initial=0.0)), values)

    def holdout(self, blocks: list[Any], alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Held-out scores of the rows of each block, trained on all the others, (rows, alphas, targets).

        See :func:`rankrls.equations.dual_holdout.dual_holdout_scores`.
        """
        return dual_holdout_scores(self.graph, self.spectrum, self.target, self.unseen, blocks, alphas)
