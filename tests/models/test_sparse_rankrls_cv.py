"""SparseRankRLSCV: its choices against refits of SparseRankRLS, and against the dual."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

from rankrls import RankRLS, RankRLSCV, SparseRankRLS, SparseRankRLSCV
from rankrls.metrics import Measure
from tests.models.oracles import GRAPHS, graph_id, held_out_by_refits, kernel_matrix, query_rows, ranking_data

X, Y, QID = ranking_data(80, queries=9)
W = np.random.default_rng(81).random(len(Y)) + 0.4
QUERIES = query_rows(QID)
ALPHAS = (0.01, 1.0, 30.0)
BASIS = [3, 9, 14, 20, 27, 2]


VALUES, VECTORS = np.linalg.eigh(kernel_matrix("rbf", X[BASIS]))
Z = kernel_matrix("rbf", X, X[BASIS]) @ (VECTORS / np.sqrt(VALUES))
"""Features whose inner products are those of the functions over the basis: sparse RankRLS is primal RankRLS on them."""


@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
def test_leave_query_out_of_every_alpha(graph):
    model = SparseRankRLSCV(ALPHAS, gamma=0.2, basis_indices=BASIS, **graph)
    model.fit(X, Y, qid=QID, sample_weight=W)
    errors = []
    for alpha in ALPHAS[::-1]:
        held = held_out_by_refits(lambda a=alpha: RankRLS(a, **graph), Z, Y, QID, QUERIES, weights=W)
        errors.append(Measure("disagreement")(Y, held, qid=QID, sample_weight=W))
        if alpha == model.alpha_:
            np.testing.assert_allclose(model.held_out_scores_, held, atol=1e-7)
    np.testing.assert_allclose(model.cv_results_["mean_score"], errors, atol=1e-12)
    assert model.alpha_ == ALPHAS[::-1][int(np.argmin(errors))]
    single = SparseRankRLS(model.alpha_, gamma=0.2, basis_indices=BASIS, **graph).fit(X, Y, qid=QID, sample_weight=W)
    np.testing.assert_allclose(model.predict(X), single.predict(X), atol=1e-7)
    np.testing.assert_array_equal(model.basis_indices_, BASIS)


def test_every_row_in_the_basis_chooses_as_the_dual():
    options = {"alphas": ALPHAS, "gamma": (0.05, 0.3), "ties": ("include", "exclude"), "balance": ("pairs", "queries")}
    sparse = SparseRankRLSCV(**options).fit(X, Y, qid=QID)
    dual = RankRLSCV(kernel="rbf", **options).fit(X, Y, qid=QID)
    np.testing.assert_allclose(sparse.cv_results_["mean_score"], dual.cv_results_["mean_score"], atol=1e-9)
    assert sparse.best_params_ == dual.best_params_
    np.testing.assert_allclose(sparse.query_scores_, dual.query_scores_)
    assert sparse.selection_ == dual.selection_ == "leave-query-out over 9 queries"


def test_folds_of_queries_and_of_rows():
    for cv in (3, GroupKFold(3)):
        model = SparseRankRLSCV(ALPHAS, cv=cv, gamma=0.2, basis_indices=BASIS).fit(X, Y, qid=QID)
        dual = RankRLSCV(ALPHAS, cv=cv, kernel="rbf", gamma=0.2).fit(X, Y, qid=QID)
        full = SparseRankRLSCV(ALPHAS, cv=cv, gamma=0.2).fit(X, Y, qid=QID)
        np.testing.assert_allclose(full.cv_results_["mean_score"], dual.cv_results_["mean_score"], atol=1e-9)
        assert model.selection_ == dual.selection_
    folds = [(np.arange(10, len(Y)), np.arange(10)), (np.arange(12), np.arange(12, len(Y)))]
    K = kernel_matrix("rbf", X)
    by_rows = SparseRankRLSCV(ALPHAS, cv=folds, gamma=0.2, basis_indices=BASIS).fit(X, Y, qid=QID)
    given = SparseRankRLSCV(ALPHAS, cv=folds, kernel="precomputed", basis_indices=BASIS).fit(K, Y, qid=QID)
    np.testing.assert_allclose(given.cv_results_["mean_score"], by_rows.cv_results_["mean_score"], atol=1e-9)
    features = RankRLSCV(ALPHAS, cv=folds).fit(Z, Y, qid=QID)
    np.testing.assert_allclose(by_rows.cv_results_["mean_score"], features.cv_results_["mean_score"], atol=1e-9)
    assert by_rows.selection_ == features.selection_ == "2 folds of rows (given folds)"


def test_validation_data():
    few, rest = np.concatenate(QUERIES[:4]), np.concatenate(QUERIES[4:])
    model = SparseRankRLSCV(ALPHAS, gamma=(0.05, 0.2), n_basis=9)
    model.fit(X[rest], Y[rest], qid=QID[rest], X_val=X[few], y_val=Y[few], qid_val=QID[few])
    errors = [
        Measure("disagreement")(
            Y[few],
            SparseRankRLS(alpha, gamma=gamma, n_basis=9).fit(X[rest], Y[rest], qid=QID[rest]).predict(X[few]),
            qid=QID[few],
        )
        for gamma in (0.05, 0.2)
        for alpha in ALPHAS[::-1]
    ]
    np.testing.assert_allclose(model.cv_results_["mean_score"], errors, atol=1e-12)
    K = kernel_matrix("rbf", X)
    options = {"alphas": ALPHAS, "n_basis": 9, "random_state": 4}
    w = (np.arange(len(rest)) % 6 > 0) * 1.0
    named = SparseRankRLSCV(gamma=0.2, **options)
    named.fit(X[rest], Y[rest], qid=QID[rest], sample_weight=w, X_val=X[few], y_val=Y[few], qid_val=QID[few])
    given = SparseRankRLSCV(kernel="precomputed", **options).fit(
        K[np.ix_(rest, rest)],
        Y[rest],
        qid=QID[rest],
        sample_weight=w,
        X_val=K[np.ix_(few, rest)],
        y_val=Y[few],
        qid_val=QID[few],
    )
    np.testing.assert_allclose(given.cv_results_["mean_score"], named.cv_results_["mean_score"], atol=1e-9)
    np.testing.assert_array_equal(given.basis_indices_, named.basis_indices_)


@pytest.mark.parametrize("balance", ["pairs", "examples", "queries"])
def test_leave_pair_out_of_a_global_ranking(balance):
    model = SparseRankRLSCV(ALPHAS, gamma=0.2, basis_indices=BASIS, balance=balance).fit(X, Y)
    assert model.selection_ == f"leave-pair-out over {len(Y)} items"
    features = RankRLSCV(ALPHAS, balance=balance).fit(Z, Y)
    np.testing.assert_allclose(model.cv_results_["mean_score"], features.cv_results_["mean_score"], atol=1e-9)


def test_automatic_alphas_targets_and_the_one_standard_error_rule():
    targets = np.column_stack((Y, X[:, 1]))
    model = SparseRankRLSCV(rule="one_se", gamma=0.2).fit(X, targets, qid=QID)
    dual = RankRLSCV(rule="one_se", kernel="rbf", gamma=0.2).fit(X, targets, qid=QID)
    np.testing.assert_allclose(model.alpha_, dual.alpha_, rtol=1e-8)
    np.testing.assert_allclose(model.best_score_, dual.best_score_, atol=1e-9)
    assert model.dual_coef_.shape == (len(Y), 2)
    assert model.held_out_scores_.shape == (len(Y), 2)


def test_pairs_and_groups_of_them():
    rng = np.random.default_rng(83)
    i = rng.integers(0, len(Y), 60)
    j = (i + rng.integers(1, len(Y), 60)) % len(Y)
    for groups in (None, rng.integers(0, 8, 60)):
        ours = SparseRankRLSCV(ALPHAS, gamma=(0.05, 0.2)).fit_pairs(X, i, j, groups=groups)
        theirs = RankRLSCV(ALPHAS, kernel="rbf", gamma=(0.05, 0.2)).fit_pairs(X, i, j, groups=groups)
        np.testing.assert_allclose(ours.cv_results_["mean_score"], theirs.cv_results_["mean_score"], atol=1e-9)
        assert ours.best_params_ == theirs.best_params_


def badly_scaled(seed=0, queries=60):
    """A click rate, a price, and a time in Unix seconds."""
    rng = np.random.default_rng(seed)
    m = 10 * queries
    rate, price, seconds = rng.beta(2, 98, m), rng.gamma(2, 50, m), 1.7e9 + rng.uniform(0, 3e7, m)
    z = (rate - 0.02) / 0.014 + 0.6 * (price - 100) / 70 + 0.8 * (seconds - 1.715e9) / 8.6e6
    y = np.digitize(z + rng.normal(size=m), [-1.0, 0.0, 1.5])
    return np.column_stack((rate, price, seconds)), y, np.arange(m) // 10


def test_a_linear_kernel_over_a_basis_loses_no_badly_scaled_feature():
    X, y, qid = badly_scaled()
    expected = RankRLSCV().fit(X, y, qid=qid)
    assert expected.best_score_ < 0.2
    for n_basis in (5, 100):  # both span all features
        model = SparseRankRLSCV(kernel="linear", n_basis=n_basis).fit(X, y, qid=qid)
        assert model.best_score_ == pytest.approx(expected.best_score_, abs=2e-3)
        spreads = X.std(axis=0)
        np.testing.assert_allclose(model.coef_ * spreads, expected.coef_ * spreads, rtol=0.05)
    again = SparseRankRLS(alpha=expected.alpha_, kernel="linear", n_basis=100)
    again.partial_fit(X[:300], y[:300], qid=qid[:300]).partial_fit(X[300:], y[300:], qid=qid[300:])
    np.testing.assert_allclose(again.coef_ * spreads, expected.coef_ * spreads, rtol=1e-3)
