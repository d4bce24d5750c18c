"""The scalers' compiled loops.

A column of a query is scaled as ``((factor x - shift) - rest) / scale``, and those four numbers are its statistics.
``shift`` is a value of the column itself (its minimum, or its first value), so that the difference to it is exact or
nearly so however far the column lies from zero, and ``rest`` is the mean less ``shift``; subtracting a rounded
mean in one step would cost as many digits as the offset has. ``factor`` is a power of two that keeps ranges and squares
from overflowing, 1 for all but absurd values.
"""

from __future__ import annotations

import math

import numpy as np

from rankrls._compiled.jit import compiled

FACTOR, SHIFT, REST, SCALE = range(4)

_HUGE, _TINY = 2.0**400, 2.0**-400


@compiled
def statistics(block, start, stop, standard, with_mean, with_std, out):  # type: ignore[no-untyped-def]
    """Statistics of each column over the rows ``start:stop``.

    Parameters
    ----------
    block : ndarray of shape (rows, columns), float64, C-contiguous
        Finite values.
    start, stop : int
        A query's rows, one or more.
    standard : bool
        Standardise, else min-max.
    with_mean, with_std : bool
        Whether standardising subtracts the mean and divides by the deviation.
    out : ndarray of shape (4, columns), float64
        Filled: FACTOR, SHIFT, REST, SCALE.
    """
    first, last, width = np.uint64(start), np.uint64(stop), np.uint64(block.shape[1])
    factor, shift, rest, scale = out[FACTOR], out[SHIFT], out[REST], out[SCALE]
    for j in range(width):
        shift[j] = scale[j] = block[first, j]
    for i in range(first, last):
        for j in range(width):
            shift[j] = min(shift[j], block[i, j])
            scale[j] = max(scale[j], block[i, j])
    for j in range(width):
        peak = max(abs(shift[j]), abs(scale[j]))
        factor[j] = 2.0**-600 if peak > _HUGE else 2.0**600 if 0 < peak < _TINY else 1.0
        rest[j] = 0.0
    if not standard:
        for j in range(width):
            shift[j] *= factor[j]
            scale[j] = scale[j] * factor[j] - shift[j]
            if scale[j] == 0:
                scale[j] = 1.0
        return
    for j in range(width):
        if not with_std:
            factor[j] = 1.0
        shift[j] = factor[j] * block[first, j]
        scale[j] = 0.0
    for i in range(first, last):
        for j in range(width):
            rest[j] += factor[j] * block[i, j] - shift[j]
    count = float(stop - start)
    for j in range(width):
        rest[j] /= count
    if with_std:
        for i in range(first, last):
            for j in range(width):
                off = (factor[j] * block[i, j] - shift[j]) - rest[j]
                scale[j] += off * off
    for j in range(width):
        scale[j] = math.sqrt(scale[j] / count)
        if scale[j] == 0:
            scale[j] = 1.0
        if not with_mean:
            shift[j] = rest[j] = 0.0


@compiled
def apply(block, start, stop, given, low, high):  # type: ignore[no-untyped-def]
    """Scale the rows ``start:stop`` in place by the given statistics; 0 becomes ``low``, 1 becomes ``high``."""
    width = np.uint64(block.shape[1])
    factor, shift, rest, scale = given[FACTOR], given[SHIFT], given[REST], given[SCALE]
    plain = low == 0.0 and high == 1.0
    for i in range(np.uint64(start), np.uint64(stop)):
        for j in range(width):
            block[i, j] = ((factor[j] * block[i, j] - shift[j]) - rest[j]) / scale[j]
        if not plain:
            for j in range(width):
                block[i, j] = low * (1.0 - block[i, j]) + high * block[i, j]  # both ends are met exactly


@compiled
def scale_queries(block, starts, standard, with_mean, with_std, low, high):  # type: ignore[no-untyped-def]
    """Scale whole queries in place; ``starts`` are their first rows in the block, and one past the last row."""
    numbers = np.empty((4, block.shape[1]))
    for q in range(len(starts) - 1):
        if starts[q] < starts[q + 1]:
            statistics(block, starts[q], starts[q + 1], standard, with_mean, with_std, numbers)
            apply(block, starts[q], starts[q + 1], numbers, low, high)


@compiled
def sparse_scales(indptr, indices, data, order, starts, first, last, out):  # type: ignore[no-untyped-def]
    """Population standard deviation of each stored entry's column in its query.

    Parameters
    ----------
    indptr, indices, data : ndarray
        A canonical CSR array; what is not stored is 0 and counts.
    order, starts : ndarray of intp
        The rows in query order, and where each query starts in there.
    first, last : int
        Queries to do.
    out : ndarray of shape (n_entries,), float64
        Filled at the entries of these queries' rows.
    """
    width = 0
    for r in range(starts[first], starts[last]):
        for e in range(indptr[order[r]], indptr[order[r] + 1]):
            width = max(width, np.int64(indices[e]) + 1)
    stored = np.zeros(width, dtype=np.int64)
    shift, rest, square = np.zeros(width), np.zeros(width), np.zeros(width)
    for q in range(first, last):
        lo, hi = starts[q], starts[q + 1]
        size = hi - lo
        for r in range(lo, hi):
            for e in range(indptr[order[r]], indptr[order[r] + 1]):
                stored[indices[e]] += 1
                shift[indices[e]] = data[e]
        for r in range(lo, hi):
            for e in range(indptr[order[r]], indptr[order[r] + 1]):
                j = indices[e]
                if stored[j] < size:
                    shift[j] = 0.0  # the column holds zeros, and no shift could make their deviations exact
                rest[j] += (data[e] - shift[j]) / size
        for r in range(lo, hi):
            for e in range(indptr[order[r]], indptr[order[r] + 1]):
                j = indices[e]
                off = (data[e] - shift[j]) - rest[j]
                square[j] += off * off
        for r in range(lo, hi):
            for e in range(indptr[order[r]], indptr[order[r] + 1]):
                j = indices[e]
                out[e] = math.sqrt((square[j] + (size - stored[j]) * rest[j] * rest[j]) / size)
        for r in range(lo, hi):
            for e in range(indptr[order[r]], indptr[order[r] + 1]):
                j = indices[e]
                stored[j] = 0
                rest[j] = square[j] = 0.0
