"""Exact leave-query-out of 21 regularization values on a problem of web search size, disagreement error included.

The rival is one fit of ridge regression by Cholesky decomposition with one regularization value and no selection.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from benchmarks._data import problem
from benchmarks._harness import alternate, at_most, one_thread, peak_above
from benchmarks.dense_primal import QUICK, SIZE, leave_query_out, load, warm_up
from rankrls import RankRLSCV

__all__ = ["jobs", "leave_query_out", "load", "warm_up"]


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    size = QUICK if quick else SIZE
    warm_up()
    p = problem(*size)
    ridge = lambda: Ridge(alpha=1.0, solver="cholesky").fit(p.X, p.y)
    spread = float(p.X.var(axis=0).sum()) * size[0]
    alphas = np.geomspace(10.0 * spread, 1e-9 * spread, 21)
    chosen = lambda: RankRLSCV(tuple(alphas)).fit(p.X, p.y, qid=p.qid)
    ours, *theirs = alternate(chosen, ridge, one_thread(ridge), repeats=3)
    lines = [
        at_most(
            f"leave-query-out of 21 alphas, {p.name}", ours, "scikit-learn Ridge(cholesky), one fit", min(theirs), 3.0
        )
    ]
    scores = 8.0 * 21 * size[0]
    above = peak_above("benchmarks.leave_query_out", "load", "leave_query_out", (*size, "float64"))
    job = f"memory above the data, leave-query-out, {size[0]} x {size[1]}"
    lines.append(at_most(job, above / 1e6, "the 21 columns of scores", scores / 1e6, 3.0, "MB"))
    return lines
