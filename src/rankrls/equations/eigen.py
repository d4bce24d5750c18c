"""Eigendecompositions of large symmetric matrices in 2.5 times their memory.

LAPACK's ``dsyevd`` needs the matrix, twice as much for its work, and what SciPy copies. It consists of three steps,
which are called here one by one, each without the interpreter's lock: ``dsytrd`` reduces the matrix to a tridiagonal
one and leaves its reflections in one triangle, ``dstedc`` decomposes that by divide and conquer, ``dormtr`` applies the
reflections to its eigenvectors. Between the first two the triangle is put aside, half a matrix, and its memory used
again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls._compiled.blas import call

_SMALL = 1000
"""Up to here the memory does not matter, and one call is faster."""
_MOST = 46000
"""Beyond, the length of the work does not fit into LAPACK's integers."""
_LEAST_NORM, _LARGEST_NORM = 1e-140, 1e140


def symmetric_eigen(S: NDArray[np.float64], *, overwrite: bool = False) -> tuple[NDArray[np.float64], Any]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix.

    Parameters
    ----------
    S : ndarray of shape (n, n)
    overwrite : bool
        Whether S may be destroyed. If so, the eigenvectors may stand in its memory.

    Returns
    -------
    values : ndarray of shape (n,)
    vectors : ndarray of shape (n, n)
        One a column.

    Raises
    ------
    numpy.linalg.LinAlgError
        If LAPACK finds no solution, as for a matrix that holds NaN.

    Notes
    -----
    About O(10 n^3). From n = 1000 on 2.5 n^2 numbers in all, S's own among them if it may be destroyed.
    """
    n = len(S)
    if n < _SMALL or n > _MOST:
        driver = "evd" if n < _SMALL else "evr"
        # The transposed matrix is the same one, in the order of LAPACK if S is in C's.
        A = S.T if S.flags.c_contiguous else S
        return linalg.eigh(A, overwrite_a=overwrite, check_finite=False, driver=driver)
    A = np.asarray(S if overwrite else S.copy())
    A = A.T if A.flags.c_contiguous else np.asfortranarray(A)
    norm = max(float(A.max()), -float(A.min()))
    if not np.isfinite(norm):
        raise np.linalg.LinAlgError("The matrix holds NaN or infinity.")
    unit = norm if norm > 0.0 and not _LEAST_NORM < norm < _LARGEST_NORM else 1.0
    if unit != 1.0:
        A /= unit
    d, e, tau = np.empty(n), np.empty(n - 1), np.empty(n - 1)
    _with_work("dsytrd", n, b"L", n, A, n, d, e, tau)
    reflections = np.concatenate([A[k + 2 :, k] for k in range(n - 1)])
    work, whole = np.empty(n * n + 4 * n + 1), np.empty(5 * n + 3, dtype=np.int64)
    _call("dstedc", b"I", n, d, e, A, n, work, len(work), whole, len(whole))
    H = work[: n * n].reshape(n, n, order="F")
    start = 0
    for k in range(n - 1):
        length = n - 2 - k
        H[k + 2 :, k] = reflections[start : start + length]
        start += length
    del reflections
    _with_work("dormtr", 64 * n, b"L", b"L", b"N", n, n, H, n, tau, A, n)
    return d * unit, A


def _with_work(name: str, least: int, *arguments: Any) -> None:
    """Call with as much work as the routine asks for."""
    asked = np.empty(1)
    _call(name, *arguments, asked, -1)
    work = np.empty(max(least, int(asked[0])))
    _call(name, *arguments, work, len(work))


def _call(name: str, *arguments: Any) -> None:
    """A routine of SciPy's LAPACK, whose last argument is its status."""
    status = np.zeros(1, dtype=np.int64)
    if not call("cython_lapack", name, *arguments, status):
        raise np.linalg.LinAlgError(f"SciPy hands out no {name} of this form.")
    if status.any():
        raise np.linalg.LinAlgError(f"LAPACK's {name} ended with status {status.view(np.intc)[0]}.")
