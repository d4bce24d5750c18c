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
from rankrls.clicks import Propensities, estimate_propensities
from rankrls.comparison import RankingReport, compare_per_query, compare_rankings
from rankrls.inspection import Leaderboard, explain, leaderboard, posterior
from rankrls.io import Dataset, load_table, load_votes
from rankrls.metrics import Measure, evaluate, preference_accuracy
from rankrls.model_selection import (
    leave_pair_out,
    leave_preference_out,
    leave_query_out,
    nested_estimate,
    permutation_test,
)
from rankrls.preprocessing import QueryStandardScaler, TableEncoder
from rankrls.ranking import rank_scores
from rankrls.streaming import evaluate as evaluate_dataset, predict

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


def scores(y: Array, f: Array, qid: list[str], measure: Measure) -> None:
    assert_type(evaluate(y, f, qid=qid, measures=["ndcg@10", measure], sample_weight=[1, 2]), dict[str, Any])
    evaluate([1, 0], [[0.5, 0.1], [0.2, 0.3]], measures="map")
    measure(y, f, qid=qid, docno=("a", "b"), per_query=True)
    preference_accuracy(f, winners=[0], losers=[1], strength=[1.0])
    assert_type(rank_scores([0.1, 0.7], qid=["a", "a"], k=1).rows, NDArray[np.intp])
    report = compare_rankings(y, {"one": f, "two": [0.1, 0.2]}, qid=qid, random_state=0)
    assert_type(report, RankingReport)
    compare_per_query({"one": f, "two": f}, random_state=np.random.default_rng(0))


def inspected(X: Array, y: Array, qid: range) -> None:
    model = RankRLS().fit(X, y, qid=qid)
    explain(model, X, qid=qid)
    assert_type(posterior(model, X, y, qid=qid, alpha="evidence").difference(X, X), tuple[Array, Array])
    assert_type(leaderboard(["a", "b"], ["b", "c"], weight=[1, 2], anchor=("a", 1000.0)), Leaderboard)
    assert_type(estimate_propensities(X, [0, 1], [1, 2], qid=qid), Propensities)


def tables(rows: list[dict[str, object]], X: Array, qid: list[int]) -> None:
    assert_type(TableEncoder(text=["title"]).fit(rows, qid=qid), TableEncoder)
    assert_type(QueryStandardScaler(passthrough=True).fit(X, qid=qid), QueryStandardScaler)


def streamed(model: RankRLSCV, data: Dataset) -> None:
    assert_type(predict(model, data), Iterator[Array])
    assert_type(evaluate_dataset(model, data, measures=["ndcg@10"]), dict[str, float])
