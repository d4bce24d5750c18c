"""What scalers of scikit-learn learn of rows, as sums over parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

__all__ = ["ScalerJob", "Spread"]

_LEARNED = ("mean_", "var_", "data_min_", "data_max_", "max_abs_")


@dataclass(frozen=True)
class Spread:
    """What a scaler knows of the rows of some parts.

    Attributes
    ----------
    rows : int
    mean, var, low, high, most : ndarray of shape (n,) or None
        Of each feature the mean, the variance, the ends, and the largest absolute value; None for what the scaler does
        not look at.
    """

    rows: int
    mean: Any = None
    var: Any = None
    low: Any = None
    high: Any = None
    most: Any = None

    def __add__(self, other: Spread) -> Spread:
        if not self.rows or not other.rows:
            return self if self.rows else other
        rows = self.rows + other.rows
        mean, var, share = self.mean, self.var, other.rows / rows
        if mean is not None:
            step = other.mean - mean
            mean = mean + share * step
            if var is not None:  # Chan, Golub, LeVeque 1983
                var = (1.0 - share) * var + share * other.var + share * (1.0 - share) * step**2
        ends = [
            None if a is None else function(a, b)
            for function, a, b in (
                (np.minimum, self.low, other.low),
                (np.maximum, self.high, other.high),
                (np.maximum, self.most, other.most),
            )
        ]
        return Spread(rows, mean, var, *ends)


@dataclass(frozen=True)
class ScalerJob:
    """What a scaler of scikit-learn learns of all rows: StandardScaler, MinMaxScaler or MaxAbsScaler."""

    scaler: Any

    def leaf(self, part: Any) -> Spread:
        """Of a part."""
        if not len(part.y):
            return Spread(0)
        found = clone(self.scaler).fit(part.X)
        return Spread(len(part.y), *(getattr(found, name, None) for name in _LEARNED))

    def merge(self, a: Spread, b: Spread) -> Spread:
        """Of both."""
        return a + b
