"""A BLAS call that lets other threads run.

What ``scipy.linalg.blas`` offers holds the interpreter's lock while it works, so that threads that each add blocks to a
Gram matrix of their own would take turns. ``scipy.linalg.cython_blas`` hands out the address of the same routine for
code that calls it without the lock, and ctypes does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas
from scipy.linalg.blas import dsyrk

__all__ = ["add_gram"]


def add_gram(gram: NDArray[np.float64], B: NDArray[np.float64]) -> None:
    """Add the upper triangle of ``B'B`` to that of ``gram``, in place, while other threads run.

    Parameters
    ----------
    gram : ndarray of shape (n, n), float64, Fortran order
        Below its diagonal it stays as it is.
    B : ndarray of shape (rows, n)
        Copied where it is not float64 in C order.

    Notes
    -----
    O(rows n^2). As many threads as BLAS is allowed, see :func:`rankrls._compiled.threads.one_blas_thread`.
    """
    B = np.ascontiguousarray(B, dtype=np.float64)
    rows, n = B.shape
    if gram.shape != (n, n) or gram.dtype != np.float64 or not gram.flags.f_contiguous or not gram.flags.writeable:
        raise TypeError("The Gram matrix must be float64 in Fortran order, of the rows' columns, and writeable.")
    if not n or not rows:
        return
    found = _address()
    if found is None:
        dsyrk(1.0, B.T, beta=1.0, c=gram, overwrite_c=1)
        return
    routine, integer = found
    columns, one = integer(n), ctypes.c_double(1.0)
    # B in C order is B' in Fortran's: a (n, rows) matrix whose columns are n apart.
    routine(b"U", b"N", columns, integer(rows), one, B.ctypes.data, columns, one, gram.ctypes.data, columns)


@cache
def _address() -> tuple[Callable[..., None], type[Any]] | None:
    """The routine and the type of its integers; None where scipy hands it out in no form that is known here."""
    capsule = getattr(cython_blas, "__pyx_capi__", {}).get("dsyrk")
    if capsule is None:
        return None
    python = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", python))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", python))
    signature = name_of(capsule)
    kinds = [kind.strip() for kind in signature.partition(b"(")[2].rstrip(b")").split(b",")]
    integers = {b"int *": ctypes.c_int, b"int64_t *": ctypes.c_int64}
    if len(kinds) != 10 or kinds[2] not in integers or {kinds[i] for i in (2, 3, 6, 9)} != {kinds[2]}:
        return None
    integer = integers[kinds[2]]
    by = ctypes.POINTER(integer)
    real = ctypes.POINTER(ctypes.c_double)
    at = ctypes.c_void_p
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, by, by, real, at, by, real, at, by)
    return prototype(pointer_of(capsule, signature)), integer
