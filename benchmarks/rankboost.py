"""One round of RankBoost at web search size, against the pass over binned features that it contains, and LightGBM.

The pass is numpy's: a weighted ``bincount`` of each feature's bins, features spread over the threads. LightGBM grows
trees of two leaves with its pairwise loss on as many bins; its round has other work (gradients of its own, a split that
needs two sums a bin), so it is context.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._data import problem, query_lengths
from benchmarks._harness import alternate, at_most, context, skipped, timed
from rankrls import RankBoost
from rankrls._compiled.threads import map_threads
from rankrls._queries import query_layout
from rankrls.boosting.boosting import Boosting, LevelWeights
from rankrls.boosting.stumps import bin_features
from rankrls.graph import OrderedPairs

SIZE = (723_000, 136, 6000)
QUICK = (40_000, 136, 350)
ROUNDS = 10


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    size = QUICK if quick else SIZE
    small = problem(600, 5, 12)
    RankBoost(3).fit(small.X, small.y, qid=small.qid)
    p = problem(*size)
    pairs = LevelWeights(OrderedPairs.build(p.y, query_layout(p.qid, len(p.y)), balance="examples"))
    seconds, bins = timed(lambda: bin_features(p.X, pairs.order, None, 256))
    boosting = Boosting(pairs, bins)
    codes, potential = bins.codes, np.random.default_rng(0).standard_normal(len(p.y))  # type: ignore[attr-defined]

    def round_() -> None:
        for _ in range(ROUNDS):
            boosting.round()

    def one_pass() -> None:
        map_threads(lambda j: np.bincount(codes[j], weights=potential, minlength=256), range(len(codes)))

    ours, theirs = alternate(round_, one_pass, repeats=3)
    name = f"RankBoost, one round, {p.name}"
    lines = [
        at_most(name, ours / ROUNDS, "numpy bincount of every binned feature", theirs, 1.5),
        context("RankBoost, binning once", seconds, "", None, "once a fit"),
    ]
    whole, _ = timed(lambda: RankBoost(100).fit(p.X, p.y, qid=p.qid))
    return [*lines, _lightgbm(p, size, whole)]


def _lightgbm(p: Any, size: tuple[int, int, int], whole: float) -> dict[str, Any]:
    job = f"RankBoost, 100 rounds from fit, {p.name}"
    try:
        import lightgbm
    except ImportError as error:
        return skipped(job, "LightGBM", f"lightgbm is not importable ({error})")
    import os

    stumps = lightgbm.LGBMRanker(
        n_estimators=100, num_leaves=2, verbose=-1, n_jobs=int(os.environ["OMP_NUM_THREADS"]), deterministic=True
    )
    lengths = query_lengths(size[0], size[2], 0)
    seconds, _ = timed(lambda: stumps.fit(p.X, p.y, group=lengths))
    return context(job, whole, "LightGBM lambdarank, 100 trees of two leaves", seconds)
