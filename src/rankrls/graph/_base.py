"""What every preference graph can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Graph", "GraphOperator"]

Matrix = Any  # a numpy array of one or two dimensions, or a scipy sparse array or matrix


@dataclass(frozen=True)
class GraphOperator:
    """A matrix known by its products: ``operator @ V`` and ``operator.T @ V``, V dense or sparse.

    A one-dimensional V gives a one-dimensional product. A sparse V gives a sparse product.
    """

    shape: tuple[int, int]
    _product: Callable[[Matrix], Matrix]
    _transposed_product: Callable[[Matrix], Matrix]

    @property
    def T(self) -> GraphOperator:
        return GraphOperator(self.shape[::-1], self._transposed_product, self._product)

    def __matmul__(self, V: Matrix) -> Matrix:
        if V.shape[0] != self.shape[1]:
            raise ValueError(
                f"A graph operator of shape {self.shape} cannot be applied to {V.shape[0]} rows; "
                f"it needs {self.shape[1]}."
            )
        return self._product(V)


class Graph(ABC):
    """A weighted preference graph over ``n_items`` items.

    With scores ``f`` the pairwise loss is ``||F f - target||^2``, where ``F'F = L`` is the graph's Laplacian. ``F`` has
    ``n_rows`` rows: one for each item of a :class:`ScoredGraph`, one for each preference of a :class:`PairGraph`.
    """

    n_items: int

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Rows of ``F``."""

    @property
    @abstractmethod
    def L(self) -> GraphOperator:
        """The Laplacian, (n_items, n_items)."""

    @property
    @abstractmethod
    def F(self) -> GraphOperator:
        """A factor of the Laplacian, (n_rows, n_items)."""

    @abstractmethod
    def rows_of(self, block: int) -> NDArray[np.intp] | slice:
        """Rows of ``F`` that block number ``block`` owns: a query, or a group of preferences."""

    @property
    @abstractmethod
    def n_blocks(self) -> int:
        """Independent blocks: queries, or groups of preferences."""

    def quadratic(self, V: Matrix) -> NDArray[np.float64] | np.float64:
        """``v' L v`` of each column: the weighted sum of squared differences over the compared pairs. O(items)."""
        FV = self.F @ V
        if sparse.issparse(FV):
            return np.asarray(FV.multiply(FV).sum(axis=0)).ravel()
        return np.einsum("i...,i...->...", FV, FV)
