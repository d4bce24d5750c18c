"""Averages over queries that do not depend on the order of the queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sum_in_any_order(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of each column of (rows, columns), the same to the last bit in whatever order the rows come.

    Addition of floating-point numbers depends on their order, and queries come in the order of the rows. The values
    of a column are therefore sorted before they are added: a few times the cost of the sum, and less than that of an
    exact sum, which would not make equal averages of different values equal either.
    """
    return np.asarray(_sorted_columns(values).sum(axis=1))


def mean_of_judged(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of each column over the entries that are not NaN; NaN where there are none."""
    return _mean(_sorted_columns(values))


def mean_and_error(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean of each column over the entries that are not NaN, and its standard error, NaN for fewer than two."""
    columns = _sorted_columns(values)
    mean, count = _mean(columns), (~np.isnan(columns)).sum(axis=1)
    squares = np.nansum((columns - mean[:, None]) ** 2, axis=1)
    return mean, np.sqrt(ratio(squares, count * (count - 1.0)))


def ratio(numerator: NDArray[np.float64], denominator: NDArray[Any]) -> NDArray[np.float64]:
    """Numerator over denominator, NaN if the denominator is zero."""
    out = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out


def _sorted_columns(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column as a row, ascending, NaN last."""
    columns = np.array(values.T, order="C")
    columns.sort(axis=1)
    return columns


def _mean(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    return ratio(np.nansum(columns, axis=1), (~np.isnan(columns)).sum(axis=1))
