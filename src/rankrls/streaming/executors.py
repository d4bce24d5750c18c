"""Ordered map of a function over the parts of a dataset: on threads, any executor, or a Dask cluster.

Every task, including BLAS, runs on one thread. Results are returned in the order of the parts, so that their sum from
left to right has the same bits on any executor, even if a worker dies and its part is read again.
"""

from __future__ import annotations

import pydoc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from operator import call
from typing import Any, Protocol, TypeVar, runtime_checkable

from rankrls._compiled import limited_threads, n_threads, stream_threads
from rankrls._errors import InputError


@runtime_checkable
class Executor(Protocol):
    """A concurrent.futures.Executor or the client of a Dask cluster."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Any: ...


T = TypeVar("T")
R = TypeVar("R")


def map_parts(function: Callable[[T], R], parts: Iterable[T], executor: Executor | None = None) -> Iterator[R]:
    """``map(function, parts)`` in order, with two parts in advance per worker.

    Parameters
    ----------
    function : callable
        Function, which must be picklable unless threads run it.
    parts : iterable
    executor : concurrent.futures.Executor or dask.distributed.Client, optional
        Executor; threads of this machine by default.

    Raises
    ------
    InputError
        If the executor cannot run tasks, or if the workers of a cluster lack rankrls or have another version.
    """
    task = partial(_alone, function)
    if executor is None:
        yield from stream_threads(task, parts)
        return
    waiting = deque[Any]()
    submit, workers = _submit(executor, task)
    try:
        for part in parts:
            waiting.append(submit(part))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _submit(executor: Any, task: Callable[[Any], Any]) -> tuple[Callable[[Any], Any], int]:
    """Function that submits a part, and the number of workers."""
    client = executor if hasattr(executor, "get_executor") else getattr(executor, "_client", None)
    if client is not None:
        from dask.delayed import delayed

        check_workers(client)
        # the shared task is sent once, and created again if its worker dies
        shared = client.submit(_itself, task, pure=False)

        def submit(part: Any) -> Any:
            return client.compute(delayed(call)(shared, getattr(part, "delayed", part)))

        return submit, sum(client.nthreads().values())
    if not isinstance(executor, Executor):
        problem = f"executor must be a concurrent.futures.Executor or a Dask client; got {type(executor).__name__}."
        raise InputError(problem, parameter="executor")
    return partial(executor.submit, task), int(getattr(executor, "_max_workers", None) or n_threads())


def _alone(function: Callable[[T], R], part: T) -> R:
    with limited_threads(1):
        return function(part)


def _itself(task: Any) -> Any:
    return task


def check_workers(client: Any) -> None:
    """Refuse a Dask cluster whose workers lack rankrls, where tasks would wait forever, or have another version."""
    own = import_module("rankrls").__version__
    # only Python's own modules are sent: a worker that cannot load a task would neither answer nor fail
    workers = client.run(pydoc.locate, "rankrls.__version__")
    if not workers:
        raise InputError("The cluster has no workers. Start at least one worker.", parameter="executor")
    for name, version in workers.items():
        if version != own:
            has = f"rankrls {version}" if version else "no rankrls"
            problem = f"Worker {name} has {has}; this process has rankrls {own}. Install the same version everywhere."
            raise InputError(problem, parameter="executor")
