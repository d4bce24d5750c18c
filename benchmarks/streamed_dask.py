"""Streamed fits on a Dask cluster of this machine, against the same fit on threads, with and without a killed worker.

The cluster has two worker processes of one thread each. Parts are so large that a task takes a second or more. One
worker is killed in the middle of the passes; what has to be done again are the tasks that it had. The answer must be
the same to the last bit.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from pathlib import Path
from typing import Any

from benchmarks._harness import at_most, context, skipped, timed
from benchmarks._shards import write_shards
from rankrls import RankRLSCV
from rankrls.io import open_dataset

__all__ = ["bits", "jobs", "local_cluster"]

SIZE, QUICK = (2_000_000, 136, 500_000), (40_000, 24, 10_000)
WORKERS = 2
GRACE = 15.0
"""Seconds that a lost worker may cost beside its tasks."""


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    try:
        import distributed  # noqa: F401
    except ImportError:
        return [skipped("streamed fit on Dask", "threads", "rankrls[dask] is not installed")]
    rows, features, part = QUICK if quick else SIZE
    name = f"leave-query-out of 21 alphas, {rows} x {features}, {WORKERS} workers"
    with tempfile.TemporaryDirectory() as folder:
        write_shards(Path(folder) / "shards", rows, features, rows_per_file=part, group=part)
        data = open_dataset(Path(folder) / "shards", rows_per_part=part + part // 8)
        model = lambda **how: RankRLSCV(scoring="ndcg@10").fit_dataset(data, **how)
        with local_cluster() as client:
            executor = client.get_executor()
            executor._max_workers = WORKERS
            run = lambda: timed(lambda: model(executor=executor))
            run()  # the workers import and compile
            threads, clustered = [], []
            for _ in range(3):
                threads.append(timed(model))
                clustered.append(run())
            here, there = (sorted(seconds for seconds, _ in runs)[1] for runs in (threads, clustered))
            same = {bits(fitted) for _, fitted in (*threads, *clustered)}
            killer = threading.Timer(0.5 * there, kill_one, [client])
            killer.start()
            seconds, fitted = run()
            killer.join()
            same.add(bits(fitted))
            tasks = 2 * len(data.parts)
            task = there * WORKERS / tasks
    lost = 2.0 * task  # a worker has one task at work and may have one finished that nobody has fetched
    return [
        at_most(f"Dask: {name}, tasks of {task:.1f} s", there, f"{WORKERS} threads", here, 1.5),
        at_most(f"Dask, a worker killed half-way: {name}", seconds, "undisturbed, lost tasks, 15 s",
                there + lost + GRACE, 1.0),
        context("Dask: different answers of all these runs", len(same), "wanted", 1, "the same bits", unit=""),
    ]  # fmt: skip


def local_cluster() -> Any:
    """Two worker processes of one thread each."""
    import distributed

    cluster = distributed.LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    )
    return distributed.Client(cluster)


def kill_one(client: Any) -> None:
    pid = next(iter(client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)


def bits(model: Any) -> tuple[bytes, bytes]:
    """What a fit has found, to the last bit."""
    return model.coef_.tobytes(), model.cv_results_["mean_score"].tobytes()
