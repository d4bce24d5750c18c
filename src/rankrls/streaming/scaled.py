"""Scaled features of a data set: a transform of its parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls.streaming.fitting import leaf_bytes
from rankrls.streaming.scaler_sums import ScalerJob, Spread
from rankrls.streaming.stream import Stream

__all__ = ["Scaled", "fit_scaler"]


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
