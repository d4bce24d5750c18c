"""The normal equations ``X'LX`` and ``X'Ly``, from blocks of ``F X``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._compiled.blas import add_gram
from rankrls._compiled.threads import map_threads, one_blas_thread
from rankrls.features.blocks import row_slices
from rankrls.features.columns import BasisColumns, ColumnRows
from rankrls.features.rows import FactorRows, PairRows, ScoredRows
from rankrls.graph import PairGraph, ScoredGraph

__all__ = ["NormalEquations", "normal_equations", "rows_gram"]

_SPARSE_BELOW = 0.1
"""Below this density the products of sparse matrices beat dense ones of the same shape."""
_PANEL = 512
_PANEL_BYTES = 128 << 20
_MANY_PAIRS = 2
_SUBTRACTED = 1e-12
_CANCELLED = 1e-13
"""What is left of a feature when its part that no edge sees was squared and taken off: less than this is rounding."""


@dataclass(frozen=True)
class NormalEquations:
    """``gram = X'LX`` (n, n), ``rhs = X'L Y`` (n, targets), ``energy = y'Ly`` of each target.

    They add up over queries: adding or subtracting a batch of whole queries is exact up to rounding. A feature of which
    subtracting leaves nothing but rounding is set to zero.
    """

    gram: NDArray[np.float64]
    rhs: NDArray[np.float64]
    energy: NDArray[np.float64]

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(self.gram + other.gram, self.rhs + other.rhs, self.energy + other.energy)

    def __sub__(self, other: NormalEquations) -> NormalEquations:
        noise = _SUBTRACTED * self.gram.diagonal()
        gram, rhs = _cleared(self.gram - other.gram, self.rhs - other.rhs, noise)
        return NormalEquations(gram, rhs, self.energy - other.energy)

    def whitened(self, T: NDArray[np.float64] | None) -> NormalEquations:
        """Those of the features ``X T``; these where T is None. O(n^3)."""
        if T is None:
            return self
        gram = T.T @ (self.gram @ T)
        return NormalEquations(0.5 * (gram + gram.T), T.T @ self.rhs, self.energy)


def normal_equations(rows: ScoredRows | PairRows | ColumnRows, target: NDArray[np.float64]) -> NormalEquations:
    """Accumulate the normal equations of ``||F X w - target||^2``.

    Parameters
    ----------
    rows : ScoredRows, PairRows or ColumnRows
        The rows of ``F X``.
    target : ndarray of shape (rows, targets)
        ``F Y``, or the weighted strengths of the preferences.

    Notes
    -----
    O(m n^2), one pass over X after the one that took the means; memory of a block a thread. The textbook's
    ``X'DX`` minus the low-rank query means is not used for dense data: at 723k x 136 it saves a tenth of the time and
    loses half the digits where the columns' means exceed their spread a thousandfold. Sparse data of low density use
    it, because centring would fill them.
    """
    energy = np.einsum("ij,ij->j", target, target)
    gram, rhs = _gram_and_rhs(rows, target)
    if isinstance(rows, ScoredRows):
        gram, rhs = _cleared(gram, rhs, rows.centring_noise())
    return NormalEquations(gram, rhs, energy)


def _gram_and_rhs(
    rows: ScoredRows | PairRows | ColumnRows, target: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    X: Any = rows.X
    if isinstance(rows, ColumnRows):
        return _column_equations(rows, target)
    if sparse.issparse(X) and X.nnz < _SPARSE_BELOW * X.shape[0] * X.shape[1]:
        return _sparse_equations(X, rows, target)
    if isinstance(rows, PairRows) and rows.n_rows > _MANY_PAIRS * X.shape[0] and not sparse.issparse(X):
        return _many_pairs(X, rows.graph, target)
    return rows_gram(rows, slice(0, rows.n_rows), target)


def rows_gram(
    rows: FactorRows, which: slice | NDArray[np.intp], target: NDArray[np.float64], *, threads: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``B'B`` and ``B' target`` for the rows B of ``F X`` named by ``which`` (a slice, or row numbers)."""
    n = rows.n_features
    pieces = rows.pieces(which)
    most = min(rows.gram_threads(), max(1, len(pieces)))
    threads = most if threads is None else min(threads, most)

    def run(some: list[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        gram = np.zeros((n, n), order="F")
        rhs = np.zeros((target.shape[1], n))
        for piece in some:
            B = rows.factor(piece)
            add_gram(gram, B)
            rhs += target[piece].T @ B  # reads B in its order, in half the time of B'target
        return gram, rhs.T

    if threads == 1:
        parts = [run(pieces)]
    else:
        # Each thread walks a run of neighbouring blocks, so that it streams through the rows.
        cuts = np.linspace(0, len(pieces), threads + 1).astype(int)
        with one_blas_thread():
            parts = map_threads(run, [pieces[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)])
    gram, rhs = parts[0]
    for more_gram, more_rhs in parts[1:]:
        gram += more_gram
        rhs += more_rhs
    _mirror(gram)
    return gram.T, rhs


def _mirror(gram: NDArray[np.float64]) -> None:
    """Copy the upper triangle to the lower one, panel by panel."""
    for piece in row_slices(0, len(gram), _PANEL):
        corner = np.triu(gram[piece, piece])
        gram[piece, piece] = corner + np.triu(corner, 1).T
        gram[piece.stop :, piece] = gram[piece, piece.stop :].T


def _column_equations(rows: ColumnRows, target: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Evaluate every row once: where a query is larger than a block, about an estimate of its mean.

    About ``s`` instead of the mean ``m`` the Gram matrix is larger by ``e S (m - s)(m - s)'``, where ``S (m - s)`` is
    the sum of the rows taken from ``s``: one more column of the right side. ``F Y`` sums to zero over a query and does
    not see ``s``.
    """
    everything = slice(0, rows.n_rows)
    queries = rows.estimate_means()
    graph, targets = rows.graph, target.shape[1]
    marks = np.zeros((rows.n_rows, len(queries)))
    for k, query in enumerate(queries):
        own = graph.layout.rows(query)
        marks[own, k] = np.sqrt(graph.weights[own] / graph.eigenvalues[0][query])
    gram, rhs = rows_gram(rows, everything, np.hstack((target, marks)))
    if queries:
        weight = graph.query_weight[queries]
        shifts = rhs[:, targets:].T / weight[:, None]
        gram -= _weighted_gram(shifts, graph.eigenvalues[0][queries] * weight)
        rows.settle_means(queries, shifts)
    return gram, rhs[:, :targets]


def _sparse_equations(
    X: Any, rows: ScoredRows | PairRows, target: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if isinstance(rows, PairRows):
        FX = rows.graph.matrix @ X
        return (FX.T @ FX).toarray(), np.asarray(FX.T @ target)
    graph: ScoredGraph = rows.graph
    e1, e2, e3 = graph.eigenvalues
    q = graph.group_query
    diagonal = graph.weights * e1[graph.row_group]
    gram = (X.T @ (sparse.diags_array(diagonal) @ X)).toarray()
    raw = gram.diagonal().copy()
    gram += _weighted_gram(rows.group_means, ((e2 if graph.ties == "exclude" else e3)[q] - e1) * graph.group_weight)
    if graph.ties == "exclude":
        gram += _weighted_gram(rows.query_means, (e3 - e2) * graph.query_weight)
    return _cleared(0.5 * (gram + gram.T), np.asarray(X.T @ (graph.F.T @ target)), _CANCELLED * raw)


def _weighted_gram(M: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(M.T @ (weight[:, None] * M))


def _many_pairs(
    X: NDArray[Any] | BasisColumns, graph: PairGraph, target: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``X'(LX)`` by panels of columns, where preferences outnumber items: O(pairs n + m n^2)."""
    L = (graph.matrix.T @ graph.matrix).tocsr()
    m, n = X.shape
    combined = graph.matrix.T @ target
    gram, rhs = np.zeros((n, n)), np.zeros((n, target.shape[1]))
    raw, degrees = np.zeros(n), L.diagonal()
    if isinstance(X, BasisColumns):
        # Every panel costs another evaluation of all columns: as few panels as memory allows.
        pieces, width = list(row_slices(0, m, X.block_rows)), max(64, _PANEL_BYTES // (8 * m))
        centre = X.block(slice(0, min(m, X.block_rows))).mean(axis=0)
        block: Callable[[slice], Any] = X.block
    else:
        pieces, width = list(row_slices(0, m, 16 * 1024)), 64
        centre = X.mean(axis=0, dtype=np.float64)
        block = X.__getitem__
    panel = np.empty((m, min(width, n)))
    # L does not see the centre, but without it the products would round it.
    for columns in row_slices(0, n, width):
        for piece in pieces:
            panel[piece, : columns.stop - columns.start] = block(piece)[:, columns] - centre[columns]
        LX = L @ panel[:, : columns.stop - columns.start]
        for piece in pieces:
            gram[:, columns] += (block(piece) - centre).T @ LX[piece]
        raw[columns] = degrees @ panel[:, : columns.stop - columns.start] ** 2
    for piece in pieces:
        rhs += (block(piece) - centre).T @ combined[piece]
    return _cleared(0.5 * (gram + gram.T), rhs, _CANCELLED * raw)


def _cleared(
    gram: NDArray[np.float64], rhs: NDArray[np.float64], noise: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Without the features of which there is nothing but rounding, however small it is beside others."""
    gone = gram.diagonal() <= noise
    if gone.any():
        gram[gone], gram[:, gone], rhs[gone] = 0.0, 0.0, 0.0
    return gram, rhs
