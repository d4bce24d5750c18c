"""Documents as word weights, made up: the shape and sparsity of RCV1 where RCV1 itself cannot be had.

Words follow Zipf's law. Every document mixes two word distributions, which differ in a random tilt of every word, in a
share of its own; the label says which of the two prevails, and is wrong now and then. Weights are
(1 + log count) log(documents / documents with the word), and every row has length one, as in RCV1's vectors.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

__all__ = ["RCV1", "documents"]

RCV1 = (781_265, 47_236)
"""Training documents of Airola et al. (2010) and features of RCV1-v2's vectors; 58 million non-zeros here, 0.16 %."""
_WORDS = 79.0
"""Mean length of a document, which leaves about 74 different words."""
_TILT = 0.6
_MIXING = 0.6
_WRONG = 0.005
_TABLE = 1 << 21
_CHUNK = 20_000


def documents(rows: int, columns: int, *, seed: int = 0, dtype: str = "float64") -> tuple[sparse.csr_array, np.ndarray]:
    """Weights (rows, columns) as CSR with sorted int32 indices, and labels 0 and 1."""
    rng = np.random.default_rng(seed)
    tables = _word_tables(columns, np.random.default_rng(12345))  # the same language for every seed
    share = rng.beta(_MIXING, _MIXING, size=rows)
    lengths = 1 + rng.poisson(rng.lognormal(math.log(_WORDS) - 0.18, 0.6, size=rows))
    counts, indices, per_row = [], [], []
    for first in range(0, rows, _CHUNK):
        chunk = slice(first, min(first + _CHUNK, rows))
        row = np.repeat(np.arange(chunk.stop - first), lengths[chunk])
        side = (rng.random(len(row)) < share[chunk][row]).astype(np.int8)
        word = tables[side, rng.integers(_TABLE, size=len(row))]
        keys = row * columns + word
        keys.sort()
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        counts.append(np.diff(starts, append=len(keys)).astype(dtype))
        indices.append((keys[starts] % columns).astype(np.int32))
        per_row.append(np.bincount(keys[starts] // columns, minlength=chunk.stop - first))
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(per_row))))
    X = sparse.csr_array(
        (np.concatenate(counts), np.concatenate(indices), indptr.astype(np.int32)), shape=(rows, columns)
    )
    del counts, indices
    _weigh(X)
    labels = (share > 0.5) ^ (rng.random(rows) < _WRONG)
    return X, labels.astype(np.float64)


def _word_tables(columns: int, rng: np.random.Generator) -> np.ndarray:
    """Inverse distribution functions of the two word distributions, as tables."""
    frequency = 1.0 / (np.arange(columns) + 10.0)
    tilt = _TILT * rng.normal(size=columns)
    tables = np.empty((2, _TABLE), dtype=np.int64)
    for side, sign in enumerate((-1.0, 1.0)):
        cumulative = np.cumsum(frequency * np.exp(sign * tilt))
        tables[side] = np.searchsorted(cumulative, (np.arange(_TABLE) + 0.5) / _TABLE * cumulative[-1])
    return tables


def _weigh(X: sparse.csr_array) -> None:
    """Counts to weights, in place."""
    rows, columns = X.shape
    found = np.bincount(X.indices, minlength=columns)
    rarity = np.log(rows / np.maximum(found, 1)).astype(X.dtype)
    for first in range(0, rows, _CHUNK):
        stop = min(first + _CHUNK, rows)
        part = slice(int(X.indptr[first]), int(X.indptr[stop]))
        values = X.data[part]
        np.log(values, out=values)
        values += 1.0
        values *= rarity[X.indices[part]]
        sizes = np.diff(X.indptr[first : stop + 1])
        row = np.repeat(np.arange(stop - first), sizes)
        norms = np.sqrt(np.bincount(row, values.astype(np.float64) ** 2, minlength=stop - first))
        norms[norms == 0.0] = 1.0
        values /= norms[row].astype(X.dtype)
