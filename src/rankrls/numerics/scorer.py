"""Functions of items: weighted features, or weighted kernel functions of given items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from rankrls._arrays import as_floats, chunk_values, joined, on_device, to_device_of, to_host
from rankrls._compiled import map_threads, one_blas_thread
from rankrls._rows import row_slices, take_items
from rankrls._typing import Array, Index, Mask, Matrix
from rankrls.kernels import Kernel

_LINEAR = Kernel("linear")
_PREDICT_ROWS = 4096
_EXPANSION_ROWS = 512


@dataclass(frozen=True, eq=False)
class Scorer:
    """Functions ``w'x``, or ``sum_j a_j k(x, z_j)``: one for each column of the coefficients.

    Every solution is converted to a scorer, with which a fitted estimator predicts. Several columns belong to several
    targets, several regularization values, or both.

    Parameters
    ----------
    weights : ndarray of shape (n, columns), optional
        Weights of the features; always set for a linear function.
    coefficients : ndarray of shape (items, columns), optional
        Weights of the kernel functions of items.
    kernel : Kernel
    items : array-like, optional
        Items of the expansion; None for a kernel given as a matrix, whose columns represent them.
    columns : ndarray of int, optional
        Columns of a given kernel matrix that the coefficients weight; all by default.
    """

    weights: Array | None = None
    coefficients: Array | None = None
    kernel: Kernel = _LINEAR
    items: Matrix = None
    columns: Index | None = None

    def __call__(self, X: Matrix) -> Array:
        """Scores of items, (rows, columns). O(rows n columns), or O(rows items (n + columns)), in blocks of rows.

        For a kernel given as a matrix, X contains its values between these items and the training items.
        """
        if self.weights is not None:
            return linear_scores(X, self.weights)
        assert self.coefficients is not None
        if self.kernel.name != "precomputed":
            return expansion_scores(X, self.kernel.columns(self.items), self.coefficients)
        K = X if self.columns is None else X[:, self.columns]
        return _products(K, self.coefficients) if isinstance(K, np.ndarray) else np.asarray(K @ self.coefficients)

    def on_host(self) -> Scorer:
        """The same functions, with numpy arrays."""
        W, a, items = (None if v is None else to_host(v) for v in (self.weights, self.coefficients, self.items))
        return replace(self, weights=W, coefficients=a, items=items)

    def over(self, kept: Mask | None) -> Scorer:
        """The same functions for a given kernel matrix with columns for all rows, not only for the ``kept`` ones."""
        if kept is None or self.kernel.name != "precomputed" or self.coefficients is None:
            return self
        if self.columns is not None:
            return replace(self, columns=np.flatnonzero(kept)[self.columns])
        out = np.zeros((len(kept), self.coefficients.shape[1]))
        out[kept] = self.coefficients
        return replace(self, coefficients=out)

    @staticmethod
    def side_by_side(scorers: Sequence[Scorer]) -> Scorer:
        """The functions of several scorers over the same items."""
        first = scorers[0]
        if len(scorers) == 1:
            return first
        weights = [s.weights for s in scorers if s.weights is not None]
        coefficients = [s.coefficients for s in scorers if s.coefficients is not None]
        return replace(
            first,
            weights=joined(weights, axis=1) if weights else None,
            coefficients=joined(coefficients, axis=1) if coefficients else None,
        )


def expansion_scores(X: Matrix, columns: Callable[[Matrix], Matrix], a: Array) -> Array:
    """``K a`` for coefficients (items,) or (items, columns), block by block."""
    return _by_blocks(X, columns, a, _EXPANSION_ROWS)


def linear_scores(X: Matrix, W: Array) -> Array:
    """``X W`` for weights (n,) or (n, columns), in blocks that avoid a float64 copy of X; equal rows stay equal."""
    return np.asarray(X @ W) if sparse.issparse(X) else _by_blocks(X, as_floats, W, _PREDICT_ROWS)


def _by_blocks(X: Matrix, columns: Callable[[Matrix], Matrix], a: Array, step: int) -> Array:
    m = len(X) if isinstance(X, list) else X.shape[0]
    if on_device(X):
        step = max(1, chunk_values(X) // max(X.shape[1], a.shape[0]))
        blocks = [columns(take_items(X, rows)) @ to_device_of(a, X) for rows in row_slices(m, step)]
        scores: Array = joined(blocks)  # on the device of X
        return scores
    out = np.empty((m, *a.shape[1:]))

    def score(rows: slice) -> None:
        out[rows] = _products(columns(X[rows]), a)

    with one_blas_thread():
        map_threads(score, [slice(a, a + step) for a in range(0, m, step)])
    return out


def _products(X: Matrix, W: Array) -> Array:
    """``X W`` in float64. A single column is summed row by row, because BLAS rounds equal rows differently."""
    X = X.astype(np.float64, copy=False)
    if W.ndim == 2 and W.shape[1] != 1:
        return np.asarray(X @ W)
    if X.shape[1] != len(W):  # einsum would repeat a single column
        raise ValueError(f"{X.shape[1]} columns for {len(W)} coefficients.")
    return np.asarray(np.einsum("ij,j->i", X, np.ascontiguousarray(W.ravel()))).reshape(len(X), *W.shape[1:])
