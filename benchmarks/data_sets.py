"""Data that memory need not hold: reading shards, writing them, and the memory that both take as the rows grow.

Reading is compared with a bare decode of the same files by pyarrow whose columns are stacked to one array a row group,
one thread each. ``convert`` is compared with :func:`rankrls.io.load_letor`, which reads the text into memory and writes
nothing; convert reads the text twice, once for ids and counts, then encodes the shards and syncs them to the disk.
Memory is the peak of a whole process, libraries included.

Of 150 MB of text on two processors, load_letor took 0.24 s (short decimals) and 0.28 s (17 digits), convert 0.67 s
and 0.51 s, 2.8 and 1.8 times as long. The goal of 1.5 is of a reader that took 0.47 s and 0.38 s; convert took 0.81 s
and 0.57 s beside it. pyarrow needs 0.24 s of one processor to encode the shards, or 0.10 s of 17 digits, and load_letor
keeps both processors busy, so that 1.5 and 1.2 would be all that is possible, if nothing ever waited. The rest is the
second reading, and the beginning and the end, when only one of reading and encoding has something to do: 150 MB are
eight row groups, or four.

The sizes are small enough for any machine; ``python -m benchmarks._shards FOLDER`` makes 8 million rows of 136
features.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._harness import alternate, at_most, peak_of
from benchmarks._shards import blocks, write_shards

MODULE = "benchmarks.data_sets"
GROWTH = 8
LIMIT = 1.05


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    """Times against bare reads, and memory at eight times the rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [*reading(folder, quick), *writing(folder, quick), *memory(folder, quick)]


def reading(folder: Path, quick: bool) -> list[dict[str, Any]]:
    """All parts of shards, against a bare decode."""
    from rankrls.io import open_dataset

    rows = 20_000 if quick else 400_000
    paths = write_shards(folder / "read", rows, 136, rows_per_file=rows // 4)
    data = open_dataset(folder / "read")
    ours, bare, opening = alternate(lambda: all_parts(data), lambda: decode(paths), lambda: open_dataset(paths))
    size = sum(path.stat().st_size for path in paths) / 1e6
    job = f"read {rows} x 136 float32 of Parquet, {size:.0f} MB, in parts"
    return [
        at_most(job, ours, "pyarrow and column_stack", bare, 1.25),
        at_most("open them: footers, query ids and labels", opening, "pyarrow and column_stack", bare, 0.25),
    ]


def writing(folder: Path, quick: bool) -> list[dict[str, Any]]:
    """LETOR text to shards, against reading the text."""
    from benchmarks.read_letor import write_files
    from rankrls.io import load_letor
    from rankrls.io import write_shards as convert_text

    if quick:
        return []
    lines = []
    (folder / "text").mkdir()
    for name, path in write_files(folder / "text").items():
        if name.startswith("sparse"):
            continue  # shards are dense
        job = f"convert {os.path.getsize(path) / 1e6:.0f} MB of LETOR text, {name}, to Parquet shards"
        run = lambda path=path, **how: convert_text(path, folder / "shards", rows_per_file=50_000, **how)  # type: ignore[misc]
        ours, sort, theirs = alternate(
            run,
            lambda run=run: run(sort=True),  # type: ignore[misc]
            lambda path=path: load_letor(path),  # type: ignore[misc]
        )
        lines.append(at_most(job, ours, "load_letor", theirs, 1.5))
        lines.append(at_most(f"{job} --sort", sort, "load_letor", theirs, 2.5))
    shutil.rmtree(folder / "text")
    return lines


def memory(folder: Path, quick: bool) -> list[dict[str, Any]]:
    """Peak memory at eight times the rows, where the smaller data are larger than what is held at a time."""
    rows, features = (5_000, 20) if quick else (400_000, 40)
    parquet, text = (rows, GROWTH * rows), (rows // 4, GROWTH * rows // 4)
    for count in parquet:
        write_shards(folder / f"{count}.shards", count, features, rows_per_file=rows // 4)
    for count in text:
        write_text(folder / f"{count}.txt", count, features)
    lines = []
    for job, function, sizes, ending in (
        ("read Parquet", "read", parquet, "shards"),
        ("read LETOR text", "read", text, "txt"),
        ("convert Parquet", "convert", parquet, "shards"),
        ("convert LETOR text", "convert", text, "txt"),
        ("convert Parquet --sort", "sort", parquet, "shards"),
    ):
        peaks = [peak_of(MODULE, "the_path", function, [str(folder / f"{n}.{ending}")]) / 1e6 for n in sizes]
        shown = f"{job}, {sizes[1]} x {features}: peak memory"
        lines.append(at_most(shown, peaks[1], f"at {sizes[0]} rows", peaks[0], LIMIT, "MB"))
    return lines


def write_text(path: Path, rows: int, features: int) -> None:
    """The same rows as LETOR text, a block at a time."""
    from rankrls.io import save_letor

    with open(path, "wb") as out:
        for X, y, qid in blocks(rows, features):
            save_letor(path.with_suffix(".part"), X, y, qid)
            out.write(path.with_suffix(".part").read_bytes())


def decode(paths: list[Path]) -> None:
    """Every row group by pyarrow as one array of its features, which is thrown away."""
    from pyarrow import parquet

    for path in paths:
        file = parquet.ParquetFile(path, pre_buffer=False)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, use_threads=False)
            np.column_stack([column.to_numpy() for column in table.columns[2:]])


def all_parts(data: Any) -> None:
    """Read every part, one after the other."""
    for _ in data:
        pass


def warm_up() -> None:
    """Compile what the jobs need, on a small file of text."""
    with tempfile.TemporaryDirectory() as name:
        write_text(Path(name) / "a.txt", 500, 3)
        read(str(Path(name) / "a.txt"))


def the_path(path: str) -> str:
    """What the processes have before the jobs."""
    return path


def read(path: str) -> None:
    """All parts, one after the other."""
    from rankrls.io import open_dataset

    all_parts(open_dataset(path, rows_per_part=20_000))


def convert(path: str, *, sort: bool = False) -> None:
    """To other shards."""
    from rankrls.io import write_shards

    with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
        write_shards(path, Path(folder) / "out", rows_per_file=10_000, sort=sort)


def sort(path: str) -> None:
    """To other shards, by way of the disk."""
    convert(path, sort=True)
