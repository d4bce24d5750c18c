"""How the time of each method grows with what its paper says it grows with.

The papers bound the number of operations: RankRLS in the dual by m^3, holding a query out of a decomposed problem by
m^2 + |U|^3, transductive ranking by m^3, an iteration of conjugate gradients by non-zeros and pairs, semi-supervised
pursuit with a shared basis by M^3 and the unscored rows. Greedy RankRLS and pursuit are measured by ``greedy`` and
``pursuit``. An exponent below the bound's is no contradiction: while the largest matrix products are small, what grows
more slowly is part of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks._data import Problem, problem
from benchmarks._harness import alternate, exponent
from benchmarks._text import documents
from benchmarks.sparse_cg import Data, an_iteration, fit_one, fit_pairs
from rankrls import CoRankingPursuit, RankRLSCV, TransductiveRankRLS
from rankrls._queries import query_layout
from rankrls.graph import ScoredGraph
from rankrls.kernels import Kernel
from rankrls.problems.dual import DualProblem

ALPHAS = tuple(2.0 ** np.arange(-10, 11))


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    return [*dense(quick), *held_out(quick), *iterations(quick), *views(quick)]


def dense(quick: bool) -> list[dict[str, Any]]:
    sizes = (200, 400, 800) if quick else (500, 1000, 1500, 2000)
    problems = [problem(m, 20, m // 20, even=True, hard=False) for m in sizes]
    dual = lambda p: RankRLSCV(ALPHAS, kernel="rbf", gamma=0.05).fit(p.X, p.y, qid=p.qid)
    half = lambda p: np.where(p.qid % 2 == 0, p.y, np.nan)
    transductive = lambda p: TransductiveRankRLS(kernel="rbf", gamma=0.05).fit(p.X, half(p), qid=p.qid)
    return [
        _exponent("RankRLS in the dual, 21 alphas held out, by items", sizes, problems, dual, "at most m^3", 3.0),
        _exponent("transductive, half unscored, by items", sizes, problems, transductive, "at most m^3", 3.0),
    ]


def held_out(quick: bool) -> list[dict[str, Any]]:
    """Milliseconds of one query, the decomposition given, one alpha."""
    sizes, lengths = ((400, 800), (20, 40, 80)) if quick else ((500, 1000, 1500, 2000), (50, 100, 200, 400))
    longest = lengths[-1] * 2 if quick else 2000
    by_items = [_held_out_query(problem(m, 20, m // 20, even=True, hard=False)) for m in sizes]
    by_length = [_held_out_query(problem(longest, 20, longest // u, even=True, hard=False)) for u in lengths]
    return [
        exponent("one query of 20 held out, by items", sizes, by_items, "at most m^2", 2.0),
        exponent(f"one query of {longest} items held out, by its length", lengths, by_length, "at most |U|^3", 3.0),
    ]


def _held_out_query(p: Problem) -> float:
    graph = ScoredGraph.build(p.y[:, None], query_layout(p.qid, len(p.y)))
    dual = DualProblem.from_kernel(Kernel("rbf", 0.05)(p.X), graph, (graph.F @ p.y)[:, None])
    _ = dual.spectrum
    length = int((p.qid == 0).sum())
    blocks = [slice(start, start + length) for start in range(0, len(p.y), length)]
    alphas = np.ones(1)
    return alternate(lambda: dual.holdout(blocks, alphas), repeats=3)[0] / len(blocks)


def iterations(quick: bool) -> list[dict[str, Any]]:
    """Seconds of one iteration of conjugate gradients."""
    rows = (1000, 2000, 4000) if quick else (12_500, 25_000, 50_000)
    columns = 500 if quick else 20_000
    data = [Data(*documents(m, columns), None, None) for m in rows]
    by_rows = [an_iteration(lambda k, p=p: fit_one(p, k))[0] for p in data]
    counts = [p.X.nnz for p in data]
    rng, p = np.random.default_rng(0), data[0]
    numbers = (10_000, 20_000, 40_000) if quick else (500_000, 1_000_000, 2_000_000)
    by_pairs = []
    for number in numbers:
        i = rng.integers(p.X.shape[0], size=number)
        j = (i + rng.integers(1, p.X.shape[0], size=number)) % p.X.shape[0]
        by_pairs += an_iteration(lambda k, i=i, j=j: fit_pairs(p, i, j, k))
    return [
        exponent("an iteration of CG, by non-zeros", counts, by_rows, "linear", 1.0),
        exponent(f"an iteration of CG on {p.X.nnz} non-zeros, by pairs", numbers, by_pairs, "at most linear", 1.0),
    ]


def views(quick: bool) -> list[dict[str, Any]]:
    """Semi-supervised pursuit with a basis that the views share."""
    counts, scored = ((2, 4), 100) if quick else ((2, 4, 8), 500)
    rows = (200, 400, 800) if quick else (2500, 5000, 10_000)
    labels = lambda p: np.where(np.arange(len(p.y)) < scored, p.y, np.nan)
    made = [problem(scored + more, 32, (scored + more) // 50, even=True, hard=False) for more in rows]
    fit = lambda p, M: CoRankingPursuit(20, views=np.array_split(np.arange(32), M)).fit(p.X, labels(p), qid=p.qid)
    p = made[0]
    job = f"semi-supervised pursuit, {scored} scored and {rows[0]} unscored rows, P = 20, by views"
    return [
        _exponent(job, counts, counts, lambda M: fit(p, M), "at most M^3", 3.0),
        _exponent(
            f"semi-supervised pursuit, {scored} scored rows, two views, P = 20, by unscored rows",
            rows,
            made,
            lambda q: fit(q, 2),
            "linear",
            1.0,
        ),
    ]


def _exponent(
    job: str, sizes: Sequence[float], cases: Sequence[Any], fit: Callable[[Any], Any], goal: str, most: float
) -> dict[str, Any]:
    fit(cases[0])
    seconds = [min(alternate(lambda case=case: fit(case), repeats=2, warm_up=False)) for case in cases]
    return exponent(job, sizes, seconds, goal, most)
