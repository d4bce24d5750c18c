"""Clocks, memory and the lines of the table.

A job is a module of this package with a function ``jobs()``, or ``jobs(quick)`` where it has small sizes too, that
returns lines made by :func:`at_most`, :func:`faster`, :func:`within`, :func:`context` or :func:`skipped`. It runs in a
process of its own, whose threads were fixed before numpy was imported (see ``__main__``).
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import rankrls

THREAD_VARIABLES = (
    "RANKRLS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def thread_environment(threads: int) -> dict[str, str]:
    """The environment of a process in which we and every rival have the same number of threads."""
    return {**os.environ, **{name: str(threads) for name in THREAD_VARIABLES}}


def as_installed() -> None:
    """Have Python's bytecode of this package, as pip makes it: without, each process compiles 200 modules."""
    compileall.compile_dir(str(Path(rankrls.__file__).parent), quiet=1)


def alternate(*runs: Callable[[], Any], repeats: int = 3, warm_up: bool = True) -> list[float]:
    """Median seconds of each run. They take turns, so that a busy machine is no advantage to either."""
    if warm_up:
        for run in runs:
            run()
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(repeats):
        for run, own in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            own.append(time.perf_counter() - start)
    return [median(own) for own in times]


def one_thread(run: Callable[[], Any]) -> Callable[[], Any]:
    """The run with BLAS at one thread.

    Rivals that are nothing but BLAS are timed so as well, and their better time counts: where something else holds a
    processor, OpenBLAS at two threads can take ten times as long as at one, which would be no merit of ours.
    """
    from threadpoolctl import threadpool_limits

    def limited() -> Any:
        with threadpool_limits(1, user_api="blas"):
            return run()

    return limited


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of one run, and what it returned."""
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def at_most(job: str, ours: float, rival: str, theirs: float, limit: float, unit: str = "s") -> dict[str, Any]:
    """We may take up to ``limit`` times what the rival takes."""
    return _line(job, ours, rival, theirs, ours / theirs, f"at most {limit:g}x", ours <= limit * theirs, unit)


def faster(job: str, ours: float, rival: str, theirs: float, times: float) -> dict[str, Any]:
    """The rival shall take at least ``times`` as long as we do."""
    return _line(job, ours, rival, theirs, theirs / ours, f"{times:g}x faster", theirs >= times * ours, "s")


def within(job: str, ours: float, limit: float) -> dict[str, Any]:
    """Nobody else does it: a limit in seconds."""
    return _line(job, ours, "nobody", None, None, f"under {limit:g} s", ours < limit, "s")


def context(
    job: str, ours: float, rival: str, theirs: float | None, remark: str = "", unit: str = "s"
) -> dict[str, Any]:
    """Figures to look at, without a goal."""
    ratio = None if theirs is None else theirs / ours
    return _line(job, ours, rival, theirs, ratio, remark, None, unit)


def skipped(job: str, rival: str, why: str) -> dict[str, Any]:
    """Not measured here."""
    return _line(job, None, rival, None, None, f"skipped: {why}", None, "s")


def _line(
    job: str,
    ours: float | None,
    rival: str,
    theirs: float | None,
    ratio: float | None,
    goal: str,
    met: bool | None,
    unit: str,
) -> dict[str, Any]:
    return {
        "job": job,
        "ours": ours,
        "rival": rival,
        "rival_seconds": theirs,
        "ratio": ratio,
        "goal": goal,
        "met": met if met is None else bool(met),
        "unit": unit,
    }


def peak_above(module: str, load: str, then: str, arguments: Sequence[Any] = ()) -> float:
    """Bytes at the peak of a fresh process that loads data and works on them, above one that only loads them.

    Parameters
    ----------
    module : str
        Module of this package.
    load, then : str
        Its functions: ``load(*arguments)`` returns the data, ``then(data)`` works on them. ``module`` must have a
        function ``warm_up()``, which both processes call first, so that libraries and compiled loops are no part of
        the difference.
    arguments : sequence
        Plain values.
    """
    only, whole = (peak_of(module, load, name, arguments) for name in ("", then))
    return whole - only


_PEAK = """
import importlib, json, sys
module, load, then, arguments = json.loads(sys.argv[1])
job = importlib.import_module(module)
job.warm_up()
data = getattr(job, load)(*arguments)
if then:
    getattr(job, then)(data)
from benchmarks._harness import peak_memory
print(peak_memory())
"""


def peak_of(module: str, load: str, then: str, arguments: Sequence[Any]) -> float:
    """Bytes at the peak of a fresh process, libraries included, as :func:`peak_above` makes it."""
    request = json.dumps([module, load, then, list(arguments)])
    out = subprocess.run([sys.executable, "-c", _PEAK, request], capture_output=True, text=True)
    if out.returncode:
        raise RuntimeError(f"{module}.{then or load} failed:\n{out.stderr}")
    return float(out.stdout.split()[-1])


def peak_memory() -> float:
    """Largest resident size of this program in bytes. (Linux's ru_maxrss remembers the program it was forked from.)"""
    if os.path.exists("/proc/self/status"):
        with open("/proc/self/status") as status:
            return float(next(line for line in status if line.startswith("VmHWM")).split()[1]) * 1024.0
    import resource

    peak = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return peak if sys.platform == "darwin" else peak * 1024.0
