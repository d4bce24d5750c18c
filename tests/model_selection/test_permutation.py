"""The permutation test: its scores are those of refits, and its p-values are uniform where nothing is to be found."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import Ridge

from rankrls import CGRankRLS, GreedyRankRLS, RankBoost, RankRLS, RankRLSCV, SparseRankRLSCV, survival_pairs
from rankrls._errors import InputError
from rankrls.model_selection import permutation_test
from tests.refusals import Refusal


def study(features, seed=0):
    rng = np.random.default_rng(seed)
    X, qid = rng.normal(size=(40, features)), rng.permutation(np.repeat(np.arange(8), 5))
    weight = rng.uniform(0.5, 2.0, 40)
    weight[3] = 0.0
    return X, X[:, 0] + rng.normal(size=40), qid, weight


def orders(m, qid, count, seed=0):
    """Permutations of rows inside queries, as they are drawn."""
    rng, codes = np.random.default_rng(seed), np.zeros(m) if qid is None else np.unique(qid, return_inverse=True)[1]
    for _ in range(count):
        keys, order = rng.random(m), np.empty(m, dtype=int)
        for query in np.unique(codes):
            rows = np.flatnonzero(codes == query)
            order[rows] = rows[np.argsort(keys[rows])]
        yield order


MODELS = {
    "pairs": (RankRLSCV(), {}, True),
    "binary, weights": (RankRLSCV(scoring="pair_accuracy"), {"binary": True, "weight": True}, True),
    "two graphs": (RankRLSCV(balance=("pairs", "examples"), alphas=(0.1, 10.0)), {"grades": True}, True),
    "two kernels": (RankRLSCV(kernel="rbf", gamma=(0.1, 0.01)), {}, True),
    "queries": (RankRLSCV(scoring="ndcg@3"), {"grades": True, "qid": True, "weight": True}, True),
    "pairs of queries": (RankRLSCV(cv="leave_pair_out"), {"qid": True}, True),
    "folds of queries": (RankRLSCV(cv=3), {"qid": True}, True),
    "one_se of queries": (RankRLSCV(cv=3, rule="one_se"), {"qid": True}, False),
    "one_se": (RankRLSCV(rule="one_se"), {}, False),
    "ties": (RankRLSCV(ties="exclude"), {"grades": True}, False),
    "two targets": (RankRLSCV(), {"targets": True}, False),
    "a column": (RankRLSCV(), {"column": True}, True),
    "positive": (RankRLSCV(positive=True, alphas=(1.0,)), {"qid": True}, False),
    "basis": (SparseRankRLSCV(n_basis=4, alphas=(0.1, 10.0)), {"qid": True}, False),
}


@pytest.mark.parametrize("features", [5, 60])
@pytest.mark.parametrize("case", MODELS)
def test_scores_are_those_of_refits(case, features):
    model, data, shared = MODELS[case]
    X, y, qid, weight = study(features)
    y = (y > 0).astype(float) if "binary" in data else np.clip(np.round(y) + 2, 0, 4) if "grades" in data else y
    y = np.column_stack((y, X[:, 1])) if "targets" in data else y[:, None] if "column" in data else y
    given = {"qid": qid} if "qid" in data else {}
    given |= {"sample_weight": weight} if "weight" in data else {}
    found = permutation_test(model, X, y, n_permutations=6, **given)
    assert found.shared == shared
    own = clone(model).fit(X, y, **given)
    assert (found.score, found.protocol) == (own.best_score_, own.selection_)
    refits = [clone(model).fit(X, y[order], **given).best_score_ for order in orders(40, given.get("qid"), 6)]
    np.testing.assert_allclose(found.permuted_scores, refits, rtol=0, atol=1e-12)
    greater = model.get_params().get("scoring") in ("ndcg@3", "pair_accuracy")
    good = sum(value >= own.best_score_ - 1e-9 if greater else value <= own.best_score_ + 1e-9 for value in refits)
    assert found.p_value == (1 + good) / 7


def test_censored_times_are_permuted_with_their_events():
    X, y, _, _ = study(60)
    y, event = np.abs(y), y > -1.0
    found = permutation_test(RankRLSCV(), X, y, event=event, n_permutations=3)
    for order, score in zip(orders(40, None, 3), found.permuted_scores, strict=True):
        winners, losers = survival_pairs(y[order], event[order])
        assert RankRLSCV().fit_pairs(X, winners, losers).best_score_ == score


@pytest.mark.parametrize("scoring", ["disagreement", "pair_accuracy"])
def test_p_values_of_censored_times_are_small_where_something_is_to_be_found(scoring):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    time, event = np.exp(X[:, 0] + 0.3 * rng.normal(size=40)), rng.random(40) < 0.7
    model = RankRLSCV(scoring=scoring, alphas=(1.0, 10.0))
    assert permutation_test(model, X, time, event=event, n_permutations=19).p_value == 0.05


def test_p_values_are_uniform_where_nothing_is_to_be_found():
    rng, found = np.random.default_rng(0), []
    for seed in range(60):
        X, y = rng.normal(size=(20, 40)), rng.normal(size=20)
        found.append(permutation_test(RankRLSCV(), X, y, n_permutations=99, random_state=seed).p_value)
    assert stats.kstest(found, "uniform").pvalue > 1e-3


def test_p_values_are_small_where_something_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 100))
    y = 2.0 * X[:, :10].sum(axis=1) + rng.normal(size=60)
    found = permutation_test(RankRLSCV(), X, y, n_permutations=199)
    assert found.p_value == 0.005
    assert "leave-pair-out over 60 items" in str(found)
    assert "p = 0.0050" in found._repr_html_()


def test_batches_make_no_difference(monkeypatch):
    X, y, qid, _ = study(60)
    whole = permutation_test(RankRLSCV(), X, y, qid=qid, n_permutations=7)
    monkeypatch.setattr("rankrls.model_selection._BATCH", 3 * 21 * 40)
    parts = permutation_test(RankRLSCV(), X, y, qid=qid, n_permutations=7)
    np.testing.assert_allclose(whole.permuted_scores, parts.permuted_scores, rtol=0, atol=1e-12)


def test_refusals():
    X, y, _, _ = study(5)
    with pytest.raises(InputError, match="n_permutations"):
        permutation_test(RankRLSCV(), X, y, n_permutations=0)
    with pytest.raises(InputError, match="random_state"):
        permutation_test(RankRLSCV(), X, y, random_state="a")
    with pytest.raises(InputError, match="inconsistent numbers"):
        permutation_test(RankRLSCV(), X, y[:30], event=np.ones(30))
    for model in (RankRLS(), Ridge()):
        with pytest.raises(InputError, match="repeats the selection"):
            permutation_test(model, X, y)


@pytest.mark.parametrize(
    "model", [GreedyRankRLS(2, alphas=(1.0,)), CGRankRLS((1.0,), selection="tikhonov")], ids=lambda m: type(m).__name__
)
def test_what_holds_nothing_out_is_refused_unless_it_is_given_folds(model):
    X, y, qid, _ = study(5)
    with Refusal("Nothing was held out", parameter="cv", remedy="(cv)"):
        permutation_test(model, X, y, qid=qid, n_permutations=2)
    given = clone(model).set_params(cv=4)
    found = permutation_test(given, X, y, qid=qid, n_permutations=2)
    assert found.score == clone(given).fit(X, y, qid=qid).best_score_
    with Refusal("RankBoost", "cross-validation", parameter="estimator"):
        permutation_test(RankBoost(), X, y, qid=qid)
