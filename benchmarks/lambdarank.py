"""LightGBM's lambdarank beside RankRLSCV on the same synthetic queries: seconds, and NDCG@10 on queries held out.

Context, without a goal: the one grows trees, the other is linear, and selects its regularization on the way. The labels
come from a utility that is partly linear and partly not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._data import query_lengths
from benchmarks._harness import alternate, context, skipped
from rankrls import RankRLSCV
from rankrls.metrics import Measure

TREES = 100


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    rows, columns, queries = (10_000, 136, 100) if quick else (100_000, 136, 1000)
    job = f"RankRLSCV, leave-query-out, {rows} x {columns}, {queries} queries"
    try:
        import lightgbm
    except ImportError as error:
        return [skipped(job, "LightGBM", f"lightgbm is not importable ({error})")]
    rng = np.random.default_rng(0)
    w = rng.standard_normal(columns) / np.sqrt(columns)

    def queries_of(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((rows, columns))
        utility = X @ w + 0.5 * X[:, 0] * X[:, 1] + 0.5 * np.abs(X[:, 2]) + 0.7 * rng.standard_normal(rows)
        lengths = query_lengths(rows, queries, seed)
        return X, np.searchsorted([0.3, 1.0, 1.8, 2.6], utility).astype(float), lengths

    X, y, lengths = queries_of(1)
    X_test, y_test, test_lengths = queries_of(2)
    qid, qid_test = np.repeat(np.arange(queries), lengths), np.repeat(np.arange(queries), test_lengths)
    linear = RankRLSCV(scoring="ndcg@10")
    trees = lightgbm.LGBMRanker(n_estimators=TREES, verbose=-1, n_jobs=int(_threads()), deterministic=True)
    ours, theirs = alternate(
        lambda: linear.fit(X, y, qid=qid), lambda: trees.fit(X, y, group=lengths), repeats=1 if quick else 3
    )
    own_ndcg = Measure("ndcg", k=10)(y_test, linear.predict(X_test), qid=qid_test)
    their_ndcg = Measure("ndcg", k=10)(y_test, trees.predict(X_test), qid=qid_test)
    remark = f"context: NDCG@10 of unseen queries {own_ndcg:.3f}, theirs {their_ndcg:.3f}"
    return [context(job, ours, f"LightGBM lambdarank, {TREES} trees", theirs, remark)]


def _threads() -> str:
    import os

    return os.environ["OMP_NUM_THREADS"]
