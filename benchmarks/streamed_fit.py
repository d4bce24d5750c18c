"""Fits of Parquet shards a part at a time, against the same work on rows in memory.

A bare decode is pyarrow's batches made into a float32 matrix: the least that whoever learns from a file has to do.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from benchmarks._harness import alternate, at_most, peak_above
from benchmarks._shards import write_shards
from rankrls import RankRLS, RankRLSCV
from rankrls.io import open_dataset

__all__ = ["jobs", "opened", "two_passes", "warm_up"]

SIZE, QUICK = (723_000, 136), (40_000, 24)
GROWTH = (200_000, 40)


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    rows, features = QUICK if quick else SIZE
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_shards(home / "shards", rows, features, rows_per_file=rows // 4)
        data, paths = open_dataset(home / "shards"), sorted((home / "shards").iterdir())
        parts = list(data)
        X, y, qid = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "query"))
        del parts

        def decode() -> None:
            for path in paths:
                for batch in parquet.ParquetFile(path).iter_batches(65_536):
                    matrix = np.empty((batch.num_rows, features), dtype=np.float32)
                    for k, column in enumerate(batch.columns[2:]):
                        matrix[:, k] = column.to_numpy()

        def product() -> None:
            decode()
            for start in range(0, rows, 8192):
                block = X[start : start + 8192].astype(np.float64)
                _ = block.T @ block

        def memory() -> None:
            decode()
            decode()
            RankRLSCV(scoring="ndcg@10").fit(X, y, qid=qid)

        name = f"{rows} x {features} float32 Parquet"
        one, bare, two, held = alternate(lambda: RankRLS().fit_dataset(data), product, lambda: two_passes(data), memory)
        lines = [
            at_most(f"streamed normal equations, {name}", one, "bare decode and bare X'X", bare, 1.25),
            at_most(f"streamed leave-query-out of 21 alphas, {name}", two, "in memory and two decodes", held, 1.15),
        ]
        rows, features = (20_000, 24) if quick else GROWTH
        peaks = []
        for times in (1, 8):
            write_shards(home / f"x{times}", times * rows, features)
            where = (str(home / f"x{times}"),)
            peaks.append(peak_above("benchmarks.streamed_fit", "opened", "two_passes", where) / 1e6)
        job = f"memory of a streamed fit, {8 * rows} x {features}"
        return [*lines, at_most(job, peaks[1], f"of {rows} rows", peaks[0], 1.05, "MB")]


def warm_up() -> None:
    """Compile the loops."""
    rng = np.random.default_rng(0)
    RankRLSCV(scoring="ndcg@10").fit(rng.normal(size=(60, 3)), [0, 1, 2] * 20, qid=np.repeat(np.arange(20), 3))


def opened(folder: str) -> Any:
    """Shards in parts that are small beside them."""
    return open_dataset(folder, rows_per_part=16_384)


def two_passes(data: Any) -> None:
    RankRLSCV(scoring="ndcg@10").fit_dataset(data)
