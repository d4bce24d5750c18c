"""What RankRLS learns, against dense solves of its definition and against other estimators."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.preprocessing import OneHotEncoder

from rankrls import RankRLS
from tests.models.oracles import (
    GRAPHS,
    KERNEL_PARAMETERS,
    centred,
    dense_scores,
    graph_id,
    kernel_matrix,
    kernel_of_sums,
    laplacian,
    ranking_data,
)

X, Y, QID = ranking_data()
W = np.random.default_rng(1).random(len(Y)) + 0.4
X_NEW = np.random.default_rng(2).normal(size=(9, X.shape[1]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
def test_every_graph_kernel_and_form(graph, weighted):
    w = W if weighted else None
    forms = [
        ("linear", {"solver": "primal"}),
        ("linear", {"solver": "dual"}),
        ("rbf", KERNEL_PARAMETERS),
        ("laplacian", KERNEL_PARAMETERS),
        ("polynomial", KERNEL_PARAMETERS),
    ]
    for alpha in (0.05, 3.0):
        for kernel, options in forms:
            model = RankRLS(alpha, kernel=kernel, **options, **graph).fit(X, Y, qid=QID, sample_weight=w)
            K, K_new = kernel_matrix(kernel, X), kernel_matrix(kernel, X_NEW, X)
            np.testing.assert_allclose(model.predict(X), dense_scores(K, K, Y, QID, w, graph, alpha), atol=1e-9)
            np.testing.assert_allclose(model.predict(X_NEW), dense_scores(K_new, K, Y, QID, w, graph, alpha), atol=1e-9)
            if kernel == "linear":
                L = laplacian(Y, QID, w, graph)
                expected = np.linalg.solve(X.T @ L @ X + alpha * np.eye(X.shape[1]), X.T @ L @ Y)
                np.testing.assert_allclose(model.coef_, expected, atol=1e-10)
            assert model.alpha_ == alpha
            assert model.n_queries_ == len(set(QID))


@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
@pytest.mark.parametrize("n", [4, 60])
def test_sparse_and_float32_features_give_the_same_weights(graph, n):
    features, y, qid = ranking_data(3, n=n)
    features[np.abs(features) < 0.8] = 0.0
    features = features.astype(np.float32).astype(float)  # exactly representable
    for solver in ("primal", "dual"):
        expected = RankRLS(0.5, solver=solver, **graph).fit(features, y, qid=qid)
        for given in (features.astype(np.float32), sparse.csr_array(features), sparse.csr_array(features, dtype="f4")):
            model = RankRLS(0.5, solver=solver, **graph).fit(given, y, qid=qid)
            assert model.coef_.dtype == np.float64
            np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-10)
            np.testing.assert_allclose(model.predict(given), expected.predict(features), atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
def test_several_targets_equal_single_fits(graph, kernel):
    rng = np.random.default_rng(6)
    targets = np.column_stack((Y, rng.normal(size=len(Y)), rng.integers(0, 2, len(Y))))
    for solver in ("auto", "dual"):
        model = RankRLS(0.4, kernel=kernel, solver=solver, **graph).fit(X, targets, qid=QID, sample_weight=W)
        together = model.predict(X_NEW)
        assert together.shape == (9, 3)
        for t in range(3):
            alone = RankRLS(0.4, kernel=kernel, solver=solver, **graph).fit(X, targets[:, t], qid=QID, sample_weight=W)
            np.testing.assert_allclose(together[:, t], alone.predict(X_NEW), atol=1e-10)
            if kernel == "linear":
                np.testing.assert_allclose(model.coef_[t], alone.coef_, atol=1e-10)
    one_column = RankRLS(kernel=kernel, **graph).fit(X, Y[:, None], qid=QID)
    assert one_column.predict(X_NEW).shape == (9, 1)
    np.testing.assert_allclose(
        one_column.predict(X_NEW)[:, 0], RankRLS(kernel=kernel, **graph).fit(X, Y, qid=QID).predict(X_NEW)
    )


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 50.0])
def test_regression_equals_ridge_without_intercept(alpha):
    for w in (None, W):
        expected = Ridge(alpha, fit_intercept=False).fit(X, Y, sample_weight=w)
        for options in ({"solver": "primal"}, {"solver": "dual"}, {"ties": "exclude", "balance": "pairs"}):
            model = RankRLS(alpha, regression_weight=1.0, **options).fit(X, Y, qid=QID, sample_weight=w)
            np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 50.0])
def test_balanced_examples_equal_ridge_with_an_intercept_for_each_query(alpha):
    dummies = OneHotEncoder(sparse_output=False).fit_transform(QID[:, None])
    design = np.hstack((X, dummies))
    penalty = np.diag([alpha] * X.shape[1] + [0.0] * dummies.shape[1])
    for w in (None, W):
        weights = np.ones(len(Y)) if w is None else w
        beta = np.linalg.solve(design.T @ (weights[:, None] * design) + penalty, design.T @ (weights * Y))
        for solver in ("primal", "dual"):
            model = RankRLS(alpha, balance="examples", solver=solver).fit(X, Y, qid=QID, sample_weight=w)
            np.testing.assert_allclose(model.coef_, beta[: X.shape[1]], atol=1e-10)


def test_one_global_ranking_equals_ridge_with_intercept():
    model = RankRLS(0.7).fit(X, Y)
    expected = Ridge(0.7).fit(X, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert model.n_queries_ == 1
    pairs = RankRLS(0.7 * len(Y), balance="pairs").fit(X, Y)
    np.testing.assert_allclose(pairs.coef_, expected.coef_, rtol=1e-9)


@pytest.mark.parametrize("exponent", range(-8, 9))
def test_every_alpha(exponent):
    alpha = 10.0**exponent
    rng = np.random.default_rng(7)
    for n in (4, 60):
        features, y, qid = ranking_data(8, n=n)
        K = features @ features.T
        graph = {"ties": "exclude", "balance": "queries", "regression_weight": 0.0}
        new = rng.normal(size=(5, n)) if n == 4 else features[::3]
        expected = centred(dense_scores(new @ features.T, K, y, qid, None, graph, alpha), np.zeros(len(new)))
        for solver in ("primal", "dual"):
            model = RankRLS(alpha, solver=solver, **graph).fit(features, y, qid=qid)
            scores = centred(model.predict(new), np.zeros(len(new)))
            np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
@pytest.mark.parametrize("shape", ["tall", "wide", "deficient", "repeated"])
def test_alpha_zero_is_the_minimum_norm_solution(shape, graph, solver):
    features, y, qid = ranking_data(9, n=45 if shape == "wide" else 5)
    if shape == "deficient":
        features = np.hstack((features, features @ np.arange(15.0).reshape(5, 3), np.ones((len(y), 1))))
    if shape == "repeated":
        features[1::2] = features[: len(y) // 2 * 2 : 2][: len(features[1::2])]
    values, vectors = np.linalg.eigh(laplacian(y, qid, None, graph))
    F = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * (values > 1e-12)[:, None]
    expected = np.linalg.pinv(F @ features, rcond=1e-10) @ (F @ y)
    model = RankRLS(0.0, solver=solver, **graph).fit(features, y, qid=qid)
    np.testing.assert_allclose(model.coef_, expected, atol=1e-9)
    # the limit from above
    near = RankRLS(1e-9, solver=solver, **graph).fit(features, y, qid=qid)
    np.testing.assert_allclose(near.coef_, expected, atol=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 1e-14, 1e-11, 1e-8, 1e-5])
@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_rank_deficient_features_at_tiny_alpha(alpha, solver):
    rng = np.random.default_rng(10)
    base = rng.normal(size=(80, 3))
    features = np.hstack((base, base @ rng.normal(size=(3, 9)), np.full((80, 2), 5.0)))
    qid = rng.integers(0, 8, 80)
    y = base @ [1.0, -2.0, 0.5] + 10.0 * qid
    scores = RankRLS(alpha, solver=solver).fit(features, y, qid=qid).predict(features)
    np.testing.assert_allclose(centred(scores, qid), centred(y, qid), atol=1e-4 if alpha == 1e-5 else 1e-6)


@pytest.mark.parametrize("offset", [1e7, -1e7])
@pytest.mark.parametrize(
    "options", [{"solver": "primal"}, {"solver": "dual"}, {"kernel": "rbf", "gamma": 0.1}, {"kernel": "laplacian"}]
)
@pytest.mark.parametrize("graph", [g for g in GRAPHS if g["regression_weight"] == 0.0], ids=graph_id)
def test_an_offset_of_the_columns_changes_nothing(options, graph, offset):
    plain = np.round(X * 1024) / 1024  # the offset loses no digit of these
    moved = plain + offset
    a = RankRLS(0.1, **options, **graph).fit(plain, Y, qid=QID)
    b = RankRLS(0.1, **options, **graph).fit(moved, Y, qid=QID)
    expected = centred(a.predict(plain), QID)
    scores = centred(b.predict(moved), QID)
    np.testing.assert_allclose(scores, expected, atol=1e-6 * np.ptp(expected))


@pytest.mark.parametrize("options", [{"solver": "primal"}, {"solver": "dual"}])
def test_offsets_of_whole_queries_do_not_reach_the_weights(options):
    plain = np.round(X * 1024) / 1024
    moved = plain + 1e7 * (1 + QID[:, None] % 7)
    a, b = (RankRLS(0.1, **options).fit(Z, Y, qid=QID) for Z in (plain, moved))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6 * np.abs(a.coef_).max())


def test_auto_takes_the_smaller_form():
    rng = np.random.default_rng(11)
    tall = RankRLS().fit(rng.normal(size=(20, 5)), rng.normal(size=20))
    wide = RankRLS().fit(rng.normal(size=(5, 20)), rng.normal(size=5))
    assert not hasattr(tall, "dual_coef_")
    assert wide.dual_coef_.shape == (5,)
    assert wide.coef_.shape == (20,)


def test_rank_and_score():
    model = RankRLS().fit(np.array([[0.0], [1.0], [2.0]]), [0, 1, 2])
    items = np.array([[3.0], [1.0], [3.0], [2.0], [7.0]])
    qid = ["a", "a", "b", "a", "b"]
    np.testing.assert_array_equal(model.rank(items, qid=qid), [1, 3, 2, 2, 1])
    np.testing.assert_array_equal(model.rank(items), [2, 5, 3, 4, 1])  # equal scores stand in row order
    assert model.score(items, [3, 1, 3, 2, 7], qid=qid) == 1.0
    assert model.score(items, [3, 2, 7, 1, 3], qid=qid) == pytest.approx((2 / 3 + 0) / 2)
    assert model.score(items, [1, 0, 0, 1, 1]) == pytest.approx(1 - (1 + 0.5) / 6)
    # a weight of 3 repeats row 2: pairs (0, 1), 3 x (0, 2), (3, 1), 3 x (3, 2), (4, 1), 3 x (4, 2)
    assert model.score(items, [1, 0, 0, 1, 1], sample_weight=[1, 1, 3, 1, 1]) == pytest.approx(1 - (3 + 1.5) / 12)


def test_rank_and_score_of_several_targets():
    targets = np.column_stack((Y, -Y))
    model = RankRLS().fit(X, targets, qid=QID)
    single = RankRLS().fit(X, Y, qid=QID)
    ranks = model.rank(X, qid=QID)
    np.testing.assert_array_equal(ranks[:, 0], single.rank(X, qid=QID))
    sizes = np.array([np.sum(q == QID) for q in QID])
    np.testing.assert_array_equal(ranks[:, 1], sizes + 1 - ranks[:, 0])
    assert model.score(X, targets, qid=QID) == pytest.approx(single.score(X, Y, qid=QID))


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_queries_without_a_pair_contribute_nothing(solver):
    for graph in GRAPHS:
        if graph["regression_weight"] > 0.0:
            continue
        lonely = np.vstack((X, X_NEW))
        qid = np.concatenate((QID, np.arange(1000, 1009)))
        y = np.concatenate((Y, np.arange(9.0)))
        with_lonely = RankRLS(0.3, solver=solver, **graph).fit(lonely, y, qid=qid)
        without = RankRLS(0.3, solver=solver, **graph).fit(X, Y, qid=QID)
        np.testing.assert_allclose(with_lonely.coef_, without.coef_, atol=1e-10)
        if graph["ties"] == "exclude":
            tied = RankRLS(0.3, solver=solver, **graph)
            tied.fit(lonely, np.where(qid < 1000, y, 4.0), qid=np.minimum(qid, 1000))
            np.testing.assert_allclose(tied.coef_, without.coef_, atol=1e-10)


def test_scores_that_differ_by_rounding_are_half_right():
    """The kernel sees sums of features, and each query is an item and itself with its features in another order."""
    items = np.random.default_rng(0).random((24, 3))
    items = np.vstack([items, items[:, [2, 0, 1]]])
    y = np.repeat([1.0, 0.0], 24)
    model = RankRLS(kernel=kernel_of_sums).fit(items, np.r_[items[:24].sum(axis=1), items[:24].sum(axis=1)])
    first, second = model.predict(items).reshape(2, 24)
    assert (first != second).any()
    assert model.score(items, y, qid=np.tile(np.arange(24), 2)) == 0.5


def test_scores_that_differ_by_rounding_are_tied():
    model = RankRLS(1.0).fit(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]), [1.0, 1.0, 0.0, 0.0])
    X = np.array([[0.1, 0.2], [0.3, 0.0]])
    first, second = model.predict(X)
    assert first != second
    assert model.score(X, [0.0, 1.0]) == model.score(X, [1.0, 0.0]) == 0.5
