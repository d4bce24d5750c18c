"""Reading CSV, against pandas' reader of the same files, and the memory that it takes.

Two tables of more than 100 MB of numbers with a text id: 136 short decimals and whole numbers a row, as MSLR-WEB has
them, and 136 of 17 digits, as ``repr`` writes them. The goal, three times 65 MB/s, is of the reader before pyarrow.
pyarrow parses about 150 to 300 MB/s of one processor, and each thread works on a block of its own. The rival is pandas'
own parser with ``float_precision="round_trip"``, the one that rounds as Python does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._harness import alternate, at_most, faster, within

GOAL = 3 * 65e6
MEMORY = 1.25
BLOCKS = 100e6  # pyarrow, text and arrays of the blocks that are being read

PEAK = """
import sys
from benchmarks._harness import peak_memory
from rankrls.io import load_table
import pyarrow.csv
load_table(sys.argv[2])
before = peak_memory()
table = load_table(sys.argv[1])
print(peak_memory() - before, table.X.nbytes + table.y.nbytes + table.qid.nbytes)
"""


def write_files(folder: Path, quick: bool) -> dict[str, Path]:
    """The two tables, and a small one to warm up with."""
    from rankrls.io import save_table

    rng = np.random.default_rng(0)
    rows = 2_000 if quick else 120_000
    short = np.round(rng.random((rows, 136)) * np.exp(2 * rng.standard_normal(136)), 6)
    whole = rng.random(136) < 0.45
    short[:, whole] = np.round(short[:, whole] * 50)
    tables = {"short decimals": short, "17 digits": rng.standard_normal((rows // 2, 136)), "small": short[:100]}
    paths = {name: folder / f"{name.split()[0]}.csv" for name in tables}
    for name, X in tables.items():
        qid = [f"query {row // 120}" for row in range(len(X))]
        save_table(paths[name], X, rng.integers(0, 5, len(X)), qid)
    return paths


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    """For each file its time against the goal and against pandas, and its memory."""
    import pandas as pd

    from rankrls.io import load_table

    lines = []
    with tempfile.TemporaryDirectory() as folder:
        paths = write_files(Path(folder), quick)
        small = paths.pop("small")
        for name, path in paths.items():
            size = os.path.getsize(path)
            ours, theirs = alternate(
                lambda path=path: load_table(path),  # type: ignore[misc]
                lambda path=path: pd.read_csv(path, float_precision="round_trip"),  # type: ignore[misc]
            )
            job = f"read CSV, {name}, {size / 1e6:.0f} MB"
            lines.append(within(f"{job} at {size / ours / 1e6:.0f} MB/s", ours, size / GOAL))
            lines.append(faster(job, ours, "pandas read_csv", theirs, 1.0))
            out = subprocess.run([sys.executable, "-c", PEAK, path, small], capture_output=True, text=True, check=True)
            peak, arrays = (float(word) for word in out.stdout.split())
            limit = MEMORY * arrays + BLOCKS
            lines.append(at_most(f"{job}: peak memory", peak / 1e6, "arrays x 1.25 + blocks", limit / 1e6, 1.0, "MB"))
    return lines
