"""Runs the leaves of a job: on threads of this machine, or on any executor."""

from __future__ import annotations

import platform
import pydoc
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from importlib import import_module
from itertools import islice
from typing import Any

from rankrls._compiled.threads import n_threads
from rankrls._errors import InputError
from rankrls.streaming.parts import rows_in
from rankrls.streaming.tree import Job, TreeSum, run_leaf

_IN_ADVANCE = 2
"""Parts for each worker that have been handed out and not taken back: one to work on, one to begin with next."""


def run(
    job: Job[Any],
    data: Any,
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    saved: Any = None,
    told: Callable[[int], None] | None = None,
) -> Any:
    """The answer of a job for a whole data set.

    Parameters
    ----------
    job : Job
    data : Dataset
    executor : concurrent.futures.Executor, optional
        Where the leaves run; threads of this machine by default. The answers are merged here.
    workers : int, optional
        How many leaves run at once: what the executor has, or the threads that this process may use, by default.
        Twice as many are handed out, so that memory does not grow with the parts.
    saved : Nodes, optional
        Where finished nodes of the tree are kept, and those that are there already.
    told : callable, optional
        Is told the rows of each part that is done.
    """
    addresses = list(data.parts)
    tree = TreeSum(job, len(addresses))
    left = list(range(len(addresses)))
    if saved is not None:
        left = saved.restore(tree, left)
        if told is not None:
            told(sum(rows_in(data, address) for address in addresses) - sum(rows_in(data, addresses[k]) for k in left))
    for number, answer in answers(job, data, left, executor=executor, workers=workers, in_order=False):
        done = tree.add(number, answer)
        if saved is not None:
            saved.keep(tree, done)
        if told is not None:
            told(rows_in(data, addresses[number]))
    return tree.total()


def answers(
    job: Any,
    data: Any,
    numbers: Iterable[int] | None = None,
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    in_order: bool = True,
) -> Iterator[tuple[int, Any]]:
    """The numbers of some parts, by default of all, and a job's answers: in that order, or as they come."""
    version, work = version_here(), _shared(executor, (job, data))
    most = _IN_ADVANCE * (workers_of(executor) if workers is None else workers)
    queue = iter(range(len(data.parts)) if numbers is None else numbers)
    waiting = dict[Future[Any], int]()
    with nullcontext(executor) if executor is not None else ThreadPoolExecutor(most // _IN_ADVANCE) as pool:
        try:
            while True:
                for number in islice(queue, most - len(waiting)):
                    waiting[pool.submit(_leaf, version, work, data.parts[number])] = number
                if not waiting:
                    return
                ready = [next(iter(waiting))] if in_order else wait(waiting, return_when=FIRST_COMPLETED).done
                for future in ready:
                    yield waiting.pop(future), future.result()
        finally:
            for future in waiting:
                future.cancel()


def arithmetic_here() -> dict[str, str]:
    """What the last bits of sums depend on: the libraries that add up, and the machine."""
    from threadpoolctl import threadpool_info

    blas = {
        f"{found['internal_api']} {found.get('version')}" for found in threadpool_info() if found["user_api"] == "blas"
    }
    versions = {name: str(import_module(name).__version__) for name in ("numpy", "scipy")}
    return {**versions, "blas": ", ".join(sorted(blas)), "machine": platform.machine()}


def version_here() -> str:
    """The version of rankrls in this process."""
    return str(import_module("rankrls").__version__)


def client_of(executor: Any) -> Any:
    """The client behind Dask's executor; None for others."""
    client = getattr(executor, "_client", None)
    return client if hasattr(client, "nthreads") else None


def _shared(executor: Any, work: Any) -> Any:
    """What all leaves need: on a Dask cluster a task of its own, sent once and recovered if its worker dies."""
    client = client_of(executor)
    return work if client is None else client.submit(_itself, work, pure=False)


def _itself(work: Any) -> Any:
    return work


def _leaf(version: str, work: tuple[Job[Any], Any], address: Any) -> Any:
    """:func:`run_leaf` where the same version of rankrls is at work."""
    job, data = work
    if version != version_here():
        raise _other_version("A worker", version_here(), version, "executor")
    return run_leaf(job, data, address)


def check_workers(client: Any, parameter: str = "executor") -> None:
    """Refuse a Dask cluster whose workers lack rankrls, which they would wait for in vain, or have another version.

    Parameters
    ----------
    client : distributed.Client
    parameter : str
        What named the cluster.
    """
    # What is sent is part of Python: a worker that cannot load a task would neither answer nor fail.
    workers = client.run(pydoc.locate, "rankrls.__version__")
    if not workers:
        raise InputError("The cluster has no workers.", remedy="Start some.", parameter=parameter)
    for name, version in workers.items():
        if version != version_here():
            raise _other_version(f"Worker {name}", version, version_here(), parameter)


def _other_version(who: str, found: str | None, own: str, parameter: str) -> InputError:
    return InputError(
        "{0} has {1}; this process has rankrls {2}.",
        *(who, f"rankrls {found}" if found else "no rankrls", own),
        remedy="Install the same version everywhere.",
        parameter=parameter,
    )


def workers_of(executor: Executor | None) -> int:
    """How many leaves an executor runs at once, as far as it says so."""
    return int(getattr(executor, "_max_workers", None) or n_threads())
