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

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from rankrls._cached import cached_property
from rankrls.equations.krylov import MultiShiftCG, Status
from rankrls.equations.spectrum import check_semidefinite

__all__ = ["CompleteUtilities", "KernelSide", "KnownUtilities"]

Array = NDArray[np.float64]
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
        gram = Z.T @ Z
        gram = np.asarray(gram.toarray() if sparse.issparse(gram) else gram, np.float64)
        values, W = linalg.eigh(gram, check_finite=False, driver="evd")
        kept = cls._cut(values[::-1], W[:, ::-1])
        # Orthonormal to rounding also where eigenvalues lie far apart.
        vectors, _ = np.linalg.qr(np.asarray(Z @ (kept.vectors / np.sqrt(kept.values))))
        small = np.asarray(vectors.T @ Z)
        values, rotation = linalg.eigh(small @ small.T, check_finite=False, driver="evd")
        return cls._cut(values[::-1], vectors @ rotation[:, ::-1])

    @classmethod
    def _cut(cls, values: Array, vectors: Array) -> KernelSide:
        alive = values > len(vectors) * np.finfo(np.float64).eps * values.max(initial=0.0)
        return cls(np.ascontiguousarray(values[alive]), np.ascontiguousarray(vectors[:, alive]))

    def __matmul__(self, B: Array) -> Array:
        return np.asarray(self.vectors @ (self.values[:, None] * (self.vectors.T @ B)))

    @property
    def matrix(self) -> Array:
        """The kernel matrix."""
        return np.asarray((self.vectors * self.values) @ self.vectors.T)


def centred_items(side: KernelSide) -> KernelSide:
    """``C G C`` of a kernel of items."""
    root = side.vectors * np.sqrt(side.values)
    return KernelSide.of_features(root - root.mean(axis=0))


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
    def _along(self) -> tuple[Array, Array]:
        """``V'T``, and what of T lies outside of V."""
        inside = self.queries.vectors.T @ self._T
        return inside, self._T - self.queries.vectors @ inside

    @property
    def _sigma(self) -> Array:
        return np.ones(1) if self.items is None else self.items.values

    def _inverse(self, alpha: float) -> Array:
        """``1 / (lambda sigma' + alpha)``; of one column if all sigma are 1."""
        return np.asarray(1.0 / (np.outer(self.queries.values, self._sigma) + alpha))

    def _duals(self, alpha: float) -> tuple[Array, Array, Array]:
        """``c`` in the items' directions, the diagonal of what maps T to it, and the intercepts."""
        V, inverse = self.queries.vectors, self._inverse(alpha)
        inside, outside = self._along
        c = V @ (inverse * inside) + outside / alpha
        squares = V * V
        diagonal = squares @ inverse + (1.0 - squares.sum(axis=1, keepdims=True)) / alpha
        if not self.fit_intercept:
            return c, diagonal, np.zeros(c.shape[1])
        sums = V.sum(axis=0)[:, None]
        ones = V @ (inverse * sums) + (1.0 - V @ sums) / alpha  # A^-1 1
        total = ones.sum(axis=0)
        level = (ones.T @ self._T)[0] / total[0]
        return c - ones * level, diagonal - ones**2 / total, level

    def solution(self, alpha: float) -> tuple[Array, Array]:
        """Coefficients ``a`` (q, d) with ``f = K a G``, and the items' intercepts, (d,). O(q d (q + d))."""
        c, _, level = self._duals(alpha)
        return (c, level) if self.items is None else (c @ self.items.vectors.T, np.zeros(self.Y.shape[1]))

    def without_each_query(self, alpha: float) -> Array:
        """Centred scores of every query by the model of all others, (q, d)."""
        c, diagonal, _ = self._duals(alpha)
        held = self._T - c / diagonal
        return held if self.items is None else held @ self.items.vectors.T


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
