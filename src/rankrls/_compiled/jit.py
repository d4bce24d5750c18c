"""The one way in which this package compiles a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["compiled"]


def compiled(function: F) -> F:
    """Compile ``function`` with numba: no Python objects, no GIL, machine code cached on disk.

    Never ``parallel=True`` (its thread layers do not survive a fork, nor two threads of the caller) and never
    ``fastmath`` (sums must not depend on how the compiler felt). Where no directory for the cache can be written,
    the loop is compiled anew in each process.
    """
    try:
        return cast(F, numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:  # numba finds no writable place for its cache
        return cast(F, numba.njit(nogil=True)(function))
