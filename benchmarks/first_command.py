"""How long somebody waits who types a command: the first one ever, which compiles, later ones, and ``--help``.

Fresh processes, medians. Nearly all of it is one thread that imports and compiles, so beside the seconds on the clock
stand the processor's, which other work on the machine does not lengthen. The data have the shape of a fold of LETOR's
OHSUMED: 9219 documents, 63 queries, 25 features; the first command is the one that compiles most, with scaling,
leave-query-out, test data and every measure.

Python's own bytecode of this package is there before, as pip makes it when it installs.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks._harness import as_installed, within

SHAPES = {"train": (9219, 63), "test": (3383, 22)}
FEATURES = 25
FIRST, LATER, HELP = 8.0, 2.0, 0.5


def write_files(folder: Path) -> None:
    from rankrls.io import save_letor

    rng = np.random.default_rng(0)
    for name, (rows, queries) in SHAPES.items():
        X = np.round(rng.gamma(2.0, size=(rows, FEATURES)), 6)
        y = np.digitize(X[:, :3].sum(axis=1) + 3 * rng.normal(size=rows), [8.0, 10.0])
        save_letor(folder / f"{name}.txt", X, y, qid=np.sort(np.arange(rows) % queries))


def seconds(command: list[str], cache: Path) -> tuple[float, float]:
    """One fresh process, whose compiled code lies in ``cache``: on the clock, and of the processor."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "rankrls", *command], env=environment, check=True, stdout=subprocess.DEVNULL)
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def line(job: str, times: list[tuple[float, float]], limit: float) -> dict[str, Any]:
    clock, processor = (median(t[k] for t in times) for k in (0, 1))
    return within(f"{job} ({processor:.2f} s of processor)", clock, limit)


def jobs() -> list[dict[str, Any]]:
    as_installed()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        train, test, model = (str(folder / part) for part in ("train.txt", "test.txt", "m.rankrls"))
        plain = ["fit", train, "--model", model, "--quiet"]
        full = [*plain, "--test", test, "--scale", "minmax", "--metric", "map"]
        caches = [folder / f"cache{k}" for k in range(3)]
        first = [seconds(full, cache) for cache in caches]
        later = {
            "rankrls fit with everything": full,
            "rankrls predict": ["predict", model, test],
            "rankrls evaluate": ["evaluate", model, test],
            "rankrls info": ["info", model],
        }
        lines = [line("first command ever, rankrls fit with everything", first, FIRST)]
        for job, command in later.items():
            seconds(command, caches[0])  # what this one needs beyond the first is compiled here
            lines.append(line(f"later: {job}", [seconds(command, caches[0]) for _ in range(5)], LATER))
        return [*lines, line("rankrls --help", [seconds(["--help"], caches[0]) for _ in range(5)], HELP)]
