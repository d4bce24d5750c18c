"""How time, memory and traffic grow with the rows of a streamed fit, and what that says of sizes nobody measured.

The same fit at 1, 2, 4 and 8 times the rows: exact leave-query-out of 21 values on Parquet, in time, in peak memory of
a process and in bytes over the loopback of a Dask cluster with two workers (the operating system's counter of sent
bytes, which Dask's own monitor reads too; heartbeats are in it). And an iteration of conjugate gradients on sparse
LETOR text, by non-zeros. The last lines extend the straight lines; they are no measurements.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._harness import alternate, context, exponent, peak_of, skipped
from benchmarks._shards import write_shards
from benchmarks._text import documents
from benchmarks.streamed import warm_up
from rankrls import CGRankRLS, RankRLSCV
from rankrls.io import open_dataset, save_letor

__all__ = ["jobs", "opened", "two_passes", "warm_up"]

TIMES = (1, 2, 4, 8)
SIZE, QUICK = (125_000, 136), (5_000, 24)
DOCUMENTS = 5_000
FAR_ROWS, FAR_ENTRIES = 1e9, 1e11


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        return [*parquet(Path(folder), quick), *text(Path(folder), quick)]


def parquet(home: Path, quick: bool) -> list[dict[str, Any]]:
    """Two passes over shards."""
    rows, features = QUICK if quick else SIZE
    sizes = [times * rows for times in TIMES]
    folders = [home / str(size) for size in sizes]
    for folder, size in zip(folders, sizes, strict=True):
        write_shards(folder, size, features, rows_per_file=rows)
    name = f"leave-query-out of 21 alphas, Parquet, {sizes[0]} to {sizes[-1]} x {features}"
    seconds = alternate(*(lambda folder=folder: two_passes(opened(folder)) for folder in folders))
    peaks = [peak_of("benchmarks.how_far", "opened", "two_passes", (str(folder),)) for folder in folders]
    sent = traffic(folders)
    lines = [
        exponent(f"seconds, {name}", sizes, seconds, "linear", 1.0, 0.1),
        exponent(f"peak memory of the process, {name}", sizes, peaks, "flat", 1.0, 0.0),
    ]
    if sent:
        lines.append(exponent(f"bytes on the network, Dask, {name}", sizes, sent, "linear", 1.0, 0.1))
        lines += [amount("bytes on the network a part", sent[-1] / len(opened(folders[-1]).parts) / 1e3, "KB")]
    else:
        lines.append(skipped(f"bytes on the network, {name}", "", "rankrls[dask] is not installed"))
    lines += [amount(f"seconds, {n} rows", s, "s") for n, s in zip(sizes, seconds, strict=True)]
    lines += [amount(f"peak memory, {n} rows", p / 1e6, "MB") for n, p in zip(sizes, peaks, strict=True)]
    lines += [amount(f"on the network, {n} rows", b / 1e6, "MB") for n, b in zip(sizes, sent, strict=False)]
    far = FAR_ROWS / sizes[-1]
    lines.append(amount(f"extrapolated: 1e9 x {features}, two passes", far * seconds[-1] / 3600.0, "h"))
    if sent:
        more = (sent[-1] - sent[0]) / (sizes[-1] - sizes[0])
        lines.append(amount(f"extrapolated: on the network, 1e9 x {features}", FAR_ROWS * more / 1e9, "GB"))
    return lines


def text(home: Path, quick: bool) -> list[dict[str, Any]]:
    """An iteration of conjugate gradients on sparse text."""
    size = 500 if quick else DOCUMENTS
    entries, paths = [], []
    for times in TIMES:
        X, y = documents(times * size, 5_000 if quick else 40_000, seed=times)
        paths.append(home / f"{times}.txt")
        save_letor(paths[-1], X, y, np.arange(times * size) // 100)
        entries.append(float(X.nnz))
    data = [open_dataset(path) for path in paths]
    more = 5
    runs = [lambda d=d, k=k: iterations(d, k) for d in data for k in (2, 2 + more)]
    seconds = alternate(*runs)
    each = [(b - a) / more for a, b in zip(seconds[::2], seconds[1::2], strict=True)]
    name = (
        f"an iteration of streamed CG, sparse text, {entries[0] / 1e6:.1f} to {entries[-1] / 1e6:.1f} million non-zeros"
    )
    return [
        exponent(f"seconds, {name}", entries, each, "linear", 1.0, 0.1),
        *(amount(f"seconds an iteration, {n:.3g} non-zeros", s, "s") for n, s in zip(entries, each, strict=True)),
        amount("extrapolated: 1e11 non-zeros, an iteration", FAR_ENTRIES / entries[-1] * each[-1] / 3600.0, "h"),
    ]


def traffic(folders: list[Path]) -> list[float]:
    """Bytes on the loopback that a fit on a Dask cluster sends; nothing where Dask is not installed."""
    try:
        import psutil
    except ImportError:
        return []
    try:
        from benchmarks.streamed_dask import WORKERS, local_cluster

        client = local_cluster()
    except ImportError:
        return []
    sent = lambda: psutil.net_io_counters(pernic=True)["lo"].bytes_sent
    out = []
    with client:
        executor = client.get_executor()
        executor._max_workers = WORKERS
        for folder in (folders[0], *folders):
            data, before = opened(folder), sent()
            RankRLSCV(scoring="ndcg@10").fit_dataset(data, executor=executor)
            out.append(float(sent() - before))
        client.shutdown()
    return out[1:]  # the first one had to tell the workers what to import


def amount(job: str, value: float, unit: str) -> dict[str, Any]:
    """A figure without a rival."""
    return context(job, value, "", None, unit=unit)


def opened(folder: Path | str) -> Any:
    return open_dataset(folder)


def two_passes(data: Any) -> None:
    RankRLSCV(scoring="ndcg@10").fit_dataset(data)


def iterations(data: Any, number: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CGRankRLS((1.0,), selection="tikhonov", max_iter=number, tol=1e-15).fit_dataset(data)
