r"""Sums over the ordered pairs of labelled items, counted and not enumerated.

For scores ``f`` and a margin ``t``, the slack of the pair "i above j" is ``x_ij = t - (f_i - f_j)``, and the pair is
active where ``f_i - f_j < t``. With the pairs' weights ``c_ij = rho_q w_i w_j`` one sweep gives

.. math::

    \sum c_{ij} [x_{ij}]_+ , \quad \tfrac12 \sum c_{ij} [x_{ij}]_+^2 , \quad
    \text{the gradient of the latter by } f , \quad \text{and each item's active weight} ,

and another one the product of the active pairs' Laplacian with a vector. Every loss of :mod:`rankrls.hinge.hinge` is
made of these.

How: the items of a query stand in label order. Runs of them are sorted by score, then neighbouring runs are merged as
in merge sort; the lower run holds losers of the upper run's winners, and one walk down both finds each winner's active
losers, another one up both each loser's active winners. That is the counting of Airola, Pahikkala and Salakoski (2011)
and of Lee and Lin (2014) with the search tree unrolled into merges: O(m log m) for any number of distinct labels,
O(m x log levels) beyond sorting for few, and every array is read from front to back. Runs begin with some dozens of
items whose pairs are all compared, in loops without branches. Sums over a window that grows are carried along by
shifting them, so all terms have one sign and nothing cancels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.threads import balanced_blocks, map_threads, threads_worth
from rankrls.graph.ordered import OrderedPairs
from rankrls.hinge.ordered_loops import SMALL_RUN, add_queries, add_runs, meet, scatter, split_runs

Vector = NDArray[np.float64]
Buffer = NDArray[np.float64]

_A_THREAD = 8192
"""Items that a thread is worth."""
_LONG = 65536
"""Queries of so many items are shared among threads."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """What one sweep over the pairs with slack finds.

    Attributes
    ----------
    f : ndarray of shape (m,)
        The scores.
    shift : float
        By how much the margin is lowered.
    weight, slack, half_squares : float
        Sums over the active pairs of ``c``, ``c x`` and ``c x^2 / 2``.
    gradient : ndarray of shape (m,)
        Of ``half_squares`` by f.
    degree : ndarray of shape (m,)
        Weight of each item's active pairs: the diagonal of the active pairs' Laplacian.
    active : ndarray
        What :meth:`OrderedSums.product` needs again: how runs are sorted, or which preferences are active.
    """

    f: NDArray[np.float64]
    shift: float
    weight: float
    slack: float
    half_squares: float
    gradient: NDArray[np.float64]
    degree: NDArray[np.float64]
    active: NDArray[Any]


class OrderedSums:
    """Sums over the ordered pairs of a graph; see the module.

    Parameters
    ----------
    pairs : OrderedPairs

    Notes
    -----
    Each call is O(m log m) and threaded over blocks of whole queries; one long query is cut by label, the parts are
    swept side by side and then joined.
    """

    def __init__(self, pairs: OrderedPairs) -> None:
        self.pairs = pairs
        self.n_items = pairs.n_items
        run_classes = np.empty(len(pairs.class_starts), dtype=np.intp)
        self._query_runs = np.empty(len(pairs.rho) + 1, dtype=np.intp)
        runs = split_runs(pairs.class_starts, pairs.query_classes, SMALL_RUN, run_classes, self._query_runs)
        self._run_classes = run_classes[: runs + 1].copy()
        self._run_starts = np.require(pairs.class_starts[self._run_classes], np.intp, ["C", "W"])
        self._starts = np.require(pairs.class_starts, np.intp, ["C", "W"])
        self._order = np.require(pairs.order, np.intp, ["C", "W"])
        self._weights = np.require(pairs.weights, np.float64, ["C", "W"])
        self._factor = pairs.row_factor
        self._blocks, self._long = self._plan()

    def _plan(self) -> tuple[list[tuple[int, int]], list[list[int]]]:
        """Blocks of short queries; and of each long query, where its runs are cut."""
        threads = threads_worth(self.n_items, _A_THREAD)
        pieces = 4 * threads if threads > 1 else 1
        starts = self._run_starts[self._query_runs]
        length = np.diff(starts)
        parts = 1 << (threads - 1).bit_length()
        runs = np.diff(self._query_runs)
        is_long = (length >= _LONG) & (length * threads > len(self._order)) & (runs >= 2) if threads > 1 else length < 0
        blocks = []
        edges = [-1, *(int(q) for q in np.flatnonzero(is_long)), len(length)]
        for before, after in pairwise(edges):
            first = before + 1
            blocks += [(first + x, first + y) for x, y in balanced_blocks(starts[first : after + 1], pieces)]
        cuts = []
        for q in np.flatnonzero(is_long):
            lo, hi = int(self._query_runs[q]), int(self._query_runs[q + 1])
            wanted = np.linspace(starts[q], starts[q + 1], min(parts, hi - lo) + 1)[1:-1]
            inner = np.searchsorted(self._run_starts[lo : hi + 1], wanted) + lo
            cuts.append(sorted({lo, *(int(c) for c in inner if lo < c < hi), hi}))
        return blocks, cuts

    def sweep(self, f: NDArray[np.float64], shift: float = 0.0) -> Sweep:
        """Everything about scores ``f`` at margin ``1 - shift``."""
        m = self.n_items
        f = np.require(f, np.float64, ["C", "W"])
        active, slack, sorted_at = np.empty(m), np.empty(m), np.empty(m, dtype=np.intp)
        sums = self._add(f, self._weights, (-np.inf, 1.0 - shift, False), sorted_at, active, slack)
        weight, total, squares = self.pairs.rho @ sums
        return Sweep(f, shift, weight, total, 0.5 * squares, self._factor * slack, self._factor * active, sorted_at)

    def product(self, outer: Sweep, v: NDArray[np.float64], inner: Sweep | None = None) -> NDArray[np.float64]:
        """``L v``, L the Laplacian of the pairs that are active in ``outer`` and not in ``inner``."""
        band = -np.inf if inner is None else 1.0 - inner.shift, 1.0 - outer.shift, True
        out = np.empty(self.n_items)
        self._add(outer.f, self._weights * v, band, outer.active, out, out)
        degree = outer.degree if inner is None else outer.degree - inner.degree
        out *= -self._factor
        out += degree * v
        return out

    def _add(
        self, f: Vector, value: Vector, band: tuple[float, float, bool], sorted_at: Any, active: Vector, slack: Vector
    ) -> Buffer:
        """Run the loops over all queries, into ``active`` and ``slack``; each query's sums, (queries, 3)."""
        sums = np.zeros((len(self.pairs.rho), 3))
        data = f, value, self._order, self._starts, self._run_classes, self._run_starts

        def run(block: tuple[int, int]) -> None:
            add_queries(data, self._query_runs, *block, band, sorted_at, active, slack, sums)

        map_threads(run, self._blocks)

        def part(first: int, last: int, a: Buffer, b: Buffer, offset: int) -> Vector:
            own = np.zeros(3)
            add_runs(data, first, last, band, a, b, offset, False, sorted_at, own)
            return own

        def join(a: Buffer, b: Buffer, edges: tuple[int, ...], top: bool) -> Vector:
            own, (lo, middle, hi) = np.zeros(3), map(np.uint64, edges)
            meet(a, b, lo, middle, hi, band, own, top)
            return own

        for cuts in self._long:
            query = int(np.searchsorted(self._query_runs, cuts[0], side="right")) - 1
            a, found = self._joined(cuts, 4 if band[2] else 5, part, join)
            sums[query] += sum(found, np.zeros(3))
            scatter(a, a.shape[1], active, slack)
        return sums

    def _joined(
        self, cuts: list[int], rows: int, part: Callable[..., Any], join: Callable[..., Any]
    ) -> tuple[Buffer, list[Any]]:
        """One long query: its parts side by side in buffers of some rows, then neighbours joined until one is left.

        The buffer that holds it, and what parts and joins returned.
        """
        edges = [int(self._run_starts[c] - self._run_starts[cuts[0]]) for c in cuts]
        a, b = np.empty((2, rows, edges[-1]))
        results = map_threads(lambda k: part(cuts[k], cuts[k + 1], a, b, edges[k]), range(len(cuts) - 1))
        while len(edges) > 2:
            top = len(edges) == 3
            triples = list(zip(edges[0:-2:2], edges[1:-1:2], edges[2::2], strict=True))
            results += map_threads(lambda t, a=a, b=b, top=top: join(a, b, t, top), triples)  # type: ignore[misc]
            if len(edges) % 2 == 0:
                b[:, edges[-2] : edges[-1]] = a[:, edges[-2] : edges[-1]]
            edges = [*edges[0:-1:2], edges[-1]]
            if not top:
                a, b = b, a
        return a, results
