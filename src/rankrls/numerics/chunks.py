"""Chunks of whole queries, an ordered map over them, and their sum from left to right.

Chunk boundaries depend on the data alone, each task runs on one BLAS thread, and results are added in the order of the
chunks. On identical hardware, the sum therefore has the same bits on any number of threads or processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from rankrls._compiled import n_threads, one_blas_thread, stream_threads
from rankrls._typing import Index

T = TypeVar("T")
R = TypeVar("R")

CHUNK_VALUES = 1 << 18
"""Approximate number of values in a chunk of rows: 2 MB stay in the cache of one processor."""


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
    >>> from rankrls.numerics.chunks import chunks
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
