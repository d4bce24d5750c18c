"""Eigenvectors of kernel matrices and of Gram matrices of features, and solutions for one alpha."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.linalg.lapack import dgejsv, dpstrf

from rankrls._arrays import device_of, namespace, on_device, to_device_of, to_host
from rankrls._compiled import blas_threads_for
from rankrls._errors import InputError
from rankrls._typing import Array, Matrix

EPS = float(np.finfo(np.float64).eps)
SPAN = 1e12
"""Ratio of squared spreads beyond which eigensolvers other than Jacobi's lose the smaller feature."""
_NEGATIVE = 1e-8
"""Share of the largest eigenvalue up to which a negative eigenvalue counts as rounding."""


def symmetric_eigen(S: Matrix, size: int) -> tuple[Array, Matrix]:
    """Eigenvalues, on the host, and eigenvectors of a symmetric matrix, whose lower triangle is read and destroyed.

    Eigenvalues of at most ``size`` units of rounding of the largest are set to 0. O(n^3); memory for three n x n
    matrices.
    """
    n = S.shape[0]
    if on_device(S):
        found, vectors = namespace(S).linalg.eigh(S)
        values = np.array(to_host(found), dtype=np.float64)
    else:
        # the transpose is in LAPACK's column-major order
        with blas_threads_for(float(n) ** 3):
            values, vectors = linalg.eigh(S.T, lower=False, overwrite_a=True, check_finite=False, driver="evd")
    values[np.abs(values) <= max(size, n) * machine_epsilon(S) * np.abs(values).max(initial=0.0)] = 0.0
    return values, vectors


def machine_epsilon(S: Matrix) -> float:
    """Machine epsilon in the precision of an array."""
    return float(namespace(S).finfo(S.dtype).eps)


def jacobi_eigen(G: Array, size: int) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a Gram matrix, accurate however small some features are relative to others.

    Each entry of G is accurate relative to the spreads of its two features, and so is its pivoted Cholesky factor ``G =
    R'R``. One-sided Jacobi rotations of the columns of R preserve this accuracy (Demmel & Veselic, SIAM Journal on
    Matrix Analysis and Applications 13, 1992; Drmac & Veselic, the same journal 29, 2008; LAPACK's dgejsv). Linear
    dependence is detected from the pivots of the correlations, at ``size`` units of rounding; its eigenvalues are 0.
    O(n^3).
    """
    n = len(G)
    if not n:
        return np.zeros(0), np.zeros((0, 0))
    spreads = np.sqrt(np.maximum(G.diagonal(), 0.0))
    units = np.divide(1.0, spreads, out=np.zeros(n), where=spreads > 0.0)
    C = G * units * units[:, None]
    C.flat[:: n + 1] = spreads > 0.0
    L, pivots, rank, _ = dpstrf(C, tol=max(size, n) * EPS, lower=1)
    L = np.tril(L)
    L[:, rank:] = 0.0
    R = np.zeros((n, n), order="F")
    R[:, pivots - 1] = L.T
    R *= spreads
    found, _, vectors, scale, _, status = dgejsv(R, joba=0, jobu=0, jobv=1, jobr=0, jobt=0, jobp=0, overwrite_a=1)
    if status:
        raise linalg.LinAlgError("The eigenvalues of X'LX did not converge.")
    values = (found * (scale[0] / scale[1])) ** 2
    values[rank:] = 0.0
    return values, vectors


def lost_feature(squares: Array) -> int | None:
    """Feature with the smallest positive squared spread, if an eigensolver loses it relative to the largest."""
    live = np.where(squares > 0.0, squares, np.inf)
    return int(np.argmin(live)) if squares.max(initial=0.0) / SPAN > live.min(initial=np.inf) else None


def check_semidefinite(values: Array, parameter: str = "kernel", name: str | None = None) -> None:
    """Raise InputError if eigenvalues of a kernel matrix are negative beyond rounding, or not finite."""
    top = float(np.abs(values).max(initial=0.0))
    if values.min(initial=0.0) < -_NEGATIVE * top or not np.isfinite(values).all():
        raise InputError(
            f"The {name or parameter} is not positive semidefinite: the smallest eigenvalue of its matrix is "
            f"{values.min():.3g}, the largest {values.max():.3g}. Use another kernel or clip its negative eigenvalues.",
            parameter=parameter,
        )


def definite_inverse(A: Array, name: str) -> Array:
    """Inverse of a matrix that is positive definite up to rounding, by Cholesky; an indefinite matrix is refused."""
    try:
        factor = linalg.cho_factor(A, lower=True, check_finite=False)
        return np.asarray(linalg.cho_solve(factor, np.eye(len(A)), check_finite=False))
    except linalg.LinAlgError:
        check_semidefinite(linalg.eigvalsh(A, check_finite=False), name=name)
        return np.asarray(linalg.pinvh(A))


def cholesky_solution(S: Matrix, B: Matrix, alpha: float) -> Array | None:
    """``(S + alpha I)^-1 B``; None if alpha is lost in rounding of S, or that matrix is indefinite. S is unchanged."""
    n = S.shape[0]
    xp = namespace(S)
    if not n or not alpha > max(1e-9, 1e2 * machine_epsilon(S)) * float(xp.linalg.trace(S)) / n:
        return None
    if on_device(S):
        A = S + alpha * xp.eye(n, dtype=S.dtype, device=device_of(S))
        try:
            xp.linalg.cholesky(A)  # a test of definiteness: the array API has no triangular solve
        except Exception as error:
            if "LinAlgError" not in type(error).__name__:
                raise
            return None
        return to_host(xp.linalg.solve(A, to_device_of(B, A)))
    A = S.T.copy(order="F")
    A[np.diag_indices(n)] += alpha
    try:
        factor = linalg.cho_factor(A, lower=False, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    return np.asarray(linalg.cho_solve(factor, B, check_finite=False))
