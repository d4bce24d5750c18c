r"""``X'L(Xp)`` in one pass over the rows of X of a scored graph (Airola et al. 2010, equation 8).

For scored data ``(Lz)_i = w_i [e_1 (z_i - z_c) + e_2 (z_c - z_q) + e_3 z_q]`` with the means of the item's class and of
its query (see :mod:`rankrls.graph.scored`). The rows of a query that fits into the cache are read twice, once for its
scores and means and once for its contribution, but come from memory once. The means of a query that does not fit are
known beforehand: they are linear, ``z_q = xbar_q'p`` with the mean row ``xbar_q`` of the query, which is kept dense.
So is the mean row of each of its classes. Each of their rows is added as soon as its score is known. What rounding
leaves between those means and the means of the scores is added afterwards as a multiple of the mean row; an offset of
the columns would square it otherwise. Where mean rows would be too many, there are two passes over the rows instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls._compiled.read_ahead import read_ahead
from rankrls._compiled.threads import balanced_blocks, map_threads, n_threads, one_blas_thread
from rankrls.features.feature_rows import FeatureRows, SparseRows, sparse_add, sparse_dot
from rankrls.graph._base import LaplacianProduct
from rankrls.graph.labels import group_sums

if TYPE_CHECKING:
    from rankrls.graph.scored import ScoredGraph

_CACHE_ENTRIES = 1 << 15
"""Stored entries of a query that is surely in the second-level cache when it is read again."""
_CHUNK_ENTRIES = 1 << 12
"""Stored entries of a piece of a query whose means are known: first-level cache."""
_SCATTERED_ENTRIES = 1 << 20
"""Stored entries of X that are in no cache when they are read again in another order."""
_ENTRIES_A_MEAN = 4
"""Stored entries of X for each entry of a mean row: with fewer, known means cost more than a second pass."""


@compiled
def _known_level(score, w, known):  # type: ignore[no-untyped-def]
    """``(Lz)_i`` of an item whose class has a known mean; the rest of its deviation is kept with the class."""
    deviation = score - known[0]
    known[3] += w * deviation
    return w * (known[1] * deviation + known[2])


@compiled
def _levels(z, task, starts, query, w, group_weight, query_weight, e1, e2, e3, slot, known):  # type: ignore[no-untyped-def]
    """Turn the scores z of a task into ``(Lz)_i``.

    The mean of a query is taken twice, the second time of what the first one left: a common offset of the scores,
    however large, then leaves no rounding of its own size in their deviations.
    """
    first = np.uint64(task[0])
    rows = np.uint64(task[1]) - first
    g0, g1 = np.uint64(task[2]), np.uint64(task[3])
    if g0 == g1:
        for r in range(rows):
            z[r] = _known_level(z[r], w[first + r], known[np.uint64(slot[first + r])])
        return
    q = np.uint64(query[g0])
    zq = 0.0
    for r in range(rows):
        zq += w[first + r] * z[r]
    zq /= query_weight[q]
    total = 0.0
    for g in range(g0, g1):
        lo, hi = np.uint64(starts[g]) - first, np.uint64(starts[g + np.uint64(1)]) - first
        zc = 0.0
        for r in range(lo, hi):
            zc += w[first + r] * (z[r] - zq)
        total += zc
        zc /= group_weight[g]
        rest = e2[q] * zc - e1[g] * zc
        for r in range(lo, hi):
            z[r] = e1[g] * (z[r] - zq) + rest
    offset = e3[q] * zq + (e3[q] - e2[q]) * (total / query_weight[q])
    for r in range(rows):
        z[r] = w[first + r] * (z[r] + offset)


@compiled
def _sparse_piece(data, indices, indptr, rows, first, last, p, w, slot, known, out):  # type: ignore[no-untyped-def]
    """Rows whose classes have known means, one by one: the next comes from memory while this one is added."""
    one = np.uint64(1)
    for r in range(np.uint64(first), np.uint64(last)):
        i = np.uint64(rows[r])
        lo, hi = np.uint64(indptr[i]), np.uint64(indptr[i + one])
        read_ahead(data, indices, lo, hi)
        score = 0.0
        for k in range(lo, hi):
            score += data[k] * p[np.uint64(indices[k])]
        value = _known_level(score, w[r], known[np.uint64(slot[r])])
        for k in range(lo, hi):
            out[np.uint64(indices[k])] += value * data[k]


@compiled
def _sparse_pass(data, indices, indptr, rows, tasks, t0, t1, p, levels, known, out):  # type: ignore[no-untyped-def]
    """Tasks t0 to t1 of ``X'L(Xp)``: scores, levels and contribution of each while its rows are in the cache."""
    longest = 0
    for t in range(np.uint64(t0), np.uint64(t1)):
        longest = max(longest, tasks[t, 1] - tasks[t, 0])
    z = np.empty(longest)
    for t in range(np.uint64(t0), np.uint64(t1)):
        task = tasks[t]
        if task[2] == task[3]:
            _sparse_piece(data, indices, indptr, rows, task[0], task[1], p, levels[2], levels[8], known, out)
            continue
        sparse_dot(data, indices, indptr, rows, task[0], task[1], p, z)
        _levels(z, task, *levels, known)
        sparse_add(data, indices, indptr, rows, task[0], task[1], z, out)


@compiled
def _levels_of(z, tasks, t0, t1, levels, known):  # type: ignore[no-untyped-def]
    """The levels of several tasks whose scores are in z, one after the other."""
    origin = np.uint64(tasks[t0, 0])
    for t in range(np.uint64(t0), np.uint64(t1)):
        task = tasks[t]
        _levels(z[np.uint64(task[0]) - origin : np.uint64(task[1]) - origin], task, *levels, known)


class ScoredProduct(LaplacianProduct):
    """``X'LX`` of a scored graph.

    Construction is O(m), and one pass over X if queries are too large for the cache or dense columns are looked at for
    offsets. A product is O(stored entries), threaded over whole queries (or pieces of large ones) with one accumulator
    of n numbers a thread.
    """

    graph: ScoredGraph

    def __init__(self, source: FeatureRows, graph: ScoredGraph, rows: NDArray[np.intp]) -> None:
        super().__init__(source, graph, rows)
        sizes = source.sizes(rows)
        total = int(sizes.sum())
        large = max(_CACHE_ENTRIES, min(4 * self.n_features, total // 16))
        plan = _plan(graph, rows, sizes, large)
        many = _ENTRIES_A_MEAN * len(plan.groups) * max(self.n_features, _CHUNK_ENTRIES) > total
        # Rows of a query that lie far apart come from memory one by one: two passes in their own order are faster.
        self._in_order = many or (total > _SCATTERED_ENTRIES and _scattered(rows[plan.order]))
        if self._in_order:
            plan = _plan(graph, rows, sizes, np.iinfo(np.int64).max)
        self._plan = plan
        self._rows = np.ascontiguousarray(rows[plan.order])
        self._levels = (
            graph.group_starts,
            graph.group_query,
            np.ascontiguousarray(graph.weights[plan.order]),
            graph.group_weight,
            graph.query_weight,
            *graph.eigenvalues,
            plan.slot,
        )
        self._query_means, self._group_means = self._mean_rows()
        ends = np.concatenate(([0], np.cumsum(sizes[plan.order] + 1)))
        threads = min(n_threads(), 1 + total // max(1, self.n_features))
        self._parts = balanced_blocks(ends[np.append(plan.tasks[:, 0], len(plan.order))], threads)

    def __matmul__(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        with one_blas_thread():  # those that BLAS woke for a mean row would spin in the way of the next iterations'
            return self._two_passes(p) if self._in_order else self._one_pass(p)

    def _one_pass(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        known, query_base = self._known(p), self._query_means @ p
        one_pass = self._sparse_pass if self.source.sparse else self._dense_pass

        def run(part: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            out, own = np.zeros(self.n_features), known.copy()
            one_pass(part, p, own, out)
            return out, own[:, 3]

        out, left = np.zeros(self.n_features), np.zeros(len(known))
        for one, its_left in map_threads(run, self._parts):
            out += one
            left += its_left
        if len(known):
            self._add_rounding_of_means(out, left, known[:, 0], query_base)
        return out

    def _two_passes(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """``Xp`` in the order of the rows, L, and ``X'`` in the order of the rows."""
        plan = self._plan
        a = self.source.dot(self._item_rows, p)
        z = a[plan.order]

        def run(part: tuple[int, int]) -> None:
            span = slice(plan.tasks[part[0], 0], plan.tasks[part[1] - 1, 1])
            _levels_of(z[span], plan.tasks, *part, self._levels, np.zeros((0, 4)))

        map_threads(run, self._parts)
        a[plan.order] = z
        return self.source.combine(self._item_rows, a)

    def _sparse_pass(self, part: tuple[int, int], p: NDArray[np.float64], *work: NDArray[np.float64]) -> None:
        """Tasks of ``X'L(Xp)``, one at a time."""
        source: SparseRows = self.source  # type: ignore[assignment]
        _sparse_pass(*source.parts, self._rows, self._plan.tasks, *part, p, self._levels, *work)

    def _dense_pass(
        self, part: tuple[int, int], p: NDArray[np.float64], known: NDArray[np.float64], out: NDArray[np.float64]
    ) -> None:
        """Tasks of ``X'L(Xp)``, about a block of rows at a time."""
        source, tasks = self.source, self._plan.tasks
        t = part[0]
        while t < part[1]:
            first = tasks[t, 0]
            end = int(np.searchsorted(tasks[t : part[1], 1], first + source.block_rows)) + t
            end = max(end, t + 1)
            block = source.block(self._rows[first : tasks[end - 1, 1]])
            z = block @ p
            _levels_of(z, tasks, t, end, self._levels, known)
            out += z @ block
            t = end

    def _mean_rows(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean rows of the large queries, and of the classes in them."""
        graph, plan = self.graph, self._plan
        groups = np.zeros((len(plan.groups), self.n_features))
        for k, g in enumerate(plan.groups):
            items = np.sort(graph.order[slice(*graph.group_starts[g : g + 2])])
            w = graph.weights[items]
            groups[k] = self.source.combine(self._item_rows[items], w / w.sum())
        sums = group_sums(graph.group_weight[plan.groups, None] * groups, plan.query_groups)
        return sums / graph.query_weight[plan.queries, None], groups

    def _known(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of each class of a large query: its mean score, e_1, what its items have in common, and room for a sum."""
        graph, plan = self.graph, self._plan
        e1, e2, e3 = graph.eigenvalues
        q, base = graph.group_query[plan.groups], (self._query_means @ p)[plan.query]
        out = np.zeros((len(plan.groups), 4))
        out[:, 0] = self._group_means @ p
        out[:, 1] = e1[plan.groups]
        out[:, 2] = e2[q] * (out[:, 0] - base) + e3[q] * base
        return out

    def _add_rounding_of_means(
        self,
        out: NDArray[np.float64],
        left: NDArray[np.float64],
        group_base: NDArray[np.float64],
        query_base: NDArray[np.float64],
    ) -> None:
        """Multiples of the mean rows, which make up for means that are means of rows instead of scores."""
        graph, plan = self.graph, self._plan
        e1, e2, e3 = graph.eigenvalues
        q = graph.group_query[plan.groups]
        around = left + graph.group_weight[plan.groups] * (group_base - query_base[plan.query])
        out += ((e3 - e2)[plan.queries] * group_sums(around, plan.query_groups)) @ self._query_means
        out += ((e2[q] - e1[plan.groups]) * left) @ self._group_means


@dataclass(frozen=True)
class _Plan:
    """What is done at a time.

    Attributes
    ----------
    tasks : ndarray of shape (tasks, 4)
        First place, end, first group, end: a query; or without groups a piece of a large query, the means of whose
        classes are known.
    order : ndarray of shape (m,)
        Item of each place. The items of large queries stand in the order of their rows.
    slot : ndarray of shape (m,)
        Which class of a large query the item at a place belongs to.
    queries, groups : ndarray of intp
        The large queries and their classes.
    """

    tasks: NDArray[np.int64]
    order: NDArray[np.intp]
    slot: NDArray[np.intp]
    queries: NDArray[np.intp]
    groups: NDArray[np.intp]
    query: NDArray[np.intp]  # of each of these classes, its number among the large ones
    query_groups: NDArray[np.intp]  # boundaries of each large query's classes


def _plan(graph: ScoredGraph, rows: NDArray[np.intp], sizes: NDArray[np.int64], large: int) -> _Plan:
    """Queries of at most ``large`` stored entries are tasks; larger ones are cut into pieces."""
    query_groups, order = graph.query_groups, graph.order.copy()
    edges = graph.group_starts[query_groups]
    is_large = np.diff(np.concatenate(([0], np.cumsum(sizes[order])))[edges]) > large
    small, queries = np.flatnonzero(~is_large), np.flatnonzero(is_large)
    tasks = [np.column_stack((edges[small], edges[small + 1], query_groups[small], query_groups[small + 1]))]
    for q in queries:
        inside = slice(edges[q], edges[q + 1])
        order[inside] = order[inside][np.argsort(rows[order[inside]], kind="stable")]
        cuts = inside.start + _cuts(sizes[order[inside]])
        tasks.append(np.column_stack((cuts[:-1], cuts[1:], *np.zeros((2, len(cuts) - 1)))))
    together = np.concatenate(tasks).astype(np.int64)
    together = np.ascontiguousarray(together[np.argsort(together[:, 0], kind="stable")])
    known = is_large[graph.group_query]
    groups, slot = np.flatnonzero(known), (np.cumsum(known) - 1)[graph.row_group[order]]
    query = (np.cumsum(is_large) - 1)[graph.group_query[groups]]
    starts = np.searchsorted(query, np.arange(len(queries) + 1)).astype(np.intp)
    return _Plan(together, order, slot, queries, groups, query, starts)


def _cuts(sizes: NDArray[np.int64]) -> NDArray[np.intp]:
    """Boundaries of pieces of about as many stored entries as the first-level cache holds."""
    ends = np.cumsum(sizes)
    wanted = np.arange(_CHUNK_ENTRIES, ends[-1], _CHUNK_ENTRIES)
    return np.unique(np.concatenate(([0], np.searchsorted(ends, wanted), [len(sizes)]))).astype(np.intp)


def _scattered(rows: NDArray[np.intp]) -> bool:
    """Whether rows that are read one after the other seldom follow one another in memory."""
    return bool(np.count_nonzero(np.diff(rows) != 1) > len(rows) // 8)
