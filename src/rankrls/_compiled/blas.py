"""Calls of BLAS and LAPACK that let other threads run.

What ``scipy.linalg.blas`` and ``scipy.linalg.lapack`` offer holds the interpreter's lock while it works, so that
threads that each add blocks to a Gram matrix of their own would take turns. ``scipy.linalg.cython_blas`` and
``cython_lapack`` hand out the addresses of the same routines for code that calls them without the lock, as ctypes does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

_KINDS = {ctypes.c_char: bytes, ctypes.c_int: int, ctypes.c_int64: int, ctypes.c_double: float}


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
    # B in C order is B' in Fortran's: a (n, rows) matrix whose columns are n apart.
    if not call("cython_blas", "dsyrk", b"U", b"N", n, rows, 1.0, B, n, 1.0, gram, n):
        dsyrk(1.0, B.T, beta=1.0, c=gram, overwrite_c=1)


def call(module: str, name: str, *arguments: Any) -> bool:
    """Call a routine with arrays, whole numbers, floats and letters; whether scipy hands it out in the form of these.

    Arrays of whole numbers are the routine's own room: they are int64, which is enough for its integers of any size.
    """
    found = _routine(module, name)
    if found is None or len(found[1]) != len(arguments):
        return False
    routine, kinds = found
    given: list[Any] = []
    for value, kind in zip(arguments, kinds, strict=True):
        if isinstance(value, np.ndarray):
            given.append(value.ctypes.data)
        elif isinstance(value, _KINDS[kind]):
            given.append(ctypes.byref(kind(value)))
        else:
            return False
    routine(*given)
    return True


@cache
def _routine(module: str, name: str) -> tuple[Callable[..., None], list[Any]] | None:
    """The routine and the types of what its arguments point to; None where scipy does not hand it out."""
    capsule = getattr(import_module(f"scipy.linalg.{module}"), "__pyx_capi__", {}).get(name)
    if capsule is None:
        return None
    python = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", python))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", python))
    signature = name_of(capsule)
    known = {b"char *": ctypes.c_char, b"int *": ctypes.c_int, b"int64_t *": ctypes.c_int64}
    kinds = [known.get(kind.strip(), ctypes.c_double) for kind in signature.partition(b"(")[2].rstrip(b")").split(b",")]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(kinds))(pointer_of(capsule, signature)), kinds
