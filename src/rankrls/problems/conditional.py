r"""Conditional ranking: the same d items ranked for each of q queries, with a kernel for queries and one for items.

With utilities Y (q x d), kernels K (q x q) of the queries and G (d x d) of the items, and C the centring of the items,

.. math:: \min_f \sum_u \lVert C ( y_u - f_u ) \rVert^2 + \alpha \lVert f \rVert^2

over functions of a query and an item with the kernel ``K (x) G``. With ``K = V diag(lambda) V'`` and
``C G C = U diag(sigma) U'`` the solution for every alpha is

.. math:: c = V \left[ \frac{V' Y C U}{\lambda \sigma' + \alpha} \right] U' , \qquad f = K (c C) G ,

and in direction k of the items the problem is ridge regression with the kernel :math:`\sigma_k K`, so that what a query
u is predicted without it is ``T_uk - c_uk / [(sigma_k K + alpha I)^-1]_uu``, ``T = Y C U``. ``G = I`` is label ranking:
then ``C G C = C``, all eigenvalues are 1 and nothing has to be rotated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy import linalg, sparse

from rankrls._cached import cached_property
from rankrls.equations.krylov import MultiShiftCG, Status
from rankrls.equations.spectrum import check_semidefinite
from rankrls.features.blocks import row_slices

Array = NDArray[np.float64]
_HELD = 1 << 23
"""Held-out scores that are made and judged together."""
_NODES, _WIDTH = 32, 4.0
"""Polynomials of so many terms interpolate ``1 / (lambda + t)`` to rounding where log t changes by so much."""
_REMAINS = 1e-12
"""What a factorization may leave of a matrix, as a share of its largest entry."""
_METHOD = MultiShiftCG(tol=1e-10, max_iter=5000)


@dataclass(frozen=True, eq=False)
class KernelSide:
    """A kernel matrix by its eigenvalues that are not 0, or by features of which it is the inner products.

    Attributes
    ----------
    values : ndarray of shape (rank,)
        Positive, descending.
    vectors : ndarray of shape (m, rank)
    """

    values: Array
    vectors: Array

    @classmethod
    def of_matrix(cls, K: Array, name: str) -> KernelSide:
        """From a symmetric matrix, O(m^3); an indefinite one is refused under the name of its parameter."""
        values, vectors = linalg.eigh(K, check_finite=False, driver="evd")
        check_semidefinite(values, "in its matrix", name)
        return cls._cut(values[::-1], vectors[:, ::-1])

    @classmethod
    def of_features(cls, Z: Any) -> KernelSide:
        """Of the inner products of rows of Z, dense or sparse, (m, n): O(m n min(m, n))."""
        m, n = Z.shape
        if m <= n:
            gram = Z @ Z.T
            return cls.of_matrix(np.asarray(gram.toarray() if sparse.issparse(gram) else gram, np.float64), "kernel")
        dense = np.asarray(Z.toarray() if sparse.issparse(Z) else Z, np.float64)
        vectors, roots, _ = linalg.svd(dense, full_matrices=False, check_finite=False)
        return cls._cut(roots**2, vectors)

    @classmethod
    def _cut(cls, values: Array, vectors: Array) -> KernelSide:
        alive = values > len(vectors) * np.finfo(np.float64).eps * values.max(initial=0.0)
        return cls(np.ascontiguousarray(values[alive]), np.ascontiguousarray(vectors[:, alive]))

    def __matmul__(self, B: Array) -> Array:
        return np.asarray(self.vectors @ (self.values[:, None] * (self.vectors.T @ B)))

    @property
    def root(self) -> Array:
        """R of which the kernel matrix is ``R R'``."""
        return np.asarray(self.vectors * np.sqrt(self.values))


def kernel_root(K: Array, name: str) -> Array:
    """R with ``K = R R'``, by Cholesky with pivots, O(m^3); an indefinite matrix is refused as in KernelSide."""
    factor, order, rank, _ = linalg.lapack.dpstrf(K, lower=1)
    root = np.empty((len(K), rank))
    root[order - 1] = np.tril(factor)[:, :rank]
    if rank < len(K) and np.abs(K - root @ root.T).max() > _REMAINS * np.abs(K).max():
        check_semidefinite(linalg.eigvalsh(K, check_finite=False), "in its matrix", name)
    return root


@dataclass(frozen=True, eq=False)
class CompleteUtilities:
    """Every query's utility of every item is known.

    Attributes
    ----------
    queries : KernelSide
    items : KernelSide or None
        ``C G C``; None for G = I.
    Y : ndarray of shape (q, d)
    fit_intercept : bool
        Whether each item has a utility of its own that is not penalised; for G = I.
    """

    queries: KernelSide
    items: KernelSide | None
    Y: Array
    fit_intercept: bool = False

    @property
    def spectrum(self) -> Array:
        """The extreme eigenvalues, which an automatic grid is laid around."""
        sigma = self._sigma
        if not len(self.queries.values) or not len(sigma):
            return np.zeros(1)
        full = len(self.queries.values) == len(self.Y) and len(sigma) >= self.Y.shape[1] - 1
        low = float(self.queries.values[-1] * sigma.min()) if full else 0.0
        return np.array([self.queries.values[0] * sigma.max(), low])

    @cached_property
    def _T(self) -> Array:
        T = self.Y - self.Y.mean(axis=1, keepdims=True)
        return T if self.items is None else T @ self.items.vectors

    @cached_property
    def _along(self) -> tuple[Array, Array | None]:
        """``V'T``, and what of T lies outside of V; None if V is a basis of everything."""
        V = self.queries.vectors
        inside = V.T @ self._T
        return inside, None if V.shape[0] == V.shape[1] else self._T - V @ inside

    @property
    def _sigma(self) -> Array:
        return np.ones(1) if self.items is None else self.items.values

    @cached_property
    def _products(self) -> Array:
        """``lambda sigma'``; of one column if all sigma are 1."""
        return np.outer(self.queries.values, self._sigma)

    def _coefficients(self, alpha: float, rows: slice) -> Array:
        """Rows of c in the items' directions, without intercepts."""
        inside, outside = self._along
        scaled = self._products + alpha
        scaled = np.divide(inside, scaled, out=scaled if scaled.shape == inside.shape else None)
        c = np.asarray(self.queries.vectors[rows] @ scaled)
        if outside is not None:
            c += outside[rows] / alpha
        return c

    def _levels(self, alpha: float) -> tuple[Array, Array, Array]:
        """``A^-1 1`` for the one A of all items, (q, 1), its sum, and the items' intercepts."""
        V = self.queries.vectors
        sums = V.sum(axis=0)[:, None]
        ones = V @ (sums / (self._products + alpha)) + (1.0 - V @ sums) / alpha
        total = ones.sum()
        return ones, total, (ones.T @ self._T)[0] / total

    def _diagonal_at(self, t: Array) -> Array:
        """The diagonal of ``(K + t I)^-1`` for some t, (q, t)."""
        squares = self.queries.vectors**2
        rest = 1.0 - squares.sum(axis=1, keepdims=True)
        rest[rest < len(rest) * np.finfo(np.float64).eps] = 0.0  # rounding, which a small t would enlarge
        return np.asarray(squares @ (1.0 / (self.queries.values[:, None] + t)) + rest / t)

    @cached_property
    def _pieces(self) -> dict[int, Array]:
        return {}

    def _piece(self, k: int) -> Array:
        """The same diagonal between ``log t = k w`` and ``(k + 1) w``: coefficients of Chebyshev polynomials."""
        if k not in self._pieces:
            nodes = chebyshev.chebpts1(_NODES)
            values = self._diagonal_at(np.exp(_WIDTH * (k + 0.5 * (nodes + 1.0))))
            transform = chebyshev.chebvander(nodes, _NODES - 1) * (2.0 / _NODES)
            transform[:, 0] *= 0.5
            self._pieces[k] = values @ transform
        return self._pieces[k]

    def _diagonal(self, alpha: float, rows: slice) -> Array:
        """``[(sigma_k K + alpha I)^-1]_uu`` of some queries u, for every direction k of the items.

        It is a function of ``alpha / sigma_k`` alone, without a pole near the positive numbers: polynomials in its
        logarithm interpolate it to rounding, where a product as large as that for c would be needed.
        """
        if self.items is None:
            return self._diagonal_at(np.array([alpha]))[rows]
        sigma = self.items.values  # descending
        place = np.log(alpha / sigma) / _WIDTH
        numbers = np.floor(place).astype(np.intp)
        out = np.empty((len(self.Y[rows]), len(sigma)))
        for k in np.unique(numbers):
            own = slice(*np.searchsorted(numbers, (k, k + 1)))  # they ascend
            x = 2.0 * (place[own] - k) - 1.0
            polynomials = chebyshev.chebvander(x, _NODES - 1) / sigma[own, None]
            np.matmul(self._piece(int(k))[rows], polynomials.T, out=out[:, own])
        return out

    def solution(self, alpha: float) -> tuple[Array, Array]:
        """Coefficients ``a`` (q, d) with ``f = K a G``, and the items' intercepts, (d,). O(q d (q + d))."""
        c = self._coefficients(alpha, slice(None))
        if self.items is not None:
            return c @ self.items.vectors.T, np.zeros(self.Y.shape[1])
        if not self.fit_intercept:
            return c, np.zeros(c.shape[1])
        ones, _, level = self._levels(alpha)
        return c - ones * level, level

    def _errors_without(self, alpha: float, rows: slice) -> Array:
        """Errors of queries by the model of all others, centred and in the items' directions."""
        errors, diagonal = self._coefficients(alpha, rows), self._diagonal(alpha, rows)
        if self.fit_intercept:
            ones, total, level = self._levels(alpha)
            errors -= ones[rows] * level
            diagonal -= ones[rows] ** 2 / total
        errors /= diagonal
        return errors

    def without_each_query(self, alpha: float, rows: slice = slice(None), out: Array | None = None) -> Array:
        """Centred scores of every query, or some of them, by the model of all others, (queries, d)."""
        held = self._errors_without(alpha, rows)
        if self.items is None:
            return np.subtract(self._T[rows], held, out=held if out is None else out)
        np.subtract(self._T[rows], held, out=held)
        return np.matmul(held, self.items.vectors.T, out=out)

    def squared_errors_without(self, alphas: Array) -> Array:
        """Squared lengths of each query's centred error by the model of all others, (queries, alphas)."""
        lost = np.zeros(len(self.Y))
        if self.items is not None:  # what no kernel function of the items reaches
            beyond = self.Y - self.Y.mean(axis=1, keepdims=True) - self._T @ self.items.vectors.T
            lost = np.einsum("ij,ij->i", beyond, beyond)
        errors = (self._errors_without(float(alpha), slice(None)) for alpha in alphas)
        return np.column_stack([lost + np.einsum("ij,ij->i", e, e) for e in errors])

    def without_queries(self, alphas: Array) -> Iterator[tuple[slice, slice, Array]]:
        """The same of every alpha: which queries and alphas, and their scores (alphas, queries, d).

        Some at a time: all queries of several alphas, or some queries of one. The next ones overwrite them.
        """
        q, d = self.Y.shape
        step = min(q, max(1, _HELD // d))
        several = max(1, _HELD // (step * d))
        held = np.empty((min(several, len(alphas)), step, d))
        for values in row_slices(0, len(alphas), several):
            for rows in row_slices(0, q, step):
                part = held[: values.stop - values.start, : rows.stop - rows.start]
                for alpha, scores in zip(alphas[values], part, strict=True):
                    self.without_each_query(float(alpha), rows, scores)
                yield rows, values, part


@dataclass(frozen=True, eq=False)
class KnownUtilities:
    """Some utilities are known: conjugate gradients on the Kronecker operator over what is known.

    Attributes
    ----------
    queries : KernelSide
    items : KernelSide or None
        G itself; None for G = I.
    Y : ndarray of shape (q, d)
        NaN where the utility is not known.
    fit_intercept : bool
    """

    queries: KernelSide
    items: KernelSide | None
    Y: Array
    fit_intercept: bool = False
    n_watched: int = 0

    @cached_property
    def _known(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.Y)

    @property
    def size(self) -> int:
        """Known utilities."""
        return int(self._known.sum())

    def _centred(self, Z: Array) -> Array:
        """Known entries less their query's mean; 0 elsewhere."""
        known = self._known
        Z = np.where(known, Z, 0.0)
        mean = Z.sum(axis=1, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1)
        return np.where(known, Z - mean, 0.0)

    def _spread(self, c: Array) -> Array:
        out = np.zeros(self.Y.shape)
        out[self._known] = c
        return self._centred(out)

    def apply(self, p: Array) -> tuple[Array, None]:
        """``C_S (K (x) G) C_S p``, and nothing watched."""
        f = self.queries @ self._spread(p)
        f = f if self.items is None else (self.items @ f.T).T
        return self._centred(f)[self._known], None

    def solutions(self, alphas: Array) -> tuple[list[tuple[Array, Array]], list[Status]]:
        """Coefficients (q, d) and intercepts (d,) of every alpha, and what became of each.

        One run of conjugate gradients for all alphas; with intercepts one more for each item.
        """
        target = self._centred(self.Y)[self._known]
        rights = [target]
        if self.fit_intercept:
            rights += [self._centred(np.broadcast_to(unit, self.Y.shape))[self._known] for unit in np.eye(self.d)]
        runs = [_METHOD.solve(self, right, alphas) for right in rights]
        found, status = [], []
        for k in range(len(alphas)):
            c, level = runs[0].solution(k), np.zeros(self.d)
            if self.fit_intercept:
                B, inverse = np.column_stack(rights[1:]), np.column_stack([run.solution(k) for run in runs[1:]])
                level = np.linalg.pinv(B.T @ inverse) @ (B.T @ c)
                c = c - inverse @ level
            found.append((self._spread(c), level))
            states = [_METHOD.verify(run, k) for run in runs]
            status.append(next((s for s in states if s is not Status.CONVERGED), Status.CONVERGED))
        return found, status

    @property
    def spectrum(self) -> Array:
        """Bounds of the eigenvalues, which an automatic grid is laid around."""
        top = float(self.queries.values.max(initial=0.0))
        return np.array([top * (1.0 if self.items is None else float(self.items.values.max(initial=0.0))), 0.0])

    @property
    def d(self) -> int:
        """Items."""
        return int(self.Y.shape[1])
