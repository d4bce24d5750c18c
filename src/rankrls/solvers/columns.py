"""Rows of ``F Phi`` whose features are evaluated block by block and never held: kernel columns of a basis.

With m items and r columns only a block of rows is in memory, so that ``Phi' L Phi`` of a million items and thousands
of columns takes O(r^2) memory. A block holds whole queries wherever they fit, and their means are taken inside it; of
queries that are larger than a block (one global ranking is the usual case) the means are computed once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property
from rankrls._compiled.group_pass import group_pass
from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import map_threads, n_threads, one_blas_thread
from rankrls.graph import ScoredGraph
from rankrls.solvers.blocks import Rows, row_numbers

__all__ = ["BasisColumns", "ColumnRows", "take_items"]

_BLOCK_BYTES = 32 << 20
_BLOCK_ROWS = 2048
_MIN_ROWS = 256
_FEW = 4
"""Up to so many queries larger than a block have their means corrected afterwards instead of beforehand."""
_SAMPLE = 1024
_MOST_BYTES = 768 << 20
"""Of blocks and Gram matrices of all threads."""


def take_items(X: Any, rows: Rows) -> Any:
    """Rows of a matrix, or items of a sequence."""
    if not isinstance(X, list):
        return X[rows]
    return X[rows] if isinstance(rows, slice) else [X[i] for i in rows]


class BasisColumns:
    """An (m, columns) matrix given by its rows: ``evaluate(X[rows]) @ mixing``.

    Parameters
    ----------
    X : dense, CSR or list
        The m items.
    evaluate : callable
        Values of all columns for some items, dense float64 in memory of its own; see
        :class:`rankrls.kernels.KernelColumns`.
    n_columns : int
        Of what ``evaluate`` returns.
    mixing : ndarray of shape (n_columns, columns), optional
        Combines the columns, row by row.
    """

    def __init__(
        self,
        X: Any,
        evaluate: Callable[[Any], NDArray[np.float64]],
        n_columns: int,
        mixing: NDArray[np.float64] | None = None,
    ) -> None:
        self.X = X
        self.evaluate = evaluate
        self.mixing = mixing
        n_items = len(X) if isinstance(X, list) else X.shape[0]
        self.shape = (n_items, n_columns if mixing is None else mixing.shape[1])

    @property
    def block_rows(self) -> int:
        """Rows of a block: of at most 32 MB, unless that would be few rows."""
        return int(np.clip(_BLOCK_BYTES // (8 * max(self.shape[1], 1)), _MIN_ROWS, _BLOCK_ROWS))

    def gram_threads(self) -> int:
        """How many blocks to work on at once, each with a Gram matrix of its own; 1 leaves the threads to BLAS."""
        columns = self.shape[1]
        each = 8 * (columns**2 + self.block_rows * columns)
        threads = min(n_threads(), _MOST_BYTES // max(each, 1))
        return int(threads) if 2 * threads >= n_threads() else 1

    def block(self, rows: Rows) -> NDArray[np.float64]:
        """Some rows, (rows, columns), dense, in memory of their own."""
        values = self.evaluate(take_items(self.X, rows))
        return values if self.mixing is None else np.asarray(values @ self.mixing)


@compiled
def _level_in_place(block, local, k1, scale, means, rest):  # type: ignore[no-untyped-def]
    """block[r] = scale[r] (k1 (block[r] - mean of its group) + rest of its group), in place."""
    columns = np.uint64(block.shape[1])
    for r in range(np.uint64(block.shape[0])):
        g = np.uint64(local[r])
        a, s = k1[g], scale[r]
        for j in range(columns):
            block[r, j] = s * (a * (block[r, j] - means[g, j]) + rest[g, j])


class ColumnRows:
    """``F Phi`` of a scored graph for columns that are evaluated block by block.

    The same protocol as :class:`rankrls.solvers.rows.ScoredRows`, but what is asked for must hold whole queries, or
    of a query larger than a block whole groups: :meth:`pieces` cuts any whole queries so.
    """

    most_held: float = _BLOCK_BYTES // 4

    def __init__(self, source: BasisColumns, graph: ScoredGraph) -> None:
        self.X = source
        self.graph = graph
        self.n_rows, self.n_features = source.shape
        self.block_rows = source.block_rows
        self._large_query = graph.layout.counts > self.block_rows
        self._large_group = np.diff(graph.group_starts) > self.block_rows
        self._roots = tuple(np.sqrt(e) for e in graph.eigenvalues)
        self._root_weight = np.sqrt(graph.weights)
        self._kept_means: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def keys(self, rows: Rows) -> list[Any]:
        """Of the items themselves, not of their columns, which a product may round differently from row to row."""
        items = take_items(self.X.X, rows)
        if sparse.issparse(items):
            items = items.toarray()
        if isinstance(items, np.ndarray):
            return [row.tobytes() for row in items + 0.0]
        return [row.tobytes() for row in self.differences(rows) + 0.0]

    @property
    def centres(self) -> NDArray[np.float64]:
        """Zero: held-out rows are predicted from the columns themselves, which are bounded where a kernel is."""
        return np.zeros((1, self.n_features))

    def centre_of(self, rows: Rows) -> NDArray[np.intp]:
        return np.zeros_like(self.graph.layout.codes[rows])

    def differences(self, rows: Rows) -> NDArray[np.float64]:
        return self.X.block(rows)

    def factor(self, rows: Rows) -> NDArray[np.float64]:
        return self._levelled(row_numbers(rows), self.X.block(rows), None)

    def factor_of(self, rows: Rows, D: NDArray[np.float64], V: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._levelled(row_numbers(rows), D.copy(), V)

    def pieces(self, which: Rows) -> list[Rows]:
        """Cut whole queries into pieces of about a block, no query or group in two of them that fits into one."""
        graph = self.graph
        whole = isinstance(which, slice)
        if isinstance(which, slice):
            lo, hi = which.start, which.stop
            whole = lo == 0 and hi == self.n_rows
        if whole:
            positions = np.arange(self.n_rows)
        elif graph.is_contiguous and isinstance(which, slice):
            positions = np.arange(lo, hi)
        else:
            positions = np.sort(self._position[row_numbers(which)])
        cuts = self._cuts(self._unit[positions])
        if graph.is_contiguous and isinstance(which, slice):
            start = which.start
            return [slice(start + a, start + b) for a, b in cuts]
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

    def estimate_means(self) -> list[int]:
        """Put estimates in the place of the means of large queries, to be settled later; their numbers.

        Only where ``F`` removes a query's mean and does nothing else with it: then the Gram matrix about an estimate
        differs from the one about the mean by one product of their difference. An empty list where that does not
        hold, or where it would not pay.
        """
        graph = self.graph
        large = np.flatnonzero(self._large_query)
        if self._kept_means is not None or graph.ties != "include" or self._roots[2][large].any():
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

    def settle_means(self, queries: list[int], shifts: NDArray[np.float64]) -> None:
        """Add to the estimates what they were off by, (queries, columns)."""
        assert self._kept_means is not None
        self._kept_means = (self._kept_means[0] + shifts,) * 2

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
            means, _ = group_pass(block, order, starts, graph.weights[numbers], np.empty((len(block), 0)), threads=1)
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
        e1, e2, e3 = self._roots
        rest = e3[q, None] * over
        if graph.ties == "exclude":
            rest += e2[q, None] * (means - over)
        _level_in_place(block, local, e1[ids], self._root_weight[numbers], means, rest)
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
    def _large_group_number(self) -> NDArray[np.intp]:
        return np.cumsum(self._large_group) - 1

    @cached_property
    def _large_query_number(self) -> NDArray[np.intp]:
        return np.cumsum(self._large_query) - 1

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
