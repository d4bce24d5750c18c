"""The compiled pass that parses LETOR text into arrays of known size.

It walks blocks of whole lines (the last byte is a line end, so that no inner loop checks bounds) and splits them as
:func:`rankrls.io._scan.scan_block` does: tokens end at a blank, at ``#`` and at the line end. That pass is lenient and
counts, this one judges, and never writes more rows, entries or bytes than were counted.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls.io._decimal import BAD, FINE, HARD, ONE, POWERS_OF_TEN, TEN, ZERO, parse_number, round_decimal


class Problem(IntEnum):
    """What :func:`parse_block` finds wrong; NONE where nothing is."""

    NONE = 0
    LABEL = 1
    TOKEN = 2
    VALUE = 3
    ID_TOO_LONG = 4
    ID_ZERO = 5
    ID_TOO_HIGH = 6
    TWICE = 7
    QID_EMPTY = 8
    QID_TWICE = 9
    QID_MISSING = 10
    QID_UNEXPECTED = 11
    QID_NUL = 12
    QID_TEXT = 13


class Target(NamedTuple):
    """Arrays that a block fills; those that a job does not need have length 0."""

    y: NDArray[np.float64]
    values: NDArray[np.float64]  # dense row by row, or entry by entry
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    qid: NDArray[np.int64]
    qid_text: NDArray[np.uint8]
    qid_ends: NDArray[np.int64]
    comment_text: NDArray[np.uint8]
    comment_ends: NDArray[np.int64]


class Job(NamedTuple):
    """What a block is to be read as; values from ``limit`` on are refused."""

    first_id: int
    n_columns: int
    dense: bool
    limit: float
    with_qid: bool
    text_qid: bool


_LARGEST_INT = np.uint64(np.iinfo(np.int64).max)
ID_DIGITS = np.uint64(18)  # so many always fit int64
_TWO, _THREE, _FOUR, _FIFTEEN, _NINETEEN = (np.uint64(k) for k in (2, 3, 4, 15, 19))
_NONE, _LABEL, _TOKEN, _VALUE, _ID_TOO_LONG, _ID_ZERO, _ID_TOO_HIGH, _TWICE, *_OTHERS = map(int, Problem)
_QID_EMPTY, _QID_TWICE, _QID_MISSING, _QID_UNEXPECTED, _QID_NUL, _QID_TEXT = _OTHERS


@compiled
def blank(c):  # type: ignore[no-untyped-def]
    """Space, tab, carriage return, vertical tab, form feed."""
    return c == 32 or (9 <= c <= 13 and c != 10)


@compiled
def ends_token(c):  # type: ignore[no-untyped-def]
    return c <= 35 and (c == 10 or c == 35 or blank(c))


@compiled
def skip_token(text, p):  # type: ignore[no-untyped-def]
    """First byte from ``p`` on that does not belong to the token."""
    while text[p] > 35 or not ends_token(text[p]):
        p += ONE
    return p


@compiled
def starts_qid(text, p):  # type: ignore[no-untyped-def]
    return text[p] == 113 and text[p + ONE] == 105 and text[p + _TWO] == 100 and text[p + _THREE] == 58


@compiled
def whole_number(text, start, stop):  # type: ignore[no-untyped-def]
    """Value of a whole number as ``str(int)`` writes it; False where it is anything else or does not fit int64."""
    negative = text[start] == 45
    first = start + np.uint64(negative)
    digits = stop - first
    if stop <= first or digits > 19 or (text[first] == 48 and (digits > 1 or negative)):
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
def comment(text, p):  # type: ignore[no-untyped-def]
    """The comment that begins behind ``text[p] == '#'``, without blanks around it, and the line end."""
    start = p + ONE
    while blank(text[start]):
        start += ONE
    end = start
    while text[end] != 10:
        end += ONE
    stop = end
    while stop > start and blank(text[stop - ONE]):
        stop -= ONE
    return start, stop, end


@compiled
def parse_block(text, start, size, job, out, hard, seen):  # type: ignore[no-untyped-def]
    """Parse ``text[start:size]`` into arrays, up to the first bad line.

    Decimals that need Python's own rounding are listed in ``hard``, one row each: first and last byte, line, and
    where the value belongs (an entry of the values, or ``-1 - row`` for a label). ``seen`` holds -1 for each column of
    a dense table, and one number more: it becomes the last row that names the column, and the number of entries.

    Returns
    -------
    problem, line : int
        What is wrong (see :class:`Problem`) and in which line of the block, counted from 0.
    first, last : int
        The bytes of the bad token.
    number : int
        The feature id concerned, where there is one.
    n_hard : int
        Rows of ``hard`` that are filled.
    n_rows : int
        Rows that were parsed whole.
    unsorted : bool
        Whether a sparse row's ids do not ascend, or name a feature twice.
    """
    p, end = np.uint64(start), np.uint64(size)
    row, entry, qid_byte, comment_byte = 0, np.uint64(0), np.uint64(0), np.uint64(0)
    first_id, n_columns, limit = np.uint64(job.first_id), np.uint64(job.n_columns), job.limit
    dense, with_qid, text_qid = job.dense, job.with_qid, job.text_qid
    values, indices, indptr, comments = out.values, out.indices, out.indptr, out.comment_text
    problem, line, n_hard, unsorted = _NONE, -1, 0, False
    first, number = p, np.uint64(0)
    while p < end:
        line += 1
        while blank(text[p]):
            p += ONE
        if text[p] == 10 or text[p] == 35:
            while text[p] != 10:
                p += ONE
            p += ONE
            continue
        first = p
        value, p, status = parse_number(text, p)
        if status == BAD or not ends_token(text[p]) or (status == FINE and not np.isfinite(value)):
            problem = _LABEL
            break
        if status == HARD:
            hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = first, p, line, -1 - row
            n_hard += 1
        out.y[row] = value
        base = np.uint64(row) * n_columns - first_id
        least = np.uint64(0)
        has_qid = False
        while True:
            if text[p] == 32:
                p += ONE
            first = p
            d = np.uint64(text[p]) - ZERO
            if d >= TEN:  # seldom: a feature follows one blank
                while blank(text[p]):
                    p += ONE
                c = text[p]
                first = p
                if c == 10:
                    break
                if c == 35:
                    left, right, p = comment(text, p)
                    for i in range(left, right):
                        comments[comment_byte] = text[i]
                        comment_byte += ONE
                    break
                if c == 113 and starts_qid(text, p):
                    left = p + _FOUR
                    p = skip_token(text, left)
                    if p == left:
                        problem = _QID_EMPTY
                    elif has_qid:
                        problem = _QID_TWICE
                    elif not with_qid:
                        problem = _QID_UNEXPECTED
                    elif text_qid:
                        for i in range(left, p):
                            if text[i] == 0:
                                problem = _QID_NUL
                            out.qid_text[qid_byte] = text[i]
                            qid_byte += ONE
                    else:
                        out.qid[row], whole = whole_number(text, left, p)
                        if not whole:
                            problem = _QID_TEXT
                    if problem != _NONE:
                        break
                    has_qid = True
                    continue
                d = np.uint64(c) - ZERO
            number = np.uint64(0)
            while d < TEN:
                number = number * TEN + d
                p += ONE
                d = np.uint64(text[p]) - ZERO
            if text[p] != 58 or p == first:
                problem = _TOKEN
                break
            if p - first > ID_DIGITS:
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
            status = FINE
            bad = False
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
                bad = status == BAD or not ends_token(text[p])
            column = number - first_id
            if bad or (status == FINE and abs(value) >= limit):
                problem = _VALUE
                break
            if number < first_id:
                problem = _ID_ZERO
                break
            if column >= n_columns:
                problem = _ID_TOO_HIGH
                break
            if dense:
                if seen[column] == row:
                    problem = _TWICE
                    break
                seen[column] = row
                at = base + number
            else:
                unsorted = unsorted or number < least
                least = number + ONE
                at = entry
                indices[at] = column
            entry += ONE
            if status == HARD:
                hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = first, p, line, at
                n_hard += 1
            values[at] = value
        if problem == _NONE and with_qid and not has_qid:
            problem, first = _QID_MISSING, p
        if problem != _NONE:
            break
        if text_qid:
            out.qid_ends[row] = qid_byte
        out.comment_ends[row] = comment_byte
        row += 1
        if not dense:
            indptr[row] = entry
        p += ONE
    seen[len(seen) - 1] = np.int64(entry)
    last = p if problem == _NONE else skip_token(text, p)
    return problem, line, np.int64(first), np.int64(last), np.int64(number), n_hard, row, unsorted
