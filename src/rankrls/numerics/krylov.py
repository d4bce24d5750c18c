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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from scipy import linalg

from rankrls._compiled import compiled
from rankrls._typing import Array, Index, Mask, Matrix
from rankrls.numerics.eigen import EPS
from rankrls.numerics.graph import Graph
from rankrls.numerics.products import LaplacianProduct

_PRECISION = 4.0 * EPS
"""Relative residual of the recurrence below which the true residual need not decrease."""
_INVARIANT = 1e-8


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
    """State of a run, which starts at x = 0; :meth:`MultiShiftCG.step` advances it by one iteration.

    Shifts are sorted inside; results are in the caller's order.

    Attributes
    ----------
    iteration : int
        Number of iterations done.
    marked : ndarray of shape (size,) or None
        Iterate stored by the last call of :meth:`mark`.
    """

    def __init__(self, system: System, right: Array, alphas: Array) -> None:
        order = np.argsort(alphas, kind="stable")
        count = len(alphas)
        self._place = np.argsort(order)
        self.system = system
        self.right = right
        self.right_norm = float(np.linalg.norm(right))
        self.alphas = np.asarray(alphas, dtype=np.float64)[order]
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
        self.marked: Array | None = None

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

    def mark(self, k: int) -> None:
        """Store the current iterate of alpha number k as ``marked``."""
        self.marked = self.solution(k)

    def solution(self, k: int) -> Array:
        """Current iterate of alpha number k, (size,)."""
        return self.x[:, self._place[k]].copy()


@dataclass(frozen=True)
class MultiShiftCG:
    """Solve ``(A + alpha I) x = b`` for every alpha from one Krylov space.

    ``init`` starts a run at x = 0, so that alpha = 0 converges to the solution of minimum norm; ``step`` advances it by
    one iteration.

    Parameters
    ----------
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

    tol: float = 1e-5
    max_iter: int = 500

    def init(self, system: System, right: Array, alphas: Array) -> KrylovRun:
        """Start at zero. Alphas may be in any order; the smallest is the seed."""
        run = KrylovRun(system, right, alphas)
        if run.right_norm == 0.0:
            self._end(run, Status.CONVERGED, 0)
        return run

    def step(self, run: KrylovRun) -> KrylovRun:
        """Perform one iteration in place, or nothing if all shifts have ended."""
        if run.done:
            return run
        q, watched = run.system.apply(run.p)
        seed = float(run.alphas[0])
        active = run.active
        if seed:
            q = q + seed * run.p
        curvature = float(run.p @ q)
        if not (curvature > 0.0 and np.isfinite(curvature) and np.isfinite(run.squared / curvature)):
            self._end(run, Status.BREAKDOWN, 0)
            return run
        gamma = run.squared / curvature
        shifts = run.alphas[:active] - seed
        rho = 1.0 / (1.0 + shifts * gamma + (gamma * run.beta / run.gamma) * (1.0 - run.rho[:active]))
        zeta = run.zeta[:active]
        shift_beta = run.shift_beta[:active]
        shift_gamma = gamma * rho
        _advance(run.r, zeta, shift_beta, shift_gamma, run.directions, run.x)
        if watched is not None:
            # r_k = p_k - beta_{k-1} p_{k-1}, and likewise for every linear function of them
            of_r = watched if run.watched_p is None else watched - run.beta * run.watched_p
            _advance(of_r, zeta, shift_beta, shift_gamma, run.watched[1], run.watched[0])
            run.watched_p = watched
        run.r -= gamma * q
        squared = float(run.r @ run.r)
        run.beta = squared / run.squared
        run.gamma = gamma
        run.squared = squared
        run.p *= run.beta
        run.p += run.r
        run.zeta[:active] *= rho
        run.rho[:active] = rho
        run.shift_beta[:active] = run.beta * rho**2
        run.iteration += 1
        run.iterations_sorted[:active] = run.iteration
        small = run.zeta[:active] * np.sqrt(squared) <= max(self.tol, _PRECISION) * run.right_norm
        # the larger alpha, the smaller the residual: the converged shifts are the last ones
        self._end(run, Status.CONVERGED, int(active - np.argmin(small[::-1])) if not small.all() else 0)
        if run.iteration >= self.max_iter:
            self._end(run, Status.MAX_ITER, 0)
        return run

    def verify(self, run: KrylovRun, k: int) -> Status:
        """Status of alpha number k, after a check of the true residual of a solution reported as converged.

        It has stagnated, because of rounding, if the recurrence's residual is below the tolerance while the true one is
        more than ten times the tolerance. One product.
        """
        place = int(run._place[k])
        if run.status_sorted[place] is Status.CONVERGED:
            x = run.solution(k)
            true = np.linalg.norm(run.right - run.system.apply(x)[0] - run.alphas[place] * x)
            if not true <= 10.0 * max(self.tol, 1e3 * _PRECISION) * run.right_norm:
                run.status_sorted[place] = Status.STAGNATED
        return run.status_sorted[place]

    def _end(self, run: KrylovRun, status: Status, first: int) -> None:
        """Freeze the running shifts from number ``first`` on."""
        for k in range(first, run.active):
            run.status_sorted[k] = status
        run.active = min(run.active, first)


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
    cg = MultiShiftCG(tol=_INVARIANT, max_iter=products)
    run = cg.init(system, right, np.zeros(1))
    diagonal: list[float] = []
    beside: list[float] = []
    while not run.done:
        before = run.beta / run.gamma
        iteration = run.iteration
        cg.step(run)
        if run.iteration > iteration:
            diagonal.append(1.0 / run.gamma + before)
            beside.append(np.sqrt(run.beta) / run.gamma)
    if not diagonal:
        return 0.0
    return float(linalg.eigh_tridiagonal(diagonal, beside[:-1], eigvals_only=True)[-1])
