"""Scaled features of a data set: scalers fitted to all rows, and parts that are scaled when they are read."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass, replace
from types import SimpleNamespace
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
        table: Any = self.part.read()
        X = self.scaler.transform(table.X, **_query_ids(self.scaler, table))
        known: Any = {**vars(table), "X": X}
        return replace(table, X=X) if is_dataclass(table) else SimpleNamespace(**known)  # type: ignore[type-var]


@dataclass(frozen=True, eq=False)
class Scaled:
    """A data set whose features are scaled.

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

    @property
    def parts(self) -> tuple[ScaledPart, ...]:
        """The parts, scaled."""
        return tuple(ScaledPart(part, self.scaler) for part in self.data.parts)


def fit_scaler(scaler: Any, data: Any) -> Scaled:
    """A data set scaled by a scaler that is fitted to all of its rows, read one part after another.

    Parameters
    ----------
    scaler : StandardScaler, MinMaxScaler or MaxAbsScaler of scikit-learn, or a scaler of queries
        Fitted here. Scalers of queries keep nothing of the rows: they are fitted to the first part.
    data : Dataset
    """
    if type(scaler).__module__.startswith("rankrls."):
        table = data.parts[0].read()
        return Scaled(data, scaler.fit(table.X, qid=table.qid))
    for part in data.parts:
        scaler.partial_fit(part.read().X)
    return Scaled(data, scaler)


def _query_ids(scaler: Any, table: Any) -> dict[str, Any]:
    """What a scaler of queries needs beside the features."""
    return {"qid": table.qid} if getattr(scaler, "fitted_with_qid_", False) else {}
