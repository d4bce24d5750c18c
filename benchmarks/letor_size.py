"""LETOR's TREC2003: 49171 documents, 44 features, 50 queries. Exact leave-query-out of 21 alphas, against RLScore.

Half of the time is one small eigendecomposition and one product a query, a quarter the judging.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import _rlscore
from benchmarks._data import problem
from benchmarks._harness import alternate, context, faster, skipped
from rankrls import RankRLSCV


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    p = problem(*((4900, 44, 50) if quick else (49_171, 44, 50)), hard=False)
    alphas = 2.0 ** np.arange(-5, 16)
    ours = lambda: RankRLSCV(tuple(alphas)).fit(p.X, p.y, qid=p.qid)
    job = f"leave-query-out of 21 alphas, {p.name}"
    why = _rlscore.missing()
    if why:
        (own,) = alternate(ours, repeats=5)
        return [context(job, own, _rlscore.NAME, None), skipped(job, _rlscore.NAME, why)]
    rival = lambda: _rlscore.leave_query_out(p, alphas)
    _rlscore.check_same(rival(), ours().cv_results_["mean_score"][::-1])
    own, theirs = alternate(ours, rival, warm_up=False)
    return [faster(job, own, _rlscore.NAME, theirs, 30.0)]
