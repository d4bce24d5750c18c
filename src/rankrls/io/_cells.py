"""A compiled pass over delimited text: numbers into arrays, other cells as places in the text."""

from __future__ import annotations

import numpy as np

from rankrls._compiled.jit import compiled
from rankrls.io._decimal import FINE, parse_number

__all__ = ["CLOSING", "ENOUGH", "RAGGED", "SKIP", "TEXT", "UNFINISHED", "parse_rows"]

SKIP, TEXT = -1, -2
"""What becomes of a column: nothing; ``TEXT - k`` is text column k; from 0 on, a column of numbers."""

ENOUGH, RAGGED, CLOSING, UNFINISHED = 0, 1, 2, 3
"""How a pass ends: at the end of the text; at a row of the wrong length; at text behind a closing quote; in a quote."""


@compiled
def parse_rows(text, start, size, delimiter, columns, values, spans, odd, lines):  # type: ignore[no-untyped-def]
    """Parse the rows of ``text[start:size]``, whose last byte is a line end.

    A cell is what stands between delimiters; one that begins with a quote goes on to the closing quote, and two quotes
    in it stand for one. Blank lines are skipped.

    Parameters
    ----------
    text : uint8 ndarray
    start, size : int
    delimiter : int
        A byte.
    columns : int64 ndarray of shape (columns,)
        What becomes of each (see ``SKIP``).
    values : float64 ndarray of shape (rows at most, numbers)
        Filled.
    spans : int64 ndarray of shape (rows at most, text columns, 2)
        Filled: first byte and end of each text cell, without its quotes.
    odd : int64 ndarray of shape (cells of numbers at most, 4)
        Filled with cells that are no plain decimal: row, column, first byte, end.
    lines : int64 ndarray of shape (rows at most,)
        Filled: the line in which each row begins, from 0.

    Returns
    -------
    status, rows, n_odd, stop, line, cells : int
        How it ended; rows that were read; rows of ``odd`` that were filled; where the first row begins that was not
        read, in which line, and how many cells it has.
    """
    n_columns = len(columns)
    row, n_odd, line = 0, 0, 0
    p = start
    while p < size:
        begin = p
        while text[np.uint64(p)] == 32 or text[np.uint64(p)] == 13:
            p += 1
        if text[np.uint64(p)] == 10:
            p += 1
            line += 1
            continue
        p = begin
        first_line = line
        column = 0
        while True:
            while text[np.uint64(p)] == 32:
                p += 1
            first = p
            kind = columns[np.uint64(column)] if column < n_columns else -1
            value, status = 0.0, 1
            if text[np.uint64(p)] == 34:
                p += 1
                first = p
                while True:
                    while p < size and text[np.uint64(p)] != 34:
                        line += text[np.uint64(p)] == 10
                        p += 1
                    if p >= size:
                        return 3, row, n_odd, begin, first_line, column
                    if p + 1 < size and text[np.uint64(p + 1)] == 34:
                        p += 2
                        continue
                    break
                end = p
                p += 1
                if kind >= 0:
                    value, stop, status = parse_number(text, first)
                    if status == FINE and stop != end:
                        status = 1
                while text[np.uint64(p)] == 32:
                    p += 1
                c = text[np.uint64(p)]
                if c != delimiter and c != 10 and c != 13:
                    return 2, row, n_odd, begin, first_line, column
            else:
                if kind >= 0:
                    value, p, status = parse_number(text, p)
                while text[np.uint64(p)] == 32:
                    p += 1
                c = text[np.uint64(p)]
                if c != delimiter and c != 10 and c != 13:
                    status = 1
                    while c != delimiter and c != 10 and c != 13:
                        p += 1
                        c = text[np.uint64(p)]
                end = p
                while end > first and text[np.uint64(end - 1)] == 32:
                    end -= 1
            if kind >= 0:
                if status == FINE and np.isfinite(value):
                    values[row, np.uint64(kind)] = value
                else:
                    odd[n_odd, 0], odd[n_odd, 1], odd[n_odd, 2], odd[n_odd, 3] = row, column, first, end
                    n_odd += 1
            elif kind <= -2:
                spans[row, -2 - kind, 0], spans[row, -2 - kind, 1] = first, end
            column += 1
            if text[np.uint64(p)] == delimiter:
                p += 1
                continue
            break
        while text[np.uint64(p)] == 13:
            p += 1
        if text[np.uint64(p)] != 10:  # a carriage return inside a line
            return 2, row, n_odd, begin, first_line, column
        p += 1
        line += 1
        if column != n_columns:
            return 1, row, n_odd, begin, first_line, column
        lines[row] = first_line
        row += 1
    return 0, row, n_odd, p, line, 0
