"""Estimators for Dask data frames and arrays: the extra ``rankrls[dask]``.

They have the parameters and attributes of the estimators in :mod:`rankrls`. Partitions contain whole queries; data
frames with a query in several partitions are first shuffled by query.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from rankrls._errors import InputError, did_you_mean, require_extra
from rankrls._queries import query_layout
from rankrls._typing import AnyArray, Array
from rankrls.models import rankrls, sparse_rankrls

require_extra("rankrls.dask", "dask", "dask", "distributed")

import dask  # noqa: E402
from dask import array, delayed  # noqa: E402
from distributed import default_client  # noqa: E402

__all__ = ["RankRLS", "RankRLSCV", "SparseRankRLS", "SparseRankRLSCV"]


class _OnDask:
    """Fit to Dask collections."""

    def fit(self, X: Any, y: Any, *, qid: Any, sample_weight: Any = None) -> Self:
        """Fit to a Dask data frame or array larger than memory.

        Parameters
        ----------
        X : dask data frame or array
            Features; the chunks of an array may be sparse (scipy, CSR). A data frame may also contain the labels and
            query ids.
        y, qid, sample_weight : dask series or array in the partitions of X; or the name of a column of X
            Labels, query ids and weights.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If X is not a Dask collection; if workers lack rankrls or have another version; if columns do not exist or
            are not numeric; if partitions differ; if a query of arrays is in two chunks; and as ``fit_dataset`` of the
            estimator of the same name.

        Notes
        -----
        The query ids are computed first. Data frames with a query in two partitions are shuffled by query: every row
        moves to the partition of its query, in each pass.
        """
        data = _collected(X, y, qid, sample_weight)
        fitted: Self = self.fit_dataset(data, executor=data.executor)  # type: ignore[attr-defined]
        return fitted

    def predict(self, X: Any) -> Any:
        """Return scores; for a Dask collection, a lazy series or array in the partitions of X."""
        if not hasattr(X, "__dask_graph__"):
            return super().predict(X)  # type: ignore[misc]
        local = self.to_local()
        if isinstance(X, array.Array):
            rows: Any = X.rechunk({1: -1})
            return rows.map_blocks(_scores, local, dtype=np.float64, drop_axis=1, meta=np.zeros(0))
        names = getattr(self, "feature_names_in_", None)
        X = X if names is None else X[list(names)]
        return X.map_partitions(_scores, local, meta=("score", np.float64))

    def to_local(self) -> Any:
        """Return the ordinary estimator, which can be saved, exported and explained."""
        cls = next(base for base in type(self).__mro__ if base.__module__.startswith("rankrls.models."))
        out = cls(**self.get_params(deep=False))  # type: ignore[attr-defined]
        out.__dict__.update(vars(self))
        return out


class RankRLS(_OnDask, rankrls.RankRLS):  # type: ignore[misc]
    """:class:`rankrls.RankRLS` for Dask collections, linear.

    Parameters
    ----------
    all : as in :class:`rankrls.RankRLS`
    """


class RankRLSCV(_OnDask, rankrls.RankRLSCV):  # type: ignore[misc]
    """:class:`rankrls.RankRLSCV` for Dask collections, linear: two passes, exact leave-query-out for every alpha.

    Parameters
    ----------
    all : as in :class:`rankrls.RankRLSCV`; ``cv`` None

    Examples
    --------
    >>> import numpy as np
    >>> from dask import array
    >>> from rankrls.dask import RankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(600, 4)), np.repeat(np.arange(60), 10)
    >>> y = np.digitize(X @ [2.0, 1.0, 0.0, 0.0] + rng.normal(size=600), [-1.0, 1.0])
    >>> X, y, qid = (array.from_array(a, chunks=(150, *a.shape[1:])) for a in (X, y, qid))
    >>> model = RankRLSCV(scoring="ndcg@5").fit(X, y, qid=qid)
    >>> model.selection_, model.predict(X), model.to_local()
    ('leave-query-out over 60 queries', dask.array<_scores, ...>, RankRLSCV(scoring='ndcg@5'))
    """


class SparseRankRLS(_OnDask, sparse_rankrls.SparseRankRLS):  # type: ignore[misc]
    """:class:`rankrls.SparseRankRLS` for Dask collections, over a random basis.

    Parameters
    ----------
    all : as in :class:`rankrls.SparseRankRLS`
    """


class SparseRankRLSCV(_OnDask, sparse_rankrls.SparseRankRLSCV):  # type: ignore[misc]
    """:class:`rankrls.SparseRankRLSCV` for Dask collections, over a random basis.

    Parameters
    ----------
    all : as in :class:`rankrls.SparseRankRLSCV`
    """


@dataclass(frozen=True, eq=False)
class _Rows:
    """A partition as arrays with its rows grouped by query, as needed by a worker."""

    X: Any
    y: Array
    qid: AnyArray
    sample_weight: Array | None
    first_row: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    def read(self) -> _Rows:
        """Return the rows."""
        return self


@dataclass(frozen=True)
class _DaskPart:
    """A partition that has not been computed; ``delayed`` returns its rows."""

    delayed: Any
    first_row: int
    n_rows: int

    def read(self) -> Any:
        """Return the rows, computed in this thread."""
        return self.delayed.compute(scheduler="synchronous")


@dataclass(frozen=True, eq=False)
class _DaskData:
    """A Dask collection as a dataset."""

    parts: tuple[_DaskPart, ...]
    n_features: int
    feature_names: tuple[str, ...] | None
    executor: Any

    @property
    def n_rows(self) -> int:
        """Number of rows of all partitions."""
        return sum(part.n_rows for part in self.parts)


def _collected(X: Any, y: Any, qid: Any, weight: Any) -> _DaskData:
    """Collection whose partitions contain whole queries; a data frame is shuffled by query if necessary.

    Raises
    ------
    InputError
        If X is not a Dask collection; if partitions differ; if columns do not exist or are not numeric; and if a query
        of arrays is in two chunks.
    """
    if not hasattr(X, "__dask_graph__"):
        problem = f"X must be a Dask data frame or array; got {type(X).__name__}. Use rankrls for other types."
        raise InputError(problem, parameter="X")
    given = {"y": y, "qid": qid, "sample_weight": weight}
    given = {name: value for name, value in given.items() if value is not None}
    names = None
    if isinstance(X, array.Array):
        sizes, rows = _of_arrays(X, given)
        n_features = int(X.shape[1])
    else:
        frame, columns = _with_columns(X, given)
        features = [name for name in frame.columns if name not in columns.values()]
        _check_numbers(frame, features)
        sizes, rows = _of_frame(frame, features, columns)
        names = tuple(map(str, features))
        n_features = len(features)
    starts = np.cumsum([0, *sizes]).tolist()
    parts = tuple(_DaskPart(*each) for each in zip(rows, starts, sizes, strict=False))
    with suppress(ValueError):  # there is no client
        return _DaskData(parts, n_features, names, default_client())
    return _DaskData(parts, n_features, names, None)


def _of_arrays(X: Any, given: dict[str, Any]) -> tuple[list[int], list[Any]]:
    """Number of rows of each chunk, and its rows, delayed."""
    blocks = {name: _blocks(array.asarray(values).rechunk((X.chunks[0],))) for name, values in given.items()}
    sizes, cut = _queries(blocks["qid"])
    if cut:
        problem = "a query is in two chunks of the arrays: rechunk them so that each chunk contains whole queries."
        raise InputError(problem, parameter="qid")
    make = delayed(_rows)
    rows = []
    starts = np.cumsum([0, *sizes]).tolist()
    for k, (features, *others) in enumerate(zip(_blocks(X.rechunk({1: -1})), *blocks.values(), strict=True)):
        rows.append(make(k, starts[k], features, **dict(zip(blocks, others, strict=True))))
    return sizes, rows


def _of_frame(frame: Any, features: list[Any], columns: dict[str, Any]) -> tuple[list[int], list[Any]]:
    """Number of rows of each partition, and its rows, delayed."""
    sizes, cut = _queries(_blocks(frame[columns["qid"]]))
    if cut:
        frame = _shuffled(frame, columns["qid"])
        sizes, _ = _queries(_blocks(frame[columns["qid"]]))
    make = delayed(_split)
    starts = np.cumsum([0, *sizes]).tolist()
    return sizes, [make(k, starts[k], part, features, columns) for k, part in enumerate(_blocks(frame))]


def _queries(blocks: list[Any]) -> tuple[list[int], bool]:
    """Number of rows of each partition, and whether any query is in two partitions."""
    found = [np.asarray(ids).tolist() for ids in dask.compute(*blocks)]
    different = [set(ids) for ids in found]
    return [*map(len, found)], len(set().union(*different)) < sum(map(len, different))


def _with_columns(X: Any, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A data frame extended by labels, query ids and weights, and the names of their columns."""
    columns = {name: value for name, value in given.items() if isinstance(value, str)}
    for name, column in columns.items():
        if column not in X.columns:
            problem = f"X has no column {column!r} ({name}).{did_you_mean(column, map(str, X.columns))}"
            raise InputError(problem, parameter=name, column=column)
    others = {name: value for name, value in given.items() if name not in columns}
    for name, value in others.items():
        if getattr(value, "npartitions", None) != X.npartitions:
            problem = f"{name} must name a column of X, or be a Dask series in the {X.npartitions} partitions of X."
            raise InputError(problem, parameter=name)
        columns[name] = f"rankrls {name}"
    return X.assign(**{columns[name]: value for name, value in others.items()}), columns


def _check_numbers(frame: Any, features: list[Any]) -> None:
    """Refuse features whose columns have types other than numbers."""
    for name, kind in frame.dtypes[features].items():
        if kind.kind not in "iufb":
            problem = f"column {str(name)!r} of X is {kind}, not numeric. Drop or encode it."
            raise InputError(problem, parameter="X", column=str(name))


def _blocks(collection: Any) -> list[Any]:
    """Partitions, delayed; those of a column are those of its data frame, which Dask would otherwise fuse."""
    if isinstance(collection, array.Array):
        return list(np.ravel(collection.to_delayed()))
    return list(np.ravel(collection.simplify().to_delayed(optimize_graph=False)))


def _shuffled(frame: Any, qid: Any) -> Any:
    """Data frame with every query in one partition and its rows in their original order."""
    from dask import dataframe

    meta = _numbered(frame._meta, 0)
    placed = [delayed(_numbered)(part, k) for k, part in enumerate(_blocks(frame))]
    numbered = dataframe.from_delayed(placed, meta=meta).shuffle(qid)
    return numbered.map_partitions(lambda rows: rows.sort_values("_place"), meta=meta)


def _numbered(frame: Any, partition: int) -> Any:
    """Data frame with the original place of each row, for sorting after the shuffle."""
    return frame.assign(_place=np.arange(len(frame), dtype=np.int64) + (partition << 40))


def _split(partition: int, first_row: int, frame: Any, features: list[Any], columns: dict[str, Any]) -> _Rows:
    """Partition of a data frame as arrays."""
    return _rows(partition, first_row, frame[features], **{name: frame[column] for name, column in columns.items()})


def _rows(partition: int, first_row: int, X: Any, y: Any, qid: Any, sample_weight: Any = None) -> _Rows:
    """Partition as arrays."""
    features = _held(X)
    ids = np.asarray(qid)
    y = np.asarray(y, dtype=np.float64)
    if not features.shape[0] == len(y) == len(ids):
        problem = f"Partition {partition} has {features.shape[0]} rows of features, {len(y)} labels and {len(ids)} ids."
        raise InputError(problem, parameter="y")
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    layout = query_layout(ids, len(ids))
    if not layout.contiguous:
        features = features[layout.order]
        y = y[layout.order]
        ids = ids[layout.order]
        weight = None if weight is None else weight[layout.order]
    return _Rows(features, y, ids, weight, first_row)


def _held(X: Any) -> Any:
    """Features of a partition as contiguous rows."""
    if sparse.issparse(X):
        return sparse.csr_array(X)
    X = np.ascontiguousarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _scores(X: Any, model: Any) -> Any:
    scores = model.scorer_(_held(X).astype(np.float64))[:, 0]
    if not hasattr(X, "index"):
        return scores
    import pandas as pd

    return pd.Series(scores, index=X.index, name="score")
