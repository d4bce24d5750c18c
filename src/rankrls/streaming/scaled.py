"""Scaled features of a data set: scalers fitted to all rows, and parts that are scaled when they are read."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any


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
