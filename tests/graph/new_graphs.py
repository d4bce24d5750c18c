"""Graphs that the package does not know: the least that a subclass of Graph has to say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls.graph import Graph, GraphOperator


@dataclass(frozen=True, eq=False)
class CycleGraph(Graph):
    """Inside each query every item is compared with the next one, and the last one with the first."""

    starts: NDArray[np.intp]
    weight: NDArray[np.float64]

    @classmethod
    def build(cls, lengths, weight=None):
        starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.intp)
        return cls(starts, np.ones(starts[-1]) if weight is None else weight)

    @property
    def n_items(self):
        return int(self.starts[-1])

    n_rows = n_items

    @property
    def n_blocks(self):
        return len(self.starts) - 1

    def rows_of(self, block):
        return slice(int(self.starts[block]), int(self.starts[block + 1]))

    @property
    def matrix(self):
        first, n = np.arange(self.n_items), self.n_items
        following = first + 1
        following[self.starts[1:] - 1] = self.starts[:-1]
        step = sparse.eye_array(n) - sparse.csr_array((np.ones(n), (first, following)), shape=(n, n))
        return sparse.csr_array(sparse.diags_array(np.sqrt(self.weight)) @ step)

    @property
    def F(self):
        M = self.matrix
        return GraphOperator(M.shape, lambda V: M @ V, lambda U: M.T @ U)


class StarGraph(CycleGraph):
    """Inside each query every item is compared with the first one.

    ``F f`` has a row for each item, its score less that of the first one, so that queries are judged as by f.
    """

    @property
    def matrix(self):
        first, n = np.repeat(self.starts[:-1], np.diff(self.starts)), self.n_items
        step = sparse.eye_array(n) - sparse.csr_array((np.ones(n), (np.arange(n), first)), shape=(n, n))
        return sparse.csr_array(sparse.diags_array(np.sqrt(self.weight)) @ step)
