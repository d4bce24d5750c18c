"""Dask collections as data sets: a part is a partition of whole queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from dask import array, delayed
from distributed import default_client
from numpy.typing import NDArray
from scipy import sparse

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.streaming.executors import check_workers


@dataclass(frozen=True, eq=False)
class Rows:
    """A partition as arrays, its rows grouped by query: a part where it is worked on."""

    X: Any
    y: NDArray[np.float64]
    qid: NDArray[Any]
    sample_weight: NDArray[np.float64] | None
    first_row: int
    ids: None = None

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return len(self.y)

    def read(self) -> Rows:
        """The rows."""
        return self


@dataclass(frozen=True)
class DaskPart:
    """A partition that has not been computed; ``delayed`` gives its :class:`Rows`."""

    delayed: Any
    first_row: int
    n_rows: int

    def read(self) -> Rows:
        """The rows, computed in this thread."""
        rows: Rows = self.delayed.compute(scheduler="synchronous")
        return rows


@dataclass(frozen=True, eq=False)
class DaskData:
    """A Dask collection as a data set."""

    parts: tuple[DaskPart, ...]
    n_features: int
    n_queries: int
    feature_names: tuple[str, ...] | None
    executor: Any

    @property
    def n_rows(self) -> int:
        """Rows of all partitions."""
        return sum(part.n_rows for part in self.parts)


def collected(X: Any, y: Any, qid: Any, weight: Any) -> DaskData:
    """A collection whose partitions hold whole queries: a data frame is shuffled by query if they do not.

    Raises
    ------
    InputError
        For what is no Dask collection; for partitions that do not agree; and for arrays with a query in two chunks.
    """
    if not hasattr(X, "__dask_graph__"):
        problem = f"X must be a Dask data frame or array; got {type(X).__name__}. Use rankrls for others."
        raise InputError(problem, parameter="X")
    client = _client()
    X, known, names = _features(X, {"y": y, "qid": qid, "sample_weight": weight})
    found = _queries(known["qid"])
    if _straddle(found):
        if isinstance(X, array.Array):
            problem = "a query lies in two chunks of the arrays: rechunk so that each chunk holds whole queries."
            raise InputError(problem, parameter="qid")
        X, known = _shuffled(X, known)
        found = _queries(known["qid"])
    features = _blocks(X)
    others = {name: _blocks(column) for name, column in known.items() if column is not None}
    for name, blocks in others.items():
        if len(blocks) != len(features):
            problem = f"{name} has {len(blocks)} partitions, X has {len(features)}. Take them from the same data frame."
            raise InputError(problem, parameter=name)
    sizes = [len(ids) for ids in found]
    starts = np.cumsum([0, *sizes]).tolist()
    make, columns = delayed(_rows), [others.get(name, [None] * len(features)) for name in known]
    rows = [make(*each) for each in zip(range(len(features)), starts, features, *columns, strict=False)]
    parts = tuple(DaskPart(*each) for each in zip(rows, starts, sizes, strict=False))
    n = len(names) if names is not None else int(X.shape[1])
    return DaskData(parts, n, len({query for ids in found for query in ids.tolist()}), names, client)


def _client() -> Any:
    """The client that Dask would take, if there is one."""
    try:
        client = default_client()
    except ValueError:
        return None
    check_workers(client)
    return client


def _queries(qid: Any) -> list[NDArray[Any]]:
    """The query ids of each partition."""
    return [np.asarray(ids) for ids in dask.compute(*_blocks(qid))]


def _straddle(found: list[NDArray[Any]]) -> bool:
    """Whether a query lies in two partitions."""
    different = [set(ids.tolist()) for ids in found]
    return len(set().union(*different)) < sum(map(len, different))


def _features(X: Any, given: dict[str, Any]) -> tuple[Any, dict[str, Any], tuple[str, ...] | None]:
    """Columns that are named are taken from X; what is left are features."""
    if isinstance(X, array.Array):
        check_chunks(X)
        columns = {
            name: None if value is None else array.asarray(value).rechunk((X.chunks[0],))
            for name, value in given.items()
        }
        return X, columns, None
    named = [value for value in given.values() if isinstance(value, str)]
    columns = {name: X[value] if isinstance(value, str) else value for name, value in given.items()}
    X = X.drop(columns=named) if named else X
    return X, columns, tuple(map(str, X.columns))


def check_chunks(X: Any) -> None:
    """Refuse an array whose rows are in pieces."""
    if X.ndim != 2 or len(X.chunks[1]) > 1:
        problem = (
            f"X must be a matrix in chunks of whole rows; it has chunks {X.chunks}. rechunk({{1: -1}}) makes it so."
        )
        raise InputError(problem, parameter="X")


def _blocks(collection: Any) -> list[Any]:
    return list(np.ravel(collection.to_delayed()))


def _shuffled(X: Any, known: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Every query in one partition, its rows in the order in which they were."""
    from dask import dataframe

    features = list(X.columns)
    extra = {f"_{name}": column for name, column in known.items() if column is not None}
    frame = X.assign(**extra)
    meta = _numbered(frame._meta, 0)
    placed = [delayed(_numbered)(part, k) for k, part in enumerate(frame.to_delayed())]
    frame = dataframe.from_delayed(placed, meta=meta).shuffle("_qid").map_partitions(_in_order, meta=meta)
    columns = {name: frame[f"_{name}"] if f"_{name}" in extra else None for name in known}
    return frame[features], columns


def _numbered(frame: Any, partition: int) -> Any:
    """A data frame with the place of each row before it is shuffled."""
    return frame.assign(_place=np.arange(len(frame), dtype=np.int64) + (partition << 40))


def _in_order(frame: Any) -> Any:
    return frame.sort_values("_place")


def _rows(partition: int, first_row: int, X: Any, y: Any, qid: Any, weight: Any) -> Rows:
    """A partition as arrays."""
    features, ids = held(X), np.asarray(qid)
    y = np.asarray(y, dtype=np.float64)
    if not features.shape[0] == len(y) == len(ids):
        problem = f"Partition {partition} has {features.shape[0]} rows of features, {len(y)} labels and {len(ids)} ids."
        raise InputError(problem, parameter="y")
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    layout = query_layout(ids, len(ids))
    if not layout.contiguous:
        features, y, ids = features[layout.order], y[layout.order], ids[layout.order]
        weight = None if weight is None else weight[layout.order]
    return Rows(features, y, ids, weight, first_row)


def held(X: Any) -> Any:
    """Features of a partition as rows that lie together."""
    if sparse.issparse(X):
        return sparse.csr_array(X)
    X = np.ascontiguousarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
