"""Sorting one query's scores, inside compiled loops."""

from __future__ import annotations

import numpy as np

from rankrls._compiled.jit import compiled

__all__ = ["sort_again", "sort_descending"]

_RUN = 12


@compiled
def sort_descending(keys, rows, spare_keys, spare_rows, n):  # type: ignore[no-untyped-def]
    """Sort ``keys[:n]`` in descending order and ``rows[:n]`` along; equal keys keep their order.

    A bottom-up merge sort over insertion-sorted runs. Queries are short, so what counts is that nothing is allocated
    (the two spare arrays are the caller's) and that a merge step holds no branch to mispredict.

    (Callers in other files keep a compiled copy of this loop in their own cache: touch them when this changes.)
    """
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
def sort_again(keys, rows, spare_keys, spare_rows, n):  # type: ignore[no-untyped-def]
    """As :func:`sort_descending` for keys that are nearly sorted: insertion, as long as it moves little.

    The scores of the next regularization value nearly have the order of the last one. Equal keys keep the order that
    they come in.
    """
    one = np.uint64(1)
    n = np.uint64(n)
    moves = np.uint64(0)
    i = one
    while i < n and moves <= n + n:
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
    if i < n:
        sort_descending(keys, rows, spare_keys, spare_rows, n)
