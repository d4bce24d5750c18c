"""The compiled loop behind the measures that look at positions: (N)DCG, precision, average precision and others."""

from __future__ import annotations

import numpy as np

from rankrls._compiled.jit import compiled

SUM, PRECISIONS, FIRST, CASCADE = 0, 1, 2, 3
"""Sum of value times discount; of the precisions at rows of value 1; discount of the first row of value 1; sum of value
times discount times the product of one minus the values before."""
ROW, AVERAGE, THRESHOLD = 0, 1, 2
"""Equal scores come in the order of the rows; the mean over their orders; all at the end of their group."""


@compiled
def walk_down(kind, ties, scores, tolerance, norms, values, discounts, depths, starts, out):  # type: ignore[no-untyped-def]
    """Fill ``out[q, column]``, walking down each column of each query to the query's depth.

    ``tolerance[row] * norms[column]`` is what each score may be off: a run of scores that differ from the first of them
    by no more than both may be off together is tied.
    """
    one = np.uint64(1)
    for q in range(len(starts) - 1):
        a = np.uint64(starts[q])
        n = np.uint64(starts[q + 1]) - a
        cut = min(n, np.uint64(depths[q]))
        for column in range(scores.shape[0]):
            downwards = -scores[column, a : a + n]
            rows = np.argsort(downwards, kind="mergesort").astype(np.uint64)  # which is stable
            keys, norm = downwards[rows], norms[column]
            if norm > 0.0:
                head, merged = np.uint64(0), False
                for i in range(one, n):
                    if keys[i] - keys[head] <= norm * (tolerance[a + rows[head]] + tolerance[a + rows[i]]):
                        merged |= keys[i] != keys[head]
                        keys[i] = keys[head]
                    else:
                        head = i
                if merged:  # tied rows back into their order
                    for i in range(n):
                        downwards[rows[i]] = keys[i]
                    rows = np.argsort(downwards, kind="mergesort").astype(np.uint64)
                    keys = downwards[rows]
            result, hits, reached = 0.0, 0.0, 1.0
            start = np.uint64(0)
            while start < cut:
                stop = start + one
                while ties != ROW and stop < n and keys[stop] == keys[start]:
                    stop += one
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
                elif kind == PRECISIONS:
                    if ties == THRESHOLD:
                        result += inside * (hits + inside) / np.float64(stop)
                    elif inside > 0.0:
                        # A relevant item at place i of the group meets (i - 1)(r - 1)/(size - 1) others before it.
                        slope = (inside - 1.0) / (size - 1.0) if size > 1.0 else 0.0
                        for i in range(start, end):
                            before = hits + slope * np.float64(i - start)
                            result += (inside / size) * (before + 1.0) / np.float64(i + one)
                    hits += inside
                elif inside > 0.0:
                    # The first of r relevant items among the group's places.
                    missed = 1.0
                    for i in range(start, end):
                        found = min(inside / (size - np.float64(i - start)), 1.0)
                        result += missed * found * discounts[i]
                        missed *= 1.0 - found
                    break
                start = stop
            out[q, column] = result
