"""The compiled pass over a block of LETOR text: rows, entries, query ids and comments, up to the first bad line."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls.io._decimal import BAD, FINE, HARD, ONE, POWERS_OF_TEN, TEN, ZERO, parse_number, round_decimal


class Problem(IntEnum):
    """What is wrong with a line."""

    NONE = 0
    LABEL = 1
    TOKEN = 2
    VALUE = 3
    ID_TOO_LONG = 4
    ID_TOO_LOW = 5
    ID_TOO_HIGH = 6
    TWICE = 7
    QID_EMPTY = 8
    QID_TWICE = 9
    QID_MISSING = 10
    QID_UNEXPECTED = 11
    QID_NUL = 12
    QID_UNDECODABLE = 13


class Found(NamedTuple):
    """What :func:`parse_block` says of a block; lines are counted from 1."""

    problem: int
    first: int  # bytes of the bad token
    last: int
    feature: int  # of the bad token
    lines: int
    rows: int
    entries: int
    runs: int
    hard: int
    least: int  # feature id
    largest: int
    unsorted: bool  # whether ids of a row do not ascend
    gaps: bool  # whether a row names other features than the least one and those that follow it
    words: bool  # whether a query id is not a whole number
    first_line: int  # of the first row
    line_of_largest: int  # the first one that names the largest feature that is taken; 0 if none does


class Room(NamedTuple):
    """Arrays that :func:`parse_block` fills."""

    labels: NDArray[np.float64]
    ends: NDArray[np.int64]  # of rows among the entries
    ids: NDArray[np.int64]
    values: NDArray[np.float64]
    hard: NDArray[np.int64]  # first and last byte of a decimal, and its entry or -1 - row
    runs: NDArray[np.int64]  # consecutive rows of one query id: first row, first and last byte, the whole number
    comments: NDArray[np.uint8]
    comment_ends: NDArray[np.int64]

    @staticmethod
    def for_text(size: int) -> Room:
        """Room for whatever so many bytes can hold; memory that is not written to costs nothing."""
        rows, entries, integer = size // 2 + 1, size // 4 + 1, np.dtype(np.int64)
        return Room(
            labels=np.empty(rows),
            ends=np.empty(rows, integer),
            ids=np.empty(entries, integer),
            values=np.empty(entries),
            hard=np.empty((size // 20 + 1, 3), integer),
            runs=np.empty((size // 6 + 1, 4), integer),
            comments=np.empty(size, np.uint8),
            comment_ends=np.empty(rows, integer),
        )


_TWO, _THREE, _FOUR, _FIFTEEN, _NINETEEN = (np.uint64(k) for k in (2, 3, 4, 15, 19))
_ID_DIGITS = np.uint64(18)  # so many always fit int64
_LARGEST_INT = np.uint64(np.iinfo(np.int64).max)
_NO_ID = np.iinfo(np.int64).max
_NONE, _LABEL, _TOKEN, _VALUE, _ID_TOO_LONG, _ID_TOO_LOW, _ID_TOO_HIGH, _, *_OTHERS = map(int, Problem)
_QID_EMPTY, _QID_TWICE, _QID_MISSING, _QID_UNEXPECTED, _QID_NUL, _ = _OTHERS


@compiled
def _blank(c):  # type: ignore[no-untyped-def]
    """Space, tab, carriage return, vertical tab, form feed."""
    return c == 32 or (9 <= c <= 13 and c != 10)


@compiled
def _ends_token(c):  # type: ignore[no-untyped-def]
    return c <= 35 and (c == 10 or c == 35 or _blank(c))


@compiled
def _skip_token(text, p):  # type: ignore[no-untyped-def]
    """First byte from ``p`` on that does not belong to the token."""
    while text[p] > 35 or not _ends_token(text[p]):
        p += ONE
    return p


@compiled
def _whole_number(text, start, stop):  # type: ignore[no-untyped-def]
    """Value of a whole number as ``str(int)`` writes it; False where it is anything else or does not fit int64."""
    negative = text[start] == 45
    first = start + np.uint64(negative)
    digits = stop - first
    if stop <= first or digits > _NINETEEN or (text[first] == 48 and (digits > ONE or negative)):
        return np.int64(0), False
    value = np.uint64(0)
    for i in range(first, stop):
        d = np.uint64(text[i]) - ZERO
        if d >= TEN:
            return np.int64(0), False
        value = value * TEN + d
    signed = -np.int64(value) if negative else np.int64(value)
    return signed, value <= _LARGEST_INT + np.uint64(negative)


@compiled
def _same(text, first, last, start, stop):  # type: ignore[no-untyped-def]
    """Whether two words of a text are the same."""
    same = last - first == stop - start
    while same and first < last:
        same = text[first] == text[start]
        first, start = first + ONE, start + ONE
    return same


@compiled
def parse_block(text, start, stop, least, largest, limit, room):  # type: ignore[no-untyped-def]
    """Parse ``text[start:stop]``, whole lines, up to the first bad one.

    Parameters
    ----------
    text : ndarray of uint8
    start, stop : int
        ``text[stop - 1]`` is a line end, so that no inner loop checks bounds.
    least, largest : int
        Feature ids that are taken.
    limit : float
        Values from here on are too large.
    room : Room
        Written. Decimals that need Python's own rounding are listed in ``room.hard``.
    """
    labels, ends, ids, values, hard, runs, comments, comment_ends = room
    p, end = np.uint64(start), np.uint64(stop)
    row, entry, run, n_hard, n_comment, lines = 0, np.uint64(0), -1, 0, np.uint64(0), 0
    lowest, highest, base = _NO_ID, np.int64(-1), np.int64(-1)
    unsorted, gaps, words, first_has_qid = False, False, False, False
    first_line, line_of_largest = 0, 0
    problem, first, number = _NONE, p, np.int64(0)
    qid_first, qid_last = p, p
    while p < end:
        lines += 1
        while _blank(text[p]):
            p += ONE
        if text[p] == 10 or text[p] == 35:
            while text[p] != 10:
                p += ONE
            p += ONE
            continue
        first = p
        value, p, status = parse_number(text, p)
        if status == BAD or not _ends_token(text[p]) or (status == FINE and not np.isfinite(value)):
            problem = _LABEL
            break
        if status == HARD:
            hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = first, p, -1 - row
            n_hard += 1
        labels[row] = value
        has_qid = False
        before = np.int64(-2)
        while True:
            if text[p] == 32:
                p += ONE
            first = p
            d = np.uint64(text[p]) - ZERO
            if d >= TEN:  # seldom: a feature follows one blank
                while _blank(text[p]):
                    p += ONE
                c = text[p]
                first = p
                if c == 10:
                    break
                if c == 35:
                    p += ONE
                    while _blank(text[p]):
                        p += ONE
                    left = p
                    while text[p] != 10:
                        p += ONE
                    right = p
                    while right > left and _blank(text[right - ONE]):
                        right -= ONE
                    for i in range(left, right):
                        comments[n_comment] = text[i]
                        n_comment += ONE
                    break
                if c == 113 and text[p + ONE] == 105 and text[p + _TWO] == 100 and text[p + _THREE] == 58:  # qid:
                    left = p + _FOUR
                    p = _skip_token(text, left)
                    if p == left:
                        problem = _QID_EMPTY
                    elif has_qid:
                        problem = _QID_TWICE
                    elif row > 0 and not first_has_qid:
                        problem = _QID_UNEXPECTED
                    elif run < 0 or not _same(text, qid_first, qid_last, left, p):
                        for i in range(left, p):
                            if text[i] == 0:
                                problem = _QID_NUL
                        run += 1
                        whole_id, whole = _whole_number(text, left, p)
                        words = words or not whole
                        runs[run, 0], runs[run, 1], runs[run, 2], runs[run, 3] = row, left, p, whole_id
                        qid_first, qid_last = left, p
                    if problem != _NONE:
                        break
                    has_qid = True
                    continue
                d = np.uint64(c) - ZERO
            id_value = np.uint64(0)
            while d < TEN:
                id_value = id_value * TEN + d
                p += ONE
                d = np.uint64(text[p]) - ZERO
            number = np.int64(id_value)
            if text[p] != 58 or p == first:
                problem = _TOKEN
                break
            if p - first > _ID_DIGITS:
                problem = _ID_TOO_LONG
                break
            # Nearly every value is [-]digits[.digits] and a blank, of 19 digits at most. They are parsed here, where
            # the compiler keeps everything in registers; a call of parse_number for each takes a third longer.
            p += ONE
            at = p
            negative = text[at] == 45
            if negative:
                at += ONE
            mark = at
            w = np.uint64(0)
            d = np.uint64(text[at]) - ZERO
            while d < TEN:
                w = w * TEN + d
                at += ONE
                d = np.uint64(text[at]) - ZERO
            digits = at - mark
            places = np.uint64(0)
            if text[at] == 46:
                at += ONE
                mark = at
                d = np.uint64(text[at]) - ZERO
                while d < TEN:
                    w = w * TEN + d
                    at += ONE
                    d = np.uint64(text[at]) - ZERO
                places = at - mark
                digits += places
            status, bad = FINE, False
            if digits - ONE < _NINETEEN and (text[at] == 32 or text[at] == 10):
                p = at
                if digits <= _FIFTEEN:
                    value = np.float64(np.int64(w)) / POWERS_OF_TEN[places]
                else:
                    value = round_decimal(w, -np.int64(places))
                if negative:
                    value = -value
            else:
                value, p, status = parse_number(text, p)
                bad = status == BAD or not _ends_token(text[p])
            if bad or (status == FINE and abs(value) >= limit):
                problem = _VALUE
                break
            if number != before + 1:
                if base < 0:
                    base = number
                elif before >= 0 or number != base:
                    gaps = True
                unsorted = unsorted or number <= before
            before = number
            if number < lowest or number > highest:
                lowest, highest = min(lowest, number), max(highest, number)
                if number < least:
                    problem = _ID_TOO_LOW
                    break
                if number > largest:
                    problem = _ID_TOO_HIGH
                    break
                if number == largest and line_of_largest == 0:
                    line_of_largest = lines
            if status == HARD:
                hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = first, p, np.int64(entry)
                n_hard += 1
            ids[entry] = number
            values[entry] = value
            entry += ONE
        if problem == _NONE and row > 0 and first_has_qid and not has_qid:
            problem, first = _QID_MISSING, p
        if problem != _NONE:
            break
        if row == 0:
            first_has_qid, first_line = has_qid, lines
        ends[row] = np.int64(entry)
        comment_ends[row] = np.int64(n_comment)
        row += 1
        p += ONE
    last = p if problem == _NONE else _skip_token(text, p)
    counts = (row, np.int64(entry), run + 1, n_hard)
    bad = (problem, np.int64(first), np.int64(last), number)
    return Found(*bad, lines, *counts, lowest, highest, unsorted, gaps, words, first_line, line_of_largest)


@compiled
def scatter(ends, ids, shift, values, X):  # type: ignore[no-untyped-def]
    """Write the entries of rows into a dense array, feature ``shift`` into its first column."""
    entry = 0
    for row in range(len(ends)):
        while entry < ends[row]:
            X[row, ids[entry] - shift] = values[entry]
            entry += 1
