"""Calls that a type checker must refuse, each with the code of its error."""

import numpy as np

from rankrls import GreedyRankRLS, RankRLS, RankRLSCV, RankSVM, SparseRankRLSCV, load
from rankrls.clicks import estimate_propensities
from rankrls.comparison import compare_rankings
from rankrls.inspection import leaderboard, posterior
from rankrls.metrics import evaluate
from rankrls.model_selection import leave_pair_out, leave_query_out, permutation_test
from rankrls.preprocessing import QueryStandardScaler
from rankrls.ranking import rank_scores
from rankrls.streaming import evaluate as evaluate_dataset


def calls() -> None:
    X = np.zeros((3, 2))
    y = [1.0, 2.0, 3.0]

    RankRLS(nonsense=1)  # call-arg
    RankRLS("large")  # arg-type
    RankRLS(alpha=None)  # arg-type
    RankRLS(ties=True)  # arg-type
    RankRLSCV(alphas="many")  # arg-type
    RankRLSCV(cv="leave_one_out")  # arg-type
    RankRLSCV(scoring=5)  # arg-type
    SparseRankRLSCV(n_basis="many")  # arg-type
    SparseRankRLSCV(random_state="seed")  # arg-type
    RankSVM(positive=True)  # call-arg
    GreedyRankRLS(cv="leave_pair_out")  # arg-type
    RankRLSCV().fit(5, y)  # arg-type
    RankRLSCV().fit(X, "abc")  # arg-type
    RankRLSCV().fit(X, y, qid=3.0)  # arg-type
    RankRLSCV().fit(X, y, ["a", "a", "b"])  # call-arg
    RankRLSCV().fit(X, y, group=[3])  # call-arg
    RankRLSCV().fit(X)  # call-arg
    RankRLS().fit_pairs(X, 0, 1)  # arg-type
    RankRLS().predict(1.0)  # arg-type
    RankRLS().fit_dataset("train.parquet")  # arg-type
    RankRLSCV().best_score_.sum()  # attr-defined
    RankRLSCV().predict(X).nonsense()  # attr-defined
    load(5)  # arg-type
    leave_query_out(RankRLS(), X, y, qid=None)  # arg-type
    leave_pair_out(RankRLS(), X, y, pairs=3)  # arg-type
    permutation_test("RankRLSCV", X, y)  # arg-type
    evaluate("train.txt", y)  # arg-type
    evaluate(y, y, measures=5)  # arg-type
    evaluate(y, y, ["a", "a", "b"])  # call-arg
    rank_scores(1.0)  # arg-type
    estimate_propensities(X, y, 3)  # arg-type
    compare_rankings(y, [y, y])  # arg-type
    posterior(RankRLS(), 5, y)  # arg-type
    leaderboard(["a"], ["b"], anchor="a")  # arg-type
    QueryStandardScaler(passthrough=True).fit(X, qid=3)  # arg-type
    evaluate_dataset(RankRLS(), "train.parquet")  # arg-type
