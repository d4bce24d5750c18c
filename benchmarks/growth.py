"""How time grows: with the rows at fixed features, with the number of alphas; and RankRLS at the price of RLS.

Straight lines are fitted on doubly logarithmic axes: the slope is the exponent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._data import problem
from benchmarks._harness import alternate, at_most, context, exponent, one_thread, skipped
from rankrls import RankRLS, RankRLSCV


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    return [*rows_at_fixed_features(quick), *further_alphas(quick), *price_of_ranking(quick)]


def rows_at_fixed_features(quick: bool) -> list[dict[str, Any]]:
    sizes = (5_000, 10_000, 20_000) if quick else (50_000, 100_000, 200_000, 400_000)
    lines = []
    for name, fit in (
        ("RankRLS", lambda p: RankRLS().fit(p.X, p.y, qid=p.qid)),
        ("RankRLSCV, leave-query-out", lambda p: RankRLSCV().fit(p.X, p.y, qid=p.qid)),
    ):
        seconds = []
        for rows in sizes:
            p = problem(rows, 64, rows // 100)
            seconds += alternate(lambda p=p, fit=fit: fit(p), repeats=3)
        figures = ", ".join(f"{m // 1000}k {s:.3g} s" for m, s in zip(sizes, seconds, strict=True))
        lines.append(exponent(f"{name}, n = 64: {figures}", sizes, seconds, "linear in rows", 1.0))
    return lines


def further_alphas(quick: bool) -> list[dict[str, Any]]:
    """After the first alpha, each further one costs O(n^2) in the primal: its time over that of one X'X p product.

    Ten thousand further ones, so that they take longer than what two fits differ by anyway.
    """
    sizes = (50, 100) if quick else (400, 800, 1600)
    few, many = 2, 402 if quick else 10_002
    lines, each = [], []
    for n in sizes:
        p = problem(4 * n, n, 40, hard=False)
        held = slice(0, int(np.searchsorted(p.qid, 2)))
        fit = lambda k, p=p, held=held: RankRLSCV(tuple(np.geomspace(1e-3, 1e3, k))).fit(
            p.X, p.y, qid=p.qid, X_val=p.X[held], y_val=p.y[held], qid_val=p.qid[held]
        )
        V, x = np.asfortranarray(p.X[:n]), np.ones(n)
        first, all_, product = alternate(lambda f=fit: f(few), lambda f=fit: f(many), lambda V=V, x=x: V @ x, repeats=5)
        if all_ <= first:
            lines.append(skipped(f"each further alpha, primal, n = {n}", "", "the clock saw no difference"))
            continue
        each.append((n, (all_ - first) / (many - few)))
        lines.append(
            context(
                f"each further alpha, primal, n = {n}",
                each[-1][1] * 1e6,
                f"{n} x {n} times a vector",
                product * 1e6,
                unit="us",
            )
        )
    if len(each) > 1:
        lines.append(exponent("each further alpha, primal", *zip(*each, strict=True), "at most quadratic in n", 2.0))
    return lines


def price_of_ranking(quick: bool) -> list[dict[str, Any]]:
    from sklearn.linear_model import Ridge

    p = problem(*((20_000, 64, 200) if quick else (400_000, 64, 4000)))
    regress = lambda: Ridge(solver="cholesky").fit(p.X, p.y)
    rank, *ridge = alternate(lambda: RankRLS().fit(p.X, p.y, qid=p.qid), regress, one_thread(regress), repeats=5)
    return [at_most(f"RankRLS, {p.name}", rank, "scikit-learn Ridge(cholesky)", min(ridge), 1.0)]
