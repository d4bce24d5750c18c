"""Counts of the pairs of each query that scores put in the wrong order, of many columns of scores at once.

In the compiled loops row i with score s_i and tolerance t_i stands for the interval from ``low = s - t`` to ``high = s
+ t``: two rows are tied if their intervals meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls.metrics._conventions import Array
from rankrls.metrics._table import Chunk

LONGEST, LONGEST_WEIGHTED = 1500, 400
"""Up to so many rows of a query all pairs are compared, in a loop without branches; above, scores are sorted. Pairs of
weight 1 are counted in whole numbers, several at once."""


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


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Weights of the unordered pairs of each query; a pair of rows weighs ``w_i w_j``.

    Attributes
    ----------
    ordered, tied : ndarray of shape (queries,)
        Pairs with different and with equal labels.
    above, not_below, apart : ndarray of shape (queries, columns)
        Pairs whose lower label has the higher score; has the higher score or an equal one; and of the pairs with equal
        labels those whose scores differ (0 if that was not asked for).
    """

    ordered: Array
    tied: Array
    above: Array
    not_below: Array
    apart: Array

    def pairs(self, choices: Any) -> Array:
        """The weight of the pairs that count, (queries,)."""
        return self.ordered + self.tied if choices.tied_labels == "half" else self.ordered


def count_pairs(chunk: Chunk, *, same: bool, longest: int | None = None) -> PairCounts:
    """Count the pairs of each query of a chunk; ``same`` asks for pairs with equal labels too.

    O(u^2) for a query of u <= ``longest`` rows (by default where that is fastest), else O(u log u), for each column.
    Two scores are tied if they differ by no more than both may be off.
    """
    chunk = chunk.in_order(chunk.y)
    y, starts, (columns, m) = chunk.y, chunk.starts.astype(np.intp), chunk.scores.shape
    w = np.ones(m) if chunk.weights is None else chunk.weights
    low = high = np.ascontiguousarray(chunk.scores)
    if chunk.sizes is not None:
        off = chunk.norms[:, None] * chunk.sizes
        low, high = low - off, high + off
    counts, unit = np.zeros((chunk.n_queries, columns, 3)), bool((w == 1.0).all())
    if longest is None:
        longest = LONGEST if unit else LONGEST_WEIGHTED
    compare_pairs(low, high, y, w, unit, same, starts, longest, counts)
    for q in np.flatnonzero(np.diff(starts) > longest):
        rows = slice(starts[q], starts[q + 1])
        label = np.cumsum(np.diff(y[rows], prepend=y[rows.start]) != 0)
        for k in range(columns):
            bottom, top = low[k, rows], high[k, rows]
            counts[q, k] = [w[rows] @ c for c in count_by_rows(bottom, bottom if low is high else top, label, w[rows])]
    counts[..., 2] *= same
    return PairCounts(*_weights_of_pairs(chunk, w), counts[..., 0], counts[..., 1], counts[..., 2])


def pair_weights(chunk: Chunk) -> Array:
    """The weight of the pairs of each query that count, (queries,)."""
    chunk = chunk.in_order(chunk.y)
    ordered, tied = _weights_of_pairs(chunk, np.ones(len(chunk.y)) if chunk.weights is None else chunk.weights)
    return ordered + tied if chunk.choices.tied_labels == "half" else ordered


def jackknife(chunk: Chunk) -> Array:
    """Standard errors (columns,) of the share of wrong pairs of one ranking, over its items.

    From the shares without each item in turn (Efron and Stein 1981). O(columns m log m).
    """
    chunk = chunk.in_order(chunk.y)
    m = len(chunk.y)
    w = np.ones(m) if chunk.weights is None else chunk.weights
    label = np.cumsum(np.diff(chunk.y, prepend=chunk.y[:1]) != 0)
    pairs = w * (w.sum() - np.bincount(label, w)[label])
    left = 0.5 * pairs.sum() - pairs
    out = np.empty(len(chunk.scores))
    for k, s in enumerate(chunk.scores):
        off = 0.0 if chunk.sizes is None else chunk.norms[k] * chunk.sizes
        above, not_below, _ = count_by_rows(s - off, s + off, label, w)
        # what should be above row i and is not: the same of the ranking upside down
        turned = count_by_rows(-(s + off)[::-1], -(s - off)[::-1], label[-1] - label[::-1], w[::-1].copy())
        errors = 0.5 * w * (above + not_below + (turned[0] + turned[1])[::-1])
        good = left > 1e-13 * pairs.sum()
        values = (0.5 * errors.sum() - errors)[good] / left[good]
        n = len(values)
        out[k] = np.sqrt((n - 1.0) / n * ((values - values.mean()) ** 2).sum()) if n > 1 else np.nan
    return out


def _weights_of_pairs(chunk: Chunk, w: Array) -> tuple[Array, Array]:
    """Weights of the pairs of each query with different labels, and with equal ones; exactly 0 where there are none."""
    m, first = len(chunk.y), chunk.starts[:-1][np.diff(chunk.starts) > 0]
    new = np.zeros(m, dtype=bool)
    new[1:] = chunk.y[1:] != chunk.y[:-1]
    new[first] = True
    heads = np.flatnonzero(new)
    if not m:
        return np.zeros(chunk.n_queries), np.zeros(chunk.n_queries)
    of_label = np.zeros(m)
    of_label[heads] = np.add.reduceat(w, heads)
    labels, rows = chunk.sums((of_label > 0).astype(float)), chunk.sums((w > 0).astype(float))
    whole, same = chunk.sums(w) ** 2, chunk.sums(of_label**2)
    ordered = np.where(labels > 1, 0.5 * (whole - same), 0.0)
    return ordered, np.where(rows > labels, 0.5 * (same - chunk.sums(w**2)), 0.0)
