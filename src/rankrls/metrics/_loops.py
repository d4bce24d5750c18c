"""Compiled loops behind the measures: walks down a ranking, and counts of the pairs in the wrong order."""

from __future__ import annotations

import numpy as np

from rankrls._compiled import compiled
from rankrls._typing import Array, Index

SUM = 0
PRECISIONS = 1
CASCADE = 2
"""Sum of value times discount; sum of the precisions at rows of value 1; sum of value times discount times the product
of one minus the preceding values, which is the discount of the first row of value 1 if values are 0 or 1."""
ROW = 0
AVERAGE = 1
THRESHOLD = 2
"""Treatment of equal scores: in row order; by the mean over all orders, for sums; all at the end of their group."""


@compiled
def walk_down(kind, ties, scores, order, values, discounts, depths, starts, out):  # type: ignore[no-untyped-def]
    """Fill ``out[q, column]`` by walking down each column of each query to its depth.

    ``order`` lists the rows of each query in descending order of score, equal scores in row order.
    """
    one = np.uint64(1)
    for q in range(len(starts) - 1):
        a = np.uint64(starts[q])
        n = np.uint64(starts[q + 1]) - a
        for column in range(scores.shape[0]):
            cut = min(n, np.uint64(depths[q, column]))
            own = scores[column, a : a + n]
            rows = order[column, a : a + n]
            result = 0.0
            hits = 0.0
            reached = 1.0
            start = run = np.uint64(0)
            while start < cut:
                if start == run:  # the next run of tied rows begins here
                    run += one
                    while run < n and own[rows[run]] == own[rows[start]]:
                        run += one
                stop = start + one if ties == ROW else run
                inside = 0.0
                for i in range(start, stop):
                    inside += values[a + rows[i]]
                size = np.float64(stop - start)
                end = min(stop, cut)
                if kind == SUM:
                    weight = 0.0
                    for i in range(start, end):
                        weight += discounts[i]
                    result += weight * (inside / size)
                elif kind == CASCADE:
                    result += reached * inside * discounts[start]
                    reached *= 1.0 - inside
                else:
                    hits += inside
                    result += inside * hits / np.float64(stop)
                start = stop
            out[q, column] = result


@compiled
def compare_pairs(scores, y, w, unit, same, starts, longest, out):  # type: ignore[no-untyped-def]
    """Fill ``out[q, column] = above, not below, apart`` for the queries of up to ``longest`` rows.

    These are weights of pairs: those whose lower label has the higher score, those whose lower label has a higher or
    equal score and, with ``same``, those with equal labels and different scores. Rows are sorted by label inside each
    query.
    """
    for q in range(len(starts) - 1):
        a = starts[q]
        n = starts[q + 1] - starts[q]
        for k in range(len(scores) if n <= longest else 0):
            own = scores[k, a : a + n]
            above = 0.0
            not_below = 0.0
            apart = 0.0
            first = 0
            for i in range(n):
                if i > 0 and y[a + i] != y[a + i - 1]:
                    first = i
                score = own[i]
                if unit:
                    strict = np.int64(0)
                    weak = np.int64(0)
                    for j in range(np.uint64(first)):
                        strict += own[j] > score
                        weak += own[j] >= score
                    above += strict
                    not_below += weak
                else:
                    x = 0.0
                    z = 0.0
                    for j in range(np.uint64(first)):
                        x += w[a + j] * (own[j] > score)
                        z += w[a + j] * (own[j] >= score)
                    above += w[a + i] * x
                    not_below += w[a + i] * z
                for j in range(first, i if same else first):
                    apart += w[a + i] * w[a + j] * (own[j] != score)
            out[q, k, 0] = above
            out[q, k, 1] = not_below
            out[q, k, 2] = apart


@compiled
def weigh_pairs(y, w, starts, out):  # type: ignore[no-untyped-def]
    """Fill ``out[0, q]`` and ``out[1, q]`` with the weight of the pairs with different and with equal labels.

    Rows are sorted by label inside each query.
    """
    for q in range(len(starts) - 1):
        below = 0.0
        level = 0.0  # weight of the preceding rows with the same label; below: with lower labels
        for i in range(starts[q], starts[q + 1]):
            if i > starts[q] and y[i] != y[i - 1]:
                below += level
                level = 0.0
            out[0, q] += w[i] * below
            out[1, q] += w[i] * level
            level += w[i]


@compiled
def _sweep(scores, order, label, w, weak, out):  # type: ignore[no-untyped-def]
    """Fill ``out[i]`` with the weights of the rows of lower labels and of the same label that score higher than row i.

    With ``weak``, equal scores are included. Rows are swept in descending order of score; a Fenwick tree stores the
    weight swept so far for each label.
    """
    n = len(w)
    tree = np.zeros(label[n - 1] + 2)
    own = np.zeros(label[n - 1] + 1)
    done = n
    for at in range(n - 1, -1, -1):
        i = order[at]
        while done > 0 and (scores[order[done - 1]] > scores[i] or (weak and scores[order[done - 1]] == scores[i])):
            done -= 1
            j = order[done]
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


def count_by_rows(scores: Array, label: Index, w: Array) -> tuple[Array, Array, Array]:
    """Weights, for each row of one ranking, of the rows that are ordered wrongly relative to it.

    These are the rows of lower labels with a higher score, those with a higher or equal score, and the rows of the same
    label with a higher score. ``label`` contains 0, 1, ... in ascending order. O(m log m).
    """
    strict, weak = np.zeros((2, len(w), 2))
    order = np.argsort(scores)
    _sweep(scores, order, label, w, False, strict)
    _sweep(scores, order, label, w, True, weak)
    return strict[:, 0], weak[:, 0], strict[:, 1]
