r"""The dual problem: ``(F K F' + alpha I) c = F y``, ``a = F'c``, ``f = K a``.

Equal to ``a = (LK + alpha I)^-1 L y`` (Pahikkala et al. 2007, theorem 1), but symmetric, so that one symmetric
eigendecomposition serves every alpha, and without their assumption that K is strictly positive definite.

Hold-out (Pahikkala, Suominen, Boberg, Salakoski 2007): with ``C = F K F' + alpha I`` and ``c = C^-1 F y`` the model
without the rows U has the coefficients ``c - C^-1_{:,U} e``, where

.. math::

    e = ( C^{-1}_{UU} )^{-1} c_U = ( I - H_{UU} )^{-1} ( F y - H F y )_U , \qquad H = F K F' C^{-1} ,

so its scores satisfy ``F_U f_U = F_U y_U - e`` at once. ``F_U`` is inverted level by level; what it does not see needs
rows of ``K F'``: one for the mean score of each query, and those of the items that no pair compares (a query of one
label, ties excluded), instead of all m.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.linalg.blas import dsyrk
from scipy.sparse.linalg import eigsh

from rankrls._compiled.threads import map_threads, n_threads, one_blas_thread
from rankrls.graph import Graph, PairGraph, ScoredGraph
from rankrls.solvers.holdout import holdout_alphas
from rankrls.solvers.rows import factor_rows, row_numbers, row_slices
from rankrls.solvers.spectrum import Spectrum, solve_one, spectrum

__all__ = ["DualProblem", "blind_items", "factored_kernel", "merge_rounding"]

_COLUMNS = 512
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
    if graph.n_rows == m and isinstance(graph, ScoredGraph):
        for columns in row_slices(0, m, _COLUMNS):
            K[:, columns] = graph.F @ K[:, columns]
        for rows in row_slices(0, m, _COLUMNS):
            K[rows] = (graph.F @ K[rows].T).T
        return K
    half = graph.F @ K
    return np.ascontiguousarray((graph.F @ half.T).T)


class DualProblem:
    """Minimise ``||F K a - target||^2 + alpha a'Ka`` over ``a = F'c``.

    Parameters
    ----------
    graph : ScoredGraph or PairGraph
    target : ndarray of shape (rows of F, targets)
    C : ndarray of shape (rows of F, rows of F)
        ``F K F'``.
    unseen : ndarray of shape (q + blind items, rows of F) or None
        Rows of ``K F'`` for what F does not see: the mean of each query, then each blind item (see
        :func:`blind_items`); None for pairs, of which F sees all.

    Notes
    -----
    O(m^3) for one alpha by Cholesky, about O(10 m^3) for the spectrum and O(m^2) for each alpha after it. One m x m
    matrix besides the eigenvectors.
    """

    def __init__(
        self,
        graph: ScoredGraph | PairGraph,
        target: NDArray[np.float64],
        C: NDArray[np.float64],
        unseen: NDArray[np.float64] | None,
    ) -> None:
        self.graph = graph
        self.target = target
        self.C: NDArray[np.float64] | None = C
        self.unseen = unseen
        self.blind = blind_items(graph) if isinstance(graph, ScoredGraph) else np.zeros(0, dtype=np.intp)
        self.size = C.shape[0]

    @classmethod
    def from_kernel(
        cls, K: NDArray[np.float64], graph: ScoredGraph | PairGraph, target: NDArray[np.float64]
    ) -> DualProblem:
        """From the kernel matrix, which is destroyed."""
        unseen = None
        if isinstance(graph, ScoredGraph):
            unseen = np.vstack((graph.query_means(graph.group_means(K)), K[blind_items(graph)]))
            unseen = (graph.F @ unseen.T).T
        return cls(graph, target, factored_kernel(K, graph), unseen)

    @classmethod
    def from_features(cls, X: Any, graph: ScoredGraph | PairGraph, target: NDArray[np.float64]) -> DualProblem:
        """The linear kernel of X with more columns than rows.

        Of dense X ``F X`` is held, so that no offset is squared; of CSR the Gram matrix of its rows.
        """
        rows = factor_rows(X, graph)
        blind = None
        if isinstance(graph, ScoredGraph):
            blind = X[blind_items(graph)]
            blind = blind.toarray() if sparse.issparse(blind) else blind
        if sparse.issparse(X):
            # F X' = F (X shifted)': the rows that F does not see keep their own offset, once.
            Z = rows.X.astype(np.float64)
            C = factored_kernel((Z @ Z.T).toarray(), graph)
            unseen = None if blind is None else (graph.F @ (Z @ np.vstack((rows.centres, blind)).T)).T
        else:
            FX = rows.factor(slice(0, rows.n_rows))
            C = FX @ FX.T
            unseen = None if blind is None else np.vstack((rows.centres, blind)) @ FX.T
        return cls(graph, target, C, unseen)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Of ``F K F'``, whose memory it takes over."""
        assert self.C is not None
        C, self.C = self.C, None
        return spectrum(C, self.size, overwrite=True)

    def inverse(self, alpha: float, null: NDArray[np.float64], lift: float) -> NDArray[np.float64]:
        """``(F K F' + lift null null' + alpha I)^-1``, in memory of its own. O(m^3).

        ``null`` is a unit vector that F does not see: lifted, it does not make the condition ``1 / alpha``. By Cholesky
        where there is no spectrum yet.
        """
        if self.C is None:
            s = self.spectrum
            weights = 1.0 / (s.values + alpha)
            blind = s.values == 0.0
            if blind.sum() == 1:
                weights[blind] = 1.0 / (lift + alpha)
                return np.asarray((s.vectors * weights) @ s.vectors.T)
            out = (s.vectors * weights) @ s.vectors.T
            out += (1.0 / (lift + alpha) - 1.0 / alpha) * np.outer(null, null)
            return np.asarray(out)
        A = self.C.copy(order="F")
        A += lift * null[:, None] * null
        A[np.diag_indices_from(A)] += alpha
        A, failed = linalg.lapack.dpotrf(A, lower=1, overwrite_a=1, clean=0)
        if failed:  # alpha is lost in the rounding of C, or C is indefinite: the spectrum tells the two apart
            self.spectrum.inverse(np.array([alpha]))
            return self.inverse(alpha, null, lift)
        A, _ = linalg.lapack.dpotri(A, lower=1, overwrite_c=1)
        for rows in row_slices(0, self.size, _COLUMNS):  # LAPACK leaves one triangle
            corner = np.tril(A[rows, rows])
            A[rows, rows] = corner + np.tril(corner, -1).T
            A[rows, rows.stop :] = A[rows.stop :, rows].T
        return A.T

    def extreme_values(self) -> NDArray[np.float64]:
        """The largest eigenvalue, and the smallest or 0, without all the others where that can be had cheaper."""
        if self.C is None or self.size < _SMALL:
            return np.array([self.values.min(), self.values.max()])
        start = np.random.default_rng(0).normal(size=self.size)  # fixed: the same data give the same grid
        high = float(eigsh(self.C, k=1, which="LA", v0=start, tol=1e-6, return_eigenvectors=False)[0])
        A = self.C.copy(order="F")
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

    def solve(self, alpha: float) -> NDArray[np.float64]:
        """Coefficients ``a`` of one alpha, (m, targets)."""
        if self.C is None:
            return self.path(np.array([alpha]))[0]
        return np.asarray(self.graph.F.T @ solve_one(self.C, self.target, alpha, self.size))

    def path(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients ``a`` of every alpha, (alphas, m, targets)."""
        C = self.spectrum.apply_inverse(alphas, self.target)
        return np.stack([self.graph.F.T @ c for c in C])

    def holdout(self, blocks: list[Any], alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Held-out scores of the rows of each block, trained on all the others, (rows, alphas, targets).

        O(u m) a block and alpha for its scores, O(u^2 m) for its part of ``C^-1``. Scores of items, or score
        differences of pairs; NaN for rows in no block.
        """
        s = self.spectrum
        alphas = holdout_alphas(alphas, float(s.values.max(initial=0.0)))
        inverse = s.inverse(alphas)
        # alpha C^-1 = I - H, bounded by 1 however small alpha is.
        slack = alphas / (s.values[:, None] + alphas)
        right = s.vectors.T @ self.target
        shrunk = (slack[:, :, None] * right[:, None, :]).reshape(self.size, -1)
        out = np.full((self.size, len(alphas), right.shape[1]), np.nan)
        unseen = None if self.unseen is None else self.unseen @ s.vectors
        run = lambda block: self._hold(block, alphas, inverse, slack, right, shrunk, unseen, out)
        if len(blocks) >= n_threads():
            with one_blas_thread():
                map_threads(run, blocks)
        else:
            for block in blocks:
                run(block)
        return out

    def _hold(
        self,
        block: Any,
        alphas: NDArray[np.float64],
        inverse: NDArray[np.float64],
        slack: NDArray[np.float64],
        right: NDArray[np.float64],
        shrunk: NDArray[np.float64],
        unseen: NDArray[np.float64] | None,
        out: NDArray[np.float64],
    ) -> None:
        s, graph = self.spectrum, self.graph
        V = np.ascontiguousarray(s.vectors[block])  # LAPACK's are columns
        inside = None
        if isinstance(graph, ScoredGraph) and unseen is not None:
            inside = _Inside(graph, block, unseen, self.blind)
        u, targets = V.shape[0], self.target.shape[1]
        residual = (V @ shrunk).reshape(u, len(alphas), targets)
        error = np.empty_like(residual)
        scaled = np.empty_like(V)
        for k in range(len(alphas)):
            if (slack[:, k] >= 0.0).all():
                part = _symmetric_product(np.multiply(V, np.sqrt(slack[:, k]), out=scaled))
            else:
                part = np.multiply(V, slack[:, k], out=scaled) @ V.T
            error[:, k] = _solve_positive(part, residual[:, k])
        fitted = self.target[block][:, None, :] - error
        if inside is None:
            assert isinstance(graph, PairGraph)
            out[block] = fitted / np.sqrt(graph.weight[block])[:, None, None]
        else:
            x = inverse[:, :, None] * (
                right[:, None, :] - (V.T @ error.reshape(u, -1)).reshape(-1, len(alphas), targets)
            )
            scores = inside.scores(
                fitted.reshape(u, -1), x.reshape(self.size, -1), np.tile(self.target[block], len(alphas))
            )
            out[block] = scores.reshape(u, len(alphas), targets)


def _symmetric_product(A: NDArray[np.float64]) -> NDArray[np.float64]:
    """``A A'`` at half the price of a general product; lower triangle only."""
    return np.asarray(dsyrk(1.0, A.T, trans=1, lower=1))


class _Inside:
    """Scores of a block of whole queries from ``F_U f_U`` and the coefficients in the eigenbasis."""

    def __init__(self, graph: ScoredGraph, block: Any, unseen: NDArray[np.float64], blind: NDArray[np.intp]) -> None:
        rows = row_numbers(block)
        queries, self.query = np.unique(graph.layout.codes[rows], return_inverse=True)
        self.graph = graph.select(queries)
        # ``select`` keeps its rows in row order; the block may name them in any.
        self.order = np.argsort(rows, kind="stable")
        self.means = unseen[queries]
        self.blind = np.flatnonzero(np.isin(rows, blind))
        self.blind_kernel = unseen[graph.n_blocks + np.searchsorted(blind, rows[self.blind])]

    def scores(self, factored: NDArray[np.float64], x: NDArray[np.float64], target: NDArray[np.float64]) -> Any:
        """Scores of the block's rows from ``F_U f_U``, whose rounding is relative to ``target``."""
        means = (self.means @ x)[self.query]
        deviations = self._deviations(factored)
        deviations[self.blind] = self.blind_kernel @ x - means[self.blind]
        noise = 1e-14 * np.abs(self._deviations(target)).max(axis=0, initial=0.0)
        return merge_rounding(deviations, self.query, noise) + means

    def _deviations(self, factored: NDArray[np.float64]) -> NDArray[np.float64]:
        """Deviations from the query means of z, given ``F z``."""
        graph, (k1, k2, _) = self.graph, self.graph.inverse_roots
        out = np.empty_like(factored)
        scaled = factored[self.order] / np.sqrt(graph.weights)[:, None]
        out[self.order] = graph.apply_levels(scaled, (k1, k2, np.zeros(graph.n_blocks)))
        return out


def merge_rounding(
    scores: NDArray[np.float64], query: NDArray[np.intp], noise: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Make scores of a query equal where they differ by rounding only; in place.

    Items with equal features have equal scores, and real data are full of them. The dual gets each score on a way of
    its own, so that rounding would order them; a tie has to stay one to be judged as one.
    """
    for t in range(scores.shape[1]):
        column = scores[:, t]
        by_score = np.lexsort((column, query))
        values = column[by_score]
        near = 1e-10 * np.abs(values).max(initial=0.0) + noise[t]
        starts = np.ones(len(values), dtype=bool)
        starts[1:] = (np.diff(values) > near) | (np.diff(query[by_score]) != 0)
        column[by_score] = values[starts][np.cumsum(starts) - 1]
    return scores


def blind_items(graph: ScoredGraph) -> NDArray[np.intp]:
    """Items whose scores the graph never compares: F has no row for them. Ascending row numbers."""
    return np.flatnonzero(graph.eigenvalues[0][graph.row_group] == 0.0)


def _solve_positive(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve with a matrix, given by its lower triangle, that is positive definite but for rounding or a bad kernel."""
    try:
        return np.asarray(linalg.cho_solve(linalg.cho_factor(A, lower=True, check_finite=False), B, check_finite=False))
    except linalg.LinAlgError:
        full = np.tril(A) + np.tril(A, -1).T
        return np.asarray(linalg.lstsq(full, B, check_finite=False)[0])
