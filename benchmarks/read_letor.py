"""Reading LETOR text, against the readers of scikit-learn, XGBoost and LightGBM, and the memory that it takes.

Three files of about 150 MB: 136 dense features of short decimals and whole numbers, as MSLR-WEB has them; 136 of 17
digits, as ``repr`` writes them; 10000 features of which a line names one in a hundred. scikit-learn reads the first few
megabytes only and its time is scaled up by the bytes, which flatters it a little: on whole files it is slower. XGBoost
reads the same file (its own features are of single precision), LightGBM one without query ids, into the bins that its
trees need. The fastest of them is the rival.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks._harness import faster, within

RIVAL_BYTES = 20_000_000
FASTEST, MEGABYTES = 1.0, 400.0
MEMORY = 2.5

PEAK = """
import sys, numpy as np
from rankrls.io import load_letor
def peak_memory():  # of this program alone: ru_maxrss remembers the process that it was forked from
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
import rankrls.io._letor_loop, scipy.sparse
before = peak_memory()
table = load_letor(sys.argv[1])
peak = peak_memory() - before
X = table.X
parts = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
print(peak, sum(a.nbytes for a in (*parts, table.y, table.qid)))
"""


def write_files(folder: Path) -> dict[str, Path]:
    """The three files."""
    from rankrls.io import save_letor

    rng = np.random.default_rng(0)

    def queries(rows: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.integers(0, 5, rows), np.arange(rows) // 120

    rows = 118_000
    X = np.round(rng.random((rows, 136)) * np.exp(2 * rng.standard_normal(136)), 6)
    whole = rng.random(136) < 0.45
    X[:, whole] = np.round(X[:, whole] * 50)
    tables: dict[str, Any] = {"short": X}
    tables["17 digits"] = rng.standard_normal((48_000, 136))
    rows, columns = 105_000, 10_000
    tables["sparse 1%"] = sp.csr_array(
        (
            np.round(rng.random(rows * 100), 6),
            (np.arange(0, columns, 100) + rng.integers(0, 100, (rows, 100))).reshape(-1),
            np.arange(0, rows * 100 + 1, 100),
        ),
        shape=(rows, columns),
    )
    paths = {name: folder / f"{name.split()[0]}.txt" for name in tables}
    for name, table in tables.items():
        save_letor(paths[name], table, *queries(table.shape[0]))
    return paths


def seconds(run: Callable[[], Any], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def without_queries(path: Path) -> Path:
    """The same rows without ``qid:``, which LightGBM does not read."""
    plain = path.with_suffix(".plain")
    plain.write_bytes(re.sub(rb" qid:\d+", b"", path.read_bytes()))
    return plain


def rivals(path: Path) -> dict[str, float]:
    """Seconds of those that are installed."""
    from sklearn.datasets import load_svmlight_file

    threads = int(os.environ["OMP_NUM_THREADS"])
    part = head_of(path)
    share = os.path.getsize(path) / os.path.getsize(part)
    found = {"scikit-learn": share * seconds(lambda: load_svmlight_file(str(part), query_id=True), 3)}
    with contextlib.suppress(ImportError):
        import xgboost

        found["XGBoost"] = seconds(lambda: xgboost.DMatrix(f"{path}?format=libsvm", nthread=threads, silent=True), 3)
    with contextlib.suppress(ImportError):
        import lightgbm

        plain, settings = without_queries(path), {"num_threads": threads, "verbosity": -1}
        found["LightGBM"] = seconds(lambda: lightgbm.Dataset(str(plain), params=settings).construct(), 3)
    return found


def head_of(path: Path) -> Path:
    """The first lines of a file, as a file."""
    part = path.with_suffix(".head")
    with open(path, "rb") as file:
        part.write_bytes(file.read(RIVAL_BYTES).rpartition(b"\n")[0] + b"\n")
    return part


def jobs() -> list[dict[str, Any]]:
    """One row for each file's time, and one for each file's memory."""
    from rankrls._compiled import n_threads
    from rankrls.io import load_letor

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, path in write_files(Path(folder)).items():
            size = os.path.getsize(path)
            load_letor(head_of(path))
            ours = seconds(lambda path=path: load_letor(path))  # type: ignore[misc]
            theirs = rivals(path)
            speed = f"{size / 1e6:.0f} MB at {size / ours / 1e6:.0f} MB/s, {n_threads()} threads"
            job = f"read LETOR text, {name}, {speed}"
            fastest = min(theirs, key=theirs.__getitem__)
            rows.append(faster(job, ours, f"the fastest of {', '.join(theirs)}: {fastest}", theirs[fastest], FASTEST))
            rows.append(within(f"{job}, at {MEGABYTES:g} MB/s", ours, size / 1e6 / MEGABYTES))
            out = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True)
            peak, arrays = map(int, out.stdout.split())
            limit = MEMORY * arrays + size
            rows.append(
                {
                    "job": f"read LETOR text, {name}: peak memory, arrays {arrays / 1e6:.0f} MB",
                    "ours": peak / 1e6,
                    "rival": f"{MEMORY} x arrays + file",
                    "rival_seconds": limit / 1e6,
                    "ratio": peak / limit,
                    "goal": "at most 1x",
                    "met": peak <= limit,
                    "unit": "MB",
                }
            )
    return rows
