"""Scores that differ by rounding only, made equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls._compiled.pair_counts import ROUNDING, column_strides, tiles, writable
from rankrls._compiled.sorting import level_near, sort_descending
from rankrls._compiled.threads import map_threads

NEAR = 1e-10


@compiled
def _merge(flat, row_step, column_step, order, starts, tile, near, rounding):  # type: ignore[no-untyped-def]
    """Merge the scores of one tile of queries and columns in place."""
    one = np.uint64(1)
    step = np.uint64(row_step)
    longest = np.uint64(0)
    for q in range(np.uint64(tile[0]), np.uint64(tile[1])):
        longest = max(longest, np.uint64(starts[q + one] - starts[q]))
    keys = np.empty(longest)
    rows = np.empty(longest, np.uint64)
    spare_keys = np.empty(longest)
    spare_rows = np.empty(longest, np.uint64)
    for q in range(np.uint64(tile[0]), np.uint64(tile[1])):
        first = np.uint64(starts[q])
        n = np.uint64(starts[q + one]) - first
        for i in range(n):
            rows[i] = np.uint64(order[first + i]) * step
        for column in range(np.uint64(tile[2]), np.uint64(tile[3])):
            offset = column * np.uint64(column_step)
            for i in range(n):
                keys[i] = flat[rows[i] + offset]
            sort_descending(keys, rows, spare_keys, spare_rows, n)
            level_near(keys, n, near[column], rounding)
            for i in range(one, n):
                if keys[i] == keys[i - one]:
                    flat[rows[i] + offset] = keys[i]


def merge_near_ties(
    scores: NDArray[Any],
    order: NDArray[np.intp],
    starts: NDArray[np.intp],
    near: Any = NEAR,
    *,
    overwrite: bool = False,
) -> NDArray[np.float64]:
    """Scores in which those of a query are equal if they differ by rounding only.

    Items that a model cannot tell apart have scores that are equal on paper. Rounding would order them, in another way
    for each order of the rows and each number of threads, and a measure that counts ties as ties jumps.

    Parameters
    ----------
    scores : ndarray of shape (m, columns)
        NaN stays as it is.
    order, starts : ndarray
        ``order[starts[q]:starts[q + 1]]`` are the rows of query q.
    near : float or array-like of shape (columns,)
        What share of the range of a query's scores counts as rounding.
    overwrite : bool
        Whether the scores themselves may be changed, if they are float64 in C or Fortran order.

    Returns
    -------
    ndarray of shape (m, columns)
        A copy, unless overwritten. Neighbouring scores that differ by at most ``near`` of the range of their query's
        scores, or by 1e-14 of the largest, are given the larger one's value.

    Notes
    -----
    O(columns m log m), threaded over tiles of queries and columns.
    """
    by_column = scores.flags.f_contiguous and not scores.flags.c_contiguous
    out = np.array(scores, dtype=np.float64, order="F" if by_column else "C", copy=None if overwrite else True)
    flat, row_step, column_step = column_strides(out)
    order, starts = writable(order, np.intp), writable(starts, np.intp)
    shares = np.array(np.broadcast_to(near, out.shape[1]), dtype=np.float64)

    def run(tile: NDArray[np.intp]) -> None:
        _merge(flat, row_step, column_step, order, starts, tile, shares, ROUNDING)

    map_threads(run, tiles(starts, out.shape[1]))
    return out
