"""Learning from simulated clicks by the field's protocol: what correcting for positions gains over clicks as labels.

    python -m comparisons.clicks --data DIR    # MQ2008, OHSUMED and 400 queries of make demo

An older ranking, fitted on 1 % or 10 % of the training queries, shows the first 20 documents of each query. A session
looks at position k with probability 1/k, and then clicks with probability .1 + .9 (2^y - 1) / (2^max - 1). Every method
gets the clicks of 1, 10 or 100 sessions of each query, and is judged by NDCG@10 on the true labels of test queries.
The trees get the number of clicks as a grade, 100 trees of 15 leaves; XGBoost takes the order of rows as positions.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

from rankrls import InputWarning, RankRLS, RankRLSCV
from rankrls.comparison import bootstrap_interval, compare_per_query
from rankrls.io import load_letor
from rankrls.metrics import resolve_measure
from rankrls.preprocessing import QueryMinMaxScaler

SHOWN, NOISE, OURS = 20, 0.1, "corrected clicks"
SETTINGS = [(share, sessions) for share in (0.01, 0.1) for sessions in (1, 10, 100)]
KNOWN = {k: 1 / k for k in range(1, SHOWN + 1)}
Rows = tuple[np.ndarray, ...]  # X, y, qid


def logged(train: Rows, share: float, rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
    """What an older ranking shows, sorted by query and position, and the positions from 1."""
    X, y, qid = train
    able = [q for q in np.unique(qid) if np.ptp(y[qid == q]) > 0]
    seen = np.isin(qid, rng.permutation(able)[: max(1, round(share * len(np.unique(qid))))])
    score = RankRLS().fit(X[seen], y[seen], qid=qid[seen]).predict(X)
    order = np.lexsort((rng.random(len(score)), -score, qid))
    starts = np.unique(qid[order], return_index=True)[1]
    position = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)])) + 1
    order, position = order[position <= SHOWN], position[position <= SHOWN]
    return (X[order], y[order], qid[order]), position


def trees(tool: str, X: np.ndarray, clicks: np.ndarray, group: np.ndarray, test: np.ndarray, position=None):
    """Scores of lambdarank, with the tool's correction if there are positions."""
    if tool == "XGBoost":
        from xgboost import XGBRanker

        how = {"lambdarank_unbiased": position is not None, "lambdarank_pair_method": "topk", "ndcg_exp_gain": False}
        model = XGBRanker(n_estimators=100, max_leaves=15, learning_rate=0.1, n_jobs=1, **how)
        return model.fit(X, clicks, group=group).predict(test)
    from lightgbm import Dataset, train

    how = {"objective": "lambdarank", "num_leaves": 15, "num_threads": 1, "verbose": -1}
    how["label_gain"] = [*range(clicks.max() + 1)]
    return train(how, Dataset(X, clicks, group=group, position=position), 100).predict(test)


def judged(train: Rows, test: Rows, share: float, sessions: int, seed: int) -> dict[str, np.ndarray]:
    """NDCG@10 of each test query under each method, and (as "error") how far the examination is off."""
    rng, fit, scaler = np.random.default_rng(seed), RankRLSCV().fit, StandardScaler().fit(train[0])
    train, test = ((scaler.transform(X), y, qid) for X, y, qid in (train, test))
    (X, y, qid), position = logged(train, share, rng)
    clicks = rng.binomial(sessions, (NOISE + (1 - NOISE) * (2**y - 1) / (2 ** train[1].max() - 1)) / position)
    shown = {"qid": qid, "position": position, "impressions": np.full(len(clicks), sessions)}
    scores = {"true labels": fit(X, y, qid=qid).predict(test[0])}
    scores["known propensities"] = fit(X, clicks, **shown, propensities=KNOWN).predict(test[0])
    scores["clicks as labels"] = fit(X, clicks, qid=qid).predict(test[0])
    ours = fit(X, clicks, **shown)
    group = np.unique(qid, return_counts=True)[1]
    scores |= {
        OURS: ours.predict(test[0]),
        "LightGBM": trees("LightGBM", X, clicks, group, test[0]),
        "LightGBM position": trees("LightGBM", X, clicks, group, test[0], position),
        "XGBoost unbiased": trees("XGBoost", X, clicks, group, test[0], position),
    }
    ndcg = resolve_measure("ndcg@10")
    found = {name: ndcg(test[1], given, qid=test[2], per_query=True) for name, given in scores.items()}
    off = ours.propensities_.examination - 1 / ours.propensities_.positions
    return found | {"error": np.abs(off[:10])}


def collections(data: Path, only: str | None = None):
    """Training and test rows of each fold of each collection, or of one."""
    for name in ("mq2008", "ohsumed"):
        if only not in (None, name):
            continue
        folds = []
        for fold in sorted(data.glob(f"*{name}*/Fold*")):
            tables = [load_letor(next(fold.glob(f"{part}*.txt")), dense=True) for part in ("train", "test")]
            folds.append([(QueryMinMaxScaler().fit_transform(t.X, qid=t.qid), t.y, t.qid) for t in tables])
        yield name, folds
    if only not in (None, "documentation"):
        return
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
    from search_documentation import read_documentation

    both, rng = read_documentation(), np.random.default_rng(0)
    yield "documentation", [[p.of(rng.permutation(len(p.queries))[:400]).rows() for p in (both.train, both.test)]]


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RANKRLS_DATA"), help="folder of collections")
    parser.add_argument("--only", choices=("mq2008", "ohsumed", "documentation"), help="one collection")
    parser.add_argument("--draws", type=int, default=1, help="draws for each fold, averaged for each query")
    given = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    for name, folds in collections(given.data, given.only):
        for share, sessions in SETTINGS:
            found = [[judged(*both, share, sessions, seed) for seed in range(given.draws)] for both in folds]
            mean = {m: np.concatenate([np.mean([d[m] for d in part], axis=0) for part in found]) for m in found[0][0]}
            print(f"\n{name}, policy of {share:.0%}, {sessions} sessions, error {mean.pop('error').mean():.3f}")
            for method, values in mean.items():
                there = bootstrap_interval(values, random_state=0)
                print(f"  {method:20s}{there.value:.3f}  {there.low:.3f} to {there.high:.3f}")
            print(compare_per_query(mean, baseline=OURS, random_state=0), flush=True)


if __name__ == "__main__":
    main()
