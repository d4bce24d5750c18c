"""Scores that are equal but for rounding, made equal.

What is equal on paper differs in its last digits, and how it differs depends on the order of the rows. To be within a
tolerance of each other is not transitive, so that a measure that compared scores by a tolerance would rank them by no
order. Here tied scores get the same value once, and whatever counts ties compares by ``==``.
"""

from __future__ import annotations

import numpy as np

from rankrls._compiled import balanced_blocks, compiled, map_threads, n_threads
from rankrls._queries import QueryLayout
from rankrls._typing import Array, Index
from rankrls.numerics.eigen import EPS
from rankrls.numerics.runs import group_means

ROUNDED = 64.0
"""Units of rounding, of the terms of a sum, that computed scores may be off."""
_SAME = 1e-10
"""By how much scores of a model may be off, relative to their spread in a query: far less than what one looks for."""


def tie(scores: Array, starts: Index, off: Array, levels: Array | None = None) -> None:
    """Give tied scores of a query one value, in place.

    From the lowest score of a query up, a group holds the scores that differ from its first one by no more than both
    may be off. They all get the value of the first one.

    Parameters
    ----------
    scores : ndarray of shape (columns, rows)
        In C order.
    starts : ndarray of shape (queries + 1,)
        Where the rows of each query begin.
    off : ndarray of shape (columns, rows)
        By how much each score may be off.
    levels : ndarray of shape (columns, rows), optional
        A number of each query that is then added to its scores: no two different scores become equal by that.
    """
    order = np.empty(scores.shape, dtype=np.intp)
    for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        order[:, a:b] = np.argsort(scores[:, a:b], axis=1)
    _tie(scores, order, off, np.zeros_like(scores) if levels is None else levels, starts.astype(np.intp))


@compiled
def _tie(scores, order, off, levels, starts):  # type: ignore[no-untyped-def]
    for q in range(len(starts) - 1):
        a = starts[q]
        b = starts[q + 1]
        for k in range(len(scores)):
            own = scores[k, a:b]
            may = off[k, a:b]
            level = levels[k, a:b]
            rows = order[k, a:b]
            first = 0.0
            slack = 0.0
            value = -np.inf
            for i in range(b - a):
                row = rows[i]
                if i == 0 or not own[row] - first <= slack + may[row]:
                    first = own[row]
                    slack = may[row]
                    before = value
                    value = first + level[row]
                    if value <= before:
                        value = np.nextafter(before, np.inf)
                own[row] = value


def tied(scores: Array, layout: QueryLayout) -> Array:
    """Computed scores (rows, columns) in which those of a query that differ by rounding only are equal.

    Two scores are tied if they differ by at most ``2e-10`` of the largest difference of a score from the mean of its
    query, or by 128 units of rounding of the query's largest score. O(m log m) for each column, on all threads.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls._queries import query_layout
    >>> from rankrls.numerics.ties import tied
    >>> scores = np.array([[0.1 + 0.2], [0.3], [1e15]])
    >>> tied(scores, query_layout([1, 1, 2], 3))[:2, 0]
    array([0.3, 0.3])
    """
    columns = np.ascontiguousarray(scores[layout.order].T)
    starts = layout.starts
    lengths = np.diff(starts)
    largest = np.maximum.reduceat(np.abs(columns), starts[:-1], axis=1)
    means = group_means(columns, np.ones(len(scores)), starts)
    spread = np.maximum.reduceat(np.abs(columns - np.repeat(means, lengths, axis=1)), starts[:-1], axis=1)
    off = np.repeat(_SAME * spread + ROUNDED * EPS * largest, lengths, axis=1)

    def run(block: tuple[int, int]) -> None:
        queries = starts[block[0] : block[1] + 1]
        rows = slice(queries[0], queries[-1])
        own = np.ascontiguousarray(columns[:, rows])
        tie(own, queries - queries[0], np.ascontiguousarray(off[:, rows]))
        columns[:, rows] = own

    map_threads(run, balanced_blocks(starts, 4 * n_threads()))
    out = np.empty_like(scores)
    out[layout.order] = columns.T
    return out
