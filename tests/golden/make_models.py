"""Makes the stored models of the current format version that are not there yet: ``python tests/golden/make_models.py``.

To be run for each new format version, and for each new estimator. A file that is there is never made again: the tests
prove that every later release still reads what an earlier one wrote.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import (
    AutoRankRLS,
    CGRankRLS,
    ConditionalRankRLS,
    ConditionalRankRLSCV,
    CoRankingPursuit,
    CoRankingPursuitCV,
    CoRankRLS,
    GreedyRankRLS,
    Items,
    RankBoost,
    RankingPursuit,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    SparseRankRLS,
    SparseRankRLSCV,
    TransductiveRankRLS,
    TransductiveRankRLSCV,
)
from rankrls.metrics import Measure
from rankrls.persistence import FORMAT_VERSION, save
from rankrls.preprocessing import QueryMinMaxScaler


def models(X, y, qid):
    """A fitted model of every estimator, by name."""
    grades = y - y.min()
    partly = np.where(np.isin(qid, ["q4", "q5"]), np.nan, y)
    few = {"n_basis": 6, "gamma": 0.1}
    return {
        "auto": AutoRankRLS(scoring="ndcg@3", rule="best").fit(X, grades, qid=qid),
        "linear": RankRLS(alpha=0.3, ties="exclude", balance="pairs").fit(X, y, qid=qid),
        "rbf": RankRLSCV(kernel="rbf", gamma=(0.05, 0.2), scoring="ndcg@3").fit(X, grades, qid=qid),
        "cg": CGRankRLS((0.1, 1.0), selection="tikhonov", cv=3).fit(X, y, qid=qid),
        "transductive": TransductiveRankRLS(0.5).fit(X, partly, qid=qid),
        "transductive_cv": TransductiveRankRLSCV((0.1, 1.0), penalty=(0.1, 10.0), cv=2).fit(X, partly, qid=qid),
        "sparse": SparseRankRLS(0.2, kernel="laplacian", **few).fit(X, y, qid=qid),
        "sparse_cv": SparseRankRLSCV((0.1, 1.0, 10.0), kernel="rbf", scoring=Measure("ndcg", k=3), **few).fit(
            X, grades, qid=qid
        ),
        "pursuit": RankingPursuit(4, gamma=0.1).fit(X, y, qid=qid),
        "pursuit_cv": RankingPursuitCV(3, dictionary="features", cv=2).fit(X, y, qid=qid),
        "co_pursuit": CoRankingPursuit(3, views=([0, 1], {"kernel": "poly", "degree": 2}), nu=0.1).fit(
            X, partly, qid=qid
        ),
        "co_pursuit_cv": CoRankingPursuitCV(3, views=([0, 1], "linear"), nu=(0.0, 0.1), gamma=0.1, cv=2).fit(
            X, partly, qid=qid
        ),
        "co_pursuit_features": CoRankingPursuit(
            2, views=({}, {}), dictionary="features", disjoint=True, aggregation="weighted", nu=0.1
        ).fit(X, partly, qid=qid),
        "label_ranking": ConditionalRankRLS(0.5, kernel="rbf", gamma=0.1).fit(X[:12], X[:12] ** 2),
        "conditional": ConditionalRankRLSCV(item_kernel="rbf").fit(
            X[:12], X[:12] @ X[12:18].T, items=Items(X[12:18], ids=list("abcdef"))
        ),
        "co_rankrls": CoRankRLS(kernel="rbf", gamma=0.1, n_views=2, mu=0.5).fit(X, partly, qid=qid),
        "greedy": GreedyRankRLS(max_features=3, cv=3).fit(X, y, qid=qid),
        "svm": RankSVM(0.5, loss="hinge", kernel="polynomial", degree=2).fit(X, y, qid=qid),
        "svm_cv": RankSVMCV((0.1, 1.0), cv=GroupKFold(3)).fit(X, y, qid=qid),
        "boost": RankBoost(8).fit(X, y, qid=qid),
        "pipeline": make_pipeline(QueryMinMaxScaler(), StandardScaler(), RankRLS(kernel="sigmoid", gamma=0.01)).fit(
            X, y, rankrls__qid=qid
        ),
    }


def main() -> None:
    folder = Path(__file__).parent
    rng = np.random.default_rng(20)
    X = rng.normal(size=(24, 5))
    y = np.round(X @ [2.0, -1.0, 0.5, 0.0, 0.0] + rng.normal(size=24))
    qid = [f"q{k}" for k in np.repeat(np.arange(6), 4)]
    # Unit rows: what a linear model predicts for them is exact in every order of summation.
    inputs = np.vstack([np.eye(5), rng.normal(size=(5, 5))])
    for name, model in models(X, y, qid).items():
        path = folder / f"model_v{FORMAT_VERSION}_{name}.rankrls"
        if path.exists():
            continue
        save(model, path, provenance={"data": "24 items of 6 queries from make_models.py"})
        final = model[-1] if name == "pipeline" else model
        expected = {
            "estimator": type(model).__name__,
            "n_queries": final.n_queries_,
            "chosen": {k: v.hex() for k in ("alpha_", "C_") if isinstance(v := getattr(final, k, None), float)},
            "selected": hasattr(final, "selection_"),
            "inputs": [[float(v).hex() for v in row] for row in inputs],
            "predictions": [float(v).hex() for v in model.predict(inputs).ravel()],
        }
        path.with_suffix(".json").write_text(json.dumps(expected) + "\n")
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
