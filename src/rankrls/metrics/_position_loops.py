"""The compiled loop behind the measures that look at positions: (N)DCG, precision, average precision and others."""

from __future__ import annotations

import numpy as np

from rankrls._compiled.jit import compiled

SUM, PRECISIONS, FIRST, CASCADE = 0, 1, 2, 3
"""Sum of value times discount; of the precisions at rows of value 1; discount of the first row of value 1; sum of value
times discount times the product of one minus the values before."""
ROW, AVERAGE, THRESHOLD = 0, 1, 2
"""Equal scores come in the order of the rows; the mean over their orders; all at the end of their group."""
_RUN = 12


@compiled
def sort_descending(keys, rows, spare_keys, spare_rows, n):  # type: ignore[no-untyped-def]
    """Sort ``keys[:n]`` in descending order and ``rows[:n]`` along; equal keys keep the order that they come in.

    A bottom-up merge sort over insertion-sorted runs, O(n log n). The two spare arrays are the caller's.
    """
    one = np.uint64(1)
    n = np.uint64(n)
    run = np.uint64(_RUN)
    start = np.uint64(0)
    while start < n:
        stop = min(start + run, n)
        for i in range(start + one, stop):
            key, row = keys[i], rows[i]
            j = i
            while j > start and keys[j - one] < key:
                keys[j], rows[j] = keys[j - one], rows[j - one]
                j -= one
            keys[j], rows[j] = key, row
        start = stop
    a_keys, a_rows, b_keys, b_rows = keys, rows, spare_keys, spare_rows
    swapped = False
    width = run
    while width < n:
        start = np.uint64(0)
        while start < n:
            middle = min(start + width, n)
            stop = min(middle + width, n)
            i, j = start, middle
            for out in range(start, stop):
                later = j < stop and (i >= middle or a_keys[j] > a_keys[i])
                take = j if later else i
                b_keys[out], b_rows[out] = a_keys[take], a_rows[take]
                j += np.uint64(later)
                i += np.uint64(not later)
            start = stop
        a_keys, a_rows, b_keys, b_rows = b_keys, b_rows, a_keys, a_rows
        swapped = not swapped
        width += width
    if swapped:
        for i in range(n):
            keys[i], rows[i] = spare_keys[i], spare_rows[i]


@compiled
def walk_down(kind, ties, scores, tolerance, norms, values, discounts, depths, starts, out):  # type: ignore[no-untyped-def]
    """Fill ``out[q, column]``, walking down each column of each query to the query's depth.

    ``tolerance[row] * norms[column]`` is what each score may be off: a run of scores that differ from the first of them
    by no more than both may be off together is tied.
    """
    longest = np.uint64(0)
    for q in range(len(starts) - 1):
        longest = max(longest, np.uint64(starts[q + 1] - starts[q]))
    keys, spare_keys = np.empty(longest), np.empty(longest)
    rows, spare_rows = np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    one = np.uint64(1)
    for q in range(len(starts) - 1):
        a = np.uint64(starts[q])
        n = np.uint64(starts[q + 1]) - a
        cut = min(n, np.uint64(depths[q]))
        for column in range(scores.shape[0]):
            for i in range(n):
                keys[i] = scores[column, a + i]
                rows[i] = i
            sort_descending(keys, rows, spare_keys, spare_rows, n)
            norm = norms[column]
            if norm > 0.0:
                head, merged = np.uint64(0), False
                for i in range(one, n):
                    if keys[head] - keys[i] <= norm * (tolerance[a + rows[head]] + tolerance[a + rows[i]]):
                        merged |= keys[i] != keys[head]
                        keys[i] = keys[head]
                    else:
                        head = i
                if merged:  # tied rows back into their order
                    for i in range(n):
                        spare_keys[rows[i]] = keys[i]
                    for i in range(n):
                        keys[i] = spare_keys[i]
                        rows[i] = i
                    sort_descending(keys, rows, spare_keys, spare_rows, n)
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
