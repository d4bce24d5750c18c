"""Labels inside queries: their classes, and what a pair of items weighs."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankrls._queries import QueryLayout

Ties = Literal["include", "exclude"]
Balance = Literal["pairs", "examples", "queries"]


def group_sums(values: NDArray[np.float64], starts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Sums over runs of rows; every run holds at least one row."""
    if len(starts) == len(values) + 1:
        return np.asarray(values)
    return np.add.reduceat(values, starts[:-1], axis=0) if len(values) else values


def balance_factors(balance: str, query_weight: NDArray[np.float64], own: NDArray[np.float64]) -> NDArray[np.float64]:
    """``rho`` of each query.

    ``own`` is read under "queries" only: the sum of ``S_c^2`` over what is not compared with itself, that is over the
    classes where tied pairs are excluded and over the items where they are included.
    """
    if balance == "pairs":
        return np.ones(len(query_weight))
    if balance == "examples":
        return 1.0 / query_weight
    pairs = 0.5 * (query_weight**2 - own)
    # A single item leaves rounding noise where there is no pair at all.
    pairs[pairs <= 1e-14 * query_weight**2] = np.inf
    return 1.0 / pairs


def label_varies(y: NDArray[np.float64], layout: QueryLayout) -> NDArray[np.bool_]:
    """Whether each query holds two different labels, in any target."""
    if layout.n_rows == 0:
        return np.zeros(layout.n_queries, dtype=bool)
    sorted_y = layout.gather(y if y.ndim == 2 else y[:, None])
    first = np.repeat(sorted_y[layout.starts[:-1]], layout.counts, axis=0)
    return np.asarray(np.logical_or.reduceat((sorted_y != first).any(axis=1), layout.starts[:-1]))


def label_classes(
    y: NDArray[np.float64], layout: QueryLayout
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Rows ordered by query, then label: the order, the classes' boundaries and each class's query."""
    order = np.lexsort((y, layout.codes)).astype(np.intp, copy=False)
    q, z = layout.codes[order], y[order]
    new = np.ones(len(y), dtype=bool)
    new[1:] = (q[1:] != q[:-1]) | (z[1:] != z[:-1])
    heads = np.flatnonzero(new)
    return order, np.append(heads, len(y)).astype(np.intp), q[heads]
