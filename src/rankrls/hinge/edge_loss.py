"""Sums over listed preferences: what :mod:`rankrls.hinge.ordered_loss` counts, one pair at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankrls.graph import PairGraph
from rankrls.hinge.ordered_loss import Sweep

__all__ = ["EdgeSums"]


class EdgeSums:
    """Sums over preferences with slack ``x_e = s_e - shift - (f_i - f_j)``, weighted by ``c_e``; O(preferences)."""

    def __init__(self, graph: PairGraph) -> None:
        self.winners, self.losers = graph.winners, graph.losers
        self.strength = graph.strength
        self.weight = graph.weight
        self.n_items = graph.n_items

    def sweep(self, f: NDArray[np.float64], shift: float = 0.0) -> Sweep:
        """Everything about scores ``f`` with all strengths lowered by ``shift``."""
        x = self.strength - shift - (f[self.winners] - f[self.losers])
        active = x > 0.0
        c = np.where(active, self.weight, 0.0)
        cx = c * x
        return Sweep(
            f,
            shift,
            float(c.sum()),
            float(cx.sum()),
            0.5 * float(cx @ x),
            self._scatter(-cx, cx),
            self._scatter(c, c),
            active,
        )

    def product(self, outer: Sweep, v: NDArray[np.float64], inner: Sweep | None = None) -> NDArray[np.float64]:
        """``L v``, L the Laplacian of the preferences that are active in ``outer`` and not in ``inner``."""
        band = outer.active if inner is None else outer.active & ~inner.active
        d = np.where(band, self.weight * (v[self.winners] - v[self.losers]), 0.0)
        return self._scatter(d, -d)

    def _scatter(self, on_winners: NDArray[np.float64], on_losers: NDArray[np.float64]) -> NDArray[np.float64]:
        n = self.n_items
        sums = np.bincount(self.winners, on_winners, n) + np.bincount(self.losers, on_losers, n)
        return np.asarray(sums, dtype=np.float64)
