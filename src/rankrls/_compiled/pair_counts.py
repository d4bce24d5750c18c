"""Counting ordered pairs inside queries, for many score columns at once, without enumerating them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls._compiled.sorting import level_near, sort_descending
from rankrls._compiled.threads import balanced_blocks, map_threads, n_threads

_MOST_BITS = 1 << 12
"""Up to so many rows of weight 1 are counted by bits: what comes before a word is added to for each row."""
ROUNDING = 1e-14
"""A difference of scores that is a smaller share of the largest one is 0 on paper, where rounding counts at all."""
_ROUNDED = 1e-13
"""A difference of sums of weights that is a smaller share of all pairs' weight is 0 on paper."""


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Weights of the unordered pairs of each query; a pair of rows weighs ``w_i w_j``.

    Attributes
    ----------
    ordered : ndarray of shape (q,)
        Pairs with different labels.
    tied : ndarray of shape (q,)
        Pairs with equal labels.
    wrong : ndarray of shape (q, columns)
        Ordered pairs whose scores go the other way.
    level : ndarray of shape (q, columns)
        Ordered pairs with equal scores.
    apart : ndarray of shape (q, columns)
        Pairs, ordered or tied, with different scores. Exactly 0 where all scores are equal.
    tied_apart : ndarray of shape (q, columns)
        Pairs with equal labels and different scores.
    """

    ordered: NDArray[np.float64]
    tied: NDArray[np.float64]
    wrong: NDArray[np.float64]
    level: NDArray[np.float64]
    apart: NDArray[np.float64]
    tied_apart: NDArray[np.float64]


@compiled
def _ones(word):  # type: ignore[no-untyped-def]
    """Bits of a word that are 1. (The compiler knows this loop for one instruction.)"""
    count = np.uint64(0)
    while word:
        word &= word - np.uint64(1)
        count += np.uint64(1)
    return count


@compiled
def _count(y, flat, row_step, column_step, order, starts, weights, near, rounding, tile, ordered, tied, counts):  # type: ignore[no-untyped-def]
    """Fill ``ordered[q]``, ``tied[q]`` and ``counts[q, column] = wrong, level, apart, tied apart`` for one tile.

    Rows are swept from the highest score down. ``below[c]`` is the weight swept so far of labels under ``c``, which
    is the weight that row's label should have come before, in a Fenwick tree. Rows of weight 1 are bits in the order of
    their labels instead, and ``before`` counts those of all lower words.
    """
    one = np.uint64(1)
    zero = np.uint64(0)
    longest = zero
    for q in range(np.uint64(tile[0]), np.uint64(tile[1])):
        longest = max(longest, np.uint64(starts[q + one] - starts[q]))
    keys = np.empty(longest)
    rows = np.empty(longest, np.uint64)
    spare_keys = np.empty(longest)
    spare_rows = np.empty(longest, np.uint64)
    label = np.empty(longest, np.uint64)
    w = np.empty(longest)
    seen = np.empty(longest)
    below = np.empty(longest + one)
    group = np.zeros(longest)
    place = np.empty(longest, np.uint64)
    least = np.empty(longest, np.uint64)
    bits = np.empty(longest // np.uint64(64) + one, np.uint64)
    before = np.empty(longest // np.uint64(64) + one, np.uint32)
    step = np.uint64(row_step)
    for q in range(np.uint64(tile[0]), np.uint64(tile[1])):
        first = np.uint64(starts[q])
        n = np.uint64(starts[q + one]) - first
        for i in range(n):
            row = np.uint64(order[first + i])
            keys[i] = y[row]
            rows[i] = i
            w[i] = weights[row]
        sort_descending(keys, rows, spare_keys, spare_rows, n)
        # Labels become 0, 1, ... from the lowest up.
        labels = zero
        higher = 0.0
        inside = 0.0
        same = 0.0
        total = 0.0
        start = zero
        units = n <= np.uint64(_MOST_BITS)
        for k in range(n):
            i = rows[n - one - k]
            if k > zero and keys[n - one - k] != keys[n - k]:
                labels += one
                total += inside
                inside = 0.0
                start = k
            label[i] = labels
            place[i] = k
            least[i] = start
            units &= w[i] == 1.0
            higher += w[i] * total
            same += w[i] * inside
            inside += w[i]
        labels += one
        ordered[q] = higher
        tied[q] = same
        words = (n + np.uint64(63)) >> np.uint64(6)

        for column in range(np.uint64(tile[2]), np.uint64(tile[3])):
            offset = column * np.uint64(column_step)
            for i in range(n):
                keys[i] = flat[np.uint64(order[first + rows[i]]) * step + offset]
            sort_descending(keys, rows, spare_keys, spare_rows, n)
            if near[column] > 0.0:
                level_near(keys, n, near[column], rounding)
            for c in range(labels):
                seen[c] = 0.0
                below[c] = 0.0
            below[labels] = 0.0
            for k in range(words):
                bits[k] = zero
                before[k] = np.uint32(0)
            wrong = 0.0
            level = 0.0
            apart = 0.0
            tied_apart = 0.0
            swept = 0.0
            start = zero
            while start < n:
                stop = start + one
                while stop < n and keys[stop] == keys[start]:
                    stop += one
                if stop - start > one:
                    inside = 0.0
                    for k in range(start, stop):
                        i = rows[k]
                        c = label[i]
                        level += w[i] * (inside - group[c])
                        group[c] += w[i]
                        inside += w[i]
                    for k in range(start, stop):
                        group[label[rows[k]]] = 0.0
                weight = 0.0
                for k in range(start, stop):
                    i = rows[k]
                    c = label[i]
                    tied_apart += w[i] * seen[c]
                    weight += w[i]
                    if units:
                        word = least[i] >> np.uint64(6)
                        wrong += before[word] + _ones(bits[word] & ((one << (least[i] & np.uint64(63))) - one))
                    else:
                        prefix = 0.0
                        while c > zero:
                            prefix += below[c]
                            c &= c - one
                        wrong += w[i] * prefix
                apart += weight * swept
                swept += weight
                for k in range(start, stop):
                    i = rows[k]
                    c = label[i]
                    seen[c] += w[i]
                    c += one
                    if units:
                        word = place[i] >> np.uint64(6)
                        bits[word] |= one << (place[i] & np.uint64(63))
                        for k in range(words):
                            before[k] += np.uint32(k > word)
                    else:
                        while c <= labels:
                            below[c] += w[i]
                            c += c & (~c + one)
                start = stop
            counts[q, column, 0] = wrong
            counts[q, column, 1] = level
            counts[q, column, 2] = apart
            counts[q, column, 3] = tied_apart


def count_pairs(
    y: NDArray[np.float64],
    scores: NDArray[np.float64],
    order: NDArray[np.intp],
    starts: NDArray[np.intp],
    weights: NDArray[np.float64] | None = None,
    near: Any = 0.0,
) -> PairCounts:
    """Pairs of each query that the scores put in the right order, in the wrong order, or in none.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Labels; different means ``!=`` in float64.
    scores : ndarray of shape (m, columns)
        Finite; equal means ``==``. Read in place in C or Fortran order.
    order, starts : ndarray
        ``order[starts[q]:starts[q + 1]]`` are the rows of query q.
    weights : ndarray of shape (m,), optional
        Row weights, not negative; 1 by default.
    near : float or array-like of shape (columns,), default=0.0
        Scores are equal also where :func:`rankrls._compiled.near_ties.merge_near_ties` makes them so; 0 if they are
        exact.

    Notes
    -----
    O(columns m log m), O(longest query) of scratch a thread, threaded over tiles of queries and columns. With unit
    weights every count is exact. A query of one item has no pairs.
    """
    queries, columns = len(starts) - 1, scores.shape[1]
    ordered, tied = np.zeros(queries), np.zeros(queries)
    counts = np.zeros((queries, columns, 4))
    flat, row_step, column_step = column_strides(scores)
    y, order, starts = writable(y, np.float64), writable(order, np.intp), writable(starts, np.intp)
    w = np.ones(len(y)) if weights is None else writable(weights, np.float64)
    shares = np.array(np.broadcast_to(near, columns), dtype=np.float64)

    def run(tile: NDArray[np.intp]) -> None:
        # Tiles that share queries write the same two numbers to ordered and tied.
        _count(y, flat, row_step, column_step, order, starts, w, shares, ROUNDING, tile, ordered, tied, counts)

    map_threads(run, tiles(starts, columns))
    return PairCounts(ordered, tied, counts[..., 0], counts[..., 1], counts[..., 2], counts[..., 3])


@compiled
def _spreads(y, flat, row_step, column_step, order, starts, weights, tile, out):  # type: ignore[no-untyped-def]
    step = np.uint64(row_step)
    for q in range(np.uint64(tile[0]), np.uint64(tile[1])):
        first, last = np.uint64(starts[q]), np.uint64(starts[q + np.uint64(1)])
        for column in range(np.uint64(tile[2]), np.uint64(tile[3])):
            offset = column * np.uint64(column_step)
            total = mean = spread = 0.0
            for k in range(first, last):
                row = np.uint64(order[k])
                total += weights[row]
                mean += weights[row] * (y[row] - flat[row * step + offset])
            mean = mean / total if total > 0.0 else 0.0
            for k in range(first, last):
                row = np.uint64(order[k])
                error = y[row] - flat[row * step + offset] - mean
                spread += weights[row] * (error * error)
            out[q, column] = spread


def spreads(
    y: NDArray[np.float64],
    scores: NDArray[np.float64],
    order: NDArray[np.intp],
    starts: NDArray[np.intp],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """``sum w (e - mean)^2`` of the errors ``e = y - scores`` of each query about their weighted mean, (q, columns).

    Parameters
    ----------
    y, scores, order, starts, weights : as in :func:`count_pairs`
    """
    out = np.empty((len(starts) - 1, scores.shape[1]))
    flat, row_step, column_step = column_strides(scores)
    y, order, starts = writable(y, np.float64), writable(order, np.intp), writable(starts, np.intp)
    w = writable(weights, np.float64)

    def run(tile: NDArray[np.intp]) -> None:
        _spreads(y, flat, row_step, column_step, order, starts, w, tile, out)

    map_threads(run, tiles(starts, scores.shape[1]))
    return out


@compiled
def _prefix(tree, c):  # type: ignore[no-untyped-def]
    """Sum of the first ``c`` entries of a Fenwick tree."""
    total = 0.0
    while c > np.uint64(0):
        total += tree[c]
        c &= c - np.uint64(1)
    return total


@compiled
def _count_of_rows(label, label_weights, scores, order, w, out):  # type: ignore[no-untyped-def]
    """Fill ``out[i] = wrong, level, apart, tied apart`` with the weight of row i's pairs of each kind.

    Rows are swept from the highest score down, with a Fenwick tree of the weight swept so far of each label.
    """
    one = np.uint64(1)
    zero = np.uint64(0)
    n = np.uint64(len(order))
    labels = np.uint64(len(label_weights))
    tree = np.zeros(labels + one)
    group = np.zeros(labels)
    higher = np.zeros(labels)
    total = 0.0
    for k in range(labels):
        higher[labels - one - k] = total
        total += label_weights[labels - one - k]
    swept = 0.0
    start = zero
    while start < n:
        stop = start
        inside = 0.0
        while stop < n and scores[np.uint64(order[stop])] == scores[np.uint64(order[start])]:
            i = np.uint64(order[stop])
            c = np.uint64(label[i])
            out[i, 0] = _prefix(tree, c)  # lower labels with higher scores
            group[c] += w[i]
            inside += w[i]
            stop += one
        for k in range(start, stop):
            i = np.uint64(order[k])
            c = np.uint64(label[i]) + one
            while c <= labels:
                tree[c] += w[i]
                c += c & (~c + one)
        swept += inside
        for k in range(start, stop):
            i = np.uint64(order[k])
            c = np.uint64(label[i])
            out[i, 0] += higher[c] - (swept - _prefix(tree, c + one))  # higher labels with lower scores
            out[i, 1] = inside - group[c]
            out[i, 2] = total - inside
            out[i, 3] = label_weights[c] - group[c]
            for column in range(np.uint64(4)):
                out[i, column] *= w[i]
        for k in range(start, stop):
            group[np.uint64(label[np.uint64(order[k])])] = 0.0
        start = stop


def counts_without(
    y: NDArray[np.float64], scores: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> PairCounts:
    """Pairs of one ranking without each of its rows in turn: ``q`` is the number of rows.

    Parameters
    ----------
    y, scores, weights : as for :func:`count_pairs`

    Notes
    -----
    O(columns m log m): the pairs of each row are counted, and taken from those of all.
    """
    m, columns = scores.shape
    w = np.ones(m) if weights is None else writable(weights, np.float64)
    label = np.unique(y, return_inverse=True)[1].astype(np.int64)
    of_label = np.bincount(label, w)
    tied = w * (of_label[label] - w)
    ordered = w * (of_label.sum() - of_label[label])
    counts = np.empty((columns, m, 4))

    def run(column: int) -> None:
        own = np.ascontiguousarray(scores[:, column])
        _count_of_rows(label, of_label, own, np.argsort(-own, kind="stable").astype(np.int64), w, counts[column])

    map_threads(run, range(columns))
    own = np.concatenate((counts.transpose(2, 1, 0), np.stack((ordered, tied))[:, :, None].repeat(columns, axis=2)))
    left = 0.5 * own.sum(axis=1, keepdims=True) - own
    left[left <= _ROUNDED * of_label.sum() ** 2] = 0.0
    return PairCounts(left[4, :, 0], left[5, :, 0], *left[:4])


def writable(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """``values`` as numba knows it already: C order, one dtype, writable (a read-only array is another type to it)."""
    return np.require(values, dtype, ["C", "W"])


def column_strides(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], int, int]:
    """A matrix as a flat buffer, with the steps between rows and between columns: C or Fortran order, no copy."""
    m, columns = scores.shape
    if scores.flags.f_contiguous and not scores.flags.c_contiguous:
        return writable(scores.T, np.float64).reshape(-1), 1, m
    return writable(scores, np.float64).reshape(-1), columns, 1


def tiles(starts: NDArray[np.intp], columns: int) -> list[NDArray[np.intp]]:
    """(first query, end, first column, end) pieces of about equal work.

    Queries are split among the threads; where one of them is so long that the others would wait for it, columns
    are split too.
    """
    threads = n_threads()
    blocks = balanced_blocks(starts, 4 * threads)
    longest = max((int(starts[b] - starts[a]) for a, b in blocks), default=0)
    even = longest * threads <= starts[-1] - starts[0]
    edges = np.linspace(0, columns, (1 if even else min(threads, columns)) + 1).astype(np.intp)
    return [np.array([a, b, c, d], dtype=np.intp) for c, d in pairwise(edges) for a, b in blocks]
