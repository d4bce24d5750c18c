"""One eigendecomposition, every regularization value.

With ``S = V diag(values) V'`` the regularized inverse is ``V diag(1 / (values + alpha)) V'``: after the O(n^3)
decomposition each further ``alpha`` is a diagonal scaling (Pahikkala et al. 2007, section 2.4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls._errors import InputError
from rankrls.equations.eigen import symmetric_eigen

LOST = 1e3
"""An alpha of so many cutoffs stands clear of the rounding noise of the null space."""
_NEGATIVE = 1e-8
"""Of the largest eigenvalue: a negative one that is smaller is taken for rounding."""


def check_semidefinite(values: NDArray[np.float64], of: str, parameter: str = "kernel") -> None:
    """Refuse the eigenvalues of a kernel's matrix if some are negative; ``of`` says where."""
    top = float(np.abs(values).max(initial=0.0))
    if values.min(initial=0.0) < -_NEGATIVE * top or not np.isfinite(values).all():
        raise InputError(
            f"The {{{parameter}}} is not positive semidefinite: {of} the smallest eigenvalue is {{0:.3g}}, the largest "
            "{1:.3g}.",
            values.min(),
            values.max(),
            remedy="Take another kernel, or clip its negative eigenvalues.",
            parameter=parameter,
        )


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of a symmetric matrix, numerical noise set to exactly zero.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Ascending; those with ``|value| <= cutoff`` are 0.
    vectors : ndarray of shape (n, n)
    cutoff : float
        ``size * eps * max |value|``, where ``size`` is the larger side of the factor.
    """

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]
    cutoff: float

    @property
    def rank(self) -> int:
        return int(np.count_nonzero(self.values))

    def inverse(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """``1 / (values + alpha)``, shape (n, alphas); 0 in the null space where alpha is lost in its noise.

        The null space carries next to no right-hand side, but rounding errors of it: for an alpha near the cutoff
        leaving it out is the limit ``alpha -> 0`` from above (minimum norm), and keeps those errors from being divided
        by a tiny number. A larger alpha divides them harmlessly, and what little is there counts: a direction of
        eigenvalue lambda still moves the scores of new items by up to ``sqrt(lambda) / alpha``.

        Raises
        ------
        ValueError
            Where ``value + alpha`` is not positive for a negative eigenvalue (an indefinite kernel): the problem
            has no minimum there.
        """
        null = self.values == 0.0
        total = self.values[:, None] + alphas
        if not null.all() and total[~null].min(initial=np.inf) <= 0.0:
            raise InputError(
                "The {kernel} is not positive semidefinite: its smallest eigenvalue on the compared pairs is {0:.3g}, "
                "so every {alpha} must be larger than {1:.3g}; got {2:.3g}.",
                self.values.min(),
                -self.values.min(),
                alphas.min(),
                parameter="alpha",
            )
        dropped = null[:, None] & (alphas <= LOST * self.cutoff)
        total[dropped] = 1.0
        out = 1.0 / total
        out[dropped] = 0.0
        return np.asarray(out)

    def apply_inverse(self, alphas: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
        """``(S + alpha I)^-1 B`` for every alpha, (alphas, n, columns of B), in one product with the eigenvectors."""
        columns = B.shape[1]
        scaled = self.inverse(alphas)[:, :, None] * (self.vectors.T @ B)[:, None, :]
        out = self.vectors @ scaled.reshape(len(self.values), len(alphas) * columns)
        return np.ascontiguousarray(out.reshape(-1, len(alphas), columns).transpose(1, 0, 2))


def spectrum(
    S: NDArray[np.float64], size: int, *, noise: float = 0.0, semidefinite: bool = False, overwrite: bool = False
) -> Spectrum:
    """Decompose a symmetric matrix.

    Parameters
    ----------
    S : ndarray of shape (n, n)
    size : int
        The larger side of the factor of S, which scales its rounding noise.
    noise : float
        A cutoff that S inherits, where it is the difference of larger matrices.
    semidefinite : bool
        Whether only rounding can have made an eigenvalue negative, however far: it is then 0, too.
    overwrite : bool
        Whether S may be destroyed.
    """
    if S.shape[0] == 0:
        return Spectrum(np.zeros(0), np.zeros((0, 0)), 0.0)
    values, vectors = symmetric_eigen(S, overwrite=overwrite)
    cutoff = max(noise, float(max(size, S.shape[0]) * np.finfo(np.float64).eps * np.abs(values).max()))
    values[(values if semidefinite else np.abs(values)) <= cutoff] = 0.0
    return Spectrum(values, vectors, cutoff)


def auto_alphas(values: NDArray[np.float64], n_alphas: int = 21, *, least: float = np.inf) -> NDArray[np.float64]:
    """A geometric grid of regularization values relative to the spectrum, descending.

    From ten times the largest eigenvalue, where the model is a constant direction, down by ten decades to where only
    directions of negligible energy are still damped; above the most negative eigenvalue of an indefinite kernel. Where
    a feature's own eigenvalue ``least`` is smaller still, down to where that feature is free too, in equal steps.
    """
    top = float(values.max(initial=0.0))
    if not top > 0.0:
        return np.ones(1)
    lowest = max(1e-9 * top, -2.0 * float(values.min(initial=0.0)))
    if 0.0 < least < lowest:
        further = 1e-3 * least
        n_alphas = round((n_alphas - 1) * float(np.log(10.0 * top / further) / np.log(10.0 * top / lowest))) + 1
        lowest = further
    return np.asarray(np.geomspace(10.0 * top, lowest, n_alphas))


def is_clear(S: NDArray[np.float64], alpha: float) -> bool:
    """Whether alpha stands clear of the rounding noise of S, so that a Cholesky factor of ``S + alpha I`` is exact."""
    n = S.shape[0]
    return bool(n and alpha > 1e-9 * np.trace(S) / n and alpha > 0.0)


def solve_one(
    S: NDArray[np.float64], B: NDArray[np.float64], alpha: float, size: int, *, semidefinite: bool = False
) -> NDArray[np.float64]:
    """``(S + alpha I)^-1 B`` for one alpha: Cholesky, or the spectrum where alpha is lost in S's rounding noise.

    O(n^3 / 3) against about O(10 n^3). ``semidefinite`` as for :func:`spectrum`.
    """
    n = S.shape[0]
    if is_clear(S, alpha):
        A = S.T.copy(order="F")  # the same matrix, in LAPACK's order of it
        A[np.diag_indices(n)] += alpha
        try:
            factor = linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            pass  # an indefinite kernel: the spectrum says by how much
        else:
            return np.asarray(linalg.cho_solve(factor, B, check_finite=False))
    return spectrum(S, size, semidefinite=semidefinite).apply_inverse(np.array([alpha]), B)[0]
