"""A data set of arrays, cut between queries."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rankrls.io import Rows


@dataclass(frozen=True)
class Part:
    """``killed_by`` names a file: while it exists, whoever reads the part removes it and dies."""

    table: Rows
    first_row: int
    n_rows: int
    killed_by: Path | None = None

    def read(self):
        if self.killed_by is not None and self.killed_by.exists():
            self.killed_by.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.table


@dataclass(frozen=True)
class ArrayDataset:
    """Parts of whole queries."""

    parts: tuple[Part, ...]
    n_rows: int
    n_features: int
    n_queries: int
    feature_names: Any


def array_dataset(X, y, qid, weight=None, cuts=(), feature_names=None, killed_by=None):
    """Rows whose queries follow one another, cut before some rows; twice the same row is an empty part."""
    edges = [0, *cuts, len(y)]
    parts = []
    for a, b in zip(edges[:-1], edges[1:], strict=True):
        w = None if weight is None else weight[a:b]
        parts.append(Part(Rows(X[a:b], y[a:b], qid[a:b], "arrays", sample_weight=w), a, b - a, killed_by))
    return ArrayDataset(tuple(parts), *X.shape, len(set(qid.tolist())), feature_names)


def starts_of(qid):
    return np.flatnonzero(np.concatenate(([True], qid[1:] != qid[:-1])))


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
