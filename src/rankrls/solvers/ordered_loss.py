r"""Sums over the ordered pairs of labelled items, counted and not enumerated.

For scores ``f`` and a margin ``t``, the slack of the pair "i above j" is ``x_ij = t - (f_i - f_j)``, and the pair is
active where ``f_i - f_j < t``. With the pairs' weights ``c_ij = rho_q w_i w_j`` one sweep gives

.. math::

    \sum c_{ij} [x_{ij}]_+ , \quad \tfrac12 \sum c_{ij} [x_{ij}]_+^2 , \quad
    \text{the gradient of the latter by } f , \quad \text{and each item's active weight} ,

and another one the product of the active pairs' Laplacian with a vector. Every loss of :mod:`rankrls.solvers.hinge` is
made of these.

How: the items of a query stand in label order. Runs of them are sorted by score, then neighbouring runs are merged as
in merge sort; the lower run holds losers of the upper run's winners, and one walk down both finds each winner's active
losers, another one up both each loser's active winners. That is the counting of Airola, Pahikkala and Salakoski (2011)
and of Lee and Lin (2014) with the search tree unrolled into merges: O(m log m) for any number of distinct labels,
O(m x log levels) beyond sorting for few, and every array is read from front to back. Sums over a window that grows are
carried along by shifting them, so all terms have one sign and nothing cancels.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls._compiled.sorting import sort_descending
from rankrls._compiled.threads import balanced_blocks, map_threads, n_threads
from rankrls.graph.ordered import OrderedPairs

__all__ = ["OrderedSums", "Sweep"]

_SMALL = 16
"""Runs that begin with this many items compare all their pairs: cheaper than four rounds of merging."""
_LONG = 65536
"""Queries of so many items are shared among threads."""


@compiled
def _runs(class_starts, query_classes, small, run_starts, query_runs):  # type: ignore[no-untyped-def]
    """Runs of whole classes: one class, or several that together have at most ``small`` items. Returns how many."""
    runs = 0
    for q in range(len(query_classes) - 1):
        query_runs[q] = runs
        k = query_classes[q]
        while k < query_classes[q + 1]:
            run_starts[runs] = class_starts[k]
            stop = k + 1
            while stop < query_classes[q + 1] and class_starts[stop + 1] - class_starts[k] <= small:
                stop += 1
            runs += 1
            k = stop
    query_runs[len(query_classes) - 1] = runs
    run_starts[runs] = class_starts[query_classes[len(query_classes) - 1]]
    return runs


@compiled
def _meet(a, b, lo, middle, hi, margin, sums, top):  # type: ignore[no-untyped-def]
    """Pairs between losers ``lo..middle`` and winners ``middle..hi`` of buffer a, which is then merged into b.

    At the top nothing reads the merged order, and a stays as it is.

    Rows of a buffer: score (descending in each half), row number, weight, active weight, signed slack.
    """
    one = np.uint64(1)
    key, weight, active, slack = a[0], a[2], a[3], a[4]
    s0 = s1 = s2 = 0.0
    m0 = m1 = m2 = 0.0
    p = lo
    last = key[middle]
    for i in range(middle, hi):
        k = key[i]
        step = last - k
        last = k
        m2 += step * (2.0 * m1 + step * m0)
        m1 += step * m0
        while p < middle and k - key[p] < margin:
            x = margin - (k - key[p])
            wx = weight[p] * x
            m0 += weight[p]
            m1 += wx
            m2 += wx * x
            p += one
        active[i] += m0
        slack[i] -= m1
        s0 += weight[i] * m0
        s1 += weight[i] * m1
        s2 += weight[i] * m2
    m0 = m1 = 0.0
    p = hi
    j = middle
    last = key[middle - one]
    while j > lo:
        j -= one
        k = key[j]
        m1 += (k - last) * m0
        last = k
        while p > middle and key[p - one] - k < margin:
            p -= one
            m0 += weight[p]
            m1 += weight[p] * (margin - (key[p] - k))
        active[j] += m0
        slack[j] += m1
    sums[0] += s0
    sums[1] += s1
    sums[2] += s2
    if top:
        return
    a0, a1, a2, a3, a4 = a[0], a[1], a[2], a[3], a[4]
    b0, b1, b2, b3, b4 = b[0], b[1], b[2], b[3], b[4]
    i, j = lo, middle
    out = lo
    while i < middle and j < hi:
        later = np.uint64(a0[j] > a0[i])
        take = j if later else i
        b0[out] = a0[take]
        b1[out] = a1[take]
        b2[out] = a2[take]
        b3[out] = a3[take]
        b4[out] = a4[take]
        j += later
        i += one - later
        out += one
    if i == middle:
        i = j
    while out < hi:
        b0[out] = a0[i]
        b1[out] = a1[i]
        b2[out] = a2[i]
        b3[out] = a3[i]
        b4[out] = a4[i]
        i += one
        out += one


@compiled
def _meet_product(a, b, lo, middle, hi, low, high, top):  # type: ignore[no-untyped-def]
    """Add to each item the vector's sum over its partners with ``low <= f_i - f_j < high``; then merge.

    Rows of a buffer: score, row number, weighted vector, sum so far.
    """
    one = np.uint64(1)
    key, value, total = a[0], a[2], a[3]
    inside = 0.0
    p = o = lo
    for i in range(middle, hi):
        k = key[i]
        while p < middle and k - key[p] < high:
            inside += value[p]
            p += one
        while o < p and k - key[o] < low:
            inside -= value[o]
            o += one
        total[i] += inside
    inside = 0.0
    p = o = hi
    j = middle
    while j > lo:
        j -= one
        k = key[j]
        while p > middle and key[p - one] - k < high:
            p -= one
            inside += value[p]
        while o > p and key[o - one] - k < low:
            o -= one
            inside -= value[o]
        total[j] += inside
    if top:
        return
    i, j = lo, middle
    out = lo
    a1, b0, b1, b2, b3 = a[1], b[0], b[1], b[2], b[3]
    while i < middle and j < hi:
        later = np.uint64(key[j] > key[i])
        take = j if later else i
        b0[out] = key[take]
        b1[out] = a1[take]
        b2[out] = value[take]
        b3[out] = total[take]
        j += later
        i += one - later
        out += one
    if i == middle:
        i = j
    while out < hi:
        b0[out] = key[i]
        b1[out] = a1[i]
        b2[out] = value[i]
        b3[out] = total[i]
        i += one
        out += one


@compiled
def _sweep(f, order, weights, classes, run_starts, first, last, margin, a, b, offset, top, sorted_rows, sums):  # type: ignore[no-untyped-def]
    """Runs ``first..last`` of one query, into buffer a from ``offset`` on; rows of a buffer as in ``_meet``."""
    one = np.uint64(1)
    first, last, offset = np.uint64(first), np.uint64(last), np.uint64(offset)
    base = np.uint64(run_starts[first])
    n = np.uint64(run_starts[last]) - base
    key, rows, weight, active, slack = a[0], a[1], a[2], a[3], a[4]
    for k in range(n):
        row = np.uint64(order[base + k])
        key[offset + k] = f[row]
        rows[offset + k] = row
    for r in range(first, last):
        start = offset + np.uint64(run_starts[r]) - base
        stop = offset + np.uint64(run_starts[r + one]) - base
        if stop - start > one:
            sort_descending(key[start:stop], rows[start:stop], b[0][start:stop], b[1][start:stop], stop - start)
    for k in range(n):
        row = np.uint64(rows[offset + k])
        sorted_rows[base + k] = row
        weight[offset + k] = weights[row]
        active[offset + k] = 0.0
        slack[offset + k] = 0.0
    for r in range(first, last):
        start = np.uint64(run_starts[r])
        stop = np.uint64(run_starts[r + one])
        if classes[order[start]] == classes[order[stop - one]]:
            continue
        for i in range(start, stop):
            c = classes[sorted_rows[i]]
            i_here = offset + i - base
            for j in range(i + one, stop):
                d = classes[sorted_rows[j]]
                if c == d:
                    continue
                j_here = offset + j - base
                up, down = (i_here, j_here) if c > d else (j_here, i_here)
                if key[up] - key[down] < margin:
                    x = margin - (key[up] - key[down])
                    w = weight[up] * weight[down]
                    sums[0] += w
                    sums[1] += w * x
                    sums[2] += w * x * x
                    active[up] += weight[down]
                    active[down] += weight[up]
                    slack[up] -= weight[down] * x
                    slack[down] += weight[up] * x
    width = one
    swapped = False
    p, q = a, b
    while width < last - first:
        final = top and width + width >= last - first
        r = first
        while r < last:
            lo = offset + np.uint64(run_starts[r]) - base
            hi = offset + np.uint64(run_starts[min(r + width + width, last)]) - base
            if r + width < last:
                _meet(p, q, lo, offset + np.uint64(run_starts[r + width]) - base, hi, margin, sums, final)
            else:
                _copy(p, q, lo, hi)
            r += width + width
        width += width
        if not final:
            p, q = q, p
            swapped = not swapped
    if swapped:
        _copy(b, a, offset, offset + n)


@compiled
def _copy(a, b, lo, hi):  # type: ignore[no-untyped-def]
    for row in range(np.uint64(a.shape[0])):
        for k in range(lo, hi):
            b[row, k] = a[row, k]


@compiled
def _scatter(a, n, active, slack):  # type: ignore[no-untyped-def]
    for k in range(np.uint64(n)):
        row = np.uint64(a[1, k])
        active[row] = a[3, k]
        slack[row] = a[4, k]


@compiled
def _sweep_queries(  # type: ignore[no-untyped-def]
    f, order, weights, classes, run_starts, query_runs, first, last, margin, sorted_rows, active, slack, sums
):
    one = np.uint64(1)
    longest = np.uint64(0)
    for q in range(np.uint64(first), np.uint64(last)):
        longest = max(longest, np.uint64(run_starts[query_runs[q + one]] - run_starts[query_runs[q]]))
    a = np.empty((5, longest))
    b = np.empty((5, longest))
    for q in range(np.uint64(first), np.uint64(last)):
        lo, hi = query_runs[q], query_runs[q + one]
        _sweep(f, order, weights, classes, run_starts, lo, hi, margin, a, b, 0, True, sorted_rows, sums[q])
        _scatter(a, run_starts[hi] - run_starts[lo], active, slack)


@compiled
def _product(f, vector, weights, classes, run_starts, first, last, low, high, a, b, offset, top, sorted_rows):  # type: ignore[no-untyped-def]
    """As ``_sweep``, from rows that are sorted inside their runs; rows of a buffer as in ``_meet_product``."""
    one = np.uint64(1)
    first, last, offset = np.uint64(first), np.uint64(last), np.uint64(offset)
    base = np.uint64(run_starts[first])
    n = np.uint64(run_starts[last]) - base
    key, rows, value, total = a[0], a[1], a[2], a[3]
    for k in range(n):
        row = np.uint64(sorted_rows[base + k])
        key[offset + k] = f[row]
        rows[offset + k] = row
        value[offset + k] = weights[row] * vector[row]
        total[offset + k] = 0.0
    for r in range(first, last):
        start = np.uint64(run_starts[r])
        stop = np.uint64(run_starts[r + one])
        if stop - start > np.uint64(_SMALL):
            continue
        for i in range(start, stop):
            c = classes[sorted_rows[i]]
            i_here = offset + i - base
            for j in range(i + one, stop):
                d = classes[sorted_rows[j]]
                if c == d:
                    continue
                j_here = offset + j - base
                gap = key[i_here] - key[j_here] if c > d else key[j_here] - key[i_here]
                if low <= gap < high:
                    total[i_here] += value[j_here]
                    total[j_here] += value[i_here]
    width = one
    swapped = False
    p, q = a, b
    while width < last - first:
        final = top and width + width >= last - first
        r = first
        while r < last:
            lo = offset + np.uint64(run_starts[r]) - base
            hi = offset + np.uint64(run_starts[min(r + width + width, last)]) - base
            if r + width < last:
                _meet_product(p, q, lo, offset + np.uint64(run_starts[r + width]) - base, hi, low, high, final)
            else:
                _copy(p, q, lo, hi)
            r += width + width
        width += width
        if not final:
            p, q = q, p
            swapped = not swapped
    if swapped:
        _copy(b, a, offset, offset + n)


@compiled
def _product_queries(  # type: ignore[no-untyped-def]
    f, vector, weights, classes, run_starts, query_runs, first, last, low, high, sorted_rows, out
):
    one = np.uint64(1)
    longest = np.uint64(0)
    for q in range(np.uint64(first), np.uint64(last)):
        longest = max(longest, np.uint64(run_starts[query_runs[q + one]] - run_starts[query_runs[q]]))
    a = np.empty((4, longest))
    b = np.empty((4, longest))
    for q in range(np.uint64(first), np.uint64(last)):
        lo, hi = query_runs[q], query_runs[q + one]
        _product(f, vector, weights, classes, run_starts, lo, hi, low, high, a, b, 0, True, sorted_rows)
        for k in range(np.uint64(run_starts[hi] - run_starts[lo])):
            out[np.uint64(a[1, k])] = a[3, k]


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
        What :meth:`OrderedSums.product` needs again: rows as sorted, or which preferences are active.
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
        starts = np.empty(len(pairs.class_starts), dtype=np.intp)
        self._query_runs = np.empty(len(pairs.rho) + 1, dtype=np.intp)
        runs = _runs(pairs.class_starts, pairs.query_classes, _SMALL, starts, self._query_runs)
        self._run_starts = starts[: runs + 1].copy()
        self._order = np.require(pairs.order, np.intp, ["C", "W"])
        self._weights = np.require(pairs.weights, np.float64, ["C", "W"])
        self._classes = pairs.row_class
        self._factor = pairs.row_factor
        self._blocks, self._long = self._plan()

    def _plan(self) -> tuple[list[tuple[int, int]], list[list[int]]]:
        """Blocks of short queries; and of each long query, where its runs are cut."""
        threads = n_threads()
        starts = self._run_starts[self._query_runs]
        length = np.diff(starts)
        parts = 1 << (threads - 1).bit_length()
        runs = np.diff(self._query_runs)
        is_long = (length >= _LONG) & (length * threads > len(self._order)) & (runs >= 2) if threads > 1 else length < 0
        blocks = []
        edges = [-1, *(int(q) for q in np.flatnonzero(is_long)), len(length)]
        for before, after in pairwise(edges):
            first = before + 1
            blocks += [(first + x, first + y) for x, y in balanced_blocks(starts[first : after + 1], 4 * threads)]
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
        margin = 1.0 - shift
        sorted_rows = np.empty(m, dtype=np.intp)
        active, slack = np.empty(m), np.empty(m)
        sums = np.zeros((len(self.pairs.rho), 3))
        shared = (f, self._order, self._weights, self._classes, self._run_starts)

        def run(block: tuple[int, int]) -> None:
            _sweep_queries(*shared, self._query_runs, *block, margin, sorted_rows, active, slack, sums)

        map_threads(run, self._blocks)
        for cuts in self._long:
            lo, hi = cuts[0], cuts[-1]
            query = int(np.searchsorted(self._query_runs, lo, side="right")) - 1
            base, n = self._run_starts[lo], int(self._run_starts[hi] - self._run_starts[lo])
            a, b = np.empty((5, n)), np.empty((5, n))

            def part(piece: tuple[int, int], a=a, b=b, base=base) -> NDArray[np.float64]:  # type: ignore[no-untyped-def]
                own = np.zeros(3)
                offset = self._run_starts[piece[0]] - base
                _sweep(*shared, *piece, margin, a, b, offset, False, sorted_rows, own)
                return own

            def join(lo: int, middle: int, hi: int, a, b, top: bool) -> NDArray[np.float64]:  # type: ignore[no-untyped-def]
                own = np.zeros(3)
                _meet(a, b, np.uint64(lo), np.uint64(middle), np.uint64(hi), margin, own, top)
                return own

            sums[query] += sum(map_threads(part, list(pairwise(cuts))), np.zeros(3))
            a, totals = _join_parts(join, [int(self._run_starts[c] - base) for c in cuts], a, b)
            sums[query] += sum(totals, np.zeros(3))
            _scatter(a, n, active, slack)
        weight, total, squares = self.pairs.rho @ sums
        return Sweep(f, shift, weight, total, 0.5 * squares, self._factor * slack, self._factor * active, sorted_rows)

    def product(self, outer: Sweep, v: NDArray[np.float64], inner: Sweep | None = None) -> NDArray[np.float64]:
        """``L v``, L the Laplacian of the pairs that are active in ``outer`` and not in ``inner``."""
        low = -np.inf if inner is None else 1.0 - inner.shift
        high = 1.0 - outer.shift
        out = np.empty(self.n_items)
        v = np.require(v, np.float64, ["C", "W"])
        shared = (outer.f, v, self._weights, self._classes, self._run_starts)

        def run(block: tuple[int, int]) -> None:
            _product_queries(*shared, self._query_runs, *block, low, high, outer.active, out)

        map_threads(run, self._blocks)
        for cuts in self._long:
            base, n = self._run_starts[cuts[0]], int(self._run_starts[cuts[-1]] - self._run_starts[cuts[0]])
            a, b = np.empty((4, n)), np.empty((4, n))

            def part(piece: tuple[int, int], a=a, b=b, base=base) -> None:  # type: ignore[no-untyped-def]
                offset = self._run_starts[piece[0]] - base
                _product(*shared, *piece, low, high, a, b, offset, False, outer.active)

            def join(lo: int, middle: int, hi: int, a, b, top: bool) -> None:  # type: ignore[no-untyped-def]
                _meet_product(a, b, np.uint64(lo), np.uint64(middle), np.uint64(hi), low, high, top)

            map_threads(part, list(pairwise(cuts)))
            a, _ = _join_parts(join, [int(self._run_starts[c] - base) for c in cuts], a, b)
            out[a[1].astype(np.intp)] = a[3]
        degree = outer.degree if inner is None else outer.degree - inner.degree
        out *= -self._factor
        out += degree * v
        return out


def _join_parts(join, edges, a, b):  # type: ignore[no-untyped-def]
    """Join neighbouring parts until one is left; the buffer that holds it, and what the joins returned."""
    results = []
    while len(edges) > 2:
        top = len(edges) == 3
        triples = list(zip(edges[0:-2:2], edges[1:-1:2], edges[2::2], strict=True))
        results += map_threads(lambda t, a=a, b=b, top=top: join(*t, a, b, top), triples)
        if len(edges) % 2 == 0:
            b[:, edges[-2] : edges[-1]] = a[:, edges[-2] : edges[-1]]
        edges = [*edges[0:-1:2], edges[-1]]
        if not top:
            a, b = b, a
    return a, results
