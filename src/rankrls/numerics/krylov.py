r"""Conjugate gradients for every regularization value at once.

CG for ``A + alpha_0 I`` and for ``A + (alpha_0 + sigma) I`` share one Krylov space, and their residuals are multiples
of each other: one product with A per iteration advances the CG iterates of all shifts (Frommer & Maass 1999;
Jegerlehner 1996; van den Eshof & Sleijpen 2004). With the seed's step lengths gamma_k and beta_k, and
``rho_k = zeta_{k+1} / zeta_k`` for the factor ``zeta_k`` between the residuals,

.. math::

    \rho_k = 1 / [ 1 + \sigma \gamma_k + \tfrac{\gamma_k \beta_{k-1}}{\gamma_{k-1}} (1 - \rho_{k-1}) ] , \quad
    \gamma^\sigma_k = \gamma_k \rho_k , \quad \beta^\sigma_k = \beta_k \rho_k^2 ,

    p^\sigma_k = \zeta_k r_k + \beta^\sigma_{k-1} p^\sigma_{k-1} , \quad
    x^\sigma_{k+1} = x^\sigma_k + \gamma^\sigma_k p^\sigma_k .

All terms are positive for sigma >= 0 and rho is at most 1, so a shift breaks down only if the seed, the smallest alpha,
does. Every linear function of x obeys the same recurrence: validation scores of all shifts need only the scores of the
seed's direction.

Products ``X'L(Xp)`` do not form L (Airola, Pahikkala, Salakoski 2010, equation 8), which is a diagonal plus multiples
of means over classes and queries. With M and Q the mean rows of X over them,

.. math:: X'LX p = X' \mathrm{diag}(w e_1) f + M' \mathrm{diag}((e_2 - e_1) S_c) M p + \dots , \qquad f = X p .

If the mean rows have few entries compared with X, one pass over X suffices: the score of a row is computed and its
contribution added while the row is in the cache. Otherwise there are two passes, with L f between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from scipy import linalg, sparse

from rankrls._cached import cached_property
from rankrls._compiled import compiled, n_threads
from rankrls._rows import offset_columns, shift_columns
from rankrls._typing import Array, Index, Mask, Matrix
from rankrls.numerics.eigen import EPS
from rankrls.numerics.graph import Graph, LabelledGraph
from rankrls.numerics.runs import CHUNK_VALUES, averaging, group_means, left_fold, map_chunks

_PRECISION = 4.0 * EPS
"""Relative residual of the recurrence below which the true residual need not decrease."""
_INVARIANT = 1e-8
_FEW = 0.3
"""Share of the entries of X below which the mean rows allow the product in one pass."""
_CACHE = 1 << 18
"""Largest typical distance in bytes of rows read one after the other, if they are to come from the cache."""


class Status(StrEnum):
    """Status of the system of one alpha."""

    RUNNING = "running"
    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    BREAKDOWN = "breakdown"
    STAGNATED = "stagnated"


@dataclass(frozen=True)
class FeatureSystem:
    """Primal system: ``A = X'LX``; coefficients are weights of features.

    Attributes
    ----------
    product : LaplacianProduct
    scores : callable, optional
        Function of weights (n,) that returns the scores of the watched items.
    n_watched : int
    """

    product: LaplacianProduct
    scores: Callable[[Array], Array] | None = None
    n_watched: int = 0

    @property
    def size(self) -> int:
        """Number of features."""
        return self.product.n_features

    def apply(self, p: Array) -> tuple[Array, Array | None]:
        """``X'LX p``, and the scores of the watched items."""
        return self.product @ p, None if self.scores is None else self.scores(p)


@dataclass(frozen=True)
class KernelSystem:
    """Dual system: ``A = F K F'``; coefficients c give the items' coefficients ``a = F'c``.

    Attributes
    ----------
    K : ndarray, sparse array or LinearOperator of shape (m, m)
        Kernel matrix, used only in products.
    graph : Graph
        Graph over rows of K.
    watched : ndarray of intp, matrix or LinearOperator, optional
        Items of K whose scores need no separate product, or the kernel between other items and those of K.
    n_watched : int
    """

    K: Matrix
    graph: Graph
    watched: Matrix = None
    n_watched: int = 0

    @property
    def size(self) -> int:
        """Number of rows of F."""
        return self.graph.n_rows

    def items(self, c: Array) -> Array:
        """``a = F'c`` over all items of K."""
        return self.graph.item_coefficients(c, self.K.shape[0])

    def apply(self, p: Array) -> tuple[Array, Array | None]:
        """``F K F'p``, and the scores of the watched items."""
        a = self.items(p)
        f = np.asarray(self.K @ a)
        scores = None
        if self.watched is not None:
            by_number = isinstance(self.watched, np.ndarray) and self.watched.ndim == 1
            scores = f[self.watched] if by_number else np.asarray(self.watched @ a)
        return self.graph.factor_rows(f[:, None])[:, 0], scores


System: TypeAlias = FeatureSystem | KernelSystem
"""A positive semidefinite matrix A of ``size`` rows, defined by its products, which also give ``n_watched`` scores."""


class KrylovRun:
    """A run for ``(A + alpha I) x = b``, for every alpha from one Krylov space; :meth:`step` advances it.

    A run starts at x = 0, so that alpha = 0 converges to the solution of minimum norm. Shifts are sorted inside, and
    the smallest alpha is the seed; results are in the caller's order.

    Parameters
    ----------
    system : FeatureSystem or KernelSystem
    right : ndarray of shape (size,)
    alphas : ndarray
        Regularization values in any order.
    tol : float
        Relative tolerance: a shift has converged, and is frozen, if the norm of its residual is at most ``tol ||b||``.
    max_iter : int
        Maximum number of iterations, at least 1.

    Notes
    -----
    An iteration costs one product with A and O(size x running shifts). In exact arithmetic, each shift's iterates are
    those of a separate run of conjugate gradients, there are at most rank + 1 of them, and
    ``t <= 1/2 sqrt(kappa) ln(2 / eps)`` iterations suffice to reduce the error by a factor eps in the norm of the
    matrix (Airola et al. 2010, section 3.3). In floating point, iterates of different runs may differ, but converged
    solutions do not.

    A run ends as :attr:`Status.BREAKDOWN` if a direction has no positive curvature, which rounding or an indefinite
    kernel can cause; iterates stay as they were.
    """

    def __init__(self, system: System, right: Array, alphas: Array, tol: float = 1e-5, max_iter: int = 500) -> None:
        order = np.argsort(alphas, kind="stable")
        count = len(alphas)
        self._place = np.argsort(order)
        self.system = system
        self.right = right
        self.right_norm = float(np.linalg.norm(right))
        self.alphas = np.asarray(alphas, dtype=np.float64)[order]
        self.tol = tol
        self.max_iter = max_iter
        self.r = right.copy()
        self.p = right.copy()
        self.squared = self.right_norm**2
        self.beta = 0.0
        self.gamma = 1.0
        self.zeta = np.ones(count)
        self.rho = np.ones(count)
        self.shift_beta = np.zeros(count)
        self.x, self.directions = np.zeros((2, system.size, count))
        self.watched = np.zeros((2, system.n_watched, count))  # scores by x and by the directions
        self.watched_p: Array | None = None
        self.iteration = 0
        self.active = count
        self.iterations_sorted = np.zeros(count, dtype=np.intp)
        self.status_sorted = [Status.RUNNING] * count
        if self.right_norm == 0.0:
            self._end(Status.CONVERGED, 0)

    @property
    def done(self) -> bool:
        """Whether all shifts have ended."""
        return self.active == 0

    @property
    def status(self) -> list[Status]:
        """Status of each alpha."""
        return [self.status_sorted[k] for k in self._place]

    @property
    def iterations(self) -> Index:
        """Number of iterations for each alpha."""
        return self.iterations_sorted[self._place]

    @property
    def residuals(self) -> Array:
        """Residual norm of each alpha relative to the right-hand side, by the recurrence."""
        return np.asarray((self.zeta * np.sqrt(self.squared) / (self.right_norm or 1.0))[self._place])

    @property
    def running(self) -> Mask:
        """Mask of the alphas that are still running."""
        return np.asarray(self._place < self.active)

    def scores_of(self, which: Index) -> Array:
        """Scores of the watched items by the iterates of the given alphas, (n_watched, len(which))."""
        return np.asarray(self.watched[0][:, self._place[which]])

    def solution(self, k: int) -> Array:
        """Current iterate of alpha number k, (size,)."""
        return self.x[:, self._place[k]].copy()

    def step(self) -> None:
        """Perform one iteration in place, or nothing if all shifts have ended."""
        if self.done:
            return
        q, watched = self.system.apply(self.p)
        seed = float(self.alphas[0])
        active = self.active
        if seed:
            q = q + seed * self.p
        curvature = float(self.p @ q)
        if not (curvature > 0.0 and np.isfinite(curvature) and np.isfinite(self.squared / curvature)):
            self._end(Status.BREAKDOWN, 0)
            return
        gamma = self.squared / curvature
        shifts = self.alphas[:active] - seed
        rho = 1.0 / (1.0 + shifts * gamma + (gamma * self.beta / self.gamma) * (1.0 - self.rho[:active]))
        zeta = self.zeta[:active]
        shift_beta = self.shift_beta[:active]
        shift_gamma = gamma * rho
        _advance(self.r, zeta, shift_beta, shift_gamma, self.directions, self.x)
        if watched is not None:
            # r_k = p_k - beta_{k-1} p_{k-1}, and likewise for every linear function of them
            of_r = watched if self.watched_p is None else watched - self.beta * self.watched_p
            _advance(of_r, zeta, shift_beta, shift_gamma, self.watched[1], self.watched[0])
            self.watched_p = watched
        self.r -= gamma * q
        squared = float(self.r @ self.r)
        self.beta = squared / self.squared
        self.gamma = gamma
        self.squared = squared
        self.p *= self.beta
        self.p += self.r
        self.zeta[:active] *= rho
        self.rho[:active] = rho
        self.shift_beta[:active] = self.beta * rho**2
        self.iteration += 1
        self.iterations_sorted[:active] = self.iteration
        small = self.zeta[:active] * np.sqrt(squared) <= max(self.tol, _PRECISION) * self.right_norm
        # the larger alpha, the smaller the residual: the converged shifts are the last ones
        first = 0 if small.all() else int(active - np.argmin(small[::-1]))
        self._end(Status.CONVERGED, first)
        if self.iteration >= self.max_iter:
            self._end(Status.MAX_ITER, 0)

    def verify(self, k: int) -> Status:
        """Status of alpha number k, after a check of the true residual of a solution reported as converged.

        It has stagnated, because of rounding, if the recurrence's residual is below the tolerance while the true one is
        more than ten times the tolerance. One product.
        """
        place = int(self._place[k])
        if self.status_sorted[place] is Status.CONVERGED:
            x = self.solution(k)
            true = np.linalg.norm(self.right - self.system.apply(x)[0] - self.alphas[place] * x)
            if not true <= 10.0 * max(self.tol, 1e3 * _PRECISION) * self.right_norm:
                self.status_sorted[place] = Status.STAGNATED
        return self.status_sorted[place]

    def _end(self, status: Status, first: int) -> None:
        """Freeze the running shifts from number ``first`` on."""
        for k in range(first, self.active):
            self.status_sorted[k] = status
        self.active = min(self.active, first)


@compiled
def _advance(v, zeta, beta, gamma, p, x):  # type: ignore[no-untyped-def]
    """``p <- zeta v + beta p`` and ``x <- x + gamma p`` for every running shift; (rows, shifts)."""
    for i in range(len(v)):
        for k in range(len(zeta)):
            p[i, k] = zeta[k] * v[i] + beta[k] * p[i, k]
            x[i, k] += gamma[k] * p[i, k]


def largest_eigenvalue(system: System, right: Array, products: int = 10) -> float:
    """Largest eigenvalue of A in the Krylov space of the right-hand side, from below, by a few Lanczos steps.

    Conjugate gradients for alpha = 0 are the Lanczos method started at the right-hand side, and their step lengths give
    its tridiagonal matrix (Golub & Van Loan, Matrix Computations, section 11.3). No solution has a component outside
    this space, and this start, unlike a random one, does not depend on the order of the rows. 0 if the right-hand side
    is 0.
    """
    run = KrylovRun(system, right, np.zeros(1), _INVARIANT, products)
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    while not run.done:
        before = run.beta / run.gamma
        iteration = run.iteration
        run.step()
        if run.iteration > iteration:
            diagonal.append(1.0 / run.gamma + before)
            off_diagonal.append(np.sqrt(run.beta) / run.gamma)
    if not diagonal:
        return 0.0
    return float(linalg.eigh_tridiagonal(diagonal, off_diagonal[:-1], eigvals_only=True)[-1])


class RowProducts:
    """Products with the given rows of X, dense (float32 or float64) or CSR, and their transpose, on all threads."""

    def __init__(self, X: Matrix, rows: Index) -> None:
        self.X = X
        self.rows = rows
        self.n_features = int(X.shape[1])
        self.sparse = sparse.issparse(X)
        self.parts: tuple[Matrix, Matrix, Matrix] = (X.data, X.indices, X.indptr) if self.sparse else (None, None, None)

    @cached_property
    def runs(self) -> list[tuple[int, int]]:
        """Runs of the rows; for sparse X at most one per thread, with equally many stored entries."""
        if self.sparse:
            ends = np.cumsum(np.diff(self.parts[2])[self.rows], dtype=np.intp)
            work = int(ends[-1]) if len(ends) else 0
            count = max(1, min(n_threads(), work // (1 << 16)))
            inner = np.searchsorted(ends, np.linspace(0, work, count + 1)[1:-1]).tolist()
        else:
            inner = [*range(0, len(self.rows), max(1, CHUNK_VALUES // max(1, self.n_features)))][1:]
        return list(pairwise([0, *inner, len(self.rows)]))

    def scores(self, p: Array) -> Array:
        """``X p``."""
        out = np.empty(len(self.rows))

        def run(cut: tuple[int, int]) -> None:
            part = slice(*cut)
            if self.sparse:
                _dot(*self.parts, self.rows[part], p, out[part])
            else:
                out[part] = self._block(self.rows[part]) @ p

        for _ in map_chunks(run, self.runs):
            pass
        return out

    def combine(self, z: Array) -> Array:
        """``X'z``."""

        def run(cut: tuple[int, int]) -> Array:
            part = slice(*cut)
            if not self.sparse:
                return z[part] @ self._block(self.rows[part])
            out = np.zeros(self.n_features)
            _add(*self.parts, self.rows[part], z[part], out)
            return out

        return left_fold(map_chunks(run, self.runs))

    def _block(self, rows: Index) -> Array:
        whole = len(rows) and int(rows[-1]) - int(rows[0]) == len(rows) - 1 and bool((np.diff(rows) == 1).all())
        return np.asarray(self.X[rows[0] : rows[-1] + 1] if whole else self.X[rows], dtype=np.float64)


class LaplacianProduct:
    """The n x n matrix ``X'LX``, available through its products ``product @ p``.

    Parameters
    ----------
    X : ndarray or csr_array
    graph : LabelledGraph or PreferenceGraph
        Graph over rows of X, which are the items of preferences.

    Notes
    -----
    O(stored entries of X) per product, plus O(preferences) for preferences. X is not copied.
    """

    def __init__(self, X: Matrix, graph: Graph) -> None:
        self.n_features = int(X.shape[1])
        self._graph = graph
        self._order = np.argsort(graph.items)
        self._rows = RowProducts(X, graph.items[self._order])
        self._one_pass: _OnePass | None = None
        if self._rows.sparse:
            self._one_pass = graph.by_kind(partial(_one_pass, X), lambda _: None)

    def __matmul__(self, p: Array) -> Array:
        if self._one_pass is not None:
            return self._one_pass(p)
        f = np.empty(len(self._order))
        f[self._order] = self._rows.scores(p)
        return self._rows.combine(self._graph.laplacian(f)[self._order])

    def right_side(self, target: Array) -> Array:
        """``X'F't`` for a target t, (n,)."""
        return self._rows.combine(self._graph.transposed(target)[self._order])


@dataclass(frozen=True)
class _OnePass:
    """Product with CSR rows from a diagonal and mean rows; columns stored in every row are shifted towards zero."""

    rows: RowProducts
    weights: Array
    diagonal: Array
    columns: Index
    shift: Array
    means: list[tuple[Matrix, Array, Index]]

    def __call__(self, p: Array) -> Array:
        rows = self.rows
        f = np.empty(len(rows.rows))
        shift = float(self.shift @ p[self.columns])

        def run(cut: tuple[int, int]) -> Array:
            part = slice(*cut)
            out = np.zeros(rows.n_features)
            _fused(*rows.parts, rows.rows[part], self.diagonal[part], p, shift, f[part], out)
            return out

        out = left_fold(map_chunks(run, rows.runs))
        out[self.columns] -= self.shift * float(self.diagonal @ f)
        for M, change, starts in self.means:
            out += M.T @ (change * group_means(f, self.weights, starts))
        return out


def _one_pass(X: Matrix, graph: LabelledGraph) -> _OnePass | None:
    """The product in one pass; None if mean rows have too many entries, or rows do not come from the cache."""
    # rows of a class in their order in X
    order = np.lexsort((graph.rows, np.repeat(np.arange(len(graph.class_lengths)), graph.class_lengths)))
    rows = np.ascontiguousarray(graph.rows[order])
    gap = float(np.median(np.abs(np.diff(rows)))) if len(rows) > 1 else 0.0
    near = gap * X.nnz * 12.0 < _CACHE * max(X.shape[0], 1) or X.nnz < 1 << 18
    diagonal, levels = graph.levels
    # mean rows have at least as many entries as a row of X: too many are noticed before they are computed
    entries = sum(len(change) for _, change in levels) * (X.nnz // max(1, X.shape[0]))
    if not near or entries > _FEW * X.nnz:
        return None
    columns, shift = (np.zeros(0, dtype=np.intp), np.zeros(0)) if graph.e3 else offset_columns(X)
    weights = graph.weights[order]
    means = []
    for starts, change in levels:
        # other types of numbers would make scipy copy those of X
        share = averaging(weights, starts).data
        groups = share, rows.astype(X.indices.dtype), starts.astype(X.indptr.dtype)
        M = sparse.csr_array(groups, shape=(len(change), X.shape[0])) @ X
        means.append((shift_columns(M, columns, shift), change, starts))
    if sum(M.nnz for M, _, _ in means) >= _FEW * X.nnz:
        return None
    return _OnePass(RowProducts(X, rows), weights, diagonal[order], columns, shift, means)


@compiled
def _dot(data, indices, indptr, rows, p, out):  # type: ignore[no-untyped-def]
    """``X p`` for the given CSR rows."""
    one = np.uint64(1)
    for r in range(len(rows)):
        i = np.uint64(rows[r])
        score = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + one])):
            score += data[k] * p[np.uint64(indices[k])]
        out[r] = score


@compiled
def _add(data, indices, indptr, rows, z, out):  # type: ignore[no-untyped-def]
    """``X'z`` for the given CSR rows, added to ``out``."""
    one = np.uint64(1)
    for r in range(len(rows)):
        i = np.uint64(rows[r])
        value = z[r]
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + one])):
            out[np.uint64(indices[k])] += value * data[k]


@compiled
def _fused(data, indices, indptr, rows, diagonal, p, shift, f, out):  # type: ignore[no-untyped-def]
    """``f = X p - shift``, and ``X' diag f`` added to ``out``: each row is read once."""
    one = np.uint64(1)
    for r in range(len(rows)):
        i = np.uint64(rows[r])
        score = -shift
        a = np.uint64(indptr[i])
        b = np.uint64(indptr[i + one])
        for k in range(a, b):
            score += data[k] * p[np.uint64(indices[k])]
        f[r] = score
        score *= diagonal[r]
        for k in range(a, b):
            out[np.uint64(indices[k])] += score * data[k]
