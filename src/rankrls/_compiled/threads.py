"""How many threads, and how work is handed to them.

Compiled loops release the GIL and are run over blocks of whole queries in a plain thread pool, one accumulator a
block. The pool lives for one call: nothing is left behind that a ``fork`` could break, and any number of threads of
the caller can be in here at once.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import OpenBLASController, ThreadpoolController, threadpool_limits

from rankrls._errors import InputError

T = TypeVar("T")
R = TypeVar("R")

_WORTH = 1 << 26

_LIMIT_VARIABLES = ("RANKRLS_NUM_THREADS", "OMP_NUM_THREADS")

_ALONE: ContextVar[bool] = ContextVar("rankrls_alone", default=False)


def n_threads() -> int:
    """Threads to use: ``RANKRLS_NUM_THREADS``, else ``OMP_NUM_THREADS``, else the processors this process may use.

    Process pools that set ``OMP_NUM_THREADS`` in their workers (joblib's loky does) are thereby respected. Inside
    :func:`one_thread` it is 1.
    """
    if _ALONE.get():
        return 1
    for variable in _LIMIT_VARIABLES:
        value = os.environ.get(variable, "").split(",")[0].strip()
        if value.isdigit() and int(value) > 0:
            return int(value)
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    return _processors(frozenset(allowed), os.environ.get("LOKY_MAX_CPU_COUNT"))


@cache
def _processors(allowed: frozenset[int], limit: str | None) -> int:
    """What joblib counts while these do not change: it reads files, which would take a sixth of many a small fit."""
    return max(1, int(joblib.cpu_count()))


def map_threads(function: Callable[[T], R], items: Iterable[T], *, threads: int | None = None) -> list[R]:
    """``[function(item) for item in items]``, in order, on up to ``threads`` threads.

    Items are begun in order, and the caller's thread works as the others do, since starting one takes longer than many
    a call. Of exceptions that calls raise, the one of the first item is raised here as soon as the running calls have
    ended, and so is an interruption; no other call is begun.
    """
    work: Sequence[T] = list(items)
    workers = 1 if len(work) <= 1 else min(n_threads() if threads is None else threads, len(work))
    if workers <= 1:
        return [function(item) for item in work]
    todo, done, failed = deque(range(len(work))), dict[int, R](), dict[int, Exception]()

    def take() -> None:
        while todo:
            try:
                k = todo.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                done[k] = function(work[k])
            except Exception as error:
                failed[k] = error
                todo.clear()

    pool = ThreadPoolExecutor(workers - 1)
    try:
        others = [pool.submit(take) for _ in range(workers - 1)]
        take()
        for other in others:
            other.result()
    finally:
        todo.clear()
        pool.shutdown()
    if failed:
        raise failed[min(failed)]
    return [done[k] for k in range(len(work))]


def stream_threads(function: Callable[[T], R], items: Iterable[T], *, threads: int | None = None) -> Iterator[R]:
    """``map(function, items)``, in order, on up to ``threads`` threads, with two items in advance for each of them.

    Items are made by the caller's thread while the others work, so that there are never more in memory than these.
    """
    workers = n_threads() if threads is None else threads
    if workers <= 1:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(workers)
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """At most that many threads inside, for compiled loops and for BLAS; None leaves what the environment says."""
    variable = _LIMIT_VARIABLES[0]
    old = os.environ.get(variable)
    if threads is None:
        text = (old or "").strip()
        if text and not (text.isascii() and text.isdigit() and int(text)):
            raise InputError(
                f"{variable} is {text!r}, no number of threads. Set it to a number of threads, or give threads=N."
            )
        yield
        return
    import scipy.linalg.blas  # noqa: F401  (its BLAS must be there before it can be limited)

    os.environ[variable] = str(threads)
    try:
        with threadpool_limits(threads, user_api="blas"):
            yield
    finally:
        del os.environ[variable]
        if old is not None:
            os.environ[variable] = old


def balanced_blocks(starts: NDArray[np.intp], n_blocks: int) -> list[tuple[int, int]]:
    """Split queries into at most ``n_blocks`` runs of whole queries with about equally many rows.

    Parameters
    ----------
    starts : ndarray of shape (q + 1,)
        Row boundaries of the queries, ascending.
    n_blocks : int
        How many runs are wanted.

    Returns
    -------
    list of (first query, one past the last query)
        Never an empty run.
    """
    wanted = np.linspace(starts[0], starts[-1], n_blocks + 1)[1:-1]
    edges = np.unique([0, *np.searchsorted(starts, wanted), len(starts) - 1])
    return list(pairwise(edges.tolist()))


def _give_up_control() -> None:
    """Let any thread restore what this one limited: threadpoolctl 3.8 lets only the thread that set a limit do it."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear()


class _BlasLimit:
    """Holds BLAS at one thread while anybody is inside; the last one out restores what the first one found."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limiter: Any = None
        self._controller: ThreadpoolController | None = None

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                if self._controller is None:
                    self._controller = ThreadpoolController()
                self._limiter = self._controller.limit(limits=1, user_api="blas")
                _give_up_control()
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limiter.restore_original_limits()
                _give_up_control()
                self._limiter = None


_BLAS = _BlasLimit()


def _after_fork_in_child() -> None:
    """A child forked while a thread of the parent held the lock must not inherit it."""
    global _BLAS
    _BLAS = _BlasLimit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, every BLAS call uses one thread, because the caller already runs one call a thread.

    Safe to enter from several threads at once: the limit is counted, so that overlapping users cannot restore each
    other's limit.
    """
    limit = _BLAS
    limit.enter()
    try:
        yield
    finally:
        limit.leave()


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, this thread of the caller does everything itself, and BLAS uses one thread.

    Sums then do not depend on how many threads there are. Other threads of the process are not told.
    """
    token = _ALONE.set(True)
    try:
        with one_blas_thread():
            yield
    finally:
        _ALONE.reset(token)


def map_blocks(function: Callable[[T], R], blocks: Iterable[T]) -> list[R]:
    """As :func:`map_threads`, with BLAS at one thread; fewer blocks come one by one, and BLAS has the threads."""
    work = list(blocks)
    if len(work) < n_threads():
        return [function(block) for block in work]
    with one_blas_thread():
        return map_threads(function, work)


@contextmanager
def blas_threads_for(multiplications: float) -> Iterator[None]:
    """Inside, BLAS uses one thread if the largest product is smaller than a few milliseconds' work.

    BLAS would wake its threads for it all the same, and when they have nothing left to do they spin for a while: in
    the way of our own threads, where a fit takes no longer than that.
    """
    if multiplications >= _WORTH:
        yield
        return
    with one_blas_thread():
        yield
