"""The one way in which this package compiles a loop, and where the machine code is kept."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from rankrls._errors import InputWarning

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile ``function`` with numba: no Python objects, no GIL, machine code cached on disk.

    Never ``parallel=True`` (its thread layers do not survive a fork, nor two threads of the caller) and never
    ``fastmath`` (sums must not depend on how the compiler felt). Where no directory for the cache can be written,
    the loop is compiled anew in each process.
    """
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}  # only C would call through that wrapper
    loop: Any = numba.njit(**options)(function)
    if hasattr(loop, "enable_caching"):  # it is the function itself where numba is switched off
        with contextlib.suppress(RuntimeError):  # numba finds no writable place for its cache
            loop._cache = _Cache(function)
    return cast(F, loop)


class _Checked(CompileResultCacheImpl):
    """Machine code with its hash: numba would run what a broken disk made of it."""

    def reduce(self, result: Any) -> Any:
        code = dumps(super().reduce(result))
        return hashlib.sha256(code).digest(), code

    def rebuild(self, context: Any, payload: Any) -> Any:
        if len(payload) != 2:
            return None  # as numba itself keeps it, without a hash
        digest, code = payload
        if hashlib.sha256(code).digest() != digest:
            raise ValueError("machine code has changed since it was written")
        return super().rebuild(context, pickle.loads(code))


class _Cache(FunctionCache):
    """A cache that costs time if its files are damaged or cannot be written, and never a result."""

    _impl_class = _Checked

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            # numba's own would first load what only compiling needs, and that takes longer than all loops of a command
            rtsys.initialize(context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(signature, context)
        except Exception as error:  # a damaged pickle raises whatever its bytes happen to say
            self._warn("the cache of compiled loops cannot be read ({0}). They are compiled anew.", error)
        try:
            self.flush()
        except OSError:  # nothing can be written either
            self.disable()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        try:
            super().save_overload(signature, result)
        except Exception as error:
            self.disable()
            self._warn("compiled loops cannot be kept ({0}), and are compiled anew in each process.", error)

    def _warn(self, problem: str, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) else str(error) or type(error).__name__
        remedy = "Make room, remove the folder, or name another one in the environment variable NUMBA_CACHE_DIR."
        # one text for all loops of a folder, so that it is said once
        message = f"{problem.format(reason)} {remedy}"
        warnings.warn(InputWarning(message, file=self.cache_path), stacklevel=2)
