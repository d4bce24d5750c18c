"""Greedy RankRLS: 10 of 136 features by exact leave-query-out, against the products X'X of the same matrix; growth.

A stage reads the data once and multiplies them by three columns. X'X of the same data is 136 multiply-adds an entry,
which BLAS does out of the cache: the limit that a stage is measured by.
"""

from __future__ import annotations

from typing import Any

from benchmarks._data import problem
from benchmarks._harness import alternate, at_most, exponent, peak_above, timed
from rankrls import GreedyRankRLS


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    return [path(quick), memory(quick), *growth(quick)]


def load(rows: int) -> Any:
    return problem(rows, 136, rows // 100, even=True, hard=False)


def fit(p: Any) -> None:
    GreedyRankRLS(10, alphas=[1.0]).fit(p.X, p.y, qid=p.qid)


def warm_up() -> None:
    fit(load(1000))


def path(quick: bool) -> dict[str, Any]:
    rows = 20_000 if quick else 200_000
    p = load(rows)
    X = p.X.astype("float64")

    def products() -> None:
        for _ in range(10):
            X.T @ X

    ours, theirs = alternate(lambda: fit(p), products, repeats=3)
    return at_most(f"greedy RankRLS, 10 of 136 features, {rows} rows", ours, "10 products X'X", theirs, 2.0)


def memory(quick: bool) -> dict[str, Any]:
    rows = 20_000 if quick else 200_000
    peak = peak_above(__name__, "load", "fit", (rows,)) / 2**20
    job = f"memory of greedy RankRLS above the data, {rows} rows"
    return at_most(job, peak, "X in float64", 8.0 * rows * 136 / 2**20, 1.5, "MiB")


def growth(quick: bool) -> list[dict[str, Any]]:
    sizes = [4000, 8000, 16_000] if quick else [12_500, 25_000, 50_000, 100_000]
    stages = [5, 10, 20] if quick else [5, 10, 20, 40]
    by_rows = [min(timed(lambda p=p: fit(p))[0] for _ in range(2)) for p in map(load, sizes)]
    p = load(sizes[1])
    run = lambda k: GreedyRankRLS(k, alphas=[1.0]).fit(p.X, p.y, qid=p.qid)
    by_stages = [min(timed(lambda k=k: run(k))[0] for _ in range(2)) for k in stages]
    columns = [20, 40, 80] if quick else [50, 100, 200, 400]
    wide = [problem(sizes[0], n, sizes[0] // 100, even=True, hard=False) for n in columns]
    by_columns = [min(timed(lambda p=p: fit(p))[0] for _ in range(2)) for p in wide]
    return [
        exponent(
            f"greedy RankRLS, 10 features, by rows: {_figures(sizes, by_rows)}", sizes, by_rows, "linear in rows", 1.0
        ),
        exponent(
            f"greedy RankRLS, by features taken: {_figures(stages, by_stages)}",
            stages,
            by_stages,
            "linear in features taken",
            1.0,
        ),
        exponent(
            f"greedy RankRLS, 10 features, by features in all: {_figures(columns, by_columns)}",
            columns,
            by_columns,
            "linear in features",
            1.0,
        ),
    ]


def _figures(sizes: list[int], seconds: list[float]) -> str:
    return ", ".join(f"{size}: {value:.2g} s" for size, value in zip(sizes, seconds, strict=True))
