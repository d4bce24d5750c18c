"""From a text file to a saved model, as one process each: ``rankrls fit``, and LightGBM with 50 trees.

723,000 rows of 136 features in 6000 queries. ``rankrls fit`` reads the file, fits, judges 21 regularization values by
exact leave-query-out and NDCG@10, saves the model and reports. LightGBM reads the same rows and grows 50 trees of its
default size with lambdarank; nothing is chosen. It does not read ``qid:``: it gets a file without them and the queries'
lengths in a file beside it, as its documentation asks.

Labels come from a utility that is partly linear and partly not, as in ``benchmarks/lambdarank.py``. NDCG@10 is that of
100,000 unseen rows in queries of the same kind. Both processes begin with their imports, and have compiled before.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._data import query_lengths
from benchmarks._harness import alternate, as_installed, faster, skipped
from rankrls import load
from rankrls.io import save_letor
from rankrls.metrics import Measure

COLUMNS, TREES = 136, 50
SIZE, QUICK = (723_000, 6000), (12_000, 100)
UNSEEN = 100_000
GOAL = 4.0

GROW = """
import sys
import lightgbm
data, model, threads = sys.argv[1:]
settings = {"objective": "lambdarank", "num_threads": int(threads), "verbosity": -1}
lightgbm.train(settings, lightgbm.Dataset(data, params=settings), TREES).save_model(model)
""".replace("TREES", str(TREES))


def made(rows: int, queries: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features as short decimals and whole numbers, labels 0 to 4, lengths of queries."""
    w = np.random.default_rng(0).standard_normal(COLUMNS) / np.sqrt(COLUMNS)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, COLUMNS))
    utility = X @ w + 0.5 * X[:, 0] * X[:, 1] + 0.5 * np.abs(X[:, 2]) + 0.7 * rng.standard_normal(rows)
    X[:, ::2] *= 50.0
    np.round(X[:, ::2], 0, out=X[:, ::2])
    np.round(X[:, 1::2], 6, out=X[:, 1::2])
    y = np.searchsorted([0.3, 1.0, 1.8, 2.6], utility).astype(float)
    return X, y, query_lengths(rows, queries, seed)


def write(folder: Path, rows: int, queries: int) -> None:
    """The file, the one for LightGBM, and its queries' lengths."""
    X, y, lengths = made(rows, queries, 1)
    save_letor(folder / "train.txt", X, y, qid=np.repeat(np.arange(queries), lengths))
    del X
    with open(folder / "train.txt", "rb") as file, open(folder / "plain.txt", "wb") as plain:
        while lines := file.readlines(1 << 24):
            plain.write(re.sub(rb" qid:\d+", b"", b"".join(lines)))
    np.savetxt(folder / "plain.txt.query", lengths, fmt="%d")


def fit(folder: Path) -> None:
    command = ["fit", str(folder / "train.txt"), "--model", str(folder / "m.rankrls"), "--metric", "ndcg@10"]
    subprocess.run([sys.executable, "-m", "rankrls", *command], check=True, stdout=subprocess.DEVNULL)


def grow(folder: Path) -> None:
    threads = os.environ["OMP_NUM_THREADS"]
    arguments = [str(folder / "plain.txt"), str(folder / "trees.txt"), threads]
    subprocess.run([sys.executable, "-c", GROW, *arguments], check=True, stdout=subprocess.DEVNULL)


def measured(folder: Path, rows: int, queries: int, repeats: int) -> list[dict[str, Any]]:
    """Both on the files of a folder, and what their models are worth."""
    import lightgbm

    ours, theirs = alternate(lambda: fit(folder), lambda: grow(folder), repeats=repeats, warm_up=False)
    unseen = min(UNSEEN, rows)
    X, y, lengths = made(unseen, unseen * queries // rows, 2)
    qid = np.repeat(np.arange(len(lengths)), lengths)
    own = Measure("ndcg", k=10)(y, load(folder / "m.rankrls").predict(X), qid=qid)
    X = np.insert(X, 0, 0.0, axis=1)  # LightGBM counts features from 0
    other = Measure("ndcg", k=10)(y, lightgbm.Booster(model_file=str(folder / "trees.txt")).predict(X), qid=qid)
    size = (folder / "train.txt").stat().st_size
    job = f"rankrls fit, leave-query-out, {rows} x {COLUMNS}, {size / 1e6:.0f} MB of text (NDCG@10 {own:.3f})"
    rival = f"LightGBM, the same text, {TREES} trees (NDCG@10 {other:.3f})"
    return [faster(job, ours, rival, theirs, GOAL)]


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    rows, queries = QUICK if quick else SIZE
    try:
        import lightgbm  # noqa: F401
    except ImportError as error:
        return [skipped("rankrls fit on text", "LightGBM", f"lightgbm is not importable ({error})")]
    as_installed()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, *QUICK)
        fit(folder)  # compiles
        write(folder, rows, queries)
        return measured(folder, rows, queries, 1 if quick else 3)
