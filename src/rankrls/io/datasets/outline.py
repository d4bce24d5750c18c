"""A compiled pass over LETOR text that looks at labels and query ids only."""

from __future__ import annotations

import numpy as np

from rankrls._compiled.jit import compiled
from rankrls.io._decimal import FINE, parse_number
from rankrls.io._parse import blank, skip_token, starts_qid, whole_number

__all__ = ["outline_block"]


@compiled
def outline_block(text, start, size, label, line, qid, first, last):  # type: ignore[no-untyped-def]
    """Labels and query ids of the rows of ``text[start:size]``, whole lines.

    Parameters
    ----------
    text : ndarray of uint8
    start, size : int
    label : ndarray of float64
        Labels; with room for as many rows as there are lines, as the others.
    line : ndarray of int64
        Each row's line, counted from 0 inside the text.
    qid : ndarray of int64
        Query ids, as far as they are whole numbers.
    first, last : ndarray of int64
        The bytes of the query ids.

    Returns
    -------
    rows : int
        How many rows there are.
    plain : bool
        Whether each has a label that could be read here, and a query id; if not, somebody has to read all of it.
    numbers : bool
        Whether all query ids are whole numbers.
    """
    row, at, p = 0, -1, start
    plain = numbers = True
    while p < size:
        at += 1
        while blank(text[np.uint64(p)]):
            p += 1
        c = text[np.uint64(p)]
        if c != 10 and c != 35:
            value, stop, status = parse_number(text, p)
            p = skip_token(text, p)
            if status != FINE or stop != p or not np.isfinite(value):
                plain = False
            label[row], line[row], found = value, at, False
            while True:
                while blank(text[np.uint64(p)]):
                    p += 1
                c = text[np.uint64(p)]
                if c == 10 or c == 35:
                    break
                if c == 113 and starts_qid(text, p):
                    p += 4
                    first[row] = p
                    p = skip_token(text, p)
                    last[row] = p
                    qid[row], whole = whole_number(text, first[row], p)
                    numbers = numbers and whole
                    found = p > first[row]
                    break
                p = skip_token(text, p)
            plain = plain and found
            row += 1
        while text[np.uint64(p)] != 10:
            p += 1
        p += 1
    return row, plain, numbers
