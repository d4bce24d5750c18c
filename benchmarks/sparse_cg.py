"""Conjugate gradients on sparse text of RCV1's shape: what 21 regularization values cost beside one, and one iteration.

A time for each iteration is the difference between runs of many and of few, over the difference in their number: what
is done once (checking the input, the right side) is left out, for us and for every rival.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import _rlscore
from benchmarks._harness import alternate, at_most, context, faster, peak_above, skipped, timed
from benchmarks._text import RCV1, documents
from rankrls import CGRankRLS

ALPHAS = tuple(2.0 ** np.arange(-10, 11))
PAIRS = 1_000_000
VALIDATION = 8149
MEMORY = 300 * 2.0**20
FEW, MANY = 5, 30
_QUICK = (20_000, 6000)


class Data:
    """Training and validation documents."""

    def __init__(self, X: Any, y: np.ndarray, X_val: Any, y_val: np.ndarray) -> None:
        self.X, self.y, self.X_val, self.y_val = X, y, X_val, y_val

    @property
    def name(self) -> str:
        m, n = self.X.shape
        return f"{m // 1000}k x {n // 1000}k, {self.X.nnz / 1e6:.1f}M non-zeros"

    def first(self, rows: int) -> Data:
        return Data(self.X[:rows], self.y[:rows], self.X_val, self.y_val)


def made(rows: int, columns: int) -> Data:
    return Data(*documents(rows, columns), *documents(min(VALIDATION, rows // 4), columns, seed=1))


def fit(p: Data, alphas: tuple[float, ...] = ALPHAS, iterations: int = MANY) -> CGRankRLS:
    """That many iterations exactly, the validation data looked at after each."""
    model = CGRankRLS(alphas, selection="hybrid", max_iter=iterations, tol=0.0, patience=iterations)
    return quietly(lambda: model.fit(p.X, p.y, X_val=p.X_val, y_val=p.y_val))


def fit_one(p: Data, iterations: int) -> CGRankRLS:
    """One alpha, nothing judged."""
    return quietly(lambda: CGRankRLS((1.0,), selection="tikhonov", max_iter=iterations, tol=0.0).fit(p.X, p.y))


def fit_pairs(p: Data, i: np.ndarray, j: np.ndarray, iterations: int) -> CGRankRLS:
    model = CGRankRLS((1.0,), selection="tikhonov", max_iter=iterations, tol=0.0)
    return quietly(lambda: model.fit_pairs(p.X, i, j))


def ridge(p: Data, iterations: int) -> np.ndarray:
    """The same problem, as scikit-learn solves it: least squares with an intercept."""
    from sklearn.linear_model import Ridge

    model = Ridge(1.0, solver="sparse_cg", max_iter=iterations, tol=1e-300)
    return np.asarray(quietly(lambda: model.fit(p.X, p.y)).coef_)


def quietly(run: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a few iterations do not converge is meant
        return run()


def an_iteration(*runs: Callable[[int], Any], repeats: int = 3) -> list[float]:
    """Seconds of one iteration of each."""
    both = [lambda k=k, run=run: run(k) for run in runs for k in (FEW, MANY)]
    seconds = alternate(*both, repeats=repeats)
    return [max(many - few, 1e-9) / (MANY - FEW) for few, many in zip(seconds[::2], seconds[1::2], strict=True)]


def load(folder: str) -> Data:
    """What :func:`keep` wrote: reading it takes no more memory than it has."""
    parts = []
    for name in ("train", "validation"):
        arrays = [np.load(Path(folder) / f"{name}-{k}.npy") for k in range(5)]
        parts += [sparse.csr_array(tuple(arrays[:3]), shape=tuple(arrays[3])), arrays[4]]
    return Data(*parts)


def keep(p: Data, folder: str) -> None:
    for name, X, y in (("train", p.X, p.y), ("validation", p.X_val, p.y_val)):
        for k, array in enumerate((X.data, X.indices, X.indptr, np.array(X.shape), y)):
            np.save(Path(folder) / f"{name}-{k}.npy", array)


def warm_up() -> None:
    small = made(400, 60)
    fit(small)
    fit_one(small, 3)
    fit_pairs(small, np.array([0, 1]), np.array([2, 3]), 3)


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    warm_up()
    rows, columns = _QUICK if quick else RCV1
    whole = made(rows, columns)
    lines = [*all_alphas(whole), *pairs(whole), *memory(whole)]
    part = whole.first(rows // 4 if quick else 200_000)
    del whole
    return [*lines, *rivals(part)]


def all_alphas(p: Data) -> list[dict[str, Any]]:
    def two_products() -> None:
        for _ in range(MANY):
            s = p.X @ w
            p.X.T @ s

    w = np.ones(p.X.shape[1])
    many, one, products = alternate(lambda: fit(p), lambda: fit(p, (ALPHAS[0],)), two_products, repeats=3)
    job = f"{MANY} iterations, 21 alphas, judged after each, {p.name}"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    (iteration,) = an_iteration(lambda k: fit_one(p, k), repeats=1)
    held = f"one iteration, one alpha, {p.name}", iteration, "two scipy products", products / MANY
    two = min(cores, int(os.environ.get("RANKRLS_NUM_THREADS", cores))) > 1
    return [
        at_most(job, many, "the same with one alpha", one, 1.2),
        at_most(*held, 0.55) if two else context(*held, "0.55x is for two cores"),
        context(job, many, f"{MANY} x two scipy products", products),
    ]


def pairs(p: Data) -> list[dict[str, Any]]:
    rng = np.random.default_rng(2)
    number = min(PAIRS, 4 * len(p.y))
    i, j = (rng.choice(np.flatnonzero(p.y == label), size=number) for label in (1.0, 0.0))
    paired, labelled = an_iteration(lambda k: fit_pairs(p, i, j, k), lambda k: fit_one(p, k))
    job = f"one iteration, {number} pairs, {p.name}"
    return [at_most(job, paired, "one of labelled data", labelled, 2.0)]


def memory(p: Data) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        keep(p, folder)
        above = peak_above("benchmarks.sparse_cg", "load", "fit", (folder,))
    return [
        at_most(f"memory above the data, 21 alphas, {p.name}", above / 2**20, "300 MiB", MEMORY / 2**20, 1.0, "MiB")
    ]


def rivals(p: Data) -> list[dict[str, Any]]:
    job = f"one iteration, {p.name}"
    ours = fit_one(p, MANY).coef_
    (single,) = an_iteration(lambda k: fit_one(p, k))
    (theirs,) = an_iteration(lambda k: ridge(p, k), repeats=1)
    check_same("Ridge(sparse_cg)", ridge(p, MANY), ours)
    lines = [context(job, single, "scikit-learn Ridge(sparse_cg)", theirs)]
    why = _rlscore.missing()
    if why:
        return [*lines, skipped(job, _rlscore.NAME, why)]
    check_same(_rlscore.NAME, _rlscore.cg(p.X, p.y, 1.0, MANY), ours)
    (theirs,) = an_iteration(lambda k: _rlscore.cg(p.X, p.y, 1.0, k), repeats=1)
    lines.append(faster(job, single, _rlscore.NAME, theirs, 5.0))
    rng = np.random.default_rng(2)
    i, j = (rng.choice(np.flatnonzero(p.y == label), size=PAIRS) for label in (1.0, 0.0))
    (paired,) = an_iteration(lambda k: fit_pairs(p, i, j, k), repeats=1)
    product, w = _rlscore.pair_iteration(p.X, i, j), np.ones(p.X.shape[1])
    product(w)
    seconds, _ = timed(lambda: [product(w) for _ in range(FEW)])
    job = f"one iteration, {PAIRS} pairs, {p.name}"
    lines.append(faster(job, paired, f"{_rlscore.NAME}'s product", seconds / FEW, 1.3))
    return lines


def check_same(rival: str, theirs: np.ndarray, ours: np.ndarray) -> None:
    gap = float(np.abs(theirs - ours).max() / np.abs(ours).max())
    if not gap < 1e-3:
        raise RuntimeError(f"{rival} differs from ours by {gap:.2g} after as many iterations: not the same job.")
