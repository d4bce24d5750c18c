"""Products of a feature matrix with vectors, for solvers that need no more of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._compiled.threads import map_threads, n_threads, one_blas_thread
from rankrls._sparse import offset_columns, shift_columns
from rankrls.solvers.rows import row_slices

__all__ = ["FeatureProducts"]

_ROWS = 4096
_LARGE = 100.0


class FeatureProducts:
    """``X w`` and ``X'g``, X dense (float32 or float64) or CSR; O(non-zeros) each.

    Dense rows are read in blocks that stay in the cache, so that float32 is not upcast whole. Columns whose mean dwarfs
    their spread are moved to around zero on the way: differences of scores do not change, and rounding stays small.
    """

    def __init__(self, X: Any) -> None:
        self.n_rows, self.n_features = X.shape
        self._shift: NDArray[np.float64] | None = None
        if sparse.issparse(X):
            X = shift_columns(X, *offset_columns(X))
        else:
            self._shift = _large_offsets(X)
        self.X = X

    def scores(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X w``, up to a constant."""
        if sparse.issparse(self.X):
            return np.asarray(self.X @ w)
        out = np.empty(self.n_rows)

        def run(rows: slice) -> None:
            out[rows] = self._block(rows) @ w

        with one_blas_thread():
            map_threads(run, row_slices(0, self.n_rows, _ROWS))
        return out

    def combine(self, g: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X'g`` of item values that sum to zero."""
        if sparse.issparse(self.X):
            return np.asarray(self.X.T @ g)
        edges = np.linspace(0, self.n_rows, n_threads() + 1).astype(int)

        def run(part: int) -> NDArray[np.float64]:
            out = np.zeros(self.n_features)
            for rows in row_slices(int(edges[part]), int(edges[part + 1]), _ROWS):
                out += g[rows] @ self._block(rows)
            return out

        with one_blas_thread():
            return np.asarray(sum(map_threads(run, range(len(edges) - 1)), np.zeros(self.n_features)))

    def _block(self, rows: slice) -> NDArray[np.float64]:
        if self._shift is None:
            return np.asarray(self.X[rows], dtype=np.float64)
        return np.asarray(self.X[rows] - self._shift)


def _large_offsets(X: NDArray[np.floating]) -> NDArray[np.float64] | None:
    """Column means, where any dwarfs its column's spread. One pass."""
    m = X.shape[0]
    if m < 2:
        return None
    first = X[0].astype(np.float64)

    def run(rows: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        D = X[rows] - first
        return D.sum(axis=0), np.einsum("ij,ij->j", D, D)

    sums = map_threads(run, row_slices(0, m, _ROWS))
    moved = np.sum([s for s, _ in sums], axis=0) / m
    variance = np.maximum(np.sum([s for _, s in sums], axis=0) / m - moved**2, 0.0)
    means = first + moved
    return means if (np.abs(means) > _LARGE * np.sqrt(variance)).any() else None
