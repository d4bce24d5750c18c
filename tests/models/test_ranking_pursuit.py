"""The estimator of ranking pursuit: what it takes in, and what its path says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rankrls import RankingPursuit
from tests.learners.test_pursuit import greedy_by_refit
from tests.models.oracles import GRAPHS, KERNEL_PARAMETERS, centred, graph_id, kernel_matrix, laplacian, ranking_data


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "polynomial"])
@pytest.mark.parametrize("graph", GRAPHS[::4], ids=graph_id)
@pytest.mark.parametrize("backfit", [True, False])
def test_predicts_what_the_greedy_search_finds(kernel, graph, backfit):
    X, y, qid = ranking_data(3)
    w = np.random.default_rng(0).uniform(0.2, 2.0, len(y))
    w[4] = 0.0
    X_new = np.random.default_rng(1).normal(size=(9, X.shape[1]))
    model = RankingPursuit(4, kernel=kernel, backfit=backfit, **KERNEL_PARAMETERS, **graph)
    model.fit(X, y, qid=qid, sample_weight=w)
    kept = np.flatnonzero(w)
    K = kernel_matrix(kernel, X[kept])
    L = laplacian(y[kept], qid[kept], w[kept], graph)
    taken, coefficients, losses = greedy_by_refit(K, L, y[kept], 4, backfit=backfit)
    rows = kept[taken]
    np.testing.assert_allclose(model.path_.losses, losses, rtol=1e-8)
    assert model.basis_indices_.tolist() == list(dict.fromkeys(rows.tolist()))
    expected = [kernel_matrix(kernel, X_new, X[rows[: p + 1]]) @ a for p, a in enumerate(coefficients)]
    stages = list(model.staged_predict(X_new))
    assert len(stages) == 4
    for got, wanted in zip(stages, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.predict(X_new), stages[-1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.predict(sparse.csr_array(X_new)), stages[-1], rtol=1e-8, atol=1e-10)


def test_the_features_as_dictionary():
    X, y, qid = ranking_data(3, n=12)
    model = RankingPursuit(5, dictionary="features", ties="exclude").fit(X, y, qid=qid)
    taken, coefficients, _ = greedy_by_refit(X, laplacian(y, qid, None, GRAPHS[9 + 3]), y, 5)
    assert model.basis_indices_.tolist() == taken
    np.testing.assert_allclose(model.coef_[taken], coefficients[-1])
    assert np.count_nonzero(model.coef_) == 5
    for p, scores in enumerate(model.staged_predict(sparse.csr_array(X))):
        np.testing.assert_allclose(scores, X[:, taken[: p + 1]] @ coefficients[p])
    np.testing.assert_allclose(model.predict(X), X @ model.coef_)


@pytest.mark.parametrize("graph", GRAPHS[::5], ids=graph_id)
def test_a_precomputed_kernel(graph):
    X, y, qid = ranking_data(6)
    w = np.ones(len(y))
    w[[0, 7]] = 0.0
    one = RankingPursuit(6, kernel="rbf", gamma=0.2, **graph).fit(X, y, qid=qid, sample_weight=w)
    other = RankingPursuit(6, kernel="precomputed", **graph)
    other.fit(kernel_matrix("rbf", X), y, qid=qid, sample_weight=w)
    assert one.basis_indices_.tolist() == other.basis_indices_.tolist()
    assert other.dual_coef_.shape == (6,)
    X_new = np.random.default_rng(1).normal(size=(5, X.shape[1]))
    K_new = kernel_matrix("rbf", X_new, X)
    for a, b in zip(one.staged_predict(X_new), other.staged_predict(K_new), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(one.predict(X_new), other.predict(K_new), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("dictionary", ["kernel", "features"])
def test_preferences_of_all_pairs_are_the_scored_graph(dictionary):
    X, y, _ = ranking_data(8, n=6)
    i, j = np.triu_indices(len(y), 1)
    pairs = RankingPursuit(5, dictionary=dictionary).fit_pairs(X, i, j, strength=y[i] - y[j])
    labels = RankingPursuit(5, dictionary=dictionary, balance="pairs").fit(X, y)
    assert pairs.basis_indices_.tolist() == labels.basis_indices_.tolist()
    np.testing.assert_allclose(pairs.path_.losses, labels.path_.losses, rtol=1e-9)
    np.testing.assert_allclose(centred(pairs.predict(X), y * 0), centred(labels.predict(X), y * 0), rtol=1e-7)


def test_nothing_to_take_is_the_zero_function():
    y = np.arange(6.0)
    kernels = ("linear", "rbf", "laplacian", "polynomial", "sigmoid")
    for model in (*(RankingPursuit(kernel=name) for name in kernels), RankingPursuit(dictionary="features")):
        model.fit(np.ones((6, 2)), y)
        assert model.n_basis_ == 0
        assert model.path_.losses.shape == (1,)
        assert model.predict(np.ones((3, 2))).tolist() == [0.0, 0.0, 0.0]
        assert list(model.staged_predict(np.ones((3, 2)))) == []
