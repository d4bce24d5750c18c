r"""Conditional ranking: the same d items ranked for each of q queries, with a kernel for queries and one for items.

With utilities Y (q x d), kernels K (q x q) of the queries and G (d x d) of the items, and C the centring of the items,

.. math:: \min_f \sum_u \lVert C ( y_u - f_u ) \rVert^2 + \alpha \lVert f \rVert^2

over functions of a query and an item with the kernel ``K (x) G``. With ``K = V diag(lambda) V'`` and
``C G C = U diag(sigma) U'`` the solution for every alpha is

.. math:: c = V \left[ \frac{V' Y C U}{\lambda \sigma' + \alpha} \right] U' , \qquad f = K (c C) G ,

and in direction k of the items the problem is ridge regression with the kernel :math:`\sigma_k K`, so that what a query
u is predicted without it is ``T_uk - c_uk / [(sigma_k K + alpha I)^-1]_uu``, ``T = Y C U`` (Pahikkala et al. 2013).
``G = I`` is label ranking: then ``C G C = C``, all eigenvalues are 1 and nothing has to be rotated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from rankrls._cached import cached_property
from rankrls._typing import Array, Matrix
from rankrls.numerics.eigen import check_semidefinite


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
        check_semidefinite(values, name)
        return cls._cut(values[::-1], vectors[:, ::-1])

    @classmethod
    def of_features(cls, Z: Matrix) -> KernelSide:
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


@dataclass(frozen=True, eq=False)
class ConditionalRanking:
    """The problem of all utilities, for every alpha.

    Attributes
    ----------
    queries : KernelSide
    items : KernelSide or None
        ``C G C``; None for G = I.
    Y : ndarray of shape (q, d)
    fit_intercept : bool
        Whether each item has a utility of its own that is not penalized; for G = I.
    """

    queries: KernelSide
    items: KernelSide | None
    Y: Array
    fit_intercept: bool = False

    def grid(self, count: int = 21) -> Array:
        """Regularization values from 10 to 1e-9 times the largest eigenvalue, descending, in equal ratios."""
        top = float(self.queries.values.max(initial=0.0) * self._sigma.max(initial=0.0))
        return np.asarray(np.geomspace(10.0 * top, 1e-9 * top, count)) if top > 0.0 else np.ones(1)

    @cached_property
    def _T(self) -> Array:
        T = self.Y - self.Y.mean(axis=1, keepdims=True)
        return T if self.items is None else np.asarray(T @ self.items.vectors)

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

    def _coefficients(self, alpha: float) -> Array:
        """C in the items' directions, without intercepts."""
        inside, outside = self._along
        scaled = self._products + alpha
        scaled = np.divide(inside, scaled, out=scaled if scaled.shape == inside.shape else None)
        c = np.asarray(self.queries.vectors @ scaled)
        if outside is not None:
            c += outside / alpha
        return c

    def _levels(self, alpha: float) -> tuple[Array, Array, Array]:
        """``A^-1 1`` for the one A of all items, (q, 1), its sum, and the items' intercepts."""
        V = self.queries.vectors
        sums = V.sum(axis=0)[:, None]
        ones = V @ (sums / (self._products + alpha)) + (1.0 - V @ sums) / alpha
        total = ones.sum()
        return ones, total, (ones.T @ self._T)[0] / total

    def _diagonal(self, alpha: float) -> Array:
        """``[(sigma_k K + alpha I)^-1]_uu`` of every query u and direction k of the items; one column if all are 1."""
        squares = self.queries.vectors**2
        rest = 1.0 - squares.sum(axis=1, keepdims=True)
        rest[rest < len(rest) * np.finfo(np.float64).eps] = 0.0  # rounding, which a small alpha would enlarge
        return np.asarray(squares @ (1.0 / (self._products + alpha)) + rest / alpha)

    def solution(self, alpha: float) -> tuple[Array, Array]:
        """Coefficients ``a`` (q, d) with ``f = K a G``, and the items' intercepts, (d,). O(q d (q + d))."""
        c = self._coefficients(alpha)
        if self.items is not None:
            a = c @ self.items.vectors.T
            # A direction of the items whose eigenvalue is next to 0 is found mixed with that of the mean.
            return a - a.mean(axis=1, keepdims=True), np.zeros(self.Y.shape[1])
        if not self.fit_intercept:
            return c, np.zeros(c.shape[1])
        ones, _, level = self._levels(alpha)
        return c - ones * level, level

    def without_each_query(self, alpha: float) -> Array:
        """Centred scores of every query by the model of all others, (q, d). O(q d (q + d))."""
        errors = self._coefficients(alpha)
        diagonal = self._diagonal(alpha)
        if self.fit_intercept:
            ones, total, level = self._levels(alpha)
            errors -= ones * level
            diagonal -= ones**2 / total
        held = self._T - errors / diagonal
        return held if self.items is None else np.asarray(held @ self.items.vectors.T)
