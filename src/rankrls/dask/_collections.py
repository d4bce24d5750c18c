"""Dask collections as data sets that run jobs on the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import dask
import numpy as np
from dask import array, delayed
from distributed import default_client

from rankrls._errors import InputError
from rankrls.dask._parts import Address, addresses, in_order, leaf, numbered, rows_of_partition, seen, taken
from rankrls.streaming.engine import check_workers
from rankrls.streaming.tree import TreeSum, merge, tree_depth

_KEPT_LEVELS = 4
"""Levels of the tree below its root that a checkpoint keeps."""


@dataclass(frozen=True)
class DaskData:
    """A Dask collection as a data set, which runs jobs on the cluster; ``about`` tells it from others."""

    blocks: list[Any]
    parts: tuple[Address, ...]
    cut: tuple[frozenset[int], ...]
    n_features: int
    n_rows: int
    n_queries: int
    feature_names: tuple[str, ...] | None
    about: dict[str, Any]

    def describe(self) -> dict[str, Any]:
        """What the collection is: its name, which Dask makes of what it is computed from, and a hash of its labels."""
        return self.about

    def run(self, job: Any, saved: Any = None) -> Any:
        """The answer of a job: leaves and merges are tasks, and so is the job that they share.

        With ``saved`` (:class:`rankrls.streaming.checkpoint.Nodes`) the tree is computed in up to sixteen parts, one
        after the other, and each is kept.
        """
        shared, nodes = self._leaves(job)
        if saved is None:
            (answer,) = dask.compute(_root(shared, nodes))
            return answer
        tree = TreeSum(job, len(nodes))
        left = set(saved.restore(tree, range(len(nodes))))
        level = max(0, tree.depth - _KEPT_LEVELS)
        for number in range(-(-len(nodes) >> level)):
            below = range(number << level, min((number + 1) << level, len(nodes)))
            if left.issuperset(below):
                (answer,) = dask.compute(_root(shared, nodes[below.start : below.stop]))
                saved.keep(tree, tree.add(number, answer, level))
        return tree.total()

    def _leaves(self, job: Any) -> tuple[Any, list[Any]]:
        """The task that is the job, and those of the leaves."""
        shared, nodes = delayed(job, traverse=False), []
        for address in self.parts:
            pieces = [delayed(taken)(self.blocks[k], address.query, self.cut[k]) for k in address.partitions]
            nodes.append(delayed(leaf)(shared, address, pieces))
        return shared, nodes


def _root(shared: Any, nodes: list[Any]) -> Any:
    """The task that merges some neighbouring nodes."""
    for _ in range(tree_depth(len(nodes))):
        pairs = zip(nodes[::2], [*nodes[1::2], *[None] * (len(nodes) % 2)], strict=True)
        nodes = [a if b is None else delayed(merge)(shared, a, b) for a, b in pairs]
    return nodes[0]


def collected(X: Any, y: Any, qid: Any, weight: Any, straddling: str) -> DaskData:
    """Look at the labels and the query ids, and say where each part lies."""
    if not hasattr(X, "__dask_graph__"):
        raise InputError(
            "{X} must be a Dask data frame or array; got {0}.",
            type(X).__name__,
            remedy="rankrls itself has estimators for what is in memory.",
            parameter="X",
        )
    _check_cluster()
    name = str(getattr(X, "_name", ""))
    X, known, names = _features(X, {"y": y, "qid": qid, "sample_weight": weight})
    if straddling == "shuffle":
        X, known = _shuffled(X, known)
    features = _blocks(X)
    others = {name: _blocks(column) for name, column in known.items() if column is not None}
    for name, blocks in others.items():
        if len(blocks) != len(features):
            raise InputError(
                f"{{{name}}} has {{0}} partitions, {{X}} has {{1}}.",
                *(len(blocks), len(features)),
                remedy="Take them from the same data frame.",
                parameter=name,
            )
    columns = [[others[name][k] if name in others else None for name in known] for k in range(len(features))]
    found = dask.compute(*(delayed(seen)(k, *column) for k, column in enumerate(columns)))
    blocks = [
        delayed(rows_of_partition)(k, block, *column)
        for k, (block, column) in enumerate(zip(features, columns, strict=True))
    ]
    parts, cut = addresses(found)
    queries = len(set().union(*(part.queries for part in found)))
    n = len(names) if names is not None else int(X.shape[1])
    labels = blake2b(digest_size=16)
    for part in found:
        for code, known in part.queries.items():
            for values in (np.uint64(code), *known):
                labels.update(np.ascontiguousarray(values).tobytes())
    about = {"collection": name, "labels": labels.hexdigest()}
    return DaskData(blocks, parts, cut, n, sum(part.rows for part in found), queries, names, about)


def _check_cluster() -> None:
    """The workers of the client that Dask would take, if there is one."""
    try:
        client = default_client()
    except ValueError:
        return
    check_workers(client, "X")


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
    if X.ndim != 2 or len(X.chunks[1]) > 1:
        raise InputError(
            "{X} must be a matrix in chunks of whole rows; it has chunks {0}.",
            *(X.chunks, "rechunk({1: -1})"),
            remedy="{1} makes it so.",
            parameter="X",
        )


def _blocks(collection: Any) -> list[Any]:
    return list(np.ravel(collection.to_delayed()))


def _shuffled(X: Any, known: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Every query in one partition, its rows in the order in which they were."""
    if isinstance(X, array.Array):
        raise InputError("{straddling='shuffle'} needs a data frame.", parameter="straddling")
    from dask import dataframe

    features = list(X.columns)
    extra = {f"_{name}": column for name, column in known.items() if column is not None}
    frame = X.assign(**extra)
    meta = numbered(frame._meta, 0)
    placed = [delayed(numbered)(part, k) for k, part in enumerate(frame.to_delayed())]
    frame = dataframe.from_delayed(placed, meta=meta).shuffle("_qid").map_partitions(in_order, meta=meta)
    columns = {name: frame[f"_{name}"] if f"_{name}" in extra else None for name in known}
    return frame[features], columns
