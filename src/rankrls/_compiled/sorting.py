"""Sorting one query's scores, inside compiled loops."""

from __future__ import annotations

import numpy as np

from rankrls._compiled.jit import compiled

_RUN = 12
_MANY = 64
"""So many keys are first put where their values say that they belong."""


@compiled
def sort_descending(keys, rows, spare_keys, spare_rows, n):  # type: ignore[no-untyped-def]
    """Sort ``keys[:n]`` in descending order and ``rows[:n]`` along; equal keys keep the order that they come in.

    O(n) for keys that are nearly sorted, as scores of the next regularization value in the order of the last one often
    are, and for many keys that are spread about evenly; O(n log n) at worst. The two spare arrays are the caller's.

    (Callers in other files keep a compiled copy of this loop in their own cache: touch them when this changes. It is
    one function, because each part that the compiler has to put into it takes longer than to compile it there.)
    """
    one = np.uint64(1)
    zero = np.uint64(0)
    n = np.uint64(n)
    slack = np.uint64(_MANY)
    spread = n < slack
    while True:
        # Insertion sort as long as it moves little: `slack` places and two for each key.
        moves = zero
        i = one
        while i < n and moves <= slack + i + i:
            key = keys[i]
            row = rows[i]
            j = i
            while j > zero and keys[j - one] < key:
                keys[j] = keys[j - one]
                rows[j] = rows[j - one]
                j -= one
            keys[j] = key
            rows[j] = row
            moves += i - j
            i += one
        if i >= n:
            return
        if spread:
            break
        # Once, n buckets of equal width, the highest first; inside a bucket keys keep their order.
        spread = True
        slack = n
        top, bottom = keys[0], keys[0]
        for i in range(n):
            top = keys[i] if keys[i] > top else top
            bottom = keys[i] if keys[i] < bottom else bottom
        if not top - bottom > 0.0 or top - bottom == np.inf:
            continue
        last = n - one
        scale = last / (top - bottom)
        ends = np.empty(n, np.uint64)
        for i in range(n):
            ends[i] = zero
        for i in range(n):
            place = (top - keys[i]) * scale
            ends[np.uint64(np.int64(place)) if place < last else last] += one  # the last one also for NaN
        before = zero
        for k in range(n):
            ends[k], before = before, before + ends[k]
        for i in range(n):
            place = (top - keys[i]) * scale
            bucket = np.uint64(np.int64(place)) if place < last else last
            to = ends[bucket]
            spare_keys[to] = keys[i]
            spare_rows[to] = rows[i]
            ends[bucket] = to + one
        for i in range(n):
            keys[i] = spare_keys[i]
            rows[i] = spare_rows[i]
    # A bottom-up merge sort over insertion-sorted runs, with no branch to mispredict in a merge step.
    run = np.uint64(_RUN)
    start = zero
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
        start = zero
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
