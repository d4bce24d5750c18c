"""Forward selection against refits of every candidate without every block."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from rankrls import GreedyRankRLS, RankRLS, survival_pairs
from rankrls.learners.greedy import BlockRows, take_forward
from rankrls.metrics import Measure
from tests.oracles import explicit_laplacian


def weights_of(X, L, b, alpha):
    return np.linalg.solve(X.T @ L @ X + alpha * np.eye(X.shape[1]), X.T @ b)


def held_out_scores(X, L, b, blocks, alpha, taken):
    """Scores of each block's items by weights of the taken features, fitted on the other blocks."""
    scores = np.empty(len(X))
    for U in blocks:
        R = np.setdiff1d(np.arange(len(X)), U)
        scores[U] = X[np.ix_(U, taken)] @ weights_of(X[np.ix_(R, taken)], L[np.ix_(R, R)], b[R], alpha)
    return scores


def data(seed, *, weighted=False, n=7):
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(6), [1, 3, 4, 5, 6, 4]))
    X = rng.normal(size=(len(qid), n)) * 10.0 ** rng.uniform(-1, 1, n) + 20.0
    y = rng.integers(0, 4, len(qid)).astype(float)
    return X, y, qid, rng.uniform(0.3, 2.0, len(qid)) if weighted else None


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from([1e-6, 1e-2, 1.0, 1e3]),
    ties=st.sampled_from(["include", "exclude"]),
    balance=st.sampled_from(["pairs", "examples", "queries"]),
    beta=st.sampled_from([0.0, 0.4, 1.0]),
    weighted=st.booleans(),
)
def test_path_is_that_of_refits(seed, alpha, ties, balance, beta, weighted):
    X, y, qid, w = data(seed, weighted=weighted)
    L = explicit_laplacian(y, qid, w, ties=ties, balance=balance, beta=beta)
    blocks = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    model = GreedyRankRLS(4, alphas=[alpha], ties=ties, balance=balance, regression_weight=beta)
    path = model.fit(X, y, qid=qid, sample_weight=w).path_
    for k in range(path.n_stages):
        scores = held_out_scores(X, L, L @ y, blocks, alpha, path.indices[: k + 1])
        assert path.held_out[k + 1] == pytest.approx((y - scores) @ L @ (y - scores), rel=1e-6)
        others = [j for j in range(X.shape[1]) if j not in path.indices[:k]]
        best = min(
            (y - f) @ L @ (y - f)
            for f in (held_out_scores(X, L, L @ y, blocks, alpha, [*path.indices[:k], j]) for j in others)
        )
        assert path.held_out[k + 1] <= best * (1.0 + 1e-6)
    taken = model.selected_
    f = X[:, taken] @ weights_of(X[:, taken], L, L @ y, alpha)
    assert path.losses[-1] == pytest.approx((y - f) @ L @ (y - f), rel=1e-7)
    np.testing.assert_allclose(model.coef_[taken], weights_of(X[:, taken], L, L @ y, alpha), rtol=1e-5, atol=1e-9)
    assert not np.delete(model.coef_, taken).any()


@pytest.mark.parametrize("sizes", [[1] * 40, [2] * 20, [1, 2, 5, 1, 6, 3, 4, 1, 5, 3] * 2, [30, 25, 40]])
def test_blocks_of_any_size_over_many_stages(sizes):
    rng = np.random.default_rng(sum(sizes))
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.intp)
    m, n, alpha = starts[-1], 12, 0.2
    Z, t = rng.normal(size=(m, n)), rng.normal(size=m)
    path = take_forward(BlockRows(Z, starts), t, alpha, 10, np.ones(m), alpha)
    for k in range(11):
        S, error = path.indices[:k], 0.0
        for lo, hi in zip(starts[:-1], starts[1:], strict=True):
            rest = np.r_[0:lo, hi:m]
            w = np.linalg.solve(Z[rest][:, S].T @ Z[rest][:, S] + alpha * np.eye(k), Z[rest][:, S].T @ t[rest])
            error += ((t[lo:hi] - Z[lo:hi, S] @ w) ** 2).sum()
        assert path.held_out[k] == pytest.approx(error, rel=1e-11)


@pytest.mark.parametrize("grouped", [False, True])
def test_preferences_are_left_out_one_by_one_or_by_groups(grouped):
    rng = np.random.default_rng(5)
    X, i, j = rng.normal(size=(14, 6)), *rng.permuted(np.tile(np.arange(14), (30, 1)), axis=1)[:, :2].T
    c = rng.uniform(0.2, 2.0, 30)
    groups = rng.integers(0, 7, 30) if grouped else np.arange(30)
    D = X[i] - X[j]
    model = GreedyRankRLS(3, alphas=[0.3])
    path = model.fit_pairs(X, i, j, weight=c, groups=groups if grouped else None).path_
    taken = []
    for k in range(3):
        errors = []
        for new in range(6):
            S, error = [*taken, new], 0.0
            for g in np.unique(groups):
                out = groups == g
                w = weights_of(D[~out][:, S], np.diag(c[~out]), c[~out], 0.3)
                error += c[out] @ (1.0 - D[out][:, S] @ w) ** 2
            errors.append(np.inf if new in taken else error)
        taken.append(int(np.argmin(errors)))
        assert path.held_out[k + 1] == pytest.approx(min(errors), rel=1e-9)
    assert path.indices.tolist() == taken


@pytest.mark.parametrize(
    ("alpha", "m", "seed", "stages"),
    [(1e-4, 24, 2, 6), (3.0, 24, 2, 6), (0.1, 9, 0, 3), (0.1, 9, 1, 3), (0.1, 9, 2, 3)],
)
def test_no_feature_is_passed_over_among_many(alpha, m, seed, stages):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 90)) * 10.0 ** rng.uniform(-2, 2, 90) + 50.0
    X[:, 40:60] = X[:, :20] + 1e-3 * rng.normal(size=(m, 20)) * X[:, :20].std(axis=0)  # nearly in the span of others
    X[:, 60:70] = X[:, 70:80]
    time, event = np.exp(0.1 * X[:, 7] / X[:, 7].std() + 0.2 * rng.normal(size=m)), rng.random(m) < 0.7
    i, j = survival_pairs(time, event)
    c = rng.uniform(0.2, 2.0, len(i))
    D, t = np.sqrt(c)[:, None] * (X[i] - X[j]), np.sqrt(c)
    path = GreedyRankRLS(stages, alphas=[alpha]).fit_pairs(X, i, j, weight=c).path_
    taken = []
    for k in range(stages):
        errors = np.full(90, np.inf)
        for new in np.setdiff1d(np.arange(90), taken):
            Z = D[:, [*taken, new]]
            grams = Z.T @ Z + alpha * np.eye(k + 1) - Z[:, :, None] * Z[:, None]  # without each preference
            w = np.linalg.solve(grams, (Z.T @ t - Z * t[:, None])[:, :, None])[:, :, 0]
            errors[new] = ((t - (Z * w).sum(axis=1)) ** 2).sum()
        taken.append(int(np.argmin(errors)))
        assert path.held_out[k + 1] == pytest.approx(errors.min(), rel=1e-7)
    assert path.indices.tolist() == taken


def test_what_is_constant_among_compared_items_is_never_taken():
    rng = np.random.default_rng(0)
    first, second = rng.permuted(np.tile(np.arange(20), (60, 1)), axis=1)[:, :2].T
    X = np.column_stack((np.repeat([0.1, 0.3], 20), rng.normal(size=40)))
    model = GreedyRankRLS(2, alphas=[1e-9]).fit_pairs(X, np.r_[first, first + 20], np.r_[second, second + 20])
    assert model.selected_.tolist() == [1]


@pytest.mark.parametrize(
    ("balance", "weighted"), [("pairs", False), ("queries", False), ("examples", False), ("examples", True)]
)
def test_items_of_one_ranking_are_left_out_as_a_refit_would(balance, weighted):
    """The graph without an item has another scale: the held-out model is that of the others' own graph."""
    X, y, _, w = data(8, weighted=True)
    w = w if weighted else np.ones(len(y))
    path = GreedyRankRLS(3, alphas=[0.7], balance=balance).fit(X, y, sample_weight=w).path_
    scale = None
    for k in range(1, 4):
        S, error = path.indices[:k], 0.0
        for out in range(len(y)):
            rest = np.arange(len(y)) != out
            model = RankRLS(alpha=0.7, balance=balance).fit(X[rest][:, S], y[rest], sample_weight=w[rest])
            f = model.predict(X[:, S])
            level = np.average((y - f)[rest], weights=w[rest])
            error += w[out] * (y[out] - f[out] - level) ** 2
        scale = path.held_out[k] / error if scale is None else scale
        assert path.held_out[k] == pytest.approx(scale * error, rel=1e-8)
    pairs = 0.5 * (w.sum() ** 2 - (w**2).sum())
    assert scale == pytest.approx({"pairs": w.sum(), "examples": 1.0, "queries": w.sum() / pairs}[balance])


def test_constant_and_duplicate_features_are_never_taken():
    X, y, qid, _ = data(1)
    X = np.column_stack((np.full(len(y), 3.3), X[:, 0], X, X[:, 2] + X[:, 3]))
    model = GreedyRankRLS(10, alphas=[1e-3]).fit(X, y, qid=qid)
    assert 0 not in model.selected_
    assert len(set(model.selected_)) == model.n_features_ == 7
    assert not {1, 2} <= set(model.selected_)
    assert np.isfinite(model.path_.held_out).all()


def test_features_of_very_different_scales_are_fitted_without_a_warning():
    """Their coefficients are as accurate as in units in which all have the same scale."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (40, 4)).astype(float)
    y = rng.integers(0, 3, 40).astype(float)
    qid = np.repeat(np.arange(8), 5)
    scales = 10.0 ** np.array([-9, 0, 5, 9])
    model = GreedyRankRLS(4, alphas=(1e-25,)).fit(X * scales, y, qid=qid)
    expected = RankRLS(1e-9).fit(X, y, qid=qid).coef_
    np.testing.assert_allclose(model.coef_ * scales, expected, rtol=1e-6)


def test_nothing_to_take_from():
    model = GreedyRankRLS(2, alphas=[1.0]).fit(np.ones((6, 3)), [0, 1, 0, 1, 2, 1], qid=[0, 0, 1, 1, 2, 2])
    assert model.n_features_ == 0
    assert not model.predict(np.eye(3)).any()


def test_more_features_than_rows_and_sparse_features():
    rng = np.random.default_rng(2)
    X, qid = rng.normal(size=(60, 400)) * (rng.random((60, 400)) < 0.3), np.repeat(np.arange(12), 5)
    y = X[:, 7] - X[:, 9] + 0.1 * rng.normal(size=60)
    dense = GreedyRankRLS(4, alphas=[0.1]).fit(X, y, qid=qid)
    assert set(dense.selected_[:2]) == {7, 9}
    thin = GreedyRankRLS(4, alphas=[0.1]).fit(sparse.csr_array(X), y, qid=qid)
    np.testing.assert_array_equal(thin.selected_, dense.selected_)
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-9)


def test_number_and_alpha_are_chosen_by_folds_that_select_anew():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(200, 25)), np.repeat(np.arange(20), 10)
    y = X[:, 3] - 2 * X[:, 11] + rng.normal(size=200)
    model = GreedyRankRLS(alphas=[0.1, 10.0], max_features=6, rule="one_se", cv=4).fit(X, y, qid=qid)
    assert model.selected_.tolist() == [11, 3]
    assert model.selection_ == "4 folds of 20 queries"
    assert set(model.cv_results_["alpha"]) == {0.1, 10.0}
    assert set(model.cv_results_["n_features"]) == set(range(1, 7))
    # One fold by hand.

    rows = np.arange(200) < 150
    folds = [(np.flatnonzero(rows), np.flatnonzero(~rows)), (np.flatnonzero(~rows), np.flatnonzero(rows))]
    model = GreedyRankRLS(2, alphas=[0.1, 10.0], cv=folds).fit(X, y, qid=qid)
    for alpha, found in zip(model.cv_results_["alpha"], model.cv_results_["mean_score"], strict=True):
        values = []
        for train, test in folds:
            part = GreedyRankRLS(2, alphas=[alpha]).fit(X[train], y[train], qid=qid[train])
            values.extend(Measure("pair_squared_error")(y[test], part.predict(X[test]), qid=qid[test], per_query=True))
        assert found == pytest.approx(np.mean(values), rel=1e-9)


def test_selector_interface():
    X, y, qid, _ = data(4)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    model = GreedyRankRLS(2, alphas=[0.1]).fit(frame, y, qid=qid)
    names = model.get_feature_names_out()
    assert names.tolist() == [f"f{j}" for j in sorted(model.selected_)]
    np.testing.assert_array_equal(model.transform(frame), frame[names])
    np.testing.assert_array_equal(model.get_support(indices=True), np.sort(model.selected_))


@pytest.mark.parametrize(
    ("options", "qid", "parameter"),
    [
        ({"n_features_to_select": 9}, True, "n_features_to_select"),
        ({"n_features_to_select": 0}, True, "n_features_to_select"),
        ({"alphas": [1.0, 0.0]}, True, "alpha"),
        ({"max_features": 0}, True, "max_features"),
        ({"ties": "exclude"}, False, "ties"),
        ({"regression_weight": 0.5}, False, "regression_weight"),
    ],
)
def test_refusals(options, qid, parameter):
    X, y, ids, _ = data(0)
    with pytest.raises(ValueError) as error:
        GreedyRankRLS(**options).fit(X, y, qid=ids if qid else None)
    assert error.value.parameter == parameter


def test_weighted_items_of_one_ranking_need_another_balance():
    X, y, _, w = data(8, weighted=True)
    with pytest.raises(ValueError) as error:
        GreedyRankRLS(3, alphas=[0.7], balance="pairs").fit(X, y, sample_weight=w)
    assert error.value.parameter == "balance"


def test_preferences_by_a_measure_of_labels_are_refused():
    with pytest.raises(ValueError) as error:
        GreedyRankRLS(scoring="ndcg@3").fit_pairs(np.eye(4), [0, 1, 2], [1, 2, 3])
    assert error.value.parameter == "scoring"
