"""Rows of ``F X``, block by block.

Differences are taken before anything is multiplied: an offset that the columns share inside a query, however large,
is gone before a product can round it. ``F X`` is never held whole unless a solver asks for all of it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._compiled.group_pass import group_pass
from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import n_threads
from rankrls._sparse import offset_columns, shift_columns
from rankrls.features.blocks import BLOCK_ROWS, Rows, row_numbers, row_slices, slices_of
from rankrls.features.columns import BasisColumns, ColumnRows
from rankrls.graph import PairGraph, ScoredGraph

__all__ = [
    "BLOCK_ROWS",
    "FactorRows",
    "PairRows",
    "ScoredRows",
    "factor_rows",
    "row_numbers",
    "row_products",
    "row_slices",
    "rows_for",
]

_SAFE_COLUMNS = 8
_MANY_COLUMNS = 1024
"""From here on one threaded product a block beats one product a thread, which needs a Gram matrix each."""
Matrix = Any


class FactorRows(Protocol):
    """Rows of ``F X`` for a graph and a feature matrix."""

    n_rows: int
    n_features: int
    most_held: float
    """Entries of ``F X`` that may be held at once, for the rows of one block."""

    def pieces(self, which: Rows) -> list[Rows]:
        """Whole blocks of the graph cut into pieces that the other methods take."""
        ...

    def gram_threads(self) -> int:
        """How many pieces to multiply at once, each with a Gram matrix of its own; 1 leaves the threads to BLAS."""
        ...

    def factor(self, rows: Rows) -> NDArray[np.float64]:
        """``(F X)[rows]``, dense, float64."""
        ...

    def differences(self, rows: Rows) -> NDArray[np.float64]:
        """What held-out rows are predicted from: items minus their query's mean, or winners minus losers."""
        ...

    def keys(self, rows: Rows) -> list[Any]:
        """A hashable for each row, the same for items of equal features: their scores are equal, whatever rounding."""
        ...

    @property
    def centres(self) -> NDArray[np.float64]:
        """What the differences are taken from: the means of the queries, or one row of zeros."""
        ...

    def centre_of(self, rows: Rows) -> NDArray[np.intp]:
        """Number of each row's centre."""
        ...

    def factor_of(self, rows: Rows, D: NDArray[np.float64], V: NDArray[np.float64]) -> NDArray[np.float64]:
        """``factor(rows) @ V``, given ``D = differences(rows) @ V``; without a second product where there is a way."""
        ...


def factor_rows(X: Matrix, graph: ScoredGraph | PairGraph) -> ScoredRows | PairRows:
    """Rows of ``F X`` for either kind of graph. X is dense (float32 or float64) or CSR."""
    return PairRows(X, graph) if isinstance(graph, PairGraph) else ScoredRows(X, graph)


def rows_for(X: Matrix | BasisColumns, graph: ScoredGraph | PairGraph) -> ScoredRows | PairRows | ColumnRows:
    """The same, where X may also be evaluated block by block."""
    if isinstance(X, BasisColumns) and isinstance(graph, ScoredGraph):
        return ColumnRows(X, graph)
    return factor_rows(X, graph)


def row_products(X: NDArray[np.floating], W: NDArray[np.float64]) -> NDArray[np.float64]:
    """``X W`` of dense X in float64, in which equal rows give equal products to the last bit.

    BLAS does not keep that promise for a vector or a few columns: it adds up the rows at the end of a block in another
    order, and rounding would rank items with equal features. From a handful of columns on its kernels do.
    """
    X = X.astype(np.float64, copy=False)
    columns = W if W.ndim == 2 else W[:, None]
    if columns.shape[1] >= _SAFE_COLUMNS:
        return np.asarray(X @ W)
    out = np.empty((X.shape[0], columns.shape[1]))
    for k in range(columns.shape[1]):
        np.einsum("ij,j->i", X, np.ascontiguousarray(columns[:, k]), out=out[:, k])
    return out if W.ndim == 2 else out[:, 0]


@compiled
def _scaled_differences(X, rows, groups, k1, scale, means, rest, out):  # type: ignore[no-untyped-def]
    """out[r] = scale (k1 (x - mean of its group) + rest of its group)."""
    columns = np.uint64(X.shape[1])
    for r in range(np.uint64(len(rows))):
        i = np.uint64(rows[r])
        g = np.uint64(groups[r])
        a, s = k1[g], scale[r]
        for j in range(columns):
            out[r, j] = s * (a * (X[i, j] - means[g, j]) + rest[g, j])


class ScoredRows:
    """``F X`` of a scored graph.

    Construction takes one pass over X for the means of all groups, O(m n); a block of r rows is then O(r n).
    """

    most_held: float = 1 << 24  # an eighth of a gigabyte, twice

    def __init__(self, X: Matrix, graph: ScoredGraph) -> None:
        self.graph = graph
        self.n_rows, self.n_features = X.shape
        self._shift = np.zeros(self.n_features)
        self._regresses = bool(graph.eigenvalues[2].any())
        if sparse.issparse(X):
            if not self._regresses:  # a shift of a column changes no difference, but it would change a regression
                columns, shift = offset_columns(X)
                self._shift[columns] = shift
                X = shift_columns(X, columns, shift)
            means = (graph.averaging @ X).toarray()
        else:
            no_targets = np.empty((self.n_rows, 0))
            sums, _ = group_pass(X, graph.order, graph.group_starts, graph.weights, no_targets)
            sums /= graph.group_weight[:, None]
            means = sums
        self.X = X
        over = graph.query_means(means)
        q = graph.group_query
        e1, e2, e3 = graph.eigenvalues
        self.group_means = means
        self.query_means = over
        self._roots = np.sqrt(e1)
        self._rest = np.sqrt(e3)[q, None] * over[q]
        if graph.ties == "exclude":
            self._rest += np.sqrt(e2)[q, None] * (means - over[q])
        self._root_weight = np.sqrt(graph.weights)

    def centring_noise(self) -> NDArray[np.float64]:
        """What rounding of the means can leave of a constant column in the diagonal of ``X'LX``, (n,)."""
        graph = self.graph
        e1, e2, e3 = graph.eigenvalues
        largest = np.maximum(np.maximum(e2, e3)[graph.layout.codes], e1[graph.row_group])
        offset = np.abs(self.query_means).max(axis=0, initial=0.0)
        noise = 8.0 * float(np.finfo(np.float64).eps) * offset
        return np.asarray(noise**2 * float(graph.weights @ largest) * (not self._regresses))

    def pieces(self, which: Rows) -> list[Rows]:
        return slices_of(which)

    def gram_threads(self) -> int:
        return 1 if self.n_features > _MANY_COLUMNS else n_threads()

    def factor(self, rows: Rows) -> NDArray[np.float64]:
        numbers = row_numbers(rows)
        return self._differences(
            numbers, self.graph.row_group, self._roots, self._root_weight[numbers], self.group_means, self._rest
        )

    def differences(self, rows: Rows) -> NDArray[np.float64]:
        numbers = row_numbers(rows)
        queries = len(self.query_means)
        return self._differences(
            numbers,
            self.graph.layout.codes,
            np.ones(queries),
            np.ones(len(numbers)),
            self.query_means,
            np.zeros_like(self.query_means),
        )

    def keys(self, rows: Rows) -> list[Any]:
        return [row.tobytes() for row in self.differences(rows) + 0.0]

    @property
    def centres(self) -> NDArray[np.float64]:
        return self.query_means + self._shift

    def centre_of(self, rows: Rows) -> NDArray[np.intp]:
        return self.graph.layout.codes[rows]

    def factor_of(self, rows: Rows, D: NDArray[np.float64], V: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.graph.ties == "exclude" or self._regresses:
            return self.factor(rows) @ V
        scale = self._root_weight[rows] * self._roots[self.graph.layout.codes[rows]]
        return scale[:, None] * D

    def combine(self, a: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X'a`` for item coefficients, (n, targets). What the queries' coefficients cancel is never multiplied."""
        graph = self.graph
        if sparse.issparse(self.X):
            return np.asarray(self.X.T @ a)
        out = np.zeros((self.n_features, a.shape[1]))
        if self._regresses:
            sums = np.zeros((graph.n_blocks, a.shape[1]))
            np.add.at(sums, graph.layout.codes, a)
            out += self.query_means.T @ sums
        for piece in row_slices(0, self.n_rows):
            out += self.differences(piece).T @ a[piece]
        return out

    def _differences(
        self,
        rows: NDArray[np.intp],
        groups: NDArray[np.intp],
        k1: NDArray[np.float64],
        scale: NDArray[np.float64],
        means: NDArray[np.float64],
        rest: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        out = np.empty((len(rows), self.n_features))
        groups = groups[rows]
        if sparse.issparse(self.X):
            block, rows = self.X[rows].toarray(), np.arange(len(rows), dtype=np.intp)
        else:
            block = self.X
        _scaled_differences(block, rows, groups, k1, scale, means, rest, out)
        return out


class PairRows:
    """``F X`` of a pair graph: weighted differences of rows."""

    most_held: float = np.inf

    def __init__(self, X: Matrix, graph: PairGraph) -> None:
        if sparse.issparse(X):
            X = shift_columns(X, *offset_columns(X))
        self.X: Any = X
        self.graph = graph
        self.n_rows, self.n_features = graph.n_rows, X.shape[1]
        self._root_weight = np.sqrt(graph.weight)

    def pieces(self, which: Rows) -> list[Rows]:
        return slices_of(which)

    def gram_threads(self) -> int:
        if isinstance(self.X, BasisColumns):
            return self.X.gram_threads()
        return 1 if self.n_features > _MANY_COLUMNS else n_threads()

    def factor(self, rows: Rows) -> NDArray[np.float64]:
        out = self.differences(rows)
        out *= self._root_weight[rows, None]
        return out

    def keys(self, rows: Rows) -> list[Any]:
        return [row.tobytes() for row in self.differences(rows) + 0.0]

    @property
    def centres(self) -> NDArray[np.float64]:
        return np.zeros((1, self.n_features))

    def centre_of(self, rows: Rows) -> NDArray[np.intp]:
        return np.zeros_like(self.graph.winners[rows])

    def factor_of(self, rows: Rows, D: NDArray[np.float64], V: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._root_weight[rows, None] * D

    def combine(self, a: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X'a`` for item coefficients that sum to zero, (n, targets)."""
        if sparse.issparse(self.X):
            return np.asarray(self.X.T @ a)
        centre = self.X.mean(axis=0, dtype=np.float64)
        out = np.zeros((self.n_features, a.shape[1]))
        for piece in row_slices(0, self.X.shape[0]):
            out += (self.X[piece] - centre).T @ a[piece]
        return out

    def differences(self, rows: Rows) -> NDArray[np.float64]:
        winners, losers = self.graph.winners[rows], self.graph.losers[rows]
        if isinstance(self.X, BasisColumns):
            out = self.X.block(winners)
            out -= self.X.block(losers)
            return out
        if sparse.issparse(self.X):
            return np.asarray((self.X[winners] - self.X[losers]).toarray(), dtype=np.float64)
        # Upcast before the difference: float32 rows are subtracted in double.
        out = self.X[winners].astype(np.float64)
        out -= self.X[losers]
        return out
