"""Averages over queries, where NaN is a query that is not evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def mean_of_judged(values: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Mean of each column of (queries, columns) over the entries that are not NaN; NaN where there are none."""
    known = ~np.isnan(values)
    w = known if weights is None else known * weights[:, None]
    return ratio((np.where(known, values, 0.0) * w).sum(axis=0), w.sum(axis=0))


def mean_and_error(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean of each column over the entries that are not NaN, and its standard error, NaN for fewer than two."""
    mean, count = mean_of_judged(values), (~np.isnan(values)).sum(axis=0)
    squares = np.nansum((values - mean) ** 2, axis=0)
    return mean, np.sqrt(ratio(squares, count * (count - 1.0)))


def ratio(numerator: NDArray[np.float64], denominator: NDArray[Any]) -> NDArray[np.float64]:
    """Numerator over denominator, NaN if the denominator is not positive."""
    out = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out
