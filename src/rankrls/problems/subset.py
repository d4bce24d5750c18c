r"""Sparse RankRLS: functions that are expansions over a basis of r items.

Among ``f(x) = sum_j a_j k(x, z_j)`` the minimiser of the pairwise loss plus ``alpha ||f||^2`` is

.. math::

    a = ( K_{RM} L K_{MR} + \alpha K_{RR} )^{-1} K_{RM} L y

(Tsivtsivadze et al. 2008, equation 8). With ``T'K_RR T = I`` and ``a = T v`` it is primal RankRLS on the features
``K_MR T``, so that every regularization value, exact hold-out and updates come from there. The paper takes
``T = C'^{-1}`` of the Cholesky factor ``K_RR = C C'`` (section 4.1) and applies it to ``K_RM L K_MR``. That multiplies
rounding by the condition of ``K_RR``, easily 1e16 for a wide Gaussian, and is done where the condition is at most 1e7:
it saves half of all multiplications. Otherwise T comes from the eigenvectors of ``K_RR`` whose eigenvalues are not lost
in rounding; duplicate basis items are a special case of that. Most of a large condition is often due to few large
eigenvalues: those of a wide Gaussian kernel fall by powers of its width, one for the constant, one for each feature,
one for each pair of features. If so, rows are lowered along their eigenvectors U before anything is squared, to what
the next eigenvalue :math:`\tau` leaves,

.. math::

    K_{MR} \, ( I - U \, \mathrm{diag}(1 - \sqrt{\tau / s}) \, U' ) ,

and Gram matrices of what is left are whitened, whose condition is that of the other eigenvalues. Where too many are
large, T is applied to each row. In both cases rounding is multiplied by the root of the condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from rankrls._cached import cached_property
from rankrls.equations.eigen import symmetric_eigen
from rankrls.equations.spectrum import check_semidefinite
from rankrls.features.columns import BasisColumns, Lowered
from rankrls.features.rows import SAFE_COLUMNS
from rankrls.graph import Graph
from rankrls.kernels import Kernel
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.scorer import Scorer

_CONDITION = 1e7
"""Up to here Gram matrices may be whitened instead of rows: 1e-9 of the largest eigenvalue is lost at worst."""
_LOWERED = 1e5
"""Eigenvalues so many times the smallest are large."""


@dataclass(frozen=True)
class Basis:
    """A basis of items, and how functions over it are made orthonormal.

    Built by :meth:`build`.

    Attributes
    ----------
    kernel : Kernel
    items : dense, CSR, list, or for a precomputed kernel the items' numbers among the columns
    to_items : ndarray of shape (r, rank)
        ``T``: coefficients of the items for orthonormal functions, ``T'K_RR T = I``.
    rows_first : bool
        Whether rows are lowered or whitened before they are multiplied: T has orthogonal columns then.
    features : ndarray of shape (n, rank) or None
        Of a linear kernel: weights of the features for the same orthonormal functions.
    numbers : ndarray of shape (r,) or None
        Row numbers of the items, where they are rows of something.
    """

    kernel: Kernel
    items: Any
    to_items: NDArray[np.float64]
    rows_first: bool
    features: NDArray[np.float64] | None = None
    numbers: NDArray[np.intp] | None = None

    @classmethod
    def build(cls, kernel: Kernel, items: Any, K: NDArray[np.float64] | None = None) -> Basis:
        """Decompose ``K_RR``: Cholesky where it is well conditioned, else eigenvectors. O(r^3).

        Parameters
        ----------
        kernel : Kernel
        items : as in the attributes
        K : ndarray of shape (r, r), optional
            ``K_RR`` where it is known; needed for a precomputed kernel. Destroyed.

        Raises
        ------
        ValueError
            Where ``K_RR`` is not positive semidefinite, or zero.
        """
        if kernel.is_linear and K is None:
            return cls._linear(kernel, items)
        K = kernel(items) if K is None else K
        r = len(K)
        norm = float(np.abs(K).sum(axis=0).max(initial=0.0))
        factor, failed = linalg.lapack.dpotrf(K, lower=0, clean=1)
        if not failed and norm > 0.0:
            reciprocal, _ = linalg.lapack.dpocon(factor, norm)
            if reciprocal * _CONDITION >= 1.0:
                inverse, _ = linalg.lapack.dtrtri(factor, lower=0, overwrite_c=1)
                return cls(kernel, items, np.ascontiguousarray(inverse), False)
        del factor
        values, vectors = symmetric_eigen(K, overwrite=True)
        top = float(values.max(initial=0.0))
        check_semidefinite(values, "among the basis items")
        alive = values > r * np.finfo(np.float64).eps * top
        return cls(kernel, items, vectors[:, alive] / np.sqrt(values[alive]), True)

    @classmethod
    def _linear(cls, kernel: Kernel, items: Any) -> Basis:
        """From the singular vectors of the items themselves, whose condition is not squared."""
        Z = items.toarray() if sparse.issparse(items) else np.asarray(items)
        U, s, Vt = linalg.svd(Z.astype(np.float64), full_matrices=False, check_finite=False)
        alive = s > max(Z.shape) * np.finfo(np.float64).eps * s.max(initial=0.0)
        return cls(kernel, items, U[:, alive] / s[alive], True, np.ascontiguousarray(Vt[alive].T))

    def __post_init__(self) -> None:
        if self.to_items.shape[1] == 0:
            raise ValueError(
                "All items of the basis are zero under this kernel, and so is every function over them. Choose other "
                "items (basis_indices, a larger n_basis, another random_state)."
            )

    @property
    def size(self) -> int:
        """Items in the basis."""
        return len(self.to_items)

    def columns(self, X: Any, *, orthonormal: bool = False) -> BasisColumns:
        """The features of items X, block by block: ``K_MR``, lowered or whitened where rows come first, or always."""
        if self.features is not None:
            features = self.features
            return BasisColumns(X, lambda block: np.asarray(block @ features, dtype=np.float64), features.shape[1])
        mixing = self.to_items if orthonormal else self._rows[0]
        return BasisColumns(X, self.kernel.columns(self.items), self.size, mixing)

    def read(self, a: NDArray[np.float64]) -> Scorer:
        """Coefficients of the basis items, (items, columns), as functions of items."""
        if self.kernel.name == "precomputed":
            return Scorer(None, a, self.kernel, columns=self.numbers)
        weights = np.asarray(self.items.T @ a, dtype=np.float64) if self.kernel.is_linear else None
        return Scorer(weights, a, self.kernel, self.items)

    @property
    def whitening(self) -> NDArray[np.float64] | None:
        """What is left to whiten in the normal equations of :meth:`columns`."""
        return None if self.features is not None else self._rows[1]

    @cached_property
    def _rows(self) -> tuple[NDArray[np.float64] | Lowered | None, NDArray[np.float64] | None]:
        """What rows of ``K_MR`` are multiplied by, and what is left to whiten: the two make T."""
        T = self.to_items
        if not self.rows_first:
            return None, T
        values = 1.0 / np.einsum("ij,ij->j", T, T)
        r, rank = T.shape
        few = max(int(np.count_nonzero(values > _LOWERED * values.min())), SAFE_COLUMNS)
        if 4 * r * few + r * r >= 2 * r * rank + rank * rank:
            return T, None
        large, tau = np.argsort(values)[-few:], np.sort(values)[-few - 1]
        U = T[:, large] * np.sqrt(values[large])
        rest = T.copy()
        rest[:, large] = U / np.sqrt(tau)
        return Lowered(U, 1.0 - np.sqrt(tau / values[large])), rest


class OverBasis:
    """A problem whose coefficients are those of the items of a basis."""

    basis: Basis

    def read(self, coefficients: NDArray[np.float64]) -> Scorer:
        """Coefficients of the basis items as functions of items."""
        return self.basis.read(coefficients)

    def unwhitened(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients of the basis items."""
        return np.asarray(self.basis.to_items @ coefficients)


class SubsetProblem(OverBasis, PrimalProblem):
    """Minimise ``||F K_MR a - target||^2 + alpha a'K_RR a``.

    Parameters
    ----------
    X : dense, CSR or list of the m items; the square matrix for a precomputed kernel
    basis : Basis
    graph : Graph
    target : ndarray of shape (rows of F, targets)

    Notes
    -----
    O(m r^2) time and O(r^2) memory beside the data, then what :class:`rankrls.problems.primal.PrimalProblem` needs for
    r features. Equal to the dual problem with the kernel ``k_R(x)' K_RR^-1 k_R(x')``.
    """

    def __init__(self, X: Any, basis: Basis, graph: Graph, target: NDArray[np.float64]) -> None:
        self.basis = basis
        super().__init__(basis.columns(X), graph, target, whitening=basis.whitening)
