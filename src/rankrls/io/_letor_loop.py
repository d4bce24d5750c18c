"""Compiled pass over a block of LETOR text: rows, entries and query ids, up to the first bad line.

Values of up to 19 digits without an exponent are read here, if the digits are a whole number below 2**53. It and the
power of ten are then exact in float64, so that one division rounds once and correctly (Clinger 1990). Nearly all values
of real files are of this kind. Other words are left to pyarrow.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from rankrls._compiled import compiled
from rankrls._typing import AnyArray


class Found(NamedTuple):
    """Results of :func:`parse_block` for a block."""

    lines: int
    rows: int
    entries: int
    runs: int
    words: int
    least: int  # feature id
    largest: int
    unsorted: bool  # whether ids of some row do not ascend
    comments: bool  # whether there are any
    bad: int  # position of a byte of the first bad line, or -1


Room = tuple[AnyArray, ...]
"""Labels, ends of rows among the entries, starts of the rows' comments, line ends, line numbers, ids and values of the
entries, runs of rows of one query (first row, first and last byte of the id), and numbers of other forms (first
and last byte, the entry or -1 - row). Positions in the text are byte numbers."""


def room_for(size: int) -> Room:
    """Arrays for the largest content of a text of the given size; memory that is not written to costs nothing."""
    integers = partial(np.empty, dtype=np.int64)
    rows = size // 2 + 1
    entries = size // 3 + 1
    places = (integers(rows), integers(rows), integers(rows), integers(rows))
    return np.empty(rows), *places, integers(entries), np.empty(entries), integers((rows, 3)), integers((rows, 3))


_ONE = np.uint64(1)
_FOUR = np.uint64(4)
_TEN = np.uint64(10)
_ZERO = np.uint64(ord("0"))
_EXACT = np.uint64(1 << 53)
_LABEL_DIGITS = np.uint64(15)  # number of digits that is always below 2**53
_VALUE_DIGITS = np.uint64(19)  # number of digits that always fits uint64
_POWERS_OF_TEN = np.array([float(10**k) for k in range(20)])
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
def _token_end(text, p):  # type: ignore[no-untyped-def]
    while not _ends_token(text[p]):
        p += _ONE
    return p


@compiled
def _digits(text, p, number):  # type: ignore[no-untyped-def]
    """Append digits to a whole number; returns the position after them."""
    d = np.uint64(text[p]) - _ZERO
    while d < _TEN:
        number = number * _TEN + d
        p += _ONE
        d = np.uint64(text[p]) - _ZERO
    return number, p


@compiled
def _write(table, row, first, second, third):  # type: ignore[no-untyped-def]
    table[row, 0] = first
    table[row, 1] = second
    table[row, 2] = third


@compiled
def _same(text, first, last, start, stop):  # type: ignore[no-untyped-def]
    """Whether two words of a text are equal."""
    same = last - first == stop - start
    while same and first < last:
        same = text[first] == text[start]
        first = first + _ONE
        start = start + _ONE
    return same


@compiled
def parse_block(text, least, largest, room):  # type: ignore[no-untyped-def]
    """Parse whole lines, up to the first one whose entries have no valid ids.

    Parameters
    ----------
    text : ndarray of uint8
        Text whose last byte is a line end, so that inner loops need not check bounds.
    least, largest : int
        Smallest and largest accepted feature id.
    room : Room
        Arrays for the results.
    """
    labels, ends, comments, stops, numbers, ids, values, runs, words = room
    p = np.uint64(0)
    size = np.uint64(len(text))
    lines = 0
    row = 0
    entry = np.uint64(0)
    run = 0
    n_words = 0
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
            p += _ONE
        first = p
        if text[p] == 10 or text[p] == 35:
            while text[p] != 10:
                p += _ONE
            p += _ONE
            continue
        digits, p = _digits(text, first, np.uint64(0))
        labels[row] = np.float64(np.int64(digits))
        if p == first or p - first > _LABEL_DIGITS or not _ends_token(text[p]):
            p = _token_end(text, p)
            _write(words, n_words, np.int64(first), np.int64(p), -1 - row)
            n_words += 1
        qid = p
        qid_end = p
        before = np.int64(-1)
        while bad < 0:
            if text[p] == 32:
                p += _ONE
            first = p
            if np.uint64(text[p]) - _ZERO >= _TEN:  # rare: features usually follow a single blank
                while _blank(text[p]):
                    p += _ONE
                first = p
                c = text[p]
                if c == 10 or c == 35:
                    break
                if c == 113 and text[p + _ONE] == 105 and text[p + _ONE + _ONE] == 100 and text[p + _FOUR - _ONE] == 58:
                    p += _FOUR  # qid:
                    if qid_end > qid or _ends_token(text[p]):
                        bad = np.int64(first)
                    qid = p
                    p = _token_end(text, p)
                    qid_end = p
                    continue
            digits, p = _digits(text, first, np.uint64(0))
            if text[p] != 58 or p == first or p - first > _ID_DIGITS:
                bad = np.int64(first)
                break
            number = np.int64(digits)
            first = p + _ONE
            negative = text[first] == 45
            start = first + np.uint64(negative)
            digits, p = _digits(text, start, np.uint64(0))
            count = p - start
            places = np.uint64(0)
            if text[p] == 46:
                start = p + _ONE
                digits, p = _digits(text, start, digits)
                places = p - start
                count += places
            if count - _ONE < _VALUE_DIGITS and digits < _EXACT and _ends_token(text[p]):
                value = np.float64(np.int64(digits)) / _POWERS_OF_TEN[places]
                values[entry] = -value if negative else value
            else:
                p = _token_end(text, p)
                _write(words, n_words, np.int64(first), np.int64(p), np.int64(entry))
                n_words += 1
            unsorted = unsorted or number <= before
            before = number
            if number < lowest or number > highest:
                lowest = min(lowest, number)
                highest = max(highest, number)
                if number < least or number > largest:
                    bad = np.int64(first)
            ids[entry] = number
            entry += _ONE
        if bad >= 0:
            break
        if row == 0 or not _same(text, last_qid, last_qid_end, qid, qid_end):
            _write(runs, run, row, np.int64(qid), np.int64(qid_end))
            run += 1
            last_qid = qid
            last_qid_end = qid_end
        if text[p] == 35:
            with_comments = True
            p += _ONE
        comments[row] = p
        while text[p] != 10:
            p += _ONE
        stops[row] = p
        ends[row] = entry
        numbers[row] = lines
        row += 1
        p += _ONE
    return Found(lines, row, np.int64(entry), run, n_words, lowest, highest, unsorted, with_comments, bad)


@compiled
def scatter(ends, ids, shift, values, X):  # type: ignore[no-untyped-def]
    """Write the entries of rows into a dense array, feature ``shift`` into its first column."""
    entry = 0
    for row in range(len(ends)):
        while entry < ends[row]:
            X[row, ids[entry] - shift] = values[entry]
            entry += 1
