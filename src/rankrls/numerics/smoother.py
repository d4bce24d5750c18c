r"""One smoother for every regularization value: ``H(alpha) = Z diag(1 / (lambda + alpha)) Z'``.

The minimizer of ``||F X w - t||^2 + alpha ||w||^2`` is ``w = (X'LX + alpha I)^-1 X'F't`` (Pahikkala et al. 2007,
equation 11). One decomposition ``X'LX = V diag(lambda) V'`` gives it for every alpha (section 2.4 there), and the
fitted values are ``F X w = H t`` with ``Z = F X V``. In the dual, where ``F K F' = V diag(lambda) V'``, ``a = F'c`` and
``(F K F' + alpha I) c = t``, ``Z = V sqrt(lambda)``. Over a basis of items (Tsivtsivadze et al. 2008), the smoother is
the primal one in features that are orthonormal for the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from rankrls._arrays import (
    as_floats,
    chunk_values,
    items_behind,
    joined,
    namespace,
    on_device,
    squared_lengths,
    taken,
    to_device_of,
    to_host,
)
from rankrls._errors import InputError
from rankrls._rows import offset_columns, shift_columns
from rankrls._typing import Array, Matrix
from rankrls.numerics.eigen import (
    EPS,
    SPAN,
    check_semidefinite,
    cholesky_solution,
    jacobi_eigen,
    lost_feature,
    symmetric_eigen,
)
from rankrls.numerics.graph import Graph, PreferenceGraph
from rankrls.numerics.runs import chunk_rows, chunks, left_fold, map_chunks

JACOBI = 300
"""Largest number of features for which Jacobi rotations are used even if no feature would be lost (85 ms)."""
_JACOBI_IF_NEEDED = 1500
_SPARSE = 0.1
"""Share of stored entries below which sparse rows are multiplied as sparse rows."""
_SUBTRACTED = 1e-12
_LOST = 1e3
"""An alpha of at most this multiple of ``size`` units of rounding of the largest eigenvalue is lost in rounding."""


@dataclass(frozen=True, eq=False)
class Equations:
    """Normal equations of a block of whole queries; those of several blocks add up.

    Attributes
    ----------
    gram : ndarray of shape (n, n)
        ``X'LX``.
    right : ndarray of shape (n, targets)
        ``X'F't``.
    rows : int
        Number of rows in the sums, with which rounding errors grow.
    whitening : ndarray of shape (features, n), optional
        T, if the equations are those of the features ``X T``.
    """

    gram: Array
    right: Array
    rows: int
    whitening: Array | None = None

    @classmethod
    def of(cls, graph: Graph, X: Matrix) -> Equations:
        """Equations of one block. O(m n^2); O(items n^2 + preferences n) for more preferences than items."""
        if sparse.issparse(X) and X.nnz < _SPARSE * X.shape[0] * X.shape[1]:
            x = _near_zero(X[graph.items].astype(np.float64), graph)
            gram = graph.sparse_gram(x)
            right = x.T @ graph.transposed(graph.target)
        elif (of_preferences := graph.over_items) is not None:
            items = of_preferences.centred_items(X)
            gram = items.T @ (of_preferences.matrix @ items)
            right = items.T @ graph.transposed(graph.target)
        else:
            return cls.of_factored(graph, graph.factor_rows(X))
        return cls(gram, right, graph.n_rows)

    @classmethod
    def of_factored(cls, graph: Graph, Z: Matrix) -> Equations:
        """Equations of one block, from ``Z = F X``."""
        return cls(Z.T @ Z, Z.T @ to_device_of(graph.target, Z), graph.n_rows)

    def __iadd__(self, other: Equations) -> Equations:
        for own, more in ((self.gram, other.gram), (self.right, other.right)):
            own += more  # in place
        return replace(self, rows=self.rows + other.rows)

    def __sub__(self, other: Equations) -> Equations:
        """Equations without the queries of ``other``; features left with rounding errors only become zero."""
        gram = self.gram - other.gram
        right = self.right - other.right
        gone = gram.diagonal() <= _SUBTRACTED * self.gram.diagonal()
        gram[gone] = 0.0
        gram[:, gone] = 0.0
        right[gone] = 0.0
        return replace(self, gram=gram, right=right)

    def whitened(self, T: Array | None) -> Equations:
        """Equations of the features ``X T``; unchanged if T is None, or if they are so already. O(n^3)."""
        if T is None or T is self.whitening:
            return self
        return replace(self, gram=T.T @ self.gram @ T, right=T.T @ self.right, whitening=T)

    def smoother(self, *, own: bool = True) -> Smoother:
        """Decompose the Gram matrix. O(n^3).

        ``own`` says that each feature has rounding errors relative to itself. Those of whitened features, and of
        features computed from a kernel, are relative to the largest feature, and Jacobi rotations would amplify them.
        """
        n = self.gram.shape[0]
        size = max(self.rows, n)
        diagonal = to_host(namespace(self.gram).linalg.diagonal(self.gram))
        own = own and self.whitening is None
        lost = lost_feature(diagonal) if own else None
        if own and (n <= JACOBI or (lost is not None and n <= _JACOBI_IF_NEEDED)):
            values, found = jacobi_eigen(to_host(self.gram), size)
            vectors = to_device_of(found, self.gram)
            lost = None
            least = float(diagonal[diagonal > 0.0].min(initial=np.inf))
        else:
            # LAPACK destroys its argument
            values, vectors = symmetric_eigen(self.gram if on_device(self.gram) else self.gram.copy(), size)
            np.maximum(values, 0.0, out=values)
            least = np.inf
        T = vectors if self.whitening is None else self.whitening @ vectors
        right = to_host(vectors.T @ self.right)
        if not own:
            right[values == 0.0] = 0.0  # a small alpha would amplify rounding
        return Smoother(values, T, right, size, least, lost)

    def solve(self, alpha: float) -> Array:
        """Weights for one alpha, (features, targets), by Cholesky, or by the smoother if alpha is negligible."""
        w = cholesky_solution(self.gram, self.right, alpha)
        if w is None:
            return np.asarray(self.smoother().path(np.array([alpha]))[0])
        return w if self.whitening is None else to_host(self.whitening @ to_device_of(w, self.whitening))


def normal_equations(graph: Graph, X: Matrix) -> Equations:
    """Equations of data in memory: the sum over chunks from left to right, computed on all threads."""
    if graph.over_items is not None:
        return Equations.of(graph, X)
    rows = chunk_rows(X.shape[1], chunk_values(X)) * (8 if sparse.issparse(X) else 1)
    parts = [graph.part(a, b) for a, b in chunks(graph.starts, rows)]
    # a product on a device uses all of its threads
    several = map if on_device(items_behind(X)) else map_chunks
    limit = graph.n_rows if sparse.issparse(X) else 2 * rows
    short = several(partial(Equations.of, X=X), (part for part in parts if part.n_rows <= limit))
    long = (_in_pieces(part, X, rows, several) for part in parts if part.n_rows > limit)
    return left_fold(chain(short, chain.from_iterable(long)))


def _in_pieces(graph: Graph, X: Matrix, rows: int, several: Any) -> Iterator[Equations]:
    """Equations of the pieces of a long query, and of the pieces' means if there are any."""

    def equations(piece: Graph) -> tuple[Equations, Matrix]:
        D, mean = piece.read(X)
        return Equations.of_factored(piece, piece.factor(D, mean)), mean

    means = []
    pieces, between = graph.pieces(rows)
    for of_piece, mean in several(equations, [pieces.part(a, b) for a, b in chunks(pieces.starts, rows)]):
        means.append(mean)
        yield of_piece
    if between is not None:
        yield Equations.of(between, joined(means))


@dataclass(frozen=True, eq=False)
class Smoother:
    """A decomposed problem.

    Attributes
    ----------
    values : ndarray of shape (k,)
        Eigenvalues lambda; those that are lost in rounding are 0.
    directions : ndarray of shape (n, k)
        Eigenvectors in the features: ``Z = F X directions``.
    right : ndarray of shape (k, targets)
        ``Z't``.
    size : int
        Number of terms with which rounding of the eigenvalues grows.
    least : float
        Squared spread of the smallest feature, if the decomposition preserves small features; otherwise infinity.
    lost_feature : int or None
        Number of a feature that is lost in rounding relative to others, for a warning.
    """

    values: Array
    directions: Array
    right: Array
    size: int
    least: float = np.inf
    lost_feature: int | None = None

    @property
    def top(self) -> float:
        """Largest eigenvalue."""
        return float(self.values.max(initial=0.0))

    @property
    def spreads(self) -> Array | None:
        """Spread of each feature, (n,); None if they are comparable."""
        if not self.top / SPAN > self.least:
            return None
        squares = to_host(self.directions) ** 2 @ self.values
        return np.sqrt(np.where(squares > 0.0, squares, 1.0))

    def grid(self, count: int = 21) -> Array:
        """Regularization values from 10 to 1e-9 times the largest eigenvalue, descending, in equal ratios.

        The grid extends further if the smallest feature's own eigenvalue is smaller still. It ends at twice the alpha
        at which an indefinite kernel's problem becomes unbounded, if that is larger.
        """
        top = self.top
        if not top > 0.0:
            return np.ones(1)
        lowest = max(1e-9 * top, -2.0 * float(self.values.min()))
        if 0.0 < self.least < lowest:
            further = 1e-3 * self.least
            count = round((count - 1) * np.log(10.0 * top / further) / np.log(10.0 * top / lowest)) + 1
            lowest = further
        return np.asarray(np.geomspace(10.0 * top, lowest, count))

    def inverse(self, alphas: Array) -> Array:
        """``1 / (lambda + alpha)``, (k, alphas); 0 in the null space if alpha is lost in rounding (minimum norm).

        Raises
        ------
        InputError
            If the problem of an indefinite kernel has no minimum for one of the alphas.
        """
        null = self.values == 0.0
        total = self.values[:, None] + alphas
        if total[~null].min(initial=np.inf) <= 0.0:
            low = float(self.values.min())
            raise InputError(
                f"The kernel is not positive semidefinite: its smallest eigenvalue on the compared pairs is {low:.3g}, "
                f"so every alpha must be larger than {-low:.3g}; got {np.min(alphas):.3g}.",
                parameter="alpha",
            )
        dropped = null[:, None] & (alphas <= _LOST * self.size * EPS * self.top)
        total[dropped] = 1.0
        return np.where(dropped, 0.0, 1.0 / total)

    def path(self, alphas: Array) -> Array:
        """Coefficients for every alpha, (alphas, n, targets). O(n k) each."""
        return self._coefficients(self.directions, self.inverse(alphas))

    def _coefficients(self, directions: Array, inverse: Array) -> Array:
        columns = inverse.shape[1] * self.right.shape[1]
        scaled = (inverse[:, :, None] * self.right[:, None, :]).reshape(-1, columns)
        found = to_host(directions @ to_device_of(scaled, directions))
        return np.ascontiguousarray(found.reshape(-1, inverse.shape[1], self.right.shape[1]).transpose(1, 0, 2))


@dataclass(frozen=True, eq=False, kw_only=True)
class DualSmoother(Smoother):
    """Dual smoother, whose ``directions`` are all eigenvectors of ``F K F'``.

    Attributes
    ----------
    graph : Graph
    unseen : ndarray of shape (unseen items, k)
        Deviations of the graph's unseen items, in the features ``K F' directions``.
    means : ndarray of shape (q, k) or None
        Means of the queries in these features.
    """

    graph: Graph
    unseen: Array
    means: Array | None

    def path(self, alphas: Array) -> Array:
        """Coefficients ``a = F'c`` of the items in the order of X, (alphas, items, targets)."""
        c = self._coefficients(self.directions, self.inverse(alphas))
        return np.stack([self.graph.item_coefficients(one) for one in c])


@dataclass(frozen=True, eq=False)
class DualEquations:
    """Equations of the dual, ``(F K F' + alpha I) c = t``.

    Attributes
    ----------
    graph : Graph
    C : ndarray of shape (rows of F, rows of F)
        ``F K F'``; its lower triangle is used.
    unseen, means : ndarray
        Deviations of unseen items and means of queries in the rows of ``K F'``; see :class:`DualSmoother`.
    lost_feature : int or None
    """

    graph: Graph
    C: Array
    unseen: Array
    means: Array | None
    lost_feature: int | None = None

    @classmethod
    def of_kernel(cls, K: Array, graph: Graph) -> DualEquations:
        """Equations from the kernel matrix of the items in the order of X. O(m^2)."""
        half = graph.factor_rows(K)
        return cls(graph, *_factored(graph, half.T if on_device(half) else np.ascontiguousarray(half.T)))

    @classmethod
    def of_features(cls, X: Matrix, graph: Graph) -> DualEquations:
        """Equations of the linear kernel, for more features than items. O(m^2 n).

        They are computed from ``F X`` for dense X, so that no offset is squared; for CSR from the kernel matrix, with
        columns that are stored in every row shifted towards zero.
        """
        if sparse.issparse(X):
            Z = _near_zero(X.astype(np.float64), graph)
            return cls.of_kernel((Z @ Z.T).toarray(), graph)
        Z, unseen, M = _factored(graph, X)
        lost = lost_feature(squared_lengths(Z, axis=0))
        return cls(graph, Z @ Z.T, unseen @ Z.T, None if M is None else M @ Z.T, lost)

    def smoother(self) -> DualSmoother:
        """Decompose ``F K F'``, which is destroyed. O(m^3)."""
        n = self.C.shape[0]
        values, V = symmetric_eigen(self.C, n)
        return DualSmoother(
            values,
            V,
            to_host(V.T @ to_device_of(self.graph.target, V)),
            n,
            lost_feature=self.lost_feature,
            graph=self.graph,
            unseen=self.unseen @ V,
            means=None if self.means is None else self.means @ V,
        )

    def solve(self, alpha: float) -> Array:
        """Coefficients of the items for one alpha, (items, targets), by Cholesky unless alpha is negligible."""
        c = cholesky_solution(self.C, self.graph.target, alpha)
        if c is None:
            return np.asarray(self.smoother().path(np.array([alpha]))[0])
        return self.graph.item_coefficients(c)


@dataclass(frozen=True, eq=False, kw_only=True)
class ItemSmoother(Smoother):
    """Smoother for more preferences than items, with a kernel: primal, in features with the kernel's inner products.

    With ``K = U S U'``, the features are ``U sqrt(S)``, without columns for eigenvalues that are lost in rounding. In
    these directions, scores of new items can be as large as the root of the eigenvalue times the coefficients, which
    are large if alpha is small: ``a = F'(t - F f) / alpha``, as at every stationary point.
    """

    graph: PreferenceGraph
    features: Array
    basis: Array

    @classmethod
    def of_kernel(cls, K: Array, graph: PreferenceGraph) -> ItemSmoother:
        """Smoother of a positive semidefinite kernel matrix, which is destroyed. O(items^3 + preferences items)."""
        values, U = symmetric_eigen(K, len(K))
        check_semidefinite(values)
        live = values > 0.0
        U = U[:, live]
        roots = np.sqrt(values[live])
        features = U * roots
        s = Equations.of(graph, features).smoother()
        return cls(s.values, s.directions, s.right, s.size, graph=graph, features=features, basis=U)

    def rounding(self, alphas: Array) -> tuple[Array, Array]:
        """Sizes of the items and norms of the functions, (1, alphas), whose products scale the rounding of a hold-out.

        Features are eigenvectors of a rounded kernel matrix: their rounding errors are relative to its largest
        eigenvalue, and are multiplied by the items' coefficients.
        """
        kernel = squared_lengths(self.features, axis=0)
        root = np.sqrt(kernel.max(initial=0.0))
        coefficients = np.sqrt(super().path(alphas)[:, :, 0] ** 2 @ (1.0 / kernel))
        return np.full(len(self.features), 0.25 * root), root * coefficients[None]

    def path(self, alphas: Array) -> Array:
        """Coefficients of the items, (alphas, items, 1)."""
        out = []
        U = self.basis
        kernel = squared_lengths(self.features, axis=0)[:, None]
        for alpha, w in zip(alphas.tolist(), super().path(alphas), strict=True):
            scores = self.features @ w
            a = U @ ((U.T @ scores) / kernel)
            if alpha > _LOST * self.size * EPS * self.top:
                rest = self.graph.transposed(self.graph.target - self.graph.factor_rows(scores)) / alpha
                a += rest - U @ (U.T @ rest)
            out.append(a)
        return np.stack(out)


def _near_zero(X: Matrix, graph: Graph) -> Matrix:
    """Sparse X whose columns that are stored in every row are shifted towards zero, unless constants count."""
    return X if graph.sees_constants else shift_columns(X, *offset_columns(X))


def _factored(graph: Graph, X: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """``F X``, the deviations of unseen items, and the means of queries."""
    D, means = graph.read(X)
    unseen = taken(D, np.flatnonzero(graph.unseen))
    return graph.factor(D, means), unseen, means


def feature_weights(graph: Graph, X: Matrix, a: Array) -> Array:
    """``X'a``, (n, columns), for coefficients of items that sum to 0 over queries.

    X is measured from the means of the queries, so that an offset of a column costs no digits.
    """
    items = as_floats(X) if sparse.issparse(X) or graph.sees_constants else graph.centred_items(X)
    return to_host(items.T @ to_device_of(a, X))
