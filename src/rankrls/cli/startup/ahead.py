"""Compiling on a second processor: the first command of all needs loops that nobody has compiled.

Most of such a command is compiling, which one thread does. So another process compiles what a choice and its judgement
need, while the command imports libraries and compiles its reader. What it has not finished is compiled by the command.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_CHOOSING = ("cv", "fit")
_LOOP = "pair_counts._count-*.nbi"
_SELDOM = 100_000
"""New objects after which a command that compiles looks for garbage: the compiler makes many, and little garbage."""


@contextmanager
def compiling_ahead(command: str) -> Iterator[None]:
    """Inside, another process compiles, if the command will have to; it ends with the command."""
    if command not in _CHOOSING or not _is_the_first():
        yield
        return
    process, thresholds = None, gc.get_threshold()
    gc.set_threshold(_SELDOM)
    if len(getattr(os, "sched_getaffinity", lambda _: ())(0)) > 1:
        with suppress(OSError):  # then the command does it all
            process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        if process is not None:
            process.kill()
            process.wait()


def _is_the_first() -> bool:
    """Whether the cache of compiled loops lacks one that every choice needs. If in doubt, it is not the first."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return False
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder:
        return not any(Path(folder).glob(f"*/{_LOOP}"))
    here = Path(__file__).parents[2] / "_compiled"
    return os.access(here, os.W_OK) and not any(here.glob(f"__pycache__/{_LOOP}"))


def compile_loops() -> None:
    """Count, choose, judge and scale on a few rows: first what compiles longest and needs few imports.

    The command counts pairs when it has read its file, and then scales: what it compiles itself meanwhile comes last.
    """
    import numpy as np

    from rankrls._compiled.near_ties import merge_near_ties
    from rankrls._compiled.pair_counts import count_pairs
    from rankrls.cli.startup.lean import imported

    y, qid = np.arange(12.0) % 3, np.arange(12) // 4
    X, order, starts = np.column_stack([y, np.arange(12.0)]), np.arange(12), np.array([0, 4, 8, 12])
    count_pairs(y, X, order, starts)
    merge_near_ties(X, order, starts)
    imported("rankrls.metrics").evaluate(y, X[:, 0], qid=qid, measures=["ndcg@10"])
    imported("rankrls.models.rankrls").RankRLSCV().fit(X, y, qid=qid)
    imported("rankrls.preprocessing").QueryMinMaxScaler().fit_transform(X, qid=qid)


if __name__ == "__main__":
    gc.disable()
    compile_loops()
