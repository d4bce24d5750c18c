"""RankSVM against a generic solver on listed pairs, and what must not change its solution."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from rankrls import RankSVM
from tests.learners.pair_oracle import listed_pairs, objective, optimum
from tests.models.oracles import centred, ranking_data
from tests.oracles import gaussian
from tests.refusals import Refusal

BALANCES = ("pairs", "examples", "queries")


def pairs_of(X, y, qid, w, balance):
    winners, losers, c = listed_pairs(y, list(qid), w, balance)
    return X[winners] - X[losers], c


@pytest.mark.parametrize("balance", BALANCES)
@pytest.mark.parametrize("C", [1e-3, 0.3, 30.0])
def test_optimum_is_that_of_a_generic_solver(balance, C):
    X, y, qid = ranking_data(3, queries=6, labels=4)
    w = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y))
    tol = 1e-10
    model = RankSVM(C, balance=balance, tol=tol).fit(X, y, qid=qid, sample_weight=w)
    D, c = pairs_of(X, y, qid, w, balance)
    s = np.ones(len(c))
    best, bound = optimum(D, c, s, C)
    ours = objective(model.coef_, D, c, s, C)
    assert model.objective_ == pytest.approx(ours, rel=1e-9)
    assert bound <= ours * (1 + 1e-9)
    assert ours <= objective(best, D, c, s, C) * (1 + 2 * tol)
    assert ours - bound <= max(2 * tol, 1e-6) * ours  # the generic solver's bound is good to some 1e-7
    assert 0.0 <= model.dual_gap_ <= tol * ours
    np.testing.assert_allclose(model.coef_, best, atol=1e-3 * np.abs(best).max())


def test_preferences():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    winners, losers = rng.integers(0, 30, (2, 80))
    kept = winners != losers
    winners, losers = winners[kept], losers[kept]
    s, c = rng.uniform(0.0, 2.0, len(winners)), rng.uniform(0.1, 2.0, len(winners))
    tol = 1e-10
    model = RankSVM(0.5, tol=tol).fit_pairs(X, winners, losers, strength=s, weight=c)
    D = X[winners] - X[losers]
    best, bound = optimum(D, c, s, 0.5)
    ours = objective(model.coef_, D, c, s, 0.5)
    assert bound - 1e-9 <= ours <= objective(best, D, c, s, 0.5) * (1 + tol)
    slack = s - D @ model.coef_
    assert model.support_.tolist() == np.unique(np.r_[winners[slack > 0], losers[slack > 0]]).tolist()


def test_all_pairs_as_preferences_are_the_labels():
    X, y, qid = ranking_data(5)
    winners, losers, c = listed_pairs(y, list(qid), None, "queries")
    a = RankSVM(2.0, balance="queries", tol=1e-7).fit(X, y, qid=qid)
    b = RankSVM(2.0, tol=1e-7).fit_pairs(X, winners, losers, weight=c)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-6)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-5)


def test_invariances():
    X, y, qid = ranking_data(7, queries=8)
    rng = np.random.default_rng(0)
    tol = 1e-12
    make = lambda **more: RankSVM(0.7, tol=tol, **more)
    reference = make().fit(X, y, qid=qid).coef_
    atol = 1e-7
    order = rng.permutation(len(y))
    names = np.array([f"q{q}" for q in qid])
    single = np.concatenate((X, [[9.0, 9.0, 9.0, 9.0]]))
    shift_of = dict(zip(np.unique(qid), rng.normal(size=len(np.unique(qid))), strict=True))
    moved = X + np.array([shift_of[q] for q in qid])[:, None]
    for other in (
        make().fit(X[order], y[order], qid=qid[order]),
        make().fit(X, 10.0 * y - 3.0, qid=names),
        make().fit(single, np.append(y, 5.0), qid=np.append(qid, 999)),
        make().fit(moved, y, qid=qid),
        make().fit(sparse.csr_array(X), y, qid=qid),
    ):
        np.testing.assert_allclose(other.coef_, reference, atol=atol)


@pytest.mark.parametrize("balance", BALANCES)
def test_integer_weights_are_repetition(balance):
    X, y, qid = ranking_data(8)
    w = np.random.default_rng(0).integers(0, 4, len(y))
    tol = 1e-12
    a = RankSVM(0.5, balance=balance, tol=tol).fit(X, y, qid=qid, sample_weight=w)
    rows = np.repeat(np.arange(len(y)), w)
    b = RankSVM(0.5, balance=balance, tol=tol).fit(X[rows], y[rows], qid=qid[rows])
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-7)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-7)
    assert set(a.support_) <= set(np.flatnonzero(w))
    assert set(rows[b.support_]) == set(a.support_)


def test_more_features_than_the_preconditioner_takes_on():
    rng = np.random.default_rng(0)
    X = sparse.random_array((60, 1500), density=0.05, rng=rng, format="csr")
    y = rng.integers(0, 3, 60).astype(float)
    wide = RankSVM(5.0, tol=1e-10).fit(X, y)
    K = (X @ X.T).toarray()
    exact = RankSVM(5.0, kernel="precomputed", tol=1e-10).fit(K, y)
    np.testing.assert_allclose(
        centred(X @ wide.coef_, np.zeros(60)), centred(exact.predict(K), np.zeros(60)), atol=1e-5
    )


def test_kernel_expansion_minimises_the_same_objective():
    X, y, qid = ranking_data(4, queries=6)
    K = gaussian(X, X, 0.3)
    tol = 1e-9
    model = RankSVM(3.0, kernel="rbf", gamma=0.3, balance="pairs", tol=tol).fit(X, y, qid=qid)
    winners, losers, c = listed_pairs(y, list(qid))
    a = np.zeros(len(y))
    a[model.basis_indices_] = model.dual_coef_
    x = np.maximum(1.0 - (K @ a)[winners] + (K @ a)[losers], 0.0)
    value = 0.5 * a @ K @ a + 3.0 * (x**2).sum()
    assert value == pytest.approx(model.objective_, rel=1e-6)
    # The dual over all pairs, in the kernel's space: features are rows of a root of K.
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    D = root[winners] - root[losers]
    _, bound = optimum(D, c, np.ones(len(c)), 3.0)
    assert bound <= value * (1 + 1e-6)
    assert value - bound <= max(2 * tol, 1e-5) * value


def test_a_basis_of_all_items_is_exact_and_a_smaller_one_is_worse():
    X, y, qid = ranking_data(4, queries=6)
    exact = RankSVM(3.0, kernel="rbf", tol=1e-9).fit(X, y, qid=qid)
    whole = RankSVM(3.0, kernel="rbf", tol=1e-9, n_basis=len(y)).fit(X, y, qid=qid)
    few = RankSVM(3.0, kernel="rbf", tol=1e-9, n_basis=8).fit(X, y, qid=qid)
    given = RankSVM(3.0, kernel="rbf", tol=1e-9, basis_indices=few.basis_indices_).fit(X, y, qid=qid)
    np.testing.assert_allclose(whole.predict(X), exact.predict(X), atol=1e-6)
    np.testing.assert_allclose(given.predict(X), few.predict(X), atol=1e-9)
    assert few.dual_coef_.shape == (8,)
    assert few.objective_ > exact.objective_
    linear = RankSVM(3.0, tol=1e-9).fit(X, y, qid=qid)
    precomputed = RankSVM(3.0, kernel="precomputed", tol=1e-9).fit(X @ X.T, y, qid=qid)
    np.testing.assert_allclose(centred(precomputed.predict(X @ X.T), qid), centred(linear.predict(X), qid), atol=1e-5)


def test_offsets_and_float32():
    X, y, qid = ranking_data(9, queries=10)
    reference = RankSVM(1.0, tol=1e-10).fit(X, y, qid=qid).coef_
    far = RankSVM(1.0, tol=1e-10).fit(X + 1e8, y, qid=qid).coef_
    np.testing.assert_allclose(far, reference, atol=1e-6)
    single = RankSVM(1.0, tol=1e-10).fit(X.astype(np.float32), y, qid=qid).coef_
    np.testing.assert_allclose(single, reference, atol=1e-5)


@pytest.mark.parametrize("C", [1e-10, 1e8])
def test_extreme_C_ends(C):
    X, y, qid = ranking_data(9, queries=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RankSVM(C).fit(X, y, qid=qid)
    assert np.isfinite(model.coef_).all()
    assert model.dual_gap_ <= 1e-2 * model.objective_


def test_says_where_it_did_not_converge():
    X, y, qid = ranking_data(9, queries=10)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 Newton steps"):
        RankSVM(100.0, tol=1e-12, max_iter=1).fit(X, y, qid=qid)


def test_refuses_an_exact_kernel_machine_on_many_items(monkeypatch):
    from rankrls.models import ranksvm

    monkeypatch.setattr(ranksvm, "MOST_EXACT", 10)
    X, y, qid = ranking_data(1)
    with Refusal(parameter="n_basis", remedy="n_basis=33"):
        RankSVM(kernel="rbf").fit(X, y, qid=qid)
    RankSVM(kernel="rbf", n_basis=len(y)).fit(X, y, qid=qid)
