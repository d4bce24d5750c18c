"""Data in parts of whole queries, drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls._queries import QueryLayout, query_layout


def query_parts(qid: Any, shares: Sequence[float], seed: int) -> list[NDArray[np.intp]]:
    """Rows of each part, ascending, in the sizes nearest to the shares of the queries.

    Which part a query comes to depends on the seed and on the ids, not on the order of the rows.

    Raises
    ------
    InputError
        If a part would be empty.
    """
    layout = query_layout(qid, len(qid))
    return [_rows(layout, queries) for queries in _drawn(layout, shares, seed)]


def query_folds(qid: Any, k: int, seed: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]]:
    """Rows to train, validate and test of each of k folds: a k-th of the queries to test, the next to validate."""
    layout = query_layout(qid, len(qid))
    parts = _drawn(layout, [1.0] * k, seed)
    out = []
    for i in range(k):
        rest = [parts[j] for j in range(k) if j not in (i, (i + 1) % k)]
        fold = (np.concatenate(rest), parts[(i + 1) % k], parts[i])
        out.append((_rows(layout, fold[0]), _rows(layout, fold[1]), _rows(layout, fold[2])))
    return out


def _drawn(layout: QueryLayout, shares: Sequence[float], seed: int) -> list[NDArray[np.intp]]:
    """Numbers of the queries of each part."""
    n = layout.n_queries
    ends = np.round(np.cumsum(shares) / np.sum(shares) * n).astype(int)
    if (np.diff(ends, prepend=0) == 0).any():
        raise InputError(f"{n} queries are too few for {len(shares)} parts of these shares: one would be empty.")
    # drawn from the sorted ids, so that the order of the rows does not matter
    order = np.array(sorted(range(n), key=lambda k: str(layout.ids[k])))
    return np.split(np.random.default_rng(seed).permutation(order), ends[:-1])


def _rows(layout: QueryLayout, queries: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.flatnonzero(np.isin(layout.codes, queries))
