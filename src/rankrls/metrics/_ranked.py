"""The compiled loop behind the measures that look at ranks: (N)DCG, precision, average precision, reciprocal rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls._compiled.pair_counts import column_strides, tiles, writable
from rankrls._compiled.sorting import sort_descending
from rankrls._compiled.threads import map_threads

_SUM, _PRECISIONS, _FIRST = 0, 1, 2
_KINDS = {"discounted": _SUM, "precisions": _PRECISIONS, "first": _FIRST}
_ROW, _AVERAGE, _THRESHOLD = 0, 1, 2
_TIES = {"row": _ROW, "docno": _ROW, "average": _AVERAGE, "threshold": _THRESHOLD}


@compiled
def _rank(kind, ties, values, discounts, flat, row_step, column_step, order, starts, tile, out):  # type: ignore[no-untyped-def]
    """Sweep each column of each query from the highest score down.

    Positions beyond ``len(discounts)`` are cut off. A group of equal scores is either walked in row order (a group of
    one each), or taken as a whole: expectations over its random order (average), or as if every item stood at the
    end of the group (threshold).
    """
    one = np.uint64(1)
    zero = np.uint64(0)
    longest = zero
    for q in range(np.uint64(tile[0]), np.uint64(tile[1])):
        longest = max(longest, np.uint64(starts[q + one] - starts[q]))
    keys = np.empty(longest)
    rows = np.empty(longest, np.uint64)
    spare_keys = np.empty(longest)
    spare_rows = np.empty(longest, np.uint64)
    v = np.empty(longest)
    step = np.uint64(row_step)
    depth = np.uint64(len(discounts))
    for q in range(np.uint64(tile[0]), np.uint64(tile[1])):
        first = np.uint64(starts[q])
        n = np.uint64(starts[q + one]) - first
        for i in range(n):
            v[i] = values[np.uint64(order[first + i])]
            rows[i] = i
        cut = min(n, depth)
        for column in range(np.uint64(tile[2]), np.uint64(tile[3])):
            offset = column * np.uint64(column_step)
            for i in range(n):
                keys[i] = flat[np.uint64(order[first + rows[i]]) * step + offset]
            sort_descending(keys, rows, spare_keys, spare_rows, n)
            tied = False
            for i in range(one, n):
                tied |= keys[i] == keys[i - one]
            if tied and ties == _ROW:  # in the order of the last column, which says nothing about this one
                for i in range(n):
                    keys[i] = flat[np.uint64(order[first + i]) * step + offset]
                    rows[i] = i
                sort_descending(keys, rows, spare_keys, spare_rows, n)
            result = 0.0
            hits = 0.0
            start = zero
            while start < cut:
                stop = start + one
                if ties != _ROW:
                    while stop < n and keys[stop] == keys[start]:
                        stop += one
                inside = 0.0
                for k in range(start, stop):
                    inside += v[rows[k]]
                size = np.float64(stop - start)
                end = min(stop, cut)
                if kind == _SUM:
                    weight = 0.0
                    for k in range(start, end):
                        weight += discounts[k]
                    result += weight * (inside / size)
                elif kind == _PRECISIONS:
                    if ties == _THRESHOLD:
                        result += inside * (hits + inside) / np.float64(stop)
                    elif inside > 0.0:
                        # A relevant item at place k of the group meets (k - 1)(r - 1)/(size - 1) others before it.
                        slope = (inside - 1.0) / (size - 1.0) if size > 1.0 else 0.0
                        for k in range(start, end):
                            before = hits + slope * np.float64(k - start)
                            result += (inside / size) * (before + 1.0) / np.float64(k + one)
                    hits += inside
                elif inside > 0.0:
                    # The first of r relevant items among the group's places.
                    missed = 1.0
                    for k in range(start, end):
                        left = size - np.float64(k - start)
                        found = min(inside / left, 1.0)
                        result += missed * found * discounts[k]
                        missed *= 1.0 - found
                        if missed <= 0.0:
                            break
                    break
                start = stop
            out[q, column] = result


def rank_sums(
    kind: str,
    values: NDArray[np.float64],
    scores: NDArray[np.float64],
    order: NDArray[np.intp],
    starts: NDArray[np.intp],
    *,
    discounts: NDArray[np.float64],
    ties: str,
) -> NDArray[np.float64]:
    """A sum over the positions of each query, for each column of scores.

    Parameters
    ----------
    kind : {"discounted", "precisions", "first"}
        ``sum_i value(i) discounts[position(i)]``: DCG, and with unit discounts hits. The sum of the precisions at the
        positions of the rows of value 1. The discount at the position of the first row of value 1, 0 without one.
    values : ndarray of shape (m,)
        What each row is worth: its gain; or 1 if it is relevant, else 0.
    scores : ndarray of shape (m, columns)
        Finite scores.
    order, starts : ndarray
        ``order[starts[q]:starts[q + 1]]`` are the rows of query q; equal scores come in this order.
    discounts : ndarray of shape (depth,)
        Positions beyond its length do not count. "precisions" does not look at its values.
    ties : {"row", "docno", "average", "threshold"}
        Equal scores one after another in the given order ("row" and "docno"), the expectation over their order, or
        (precisions only) all retrieved at once, whatever the depth.

    Returns
    -------
    ndarray of shape (q, columns)

    Notes
    -----
    O(columns m log m), threaded over tiles of queries and columns.
    """
    columns = scores.shape[1]
    out = np.zeros((len(starts) - 1, columns))
    flat, row_step, column_step = column_strides(scores)
    values, order, starts = writable(values, np.float64), writable(order, np.intp), writable(starts, np.intp)
    choice = _KINDS[kind], _TIES[ties]

    def run(tile: NDArray[np.intp]) -> None:
        _rank(*choice, values, discounts, flat, row_step, column_step, order, starts, tile, out)

    map_threads(run, tiles(starts, columns))
    return out
