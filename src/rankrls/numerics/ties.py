"""Equal values for scores that differ by rounding only.

Scores that are equal on paper differ in their last digits, and their differences depend on the order of the rows.
Closeness within a tolerance is not transitive, so a measure that compared scores with a tolerance would not rank them
in a consistent order. Here tied scores get the same value once, and all code that counts ties compares with ``==``.
"""

from __future__ import annotations

import numpy as np

from rankrls._compiled import balanced_blocks, compiled, map_threads, n_threads
from rankrls._queries import QueryLayout
from rankrls._typing import Array, Index
from rankrls.numerics.eigen import EPS
from rankrls.numerics.runs import group_means

ROUNDED = 64.0
"""Error bound of computed scores, in units of rounding of the terms that they are the sum of."""
_SAME = 1e-10
"""Error bound of a model's scores, relative to their spread in a query: far below differences of interest."""


def tie(scores: Array, starts: Index, off: Array, levels: Array | None = None) -> None:
    """Give tied scores of a query the same value, in place.

    From the lowest score of a query upwards, a group contains the scores that differ from its first one by at most the
    sum of both error bounds. All of them get the value of the first one.

    Parameters
    ----------
    scores : ndarray of shape (columns, rows)
        In C order.
    starts : ndarray of shape (queries + 1,)
        First row of each query, and the number of rows.
    off : ndarray of shape (columns, rows)
        Error bound of each score.
    levels : ndarray of shape (columns, rows), optional
        One value per query that is then added to its scores, without making different scores equal.
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
    """Scores (rows, columns) with equal values for those of a query that differ by rounding only.

    Two scores are tied if they differ by at most ``2e-10`` times the largest deviation of a score from the mean of the
    query, plus 128 units of rounding of the query's largest score. O(m log m) per column, on all threads.

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
