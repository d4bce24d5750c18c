"""Parts of Dask collections: where they lie, and what workers do with them. Nothing here imports dask."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._compiled.threads import one_thread
from rankrls._errors import InputError
from rankrls.io.datasets import Part, Piece

_MOST_CUT = 2
"""Queries for each partition that may lie in several partitions; data with more are not grouped by query."""


class Rows(NamedTuple):
    """A partition, or some of its rows, as arrays; ``codes`` are hashes of the query ids."""

    X: Any
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    codes: NDArray[np.uint64]
    names: dict[int, str]


class Seen(NamedTuple):
    """A partition's rows, and of each query, by its hash, the labels with their rows and weights."""

    rows: int
    queries: dict[int, tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]]

    def rows_of(self, query: int) -> int:
        """How many rows a query has."""
        return int(self.queries[query][1].sum())


@dataclass(frozen=True)
class Address:
    """A part: all whole queries of a partition, or one query that lies in several."""

    number: int
    rows: int
    first_row: int
    partitions: tuple[int, ...]
    query: int | None = None
    piece: Piece | None = None


def _hashes(qid: Any) -> tuple[NDArray[np.uint64], dict[int, str]]:
    """A hash of each row's query id, and the ids as text by their hashes."""
    ids, place = np.unique(np.asarray(qid).astype(str), return_inverse=True)
    found = [int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little") for name in ids]
    return np.array(found, dtype=np.uint64)[place], dict(zip(found, map(str, ids), strict=True))


def seen(partition: int, y: Any, qid: Any, weight: Any) -> Seen:
    codes, _ = _hashes(qid)
    queries, place = np.unique(codes, return_inverse=True)
    labels = np.asarray(y, dtype=np.float64)
    w = np.ones(len(labels)) if weight is None else np.asarray(weight, dtype=np.float64)
    order, found = np.argsort(place, kind="stable"), dict[int, Any]()
    starts = np.searchsorted(place[order], np.arange(len(queries) + 1))
    for k, code in enumerate(queries.tolist()):
        rows = order[starts[k] : starts[k + 1]]
        values, at = np.unique(labels[rows], return_inverse=True)
        found[code] = values, np.bincount(at), np.bincount(at, w[rows])
    return Seen(len(labels), found)


def addresses(found: Any) -> tuple[tuple[Address, ...], tuple[frozenset[int], ...]]:
    """The parts in their order, and the queries of each partition that lie in others too."""
    where: dict[int, list[int]] = {}
    for k, seen in enumerate(found):
        for code in seen.queries:
            where.setdefault(code, []).append(k)
    several = {code: ks for code, ks in where.items() if len(ks) > 1}
    if len(several) > _MOST_CUT * len(found):
        raise InputError(
            "{0} of {1} queries lie in several of {2} partitions: the rows are not grouped by query.",
            *(len(several), len(where), len(found)),
            remedy="Take {straddling='shuffle'}, or sort the data by query.",
            parameter="qid",
        )
    cut = tuple(frozenset(several.keys() & seen.queries.keys()) for seen in found)
    most = max(part.rows for part in found)
    parts: list[Address] = []
    row = 0
    for k, seen in enumerate(found):
        inside = seen.rows - sum(map(seen.rows_of, cut[k]))
        parts.append(Address(len(parts), inside, row, (k,)))
        for code in sorted(cut[k]):
            ks = several[code]
            if ks[0] == k:
                parts += _query_parts(code, ks, found, most, len(parts), row)
        row += seen.rows
    return tuple(parts), cut


def _query_parts(code: int, ks: list[int], found: Any, most: int, number: int, row: int) -> list[Address]:
    """A query in several partitions: one part, or pieces if it is longer than any partition."""
    rows = [found[k].rows_of(code) for k in ks]
    if sum(rows) <= most:
        return [Address(number, sum(rows), row, tuple(ks), code)]
    values, numbers, sums = map(np.concatenate, zip(*(found[k].queries[code] for k in ks), strict=True))
    labels, at = np.unique(values, return_inverse=True)
    counts, weights = (np.bincount(at, part, minlength=len(labels)) for part in (numbers, sums))
    starts = np.concatenate(([0], np.cumsum(rows)))
    whole = Piece(number, labels, counts.astype(np.int64), weights.astype(np.float64), 0, len(ks), 0)
    pieces = [replace(whole, index=j, start=int(starts[j])) for j in range(len(ks))]
    return [Address(number + j, rows[j], row, (k,), code, pieces[j]) for j, k in enumerate(ks)]


def rows_of_partition(partition: int, X: Any, y: Any, qid: Any, weight: Any) -> Rows:
    """A partition as arrays."""
    features = _held(X)
    if features.dtype not in (np.float32, np.float64):
        features = features.astype(np.float64)
    labels = np.asarray(y, dtype=np.float64)
    codes, names = _hashes(qid)
    if not features.shape[0] == len(labels) == len(codes):
        raise InputError(
            "Partition {0} has {1} rows of features, {2} labels and {3} query ids.",
            *(partition, features.shape[0], len(labels), len(codes)),
            parameter="y",
        )
    return Rows(features, labels, None if weight is None else np.asarray(weight, dtype=np.float64), codes, names)


def _held(X: Any) -> Any:
    """Features of a partition as rows that lie together."""
    if sparse.issparse(X):
        return sparse.csr_array(X)
    return np.ascontiguousarray(X.to_numpy() if hasattr(X, "to_numpy") else X)


def _rows(rows: Rows, which: Any) -> Rows:
    weight = None if rows.weight is None else rows.weight[which]
    return Rows(rows.X[which], rows.y[which], weight, rows.codes[which], rows.names)


def taken(rows: Rows, query: int | None, cut: frozenset[int]) -> Rows:
    """The rows of one query of a partition, or of all queries that lie in no other."""
    if query is not None:
        return _rows(rows, np.flatnonzero(rows.codes == np.uint64(query)))._replace(names={query: rows.names[query]})
    if not cut:
        return rows
    return _rows(rows, np.flatnonzero(~np.isin(rows.codes, np.array(sorted(cut), dtype=np.uint64))))


def _together(pieces: list[Rows]) -> Rows:
    """The rows of several partitions."""
    if len(pieces) == 1:
        return pieces[0]
    blocks = [p.X for p in pieces]
    X = sparse.csr_array(sparse.vstack(blocks)) if sparse.issparse(blocks[0]) else np.concatenate(blocks)
    weight = None if pieces[0].weight is None else np.concatenate([p.weight for p in pieces])
    return Rows(
        X, np.concatenate([p.y for p in pieces]), weight, np.concatenate([p.codes for p in pieces]), pieces[0].names
    )


def leaf(job: Any, address: Address, pieces: list[Rows]) -> Any:
    """The answer of one part, whose rows were taken from one partition or from several."""
    rows = _together(pieces)
    _, first, query = np.unique(rows.codes, return_index=True, return_inverse=True)
    appearance = np.argsort(np.argsort(first))  # queries are numbered as they come
    names = [rows.names[int(rows.codes[k])] for k in np.sort(first)]
    number = appearance[query].astype(np.int64)
    if (np.diff(number) < 0).any():  # rows of a query follow one another
        order = np.argsort(number, kind="stable")
        rows, number = _rows(rows, order), number[order]
    part = Part(
        number=address.number,
        X=rows.X,
        y=rows.y,
        weight=rows.weight,
        query=number,
        first_row=address.first_row,
        query_names=names,
        piece=address.piece,
    )
    with one_thread():
        return job.leaf(part)


def scores(X: Any, model: Any) -> Any:
    scores = model.scorer_(_held(X).astype(np.float64))[:, 0]
    if not hasattr(X, "index"):
        return scores
    import pandas as pd

    return pd.Series(scores, index=X.index, name="score")


def numbered(frame: Any, partition: int) -> Any:
    """A data frame with the place of each row before it is shuffled."""
    return frame.assign(_place=np.arange(len(frame), dtype=np.int64) + (partition << 40))


def in_order(frame: Any) -> Any:
    """A shuffled data frame whose rows follow one another by query, as they did before."""
    return frame.sort_values(["_qid", "_place"])
