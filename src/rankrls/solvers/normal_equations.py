"""The normal equations ``X'LX`` and ``X'Ly``, from blocks of ``F X``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.blas import dsyrk

from rankrls._compiled.threads import map_threads, n_threads, one_blas_thread
from rankrls.graph import PairGraph, ScoredGraph
from rankrls.solvers.rows import FactorRows, PairRows, ScoredRows, row_slices

__all__ = ["NormalEquations", "normal_equations", "rows_gram"]

_SPARSE_BELOW = 0.1
"""Below this density the products of sparse matrices beat dense ones of the same shape."""
_MANY_COLUMNS = 1024
"""From here on one threaded product a block beats one product a thread, which needs a Gram matrix each."""


@dataclass(frozen=True)
class NormalEquations:
    """``gram = X'LX`` (n, n), ``rhs = X'L Y`` (n, targets), ``energy = y'Ly`` of each target.

    They add up over queries: adding or subtracting a batch of whole queries is exact up to rounding.
    """

    gram: NDArray[np.float64]
    rhs: NDArray[np.float64]
    energy: NDArray[np.float64]

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(self.gram + other.gram, self.rhs + other.rhs, self.energy + other.energy)

    def __sub__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(self.gram - other.gram, self.rhs - other.rhs, self.energy - other.energy)


def normal_equations(rows: ScoredRows | PairRows, target: NDArray[np.float64]) -> NormalEquations:
    """Accumulate the normal equations of ``||F X w - target||^2``.

    Parameters
    ----------
    rows : ScoredRows or PairRows
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
    X = rows.X
    if sparse.issparse(X) and X.nnz < _SPARSE_BELOW * X.shape[0] * X.shape[1]:
        gram, rhs = _sparse_equations(X, rows, target)
    elif isinstance(rows, PairRows) and rows.n_rows > 2 * X.shape[0] and not sparse.issparse(X):
        gram, rhs = _many_pairs(X, rows.graph, target)
    else:
        gram, rhs = rows_gram(rows, slice(0, rows.n_rows), target)
    return NormalEquations(gram, rhs, energy)


def rows_gram(
    rows: FactorRows, which: slice | NDArray[np.intp], target: NDArray[np.float64], *, threads: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``B'B`` and ``B' target`` for the rows B of ``F X`` named by ``which`` (a slice, or row numbers)."""
    n = rows.n_features
    pieces: list[Any]
    if isinstance(which, slice):
        pieces = list(row_slices(which.start, which.stop))
    else:
        pieces = [which[piece] for piece in row_slices(0, len(which))]
    threads = n_threads() if threads is None else threads
    threads = 1 if n > _MANY_COLUMNS else min(threads, max(1, len(pieces)))

    def run(some: list[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        gram = np.zeros((n, n), order="F")
        rhs = np.zeros((n, target.shape[1]))
        for piece in some:
            B = rows.factor(piece)
            gram = dsyrk(1.0, B.T, beta=1.0, c=gram, overwrite_c=1)
            rhs += B.T @ target[piece]
        return gram, rhs

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
    upper = np.triu_indices(n, 1)
    gram.T[upper] = gram[upper]
    return np.ascontiguousarray(gram), rhs


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
    gram += _weighted_gram(rows.group_means, ((e2 if graph.ties == "exclude" else e3)[q] - e1) * graph.group_weight)
    if graph.ties == "exclude":
        gram += _weighted_gram(rows.query_means, (e3 - e2) * graph.query_weight)
    return 0.5 * (gram + gram.T), np.asarray(X.T @ (graph.F.T @ target))


def _weighted_gram(M: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(M.T @ (weight[:, None] * M))


def _many_pairs(
    X: NDArray[Any], graph: PairGraph, target: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``X'(LX)`` by blocks of columns, where preferences outnumber items: O(pairs n + m n^2)."""
    L = (graph.matrix.T @ graph.matrix).tocsr()
    m, n = X.shape
    centre = X.mean(axis=0, dtype=np.float64)  # L does not see it, but the products would round it
    combined = graph.matrix.T @ target
    gram, rhs = np.zeros((n, n)), np.zeros((n, target.shape[1]))
    pieces = list(row_slices(0, m, 16 * 1024))
    for columns in row_slices(0, n, 64):
        LX = L @ (X[:, columns] - centre[columns])
        for piece in pieces:
            gram[:, columns] += (X[piece] - centre).T @ LX[piece]
    for piece in pieces:
        rhs += (X[piece] - centre).T @ combined[piece]
    return 0.5 * (gram + gram.T), rhs
