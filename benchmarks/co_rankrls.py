"""Co-regularised RankRLS of eight views, one weight of the agreement, 21 alphas by exact leave-query-out.

The limit is one inverse of a matrix of all rows for each view, by Cholesky. Beside it there are one factorization
more, the views' kernel matrices, their centring, and what the scored queries cost.
Linear views need no such matrix: their time is shown beside the same limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from benchmarks._data import problem
from benchmarks._harness import alternate, at_most, context, one_thread
from rankrls import CoRankRLS

VIEWS = 8


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    rows, scored = (200, 4) if quick else (2000, 20)
    p = problem(rows, 40, rows // 20, even=True, hard=False)
    y = np.where(p.qid < scored, p.y, np.nan)
    alphas = tuple(2.0 ** np.arange(-10, 11))
    options = {"mu": 1.0, "n_views": VIEWS}
    gaussian = lambda: CoRankRLS(alphas, kernel="rbf", gamma=0.05, **options).fit(p.X, y, qid=p.qid)
    linear = lambda: CoRankRLS(alphas, **options).fit(p.X, y, qid=p.qid)
    K = np.eye(rows) + np.exp(-0.05 * ((p.X**2).sum(axis=1)[:, None] + (p.X**2).sum(axis=1) - 2.0 * p.X @ p.X.T))

    def limit() -> None:
        for _ in range(VIEWS):
            factor, _ = linalg.lapack.dpotrf(K, lower=1)
            linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)

    own, primal, *alone = alternate(gaussian, linear, limit, one_thread(limit), repeats=1 if quick else 3)
    job, rival = f"CoRankRLS, {scored} of {rows // 20} queries scored, {VIEWS} views", f"{VIEWS} inverses by Cholesky"
    return [
        at_most(f"{job}, Gaussian", own, rival, min(alone), 1.3),
        context(f"{job}, linear", primal, rival, min(alone)),
    ]
