"""Parts of Dask collections: where they lie, and what workers do with them. Nothing here imports dask."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._errors import InputError
from rankrls.io.datasets import Part, Piece
from rankrls.streaming import run_leaf

__all__ = ["Address", "addresses", "edges_of", "in_order", "leaf", "numbered", "rows_of_partition", "scores", "seen"]

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
    """The queries of a partition: their hashes, and of each its rows by label, with their weights."""

    rows: int
    codes: NDArray[np.uint64]
    labels: list[NDArray[np.float64]]
    counts: list[NDArray[np.int64]]
    weights: list[NDArray[np.float64]]


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
    out: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    order = np.argsort(place, kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(place, minlength=len(queries)))[:-1]):
        values, at = np.unique(labels[rows], return_inverse=True)
        out[0].append(values)
        out[1].append(np.bincount(at, minlength=len(values)).astype(np.int64))
        out[2].append(np.bincount(at, w[rows], minlength=len(values)))
    return Seen(len(labels), queries, *out)


def addresses(found: Any) -> tuple[tuple[Address, ...], tuple[frozenset[int], ...]]:
    """The parts in their order, and the queries of each partition that lie in others too."""
    where: dict[int, list[int]] = {}
    for k, seen in enumerate(found):
        for code in seen.codes.tolist():
            where.setdefault(code, []).append(k)
    several = {code: ks for code, ks in where.items() if len(ks) > 1}
    if len(several) > _MOST_CUT * len(found):
        raise InputError(
            "{0} of {1} queries lie in several of {2} partitions: the rows are not grouped by query.",
            *(len(several), len(where), len(found)),
            remedy="Take {straddling='shuffle'}, or sort the data by query.",
            parameter="qid",
        )
    cut = tuple(frozenset(several.keys() & seen.codes.tolist()) for seen in found)
    most = max(part.rows for part in found)
    parts: list[Address] = []
    row = 0
    for k, seen in enumerate(found):
        inside = seen.rows - sum(_rows_of(seen, code) for code in cut[k])
        parts.append(Address(len(parts), inside, row, (k,)))
        for code in sorted(cut[k]):
            ks = several[code]
            if ks[0] == k:
                parts += _query_parts(code, ks, found, most, len(parts), row)
        row += seen.rows
    return tuple(parts), cut


def _rows_of(seen: Seen, code: int) -> int:
    return int(seen.counts[int(np.searchsorted(seen.codes, np.uint64(code)))].sum())


def _query_parts(code: int, ks: list[int], found: Any, most: int, number: int, row: int) -> list[Address]:
    """A query in several partitions: one part, or pieces if it is longer than any partition."""
    rows = [_rows_of(found[k], code) for k in ks]
    if sum(rows) <= most:
        return [Address(number, sum(rows), row, tuple(ks), code)]
    places = [int(np.searchsorted(found[k].codes, np.uint64(code))) for k in ks]
    each = [(found[k].labels[i], found[k].counts[i], found[k].weights[i]) for k, i in zip(ks, places, strict=True)]
    values, numbers, sums = (np.concatenate(parts) for parts in zip(*each, strict=True))
    labels, at = np.unique(values, return_inverse=True)
    counts, weights = (np.bincount(at, part, minlength=len(labels)).astype(np.float64) for part in (numbers, sums))
    starts = np.concatenate(([0], np.cumsum(rows)))
    return [
        Address(
            number + j,
            rows[j],
            row,
            (k,),
            code,
            Piece(number, labels, counts.astype(np.int64), weights, j, len(ks), int(starts[j])),
        )
        for j, k in enumerate(ks)
    ]


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


def _taken(rows: Rows, which: Any) -> Rows:
    weight = None if rows.weight is None else rows.weight[which]
    return Rows(rows.X[which], rows.y[which], weight, rows.codes[which], rows.names)


def edges_of(rows: Rows, queries: frozenset[int]) -> dict[int, Rows]:
    """The rows of the queries that lie in other partitions too."""
    out = {}
    for code in sorted(queries):
        part = _taken(rows, np.flatnonzero(rows.codes == np.uint64(code)))
        out[code] = part._replace(names={code: rows.names[code]})
    return out


@dataclass(frozen=True)
class _Held:
    """One part, already here, as a data set."""

    part: Part

    def read(self, address: Any, *, names: bool = False) -> Part:
        return self.part


def leaf(job: Any, address: Address, given: list[Any], without: frozenset[int] | None) -> Any:
    """The answer of one part."""
    if address.query is None:
        (rows,) = given
        if without:
            rows = _taken(rows, np.flatnonzero(~np.isin(rows.codes, np.array(sorted(without), dtype=np.uint64))))
    else:
        pieces = [edges[address.query] for edges in given]
        weight = None if pieces[0].weight is None else np.concatenate([p.weight for p in pieces])
        y, codes = (np.concatenate([getattr(p, name) for p in pieces]) for name in ("y", "codes"))
        blocks = [p.X for p in pieces]
        X = sparse.csr_array(sparse.vstack(blocks)) if sparse.issparse(blocks[0]) else np.concatenate(blocks)
        rows = Rows(X, y, weight, codes, pieces[0].names)
    _, first, query = np.unique(rows.codes, return_index=True, return_inverse=True)
    appearance = np.argsort(np.argsort(first))  # queries are numbered as they come
    names = [rows.names[int(rows.codes[k])] for k in np.sort(first)]
    number = appearance[query].astype(np.int64)
    if (np.diff(number) < 0).any():  # rows of a query follow one another
        order = np.argsort(number, kind="stable")
        rows, number = _taken(rows, order), number[order]
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
    return run_leaf(job, _Held(part), None)


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
