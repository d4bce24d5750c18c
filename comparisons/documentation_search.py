"""LightGBM's lambdarank beside the rankers of ``make demo``, on the same queries, candidates and features.

    python -m comparisons.documentation_search    # one to two minutes

It needs LightGBM (``pip install '.[bench]'``). The trees see all 100 candidates and all features; their number
and size are chosen by three folds of the training queries. The rankers of the demo choose by leave-query-out on them.
The unseen queries are judged once; every ranking is compared with the trees by paired tests over queries.
Seconds are those of the processors, choosing included; the trees have one thread, so that nothing is spent on waiting.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import search_documentation as demo
from installed_pages.features import Table

from rankrls.comparison import compare_rankings

LEAVES = (15, 31)
TREES = (100, 200, 400)
FOLDS = 3


def trees(table: Table, leaves: int, n_trees: int):
    from lightgbm import LGBMRanker

    X, y, _ = table.rows()
    settings = {"learning_rate": 0.05, "colsample_bytree": 0.5, "verbose": -1}
    model = LGBMRanker(num_leaves=leaves, n_estimators=n_trees, random_state=0, n_jobs=1, **settings)
    return model.fit(X, y.astype(int), group=np.full(len(table.queries), table.labels.shape[1]))


def predict(model, table: Table, **settings) -> np.ndarray:
    return model.predict(table.rows()[0], **settings).reshape(table.labels.shape)


def chosen_trees(train: Table):
    """The trees whose settings have the best NDCG@10 on folds of the training queries, and that value."""
    fold = np.arange(len(train.queries)) % FOLDS
    reached = {}
    for leaves in LEAVES:
        scores = {n: np.empty(train.labels.shape) for n in TREES}
        for held_out in range(FOLDS):
            model = trees(train.of(fold != held_out), leaves, max(TREES))
            for n in TREES:
                scores[n][fold == held_out] = predict(model, train.of(fold == held_out), num_iteration=n)
        reached |= {(leaves, n): demo.measure(train, values) for n, values in scores.items()}
    best = max(reached, key=reached.get)
    return trees(train, *best), best, reached[best]


def main(packages: tuple[str, ...] = demo.PACKAGES, n_basis: int = 1600) -> None:
    data = demo.read_documentation(packages)
    start = time.process_time()
    rankers = demo.learn(data.train, n_basis)
    ours = time.process_time() - start
    start = time.process_time()
    model, (leaves, n_trees), held_out = chosen_trees(data.train)
    theirs = time.process_time() - start

    scores = {name: ranker.score(data.test) for name, ranker in rankers.items()}
    scores["LightGBM"] = predict(model, data.test)
    print(f"{len(data.train.queries)} queries to learn from, {len(data.test.queries)} unseen\n")
    print(f"{'NDCG@10':16}{'held out':>10}{'unseen':>10}")
    for name, values in scores.items():
        inside = demo.measure(data.train, rankers[name].held_out) if name in rankers else held_out
        print(f"{name:16}{inside:10.3f}{demo.measure(data.test, values):10.3f}")
    print(f"\nLightGBM: {n_trees} trees of {leaves} leaves, {theirs:.0f} s; all rankers of the demo: {ours:.0f} s")
    _, y, qid = data.test.rows()
    flat = {name: values.ravel() for name, values in scores.items()}
    print(compare_rankings(y, flat, qid=qid, measures=["ndcg@10"], baseline="LightGBM"))


if __name__ == "__main__":
    main()
