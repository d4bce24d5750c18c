"""Sums over listed preferences: what :mod:`rankrls.hinge.ordered_loss` counts, one pair at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankrls.graph import PairGraph
from rankrls.hinge.ordered_loss import Sweep


class EdgeSums:
    """Sums over preferences with slack ``x_e = s_e - shift - (f_i - f_j)``, weighted by ``c_e``; O(preferences)."""

    def __init__(self, graph: PairGraph) -> None:
        self.graph = graph
        self.n_items = graph.n_items

    def sweep(self, f: NDArray[np.float64], shift: float = 0.0) -> Sweep:
        """Everything about scores ``f`` with all strengths lowered by ``shift``."""
        graph = self.graph
        x = graph.strength - shift - graph.differences(f)
        active = x > 0.0
        c = np.where(active, graph.weight, 0.0)
        cx = c * x
        return Sweep(
            f,
            shift,
            float(c.sum()),
            float(cx.sum()),
            0.5 * float(cx @ x),
            graph.scattered(-cx, cx),
            graph.scattered(c, c),
            active,
        )

    def product(self, outer: Sweep, v: NDArray[np.float64], inner: Sweep | None = None) -> NDArray[np.float64]:
        """``L v``, L the Laplacian of the preferences that are active in ``outer`` and not in ``inner``."""
        band = outer.active if inner is None else outer.active & ~inner.active
        d = np.where(band, self.graph.weight * self.graph.differences(v), 0.0)
        return self.graph.scattered(d, -d)
