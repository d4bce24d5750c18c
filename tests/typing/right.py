"""Calls that a type checker must accept, and the types of their results."""

from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import GroupKFold

from rankrls import (
    AutoRankRLS,
    CGRankRLS,
    ConditionalRankRLSCV,
    CoRankRLS,
    GreedyRankRLS,
    Items,
    RankBoost,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVMCV,
    SparseRankRLS,
    SparseRankRLSCV,
    TransductiveRankRLS,
    fit_pairs,
    load,
    save,
)
from rankrls.clicks import Propensities
from rankrls.io import Dataset, load_table, load_votes
from rankrls.metrics import Measure
from rankrls.model_selection import (
    leave_pair_out,
    leave_preference_out,
    leave_query_out,
    nested_estimate,
    permutation_test,
)

Array = NDArray[np.float64]


def arrays(X: Array, y: NDArray[np.int64], qid: NDArray[np.str_], weights: Array) -> None:
    model = assert_type(RankRLSCV(scoring="ndcg@10").fit(X, y, qid=qid, sample_weight=weights), RankRLSCV)
    assert_type(model.predict(X), Array)
    assert_type(model.rank(X, qid=qid), NDArray[np.intp])
    assert_type(model.score(X, y, qid=qid), float)
    assert_type(model.alpha_, float)
    assert_type(model.best_score_, float)
    assert_type(model.best_params_, dict[str, Any])
    assert_type(model.cv_results_, dict[str, NDArray[Any]])
    assert_type(model.held_out_scores_, Array | None)
    assert_type(model.coef_, Array)
    assert_type(model.selection_, str)
    assert_type(model.predict_win_probability(X, X), Array)


def lists() -> None:
    RankRLS(alpha=0.1, kernel="rbf", gamma=0.5).fit([[1.0, 0.0], [0.0, 1.0]], [1, 0], qid=["a", "a"])
    RankRLS(kernel=lambda a, b: float(a == b)).fit(["one", "two"], [1.0, 2.0])
    RankRLS(positive=["price"]).fit([[1, 0]], [[1, 2]], sample_weight=[2])
    RankRLS(positive={"price": -1, 3: 1}).fit_pairs([[1.0], [2.0]], [0], [1], strength=[1.0])


def rows_as_dicts(rows: list[dict[str, float]], votes: list[dict[str, str]]) -> None:
    model = RankRLS().fit(rows, [1.0, 0.0])
    assert_type(model.predict(rows[0]), Array)
    load_table(rows, label="grade")
    load_votes(votes, left="a", right="b", preferred="choice")


def containers(X: sparse.csr_array, y: list[bool], qid: range) -> None:
    CGRankRLS([0.1, 1.0], cv=GroupKFold(3)).fit(X, y, qid=qid)
    RankRLSCV("auto", kernel=("linear", "rbf"), gamma=(0.1, None), cv="leave_pair_out").fit(X, y)
    RankRLSCV(np.logspace(-3, 3, 7), cv=[(np.arange(3), np.arange(3, 6))], scoring=Measure("map")).fit(X, y)
    SparseRankRLSCV(n_basis=100, random_state=np.random.default_rng(0)).fit(X, y, X_val=X, y_val=y, qid_val=qid)


def others(X: Array, y: Array, data: Dataset, known: Propensities) -> None:
    assert_type(AutoRankRLS(families="all").fit(X, y).best_score_, float)
    assert_type(GreedyRankRLS().fit(X, y).selected_, NDArray[np.intp])
    assert_type(RankSVMCV([0.1, 1.0]).fit(X, y).C_, float)
    assert_type(RankBoost(50).fit(X, y).staged_predict(X), Iterator[Array])
    assert_type(RankingPursuitCV(dictionary="features").fit(X, y).n_basis_, int)
    assert_type(CoRankRLS(views=[slice(0, 2), {"kernel": "rbf"}]).fit(X, y).predict(X), Array)
    assert_type(TransductiveRankRLS().fit(X, y).alpha_, float)
    assert_type(ConditionalRankRLSCV().fit(X, y, items=Items(X)).predict(X, items=Items(X)), Array)
    assert_type(RankRLSCV().fit_dataset(data), RankRLSCV)
    RankRLS().fit(X, y, position=[1, 2], impressions=[10, 20], propensities=known)
    RankRLS().fit(X, y, position=[1, 2], propensities={1: 1.0, 2: 0.5})


def held_out(X: Array, y: Array, qid: list[str]) -> None:
    assert_type(leave_query_out(RankRLS(), X, y, qid=qid, alphas=[0.1, 1.0]), Array)
    assert_type(leave_pair_out(SparseRankRLS(), X, y, event=[1, 0], alphas="auto").n_pairs, int)
    assert_type(leave_preference_out(RankRLS(), X, [0, 1], [1, 2], groups=["a", "b"]), Array)
    assert_type(nested_estimate(RankRLSCV(), X, [1.0, 0.0], item_id=qid).score, float)
    assert_type(permutation_test(GreedyRankRLS(), X, y, sample_weight=y).p_value, float)


def files(X: Array) -> None:
    model = assert_type(fit_pairs(RankRLS(), X, [0, 1], [1, 2]), RankRLS)
    save(model, "model.rankrls", provenance={"rows": 3})
    load("model.rankrls").predict(X)
