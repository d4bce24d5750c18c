"""Products with the rows of a feature matrix, row by row: ``X[rows] p`` and ``X[rows]' a``.

Neither forms a transposed or converted copy of X, and neither needs the rows to be contiguous: folds and validation
rows are row numbers of the same matrix.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import map_threads, n_threads, one_blas_thread
from rankrls._sparse import offset_columns, shift_columns

__all__ = ["DenseRows", "SparseRows", "dense_block", "even_parts", "feature_rows", "sparse_add", "sparse_dot"]

_BLOCK_ENTRIES = 1 << 16
"""Entries of a dense block: half a megabyte of doubles stays in the second-level cache."""
_LARGE_OFFSET = 100.0


@compiled
def sparse_dot(data, indices, indptr, rows, first, last, p, out):  # type: ignore[no-untyped-def]
    """``out[r - first] = x_rows[r]'p`` for r from ``first`` to ``last``."""
    one = np.uint64(1)
    for r in range(np.uint64(first), np.uint64(last)):
        i = np.uint64(rows[r])
        total = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + one])):
            total += data[k] * p[np.uint64(indices[k])]
        out[r - np.uint64(first)] = total


@compiled
def sparse_add(data, indices, indptr, rows, first, last, a, out):  # type: ignore[no-untyped-def]
    """``out += a[r - first] x_rows[r]`` for r from ``first`` to ``last``."""
    one = np.uint64(1)
    for r in range(np.uint64(first), np.uint64(last)):
        value = a[r - np.uint64(first)]
        i = np.uint64(rows[r])
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + one])):
            out[np.uint64(indices[k])] += value * data[k]


class SparseRows:
    """Rows of a CSR matrix: any order of the indices, duplicates added up, explicit zeros allowed.

    With ``centred``, columns that are stored in every row with an offset that dwarfs their spread are moved to around
    zero (a copy of X, made only then). Use it where only differences of rows matter.
    """

    def __init__(self, X: Any, *, centred: bool) -> None:
        if centred:
            X = shift_columns(X, *offset_columns(X))
        self.X = X
        self.n_items, self.n_features = X.shape
        # One index type for the short array keeps the number of compiled specialisations down.
        self._parts = (X.data, X.indices, X.indptr.astype(np.int64))

    @property
    def parts(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
        """Values, column numbers and row boundaries."""
        return self._parts

    def sizes(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Stored entries of some rows."""
        return np.diff(self._parts[2])[rows]

    def dot(self, rows: NDArray[np.intp], p: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X[rows] p``. O(stored entries), threaded."""
        out = np.empty(len(rows))

        def run(part: tuple[int, int]) -> None:
            sparse_dot(*self._parts, rows, *part, p, out[part[0] : part[1]])

        map_threads(run, even_parts(self.sizes(rows), n_threads()))
        return out

    def combine(self, rows: NDArray[np.intp], a: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X[rows]' a``. O(stored entries), threaded, one accumulator a thread."""
        sizes = self.sizes(rows)

        def run(part: tuple[int, int]) -> NDArray[np.float64]:
            out = np.zeros(self.n_features)
            sparse_add(*self._parts, rows, *part, a[part[0] : part[1]], out)
            return out

        threads = min(n_threads(), 1 + int(sizes.sum()) // max(1, self.n_features))
        return _total(map_threads(run, even_parts(sizes, threads)), self.n_features)


class DenseRows:
    """Rows of a dense matrix, float32 or float64, upcast block by block.

    With ``centred``, an offset of the columns that dwarfs their spread is subtracted from each block before it is
    multiplied. Use it where only differences of rows matter.
    """

    def __init__(self, X: NDArray[np.floating], *, centred: bool) -> None:
        self.X = X
        self.n_items, self.n_features = X.shape
        self.block_rows = max(1, _BLOCK_ENTRIES // max(1, self.n_features))
        self.shift: NDArray[np.float64] | None = None
        if centred and self.n_items:
            mean, spread = self._moments()
            large = np.abs(mean) > _LARGE_OFFSET * spread
            self.shift = np.where(large, mean, 0.0) if large.any() else None

    def sizes(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Entries of some rows."""
        return np.full(len(rows), self.n_features, dtype=np.int64)

    def dot(self, rows: NDArray[np.intp], p: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X[rows] p``. O(len(rows) n), threaded."""
        out = np.empty(len(rows))

        def run(part: tuple[int, int]) -> None:
            for lo, hi in self._blocks(*part):
                np.dot(dense_block(self, rows[lo:hi]), p, out=out[lo:hi])

        with one_blas_thread():
            map_threads(run, even_parts(self.sizes(rows), n_threads()))
        return out

    def combine(self, rows: NDArray[np.intp], a: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X[rows]' a``. O(len(rows) n), threaded."""

        def run(part: tuple[int, int]) -> NDArray[np.float64]:
            out = np.zeros(self.n_features)
            for lo, hi in self._blocks(*part):
                out += a[lo:hi] @ dense_block(self, rows[lo:hi])
            return out

        with one_blas_thread():
            return _total(map_threads(run, even_parts(self.sizes(rows), n_threads())), self.n_features)

    def _blocks(self, first: int, last: int) -> list[tuple[int, int]]:
        cuts = [*range(first, last, self.block_rows), last]
        return list(pairwise(cuts))

    def _moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation of each column, around the first row: nothing cancels."""
        origin = self.X[0].astype(np.float64)

        def run(part: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            total, squares = np.zeros((2, self.n_features))
            for lo, hi in self._blocks(*part):
                block = self.X[lo:hi] - origin
                total += block.sum(axis=0)
                squares += np.einsum("ij,ij->j", block, block)
            return total, squares

        parts = map_threads(run, even_parts(np.ones(self.n_items, dtype=np.int64), n_threads()))
        mean = sum(total for total, _ in parts) / self.n_items
        variance = sum(squares for _, squares in parts) / self.n_items - mean**2
        return np.asarray(origin + mean), np.sqrt(np.maximum(variance, 0.0))


FeatureRows = SparseRows | DenseRows


def feature_rows(X: Any, *, centred: bool) -> FeatureRows:
    """Rows of a dense or CSR matrix; see the classes."""
    return SparseRows(X, centred=centred) if sparse.issparse(X) else DenseRows(X, centred=centred)


def dense_block(source: DenseRows, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Some rows in float64, moved to around zero where the offset asks for it."""
    contiguous = len(rows) > 0 and rows[-1] - rows[0] == len(rows) - 1 and bool((np.diff(rows) == 1).all())
    block = source.X[rows[0] : rows[-1] + 1] if contiguous else source.X[rows]
    if source.shift is not None:
        return np.asarray(block - source.shift)
    return block.astype(np.float64, copy=False)


def even_parts(sizes: NDArray[np.int64], parts: int) -> list[tuple[int, int]]:
    """At most ``parts`` runs, none empty, of about equal total size."""
    n = len(sizes)
    ends = np.cumsum(sizes + 1)  # a row costs something even where nothing is stored in it
    if not n:
        return []
    wanted = ends[-1] * np.arange(1, parts) / parts
    edges = np.unique([0, *np.searchsorted(ends, wanted), n])
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def _total(parts: list[NDArray[np.float64]], n: int) -> NDArray[np.float64]:
    if not parts:
        return np.zeros(n)
    out = parts[0]
    for part in parts[1:]:
        out += part
    return out
