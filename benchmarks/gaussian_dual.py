"""Gaussian kernel, 100 queries of 40: exact leave-query-out of 21 alphas, kernel matrix included.

The limit is one eigendecomposition of that size; the rival is RLScore.

Beside the decomposition there are the kernel matrix, its centring from both sides, and one small Cholesky factor for
every query and alpha, whose matrix is a product over all items: together about a third of the decomposition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from benchmarks import _rlscore
from benchmarks._data import problem
from benchmarks._harness import alternate, at_most, faster, one_thread, skipped, timed
from rankrls import RankRLSCV


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    p = problem(*((800, 20, 20) if quick else (4000, 20, 100)), even=True, hard=False)
    m = len(p.y)
    alphas, gamma = 2.0 ** np.arange(-12, 9), 1.0 / p.X.shape[1]
    ours = lambda: RankRLSCV(tuple(alphas), kernel="rbf", gamma=gamma).fit(p.X, p.y, qid=p.qid)
    squares = (p.X**2).sum(axis=1)
    K = np.exp(-gamma * (squares[:, None] + squares - 2.0 * p.X @ p.X.T))
    centred = K - K.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    job = f"Gaussian kernel, leave-query-out of 21 alphas, {p.name}"
    model = ours()
    decompose = lambda: linalg.eigh(centred, driver="evd")
    own, *alone = alternate(ours, decompose, one_thread(decompose), repeats=1 if quick else 3, warm_up=False)
    lines = [at_most(job, own, f"scipy.linalg.eigh, {m} x {m}", min(alone), 1.4)]
    why = _rlscore.missing()
    if why:
        return [*lines, skipped(job, _rlscore.NAME, why)]
    rival, errors = timed(lambda: _rlscore.leave_query_out(p, alphas, kernel="GaussianKernel", gamma=gamma))
    _rlscore.check_same(errors, model.cv_results_["mean_score"][::-1])
    return [*lines, faster(job, own, _rlscore.NAME, rival, 2.5)]
