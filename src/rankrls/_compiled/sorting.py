"""Sorting one query's scores, inside compiled loops."""

from __future__ import annotations

import numpy as np

from rankrls._compiled.jit import compiled

_RUN = 12


@compiled
def sort_descending(keys, rows, spare_keys, spare_rows, n):  # type: ignore[no-untyped-def]
    """Sort ``keys[:n]`` in descending order and ``rows[:n]`` along; equal keys keep the order that they come in.

    A bottom-up merge sort over insertion-sorted runs, O(n log n). The two spare arrays are the caller's.
    (Callers in other files keep a compiled copy of this loop in their own cache: touch them when this changes.)
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
