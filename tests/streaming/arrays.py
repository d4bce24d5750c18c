"""A data set of arrays, cut anywhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Piece:
    query: int
    labels: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    index: int
    n_pieces: int
    start: int


@dataclass(frozen=True)
class Part:
    number: int
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    query: np.ndarray
    first_row: int
    piece: Piece | None = None
    query_names: tuple = ()
    ids: Any = None


@dataclass(frozen=True)
class Address:
    number: int
    rows: int


@dataclass(frozen=True)
class ArrayDataset:
    """Rows whose queries follow one another, cut before the rows ``cuts``; twice the same row is an empty part."""

    X: Any
    y: np.ndarray
    qid: np.ndarray
    weight: np.ndarray | None = None
    cuts: tuple[int, ...] = ()
    feature_names: tuple[str, ...] | None = None
    parts: tuple = field(init=False)
    _ranges: tuple = field(init=False)

    def __post_init__(self):
        starts = self._starts
        ends = [*starts[1:], len(self.y)]
        edges = sorted([0, *self.cuts, len(self.y)])
        # Of a query that runs over a cut each piece is a part of its own.
        for a, b in zip(starts, ends, strict=True):
            if any(a < cut < b for cut in self.cuts):
                edges += [x for x in (a, b) if x not in edges]
        edges = sorted(edges)
        ranges = tuple(zip(edges[:-1], edges[1:], strict=True))
        object.__setattr__(self, "_ranges", ranges)
        object.__setattr__(self, "parts", tuple(Address(k, b - a) for k, (a, b) in enumerate(ranges)))

    @property
    def _starts(self):
        return [0, *(np.flatnonzero(self.qid[1:] != self.qid[:-1]) + 1).tolist()]

    @property
    def n_features(self):
        return self.X.shape[1]

    @property
    def n_rows(self):
        return len(self.y)

    @property
    def n_queries(self):
        return len(self._starts)

    def describe(self):
        return {"files": [{"path": "arrays", "sum": float(np.nansum(self.y))}]}

    def read(self, address, names=False):
        lo, hi = self._ranges[address.number]
        codes = np.cumsum(np.concatenate(([0], self.qid[1:] != self.qid[:-1])))
        rows, piece = slice(lo, hi), None
        if hi > lo:
            q = codes[lo]
            whole = np.flatnonzero(codes == q)
            if whole[0] < lo or whole[-1] >= hi:
                own = [r for r in self._ranges if r[1] > whole[0] and r[0] <= whole[-1] and r[1] > r[0]]
                labels, place = np.unique(self.y[whole], return_inverse=True)
                w = np.ones(len(whole)) if self.weight is None else self.weight[whole]
                piece = Piece(
                    int(q),
                    labels,
                    np.bincount(place),
                    np.bincount(place, w),
                    own.index((lo, hi)),
                    len(own),
                    lo - int(whole[0]),
                )
        weight = None if self.weight is None else self.weight[rows]
        heads = [lo + k for k in np.unique(codes[rows], return_index=True)[1]]
        query_names = tuple(self.qid[k] for k in heads) if names else ()
        return Part(address.number, self.X[rows], self.y[rows], weight, codes[rows], lo, piece, query_names)


def example(seed, *, offset=0.0, labels=4, rows=(1, 9), queries=14, n=4, dtype=np.float64, weights=False, csr=False):
    """Queries of some sizes, one of them long, one with a single label, one of one row."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(*rows, size=queries)
    sizes[0], sizes[1], sizes[2] = 23, 1, 6
    m = sizes.sum()
    qid = np.repeat(rng.permutation(1000)[:queries], sizes)
    X = rng.normal(size=(m, n))
    y = X @ rng.normal(size=n) + 0.7 * rng.normal(size=m)
    if labels:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, labels + 1)[1:-1])).astype(float)
    y[24:30] = y[24]
    X = (X + offset).astype(dtype)
    w = None
    if weights:
        w = rng.choice([0.0, 0.5, 1.0, 2.0], size=m, p=[0.1, 0.3, 0.3, 0.3])
    if csr:
        X = sparse.csr_array(np.where(rng.random(X.shape) < 0.6, X, 0.0))
    return X, y, qid, w
