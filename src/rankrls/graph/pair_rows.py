"""What solvers ask of plain preferences: rows of ``F X`` and products with ``X'LX``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import balanced_blocks, map_threads, n_threads
from rankrls.features.blocks import Rows, row_slices
from rankrls.features.feature_rows import FeatureRows, feature_rows
from rankrls.features.rows import CANCELLED, FactorRows, cleared, visible_energies
from rankrls.graph._base import LaplacianProduct

if TYPE_CHECKING:
    from rankrls.graph.pairs import PairGraph

_PANEL_BYTES = 128 << 20
_PANEL = 64
_PANEL_ROWS = 16 * 1024
_MANY_PAIRS = 2
_SAMPLE = 1024


class PairRows(FactorRows):
    """``F X`` of a pair graph: weighted differences of rows."""

    def __init__(self, X: Any, graph: PairGraph) -> None:
        self._source = feature_rows(X, centred=sparse.issparse(X))
        self.X = self._source.X if self._source.held else X
        self.graph: PairGraph = graph
        self.n_rows, self.n_features = graph.n_rows, self._source.n_features
        self._root_weight = np.sqrt(graph.weight)

    def gram_threads(self) -> int:
        return self._source.gram_threads()

    def factor(self, rows: Rows) -> NDArray[np.float64]:
        out = self.differences(rows)
        out *= self._root_weight[rows, None]
        return out

    def factor_of(self, rows: Rows, D: NDArray[np.float64], V: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._root_weight[rows, None] * D

    def differences(self, rows: Rows) -> NDArray[np.float64]:
        # Upcast before the difference: float32 rows are subtracted in double.
        return self._source.block(self.graph.winners[rows]) - self._source.block(self.graph.losers[rows])

    def equations(self, target: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.is_thin:
            FX = self.graph.matrix @ self.X
            return (FX.T @ FX).toarray(), np.asarray(FX.T @ target)
        if self.n_rows > _MANY_PAIRS * self.graph.n_items and not self._source.sparse:
            return self._panel_equations(target)
        return super().equations(target)

    def _panel_equations(self, target: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``X'(LX)`` by panels of columns, if preferences outnumber items: O(pairs n + m n^2)."""
        graph, source = self.graph, self._source
        L = (graph.matrix.T @ graph.matrix).tocsr()
        m, n = source.shape
        combined = graph.matrix.T @ target
        gram, rhs = np.zeros((n, n)), np.zeros((n, target.shape[1]))
        raw, degrees = np.zeros(n), L.diagonal()
        # Every panel costs another evaluation of all columns that are not held: as few panels as memory allows.
        width = _PANEL if source.held else max(_PANEL, _PANEL_BYTES // (8 * m))
        pieces = list(row_slices(0, m, _PANEL_ROWS if source.held else source.block_rows))
        # L does not see the centre, but without it the products would round it.
        centre = source.block(np.unique(np.linspace(0, m - 1, min(m, _SAMPLE)).astype(np.intp))).mean(axis=0)
        panel = np.empty((m, min(width, n)))
        for columns in row_slices(0, n, width):
            filled = panel[:, : columns.stop - columns.start]
            for piece in pieces:
                filled[piece] = source.block(piece)[:, columns] - centre[columns]
            LX = L @ filled
            for piece in pieces:
                gram[:, columns] += (source.block(piece) - centre).T @ LX[piece]
            raw[columns] = degrees @ filled**2
        for piece in pieces:
            rhs += (source.block(piece) - centre).T @ combined[piece]
        return cleared(0.5 * (gram + gram.T), rhs, CANCELLED * raw)

    def energies(self) -> NDArray[np.float64]:
        if not sparse.issparse(self.X):
            return super().energies()
        return visible_energies(np.asarray(self.graph.quadratic(self.X)), self.raw_energies(), self.graph.n_items)


class PairProduct(LaplacianProduct):
    """``X'LX`` of preferences: ``(Lz)_i = sum_j c_ij (z_i - z_j)``, two passes over the rows and one over the pairs.

    Repeated preferences are added up once, and items in no preference are not looked at where they are many.
    """

    def __init__(self, source: FeatureRows, graph: PairGraph, rows: NDArray[np.intp]) -> None:
        super().__init__(source, graph, rows)
        compared = np.zeros(graph.n_items, dtype=bool)
        compared[graph.winners] = compared[graph.losers] = True
        if 2 * int(compared.sum()) > graph.n_items:
            compared[:] = True  # gaps between rows that are read one after the other cost more than they save
        items = np.flatnonzero(compared)
        number = np.cumsum(compared) - 1
        i, j = number[graph.winners], number[graph.losers]
        both = sparse.coo_array(
            (np.tile(graph.weight, 2), (np.concatenate((i, j)), np.concatenate((j, i)))), shape=(len(items), len(items))
        ).tocsr()
        self._rows = np.ascontiguousarray(rows[items])
        self._edges = both.data, both.indices.astype(np.int64), both.indptr.astype(np.int64)

    def __matmul__(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        z = self.source.dot(self._rows, p)
        a = np.empty_like(z)

        def run(part: tuple[int, int]) -> None:
            _pair_levels(z, *self._edges, *part, a)

        map_threads(run, balanced_blocks(self._edges[2], n_threads()))
        return self.source.combine(self._rows, a)


@compiled
def _pair_levels(z, weights, others, starts, first, last, out):  # type: ignore[no-untyped-def]
    """``out_i = sum_j c_ij (z_i - z_j)`` for items first to last."""
    one = np.uint64(1)
    for i in range(np.uint64(first), np.uint64(last)):
        total = 0.0
        for k in range(np.uint64(starts[i]), np.uint64(starts[i + one])):
            total += weights[k] * (z[i] - z[np.uint64(others[k])])
        out[i] = total
