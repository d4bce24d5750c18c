"""Estimators for Dask data frames and arrays: the extra ``rankrls[dask]``.

They have the parameters and attributes of the estimators in :mod:`rankrls`. Partitions contain whole queries; data
frames with a query in several partitions are first shuffled by query.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Self

import numpy as np
from scipy import sparse

from rankrls._errors import InputError, did_you_mean, require_extra
from rankrls._queries import query_layout
from rankrls._typing import Values
from rankrls.io.dataset import Dataset, Part
from rankrls.io.rows import Rows
from rankrls.models import rankrls

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
        y, qid, sample_weight : names of columns of a data frame X, or dask arrays
            Labels, query ids and weights.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If X is not a Dask collection; if workers lack rankrls or have another version; if columns do not exist or
            are not numeric; if a query of arrays is in two chunks; and as ``fit_dataset`` of the estimator of the same
            name.

        Notes
        -----
        The query ids are computed first. Data frames with a query in two partitions are shuffled by query: every row
        moves to the partition of its query, in each pass.
        """
        executor: Any = None
        with suppress(ValueError):  # there is no client
            executor = default_client()
        data = _collected(X, y, qid, sample_weight)
        fitted: Self = self.fit_dataset(data, executor=executor)  # type: ignore[attr-defined]
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
        out: Any = object.__new__(cls)
        vars(out).update(vars(self))
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


class SparseRankRLS(_OnDask, rankrls.SparseRankRLS):  # type: ignore[misc]
    """:class:`rankrls.SparseRankRLS` for Dask collections, over a random basis.

    Parameters
    ----------
    all : as in :class:`rankrls.SparseRankRLS`
    """


class SparseRankRLSCV(_OnDask, rankrls.SparseRankRLSCV):  # type: ignore[misc]
    """:class:`rankrls.SparseRankRLSCV` for Dask collections, over a random basis.

    Parameters
    ----------
    all : as in :class:`rankrls.SparseRankRLSCV`
    """


@dataclass(frozen=True)
class _Partition(Part):
    """A partition whose rows are delayed, or have been computed: Dask sends workers a copy with computed rows."""

    rows: Any

    def read(self) -> Rows:
        """Return the rows, computed in this thread."""
        found: Rows = dask.compute(self.rows, scheduler="synchronous", traverse=False)[0]
        return found


def _collected(X: Any, y: Any, qid: Any, weight: Any) -> Dataset:
    """Collection whose partitions contain whole queries; a data frame is shuffled by query if necessary.

    Raises
    ------
    InputError
        If X is not a Dask collection; if columns do not exist or are not numeric; and if a query of arrays is in two
        chunks.
    """
    if not hasattr(X, "__dask_graph__"):
        raise InputError(
            f"X must be a Dask data frame or array; got {type(X).__name__}. Use rankrls for other types.", parameter="X"
        )
    given = {"y": y, "qid": qid, "sample_weight": weight}
    given = {name: value for name, value in given.items() if value is not None}
    names = None
    if isinstance(X, array.Array):
        columns = {name: array.asarray(values).rechunk((X.chunks[0],)) for name, values in given.items()}
        blocks = {name: _blocks(values) for name, values in {"X": X.rechunk({1: -1}), **columns}.items()}
        sizes, n_queries = _sizes(blocks["qid"])
        if n_queries is None:
            problem = "a query is in two chunks of the arrays: rechunk them so that each chunk contains whole queries."
            raise InputError(problem, parameter="qid")
        n_features = int(X.shape[1])
    else:
        _check_columns(X, given)
        features = [name for name in X.columns if name not in given.values()]
        _check_numbers(X, features)
        sizes, n_queries = _sizes(_blocks(X[qid]))
        if n_queries is None:
            X = _shuffled(X, qid)
            sizes, n_queries = _sizes(_blocks(X[qid]))
        partitions = _blocks(X)
        blocks = {name: [part[column] for part in partitions] for name, column in {"X": features, **given}.items()}
        names = tuple(map(str, features))
        n_features = len(features)
    starts = np.cumsum([0, *sizes]).tolist()
    rows = [delayed(_rows)(**dict(zip(blocks, values, strict=True))) for values in zip(*blocks.values(), strict=True)]
    parts = tuple(map(_Partition, starts, sizes, rows))
    return Dataset(parts, "", n_features, names, n_queries or 0)


def _sizes(blocks: list[Any]) -> tuple[list[int], int | None]:
    """Number of rows of each partition, and of queries; None if a query is in two partitions."""
    found = [np.asarray(ids).tolist() for ids in dask.compute(*blocks)]
    different = [set(ids) for ids in found]
    n_queries = len(set().union(*different))
    return [*map(len, found)], n_queries if n_queries == sum(map(len, different)) else None


def _check_columns(frame: Any, columns: Values) -> None:
    """Refuse columns that a data frame lacks."""
    for name, column in columns.items():
        if not isinstance(column, str) or column not in frame.columns:
            problem = f"{name} must name a column of the data frame X; got {column!r:.60}."
            problem += did_you_mean(column, map(str, frame.columns))
            raise InputError(problem, parameter=name, column=column if isinstance(column, str) else None)


def _check_numbers(frame: Any, features: list[Any]) -> None:
    """Refuse features whose columns have types other than numbers."""
    for name, kind in frame.dtypes[features].items():
        if kind.kind not in "iufb":
            raise InputError(
                f"column {str(name)!r} of X is {kind}, not numeric. Drop or encode it.", parameter="X", column=str(name)
            )


def _blocks(collection: Any) -> list[Any]:
    """Partitions, delayed; those of a column are those of its data frame, which Dask would otherwise fuse."""
    if isinstance(collection, array.Array):
        return list(np.ravel(collection.to_delayed()))
    return list(np.ravel(collection.simplify().to_delayed(optimize_graph=False)))


def _shuffled(frame: Any, qid: Any) -> Any:
    """Data frame with every query in one partition and its rows in their original order."""
    numbered = frame.assign(_place=1)
    numbered = numbered.assign(_place=numbered["_place"].cumsum())
    return numbered.shuffle(qid).map_partitions(methodcaller("sort_values", "_place"))


def _rows(X: Any, y: Any, qid: Any, sample_weight: Any = None) -> Rows:
    """Partition as arrays, with the rows of each query together."""
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    rows = Rows(_held(X), np.asarray(y, dtype=np.float64), np.asarray(qid), path="", sample_weight=weights)
    layout = query_layout(rows.qid, rows.n_rows)
    return rows if layout.contiguous else rows.take(layout.order)


def _held(X: Any) -> Any:
    """Features of a partition as contiguous rows."""
    if sparse.issparse(X):
        return sparse.csr_array(X)
    X = np.ascontiguousarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _scores(X: Any, model: Any) -> Any:
    scores = model.scorer_(_held(X).astype(np.float64))[:, 0]
    if not hasattr(X, "index"):
        return scores
    import pandas as pd

    return pd.Series(scores, index=X.index, name="score")
