"""SparseRankRLS: the dual it approximates, the dual it equals, and everything around it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from rankrls import RankRLS, SparseRankRLS, load, save
from tests.models.oracles import (
    GRAPHS,
    KERNEL_PARAMETERS,
    centred,
    graph_id,
    kernel_matrix,
    query_rows,
    ranking_data,
)
from tests.refusals import Refusal

X, Y, QID = ranking_data(70, queries=9)
W = np.random.default_rng(71).random(len(Y)) + 0.4
X_NEW = np.random.default_rng(72).normal(size=(11, X.shape[1]))
EVERYTHING = np.arange(len(Y))
QUERIES = query_rows(QID)
KERNELS = ["rbf", "laplacian", "polynomial"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
def test_every_row_in_the_basis_is_the_dual(graph, kernel):
    for w, alpha in ((None, 1e-3), (W, 2.0)):
        options = {"kernel": kernel, **KERNEL_PARAMETERS, **graph}
        full = RankRLS(alpha, **options).fit(X, Y, qid=QID, sample_weight=w)
        for basis in ({"basis_indices": EVERYTHING[::-1]}, {"n_basis": 1000}):
            model = SparseRankRLS(alpha, **basis, **options).fit(X, Y, qid=QID, sample_weight=w)
            for Z in (X, X_NEW):
                ours, theirs = model.predict(Z), full.predict(Z)
                if graph["regression_weight"] == 0.0:
                    ours, theirs = ours - ours.mean(), theirs - theirs.mean()
                np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.ptp(theirs))
            assert len(model.dual_coef_) == len(X)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
def test_always_the_dual_of_the_projected_kernel(graph, kernel):
    basis = np.array([3, 17, 8, 1, 25, 30, 11])
    K_new, K_M, K_R = (kernel_matrix(kernel, A, X[basis]) for A in (X_NEW, X, X[basis]))
    inverse = np.linalg.pinv(K_R, rcond=1e-13)
    model = SparseRankRLS(0.3, basis_indices=basis, kernel=kernel, **KERNEL_PARAMETERS, **graph)
    model.fit(X, Y, qid=QID, sample_weight=W)
    dual = RankRLS(0.3, kernel="precomputed", **graph).fit(K_M @ inverse @ K_M.T, Y, qid=QID, sample_weight=W)
    np.testing.assert_allclose(model.predict(X_NEW), dual.predict(K_new @ inverse @ K_M.T), atol=1e-6)
    np.testing.assert_array_equal(model.basis_indices_, basis)
    np.testing.assert_array_equal(model.X_fit_, X[basis])


@pytest.mark.parametrize("graph", GRAPHS[:4], ids=graph_id)
def test_duplicates_in_the_basis_change_nothing(graph):
    once = SparseRankRLS(0.3, basis_indices=[4, 9, 20], **graph).fit(X, Y, qid=QID)
    twice = SparseRankRLS(0.3, basis_indices=[4, 9, 20, 9, 4, 4], **graph).fit(X, Y, qid=QID)
    np.testing.assert_allclose(twice.predict(X_NEW), once.predict(X_NEW), atol=1e-10)


@pytest.mark.parametrize("gamma", [1e-6, 1e-3])
def test_a_kernel_of_low_numerical_rank(gamma):
    """Condition 1e16 and beyond: next to the dual, whose kernel is not inverted."""
    for alpha in (1e-4, 1.0):
        full = RankRLS(alpha, kernel="rbf", gamma=gamma).fit(X, Y, qid=QID)
        model = SparseRankRLS(alpha, n_basis=1000, gamma=gamma).fit(X, Y, qid=QID)
        a, b = (centred(m.predict(X), QID) for m in (full, model))
        np.testing.assert_allclose(b, a, atol=2e-4 * np.ptp(a))


def test_integer_weights_are_repetitions():
    weights = np.random.default_rng(73).integers(0, 4, len(Y))
    again = np.repeat(EVERYTHING, weights)
    for graph in ({"balance": "pairs"}, {"ties": "exclude"}):
        a = SparseRankRLS(0.2, **graph).fit(X, Y, qid=QID, sample_weight=weights)
        b = SparseRankRLS(0.2, **graph).fit(X[again], Y[again], qid=QID[again])
        np.testing.assert_allclose(a.predict(X_NEW), b.predict(X_NEW), atol=1e-8)
    kept = EVERYTHING[weights > 0][:5]
    model = SparseRankRLS(basis_indices=kept).fit(X, Y, qid=QID, sample_weight=weights)
    np.testing.assert_array_equal(model.X_fit_, X[kept])
    np.testing.assert_array_equal(model.basis_indices_, kept)


def test_several_targets():
    targets = np.column_stack((Y, X[:, 1], -Y))
    for graph in ({}, {"ties": "exclude", "balance": "queries"}):
        together = SparseRankRLS(0.3, n_basis=12, **graph).fit(X, targets, qid=QID)
        assert together.dual_coef_.shape == (12, 3)
        for t in range(3):
            alone = SparseRankRLS(0.3, n_basis=12, **graph).fit(X, targets[:, t], qid=QID)
            np.testing.assert_allclose(together.predict(X_NEW)[:, t], alone.predict(X_NEW), atol=1e-9)


def test_a_given_kernel_matrix():
    K, K_new = kernel_matrix("rbf", X), kernel_matrix("rbf", X_NEW, X)
    weights = W * (EVERYTHING % 5 > 0)
    for w in (None, weights):
        for wrap in (np.asarray, sparse.csr_array):
            a = SparseRankRLS(0.3, kernel="precomputed", basis_indices=[7, 2, 11, 31]).fit(
                wrap(K), Y, qid=QID, sample_weight=w
            )
            b = SparseRankRLS(0.3, gamma=0.2, basis_indices=[7, 2, 11, 31]).fit(X, Y, qid=QID, sample_weight=w)
            np.testing.assert_allclose(a.dual_coef_, b.dual_coef_, atol=1e-8)
            np.testing.assert_allclose(a.predict(wrap(K_new)), b.predict(X_NEW), atol=1e-8)


def test_a_linear_kernel_has_weights_of_features():
    wide = np.random.default_rng(74).normal(size=(len(Y), 12))
    primal = RankRLS(0.3).fit(wide, Y, qid=QID)
    model = SparseRankRLS(0.3, kernel="linear", n_basis=30).fit(wide, Y, qid=QID)
    np.testing.assert_allclose(model.coef_, primal.coef_, atol=1e-9)
    few = SparseRankRLS(0.3, kernel="linear", n_basis=5).fit(wide, Y, qid=QID)
    np.testing.assert_allclose(few.coef_, few.X_fit_.T @ few.dual_coef_, atol=1e-12)
    np.testing.assert_allclose(few.predict(wide), wide @ (few.X_fit_.T @ few.dual_coef_), atol=1e-10)


def test_the_basis_follows_the_random_state():
    a, b, c = (SparseRankRLS(n_basis=8, random_state=s).fit(X, Y, qid=QID) for s in (0, 0, 1))
    np.testing.assert_array_equal(a.basis_indices_, b.basis_indices_)
    assert not np.array_equal(a.basis_indices_, c.basis_indices_)
    assert len(set(a.basis_indices_)) == 8
    for state in (np.random.default_rng(3), np.random.RandomState(3), None):
        assert len(SparseRankRLS(n_basis=8, random_state=state).fit(X, Y, qid=QID).basis_indices_) == 8


@pytest.mark.parametrize("ill", [False, True])
@pytest.mark.parametrize("graph", GRAPHS[::2], ids=graph_id)
def test_batches_equal_one_fit(graph, ill, tmp_path):
    options = {"n_basis": 12, "gamma": 1e-4 if ill else 0.3, **graph}
    batches = [np.concatenate(QUERIES[:4]), np.concatenate(QUERIES[4:7]), np.concatenate(QUERIES[7:])]
    model = SparseRankRLS(0.3, **options)
    for rows in batches:
        model.partial_fit(X[rows], Y[rows], qid=QID[rows], sample_weight=W[rows])
        save(model, tmp_path / "m.rankrls")
        model = load(tmp_path / "m.rankrls")
    assert model.n_queries_ == len(QUERIES)
    basis = batches[0][model.basis_indices_]
    full = SparseRankRLS(0.3, **{**options, "basis_indices": basis}).fit(X, Y, qid=QID, sample_weight=W)
    np.testing.assert_allclose(model.predict(X_NEW), full.predict(X_NEW), atol=1e-5 if ill else 1e-9)


def test_what_updates_refuse():
    model = SparseRankRLS(n_basis=8)
    for change in ({"gamma": 3.0}, {"kernel": "laplacian"}, {"ties": "exclude"}):
        changed = clone(model).partial_fit(X, Y, qid=QID).set_params(**change)
        with Refusal(remedy="may change"):
            changed.partial_fit(X, Y, qid=QID + 1000)
    assert not hasattr(SparseRankRLS(kernel="precomputed"), "partial_fit")
    pairs = SparseRankRLS(n_basis=8).fit_pairs(X, [0, 1], [2, 3])
    with Refusal("Call partial_fit for the first queries"):
        pairs.partial_fit(X, Y, qid=QID)


def test_preferences_equal_the_dual():
    rng = np.random.default_rng(75)
    i = rng.integers(0, len(Y), 50)
    j = (i + rng.integers(1, len(Y), 50)) % len(Y)
    options = {"strength": rng.random(50), "weight": rng.random(50)}
    full = RankRLS(0.3, kernel="rbf", gamma=0.2).fit_pairs(X, i, j, **options)
    model = SparseRankRLS(0.3, gamma=0.2).fit_pairs(X, i, j, **options)
    ours, theirs = model.predict(X_NEW), full.predict(X_NEW)
    np.testing.assert_allclose(ours - ours[0], theirs - theirs[0], atol=1e-6)
    assert model.basis_indices_.shape == (len(Y),)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"basis_indices": [0.5]}, Refusal("a sequence", parameter="basis_indices")),
        ({"basis_indices": [0, 99]}, Refusal("got [0, 99]", parameter="basis_indices")),
        ({"basis_indices": [-1]}, Refusal("got [-1]", parameter="basis_indices")),
        ({"kernel": "sigmoid", "gamma": 3.0, "coef0": -1.0}, Refusal("not positive semidefinite", kind=ValueError)),
        ({"kernel": "precomputed"}, Refusal("must be square", parameter="X")),
    ],
)
def test_bad_parameters(options, refusal):
    with refusal:
        SparseRankRLS(**options).fit(X, Y, qid=QID)


def test_bad_combinations():
    weights = np.ones(len(Y))
    weights[3] = 0.0
    with Refusal("zero", "row 3", parameter="basis_indices"):
        SparseRankRLS(basis_indices=[1, 3]).fit(X, Y, qid=QID, sample_weight=weights)
    with Refusal("Nothing to compare", parameter="y"):
        SparseRankRLS().fit(X, np.ones(len(Y)), qid=QID)
