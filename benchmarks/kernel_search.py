"""Choosing the width of a Gaussian kernel over a basis of items, by exact leave-query-out of 21 alphas for each width.

What no search can do without are two products for every width: ``K'K`` of the kernel's values K at all rows and basis
items, and of K with the eigenvectors, without which no query is held out. numpy makes them on blocks of random numbers
(K itself would take 0.8 GB), for one width; its time is counted as often as there are widths.

Kernels whose matrix of the basis items is ill conditioned, here those of the seven largest widths, take two more
products with 21 to 167 columns: rows are lowered along the eigenvectors of the largest eigenvalues before they are
squared, or rounding would be multiplied by the condition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._data import Problem, problem
from benchmarks._harness import alternate, at_most, one_thread
from rankrls import SparseRankRLSCV

SIZE = (100_000, 20, 1000)
QUICK = (8_000, 20, 80)
BASIS = 1000
BLOCK = 4000
WIDTHS = 12


def widths(columns: int, count: int) -> tuple[float, ...]:
    """From nearly linear to where most rows are alone."""
    return tuple(np.geomspace(1e-3, 3.0, count) / columns)


def choose(p: Problem, basis: int, count: int) -> SparseRankRLSCV:
    return SparseRankRLSCV(n_basis=basis, gamma=widths(p.X.shape[1], count)).fit(p.X, p.y, qid=p.qid)


def products(rows: int, basis: int) -> Callable[[], None]:
    """``K'K`` and ``K V`` of one width."""
    rng = np.random.default_rng(0)
    K, V = rng.random((BLOCK, basis)), rng.random((basis, basis))

    def run() -> None:
        for _ in range(rows // len(K)):
            K.T @ K
            K @ V

    return run


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    size, basis, count = (QUICK, 200, 3) if quick else (SIZE, BASIS, WIDTHS)
    choose(problem(600, 5, 12, hard=False), 20, 2)
    p = problem(*size, hard=False)
    bare = products(size[0], basis)
    theirs = count * min(alternate(bare, one_thread(bare), repeats=3))
    (ours,) = alternate(lambda: choose(p, basis, count), repeats=1, warm_up=False)
    job = f"{count} widths, 21 alphas each, leave-query-out, {p.name}, r = {basis}"
    return [at_most(job, ours, "numpy K'K and K V of each", theirs, 1.5)]
