r"""RankSVM in the primal: truncated Newton steps with an exact line search, stopped by the duality gap.

Minimised over w, with scores :math:`f = Xw` and a pairwise loss :math:`\ell` of :mod:`rankrls.hinge.hinge`,

.. math:: P(w) = \tfrac12 \lVert w \rVert^2 + C\,\ell(Xw) .

Squared hinge (Chapelle and Keerthi 2010; Lee and Lin 2014). A step solves :math:`(I + C X' \nabla^2 \ell\, X) d = -g`
by conjugate gradients until the residual is a small part of g; along d everything is a function of scores, so the
minimum on the line costs sweeps over the items but no product with X. P is piecewise quadratic and strongly convex, and
the derivatives of the loss by the pairs' slacks are feasible in its dual, with the gap

.. math:: P(w) - D = \tfrac12 \lVert \nabla P(w) \rVert^2 ,

so ``gap <= tol * P(w)`` means that P(w) is within a factor 1 + tol of the minimum (to first order).

Hinge. The same steps on the hinge rounded over a slack of mu, which is lowered whenever the rounding makes up most of
the gap that is left. What is measured is the hinge's own problem: its value P(w), and the value D of its dual at the
rounded hinge's derivatives, which are feasible for every mu. The best P and the best D seen give the gap, and
``gap <= tol * P(w)`` ends it: the answer is the hinge's to that tolerance, with a certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankrls.equations.spectrum import spectrum
from rankrls.features.feature_products import FeatureProducts
from rankrls.hinge.hinge import PairLoss, PairSums, Point

Vector = NDArray[np.float64]
Preconditioner = Callable[[Vector, float], Vector]

_CLOSE = 0.125
"""The objective is strongly convex: ``|w - w*|^2 / 2 <= gap``, so that w is within half of its length."""
_DIGITS = 1e-13
"""A gap that is the difference of two values is not known better than this."""
_FORCING = 0.1
_LINE_EVALUATIONS = 60
_LINE_ACCURACY = 0.1
_MU_FACTOR = 0.25
_MU_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a minimisation ended.

    Attributes
    ----------
    w : ndarray of shape (n,)
    value : float
        P(w).
    gap : float
        Upper bound on P(w) minus the minimum.
    n_iter : int
        Newton steps, one that lowered nothing among them.
    status : {"converged", "max_iter", "rounding"}
        "rounding": no step lowers P any more in double precision, though the gap is above the tolerance.
    degree : ndarray of shape (m,)
        Weight of each item's active pairs; an item with none does not matter to the solution.
    """

    w: Vector
    value: float
    gap: float
    n_iter: int
    status: str
    degree: Vector


def gram_preconditioner(gram: Vector, weight: float) -> Preconditioner:
    """Newton systems as they would be if every pair had the same share of the curvature.

    ``gram`` is ``X'LX`` over all pairs, whose weights sum to ``weight``: RankRLS's matrix, in whose eigenbasis
    ``I + (stiffness / weight) gram`` is diagonal. O(n^3) once, then O(n^2). What is left to conjugate gradients is how
    the active pairs differ from all of them, and no longer how the features are scaled and correlated.
    """
    basis = spectrum(gram, len(gram))
    values = np.maximum(basis.values, 0.0) / weight

    def precondition(r: Vector, stiffness: float) -> Vector:
        return np.asarray(basis.vectors @ ((basis.vectors.T @ r) / (1.0 + stiffness * values)))

    return precondition


class _State:
    """Weights, their scores and the loss there."""

    def __init__(self, products: FeatureProducts, C: float, w: Vector) -> None:
        self.products = products
        self.C = C
        self.w = w
        self.f = products.scores(w)

    def step(
        self, loss: PairLoss, point: Point, g: Vector, forcing: float, precondition: Preconditioner | None
    ) -> bool:
        """One truncated Newton step; False where it lowers nothing."""
        d, Xd = self._direction(loss, point, g, forcing, precondition)
        s = self._line_minimum(loss, point, g, d, Xd)
        if s <= 0.0:
            return False
        moved = self.w + s * d
        if (moved == self.w).all():
            return False
        self.w = moved
        self.f = self.products.scores(self.w)  # not f + s Xd: rounding would add up
        return True

    def _direction(
        self, loss: PairLoss, point: Point, g: Vector, forcing: float, precondition: Preconditioner | None
    ) -> tuple[Vector, Vector]:
        """Conjugate gradients on the Newton system from zero; also X times the result."""
        d, Xd = np.zeros_like(g), np.zeros(self.products.n_rows)
        r = -g
        target = forcing * float(np.linalg.norm(g))
        stiffness = self.C * point.stiffness
        z = r if precondition is None else precondition(r, stiffness)
        p = z.copy()
        rz = float(r @ z)
        for _ in range(2 * len(g) + 10):
            Xp = self.products.scores(p)
            Hp = p + self.C * self.products.combine(loss.curvature(point, Xp))
            pHp = float(p @ Hp)
            if not pHp > 0.0:
                break
            a = rz / pHp
            d += a * p
            Xd += a * Xp
            r -= a * Hp
            if float(np.linalg.norm(r)) <= target:
                break
            z = r if precondition is None else precondition(r, stiffness)
            rz, before = float(r @ z), rz
            p = z + (rz / before) * p
        return d, Xd

    def _line_minimum(self, loss: PairLoss, point: Point, g: Vector, d: Vector, Xd: Vector) -> float:
        """Step along d at which the derivative of P has shrunk to a tenth; P is lower there."""
        wd, dd, C = float(self.w @ d), float(d @ d), self.C
        start = float(g @ d)
        if not start < 0.0:
            return 0.0

        def slope(s: float) -> tuple[float, float]:
            here = loss.at(self.f + s * Xd)
            lower = C * (here.value - point.value) + s * wd + 0.5 * s * s * dd
            return lower, wd + s * dd + C * float(Xd @ here.gradient)

        low, low_slope = 0.0, start
        high, high_slope = np.inf, np.nan
        s, side = 1.0, 0
        for _ in range(_LINE_EVALUATIONS):
            lower, here = slope(s)
            if abs(here) <= -_LINE_ACCURACY * start and (here <= 0.0 or lower < 0.0):
                return s
            if np.isinf(high) and here < 0.0:  # convex and still falling: follow the secant, up to four times as far
                low, low_slope = s, here
                s *= min(4.0, max(2.0, start / (start - here) if here > start else 4.0))
                continue
            # The Illinois rule: an end that stays twice has its slope halved, so that the bracket shrinks from both.
            if here < 0.0:
                low, low_slope = s, here
                high_slope = 0.5 * high_slope if side < 0 else high_slope
                side = -1
            else:
                high, high_slope = s, here
                low_slope = 0.5 * low_slope if side > 0 else low_slope
                side = 1
            s = low - low_slope * (high - low) / (high_slope - low_slope)
            s = min(max(s, low + 0.01 * (high - low)), high - 0.01 * (high - low))
        return low


def minimise(
    products: FeatureProducts,
    sums: PairSums,
    C: float,
    *,
    squared: bool,
    tol: float,
    max_iter: int,
    start: Vector | None = None,
    precondition: Preconditioner | None = None,
) -> Solution:
    """Minimise ``1/2 |w|^2 + C sum c [slack]_+^2``, or the same with ``[slack]_+``.

    Parameters
    ----------
    products : FeatureProducts
    sums : PairSums
    C : float
        Positive.
    squared : bool
    tol : float
        Ends at ``gap <= tol * P(w)``, once w is within half of its length of the solution: where C is small, P is
        nearly all loss and w = 0 is close to optimal in value, but ranks nothing.
    max_iter : int
        Newton steps.
    start : ndarray of shape (n,), optional
        Where to start; zero by default.
    precondition : callable, optional
        ``precondition(r, stiffness)``: an approximate solution of the Newton system, in which the pairs' second
        derivatives sum to ``stiffness``. See :func:`gram_preconditioner`.

    Notes
    -----
    A step is O((non-zeros + m log m) x conjugate gradient iterations), with two sweeps of the hinge where the squared
    hinge has one. From a few steps before the end the set of active pairs hardly changes, and steps converge faster
    than linearly.
    """
    state = _State(products, C, np.zeros(products.n_features) if start is None else start.copy())
    mu = None if squared else 1.0
    best, bound = np.inf, -np.inf
    w, degree = state.w, np.zeros(products.n_rows)
    iteration, first, stuck = 0, 0.0, False
    while True:
        loss = PairLoss(sums, mu)
        point = loss.at(state.f)
        r = C * products.combine(point.gradient)
        g = state.w + r
        norm = float(np.linalg.norm(g))
        smooth_gap = 0.5 * norm**2
        primal = 0.5 * float(state.w @ state.w) + C * (point.value if mu is None else point.outer.slack)
        if mu is None or primal < best:
            best, w, degree = primal, state.w, point.outer.degree
        if mu is None:
            gap = smooth_gap
        else:
            linear, square = C * loss.dual_sum(point), float(r @ r)
            scale = 1.0 if linear >= square else max(linear / square, 0.0)  # feasible too, and no lower
            dual = scale * linear - 0.5 * scale**2 * square
            bound = max(bound, dual)
            gap = max(best - bound, 0.0)
        close = gap <= tol * best and (gap <= _CLOSE * float(w @ w) or (mu is not None and gap <= _DIGITS * best))
        close &= bool(w.any()) or norm == 0.0
        status = "converged" if close else "rounding" if stuck and mu is None else ""
        status = status or ("max_iter" if iteration == max_iter else "")
        if not status and mu is not None and (stuck or smooth_gap <= _MU_SHARE * (primal - dual)):
            if mu >= 1e-12:
                mu, first, stuck = mu * _MU_FACTOR, 0.0, False
                continue
            status = "rounding"
        if status:
            return Solution(w, best, gap, iteration, status, degree)
        first = first or norm
        stuck = not state.step(loss, point, g, min(_FORCING, np.sqrt(norm / first)), precondition)
        iteration += 1
