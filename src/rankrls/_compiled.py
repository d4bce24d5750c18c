"""Compilation of loops, the number of threads, and the distribution of work over threads.

Compiled loops release the GIL and run over blocks of whole queries in a plain thread pool, with one accumulator per
block. The pool exists for one call only: nothing remains that a ``fork`` could break, and any number of the caller's
threads can use this module at once.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import joblib
import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys
from threadpoolctl import OpenBLASController, ThreadpoolController

from rankrls._typing import Index, Values

T = TypeVar("T")
R = TypeVar("R")

_WORTH = 1 << 26
_LIMIT: ContextVar[int | None] = ContextVar("rankrls_threads", default=None)


class _Cache(FunctionCache):
    """Cache whose damaged or unwritable files cost time, but never a result."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            # numba's own method first loads modules for compilation, which takes longer than the loops of a command
            rtsys.initialize(context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(signature, context)
        except Exception:  # a damaged pickle can raise anything
            with suppress(OSError):
                self.flush()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        with suppress(Exception):
            super().save_overload(signature, result)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` with numba: no Python objects, no GIL, machine code cached on disk.

    ``parallel=True`` is never used, because its threading layers do not survive a fork or two calling threads, nor is
    ``fastmath``, because sums must not depend on the compiler. If no cache directory is writable, the loop is compiled
    in each process.
    """
    options: Values = {"nogil": True, "no_cfunc_wrapper": True}  # only C code calls that wrapper
    loop: Any = numba.njit(**options)(function)
    if hasattr(loop, "enable_caching"):  # with numba disabled, it is the function itself
        with suppress(RuntimeError):  # numba finds no writable place for its cache
            loop._cache = _Cache(function)
    found: Callable[..., Any] = loop
    return found


def n_threads() -> int:
    """Number of threads: ``RANKRLS_NUM_THREADS``, else ``OMP_NUM_THREADS``, else the processors this process may use.

    This respects process pools that set ``OMP_NUM_THREADS`` in their workers, as joblib's loky does. Inside
    :func:`limited_threads` it is that limit.
    """
    if (limit := _LIMIT.get()) is not None:
        return limit
    for variable in ("RANKRLS_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(variable, "").split(",")[0].strip()
        if value.isdigit() and int(value) > 0:
            return int(value)
    return _processors(frozenset(os.sched_getaffinity(0)))


@cache
def _processors(allowed: frozenset[int]) -> int:
    """Number of processors by joblib, cached because it reads files, which takes a sixth of the time of a small fit."""
    return int(joblib.cpu_count())


def map_threads(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """``[function(item) for item in items]`` on all available threads."""
    work = list(items)
    return list(stream_threads(function, work, threads=min(n_threads(), len(work))))


def stream_threads(function: Callable[[T], R], items: Iterable[T], *, threads: int | None = None) -> Iterator[R]:
    """``map(function, items)``, in order, on up to ``threads`` threads, with two items in advance per thread.

    The caller's thread makes items while the others work, so that no more items than these are in memory. An exception
    in a call, or an interruption, ends the iteration as soon as the running calls have ended; no further call begins.
    """
    workers = n_threads() if threads is None else threads
    if workers <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(workers) as pool:  # with the caller's limit of threads
        futures = (pool.submit(copy_context().run, function, item) for item in items)
        yield from results_in_order(futures, 2 * workers)


def results_in_order(futures: Iterable[Future[R]], ahead: int) -> Iterator[R]:
    """Results of futures, which are submitted while the iterable makes them, ``ahead`` of them in advance.

    If the iteration ends early, the waiting futures are cancelled.
    """
    waiting: deque[Future[R]] = deque()
    try:
        for future in futures:
            waiting.append(future)
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def balanced_blocks(starts: Index, n_blocks: int) -> list[tuple[int, int]]:
    """Split queries into at most ``n_blocks`` runs of whole queries with about equally many rows.

    Parameters
    ----------
    starts : ndarray of shape (q + 1,)
        Row boundaries of the queries, ascending.
    n_blocks : int
        Largest number of runs.

    Returns
    -------
    list of (first query, one past the last query)
        Nonempty runs.
    """
    wanted = np.linspace(starts[0], starts[-1], n_blocks + 1)[1:-1]
    edges = np.unique([0, *np.searchsorted(starts, wanted), len(starts) - 1])
    return list(pairwise(edges.tolist()))


class _BlasLimits:
    """Active limits of BLAS threads: the smallest applies, and removing the last one restores the original numbers.

    With threadpoolctl alone, overlapping users in several threads restore each other's limits.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.limits: list[int] = []
        self.found: list[tuple[Any, int]] = []

    @contextmanager
    def limited(self, threads: int) -> Iterator[None]:
        with self.lock:
            if not self.limits:
                self.found = [(library, library.num_threads) for library in _blas_libraries()]
            self.limits.append(threads)
            self._set()
        try:
            yield
        finally:
            with self.lock:
                if threads in self.limits:  # absent in a child that was forked inside
                    self.limits.remove(threads)
                    self._set()

    def begin_child(self) -> None:
        """Reset in a forked child, where no limit is active and no thread of the parent holds the lock."""
        self.lock = threading.Lock()
        if self.limits:
            self.limits = []
            self._set()

    def _set(self) -> None:
        for library, threads in self.found:
            library.set_num_threads(min(self.limits, default=threads))
        _give_up_control()


def _give_up_control() -> None:
    """Let any thread restore this one's limit: threadpoolctl 3.8 allows it only to the thread that set the limit."""
    getattr(OpenBLASController, "clear_controlling_thread", lambda: None)()


@cache
def _blas_libraries() -> list[Any]:
    import scipy.linalg.blas  # noqa: F401  (its BLAS must be loaded before it can be limited)

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


_BLAS = _BlasLimits()
os.register_at_fork(after_in_child=_BLAS.begin_child)


def one_blas_thread() -> AbstractContextManager[None]:
    """Limit BLAS calls to one thread each, because the caller already runs one call per thread."""
    return _BLAS.limited(1)


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Limit the calling thread and BLAS to at most ``threads`` threads; None sets no limit."""
    if threads is None:
        yield
        return
    token = _LIMIT.set(threads)
    try:
        with _BLAS.limited(threads):
            yield
    finally:
        _LIMIT.reset(token)


def blas_threads_for(multiplications: float) -> AbstractContextManager[None]:
    """Limit BLAS to one thread if the largest product takes less than a few milliseconds.

    BLAS would wake its threads even for such a product. Idle BLAS threads spin for about the time of a small fit and
    steal cores from our own threads.
    """
    return nullcontext() if multiplications >= _WORTH else one_blas_thread()
