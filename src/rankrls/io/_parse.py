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
from rankrls.io._decimal import BAD, FINE, HARD, POWERS_OF_TEN, parse_number, round_decimal

__all__ = [
    "ID_DIGITS",
    "Job",
    "Problem",
    "Target",
    "blank",
    "comment",
    "ends_token",
    "parse_block",
    "skip_token",
    "starts_qid",
    "whole_number",
]


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
    """Arrays that the blocks of a file fill together; those that a job does not need have length 0."""

    y: NDArray[np.float64]
    double: NDArray[np.float64]  # feature values, dense row by row or entry by entry: here or in `single`
    single: NDArray[np.float32]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    qid: NDArray[np.int64]
    qid_text: NDArray[np.uint8]
    qid_ends: NDArray[np.int64]
    comment_text: NDArray[np.uint8]
    comment_ends: NDArray[np.int64]


class Job(NamedTuple):
    """What one block is to be read as, and where its part of the arrays begins."""

    first_id: int
    n_columns: int
    dense: bool
    in_single: bool
    with_qid: bool
    text_qid: bool
    row: int
    entry: int
    qid_byte: int
    comment_byte: int


_LARGEST_INT = np.uint64(np.iinfo(np.int64).max)
ID_DIGITS = 18  # so many always fit int64
_LARGEST_SINGLE = float(2**128 - 2**103)  # from here on float32 is infinite


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
    while True:
        while text[np.uint64(p)] > 35:
            p += 1
        if ends_token(text[np.uint64(p)]):
            return p
        p += 1


@compiled
def starts_qid(text, p):  # type: ignore[no-untyped-def]
    return (
        text[np.uint64(p)] == 113
        and text[np.uint64(p + 1)] == 105
        and text[np.uint64(p + 2)] == 100
        and text[np.uint64(p + 3)] == 58
    )


@compiled
def whole_number(text, start, stop):  # type: ignore[no-untyped-def]
    """Value of a whole number as ``str(int)`` writes it; False where it is anything else or does not fit int64."""
    negative = text[np.uint64(start)] == 45
    first = start + 1 if negative else start
    digits = stop - first
    if digits < 1 or digits > 19 or (text[np.uint64(first)] == 48 and (digits > 1 or negative)):
        return np.int64(0), False
    value = np.uint64(0)
    for i in range(first, stop):
        d = np.uint64(text[np.uint64(i)]) - np.uint64(48)
        if d >= np.uint64(10):
            return np.int64(0), False
        value = value * np.uint64(10) + d
    if value > (_LARGEST_INT + np.uint64(1) if negative else _LARGEST_INT):
        return np.int64(0), False
    return (-np.int64(value) if negative else np.int64(value)), True


@compiled
def comment(text, p):  # type: ignore[no-untyped-def]
    """The comment that begins behind ``text[p] == '#'``, without blanks around it, and the line end."""
    start = p + 1
    while blank(text[np.uint64(start)]):
        start += 1
    end = start
    while text[np.uint64(end)] != 10:
        end += 1
    stop = end
    while stop > start and blank(text[np.uint64(stop - 1)]):
        stop -= 1
    return start, stop, end


@compiled
def parse_block(text, start, size, job, out, hard, seen):  # type: ignore[no-untyped-def]
    """Parse ``text[start:size]`` into the job's part of the arrays, up to the first bad line.

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
    row, entry = job.row, job.entry
    first_id, n_columns = job.first_id, job.n_columns
    qid_byte, comment_byte = job.qid_byte, job.comment_byte
    if not job.dense:
        out.indptr[row] = entry  # what the block before writes too, perhaps later than this one's rows are sorted
    line = -1
    n_hard = 0
    unsorted = False
    p = start
    while p < size:
        line += 1
        while blank(text[np.uint64(p)]):
            p += 1
        c = text[np.uint64(p)]
        if c == 10 or c == 35:
            while text[np.uint64(p)] != 10:
                p += 1
            p += 1
            continue
        first = p
        value, p, status = parse_number(text, p)
        if status == BAD or not ends_token(text[np.uint64(p)]) or (status == FINE and not np.isfinite(value)):
            return Problem.LABEL, line, first, skip_token(text, first), 0, n_hard, row - job.row, unsorted
        if status == HARD:
            hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = first, p, line, -1 - row
            n_hard += 1
        out.y[row] = value
        base = row * n_columns - first_id
        previous = -1
        has_qid = False
        while True:
            while blank(text[np.uint64(p)]):
                p += 1
            c = text[np.uint64(p)]
            first = p
            if c == 10:
                break
            if c == 35:
                left, right, p = comment(text, p)
                for i in range(left, right):
                    out.comment_text[np.uint64(comment_byte + i - left)] = text[np.uint64(i)]
                comment_byte += right - left
                break
            if c == 113 and starts_qid(text, p):
                left = p + 4
                p = skip_token(text, left)
                if p == left:
                    return Problem.QID_EMPTY, line, first, p, 0, n_hard, row - job.row, unsorted
                if has_qid:
                    return Problem.QID_TWICE, line, first, p, 0, n_hard, row - job.row, unsorted
                if not job.with_qid:
                    return Problem.QID_UNEXPECTED, line, first, p, 0, n_hard, row - job.row, unsorted
                has_qid = True
                if job.text_qid:
                    for i in range(left, p):
                        if text[np.uint64(i)] == 0:
                            return Problem.QID_NUL, line, first, p, 0, n_hard, row - job.row, unsorted
                        out.qid_text[np.uint64(qid_byte + i - left)] = text[np.uint64(i)]
                    qid_byte += p - left
                else:
                    number, whole = whole_number(text, left, p)
                    if not whole:
                        return Problem.QID_TEXT, line, first, p, 0, n_hard, row - job.row, unsorted
                    out.qid[row] = number
                continue
            number = 0
            d = np.uint64(c) - np.uint64(48)
            while d < np.uint64(10):
                number = number * 10 + np.int64(d)
                p += 1
                d = np.uint64(text[np.uint64(p)]) - np.uint64(48)
            if text[np.uint64(p)] != 58 or p == first:
                return Problem.TOKEN, line, first, skip_token(text, p), 0, n_hard, row - job.row, unsorted
            if p - first > ID_DIGITS:
                return Problem.ID_TOO_LONG, line, first, skip_token(text, p), 0, n_hard, row - job.row, unsorted
            # Nearly every value is [-]digits[.digits] and a blank, of 19 digits at most. They are parsed here, where
            # the compiler keeps everything in registers; a call of parse_number for each takes a third longer.
            at = p + 1
            negative = text[np.uint64(at)] == 45
            if negative:
                at += 1
            mark = at
            w = np.uint64(0)
            d = np.uint64(text[np.uint64(at)]) - np.uint64(48)
            while d < np.uint64(10):
                w = w * np.uint64(10) + d
                at += 1
                d = np.uint64(text[np.uint64(at)]) - np.uint64(48)
            digits = at - mark
            places = 0
            if text[np.uint64(at)] == 46:
                at += 1
                mark = at
                d = np.uint64(text[np.uint64(at)]) - np.uint64(48)
                while d < np.uint64(10):
                    w = w * np.uint64(10) + d
                    at += 1
                    d = np.uint64(text[np.uint64(at)]) - np.uint64(48)
                places = at - mark
                digits += places
            status = FINE
            bad = False
            if 0 < digits <= 19 and (text[np.uint64(at)] == 32 or text[np.uint64(at)] == 10):
                p = at
                if digits <= 15:
                    value = np.float64(np.int64(w)) / POWERS_OF_TEN[np.uint64(places)]
                else:
                    value = round_decimal(w, -places)
                if negative:
                    value = -value
            else:
                value, p, status = parse_number(text, p + 1)
                bad = status == BAD or not ends_token(text[np.uint64(p)]) or (status == FINE and not np.isfinite(value))
            if bad or (job.in_single and abs(value) >= _LARGEST_SINGLE):
                return Problem.VALUE, line, first, skip_token(text, first), number, n_hard, row - job.row, unsorted
            column = number - first_id
            if column < 0:
                return Problem.ID_ZERO, line, first, p, number, n_hard, row - job.row, unsorted
            if column >= n_columns:
                return Problem.ID_TOO_HIGH, line, first, p, number, n_hard, row - job.row, unsorted
            if job.dense:
                if seen[np.uint64(column)] == row:
                    return Problem.TWICE, line, first, p, number, n_hard, row - job.row, unsorted
                seen[np.uint64(column)] = row
                at = base + number
            else:
                if number <= previous:
                    unsorted = True
                previous = number
                at = entry
                out.indices[np.uint64(at)] = column
            entry += 1
            if status == HARD:
                hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = first, p, line, at
                n_hard += 1
            if job.in_single:
                out.single[np.uint64(at)] = np.float32(value)
            else:
                out.double[np.uint64(at)] = value
        if job.with_qid and not has_qid:
            return Problem.QID_MISSING, line, first, first, 0, n_hard, row - job.row, unsorted
        if job.text_qid:
            out.qid_ends[row] = qid_byte
        if len(out.comment_ends):
            out.comment_ends[row] = comment_byte
        row += 1
        if not job.dense:
            out.indptr[row] = entry
        p += 1
    seen[len(seen) - 1] = entry - job.entry
    return Problem.NONE, line, p, p, 0, n_hard, row - job.row, unsorted
