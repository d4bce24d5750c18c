"""Ranking pursuit: the path of P terms against P products of the kernel matrix with a vector; features; growth.

A stage has to look at every column once, which is one such product: the limit. Beside it there are the kernel matrix
itself, seen through the graph, and the orthogonalisation of each new column, two passes over the columns taken so far,
or four where digits cancel. The matrix is 200 MB: where memory is new to the process, touching it can take longer than
computing it.

With features as the dictionary the rival is scikit-learn's orthogonal matching pursuit by its Gram matrix, on rows that
were centred inside their queries and columns of length 1 beforehand, where it takes the same path.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._data import problem
from benchmarks._harness import alternate, at_most, context, exponent, one_thread, peak_above, timed
from rankrls import CoRankingPursuit, RankingPursuit
from rankrls._queries import query_layout
from rankrls.graph import ScoredGraph
from rankrls.greedy.dictionaries import kernel_dictionary
from rankrls.greedy.pursuit import pursue
from rankrls.kernels import Kernel


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    return [*kernel_path(quick), memory(quick), *feature_path(quick), *growth(quick), *unscored_rows(quick)]


def memory(quick: bool) -> dict[str, Any]:
    rows = 800 if quick else 5000
    peak = peak_above(__name__, "load", "fit", (rows,)) / 2**20
    job = f"memory of ranking pursuit above the data, m = {rows}"
    return at_most(job, peak, "K", 8.0 * rows**2 / 2**20, 1.4, "MiB")


def load(rows: int) -> Any:
    return problem(rows, 20, rows // 100, even=True, hard=False)


def fit(p: Any) -> None:
    RankingPursuit(100, gamma=0.05).fit(p.X, p.y, qid=p.qid)


def warm_up() -> None:
    fit(load(300))


def kernel_path(quick: bool) -> list[dict[str, Any]]:
    p = problem(*((800, 20, 20) if quick else (5000, 20, 50)), even=True, hard=False)
    m, stages, gamma = len(p.y), 50 if quick else 500, 1.0 / p.X.shape[1]
    ours = lambda: RankingPursuit(stages, gamma=gamma).fit(p.X, p.y, qid=p.qid)
    assert ours().path_.n_stages == stages
    squares = (p.X**2).sum(axis=1)
    K = np.exp(-gamma * (squares[:, None] + squares - 2.0 * p.X @ p.X.T))
    v = np.random.default_rng(1).standard_normal(m)

    def products() -> None:
        for _ in range(stages):
            K @ v

    graph = ScoredGraph.build(p.y[:, None], query_layout(p.qid, m))
    dictionary = kernel_dictionary(Kernel("rbf", gamma), p.X, None, graph)
    path_alone = lambda: pursue(dictionary, graph.F @ p.y, stages)
    fit, alone, *theirs = alternate(ours, path_alone, products, one_thread(products), repeats=1 if quick else 3)
    job, rival = f"ranking pursuit, m = {m}, P = {stages}, backfitted", f"{stages} numpy products K v"
    return [
        at_most(f"{job}, kernel matrix included", fit, rival, min(theirs), 1.4),
        context(f"{job}, kernel matrix given", alone, rival, min(theirs)),
    ]


def feature_path(quick: bool) -> list[dict[str, Any]]:
    from sklearn.linear_model import orthogonal_mp_gram

    rows, columns, stages = (4000, 200, 50) if quick else (100_000, 2000, 500)
    p = problem(rows, columns, rows // 100, even=True, hard=False)
    small = problem(2000, 20, 20, even=True, hard=False)
    RankingPursuit(20, dictionary="features").fit(small.X, small.y, qid=small.qid)  # loads what is compiled
    seconds, model = timed(lambda: RankingPursuit(stages, dictionary="features").fit(p.X, p.y, qid=p.qid))
    few, _ = timed(lambda: RankingPursuit(20, dictionary="features").fit(p.X, p.y, qid=p.qid))
    p.X.reshape(-1, 100, columns)[:] -= p.X.reshape(-1, 100, columns).mean(axis=1)[:, None]
    p.X[:] /= np.sqrt(np.einsum("ij,ij->j", p.X, p.X))
    y = (p.y.reshape(-1, 100) - p.y.reshape(-1, 100).mean(axis=1)[:, None]).ravel()
    theirs, coefficients = timed(lambda: orthogonal_mp_gram(p.X.T @ p.X, p.X.T @ y, n_nonzero_coefs=stages))
    assert set(np.flatnonzero(coefficients)) == set(model.basis_indices_.tolist())
    rival = f"scikit-learn orthogonal_mp_gram, {stages} terms, prepared columns"
    job = f"ranking pursuit of features, {rows} x {columns}"
    return [
        context(f"{job}, P = {stages}, all stages", seconds, rival, theirs),
        context(f"{job}, P = 20", few, rival, theirs),
    ]


def growth(quick: bool) -> list[dict[str, Any]]:
    size = 400 if quick else 4000
    p = problem(size, 20, 20, even=True, hard=False)
    graph = ScoredGraph.build(p.y[:, None], query_layout(p.qid, size))
    dictionary = kernel_dictionary(Kernel("rbf", 0.05), p.X, None, graph)
    counts = (10, 20, 40) if quick else (50, 100, 200, 400)
    by_stages = alternate(
        *(lambda P=P: pursue(dictionary, graph.F @ p.y, P) for P in counts), repeats=1 if quick else 3
    )
    sizes, by_rows = (200, 400, 800) if quick else (2000, 4000, 8000), []
    for rows in sizes:
        q = problem(rows, 20, 20, even=True, hard=False)
        one = ScoredGraph.build(q.y[:, None], query_layout(q.qid, rows))
        columns = kernel_dictionary(Kernel("rbf", 0.05), q.X, None, one)
        by_rows += alternate(lambda d=columns, g=one, y=q.y: pursue(d, g.F @ y, 50), repeats=1 if quick else 3)
    return [
        exponent(f"pursuit, m = {size}: {_figures(counts, by_stages)}", counts, by_stages, "linear in stages", 1.0),
        exponent(f"pursuit, P = 50: {_figures(sizes, by_rows)}", sizes, by_rows, "quadratic in rows", 2.0),
    ]


def unscored_rows(quick: bool) -> list[dict[str, Any]]:
    sizes, seconds = (200, 400, 800) if quick else (5_000, 10_000, 20_000, 40_000), []
    scored = 100 if quick else 500
    for rows in sizes:
        p = problem(scored + rows, 20, (scored + rows) // 50, even=True, hard=False)
        labels = np.where(np.arange(len(p.y)) < scored, p.y, np.nan)
        seconds += alternate(
            lambda p=p, y=labels: CoRankingPursuit(20).fit(p.X, y, qid=p.qid), repeats=1 if quick else 3
        )
    job = f"semi-supervised pursuit, {scored} scored rows, P = 20: {_figures(sizes, seconds)}"
    return [exponent(job, sizes, seconds, "linear in unscored rows", 1.0)]


def _figures(sizes: tuple[int, ...], seconds: list[float]) -> str:
    return ", ".join(f"{size} {s:.3g} s" for size, s in zip(sizes, seconds, strict=True))
