"""A basis of rows drawn at random from a data set: the same rows, however the data lie in files and parts."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls.streaming.parts import labelled, query_names
from rankrls.streaming.sums import Answer

if TYPE_CHECKING:
    from rankrls.io.datasets import Part


@dataclass(frozen=True)
class BasisRows(Answer):
    """The rows of some parts with the smallest hashes, in the order of these.

    Attributes
    ----------
    keys : ndarray of uint64
    numbers : ndarray of int64
        The rows' running numbers.
    items : ndarray or csr_array
    """

    keys: NDArray[np.uint64]
    numbers: NDArray[np.int64]
    items: Any


@dataclass(frozen=True)
class BasisJob:
    """So many rows with the smallest hashes of a seed, the query's name and the place inside the query.

    A random sample without replacement of the rows of positive weight. It is drawn in one pass, O(rows).
    """

    size: int
    seed: int = 0

    names = True

    def leaf(self, part: Part) -> BasisRows:
        """The smallest of a part."""
        data = labelled(part)
        _, first, code = np.unique(np.asarray(part.query), return_index=True, return_inverse=True)
        start = 0 if part.piece is None else part.piece.start
        place = np.arange(len(part.y)) - first[code] + start
        names = [blake2b(f"{self.seed}:{name}".encode(), digest_size=8).digest() for name in query_names(part)]
        query = np.frombuffer(b"".join(names), dtype="<u8").astype(np.uint64)
        keys = _mixed(query[code] + _mixed(place.astype(np.uint64)))
        rows = np.arange(len(part.y)) if data.kept is None else np.flatnonzero(data.kept)
        return self._least(keys[rows], part.first_row + rows, data.X)

    def merge(self, a: BasisRows, b: BasisRows) -> BasisRows:
        """The smallest of both."""
        stack = sparse.vstack if sparse.issparse(a.items) else np.concatenate
        items = stack((a.items, b.items))
        items = sparse.csr_array(items) if sparse.issparse(items) else items
        return self._least(np.concatenate((a.keys, b.keys)), np.concatenate((a.numbers, b.numbers)), items)

    def _least(self, keys: NDArray[np.uint64], numbers: NDArray[np.int64], items: Any) -> BasisRows:
        order = np.argsort(keys, kind="stable")[: self.size]
        return BasisRows(keys[order], numbers[order], items[order])


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea, Flood 2014): each bit of the result depends on every bit of x."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
