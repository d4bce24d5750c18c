"""Sorting one query's scores, inside compiled loops."""

from __future__ import annotations

import numpy as np

from rankrls._compiled.jit import compiled, inlined

__all__ = ["level_near", "sort_descending"]

_RUN = 12
_MANY = 64
"""So many keys are first put where their values say that they belong."""


@inlined
def _insert(keys, rows, n, slack):  # type: ignore[no-untyped-def]
    """Insertion sort as long as it moves little: ``slack`` places and two for each key. Whether it came to the end."""
    one = np.uint64(1)
    n = np.uint64(n)
    moves = np.uint64(0)
    i = one
    while i < n and moves <= np.uint64(slack) + i + i:
        key = keys[i]
        row = rows[i]
        j = i
        while j > np.uint64(0) and keys[j - one] < key:
            keys[j] = keys[j - one]
            rows[j] = rows[j - one]
            j -= one
        keys[j] = key
        rows[j] = row
        moves += i - j
        i += one
    return i >= n


@inlined
def _spread(keys, rows, spare_keys, spare_rows, n):  # type: ignore[no-untyped-def]
    """Put keys into n buckets of equal width, the highest first; inside a bucket they keep their order."""
    n = np.uint64(n)
    top, bottom = keys[0], keys[0]
    for i in range(n):
        top = keys[i] if keys[i] > top else top
        bottom = keys[i] if keys[i] < bottom else bottom
    if not top - bottom > 0.0 or top - bottom == np.inf:
        return
    last = n - np.uint64(1)
    scale = last / (top - bottom)
    buckets = np.empty(n, np.uint32)
    for i in range(n):
        place = (top - keys[i]) * scale
        buckets[i] = np.uint32(place) if place < last else np.uint32(last)  # the last one also for NaN
    ends = np.zeros(n, np.uint32)
    for i in range(n):
        ends[buckets[i]] += np.uint32(1)
    before = np.uint32(0)
    for k in range(n):
        ends[k], before = before, before + ends[k]
    for i in range(n):
        bucket = buckets[i]
        to = ends[bucket]
        spare_keys[to] = keys[i]
        spare_rows[to] = rows[i]
        ends[bucket] = to + np.uint32(1)
    for i in range(n):
        keys[i] = spare_keys[i]
        rows[i] = spare_rows[i]


@inlined
def _merge_runs(keys, rows, spare_keys, spare_rows, n):  # type: ignore[no-untyped-def]
    """A bottom-up merge sort over insertion-sorted runs, with no branch to mispredict in a merge step."""
    one = np.uint64(1)
    n = np.uint64(n)
    run = np.uint64(_RUN)
    start = np.uint64(0)
    while start < n:
        stop = min(start + run, n)
        for i in range(start + one, stop):
            key = keys[i]
            row = rows[i]
            j = i
            while j > start and keys[j - one] < key:
                keys[j] = keys[j - one]
                rows[j] = rows[j - one]
                j -= one
            keys[j] = key
            rows[j] = row
        start = stop
    a_keys, a_rows, b_keys, b_rows = keys, rows, spare_keys, spare_rows
    swapped = False
    width = run
    while width < n:
        start = np.uint64(0)
        while start < n:
            middle = min(start + width, n)
            stop = min(middle + width, n)
            i = start
            j = middle
            out = start
            while i < middle and j < stop:
                left = a_keys[i]
                right = a_keys[j]
                later = np.uint64(right > left)
                take = j if later else i
                b_keys[out] = a_keys[take]
                b_rows[out] = a_rows[take]
                j += later
                i += one - later
                out += one
            while i < middle:
                b_keys[out] = a_keys[i]
                b_rows[out] = a_rows[i]
                i += one
                out += one
            while j < stop:
                b_keys[out] = a_keys[j]
                b_rows[out] = a_rows[j]
                j += one
                out += one
            start = stop
        a_keys, a_rows, b_keys, b_rows = b_keys, b_rows, a_keys, a_rows
        swapped = not swapped
        width = width + width
    if swapped:
        for i in range(n):
            keys[i] = spare_keys[i]
            rows[i] = spare_rows[i]


@compiled
def sort_descending(keys, rows, spare_keys, spare_rows, n):  # type: ignore[no-untyped-def]
    """Sort ``keys[:n]`` in descending order and ``rows[:n]`` along; equal keys keep the order that they come in.

    O(n) for keys that are nearly sorted, as scores of the next regularization value in the order of the last one often
    are, and for many keys that are spread about evenly; O(n log n) at worst. The two spare arrays are the caller's.

    (Callers in other files keep a compiled copy of this loop in their own cache: touch them when this changes.)
    """
    done = _insert(keys, rows, n, np.uint64(_MANY))
    if not done and n >= _MANY:
        _spread(keys, rows, spare_keys, spare_rows, n)
        done = _insert(keys, rows, n, n)
    if not done:
        _merge_runs(keys, rows, spare_keys, spare_rows, n)


@inlined
def level_near(keys, n, near, rounding):  # type: ignore[no-untyped-def]
    """Give sorted keys the value of the one before, where they differ by a share ``near`` of their range or less.

    Or by a share ``rounding`` of the largest.
    """
    one = np.uint64(1)
    n = np.uint64(n)
    gap = near * (keys[0] - keys[n - one]) + rounding * max(abs(keys[0]), abs(keys[n - one]))
    before = keys[0]
    for i in range(one, n):
        key = keys[i]
        if before - key <= gap:
            keys[i] = keys[i - one]
        before = key
