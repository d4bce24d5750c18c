"""Sparse RankRLS with a Gaussian kernel: a million rows, two thousand basis items, against the product K_RM K_MR alone.

The product's time is that of one block, over and over: K_MR itself would take 16 GB. numpy knows ``K'K`` as symmetric,
so that it is half of a general product. What ours does besides, in shares of the product's processor time: the kernel
values (an exponential for each) about a sixth, their centring and the right side 5 to 10 %, and what does not grow with
the rows: a Cholesky factor, a whitening and a solution of r x r, a second in all.

scikit-learn's Nystroem + Ridge holds K_MR and a copy of it, so it is run on a tenth of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._data import Problem, problem
from benchmarks._harness import alternate, at_most, faster, one_thread, peak_above, timed
from rankrls import SparseRankRLS, SparseRankRLSCV

ROWS, COLUMNS, BASIS = 1_000_000, 20, 2000
RIVAL_ROWS = 100_000
LIMIT = float(1 << 30)
BLOCK = 10_000


def load(rows: int, queries: int) -> Problem:
    return problem(rows, COLUMNS, queries, hard=False, even=True)


def fit(p: Problem, basis: int = BASIS) -> SparseRankRLS:
    qid = None if p.qid[-1] == 0 else p.qid
    return SparseRankRLS(n_basis=basis).fit(p.X, p.y, qid=qid)


def warm_up() -> None:
    for queries in (1, 30):
        fit(load(3000, queries), 50)


def product(rows: int, basis: int) -> Any:
    """``K'K`` of as many rows, from one block of random numbers."""
    K = np.random.default_rng(0).random((min(rows, BLOCK), basis))

    def run() -> None:
        for _ in range(rows // len(K)):
            K.T @ K

    return run


def nystroem_ridge(p: Problem, basis: int) -> None:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    features = Nystroem(gamma=1.0 / COLUMNS, n_components=basis, random_state=0)
    make_pipeline(features, Ridge(solver="cholesky", copy_X=False)).fit(p.X, p.y)


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    rows, basis = (20_000, 200) if quick else (ROWS, BASIS)
    warm_up()
    lines = []
    bare = product(rows, basis)
    for queries, what in ((1, "one global ranking"), (rows // 10, "queries of 10")):
        p = load(rows, queries)
        name = f"fit, Gaussian, {rows} x {COLUMNS}, r = {basis}, {what}"
        ours, *alone = alternate(
            lambda p=p: fit(p, basis), bare, *([one_thread(bare)] if quick else []), repeats=1, warm_up=quick
        )
        lines.append(at_most(name, ours, "numpy K'K", min(alone), 1.3))
        del p
        if not quick:
            above = peak_above("benchmarks.sparse_rankrls", "load", "fit", (rows, queries))
            lines.append(at_most(f"memory above the data, {what}", above / 1e6, "1 GiB", LIMIT / 1e6, 1.0, "MB"))
    return [*lines, *against_nystroem(quick)]


def against_nystroem(quick: bool) -> list[dict[str, Any]]:
    rows, basis = (5000, 200) if quick else (RIVAL_ROWS, BASIS)
    p = load(rows, 1)
    ours, rival = alternate(lambda: fit(p, basis), lambda: nystroem_ridge(p, basis), repeats=1, warm_up=quick)
    lines = [faster(f"fit, {rows} x {COLUMNS}, r = {basis}, one alpha", ours, "Nystroem + Ridge", rival, 1.0)]
    q = load(rows, rows // 10)
    seconds, _ = timed(lambda: SparseRankRLSCV(n_basis=basis).fit(q.X, q.y, qid=q.qid))
    job = f"21 alphas, exact leave-query-out, {rows} x {COLUMNS}, r = {basis}, queries of 10"
    return [*lines, faster(job, seconds, "Nystroem + Ridge, one alpha, no selection", rival, 0.5)]
