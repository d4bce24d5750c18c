"""What the tests of engines share: models, their bits, data whose readers die, and a cluster on this machine."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankrls import CGRankRLS, RankRLSCV, SparseRankRLSCV
from tests.processes import FORKED, processes
from tests.streaming.arrays import ArrayDataset, example

MODELS = {
    "primal": lambda: RankRLSCV(scoring="map", ties="exclude"),
    "folds": lambda: RankRLSCV(scoring="map", cv=3),
    "cg": lambda: CGRankRLS((0.5, 50.0), selection="tikhonov", scoring="map"),
    "sparse": lambda: SparseRankRLSCV(n_basis=15, gamma=0.1, scoring="map"),
}
FITTED = ("coef_", "dual_coef_", "X_fit_", "alpha_", "n_iter_", "best_score_", "best_score_error_")


def bits(model):
    """Everything that was learned, to the last bit."""
    known = [np.asarray(getattr(model, name)) for name in FITTED if getattr(model, name, None) is not None]
    return [value.tobytes() for value in (*known, model.cv_results_["mean_score"], model.cv_results_["standard_error"])]


def examples():
    """Forty queries of six features in nine parts or so; the longest query lies in pieces."""
    X, y, qid, w = example(3, queries=40, rows=(2, 20), n=6, weights=True)
    return X, y, qid, w, (10, 90, 130, 200, 250, 300)


def small():
    X, y, qid, w, cuts = examples()
    return ArrayDataset(X, y, qid, w, cuts)


@dataclass(frozen=True)
class Counter:
    """Counts in a file what several processes do, and kills the one that does number ``after``, once."""

    folder: Path
    after: int | None = None
    seconds: float = 0.02

    def count(self):
        """One more."""
        time.sleep(self.seconds)
        with open(self.folder / "done", "ab") as file:
            file.write(b".")
        if self.after is not None and self.done >= self.after:
            try:
                os.close(os.open(self.folder / "killed", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

    @property
    def done(self):
        return (self.folder / "done").stat().st_size

    @property
    def killed(self):
        return (self.folder / "killed").exists()


@dataclass(frozen=True)
class Counted(ArrayDataset):
    """Reads are counted, and one of them kills its process."""

    counter: Counter | None = None

    def read(self, address, names=False):
        self.counter.count()
        return super().read(address, names)


def counted(counter):
    X, y, qid, w, cuts = examples()
    return Counted(X, y, qid, w, cuts, counter=counter)


@contextmanager
def local_cluster(**given):
    """Two workers of one thread each."""
    import dask
    from distributed import Client, LocalCluster

    processes()
    how = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with dask.config.set(FORKED), LocalCluster(**how | given) as workers, Client(workers) as client:
        yield client


def killed(fit, *args):
    """Whether a process of its own was killed while it ran ``fit(*args)``."""
    process = processes().Process(target=fit, args=args)
    process.start()
    process.join(180)
    alive = process.is_alive()
    process.kill()
    process.join()
    return not alive and process.exitcode == -signal.SIGKILL


def fit_parts(folder, after, name, sums):
    """A fit that is killed."""
    os.environ["RANKRLS_NUM_THREADS"] = "1"
    MODELS[name]().fit_dataset(counted(Counter(folder, after=after, seconds=0.0)), checkpoint=sums)


def fit_collections(folder, after, name, sums):
    """The same of Dask arrays."""
    import dask

    import rankrls.dask

    local = MODELS[name]()
    X, y, qid, w = dask_blocks(Counter(folder, after=after, seconds=0.0))
    with dask.config.set(scheduler="synchronous"):
        model = getattr(rankrls.dask, type(local).__name__)(**local.get_params())
        model.fit(X, y, qid=qid, sample_weight=w, checkpoint=sums)


def dask_blocks(counter):
    """The same rows as Dask arrays, cut at queries; every reading of features is counted."""
    from dask import array

    X, y, qid, w, _ = examples()
    starts = np.flatnonzero(np.concatenate(([True], qid[1:] != qid[:-1])))
    chunks = tuple(np.diff([0, *starts[[8, 15, 22, 29, 36]].tolist(), len(y)]).tolist())
    others = [array.from_array(a, chunks=(chunks,)) for a in (y, qid, w)]
    features = array.from_array(X, chunks=(chunks, 6))
    return features.map_blocks(_read, counter, name="counted", dtype=float, meta=np.zeros((0, 6))), *others


def _read(block, counter):
    counter.count()
    return block
