r"""Conditional ranking: the same d items ranked for each of q queries, with a kernel for queries and one for items.

With utilities Y (q x d), kernels K (q x q) of the queries and G (d x d) of the items, and C the centring of the items,

.. math:: \min_f \sum_u \lVert C ( y_u - f_u ) \rVert^2 + \alpha \lVert f \rVert^2

over functions of a query and an item with the kernel ``K (x) G``. With ``K = V diag(lambda) V'`` and
``C G C = U diag(sigma) U'`` the solution for every alpha is

.. math:: c = V \left[ \frac{V' Y C U}{\lambda \sigma' + \alpha} \right] U' , \qquad f = K (c C) G ,

and in direction k of the items the problem is ridge regression with the kernel :math:`\sigma_k K`, so that the
prediction for a held-out query u is ``T_uk - c_uk / [(sigma_k K + alpha I)^-1]_uu``, ``T = Y C U`` (Pahikkala et al.
2013). ``G = I`` is label ranking: then ``C G C = C``, all eigenvalues are 1, and no rotation is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from rankrls._cached import cached_property
from rankrls._comparisons import Data, Items, LabelledItems
from rankrls._curves import Curve
from rankrls._problems import LINEAR, Candidate, Problem
from rankrls._queries import QueryLayout, query_layout
from rankrls._typing import Array, Index, Matrix
from rankrls.kernels import Kernel
from rankrls.learners.paths import PathSolutions
from rankrls.metrics._measure import Measure, mean_and_error
from rankrls.numerics.eigen import EPS, check_semidefinite
from rankrls.numerics.runs import dense_rows
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.ties import tied


@dataclass(frozen=True, eq=False)
class KernelSide:
    """A kernel matrix, represented by its nonzero eigenvalues and their eigenvectors.

    Attributes
    ----------
    values : ndarray of shape (rank,)
        Positive.
    vectors : ndarray of shape (m, rank)
    """

    values: Array
    vectors: Array


def kernel_side(kernel: Kernel, X: Matrix, name: str, *, centred: bool = False) -> KernelSide:
    """The kernel matrix K of some rows, or ``C K C``; O(m^3), or O(m n min(m, n)) for a linear kernel.

    An indefinite matrix is refused; ``name`` is the parameter in the error.
    """
    largest = 0.0
    if kernel.is_linear and X.shape[0] > X.shape[1]:
        Z = dense_rows(X, slice(None))
        Z = Z - Z.mean(axis=0) if centred else Z
        vectors, roots, _ = linalg.svd(Z, full_matrices=False, check_finite=False)
        values = roots**2
    else:
        K = kernel(X)
        largest = np.abs(K).max(initial=0.0)  # centring keeps the rounding errors of K
        if centred:
            K -= K.mean(axis=0)
            K -= K.mean(axis=1)[:, None]
        values, vectors = linalg.eigh(K, check_finite=False, driver="evd")
        check_semidefinite(values, name)
    alive = values > len(vectors) * EPS * values.max(initial=largest)
    return KernelSide(values[alive], np.ascontiguousarray(vectors[:, alive]))


@dataclass(frozen=True, eq=False)
class RankedItems(LabelledItems):
    """Queries and their utilities for the same items: rows are queries, and columns of Y are items.

    Attributes
    ----------
    item_features : Items or None
        None if the items have no features: label ranking.
    """

    item_features: Items | None


@dataclass(frozen=True, eq=False, kw_only=True)
class ConditionalCandidate(Candidate[PathSolutions[Array]]):
    """A kernel for queries with one for items.

    Attributes
    ----------
    item_kernel : Kernel or None
        None for G = I.
    fit_intercept : bool
        Whether each item has an unpenalized intercept; only for G = I.
    """

    item_kernel: Kernel | None
    fit_intercept: bool

    def problem(self, data: Data) -> ConditionalRanking:
        ranked = data.of_kind(RankedItems)
        side = None
        if self.item_kernel is not None and ranked.item_features is not None:
            side = kernel_side(self.item_kernel, ranked.item_features.features, "item_kernel", centred=True)
        return ConditionalRanking(ranked.X, ranked.Y, side, self.kernel, self.fit_intercept)


@dataclass(frozen=True, eq=False)
class ConditionalRanking(Problem[PathSolutions[Array]]):
    """The problem for all utilities, for every alpha.

    Attributes
    ----------
    X : ndarray or csr_array of shape (q, n)
    Y : ndarray of shape (q, d)
    items : KernelSide or None
        ``C G C``; None for G = I.
    kernel : Kernel
        Kernel of the queries.
    fit_intercept : bool
    """

    X: Matrix
    Y: Array
    items: KernelSide | None = None
    kernel: Kernel = LINEAR
    fit_intercept: bool = False

    parameter = "alpha"

    @cached_property
    def queries(self) -> KernelSide:
        """The kernel matrix K; centred if items have intercepts."""
        return kernel_side(self.kernel, self.X, "kernel", centred=self.fit_intercept)

    def axis(self) -> Array:
        """Regularization values from 10 to 1e-9 times the largest eigenvalue, descending, in equal ratios."""
        top = float(self.queries.values.max(initial=0.0) * self._sigma.max(initial=0.0))
        return np.geomspace(10.0 * top, 1e-9 * top, 21) if top > 0.0 else np.ones(1)

    def path(self, values: Array) -> PathSolutions[Array]:
        """Functions of queries with one column per item; the details are the intercepts of the items."""
        coefficients, intercepts = zip(*map(self.solution, values.tolist()), strict=True)
        return PathSolutions(np.stack(coefficients), self._read, intercepts)

    def _read(self, a: Array) -> Scorer:
        if self.kernel.is_linear:
            return Scorer(self.X.T @ a)
        return Scorer(None, a, self.kernel, None if self.kernel.name == "precomputed" else self.X)

    def held_out_curve(self, measure: Measure, folds: Sequence[Index] | None, values: Array) -> Curve | None:
        """Curve over the values of alpha with each query held out alone; O(q d (q + d)) per alpha."""
        if folds is not None:
            return None

        def held_out(k: int) -> Array:
            scores = self.without_each_query(float(values[k]))
            return tied(scores.reshape(-1, 1), _rows_as_queries(scores)).reshape(scores.shape)

        every = range(len(values))
        found = np.column_stack([each_query(measure, self.Y, held_out(k)) for k in every])
        return Curve(*mean_and_error(found), found, scores=held_out)

    @cached_property
    def _T(self) -> Array:
        T = self.Y - self.Y.mean(axis=1, keepdims=True)
        return T if self.items is None else np.asarray(T @ self.items.vectors)

    @property
    def _level(self) -> Array:
        """Means of the items if they have intercepts, (d,); otherwise zeros."""
        return np.asarray(self._T.mean(axis=0) * self.fit_intercept)

    @cached_property
    def _along(self) -> tuple[Array, Array | None]:
        """``V'T``, and the part of T outside the span of V; None if V spans everything."""
        V = self.queries.vectors
        T = self._T - self._level
        inside = V.T @ T
        return inside, None if V.shape[0] == V.shape[1] else T - V @ inside

    @property
    def _sigma(self) -> Array:
        return np.ones(1) if self.items is None else self.items.values

    @cached_property
    def _products(self) -> Array:
        """``lambda sigma'``; one column if all sigma are 1."""
        return np.outer(self.queries.values, self._sigma)

    def _coefficients(self, alpha: float) -> Array:
        """C in the directions of the items, without intercepts."""
        inside, outside = self._along
        scaled = self._products + alpha
        scaled = np.divide(inside, scaled, out=scaled if scaled.shape == inside.shape else None)
        c = self.queries.vectors @ scaled
        if outside is not None:
            c += outside / alpha
        return c

    def _diagonal(self, alpha: float) -> Array:
        """``[(sigma_k K + alpha I)^-1]_uu`` for every query u and item direction k; one column if all sigma are 1."""
        squares = self.queries.vectors**2
        rest = 1.0 - self.fit_intercept / len(squares) - squares.sum(axis=1, keepdims=True)
        rest[rest < len(rest) * EPS] = 0.0  # rounding, which a small alpha would amplify
        return np.asarray(squares @ (1.0 / (self._products + alpha)) + rest / alpha)

    def solution(self, alpha: float) -> tuple[Array, Array]:
        """Coefficients ``a`` (q, d) with ``f = K a G``, and intercepts of the items, (d,). O(q d (q + d))."""
        c = self._coefficients(alpha)
        if self.items is not None:
            a = c @ self.items.vectors.T
            # A direction of the items with an eigenvalue close to 0 is mixed with that of the mean.
            return a - a.mean(axis=1, keepdims=True), np.zeros(self.Y.shape[1])
        if not self.fit_intercept:
            return c, np.zeros(c.shape[1])
        own = self.X[:1] if self.kernel.name == "precomputed" else self.kernel(self.X[:1], self.X)
        return c, (self._T[0] - alpha * c[0] - own @ c).ravel()

    def without_each_query(self, alpha: float) -> Array:
        """Centred scores of every query by the model fitted without it, (q, d). O(q d (q + d))."""
        held = self._T - self._coefficients(alpha) / self._diagonal(alpha)
        return held if self.items is None else held @ self.items.vectors.T


def each_query(measure: Measure, Y: Array, scores: Array) -> Array:
    """Value of the measure for each row of Y; NaN where undefined."""
    return measure.per_query(Y.ravel(), scores.reshape(-1, 1), _rows_as_queries(Y))[:, 0]


def _rows_as_queries(Y: Array) -> QueryLayout:
    return query_layout(np.repeat(np.arange(len(Y)), Y.shape[1]), Y.size)
