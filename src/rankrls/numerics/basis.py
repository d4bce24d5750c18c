r"""A basis of items: functions ``f(x) = sum_j a_j k(x, z_j)`` as weights of orthonormal features.

With ``T'K_RR T = I`` and ``a = T v``, the minimizer of Tsivtsivadze et al. (2008, equation 8),

.. math:: a = ( K_{RM} L K_{MR} + \alpha K_{RR} )^{-1} K_{RM} L y ,

is that of the primal problem in the features ``K_MR T``, whose regularizer is ``||v||^2``. If K_RR is well conditioned,
T is applied to the Gram matrix of ``K_MR``, which is cheapest. Otherwise it is applied to each row, so that rounding
errors grow only with the square root of the condition number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from rankrls._arrays import as_floats, to_device_of, to_host
from rankrls._errors import InputError
from rankrls._rows import take_items
from rankrls._typing import Array, Index, Matrix
from rankrls.kernels import Kernel
from rankrls.numerics.eigen import EPS, check_semidefinite, symmetric_eigen
from rankrls.numerics.scorer import Scorer

_CONDITION = 1e7
"""Largest condition number for whitening Gram matrices, not rows: loses at worst 1e-9 of the largest eigenvalue."""


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
