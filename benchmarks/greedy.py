"""Greedy RankRLS on a study of 150 patients with 3000 genes: ten of them by exact hold-out, within a few seconds."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._harness import alternate, within
from rankrls import GreedyRankRLS, survival_pairs

PATIENTS, GENES = 150, 3000


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    genes = 300 if quick else GENES
    rng = np.random.default_rng(0)
    X = rng.standard_normal((PATIENTS, genes))
    time = np.exp(X[:, :5].sum(axis=1) + rng.standard_normal(PATIENTS))
    winners, losers = survival_pairs(time, rng.random(PATIENTS) < 0.6)
    outcome, patients, censored = alternate(
        lambda: GreedyRankRLS(10).fit(X, time),
        lambda: GreedyRankRLS(10).fit_pairs(X, winners, losers),
        lambda: GreedyRankRLS(10).fit_pairs(X, winners, losers, groups=losers),
    )
    job = f"greedy RankRLS, 10 of {genes} features, {PATIENTS} rows"
    return [
        within(job, outcome, 2.0),
        within(f"{job}, censored times", patients, 2.0),
        within(f"{job}, censored times, events held out", censored, 5.0),
    ]
