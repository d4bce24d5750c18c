"""Rows of ``F Phi`` of a scored graph, for features that are evaluated block by block and never held.

A block holds whole queries wherever they fit, and their means are taken inside it; of queries that are larger than a
block (one global ranking is the usual case) the means are computed once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property
from rankrls._compiled.group_pass import level_rows, weighted_sums
from rankrls._compiled.threads import map_threads, n_threads, one_blas_thread
from rankrls.features.blocks import Rows, row_numbers
from rankrls.features.columns import BLOCK_BYTES, BasisColumns, take_items
from rankrls.features.rows import FactorRows, rows_gram, weighted_gram

if TYPE_CHECKING:
    from rankrls.graph.scored import ScoredGraph

_FEW = 4
"""Up to so many queries larger than a block have their means corrected afterwards instead of beforehand."""
_SAMPLE = 1024


class ColumnRows(FactorRows):
    """``F Phi`` of a scored graph for columns that are evaluated block by block.

    Rows that are asked for must be whole queries, or of a query larger than a block whole groups: :meth:`pieces` cuts
    any whole queries so. Held-out rows are predicted from the columns themselves, which are bounded where a kernel is.
    """

    most_held = BLOCK_BYTES // 4

    def __init__(self, source: BasisColumns, graph: ScoredGraph) -> None:
        self.X: BasisColumns = source
        self.graph: ScoredGraph = graph
        self.n_rows, self.n_features = source.shape
        self.block_rows = source.block_rows
        self._large_query = graph.layout.counts > self.block_rows
        self._large_group = np.diff(graph.group_starts) > self.block_rows
        self._large_query_number = np.cumsum(self._large_query) - 1
        self._large_group_number = np.cumsum(self._large_group) - 1
        self._root_weight = np.sqrt(graph.weights)
        self._kept_means: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def keys(self, rows: Rows) -> list[Any]:
        """Of the items themselves, not of their columns, which a product may round differently from row to row."""
        items = take_items(self.X.X, rows)
        if sparse.issparse(items):
            items = items.toarray()
        return [row.tobytes() for row in items + 0.0] if isinstance(items, np.ndarray) else super().keys(rows)

    def differences(self, rows: Rows) -> NDArray[np.float64]:
        return self.X.block(rows)

    def products(self, V: NDArray[np.float64]) -> Callable[[Rows], NDArray[np.float64]]:
        return self.X.products(V)

    def scores(self, rows: Rows, W: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.X.products(W)(rows)

    def factor(self, rows: Rows) -> NDArray[np.float64]:
        return self._levelled(row_numbers(rows), self.X.block(rows), None)

    def factor_of(self, rows: Rows, D: NDArray[np.float64], V: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._levelled(row_numbers(rows), D.copy(), V)

    def pieces(self, which: Rows) -> list[Rows]:
        """Cut whole queries into pieces of about a block, no query or group in two of them that fits into one."""
        graph = self.graph
        positions = np.sort(self._position[row_numbers(which)])
        cuts = self._cuts(self._unit[positions])
        if graph.layout.contiguous and graph.ties == "include" and isinstance(which, slice):
            return [slice(which.start + a, which.start + b) for a, b in cuts]
        return [graph.order[positions[a:b]] for a, b in cuts]

    def sample(self, wanted: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Random rows that :meth:`pieces` can cut, about as many as wanted: queries, or groups of a large one."""
        order = rng.permutation(self._unit[-1] + 1)
        sizes = np.bincount(self._unit)[order]
        enough = np.zeros(len(order), dtype=bool)
        enough[order[: int(np.searchsorted(np.cumsum(sizes), wanted)) + 1]] = True
        return np.sort(self.graph.order[enough[self._unit]])

    def gram_threads(self) -> int:
        return self.X.gram_threads()

    def equations(self, target: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Evaluate every row once: if a query is larger than a block, about an estimate of its mean.

        About ``s`` instead of the mean ``m`` the Gram matrix is larger by ``e S (m - s)(m - s)'``, where ``S (m - s)``
        is the sum of the rows taken from ``s``: one more column of the right side. ``F Y`` sums to zero over a query
        and does not see ``s``.
        """
        graph, targets = self.graph, target.shape[1]
        queries = self._estimated_queries()
        marks = np.zeros((self.n_rows, len(queries)))
        for k, query in enumerate(queries):
            own = graph.layout.rows(query)
            marks[own, k] = np.sqrt(graph.weights[own] / graph.eigenvalues[0][query])
        gram, rhs = rows_gram(self, slice(0, self.n_rows), np.hstack((target, marks)))
        if len(queries):
            weight = graph.query_weight[queries]
            shifts = rhs[:, targets:].T / weight[:, None]
            gram -= weighted_gram(shifts, graph.eigenvalues[0][queries] * weight)
            assert self._kept_means is not None
            self._kept_means = (self._kept_means[0] + shifts,) * 2
        return gram, rhs[:, :targets]

    def _estimated_queries(self) -> list[int]:
        """Put estimates in the place of the means of large queries, to be settled later; the queries' numbers.

        Only where ``F`` removes a query's mean and does nothing else with it: then the Gram matrix about an estimate
        differs from the one about the mean by one product of their difference. An empty list where that does not
        hold, or where it would not pay.
        """
        graph = self.graph
        large = np.flatnonzero(self._large_query)
        if self._kept_means is not None or graph.ties != "include" or graph.eigenvalues[2][large].any():
            return []
        if not 0 < len(large) <= _FEW:
            return []
        means = np.empty((len(large), self.n_features))
        for k, query in enumerate(large):
            rows = row_numbers(graph.layout.rows(int(query)))
            sample = np.sort(np.random.default_rng(0).choice(rows, min(_SAMPLE, len(rows)), replace=False))
            weights = graph.weights[sample]
            means[k] = weights @ self.X.block(sample) / weights.sum()
        self._kept_means = means, means
        return [int(query) for query in large]

    def _levelled(
        self, numbers: NDArray[np.intp], block: NDArray[np.float64], V: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """``F`` applied to the columns of some rows, or to their products with V, in place."""
        graph = self.graph
        groups = graph.row_group[numbers]
        ids, local = np.unique(groups, return_inverse=True)
        order = np.argsort(local, kind="stable")
        starts = np.searchsorted(local[order], np.arange(len(ids) + 1)).astype(np.intp)
        large = self._large_group[ids]
        if large.all():
            means = np.empty((len(ids), block.shape[1]))
        else:
            means = weighted_sums(block, order, starts, graph.weights[numbers])
            means /= graph.group_weight[ids, None]
        if large.any():
            means[large] = _mixed(self._large_means[0][self._large_group_number[ids[large]]], V)
        q = graph.group_query[ids]
        over = means
        if graph.ties == "exclude":
            queries, first, number = np.unique(q, return_index=True, return_inverse=True)
            over = np.add.reduceat(graph.group_weight[ids, None] * means, first, axis=0)
            over /= graph.query_weight[queries, None]
            large = self._large_query[queries]
            if large.any():
                over[large] = _mixed(self._large_means[1][self._large_query_number[queries[large]]], V)
            over = over[number]
        rest = graph.rest(graph.roots, q, means, over)
        everything = np.arange(len(block), dtype=np.intp)
        level_rows(block, everything, local, graph.roots[0][ids], self._root_weight[numbers], means, rest, block)
        return block

    @property
    def _large_means(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means of the groups and of the queries that are larger than a block, in one pass over their rows."""
        if self._kept_means is None:
            self._kept_means = self._compute_means()
        return self._kept_means

    def _compute_means(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        graph, n = self.graph, self.n_features
        rows = np.flatnonzero(self._large_query[graph.layout.codes])
        position = np.sort(self._position[rows])
        pieces = [graph.order[position[a : a + self.block_rows]] for a in range(0, len(position), self.block_rows)]
        n_groups, n_queries = int(self._large_group.sum()), int(self._large_query.sum())
        sums = np.zeros((n_groups + 1, n)), np.zeros((n_queries, n))

        def add(piece: NDArray[np.intp]) -> tuple[Any, ...]:
            block = self.X.block(piece)
            block *= graph.weights[piece, None]
            group = graph.row_group[piece]
            group = np.where(self._large_group[group], self._large_group_number[group], n_groups)
            query = self._large_query_number[graph.layout.codes[piece]]
            return group, query, *(_run_sums(block, number) for number in (group, query))

        chunk = 4 * n_threads()
        for lo in range(0, len(pieces), chunk):
            with one_blas_thread():
                parts = map_threads(add, pieces[lo : lo + chunk])
            for *_, (group, group_sums), (query, query_sums) in parts:
                np.add.at(sums[0], group, group_sums)
                np.add.at(sums[1], query, query_sums)
        return (
            sums[0][:-1] / graph.group_weight[self._large_group, None],
            sums[1] / graph.query_weight[self._large_query, None],
        )

    @cached_property
    def _position(self) -> NDArray[np.intp]:
        """Place of each row in the graph's order."""
        out = np.empty(self.n_rows, dtype=np.intp)
        out[self.graph.order] = np.arange(self.n_rows)
        return out

    @cached_property
    def _unit(self) -> NDArray[np.intp]:
        """Number of the unit, for each place in the graph's order, that must not be cut: a query, a group or a row."""
        graph = self.graph
        starts = np.zeros(self.n_rows, dtype=bool)
        large_group = np.repeat(self._large_group, np.diff(graph.group_starts))
        in_large_query = self._large_query[graph.layout.codes[graph.order]]
        starts[graph.layout.starts[:-1]] = True
        group_heads = graph.group_starts[:-1]
        starts[group_heads[in_large_query[group_heads]]] = True
        starts[large_group] = True
        return np.cumsum(starts) - 1

    def _cuts(self, units: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
        """Runs of at most a block's rows that end where a unit ends."""
        n = len(units)
        ends = np.append(np.flatnonzero(units[1:] != units[:-1]) + 1, n)
        lo = 0
        while lo < n:
            k = int(np.searchsorted(ends, lo + self.block_rows, side="right")) - 1
            hi = int(ends[k])
            yield lo, hi
            lo = hi


def _mixed(means: NDArray[np.float64], V: NDArray[np.float64] | None) -> NDArray[np.float64]:
    return means if V is None else np.asarray(means @ V)


def _run_sums(block: NDArray[np.float64], number: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Sums over runs of equal numbers, and the runs' numbers."""
    heads = np.concatenate(([0], np.flatnonzero(number[1:] != number[:-1]) + 1))
    return number[heads], np.add.reduceat(block, heads, axis=0)
