"""The one way in which this package compiles a loop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

F = TypeVar("F", bound=Callable[..., Any])

on_first_use: Callable[[], None] | None = None
"""Called before a loop is compiled, which takes seconds."""


class _Cache(FunctionCache):
    """A cache that costs time if its files are damaged or cannot be written, and never a result."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        found = None
        try:
            # numba's own method first loads what only compiling needs, which takes longer than the commands' loops
            rtsys.initialize(context)
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(signature, context)
        except Exception:  # a damaged pickle raises whatever its bytes happen to say
            with suppress(OSError):
                self.flush()
        if found is None and on_first_use is not None:
            on_first_use()
        return found

    def save_overload(self, signature: Any, result: Any) -> None:
        with suppress(Exception):
            super().save_overload(signature, result)


def compiled(function: F) -> F:
    """Compile ``function`` with numba: no Python objects, no GIL, machine code cached on disk.

    Never ``parallel=True`` (its thread layers do not survive a fork, nor two threads of the caller) and never
    ``fastmath`` (sums must not depend on how the compiler felt). Where no directory for the cache can be written,
    the loop is compiled anew in each process.
    """
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}  # only C would call through that wrapper
    loop: Any = numba.njit(**options)(function)
    if hasattr(loop, "enable_caching"):  # it is the function itself where numba is switched off
        with suppress(RuntimeError):  # numba finds no writable place for its cache
            loop._cache = _Cache(function)
    return cast(F, loop)
