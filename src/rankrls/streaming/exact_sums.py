"""Sums of floating-point numbers that have no rounding, and so do not depend on how the numbers are divided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankrls.selection.judging import Curve
from rankrls.streaming.sums import Answer

_UNIT = 1200
"""Sums are counted in units of ``2^-1200``, of which every float64 is a whole number."""
_HALF = 27
_SPLIT = 134217729.0


def exact_sums(values: NDArray[np.float64]) -> list[int]:
    """The sum of each column of finite numbers, in units of ``2^-1200``. O(rows x columns)."""
    columns = values.shape[1]
    if not values.size:
        return [0] * columns
    fraction, exponent = np.frexp(values)
    whole = (fraction * 2.0**53).astype(np.int64)
    first = int(exponent.min())
    kinds = int(exponent.max()) - first + 1
    place = ((exponent - first) + kinds * np.arange(columns)).ravel()
    # Of at most 2^26 rows these sums of whole numbers below 2^27 are exact in float64.
    parts = (whole >> _HALF, whole & ((1 << _HALF) - 1))
    high, low = (np.bincount(place, part.ravel(), columns * kinds).reshape(columns, kinds) for part in parts)
    shift = _UNIT - 53 + first
    out = []
    for column in range(columns):
        total = 0
        for k in np.flatnonzero((high[column] != 0.0) | (low[column] != 0.0)).tolist():
            part = (int(high[column, k]) << _HALF) + int(low[column, k])
            total += part << (shift + k)
        out.append(total)
    return out


@dataclass(frozen=True)
class JudgedSums(Answer):
    """Sums over queries of a measure under each value of a parameter; they add up without rounding.

    Attributes
    ----------
    counts : tuple of int
        Judged queries, of each value of the parameter.
    sums, squares, sizes : tuple of int
        Of the measure, its squares and its absolute values, in units of ``2^-1200``.
    endless : tuple of float
        The sum of the values that are not finite.
    """

    counts: tuple[int, ...]
    sums: tuple[int, ...]
    squares: tuple[int, ...]
    sizes: tuple[int, ...]
    endless: tuple[float, ...]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> JudgedSums:
        """Of values (queries, columns); NaN is a query that is not judged."""
        known, finite = ~np.isnan(values), np.isfinite(values)
        v = np.where(finite, values, 0.0)
        counts = known.sum(axis=0)
        endless = np.where(known & ~finite, values, 0.0).sum(axis=0)
        upper = v * _SPLIT
        upper -= upper - v
        lower = v - upper  # v^2 is the sum of three numbers without rounding (Dekker 1971)
        squares = exact_sums(np.concatenate((upper * upper, 2.0 * upper * lower, lower * lower)))
        sums, sizes = exact_sums(v), exact_sums(np.abs(v))
        return cls(tuple(counts.tolist()), tuple(sums), tuple(squares), tuple(sizes), tuple(endless.tolist()))

    def curve(self) -> Curve:
        """The mean of each value of the parameter and its standard error, each rounded once."""
        rows = zip(self.counts, self.sums, self.squares, self.sizes, self.endless, strict=True)
        mean, error, size = np.array([_statistics(*row) for row in rows]).T
        return Curve(mean, error, scale=size)


def _statistics(count: int, total: int, squares: int, size: int, endless: float) -> tuple[float, float, float]:
    if not count:
        return np.nan, np.nan, 0.0
    mean = total / (count << _UNIT) + endless
    if endless or count < 2:
        return mean, np.nan, size / (count << _UNIT)
    # sum of (v - mean)^2 = squares - total^2 / count, over count (count - 1)
    spread = (squares << _UNIT) * count - total**2
    error = float(np.sqrt(spread / ((count * count * (count - 1)) << (2 * _UNIT))))
    return mean, error, size / (count << _UNIT)
