r"""``X'L(Xp)`` in one pass over the rows of X of a scored graph (Airola et al. 2010, equation 8).

For scored data ``(Lz)_i = w_i [e_1 (z_i - z_c) + e_2 (z_c - z_q) + e_3 z_q]`` with the means of the item's class and of
its query (see :mod:`rankrls.graph.scored`). The rows of a query that fits into the cache are read twice, once for its
scores and means and once for its contribution, but come from memory once. The means of a query that does not fit are
known beforehand: they are linear, ``z_q = xbar_q'p`` with the mean row ``xbar_q`` of the query, which is kept dense.
There are few such queries. Each of their rows is added as soon as its score is known. What rounding leaves between
those means and the means of the scores is added afterwards as a multiple of the mean row; an offset of the columns
would square it otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls._compiled.read_ahead import read_ahead
from rankrls._compiled.threads import map_threads, n_threads, one_blas_thread
from rankrls.features.feature_rows import FeatureRows, SparseRows, even_parts, sparse_add, sparse_dot
from rankrls.graph._base import LaplacianProduct

if TYPE_CHECKING:
    from rankrls.graph.scored import ScoredGraph

__all__ = ["ScoredProduct"]

_CACHE_ENTRIES = 1 << 15
"""Stored entries of a query that is surely in the second-level cache when it is read again."""
_CHUNK_ENTRIES = 1 << 12
"""Stored entries of a piece of a query whose means are known: first-level cache."""
_SCATTERED_ENTRIES = 1 << 20
"""Stored entries of X that are in no cache when they are read again in another order."""
_QUERY, _CLASS, _PIECE = 0, 1, 2


@compiled
def _known_level(score, w, known):  # type: ignore[no-untyped-def]
    """``(Lz)_i`` of an item whose class has a known mean; the rest of its deviation is kept with the class."""
    deviation = score - known[0]
    known[3] += w * deviation
    return w * (known[1] * deviation + known[2])


@compiled
def _levels(z, task, bounds, query, w, group_weight, query_weight, e1, e2, e3, query_base, slot, known):  # type: ignore[no-untyped-def]
    """Turn the scores z of a task into ``(Lz)_i``; return their weighted sum around the known mean of their query.

    The mean of a query is taken twice, the second time of what the first one left: a common offset of the scores,
    however large, then leaves no rounding of its own size in their deviations.
    """
    first = np.uint64(task[0])
    rows = np.uint64(task[1]) - first
    if task[4] == _PIECE:
        for r in range(rows):
            z[r] = _known_level(z[r], w[first + r], known[np.uint64(slot[first + r])])
        return 0.0
    g0, g1 = np.uint64(task[2]), np.uint64(task[3])
    q = np.uint64(query[g0])
    if task[4] == _CLASS:
        zq = query_base[q]
    else:
        zq = 0.0
        for r in range(rows):
            zq += w[first + r] * z[r]
        zq /= query_weight[q]
    total = 0.0
    for g in range(g0, g1):
        lo, hi = np.uint64(bounds[g, 0]) - first, np.uint64(bounds[g, 1]) - first
        zc = 0.0
        for r in range(lo, hi):
            zc += w[first + r] * (z[r] - zq)
        total += zc
        zc /= group_weight[g]
        rest = e2[q] * zc - e1[g] * zc
        for r in range(lo, hi):
            z[r] = e1[g] * (z[r] - zq) + rest
    offset = e3[q] * zq
    if task[4] == _QUERY:
        offset += (e3[q] - e2[q]) * (total / query_weight[q])
    for r in range(rows):
        z[r] = w[first + r] * (z[r] + offset)
    return total


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
def _sparse_pass(data, indices, indptr, rows, tasks, t0, t1, p, levels, known, left, out):  # type: ignore[no-untyped-def]
    """Tasks t0 to t1 of ``X'L(Xp)``: scores, levels and contribution of each while its rows are in the cache."""
    longest = 0
    for t in range(np.uint64(t0), np.uint64(t1)):
        longest = max(longest, tasks[t, 1] - tasks[t, 0])
    z = np.empty(longest)
    for t in range(np.uint64(t0), np.uint64(t1)):
        task = tasks[t]
        if task[4] == _PIECE:
            _sparse_piece(data, indices, indptr, rows, task[0], task[1], p, levels[2], levels[9], known, out)
            continue
        sparse_dot(data, indices, indptr, rows, task[0], task[1], p, z)
        left[t] = _levels(z, task, *levels, known)
        sparse_add(data, indices, indptr, rows, task[0], task[1], z, out)


@compiled
def _levels_of(z, tasks, t0, t1, levels, known, left):  # type: ignore[no-untyped-def]
    """The levels of several tasks whose scores are in z, one after the other."""
    origin = np.uint64(tasks[t0, 0])
    for t in range(np.uint64(t0), np.uint64(t1)):
        task = tasks[t]
        left[t] = _levels(z[np.uint64(task[0]) - origin : np.uint64(task[1]) - origin], task, *levels, known)


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
        # Rows of a query that lie far apart come from memory one by one: two passes in their own order are faster.
        self._in_order = total > _SCATTERED_ENTRIES and _scattered(rows[plan.order])
        if self._in_order:
            plan = _plan(graph, rows, sizes, np.iinfo(np.int64).max)
        self._plan = plan
        self._rows = np.ascontiguousarray(rows[plan.order])
        self._weights = np.ascontiguousarray(graph.weights[plan.order])
        self._query_means, self._group_means = self._mean_rows()
        ends = np.concatenate(([0], np.cumsum(sizes[plan.order] + 1)))
        threads = min(n_threads(), 1 + total // max(1, self.n_features))
        self._parts = even_parts(ends[plan.tasks[:, 1]] - ends[plan.tasks[:, 0]], threads)

    def __matmul__(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        with one_blas_thread():  # those that BLAS woke for a mean row would spin in the way of the next iterations'
            return self._product(p)

    def _product(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        graph, plan = self.graph, self._plan
        query_base = np.zeros(graph.n_blocks)
        query_base[plan.queries] = self._query_means @ p
        levels = (
            plan.bounds,
            graph.group_query,
            self._weights,
            graph.group_weight,
            graph.query_weight,
            *graph.eigenvalues,
            query_base,
            plan.slot,
        )
        left = np.zeros(len(plan.tasks))
        known = self._known(p, query_base)
        if self._in_order:
            return self._two_passes(p, levels, known, left)
        one_pass = self._sparse_pass if self.source.sparse else self._dense_pass

        def run(part: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            out, own = np.zeros(self.n_features), known.copy()
            one_pass(part, p, levels, own, left, out)
            return out, own[:, 3]

        out, group_left = np.zeros(self.n_features), np.zeros(len(known))
        for one, its_left in map_threads(run, self._parts):
            out += one
            group_left += its_left
        if len(plan.queries):
            self._add_rounding_of_means(out, left, group_left, known[:, 0], query_base)
        return out

    def _two_passes(
        self, p: NDArray[np.float64], levels: tuple[NDArray[Any], ...], known: NDArray[np.float64], left: Any
    ) -> NDArray[np.float64]:
        """``Xp`` in the order of the rows, L, and ``X'`` in the order of the rows."""
        plan = self._plan
        a = self.source.dot(self._item_rows, p)
        z = a[plan.order]

        def run(part: tuple[int, int]) -> None:
            span = slice(plan.tasks[part[0], 0], plan.tasks[part[1] - 1, 1])
            _levels_of(z[span], plan.tasks, *part, levels, known, left)

        map_threads(run, self._parts)
        a[plan.order] = z
        return self.source.combine(self._item_rows, a)

    def _sparse_pass(self, part: tuple[int, int], p: NDArray[np.float64], *work: Any) -> None:
        """Tasks of ``X'L(Xp)``, one at a time."""
        source: SparseRows = self.source  # type: ignore[assignment]
        _sparse_pass(*source.parts, self._rows, self._plan.tasks, *part, p, *work)

    def _dense_pass(
        self,
        part: tuple[int, int],
        p: NDArray[np.float64],
        levels: tuple[NDArray[Any], ...],
        known: NDArray[np.float64],
        left: NDArray[np.float64],
        out: NDArray[np.float64],
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
            _levels_of(z, tasks, t, end, levels, known, left)
            out += z @ block
            t = end

    def _mean_rows(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean rows of the large queries, and of the large classes in them."""
        graph, plan = self.graph, self._plan
        queries = np.zeros((len(plan.queries), self.n_features))
        for k, q in enumerate(plan.queries):
            items = graph.order[slice(*graph.group_starts[graph.query_groups[q : q + 2]])]
            queries[k] = self._weighted_mean(np.sort(items))
        if graph.ties == "include":  # a group is then a query
            return queries, queries
        groups = np.zeros((len(plan.groups), self.n_features))
        for k, g in enumerate(plan.groups):
            groups[k] = self._weighted_mean(np.sort(graph.order[slice(*graph.group_starts[g : g + 2])]))
        return queries, groups

    def _weighted_mean(self, items: NDArray[np.intp]) -> NDArray[np.float64]:
        w = self.graph.weights[items]
        return self.source.combine(self._item_rows[items], w / w.sum())

    def _known(self, p: NDArray[np.float64], query_base: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of each large class: its mean score, e_1, what its items have in common, and room for a sum."""
        graph, plan = self.graph, self._plan
        e1, e2, e3 = graph.eigenvalues
        q = graph.group_query[plan.groups]
        out = np.zeros((len(plan.groups), 4))
        out[:, 0] = self._group_means @ p
        out[:, 1] = e1[plan.groups]
        out[:, 2] = e2[q] * (out[:, 0] - query_base[q]) + e3[q] * query_base[q]
        return out

    def _add_rounding_of_means(
        self,
        out: NDArray[np.float64],
        left: NDArray[np.float64],
        group_left: NDArray[np.float64],
        group_base: NDArray[np.float64],
        query_base: NDArray[np.float64],
    ) -> None:
        """Multiples of the mean rows, which make up for means that are means of rows instead of scores."""
        graph, plan = self.graph, self._plan
        _, e2, e3 = graph.eigenvalues
        q = graph.group_query[plan.groups]
        one_class = plan.tasks[:, 4] == _CLASS
        around = np.bincount(
            graph.group_query[plan.tasks[one_class, 2]], weights=left[one_class], minlength=graph.n_blocks
        ).astype(np.float64)
        in_groups = group_left + graph.group_weight[plan.groups] * (group_base - query_base[q])
        around += np.bincount(q, weights=in_groups, minlength=graph.n_blocks)
        out += ((e3 - e2)[plan.queries] * around[plan.queries]) @ self._query_means
        out += ((e2[q] - graph.eigenvalues[0][plan.groups]) * group_left) @ self._group_means


@dataclass(frozen=True)
class _Plan:
    """What is done at a time.

    Attributes
    ----------
    tasks : ndarray of shape (tasks, 5)
        First place, end, first group, end, kind: a query; a class of a large query, whose mean is known; a piece of
        such a query's large classes, whose means are known too.
    order : ndarray of shape (m,)
        Item of each place. The items of large classes stand in the order of their rows.
    bounds : ndarray of shape (g, 2)
        First place and end of each group that is not a large class.
    slot : ndarray of shape (m,) or (0,)
        Which large class the item at a place belongs to.
    queries, groups : ndarray of intp
        The large queries and large classes.
    """

    tasks: NDArray[np.int64]
    order: NDArray[np.intp]
    bounds: NDArray[np.int64]
    slot: NDArray[np.int64]
    queries: NDArray[np.intp]
    groups: NDArray[np.intp]


def _plan(graph: ScoredGraph, rows: NDArray[np.intp], sizes: NDArray[np.int64], large: int) -> _Plan:
    """Queries and classes of at most ``large`` stored entries are tasks; larger ones are cut into pieces."""
    starts, query_groups = graph.group_starts, graph.query_groups
    ends = np.concatenate(([0], np.cumsum(sizes[graph.order])))
    edges = starts[query_groups]
    is_large = np.diff(ends[edges]) > large
    small = np.flatnonzero(~is_large)
    kind = np.full(len(small), _QUERY)
    tasks = [np.column_stack((edges[small], edges[small + 1], query_groups[small], query_groups[small + 1], kind))]
    queries = np.flatnonzero(is_large).astype(np.intp)
    bounds = np.column_stack((starts[:-1], starts[1:])).astype(np.int64)
    if not len(queries):
        return _Plan(_sorted(tasks), graph.order, bounds, np.zeros(0, np.int64), queries, queries)
    order = graph.order.copy()
    slot = np.full(len(order), -1)
    large_groups: list[NDArray[np.intp]] = []
    known = 0
    for q in queries:
        groups = np.arange(query_groups[q], query_groups[q + 1])
        lengths = np.diff(starts[query_groups[q] : query_groups[q + 1] + 1])
        whole = np.diff(ends[starts[query_groups[q] : query_groups[q + 1] + 1]]) <= large
        place, end = edges[q], edges[q + 1]
        items, in_whole = graph.order[place:end], np.repeat(whole, lengths)
        # The items of large classes by row, then the other classes.
        ours = items[~in_whole]
        by_row = np.argsort(rows[ours], kind="stable")
        middle = place + len(ours)
        order[place:middle] = ours[by_row]
        order[middle:end] = items[in_whole]
        slot[place:middle] = np.repeat(np.cumsum(~whole) - 1 + known, lengths)[~in_whole][by_row]
        if place < middle:
            cuts = place + _cuts(sizes[order[place:middle]])
            zeros = np.zeros(len(cuts) - 1, dtype=np.int64)
            tasks.append(np.column_stack((cuts[:-1], cuts[1:], zeros, zeros, zeros + _PIECE)))
        one = groups[whole]
        bounds[one, 1] = middle + np.cumsum(lengths[whole])
        bounds[one, 0] = bounds[one, 1] - lengths[whole]
        tasks.append(np.column_stack((bounds[one], one, one + 1, np.full(len(one), _CLASS))))
        large_groups.append(groups[~whole])
        known += int((~whole).sum())
    return _Plan(_sorted(tasks), order, bounds, slot, queries, np.concatenate(large_groups).astype(np.intp))


def _cuts(sizes: NDArray[np.int64]) -> NDArray[np.intp]:
    """Boundaries of pieces of about as many stored entries as the first-level cache holds."""
    ends = np.cumsum(sizes)
    wanted = np.arange(_CHUNK_ENTRIES, ends[-1], _CHUNK_ENTRIES)
    return np.unique(np.concatenate(([0], np.searchsorted(ends, wanted), [len(sizes)]))).astype(np.intp)


def _sorted(tasks: list[NDArray[Any]]) -> NDArray[np.int64]:
    together = np.concatenate(tasks).astype(np.int64)
    return np.ascontiguousarray(together[np.argsort(together[:, 0], kind="stable")])


def _scattered(rows: NDArray[np.intp]) -> bool:
    """Whether rows that are read one after the other seldom follow one another in memory."""
    return bool(np.count_nonzero(np.diff(rows) != 1) > len(rows) // 8)
