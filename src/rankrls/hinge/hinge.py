r"""Pairwise hinge losses with their gradients and curvature, made of sums over pairs with slack.

With the slack :math:`x = s - (f_i - f_j)` of a pair (:math:`s = 1` where labels order the items) and weights c:

=================  ============================================================================
squared hinge      :math:`\sum c\,[x]_+^2`
hinge              :math:`\sum c\,[x]_+`
rounded hinge      :math:`\sum c\,([x]_+^2 - [x - \mu]_+^2) / 2\mu`: straight from :math:`\mu` on, a parabola before
=================  ============================================================================

The rounded hinge lies at most :math:`\mu/2` a pair below the hinge. Its derivative by the slack, between 0 and c, is
feasible in the dual of the hinge's problem: that is how the hinge is minimised and certified in
:mod:`rankrls.hinge.newton`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankrls.hinge.ordered_loss import Sweep

__all__ = ["PairSums", "Point", "RoundedHinge", "SquaredHinge"]


class PairSums(Protocol):
    """Sums over pairs: :class:`~rankrls.hinge.ordered_loss.OrderedSums` or
    :class:`~rankrls.hinge.edge_loss.EdgeSums`.
    """

    n_items: int

    def sweep(self, f: NDArray[np.float64], shift: float = 0.0) -> Sweep:
        """Everything about scores ``f`` with all margins lowered by ``shift``."""
        ...

    def product(self, outer: Sweep, v: NDArray[np.float64], inner: Sweep | None = None) -> NDArray[np.float64]:
        """``L v``, L the Laplacian of the pairs active in ``outer`` and not in ``inner``."""
        ...


@dataclass(frozen=True, eq=False)
class Point:
    """A loss at some scores.

    Attributes
    ----------
    value : float
    gradient : ndarray of shape (m,)
        By the scores.
    outer, inner : Sweep
        The sweeps that it is made of.
    """

    value: float
    gradient: NDArray[np.float64]
    outer: Sweep
    inner: Sweep | None = None


@dataclass(frozen=True, eq=False)
class SquaredHinge:
    """The squared hinge over the pairs of ``sums``."""

    sums: PairSums

    def at(self, f: NDArray[np.float64]) -> Point:
        """Value and gradient. One sweep."""
        sweep = self.sums.sweep(f)
        return Point(2.0 * sweep.half_squares, 2.0 * sweep.gradient, sweep)

    def curvature(self, point: Point, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Generalised second derivative by the scores, times ``v``."""
        return 2.0 * self.sums.product(point.outer, v)

    def stiffness(self, point: Point) -> float:
        """Second derivative by the slacks, summed over the pairs."""
        return 2.0 * point.outer.weight


@dataclass(frozen=True, eq=False)
class RoundedHinge:
    """The hinge rounded over a slack of ``mu``."""

    sums: PairSums
    mu: float

    def at(self, f: NDArray[np.float64]) -> Point:
        """Value and gradient. Two sweeps."""
        outer, inner = self.sums.sweep(f), self.sums.sweep(f, self.mu)
        return Point(
            (outer.half_squares - inner.half_squares) / self.mu,
            (outer.gradient - inner.gradient) / self.mu,
            outer,
            inner,
        )

    def curvature(self, point: Point, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Generalised second derivative by the scores, times ``v``."""
        return self.sums.product(point.outer, v, point.inner) / self.mu

    def stiffness(self, point: Point) -> float:
        """Second derivative by the slacks, summed over the pairs."""
        assert point.inner is not None
        return (point.outer.weight - point.inner.weight) / self.mu

    def dual_sum(self, point: Point) -> float:
        """Sum over the pairs of margin times derivative by the slack, less the derivative times the scores' lead:
        with derivatives ``a`` it is ``sum a s``, the linear term of the dual.
        """
        assert point.inner is not None
        # sum a x = (sum c [x]^2 - sum c [x - mu]^2 - mu sum c [x - mu]) / mu, and sum a (f_i - f_j) = -gradient'f.
        slack = 2.0 * (point.outer.half_squares - point.inner.half_squares) / self.mu - point.inner.slack
        return slack - float(point.gradient @ point.outer.f)
