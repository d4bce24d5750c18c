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
    stiffness : float
        The second derivative by the slacks, summed over the pairs.
    outer, inner : Sweep
        The sweeps that it is made of.
    """

    value: float
    gradient: NDArray[np.float64]
    stiffness: float
    outer: Sweep
    inner: Sweep | None = None


@dataclass(frozen=True, eq=False)
class PairLoss:
    """The hinge over the pairs of ``sums``, rounded over a slack of ``mu``; without that the squared hinge."""

    sums: PairSums
    mu: float | None = None

    @property
    def _factor(self) -> float:
        return 2.0 if self.mu is None else 1.0 / self.mu

    def at(self, f: NDArray[np.float64]) -> Point:
        """Value and derivatives. One sweep, or two for the rounded hinge."""
        k, outer = self._factor, self.sums.sweep(f)
        if self.mu is None:
            return Point(k * outer.half_squares, k * outer.gradient, k * outer.weight, outer)
        inner = self.sums.sweep(f, self.mu)
        value, gradient = outer.half_squares - inner.half_squares, outer.gradient - inner.gradient
        return Point(k * value, k * gradient, k * (outer.weight - inner.weight), outer, inner)

    def curvature(self, point: Point, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Generalised second derivative by the scores, times ``v``."""
        return self._factor * self.sums.product(point.outer, v, point.inner)

    def dual_sum(self, point: Point) -> float:
        """Sum over the pairs of margin times derivative by the slack, of the rounded hinge: with derivatives ``a`` it
        is ``sum a s``, the linear term of the dual.
        """
        outer, inner = point.outer, point.inner
        assert inner is not None
        # sum a x = (sum c [x]^2 - sum c [x - mu]^2 - mu sum c [x - mu]) / mu, and sum a (f_i - f_j) = -gradient'f.
        slack = 2.0 * self._factor * (outer.half_squares - inner.half_squares) - inner.slack
        return slack - float(point.gradient @ outer.f)
