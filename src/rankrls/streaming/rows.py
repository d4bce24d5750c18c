"""Rows of a part: labelled and checked, or with scaled features."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import Setting
from rankrls._errors import InputError
from rankrls._rows import check_finite_features
from rankrls.numerics.graph import Array, Index, LabelledGraph


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of whole queries with finite values; those of weight zero are left out.

    Attributes
    ----------
    X : ndarray or csr_array of shape (m, n)
    y : ndarray of shape (m,)
    queries : ndarray of shape (m,)
        The number of each row's query, ascending from 0.
    weights : ndarray of shape (m,), or None
    """

    X: Any
    y: Array
    queries: Index
    weights: Array | None

    @classmethod
    def read(cls, part: Any) -> LabelledRows:
        """The rows of a part.

        Raises
        ------
        InputError
            For labels, weights and features that are not finite; ``row`` is the running number in the data set.
        """
        table = part.read()
        y, weights = np.asarray(table.y, dtype=np.float64), table.sample_weight
        _check(part, np.isfinite(y), y, "y", "every row needs a finite label")
        check_finite_features(table.X, None, products=True, first_row=part.first_row)
        queries = query_numbers(table.qid)
        if weights is None:
            return cls(table.X, y, queries, None)
        weights = np.asarray(weights, dtype=np.float64)
        good = np.isfinite(weights) & (weights >= 0.0)
        _check(part, good, weights, "sample_weight", "weights must be finite and not negative")
        kept = np.flatnonzero(weights)
        X = table.X if len(kept) == len(y) else table.X[kept]
        return cls(X, y[kept], query_numbers(queries[kept]), weights[kept])

    @property
    def starts(self) -> Index:
        """Where each query begins, and the number of rows."""
        return np.searchsorted(self.queries, np.arange(self.queries[-1] + 2)) if len(self.y) else np.zeros(1, np.intp)

    def graph(self, setting: Setting) -> LabelledGraph:
        """The comparisons of the rows."""
        how = {"ties": setting.ties, "balance": setting.balance, "regression_weight": setting.regression_weight}
        return LabelledGraph.build(self.y, self.queries, weights=self.weights, **how)


def query_numbers(qid: NDArray[Any]) -> Index:
    """The number of each row's query, of rows that are grouped by query."""
    new = np.concatenate((np.zeros(min(1, len(qid)), dtype=bool), qid[1:] != qid[:-1]))
    return np.cumsum(new, dtype=np.intp)


def _check(part: Any, good: NDArray[np.bool_], values: Array, name: str, rule: str) -> None:
    if not good.all():
        at = int(np.argmin(good))
        row = part.first_row + at
        raise InputError(f"{name} is {values[at]} in row {row}: {rule}.", parameter=name, row=row)


@dataclass(frozen=True, eq=False)
class ScaledPart:
    """A part whose features are scaled when it is read."""

    part: Any
    scaler: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "part":
            raise AttributeError(name)
        return getattr(self.part, name)

    def read(self) -> Any:
        """The rows, scaled."""
        table = self.part.read()
        queries = {"qid": table.qid} if getattr(self.scaler, "fitted_with_qid_", False) else {}
        return replace(table, X=self.scaler.transform(table.X, **queries))


def scaled(data: Any, scaler: Any) -> Any:
    """A data set whose features are scaled by a fitted scaler of rows, or of whole queries."""
    out = copy(data)
    object.__setattr__(out, "parts", tuple(ScaledPart(part, scaler) for part in data.parts))
    return out


def fit_scaler(scaler: Any, data: Any) -> None:
    """Fit a scaler to all rows of a data set, read one part after another.

    Parameters
    ----------
    scaler : StandardScaler, MinMaxScaler or MaxAbsScaler of scikit-learn, or a scaler of queries
        Scalers of queries keep nothing of the rows: they are fitted to the first part.
    data : Dataset
    """
    if type(scaler).__module__.startswith("rankrls."):
        table = data.parts[0].read()
        scaler.fit(table.X, qid=table.qid)
        return
    for part in data.parts:
        scaler.partial_fit(part.read().X)
