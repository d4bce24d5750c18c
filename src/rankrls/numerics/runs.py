"""Runs of rows, such as queries: their sums, means and deviations; chunks of whole queries and a map over them.

Chunk boundaries depend on the data alone, each task runs on one BLAS thread, and results are added in the order of the
chunks. On identical hardware, a sum over chunks therefore has the same bits on any number of threads or processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import sparse

from rankrls._arrays import as_floats, joined, namespace, on_device, repeated, taken, to_device_of
from rankrls._cached import cached_property
from rankrls._compiled import compiled, n_threads, one_blas_thread, stream_threads
from rankrls._typing import AnyArray, Array, Index, Mask, Matrix

T = TypeVar("T")
R = TypeVar("R")

CHUNK_VALUES = 1 << 18
"""Approximate number of values in a chunk of rows: 2 MB stay in the cache of one processor."""
_TOGETHER = 64
"""Number of runs whose means on a device are computed as one product."""


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Rows of F in the order of their queries."""

    rows: Index

    @property
    def n_rows(self) -> int:
        """Number of rows of F."""
        return len(self.rows)

    @cached_property
    def place(self) -> Index:
        """Position in the graph of each row of X (of each preference in the order given)."""
        place = np.empty(int(self.rows.max(initial=-1)) + 1, dtype=np.intp)
        place[self.rows] = np.arange(self.n_rows)
        return place

    def restore(self, values: AnyArray) -> AnyArray:
        """Values of the rows of a whole graph (last axis) in the original order."""
        out = np.empty_like(values)
        out[..., self.rows] = values
        return out


@compiled
def deviations(X, rows, starts, w, scale, D, means):  # type: ignore[no-untyped-def]
    """Gather rows, measure them from the first row of their query, centre them and scale them."""
    for q in range(len(starts) - 1):
        a = np.uint64(starts[q])
        b = np.uint64(starts[q + 1])
        mean = means[q]
        first = X[np.uint64(rows[a])]
        total = 0.0
        mean[:] = 0.0
        for r in range(a, b):
            x = X[np.uint64(rows[r])]
            d = D[r]
            weight = w[r]
            total += weight
            for c in range(len(d)):
                d[c] = x[c] - first[c]
                mean[c] += weight * d[c]
        for c in range(len(mean)):
            mean[c] /= total
        for r in range(a, b):
            d = D[r]
            factor = scale[r]
            for c in range(len(d)):
                d[c] = factor * (d[c] - mean[c])
        for c in range(len(mean)):
            mean[c] += first[c]


def device_deviations(X: Matrix, starts: Index, weights: Array) -> tuple[Matrix, Matrix]:
    """Unscaled deviations and means as in :func:`deviations`, for gathered rows on a device."""
    lengths = np.diff(starts)
    first = taken(X, starts[:-1])
    D = X - repeated(first, lengths)
    means = means_of_runs(D, weights, starts)
    D -= repeated(means, lengths)
    return D, means + first


def means_of_runs(X: Matrix, weights: Array, starts: Index) -> Matrix:
    """Weighted means of the rows of each run, (runs, n), on the device of X.

    The array API has no sums over runs, so the means of several runs are one product with a dense matrix.
    """
    if not on_device(X):
        return averaging(weights, starts) @ X
    xp = namespace(X)
    out = []
    share = weights / np.repeat(group_sums(weights, starts), np.diff(starts))
    for a in range(0, len(starts) - 1, _TOGETHER):
        own = starts[a : a + _TOGETHER + 1]
        rows = slice(int(own[0]), int(own[-1]))
        numbers = np.arange(len(own) - 1)
        member = to_device_of(np.repeat(numbers, np.diff(own)), X)[None, :] == to_device_of(numbers, X)[:, None]
        out.append(xp.where(member, to_device_of(share[rows], X)[None, :], 0.0) @ X[rows, :])
    return joined(out)


def dense_rows(X: Matrix, rows: Matrix) -> Matrix:
    """Rows of X, dense, contiguous, in float64 (or a device's precision). May be a view of X: do not write to it."""
    block = taken(X, rows) if on_device(X) else X[rows]
    if on_device(block):
        return as_floats(block)
    return np.ascontiguousarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)


def group_sums(values: Array, starts: Index) -> Array:
    """Sums over nonempty runs of the last axis."""
    if not values.shape[-1]:
        return np.zeros((*values.shape[:-1], 0))
    return np.add.reduceat(values, starts[:-1], axis=-1)


def group_means(values: Array, weights: Array, starts: Index) -> Array:
    """Weighted means over nonempty runs of the last axis."""
    return np.asarray(group_sums(values * weights, starts) / group_sums(weights, starts))


def averaging(weights: Array, starts: Index) -> sparse.csr_array:
    """Sparse matrix that takes weighted means over runs of rows, (runs, m)."""
    share = weights / np.repeat(group_sums(weights, starts), np.diff(starts))
    return sparse.csr_array((share, np.arange(len(weights)), starts), shape=(len(starts) - 1, len(weights)))


def edges(new: Mask) -> Index:
    """First row of each run, from the mask of first rows, and the number of rows."""
    return np.append(np.flatnonzero(new), len(new)).astype(np.intp)


def lengths_to_starts(lengths: Index) -> Index:
    """First row of each run of the given lengths, and the number of rows."""
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.intp)


def runs_of(starts: Index, which: Index) -> Index:
    """Row numbers of the given runs, one run after the other."""
    lengths = np.diff(starts)[which]
    ends = np.cumsum(lengths)
    return np.repeat(starts[which] - ends + lengths, lengths) + np.arange(int(ends[-1]) if len(ends) else 0)


def chunks(starts: Index, rows: int) -> list[tuple[int, int]]:
    """Runs ``(a, b)`` of whole queries ``a`` to ``b - 1`` of about ``rows`` rows; a longer query is a run by itself.

    Parameters
    ----------
    starts : ndarray of shape (q + 1,)
        First row of each query, and the number of rows.
    rows : int

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls.numerics.runs import chunks
    >>> chunks(np.array([0, 3, 4, 9, 11]), 4)
    [(0, 2), (2, 3), (3, 4)]
    """
    ends = np.searchsorted(starts, np.arange(max(1, rows), starts[-1], max(1, rows)))
    cuts = np.unique(np.concatenate(([0], ends, [len(starts) - 1]))).tolist()
    return list(zip(cuts[:-1], cuts[1:], strict=True))


def chunk_rows(n_features: int, values: int = CHUNK_VALUES) -> int:
    """Number of rows in a chunk of about ``values`` values, large enough that products with n x n matrices dominate."""
    return max(1024, values // max(1, n_features), 2 * n_features)


def map_chunks(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """``map(function, items)`` in order, on all available threads, each with one BLAS thread."""
    work = list(items)
    with one_blas_thread():
        yield from stream_threads(function, work, threads=min(len(work), n_threads()))


def left_fold(results: Iterable[T]) -> T:
    """Sum of the results from left to right, accumulated in the first."""
    iterator = iter(results)
    total = next(iterator)
    for result in iterator:
        total += result  # type: ignore[operator]
    return total
