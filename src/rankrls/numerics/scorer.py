r"""Functions of items: weighted features, or weighted kernel functions of given items; bases of such items.

With ``T'K_RR T = I`` and ``a = T v``, the minimizer of Tsivtsivadze et al. (2008, equation 8),

.. math:: a = ( K_{RM} L K_{MR} + \alpha K_{RR} )^{-1} K_{RM} L y ,

is that of the primal problem in the features ``K_MR T``, whose regularizer is ``||v||^2``. If K_RR is well conditioned,
T is applied to the Gram matrix of ``K_MR``, which is cheapest. Otherwise it is applied to each row, so that rounding
errors grow only with the square root of the condition number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, sparse

from rankrls._arrays import as_floats, chunk_values, joined, on_device, to_device_of, to_host
from rankrls._compiled import map_threads, one_blas_thread
from rankrls._errors import InputError
from rankrls._rows import row_slices, take_items
from rankrls._typing import Array, Index, Mask, Matrix
from rankrls.kernels import Kernel
from rankrls.numerics.eigen import EPS, check_semidefinite, symmetric_eigen

_LINEAR = Kernel("linear")
_PREDICT_ROWS = 4096
_EXPANSION_ROWS = 512
_CONDITION = 1e7
"""Largest condition number for whitening Gram matrices, not rows: loses at worst 1e-9 of the largest eigenvalue."""


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
            if sparse.issparse(X):
                return np.asarray(X @ self.weights)
            return _by_blocks(X, as_floats, self.weights, _PREDICT_ROWS)  # without a float64 copy of X
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


@dataclass(frozen=True, eq=False)
class Basis:
    """Basis of r items, built by :meth:`build`.

    Attributes
    ----------
    kernel : Kernel
    items : dense, CSR or list; for a precomputed kernel the column numbers of the items
    to_items : ndarray of shape (r, rank)
        ``T``: item coefficients of the orthonormal functions.
    rows_first : bool
        Whether rows are whitened instead of Gram matrices.
    numbers : ndarray of shape (r,) or None
        Row numbers of the items, if they are rows of X.
    of_features : ndarray of shape (n, rank) or None
        Orthonormal functions as weights of the features, for a linear kernel; no feature is squared to find them.
    """

    kernel: Kernel
    items: Matrix
    to_items: Array
    rows_first: bool
    numbers: Index | None = None
    of_features: Array | None = None

    @classmethod
    def build(cls, kernel: Kernel, items: Matrix, numbers: Index | None = None, K: Array | None = None) -> Basis:
        """Whiten ``K_RR``: by Cholesky if it is well conditioned, otherwise by its eigenvectors. O(r^3).

        Parameters
        ----------
        kernel : Kernel
        items, numbers : as in the attributes
        K : ndarray of shape (r, r), optional
            ``K_RR``; needed for a precomputed kernel. Destroyed.

        Raises
        ------
        InputError
            If ``K_RR`` is not positive semidefinite, or zero.
        """
        if kernel.is_linear:
            Z = np.asarray(items.toarray() if sparse.issparse(items) else to_host(items), dtype=np.float64)
            U, s, directions = linalg.svd(Z, full_matrices=False, check_finite=False)
            live = s > max(Z.shape) * EPS * s.max(initial=0.0)
            to_items = _not_empty(U[:, live] / s[live])
            of_features = np.ascontiguousarray(directions[live].T)
            return cls(kernel, items, to_device_of(to_items, items), True, numbers, to_device_of(of_features, items))
        K = kernel(items) if K is None else K
        here = to_host(K)
        norm = float(np.abs(here).sum(axis=0).max(initial=0.0))
        factor, failed = linalg.lapack.dpotrf(here, lower=0, clean=1)
        if not failed and norm > 0.0 and linalg.lapack.dpocon(factor, norm)[0] * _CONDITION >= 1.0:
            inverse, _ = linalg.lapack.dtrtri(factor, lower=0, overwrite_c=1)
            return cls(kernel, items, to_device_of(np.ascontiguousarray(inverse), K), False, numbers)
        values, vectors = symmetric_eigen(K, len(here))
        check_semidefinite(values)
        live = values > 0.0
        T = _not_empty(to_host(vectors)[:, live] / np.sqrt(values[live]))
        return cls(kernel, items, to_device_of(T, K), True, numbers)

    @property
    def whitening(self) -> Array | None:
        """Whitening matrix of the Gram matrices of :meth:`features`; None if their rows are whitened."""
        return None if self.rows_first else self.to_items

    def scorer(self, coefficients: Array) -> Scorer:
        """Scoring functions with these coefficients (columns, targets) of :meth:`features`."""
        a = to_device_of(coefficients, self.to_items)
        a = self.to_items @ a if self.rows_first else a  # otherwise they are the items' already
        if self.kernel.name == "precomputed":
            return Scorer(None, a, self.kernel, columns=self.numbers)
        weights = None if self.of_features is None else self.of_features @ to_device_of(coefficients, self.of_features)
        return Scorer(weights, a, self.kernel, self.items)

    def features(self, X: Matrix) -> BasisFeatures:
        """Features of items X, evaluated when rows are requested."""
        columns = self.kernel.columns(self.items)
        if self.of_features is not None:
            weights = self.of_features
            return BasisFeatures(X, lambda block: as_floats(block) @ weights, weights.shape[1])
        if not self.rows_first:
            return BasisFeatures(X, columns, self.to_items.shape[0])
        return BasisFeatures(X, lambda block: columns(block) @ self.to_items, self.to_items.shape[1])


@dataclass(frozen=True, eq=False)
class BasisFeatures:
    """An (m, columns) matrix whose rows are evaluated when they are requested."""

    X: Matrix
    evaluate: Callable[[Matrix], Array]
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """Items and columns."""
        return len(self.X) if isinstance(self.X, list) else int(self.X.shape[0]), self.n_columns

    def __getitem__(self, rows: Matrix) -> Array:
        return self.evaluate(take_items(self.X, rows))


def _not_empty(T: Array) -> Array:
    if not T.shape[1]:
        raise InputError(
            "All items of the basis are zero under this kernel, so every score would be zero. Choose other items "
            "(basis_indices, a larger n_basis, another random_state).",
            parameter="n_basis",
        )
    return T
