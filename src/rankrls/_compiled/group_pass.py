"""Loops over the rows of a dense matrix in groups: their weighted sums, and what is left without their means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import balanced_blocks, map_threads


@compiled
def _weighted_sums(X, order, starts, first, last, weights, sums):  # type: ignore[no-untyped-def]
    columns = np.uint64(X.shape[1])
    for g in range(np.uint64(first), np.uint64(last)):
        for r in range(np.uint64(starts[g]), np.uint64(starts[g + np.uint64(1)])):
            i = np.uint64(order[r])
            w = weights[i]
            for j in range(columns):
                sums[g, j] += w * X[i, j]


def weighted_sums(
    X: NDArray[np.floating],
    order: NDArray[np.intp],
    starts: NDArray[np.intp],
    weights: NDArray[np.float64],
    *,
    threads: int = 1,
) -> NDArray[np.float64]:
    """Sums of ``w_i x_i`` over each group of rows, in one pass over X.

    Parameters
    ----------
    X : ndarray of shape (m, n), float32 or float64
        Read row by row; never copied, never upcast whole.
    order, starts : ndarray
        ``order[starts[k]:starts[k + 1]]`` are the rows of group k.
    weights : ndarray of shape (m,)

    Returns
    -------
    ndarray of shape (g, n)

    Notes
    -----
    O(m n), threaded over runs of whole groups.
    """
    sums = np.zeros((len(starts) - 1, X.shape[1]))
    order = np.ascontiguousarray(order)

    def run(block: tuple[int, int]) -> None:
        _weighted_sums(X, order, starts, block[0], block[1], weights, sums)

    map_threads(run, balanced_blocks(starts, threads))
    return sums


@compiled
def level_rows(X, rows, groups, k1, scale, means, rest, out):  # type: ignore[no-untyped-def]
    """``out[r] = scale[r] (k1 (x - mean of its group) + rest of its group)`` for the rows x of X; out may be X.

    Differences come first and factors after: an offset that is common to a group cancels exactly.
    """
    columns = np.uint64(X.shape[1])
    for r in range(np.uint64(len(rows))):
        i = np.uint64(rows[r])
        g = np.uint64(groups[r])
        a, s = k1[g], scale[r]
        for j in range(columns):
            out[r, j] = s * (a * (X[i, j] - means[g, j]) + rest[g, j])
