"""One pass over the rows of a dense matrix: weighted sums of each group, and the product with thin right-hand sides."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import balanced_blocks, map_threads, n_threads

__all__ = ["group_pass"]


@compiled
def _pass(X, order, starts, first, last, weights, R, sums, product):  # type: ignore[no-untyped-def]
    columns = np.uint64(X.shape[1])
    targets = np.uint64(R.shape[1])
    for g in range(np.uint64(first), np.uint64(last)):
        for r in range(np.uint64(starts[g]), np.uint64(starts[g + np.uint64(1)])):
            i = np.uint64(order[r])
            w = weights[i]
            for j in range(columns):
                sums[g, j] += w * X[i, j]
            for t in range(targets):
                v = R[i, t]
                for j in range(columns):
                    product[t, j] += v * X[i, j]


def group_pass(
    X: NDArray[np.floating],
    order: NDArray[np.intp],
    starts: NDArray[np.intp],
    weights: NDArray[np.float64],
    R: NDArray[np.float64],
    *,
    threads: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of ``w_i x_i`` over each group of rows, and ``X'R``, in one pass over X.

    Parameters
    ----------
    X : ndarray of shape (m, n), float32 or float64
        Read row by row; never copied, never upcast whole.
    order, starts : ndarray
        ``order[starts[k]:starts[k + 1]]`` are the rows of group k.
    weights : ndarray of shape (m,)
    R : ndarray of shape (m, targets)
        Thin right-hand sides.

    Returns
    -------
    sums : ndarray of shape (g, n)
    product : ndarray of shape (n, targets)

    Notes
    -----
    O(m n), threaded over runs of whole groups, one accumulator a run.
    """
    n = X.shape[1]
    sums = np.zeros((len(starts) - 1, n))
    R = np.ascontiguousarray(R)
    order = np.ascontiguousarray(order)

    def run(block: tuple[int, int]) -> NDArray[np.float64]:
        product = np.zeros((R.shape[1], n))
        _pass(X, order, starts, block[0], block[1], weights, R, sums, product)
        return product

    parts = map_threads(run, balanced_blocks(starts, n_threads() if threads is None else threads))
    return sums, np.asarray(sum(parts, np.zeros((R.shape[1], n)))).T
