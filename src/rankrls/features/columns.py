"""Features that are evaluated block by block and never held: kernel columns of a basis.

With m items and r columns only a block of rows is in memory, so that ``Phi' L Phi`` of a million items and thousands
of columns takes O(r^2) memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.threads import n_threads
from rankrls.features.blocks import Rows, row_slices
from rankrls.features.feature_rows import FeatureRows
from rankrls.features.rows import row_products

BLOCK_BYTES = 32 << 20
_BLOCK_ROWS = 2048
_MIN_ROWS = 256
_CACHED = 1 << 17
"""Entries that stay in the second-level cache while they are worked on."""
_MOST_BYTES = 768 << 20
"""Of blocks and Gram matrices of all threads."""


def rows_of(X: Any) -> int:
    """How many items there are, rows of a matrix or of a sequence."""
    return len(X) if isinstance(X, list) else int(X.shape[0])


def take_items(X: Any, rows: Rows) -> Any:
    """Rows of a matrix, or items of a sequence."""
    if not isinstance(X, list):
        return X[rows]
    return X[rows] if isinstance(rows, slice) else [X[i] for i in rows]


@dataclass(frozen=True)
class Lowered:
    """The symmetric matrix ``I - U diag(shares) U'`` for few orthonormal U: rows times it have less along these.

    Attributes
    ----------
    U : ndarray of shape (n, few)
    shares : ndarray of shape (few,)
        From 0 to 1, what is taken off.
    """

    U: NDArray[np.float64]
    shares: NDArray[np.float64]

    __array_ufunc__ = None  # numpy leaves ``array @ self`` to this class

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.U), len(self.U)

    def __matmul__(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(V - self.U @ (self.shares[:, None] * (self.U.T @ V)))

    def __rmatmul__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """``values @ self``, in the memory of the values, by strips that stay in cache. O(rows n few)."""
        back = self.shares[:, None] * self.U.T
        for strip in row_slices(0, len(values), max(16, _CACHED // len(self.U))):
            part = values[strip]
            part -= row_products(part, self.U) @ back
        return values


class BasisColumns(FeatureRows):
    """An (m, columns) matrix given by its rows: ``evaluate(X[rows]) @ mixing``.

    Parameters
    ----------
    X : dense, CSR or list
        The m items.
    evaluate : callable
        Values of all columns for some items, dense float64 in memory of its own; see
        :class:`rankrls.kernels.KernelColumns`.
    n_columns : int
        Of what ``evaluate`` returns.
    mixing : ndarray of shape (n_columns, columns) or Lowered, optional
        Combines the columns, row by row.
    """

    held = False

    def __init__(
        self,
        X: Any,
        evaluate: Callable[[Any], NDArray[np.float64]],
        n_columns: int,
        mixing: NDArray[np.float64] | Lowered | None = None,
    ) -> None:
        self.X = X
        self.evaluate = evaluate
        self.mixing = mixing
        n_items = rows_of(X)
        self.shape = (n_items, n_columns if mixing is None else mixing.shape[1])

    @property
    def block_rows(self) -> int:
        """Rows of a block: of at most 32 MB, unless that would be few rows."""
        return int(np.clip(BLOCK_BYTES // (8 * max(self.shape[1], 1)), _MIN_ROWS, _BLOCK_ROWS))

    def gram_threads(self) -> int:
        columns = self.shape[1]
        each = 8 * (columns**2 + self.block_rows * columns)
        threads = min(n_threads(), _MOST_BYTES // max(each, 1))
        return int(threads) if 2 * threads >= n_threads() else 1

    def products(self, V: NDArray[np.float64]) -> Callable[[Rows], NDArray[np.float64]]:
        """``block(rows) @ V`` of rows to come: one product for each block, since V is mixed beforehand."""
        mixed = V if self.mixing is None else self.mixing @ V
        return lambda rows: row_products(self.evaluate(take_items(self.X, rows)), mixed)

    def block(self, rows: Rows) -> NDArray[np.float64]:
        values = self.evaluate(take_items(self.X, rows))
        return values if self.mixing is None else np.asarray(values @ self.mixing)
