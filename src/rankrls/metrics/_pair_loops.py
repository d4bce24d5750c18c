"""Compiled counts of the pairs of each query that scores put in the wrong order, of many columns of scores at once.

Row i with score s_i and tolerance t_i stands for the interval from ``low = s - t`` to ``high = s + t``: two rows are
tied if their intervals meet.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled

LONGEST, LONGEST_WEIGHTED = 1500, 400
"""Up to so many rows of a query all pairs are compared, in a loop without branches; above, scores are sorted. Pairs of
weight 1 are counted in whole numbers, several at once."""

Array = NDArray[np.float64]


@compiled
def compare_pairs(low, high, y, w, unit, same, starts, longest, out):  # type: ignore[no-untyped-def]
    """Fill ``out[q, column] = above, not below, apart`` for the queries of up to ``longest`` rows.

    The weights of the pairs whose lower label has a score above the other's, and one above or equal to it; and with
    ``same`` of the pairs with equal labels whose scores differ. Rows are sorted by label inside each query.
    """
    for q in range(len(starts) - 1):
        a, n = starts[q], starts[q + 1] - starts[q]
        for k in range(low.shape[0] if n <= longest else 0):
            lo, hi = low[k, a : a + n], high[k, a : a + n]
            above, not_below, apart, first = 0.0, 0.0, 0.0, 0
            for i in range(n):
                if i > 0 and y[a + i] != y[a + i - 1]:
                    first = i
                top, bottom = hi[i], lo[i]
                if unit:
                    strict, weak = np.int64(0), np.int64(0)
                    for j in range(np.uint64(first)):
                        strict += lo[j] > top
                        weak += hi[j] >= bottom
                    above += strict
                    not_below += weak
                else:
                    x, z = 0.0, 0.0
                    for j in range(np.uint64(first)):
                        x += w[a + j] * (lo[j] > top)
                        z += w[a + j] * (hi[j] >= bottom)
                    above += w[a + i] * x
                    not_below += w[a + i] * z
                for j in range(first, i if same else first):
                    apart += w[a + i] * w[a + j] * ((lo[j] > top) | (hi[j] < bottom))
            out[q, k, 0], out[q, k, 1], out[q, k, 2] = above, not_below, apart


@compiled
def _sweep(keys, by_key, levels, by_level, label, w, weak, out):  # type: ignore[no-untyped-def]
    """Fill ``out[i]`` with the weight of the rows j whose key is above row i's level: of lower labels; of its own.

    Rows are swept from the highest level down, with the weight swept of each label in a Fenwick tree.
    """
    n = len(w)
    tree, own = np.zeros(label[n - 1] + 2), np.zeros(label[n - 1] + 1)
    done = n
    for at in range(n - 1, -1, -1):
        i = by_level[at]
        while done > 0 and (keys[by_key[done - 1]] > levels[i] or (weak and keys[by_key[done - 1]] == levels[i])):
            done -= 1
            j = by_key[done]
            own[label[j]] += w[j]
            c = label[j] + 1
            while c < len(tree):
                tree[c] += w[j]
                c += c & -c
        c = label[i]
        out[i, 1] = own[c]
        while c > 0:
            out[i, 0] += tree[c]
            c &= c - 1


def count_by_rows(low: Array, high: Array, label: NDArray[np.intp], w: Array) -> tuple[Array, Array, Array]:
    """Of each row of one ranking: the weight of what should be below it and is above, is not below, and is apart.

    ``label`` holds 0, 1, ... in ascending order. "Apart" is the weight of rows of the same label with a higher score.
    O(m log m).
    """
    strict, weak = np.zeros((2, len(w), 2))
    by_low = np.argsort(low)
    by_high = by_low if high is low else np.argsort(high)
    _sweep(low, by_low, high, by_high, label, w, False, strict)
    _sweep(high, by_high, low, by_low, label, w, True, weak)
    return strict[:, 0], weak[:, 0], strict[:, 1]
