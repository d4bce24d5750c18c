"""Transductive ranking, half of 100 queries of 30 without labels: the Gaussian kernel, and the linear model.

The limit of the kernel is one eigendecomposition of its size, which the method does without: an inverse by Cholesky, a
product over the unscored half, and a small Cholesky factor for each query. The linear model, which needs nothing of the
items' size, is shown beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from benchmarks._data import problem
from benchmarks._harness import alternate, at_most, context, one_thread
from rankrls import TransductiveRankRLS


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    p = problem(*((600, 20, 20) if quick else (3000, 20, 100)), even=True, hard=False)
    m, gamma = len(p.y), 1.0 / p.X.shape[1]
    y = np.where(np.searchsorted(np.unique(p.qid), p.qid) % 2 == 0, p.y, np.nan)
    ours = lambda: TransductiveRankRLS(kernel="rbf", gamma=gamma).fit(p.X, y, qid=p.qid)
    linear = lambda: TransductiveRankRLS().fit(p.X, y, qid=p.qid)
    squares = (p.X**2).sum(axis=1)
    K = np.exp(-gamma * (squares[:, None] + squares - 2.0 * p.X @ p.X.T))
    decompose = lambda: linalg.eigh(K, driver="evd")
    repeats = 1 if quick else 3
    own, primal, *alone = alternate(ours, linear, decompose, one_thread(decompose), repeats=repeats, warm_up=quick)
    job = f"transductive, Gaussian kernel, half of {m} items unscored"
    return [
        at_most(job, own, f"scipy.linalg.eigh, {m} x {m}", min(alone), 1.0),
        context(f"transductive, linear, half of {p.name} unscored", primal, "the same", min(alone)),
    ]
