"""Fits of Parquet shards a part at a time, against the same work on rows in memory.

A bare decode is the least that whoever learns from a file has to do: pyarrow's row groups made into float32 matrices.
Bare X'X multiplies blocks of these in float64, as every fit does. Both are spread over the same threads as the fit, a
row group at a time with one BLAS thread each, which is the fastest of the ways that were tried.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from benchmarks._harness import alternate, at_most, peak_above
from benchmarks._shards import write_shards
from rankrls import RankRLS, RankRLSCV
from rankrls._compiled import n_threads, one_blas_thread
from rankrls.io import open_dataset

__all__ = ["bare", "gram", "jobs", "opened", "two_passes", "warm_up"]

SIZE, QUICK = (723_000, 136), (40_000, 24)
GROWTH = (250_000, 136)


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        return [*times(Path(folder), quick), *memory(Path(folder), quick)]


def times(home: Path, quick: bool) -> list[dict[str, Any]]:
    rows, features = QUICK if quick else SIZE
    paths = write_shards(home / "shards", rows, features, rows_per_file=rows // 4)
    data = open_dataset(home / "shards")
    name = f"{rows} x {features} float32 Parquet"
    one, product = alternate(lambda: RankRLS().fit_dataset(data), lambda: bare(paths, gram), repeats=5)
    lines = [at_most(f"streamed normal equations, {name}", one, "bare decode and bare X'X", product, 1.4)]
    parts = list(data)
    X, y, qid = (np.concatenate([getattr(part, key) for part in parts]) for key in ("X", "y", "qid"))
    del parts

    def in_memory() -> None:
        bare(paths)
        bare(paths)
        RankRLSCV(scoring="ndcg@10").fit(X, y, qid=qid)

    two, held = alternate(lambda: two_passes(data), in_memory)
    job = f"streamed leave-query-out of 21 alphas, {name}"
    return [*lines, at_most(job, two, "in memory and two decodes", held, 1.4)]


def memory(home: Path, quick: bool) -> list[dict[str, Any]]:
    """What a streamed fit takes above the opened data, at eight times the rows."""
    rows, features = (20_000, 24) if quick else GROWTH
    peaks = []
    for times in (1, 8):
        write_shards(home / f"x{times}", times * rows, features)
        peaks.append(peak_above("benchmarks.streamed", "opened", "two_passes", (str(home / f"x{times}"),)) / 1e6)
    job = f"memory of a streamed fit, {8 * rows} x {features}"
    return [at_most(job, peaks[1], f"of {rows} rows", peaks[0], 1.2, "MB")]


def bare(paths: list[Path], then: Callable[[np.ndarray], Any] | None = None) -> None:
    """Every row group as a matrix, and what is done with it, on all threads."""

    def work(place: tuple[Path, int]) -> None:
        table = parquet.ParquetFile(place[0], pre_buffer=False).read_row_group(place[1], use_threads=False)
        matrix = np.empty((table.num_rows, table.num_columns - 2), dtype=np.float32)
        for k, column in enumerate(table.columns[2:]):
            matrix[:, k] = column.to_numpy()
        if then is not None:
            then(matrix)

    groups = [(path, k) for path in paths for k in range(parquet.ParquetFile(path).num_row_groups)]
    with one_blas_thread(), ThreadPoolExecutor(n_threads()) as pool:
        for _ in pool.map(work, groups):
            pass


def gram(X: np.ndarray) -> np.ndarray:
    """X'X in float64, a block of rows at a time."""
    out = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(X), 8192):
        block = X[start : start + 8192].astype(np.float64)
        out += block.T @ block
    return out


def warm_up() -> None:
    """Compile the loops."""
    rng = np.random.default_rng(0)
    RankRLSCV(scoring="ndcg@10").fit(rng.normal(size=(60, 3)), [0, 1, 2] * 20, qid=np.repeat(np.arange(20), 3))


def opened(folder: str) -> Any:
    """Shards in parts that are small beside them."""
    return open_dataset(folder, rows_per_part=16_384)


def two_passes(data: Any) -> None:
    RankRLSCV(scoring="ndcg@10").fit_dataset(data)
