"""``python -m attack.forks SEED``: forks while threads fit. Every child fits too and ends, or the exit code is 1."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
import warnings
from typing import Any

import numpy as np

__all__ = ["main"]

_LIMIT = 60.0
_FORKS = 12


def _estimators() -> dict[str, Any]:
    import rankrls

    return {
        "RankRLSCV": lambda: rankrls.RankRLSCV((0.1, 1.0)),
        "RankRLS rbf": lambda: rankrls.RankRLS(kernel="rbf"),
        "RankRLSCV rbf": lambda: rankrls.RankRLSCV((0.1, 1.0), kernel="rbf"),
        "CGRankRLS": lambda: rankrls.CGRankRLS((0.1, 1.0), max_iter=5),
        "SparseRankRLS": lambda: rankrls.SparseRankRLS(n_basis=20),
        "RankSVM": lambda: rankrls.RankSVM(),
        "RankBoost": lambda: rankrls.RankBoost(n_estimators=5),
        "RankingPursuit": lambda: rankrls.RankingPursuit(5),
    }


def main(seed: int) -> int:
    """Fork while two threads fit; say which children hung or failed."""
    rng = random.Random(seed)
    numbers = np.random.default_rng(seed)
    X, qid = numbers.normal(size=(240, 6)), np.repeat(np.arange(24), 10)
    y = np.digitize(X[:, 0] + numbers.normal(size=240), [0.0])
    make = _estimators()
    warnings.simplefilter("ignore")
    for each in make.values():  # loops are compiled before there are threads
        each().fit(X, y, qid=qid)
    stop = threading.Event()

    def fit() -> None:
        while not stop.is_set():
            make[rng.choice([*make])]().fit(X, y, qid=qid)

    threads = [threading.Thread(target=fit, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    bad = 0
    for _ in range(_FORKS):
        time.sleep(rng.uniform(0, 0.05))
        name = rng.choice([*make])
        child = os.fork()
        if child == 0:
            status = 1
            try:
                make[name]().fit(X, y, qid=qid)
                status = 0
            finally:
                os._exit(status)
        verdict = _wait(child)
        if verdict != "sound":
            bad += 1
            print(f"{name}: {verdict}", flush=True)
    stop.set()
    for thread in threads:
        thread.join(_LIMIT)
    return int(bad > 0)


def _wait(child: int) -> str:
    until = time.monotonic() + _LIMIT
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return "sound" if status == 0 else f"failed ({os.waitstatus_to_exitcode(status)})"
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
