"""Compiled pass over a block of LETOR text: rows, entries and query ids, up to the first bad line."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled import compiled
from rankrls.io._decimal import BAD, FINE, HARD, ONE, POWERS_OF_TEN, TEN, ZERO, parse_number, round_decimal


class Found(NamedTuple):
    """Results of :func:`parse_block` for a block."""

    lines: int
    rows: int
    entries: int
    runs: int
    hard: int
    least: int  # feature id
    largest: int
    unsorted: bool  # whether ids of some row do not ascend
    comments: bool  # whether there are any
    bad: int  # position of a byte of the first bad line, or -1


Room = tuple[NDArray[Any], ...]
"""Labels, ends of rows among the entries, starts of the rows' comments, line ends, line numbers, ids and values of the
entries, runs of rows of one query (first row, first and last byte of the id), and decimals that need Python's own
rounding (first and last byte, the entry or -1 - row). Positions in the text are byte numbers."""


def room_for(size: int) -> Room:
    """Arrays for the largest content of a text of the given size; memory that is not written to costs nothing."""
    integers = partial(np.empty, dtype=np.int64)
    rows = size // 2 + 1
    entries = size // 4 + 1
    places = (integers(rows), integers(rows), integers(rows), integers(rows))
    decimals = integers((size // 20 + 1, 3))
    return np.empty(rows), *places, integers(entries), np.empty(entries), integers((rows, 3)), decimals


_FOUR = np.uint64(4)
_FIFTEEN = np.uint64(15)
_NINETEEN = np.uint64(19)
_ID_DIGITS = np.uint64(18)  # number of digits that always fits int64
_NO_ID = np.iinfo(np.int64).max


@compiled
def _blank(c):  # type: ignore[no-untyped-def]
    """Space, tab, carriage return, vertical tab, form feed."""
    return c == 32 or (9 <= c <= 13 and c != 10)


@compiled
def _ends_token(c):  # type: ignore[no-untyped-def]
    return c <= 35 and (c == 10 or c == 35 or _blank(c))


@compiled
def _digits(text, p, number):  # type: ignore[no-untyped-def]
    """Append digits to a whole number; returns the position after them."""
    d = np.uint64(text[p]) - ZERO
    while d < TEN:
        number = number * TEN + d
        p += ONE
        d = np.uint64(text[p]) - ZERO
    return number, p


@compiled
def _same(text, first, last, start, stop):  # type: ignore[no-untyped-def]
    """Whether two words of a text are equal."""
    same = last - first == stop - start
    while same and first < last:
        same = text[first] == text[start]
        first = first + ONE
        start = start + ONE
    return same


@compiled
def parse_block(text, least, largest, limit, room):  # type: ignore[no-untyped-def]
    """Parse whole lines, up to the first bad one.

    Parameters
    ----------
    text : ndarray of uint8
        Text whose last byte is a line end, so that inner loops need not check bounds.
    least, largest : int
        Smallest and largest accepted feature id.
    limit : float
        Bound from which values are too large.
    room : Room
        Arrays for the results.
    """
    labels, ends, comments, stops, numbers, ids, values, runs, hard = room
    p = np.uint64(0)
    size = np.uint64(len(text))
    lines = 0
    row = 0
    entry = np.uint64(0)
    run = 0
    n_hard = 0
    bad = np.int64(-1)
    lowest = np.int64(_NO_ID)
    highest = np.int64(-1)
    unsorted = False
    with_comments = False
    last_qid = p
    last_qid_end = p
    while p < size:
        lines += 1
        while _blank(text[p]):
            p += ONE
        first = p
        if text[p] == 10 or text[p] == 35:
            while text[p] != 10:
                p += ONE
            p += ONE
            continue
        value, p, status = parse_number(text, p)
        if status == BAD or not _ends_token(text[p]) or (status == FINE and not np.isfinite(value)):
            bad = np.int64(first)
            break
        if status == HARD:
            hard[n_hard, 0] = first
            hard[n_hard, 1] = p
            hard[n_hard, 2] = -1 - row
            n_hard += 1
        labels[row] = value
        qid = p
        qid_end = p
        before = np.int64(-1)
        while bad < 0:
            if text[p] == 32:
                p += ONE
            first = p
            if np.uint64(text[p]) - ZERO >= TEN:  # rare: features usually follow a single blank
                while _blank(text[p]):
                    p += ONE
                first = p
                c = text[p]
                if c == 10 or c == 35:
                    break
                if c == 113 and text[p + ONE] == 105 and text[p + ONE + ONE] == 100 and text[p + _FOUR - ONE] == 58:
                    p += _FOUR  # qid:
                    if qid_end > qid or _ends_token(text[p]):
                        bad = np.int64(first)
                    qid = p
                    while not _ends_token(text[p]):
                        p += ONE
                    qid_end = p
                    continue
            digits, p = _digits(text, first, np.uint64(0))
            if text[p] != 58 or p == first or p - first > _ID_DIGITS:
                bad = np.int64(first)
                break
            number = np.int64(digits)
            # Nearly all values are [-]digits[.digits] followed by a blank, with at most 19 digits. They are read here,
            # where the compiler uses registers: with a call of parse_number for each, a file takes twice as long.
            first = p + ONE
            negative = text[first] == 45
            start = first + np.uint64(negative)
            digits, p = _digits(text, start, np.uint64(0))
            count = p - start
            places = np.uint64(0)
            status = FINE
            failed = False
            if text[p] == 46:
                start = p + ONE
                digits, p = _digits(text, start, digits)
                places = p - start
                count += places
            if count - ONE < _NINETEEN and (text[p] == 32 or text[p] == 10):
                if count <= _FIFTEEN:
                    value = np.float64(np.int64(digits)) / POWERS_OF_TEN[places]
                else:
                    value = round_decimal(digits, -np.int64(places))
                value = -value if negative else value
            else:
                value, p, status = parse_number(text, first)
                failed = status == BAD or not _ends_token(text[p])
            if failed or (status == FINE and abs(value) >= limit):
                bad = np.int64(first)
                break
            if status == HARD:
                hard[n_hard, 0] = first
                hard[n_hard, 1] = p
                hard[n_hard, 2] = np.int64(entry)
                n_hard += 1
            unsorted = unsorted or number <= before
            before = number
            if number < lowest or number > highest:
                lowest = min(lowest, number)
                highest = max(highest, number)
                if number < least or number > largest:
                    bad = np.int64(first)
            ids[entry] = number
            values[entry] = value
            entry += ONE
        if bad >= 0:
            break
        if row == 0 or not _same(text, last_qid, last_qid_end, qid, qid_end):
            runs[run, 0] = row
            runs[run, 1] = qid
            runs[run, 2] = qid_end
            run += 1
            last_qid = qid
            last_qid_end = qid_end
        if text[p] == 35:
            with_comments = True
            p += ONE
        comments[row] = p
        while text[p] != 10:
            p += ONE
        stops[row] = p
        ends[row] = entry
        numbers[row] = lines
        row += 1
        p += ONE
    return Found(lines, row, np.int64(entry), run, n_hard, lowest, highest, unsorted, with_comments, bad)


@compiled
def scatter(ends, ids, shift, values, X):  # type: ignore[no-untyped-def]
    """Write the entries of rows into a dense array, feature ``shift`` into its first column."""
    entry = 0
    for row in range(len(ends)):
        while entry < ends[row]:
            X[row, ids[entry] - shift] = values[entry]
            entry += 1
