"""The rows of a feature matrix, however it is stored: blocks of them, and products ``X[rows] p`` and ``X[rows]' a``.

None of it forms a transposed or converted copy of X, and none needs the rows to be contiguous: folds and validation
rows are row numbers of the same matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._compiled.jit import compiled
from rankrls._compiled.read_ahead import read_ahead
from rankrls._compiled.threads import balanced_blocks, map_threads, n_threads, one_blas_thread, threads_worth
from rankrls._sparse import offset_columns, shift_columns
from rankrls.features.blocks import ENTRIES_A_THREAD, Rows, row_slices

_BLOCK_ENTRIES = 1 << 16
"""Entries of a dense block: half a megabyte of doubles stays in the second-level cache."""
_LARGE_OFFSET = 100.0
_MANY_COLUMNS = 1024
"""From here on one threaded product a block beats one product a thread, which needs a Gram matrix each."""


@compiled
def sparse_dot(data, indices, indptr, rows, first, last, p, out):  # type: ignore[no-untyped-def]
    """``out[r - first] = x_rows[r]'p`` for r from ``first`` to ``last``."""
    one = np.uint64(1)
    for r in range(np.uint64(first), np.uint64(last)):
        i = np.uint64(rows[r])
        lo, hi = np.uint64(indptr[i]), np.uint64(indptr[i + one])
        read_ahead(data, indices, lo, hi)
        total = 0.0
        for k in range(lo, hi):
            total += data[k] * p[np.uint64(indices[k])]
        out[r - np.uint64(first)] = total


@compiled
def sparse_add(data, indices, indptr, rows, first, last, a, out):  # type: ignore[no-untyped-def]
    """``out += a[r - first] x_rows[r]`` for r from ``first`` to ``last``."""
    one = np.uint64(1)
    for r in range(np.uint64(first), np.uint64(last)):
        value = a[r - np.uint64(first)]
        i = np.uint64(rows[r])
        lo, hi = np.uint64(indptr[i]), np.uint64(indptr[i + one])
        read_ahead(data, indices, lo, hi)
        for k in range(lo, hi):
            out[np.uint64(indices[k])] += value * data[k]


@compiled
def _dense_add(X, rows, first, last, shift, a, out):  # type: ignore[no-untyped-def]
    """``out += a[r] (x_rows[r] - shift)`` for r from ``first`` to ``last``, four rows at a time."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    r, last = np.uint64(first), np.uint64(last)
    while r + four <= last:
        w, x, y, z = (
            X[np.uint64(rows[r])],
            X[np.uint64(rows[r + one])],
            X[np.uint64(rows[r + two])],
            X[np.uint64(rows[r + three])],
        )
        b, c, d, e = a[r], a[r + one], a[r + two], a[r + three]
        for j in range(np.uint64(len(out))):
            s = shift[j]
            out[j] += (b * (w[j] - s) + c * (x[j] - s)) + (d * (y[j] - s) + e * (z[j] - s))
        r += four
    while r < last:
        x, b = X[np.uint64(rows[r])], a[r]
        for j in range(np.uint64(len(out))):
            out[j] += b * (x[j] - shift[j])
        r += one


class FeatureRows(ABC):
    """Rows of a feature matrix of ``shape`` (items, features); ``X`` is what they are stored in.

    Attributes
    ----------
    held : bool
        Whether the features are in memory; if not, each block is evaluated anew.
    sparse : bool
    """

    X: Any
    shape: tuple[int, int]
    held = True
    sparse = False

    @property
    @abstractmethod
    def block_rows(self) -> int:
        """Rows to work on at a time."""

    @abstractmethod
    def block(self, rows: Rows) -> NDArray[np.float64]:
        """Some rows, dense, float64; possibly a view of X."""

    @property
    def n_items(self) -> int:
        return self.shape[0]

    @property
    def n_features(self) -> int:
        return self.shape[1]

    def gram_threads(self) -> int:
        """How many blocks to multiply at once, each with a Gram matrix of its own; 1 leaves the threads to BLAS."""
        return 1 if self.n_features > _MANY_COLUMNS else n_threads()

    def sizes(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Stored entries of some rows."""
        return np.full(len(rows), self.n_features, dtype=np.int64)

    def dot(self, rows: NDArray[np.intp], p: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X[rows] p``. O(stored entries), threaded."""
        out = np.empty(len(rows))
        with one_blas_thread():
            map_threads(lambda part: self._dot(rows, *part, p, out), self._parts(rows))
        return out

    def combine(self, rows: NDArray[np.intp], a: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X[rows]' a``. O(stored entries), threaded, one accumulator a thread."""

        def run(part: tuple[int, int]) -> NDArray[np.float64]:
            out = np.zeros(self.n_features)
            self._add(rows, *part, a, out)
            return out

        with one_blas_thread():
            return np.asarray(sum(map_threads(run, self._parts(rows, self.n_features)), np.zeros(self.n_features)))

    def _dot(self, rows: NDArray[np.intp], first: int, last: int, p: NDArray[np.float64], out: Any) -> None:
        """``out[r] = x_rows[r]'p`` for r from ``first`` to ``last``."""
        for lo, hi in self._blocks(rows, first, last):
            np.dot(self.block(rows[lo:hi]), p, out=out[lo:hi])

    def _add(self, rows: NDArray[np.intp], first: int, last: int, a: NDArray[np.float64], out: Any) -> None:
        """``out += a[r] x_rows[r]`` for r from ``first`` to ``last``."""
        for lo, hi in self._blocks(rows, first, last):
            out += a[lo:hi] @ self.block(rows[lo:hi])

    def _parts(self, rows: Any, least: int = 0) -> list[tuple[int, int]]:
        """As many runs of rows, of equal work, as threads are worth it where each also has ``least`` entries to do."""
        n = len(rows)
        threads = threads_worth(float(n) * self.n_features, ENTRIES_A_THREAD)
        return list(pairwise(np.linspace(0, n, min(threads, n) + 1).astype(int).tolist()))

    def _blocks(self, rows: NDArray[np.intp], first: int, last: int) -> list[tuple[int, int]]:
        """Numbers ``first..last`` of some rows, cut into blocks."""
        return list(pairwise([*range(first, last, self.block_rows), last]))


class SparseRows(FeatureRows):
    """Rows of a CSR matrix: any order of the indices, duplicates added up, explicit zeros allowed.

    With ``centred``, columns that are stored in every row with an offset that dwarfs their spread are moved to around
    zero (a copy of X, made only then). Use it if only differences of rows matter.
    """

    sparse = True
    block_rows = 1024

    def __init__(self, X: Any, *, centred: bool) -> None:
        if centred:
            X = shift_columns(X, *offset_columns(X))
        self.X = X
        self.shape = X.shape
        # One index type for the short array keeps the number of compiled specialisations down.
        self.parts: tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]] = (
            X.data,
            X.indices,
            X.indptr.astype(np.int64),
        )
        """Values, column numbers and row boundaries."""

    def block(self, rows: Rows) -> NDArray[np.float64]:
        return np.asarray(self.X[rows].toarray(), dtype=np.float64)

    def sizes(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        return np.diff(self.parts[2])[rows]

    def _dot(self, rows: NDArray[np.intp], first: int, last: int, p: NDArray[np.float64], out: Any) -> None:
        sparse_dot(*self.parts, rows, first, last, p, out[first:last])

    def _add(self, rows: NDArray[np.intp], first: int, last: int, a: NDArray[np.float64], out: Any) -> None:
        sparse_add(*self.parts, rows, first, last, a[first:last], out)

    def _parts(self, rows: Any, least: int = 0) -> list[tuple[int, int]]:
        sizes = self.sizes(rows)
        stored = int(sizes.sum())
        threads = min(threads_worth(stored, ENTRIES_A_THREAD), 1 + stored // max(1, least))
        # A row costs something even where nothing is stored in it.
        return balanced_blocks(np.concatenate(([0], np.cumsum(sizes + 1))), threads)


class DenseRows(FeatureRows):
    """Rows of a dense matrix, float32 or float64, upcast block by block.

    With ``centred``, an offset of the columns that dwarfs their spread is subtracted from each block before it is
    multiplied. Use it if only differences of rows matter.
    """

    def __init__(self, X: NDArray[np.floating], *, centred: bool) -> None:
        self.X = X
        self.shape = (X.shape[0], X.shape[1])
        self.shift: NDArray[np.float64] | None = None
        if centred and self.n_items:
            mean, spread = self._moments()
            large = np.abs(mean) > _LARGE_OFFSET * spread
            self.shift = np.where(large, mean, 0.0) if large.any() else None

    @property
    def block_rows(self) -> int:
        return max(1, _BLOCK_ENTRIES // max(1, self.n_features))

    def block(self, rows: Rows) -> NDArray[np.float64]:
        """Some rows in float64, moved to around zero if the offset asks for it; a view of X where it can be one."""
        if not isinstance(rows, slice) and _are_neighbours(rows):
            rows = slice(rows[0], rows[-1] + 1)
        block = self.X[rows]
        if self.shift is not None:
            return np.asarray(block - self.shift)
        return block.astype(np.float64, copy=False)

    def _add(self, rows: NDArray[np.intp], first: int, last: int, a: NDArray[np.float64], out: Any) -> None:
        if self.X.flags.c_contiguous:
            _dense_add(self.X, rows, first, last, np.zeros(len(out)) if self.shift is None else self.shift, a, out)
        else:
            super()._add(rows, first, last, a, out)

    def _blocks(self, rows: NDArray[np.intp], first: int, last: int) -> list[tuple[int, int]]:
        """A single one where it is a view: nothing of it has to stay in the cache."""
        if self.shift is None and self.X.dtype == np.float64 and _are_neighbours(rows[first:last]):
            return [(first, last)]
        return super()._blocks(rows, first, last)

    def _moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation of each column, around the first row: nothing cancels."""
        origin = self.X[0].astype(np.float64)

        def run(part: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            total, squares = np.zeros((2, self.n_features))
            for piece in row_slices(*part, self.block_rows):
                block = self.X[piece] - origin
                total += block.sum(axis=0)
                squares += np.einsum("ij,ij->j", block, block)
            return total, squares

        parts = map_threads(run, self._parts(range(self.n_items)))
        mean = sum(total for total, _ in parts) / self.n_items
        variance = sum(squares for _, squares in parts) / self.n_items - mean**2
        return np.asarray(origin + mean), np.sqrt(np.maximum(variance, 0.0))


def feature_rows(X: Any, *, centred: bool) -> FeatureRows:
    """Rows of a dense or CSR matrix, see the classes; X itself if it is such rows already."""
    if isinstance(X, FeatureRows):
        return X
    return SparseRows(X, centred=centred) if sparse.issparse(X) else DenseRows(X, centred=centred)


def _are_neighbours(rows: NDArray[np.intp]) -> bool:
    """Whether each row is the next one's predecessor."""
    return bool(len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all())
