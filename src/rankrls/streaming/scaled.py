"""Scaled features of a data set: a transform of its parts, and what scalers of scikit-learn learn of all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from rankrls._errors import InputError
from rankrls.streaming.fitting import leaf_bytes
from rankrls.streaming.stream import Stream
from rankrls.streaming.sums import Adding, Answer

_LEARNED = ("mean_", "var_", "data_min_", "data_max_", "max_abs_")


@dataclass(frozen=True)
class Spread(Answer):
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
        both = (
            (np.minimum, self.low, other.low),
            (np.maximum, self.high, other.high),
            (np.maximum, self.most, other.most),
        )
        return Spread(rows, mean, var, *(None if a is None else function(a, b) for function, a, b in both))


@dataclass(frozen=True)
class ScalerJob(Adding):
    """What a scaler of scikit-learn learns of all rows: StandardScaler, MinMaxScaler or MaxAbsScaler."""

    scaler: Any

    def leaf(self, part: Any) -> Spread:
        """Of a part."""
        if not len(part.y):
            return Spread(0)
        found = clone(self.scaler).fit(part.X)
        return Spread(len(part.y), *(getattr(found, name, None) for name in _LEARNED))


@dataclass(frozen=True, eq=False)
class Scaled:
    """A data set whose features are transformed when a part is read.

    Attributes
    ----------
    data : Dataset
    scaler : fitted transformer
        Of rows, or of whole queries (:mod:`rankrls.preprocessing`).
    """

    data: Any
    scaler: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "data":
            raise AttributeError(name)
        return getattr(self.data, name)

    def read(self, address: Any, *, names: bool = False) -> Any:
        """A part with its features transformed."""
        part = self.data.read(address, names=names)
        if not len(part.y):
            return part
        if not _by_query(self.scaler):
            return replace(part, X=self.scaler.transform(part.X))
        if part.piece is not None and part.piece.n_pieces > 1:
            raise InputError(
                "Query {0} is longer than a part: its features cannot be scaled inside the query.",
                part.piece.query,
                remedy="Open the data set with more rows a part, or scale by all rows.",
                parameter="scale",
            )
        return replace(part, X=self.scaler.transform(part.X, qid=part.query))

    def describe(self) -> dict[str, Any]:
        """The data, and how they are scaled."""
        found = self.data.describe()
        kept = {k: v.tolist() for k, v in sorted(vars(self.scaler).items()) if isinstance(v, np.ndarray | np.floating)}
        return {**found, "scaler": type(self.scaler).__name__, "scaled_by": kept}


def fit_scaler(scaler: Any, data: Any, *, executor: Any = None, memory: Any = None, checkpoint: Any = None) -> Scaled:
    """A scaler fitted to a data set, and the data set scaled: one pass for a scaler of rows, a part for one of queries.

    Parameters
    ----------
    scaler : StandardScaler, MinMaxScaler or MaxAbsScaler of scikit-learn, or a scaler of queries
    data : Dataset
    executor, memory, checkpoint : as in :meth:`rankrls.RankRLS.fit_dataset`
    """
    if type(scaler).__module__.startswith("rankrls."):
        part = next(part for part in map(data.read, data.parts) if len(part.y))
        return Scaled(data, scaler.fit(part.X, qid=part.query))
    size = leaf_bytes(data.n_features, 0)
    stream = Stream(data, executor=executor, memory=memory, leaf_bytes=size, checkpoint=checkpoint)
    _take(scaler, stream.run(ScalerJob(scaler), "scaler"))
    return Scaled(data, scaler)


def _take(scaler: Any, found: Spread) -> None:
    """Fit a scaler by what is known of all rows, as if it had seen them."""
    known = [found.low, found.high] if found.low is not None else [found.most if found.mean is None else found.mean]
    scaler.fit(np.vstack(known))
    scaler.n_samples_seen_ = found.rows
    if found.mean is None:
        return
    scaler.mean_, scaler.var_ = found.mean, found.var
    if found.var is not None:
        eps = float(np.finfo(np.float64).eps)
        constant = found.var <= found.rows * eps * found.var + (found.rows * found.mean * eps) ** 2
        scaler.scale_ = np.where(constant, 1.0, np.sqrt(found.var))


def _by_query(scaler: Any) -> bool:
    return bool(getattr(scaler, "fitted_with_qid_", False))
