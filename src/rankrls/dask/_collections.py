"""Dask collections as data sets: a part is a partition of whole queries."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import dask
import numpy as np
from dask import array, delayed
from distributed import default_client
from numpy.typing import NDArray
from scipy import sparse

from rankrls._compiled.threads import n_threads
from rankrls._errors import InputError
from rankrls.streaming.executors import check_workers


class Rows(NamedTuple):
    """A partition as arrays, its rows grouped by query; what a part of a file is read as."""

    X: Any
    y: NDArray[np.float64]
    qid: NDArray[Any]
    sample_weight: NDArray[np.float64] | None
    ids: None = None


@dataclass(frozen=True)
class HeldPart:
    """A partition where it is worked on."""

    rows: Rows
    first_row: int

    def read(self) -> Rows:
        """The rows."""
        return self.rows


@dataclass(frozen=True)
class DaskPart:
    """A partition that has not been computed."""

    rows: Any
    first_row: int
    n_rows: int


@dataclass(eq=False)
class DaskExecutor:
    """Computes partitions and runs tasks on them: on a cluster, or on threads if there is no client.

    Attributes
    ----------
    client : distributed.Client or None
    """

    client: Any
    _shared: tuple[Any, Any] = (None, None)
    _threads: Any = field(default_factory=lambda: ThreadPoolExecutor(n_threads()))

    @property
    def _max_workers(self) -> int:
        return n_threads() if self.client is None else sum(self.client.nthreads().values())

    def submit(self, task: Callable[[HeldPart], Any], part: DaskPart) -> Any:
        """The future of a task on one part."""
        if self.client is None:
            run = partial(dask.compute, scheduler="synchronous")
            return self._threads.submit(lambda: run(delayed(_run)(task, part.rows, part.first_row))[0])
        if self._shared[0] is not task:  # sent once, and made again if its worker dies
            self._shared = task, self.client.submit(_itself, task, pure=False)
        return self.client.compute(delayed(_run)(self._shared[1], part.rows, part.first_row))


@dataclass(frozen=True, eq=False)
class DaskData:
    """A Dask collection as a data set."""

    parts: tuple[DaskPart, ...]
    n_features: int
    n_queries: int
    feature_names: tuple[str, ...] | None
    executor: DaskExecutor

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
    columns = [[others[name][k] if name in others else None for name in known] for k in range(len(features))]
    sizes = [len(ids) for ids in found]
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    parts = tuple(
        DaskPart(delayed(_rows)(k, features[k], *columns[k]), starts[k], sizes[k]) for k in range(len(features))
    )
    n = len(names) if names is not None else int(X.shape[1])
    n_queries = len(set().union(*(ids.tolist() for ids in found)))
    return DaskData(parts, n, n_queries, names, DaskExecutor(client))


def _client() -> Any:
    """The client that Dask would take, if there is one."""
    try:
        client = default_client()
    except ValueError:
        return None
    check_workers(client, "X")
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
    return frame.sort_values(["_qid", "_place"])


def _rows(partition: int, X: Any, y: Any, qid: Any, weight: Any) -> Rows:
    """A partition as arrays."""
    features, ids = held(X), np.asarray(qid)
    y = np.asarray(y, dtype=np.float64)
    if not features.shape[0] == len(y) == len(ids):
        problem = f"Partition {partition} has {features.shape[0]} rows of features, {len(y)} labels and {len(ids)} ids."
        raise InputError(problem, parameter="y")
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    if len(ids) and np.count_nonzero(ids[1:] != ids[:-1]) >= len(set(ids.tolist())):
        _, number = np.unique(ids.astype(str), return_inverse=True)
        order = np.argsort(number, kind="stable")
        features, y, ids = features[order], y[order], ids[order]
        weight = None if weight is None else weight[order]
    return Rows(features, y, ids, weight)


def held(X: Any) -> Any:
    """Features of a partition as rows that lie together."""
    if sparse.issparse(X):
        return sparse.csr_array(X)
    X = np.ascontiguousarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _run(task: Callable[[HeldPart], Any], rows: Rows, first_row: int) -> Any:
    return task(HeldPart(rows, first_row))


def _itself(task: Any) -> Any:
    return task
