"""Parquet shards of any size, made up a block of whole queries at a time.

``python -m benchmarks._shards FOLDER --rows 8000000 --features 136`` writes the 4.4 GB on which streaming is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

__all__ = ["blocks", "write_shards"]

QUERY = 120
"""Mean rows of a query."""
BLOCK = 1_000
"""Queries made at once: what is made does not depend on how it is cut into files."""


def blocks(rows: int, features: int, *, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """float32 features, labels 0 to 4 and query ids of ``rows`` rows, some 120,000 rows at a time.

    Queries have 1 to 239 rows. A third of the features say something of the label, with a gain of their own, each
    query shifts all of them, and the rest is noise.
    """
    weights = np.random.default_rng(seed).normal(size=features) * (np.arange(features) % 3 == 0)
    weights /= np.linalg.norm(weights) or 1.0
    done = first = block = 0
    while done < rows:
        rng = np.random.default_rng((seed, block))
        sizes = rng.integers(1, 2 * QUERY, size=BLOCK)
        ends = np.minimum(np.cumsum(sizes), rows - done)
        sizes = np.diff(ends, prepend=0)
        sizes = sizes[sizes > 0]
        m = int(sizes.sum())
        query = np.repeat(np.arange(len(sizes)), sizes)
        X = rng.standard_normal((m, features), dtype=np.float32)
        score = X @ weights.astype(np.float32) + rng.standard_normal(m, dtype=np.float32)
        X += rng.standard_normal((len(sizes), features), dtype=np.float32)[query]
        yield X, np.digitize(score, (0.5, 1.2, 2.0, 2.8)).astype(np.float64), first + query
        done, first, block = done + m, first + len(sizes), block + 1


def write_shards(
    folder: Path, rows: int, features: int, *, rows_per_file: int = 1_000_000, group: int = 65_536, seed: int = 0
) -> list[Path]:
    """Write rows as Parquet files of about equal size, with whole queries in each file but not in each row group."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    names = ["qid", "label", *(f"f{k}" for k in range(1, features + 1))]
    paths: list[Path] = []
    writer, held = None, 0
    for X, y, qid in blocks(rows, features, seed=seed):
        table = pa.table([pa.array(qid), pa.array(y), *(pa.array(np.ascontiguousarray(c)) for c in X.T)], names)
        if writer is None or held + len(y) // 2 > rows_per_file:
            if writer is not None:
                writer.close()
            paths.append(folder / f"part-{len(paths):05d}.parquet")
            # floats that are all different gain nothing from a dictionary
            writer, held = parquet.ParquetWriter(paths[-1], table.schema, use_dictionary=["qid", "label"]), 0
        writer.write_table(table, row_group_size=group)
        held += len(y)
    if writer is not None:
        writer.close()
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks._shards", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--rows-per-file", type=int, default=1_000_000)
    options = parser.parse_args()
    paths = write_shards(options.folder, options.rows, options.features, rows_per_file=options.rows_per_file)
    size = sum(path.stat().st_size for path in paths)
    print(f"{len(paths)} files, {options.rows} rows, {options.features} features, {size / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
