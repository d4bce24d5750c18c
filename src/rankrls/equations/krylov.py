r"""Conjugate gradients for every regularization value at once.

CG for ``A + alpha_0 I`` and for ``A + (alpha_0 + sigma) I`` live in the same Krylov space, and their residuals are
multiples of each other: one product with A an iteration carries the CG iterate of every shift (Frommer & Maass 1999;
Jegerlehner 1996; van den Eshof & Sleijpen 2004). With the seed's step lengths gamma_k and beta_k, and
``rho_k = zeta_{k+1} / zeta_k`` for the factor ``zeta_k`` between the residuals,

.. math::

    \rho_k = 1 / [ 1 + \sigma \gamma_k + \tfrac{\gamma_k \beta_{k-1}}{\gamma_{k-1}} (1 - \rho_{k-1}) ] , \quad
    \gamma^\sigma_k = \gamma_k \rho_k , \quad \beta^\sigma_k = \beta_k \rho_k^2 ,

    p^\sigma_k = \zeta_k r_k + \beta^\sigma_{k-1} p^\sigma_{k-1} , \quad
    x^\sigma_{k+1} = x^\sigma_k + \gamma^\sigma_k p^\sigma_k .

All terms are positive for sigma >= 0 and rho is at most 1: nothing can overflow or break down that does not in the
seed, which is the smallest alpha. Anything linear in x obeys the same recurrence: validation scores of every shift need
the scores of the seed's direction only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls._errors import InputError
from rankrls.equations.shifted_iterates import ShiftedIterates

_PRECISION = 4.0 * np.finfo(np.float64).eps
"""Where the recurrence's residual has fallen to this, it says nothing about the true one any more."""
_INVARIANT = 1e-8
"""A Krylov space whose next direction is shorter than this share of the first is complete: the rest is rounding."""


class Status(StrEnum):
    """What became of the system of one alpha."""

    RUNNING = "running"
    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    BREAKDOWN = "breakdown"
    STAGNATED = "stagnated"


class System(Protocol):
    """A symmetric positive semidefinite matrix A, known by its products, and what is watched while it is solved."""

    @property
    def size(self) -> int:
        """Rows of A."""
        ...

    @property
    def n_watched(self) -> int:
        """Items that are watched."""
        ...

    def apply(self, p: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """``A p``, and the scores of the watched items that the coefficients p give, (n_watched,) or None."""
        ...


@dataclass(frozen=True)
class FeatureSystem:
    """The primal: ``A = X'LX``, coefficients are weights of features.

    Attributes
    ----------
    product : LaplacianProduct
    scores : callable, optional
        Weights (n,) to scores of the watched items.
    n_watched : int
    """

    product: Any
    scores: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None
    n_watched: int = 0

    @property
    def size(self) -> int:
        return int(self.product.n_features)

    def apply(self, p: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        return self.product @ p, None if self.scores is None else self.scores(p)


@dataclass(frozen=True)
class KernelSystem:
    """The dual: ``A = F K F'``, the coefficients c give the items' coefficients ``a = F'c``.

    Attributes
    ----------
    K : ndarray, sparse array or LinearOperator of shape (m, m)
        Only ever multiplied: a kernel that is known by its products (Kronecker, conditional ranking) will do.
    graph : Graph
    rows : ndarray of intp
        Item of K of each of the graph's items.
    watched : ndarray of intp, matrix or LinearOperator, optional
        Items of K whose scores are watched, which come without a product of their own; or the kernel between the
        watched items and those of K.
    n_watched : int
    """

    K: Any
    graph: Any
    rows: NDArray[np.intp]
    watched: Any = None
    n_watched: int = 0

    @property
    def size(self) -> int:
        return int(self.graph.n_rows)

    def items(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        """``a = F'c`` over all items of K."""
        a = np.zeros((self.K.shape[0], *c.shape[1:]))
        a[self.rows] = self.graph.F.T @ c
        return a

    def apply(self, p: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        a = self.items(p)
        f = np.asarray(self.K @ a)
        scores = None
        if self.watched is not None:
            by_number = isinstance(self.watched, np.ndarray) and self.watched.ndim == 1
            scores = f[self.watched] if by_number else np.asarray(self.watched @ a)
        return np.asarray(self.graph.F @ f[self.rows]), scores


class KrylovRun:
    """The state of a run, at its start x = 0: what :meth:`MultiShiftCG.step` moves on by one iteration.

    Shifts are kept in ascending order of alpha; the arrays that are offered are in the caller's order.

    Attributes
    ----------
    iteration : int
        Iterations done.
    """

    def __init__(self, system: System, right: NDArray[np.float64], alphas: NDArray[np.float64]) -> None:
        order, count = np.argsort(alphas, kind="stable"), len(alphas)
        self._place = np.argsort(order)
        self.system, self.right = system, right
        self.right_norm = float(np.sqrt(_inner(right, right)))
        self.alphas = np.asarray(alphas, dtype=np.float64)[order]
        self.r, self.p = right.copy(), right.copy()
        self.squared = self.right_norm**2
        self.beta, self.gamma = 0.0, 1.0
        self.zeta, self.rho, self.shift_beta = np.ones(count), np.ones(count), np.zeros(count)
        self.iterates = ShiftedIterates(system.size, count, buffered=True)
        self.watched = ShiftedIterates(system.n_watched, count) if system.n_watched else None
        self.watched_p: NDArray[np.float64] | None = None
        self.iteration, self.active = 0, count
        self.iterations_sorted = np.zeros(count, dtype=np.intp)
        self.status_sorted = [Status.RUNNING] * count

    @property
    def done(self) -> bool:
        """Whether no shift is running any more."""
        return self.active == 0

    @property
    def status(self) -> list[Status]:
        """Of each alpha."""
        return [self.status_sorted[k] for k in self._place]

    @property
    def iterations(self) -> NDArray[np.intp]:
        """Iterations that each alpha's solution took."""
        return self.iterations_sorted[self._place]

    @property
    def residuals(self) -> NDArray[np.float64]:
        """Residual norm of each alpha relative to the right side, by the recurrence."""
        if self.right_norm == 0.0:
            return np.zeros(len(self._place))
        return (self.zeta * np.sqrt(self.squared) / self.right_norm)[self._place]

    @property
    def running(self) -> NDArray[np.bool_]:
        """Which alphas still move."""
        return self._place < self.active

    def scores_of(self, which: NDArray[np.intp]) -> NDArray[np.float64]:
        """Scores of the watched items under some alphas' iterates, (n_watched, len(which))."""
        if self.watched is None:
            return np.zeros((0, len(which)))
        return self.watched.current()[:, self._place[which]]

    def mark(self, k: int) -> None:
        """Remember the present iterate of alpha number k, in place of the last one marked."""
        self.iterates.mark(int(self._place[k]))

    def marked(self) -> NDArray[np.float64] | None:
        """The iterate that was marked, (size,)."""
        return self.iterates.marked()

    def solution(self, k: int) -> NDArray[np.float64]:
        """The present iterate of alpha number k, (size,)."""
        return self.iterates.column(int(self._place[k]))

    def solutions(self) -> NDArray[np.float64]:
        """The present iterates, (size, alphas)."""
        return self.iterates.current()[:, self._place]

    def true_residual(self, alpha: float, x: NDArray[np.float64]) -> float:
        """``||b - (A + alpha I) x|| / ||b||``, at the price of one product."""
        if self.right_norm == 0.0:
            return 0.0
        residual = self.right - self.system.apply(x)[0] - alpha * x
        return float(np.sqrt(_inner(residual, residual)) / self.right_norm)


@dataclass(frozen=True)
class MultiShiftCG:
    """Solve ``(A + alpha I) x = b`` for every alpha from one Krylov space.

    ``init`` starts a run, ``step`` moves it on by one iteration, ``solve`` runs it to its end. From x = 0, so that
    alpha = 0 goes to the solution of minimum norm.

    Parameters
    ----------
    tol : float
        A shift has converged, and is frozen, where the norm of its residual is at most ``tol ||b||``.
    max_iter : int
        At least 1.

    Notes
    -----
    An iteration is one product with A and O(size x running shifts). In exact arithmetic each shift's iterates are
    those of conjugate gradients of its own, there are at most rank + 1 of them, and
    ``t <= 1/2 sqrt(kappa) ln(2 / eps)`` suffice for the error to fall by eps in the norm of the matrix (Airola et al.
    2010, section 3.3). In floating point the Lanczos vectors lose their orthogonality, here as in separate runs:
    iterates of different runs then differ, converged solutions do not.

    A run is :attr:`Status.BREAKDOWN` where a direction has no positive energy, as rounding or an indefinite kernel can
    make it; iterates stay as they were. Whether a residual is what the recurrence says is for ``verify`` to find out.
    """

    tol: float = 1e-5
    max_iter: int = 500

    def init(self, system: System, right: NDArray[np.float64], alphas: NDArray[np.float64]) -> KrylovRun:
        """Start at zero.

        Parameters
        ----------
        system : System
        right : ndarray of shape (size,)
        alphas : ndarray
            In any order; the smallest is the seed.
        """
        if self.max_iter < 1:
            raise InputError("{max_iter} must be at least 1; got {0}.", self.max_iter, parameter="max_iter")
        run = KrylovRun(system, right, alphas)
        if run.right_norm == 0.0:
            self._end(run, Status.CONVERGED, 0)
        return run

    def step(self, run: KrylovRun) -> KrylovRun:
        """One iteration, in place. Nothing happens where all shifts have ended."""
        if run.done:
            return run
        seed, active = float(run.alphas[0]), run.active
        q, watched = run.system.apply(run.p)
        if seed:
            q = q + seed * run.p
        energy = _inner(run.p, q)
        if not (energy > 0.0 and np.isfinite(energy) and np.isfinite(run.squared / energy)):
            self._end(run, Status.BREAKDOWN, 0)
            return run
        gamma = run.squared / energy
        shifts = run.alphas[:active] - seed
        rho = 1.0 / (1.0 + shifts * gamma + (gamma * run.beta / run.gamma) * (1.0 - run.rho[:active]))
        zeta, shift_beta, shift_gamma = run.zeta[:active], run.shift_beta[:active], gamma * rho
        run.iterates.push(run.r, zeta, shift_beta, shift_gamma)
        if run.watched is not None:
            assert watched is not None
            # r_k = p_k - beta_{k-1} p_{k-1}, and so for all that is linear in them.
            watched_r = watched if run.watched_p is None else watched - run.beta * run.watched_p
            run.watched.push(watched_r, zeta, shift_beta, shift_gamma)
            run.watched_p = watched
        run.r -= gamma * q
        squared = _inner(run.r, run.r)
        run.beta, run.gamma, run.squared = squared / run.squared, gamma, squared
        run.p *= run.beta
        run.p += run.r
        run.zeta[:active] *= rho
        run.rho[:active] = rho
        run.shift_beta[:active] = run.beta * rho**2
        run.iteration += 1
        run.iterations_sorted[:active] = run.iteration
        small = run.zeta[:active] * np.sqrt(squared) <= max(self.tol, _PRECISION) * run.right_norm
        # Residuals fall with alpha: those that have converged are the last ones.
        self._end(run, Status.CONVERGED, int(active - np.argmin(small[::-1])) if not small.all() else 0)
        if run.iteration >= self.max_iter:
            self._end(run, Status.MAX_ITER, 0)
        return run

    def solve(self, system: System, right: NDArray[np.float64], alphas: NDArray[np.float64]) -> KrylovRun:
        """Run to the end."""
        run = self.init(system, right, alphas)
        while not run.done:
            self.step(run)
        return run

    def verify(self, run: KrylovRun, k: int) -> Status:
        """The status of alpha number k, after a look at the true residual of a solution that claims to have converged.

        It has stagnated where the recurrence's residual fell below the tolerance and the true one did not (by a factor
        of ten): rounding. One product.
        """
        place = int(run._place[k])
        if run.status_sorted[place] is Status.CONVERGED:
            true = run.true_residual(float(run.alphas[place]), run.solution(k))
            if not true <= 10.0 * max(self.tol, 1e3 * _PRECISION):
                run.status_sorted[place] = Status.STAGNATED
        return run.status_sorted[place]

    def _end(self, run: KrylovRun, status: Status, first: int) -> None:
        """Freeze the running shifts from number ``first`` on."""
        for k in range(first, run.active):
            run.status_sorted[k] = status
        run.active = min(run.active, first)


def _inner(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """``a'b`` without BLAS: its threads would spin on until the next product, and take the processors from that."""
    return float(np.einsum("i,i->", a, b))


def largest_eigenvalue(system: System, right: NDArray[np.float64], products: int = 10) -> float:
    """The largest eigenvalue of A among the directions that the right side has, from below, by a few Lanczos steps.

    Conjugate gradients for alpha = 0 are Lanczos from the right side, and their step lengths make its tridiagonal
    matrix (Golub & Van Loan, Matrix Computations, section 11.3). No solution has a part in any other direction, and a
    start there, unlike a random one, does not depend on the order of the rows. 0 if the right side is 0.
    """
    cg = MultiShiftCG(tol=_INVARIANT, max_iter=products)
    run = cg.init(system, right, np.zeros(1))
    diagonal: list[float] = []
    beside: list[float] = []
    while not run.done:
        before, iteration = run.beta / run.gamma, run.iteration
        cg.step(run)
        if run.iteration > iteration:
            diagonal.append(1.0 / run.gamma + before)
            beside.append(np.sqrt(run.beta) / run.gamma)
    if not diagonal:
        return 0.0
    return float(linalg.eigh_tridiagonal(diagonal, beside[:-1], eigvals_only=True)[-1])
