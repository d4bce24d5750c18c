"""The compiled pass that counts what LETOR text holds, and notes where its rows are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls.io._decimal import FINE, ONE, TEN, ZERO, parse_number
from rankrls.io._parse import ID_DIGITS, blank, comment, skip_token, starts_qid, whole_number


class Sums:
    """Places in the counts that :func:`scan_block` returns."""

    LINES, ROWS, ENTRIES, LEAST_ID, LARGEST_ID, FIRST_HAS_QID, TEXT_QID, QID_BYTES, COMMENT_BYTES = range(9)
    COUNT = 9


class RowsSeen(NamedTuple):
    """What is noted of each row: bytes are counted in the text, lines from 0 in the block."""

    label: NDArray[np.float64]
    line: NDArray[np.int64]
    begin: NDArray[np.int64]  # the first byte of the row's line
    qid: NDArray[np.int64]  # as far as ids are whole numbers
    first: NDArray[np.int64]  # the bytes of the id
    last: NDArray[np.int64]

    @staticmethod
    def room(rows: int) -> RowsSeen:
        """Room for so many rows."""
        return RowsSeen(np.empty(rows), *np.empty((5, rows), dtype=np.int64))

    def head(self, rows: int) -> RowsSeen:
        """The first rows."""
        label, *others = self
        return RowsSeen(label[:rows], *(values[:rows] for values in others))


_LEAST, _LARGEST = Sums.LEAST_ID, Sums.LARGEST_ID
_LINES, _ROWS, _ENTRIES, _HAS_QID = Sums.LINES, Sums.ROWS, Sums.ENTRIES, Sums.FIRST_HAS_QID
_TEXT_QID, _QID_BYTES, _COMMENT_BYTES, _COUNT = Sums.TEXT_QID, Sums.QID_BYTES, Sums.COMMENT_BYTES, Sums.COUNT
_FOUR = np.uint64(4)
_NO_ID = np.iinfo(np.int64).max


@compiled
def scan_block(text, start, size, seen):  # type: ignore[no-untyped-def]
    """Count what ``text[start:size]`` holds, without judging it, and note its rows as far as there is room.

    Parameters
    ----------
    text : ndarray of uint8
        The last byte is a line end, so that no inner loop checks bounds.
    start, size : int
    seen : RowsSeen
        Written.

    Returns
    -------
    sums : ndarray of int64
        Laid out as :class:`Sums`. An entry is counted wherever :func:`rankrls.io._parse.parse_block` could write one.
    plain : bool
        Whether every row was noted, with a label that could be read here, and with a query id.
    """
    sums = np.zeros(_COUNT, dtype=np.int64)
    sums[_LEAST] = _NO_ID
    sums[_LARGEST] = -1
    least, largest, entries = sums[_LEAST], sums[_LARGEST], 0
    room, row, plain = len(seen.label), -1, True
    p, end = np.uint64(start), np.uint64(size)
    while p < end:
        begin = p
        sums[_LINES] += 1
        while blank(text[p]):
            p += ONE
        c = text[p]
        if c == 10 or c == 35:
            while text[p] != 10:
                p += ONE
            p += ONE
            continue
        sums[_ROWS] += 1
        row += 1
        noted, found = row < room, False
        if noted:
            value, stop, status = parse_number(text, p)
            seen.label[row], seen.line[row], seen.begin[row] = value, sums[_LINES] - 1, begin
            p = skip_token(text, p)
            noted = status == FINE and stop == p and np.isfinite(value)
        else:
            p = skip_token(text, p)
        while True:
            while blank(text[p]):
                p += ONE
            c = text[p]
            if c == 10:
                break
            if c == 35:
                first, last, p = comment(text, p)
                sums[_COMMENT_BYTES] += last - first
                break
            if c == 113 and starts_qid(text, p):
                first = p + _FOUR
                p = skip_token(text, first)
                if sums[_ROWS] == 1:
                    sums[_HAS_QID] = 1
                sums[_QID_BYTES] += p - first
                number, whole = whole_number(text, first, p)
                if not whole:
                    sums[_TEXT_QID] = 1
                if row < room and not found:
                    seen.qid[row], seen.first[row], seen.last[row] = number, first, p
                    found = p > first
                continue
            number = 0
            first = p
            d = np.uint64(c) - ZERO
            while d < TEN:
                number = number * 10 + np.int64(d)
                p += ONE
                d = np.uint64(text[p]) - ZERO
            if text[p] == 58 and p != first and p - first <= ID_DIGITS:
                entries += 1
                least = min(least, number)
                largest = max(largest, number)
            p = skip_token(text, p)
        plain = plain and noted and found
        p += ONE
    sums[_LEAST], sums[_LARGEST], sums[_ENTRIES] = least, largest, entries
    return sums, plain
