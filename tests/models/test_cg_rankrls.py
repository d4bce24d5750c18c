"""Conjugate gradients as an estimator: against dense solves, separate runs, and the three readings by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold

from rankrls import CGRankRLS, InputWarning, RankRLS, RankRLSCV
from rankrls.metrics import Measure
from tests.models.oracles import GRAPHS, dense_scores, graph_id, ranking_data
from tests.refusals import Refusal

RNG = np.random.default_rng(60)
X, Y, QID = ranking_data(61, queries=30, longest=9, n=6)
X_VAL, Y_VAL, QID_VAL = ranking_data(62, queries=20, longest=9, n=6)
VALIDATION = {"X_val": X_VAL, "y_val": Y_VAL, "qid_val": QID_VAL}
EXACT = {"selection": "tikhonov", "tol": 1e-12}


def noisy(seed, m=120, n=40):
    """More noise than signal, so that stopping early pays."""
    rng = np.random.default_rng(seed)
    features = np.where(rng.random((m, n)) < 0.4, rng.normal(size=(m, n)), 0.0)
    return features, features @ rng.normal(size=n) * 0.2 + rng.normal(size=m)


def by_hand(features, y, qid, alphas, iterations, validation, **graph):
    """The surface, from separate short runs of one alpha."""
    out = np.full((len(alphas), iterations), np.nan)
    for k, alpha in enumerate(alphas):
        for t in range(iterations):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = CGRankRLS((alpha,), selection="tikhonov", max_iter=t + 1, tol=1e-9, **graph)
                model.fit(features, y, qid=qid)
            Z, labels, groups = validation
            out[k, t] = Measure("disagreement")(labels, model.predict(Z), qid=groups)
    return out


@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
def test_one_alpha_equals_a_dense_solve(graph):
    w = RNG.random(len(Y)) + 0.5
    for alpha in (1e-3, 1.0, 100.0):
        expected = dense_scores(X_VAL @ X.T, X @ X.T, Y, QID, w, graph, alpha)
        for form in (X, sparse.csr_array(X)):
            model = CGRankRLS((alpha,), **EXACT, **graph).fit(form, Y, qid=QID, sample_weight=w)
            np.testing.assert_allclose(model.predict(X_VAL), expected, atol=1e-8)
            assert model.selection_ == "nothing held out"
            assert model.validation_surface_.shape == (1, 0)
            assert model.status_ == ["converged"]
        dual = CGRankRLS((alpha,), kernel="precomputed", selection="tikhonov", tol=1e-9, **graph)
        dual.fit(X @ X.T, Y, qid=QID, sample_weight=w)
        np.testing.assert_allclose(dual.predict(X_VAL @ X.T), expected, atol=1e-5)


def test_the_surface_holds_what_separate_runs_find():
    features, y = noisy(1)
    Z, labels = noisy(2)
    Z, labels = Z[:60], Z[:60] @ np.linalg.lstsq(features, y, rcond=None)[0] + RNG.normal(size=60)
    alphas = (0.0, 1.0, 64.0)
    model = CGRankRLS(alphas, max_iter=14, patience=40, tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features, y, X_val=Z, y_val=labels)
    expected = by_hand(features, y, None, alphas, 14, (Z, labels, None))
    np.testing.assert_allclose(model.validation_surface_, expected, atol=1e-12)
    k = max(np.flatnonzero((expected == expected.min()).any(axis=1)))  # equal measures: the largest alpha,
    assert (model.alpha_, model.n_iter_) == (alphas[k], np.argmin(expected[k]) + 1)  # then the fewest iterations
    assert model.best_score_ == expected.min()
    np.testing.assert_array_equal(model.cv_results_["mean_score"], expected.min(axis=1))
    np.testing.assert_array_equal(model.cv_results_["n_iter"], expected.argmin(axis=1) + 1)
    assert Measure("disagreement")(labels, model.predict(Z)) == pytest.approx(model.best_score_)


def test_the_three_readings_of_one_surface():
    features, y = noisy(3)
    Z, labels = noisy(4)
    labels = labels + Z @ np.linalg.lstsq(features, y, rcond=None)[0]
    given = {"X_val": Z, "y_val": labels}
    tikhonov = CGRankRLS(selection="tikhonov").fit(features, y, **given)
    last = tikhonov.validation_surface_[:, -1]
    k = np.flatnonzero(last == last.min()).max()  # equal measures: the largest alpha
    assert tikhonov.alpha_ == tikhonov.alphas_[k]
    assert tikhonov.n_iter_ == tikhonov.iterations_[k]
    np.testing.assert_allclose(tikhonov.coef_, RankRLS(tikhonov.alpha_).fit(features, y).coef_, rtol=1e-2, atol=1e-4)
    assert tikhonov.status_ == ["converged"] * 21
    hybrid = CGRankRLS(patience=5).fit(features, y, **given)
    width = hybrid.validation_surface_.shape[1]
    assert width < tikhonov.validation_surface_.shape[1]
    np.testing.assert_array_equal(hybrid.validation_surface_, tikhonov.validation_surface_[:, :width])
    assert hybrid.best_score_ == hybrid.validation_surface_.min() <= tikhonov.best_score_
    # The iterations end once every alpha has converged or waited for five.
    for k in range(21):
        waited = width - 1 - int(np.argmin(hybrid.validation_surface_[k]))
        assert waited >= 5 or hybrid.status_[k] == "converged"
    early = CGRankRLS(selection="early_stopping", patience=5).fit(features, y, **given)
    assert early.alphas_.tolist() == [0.0]
    curve = early.validation_surface_[0]
    assert early.n_iter_ == np.argmin(curve) + 1
    assert len(curve) == early.n_iter_ + 5 or early.status_ == ["converged"]
    assert Measure("disagreement")(labels, early.predict(Z)) == pytest.approx(curve.min())


def noisy_outcome(m=600, n=100):
    """A binary outcome of three features of a hundred, and 2000 further items: much regularization pays."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(m + 2000, n))
    features[:, 0] *= 1.5
    y = (features[:, :3].sum(axis=1) + 4 * rng.normal(size=m + 2000) > 2).astype(float)
    return (features[:m], y[:m]), (features[m:], y[m:])


def test_an_automatic_grid_reaches_what_the_exact_search_reaches():
    """All pairs of one ranking count: eigenvalues are hundreds of times those of centred items."""
    (features, y), (Z, labels) = noisy_outcome()
    auc = lambda model: 1 - Measure("disagreement")(labels, model.fit(features, y).predict(Z))
    exact = RankRLSCV(balance="pairs", cv=5)
    iterated = CGRankRLS(balance="pairs", selection="tikhonov", cv=5, tol=1e-8)
    assert auc(iterated) == pytest.approx(auc(exact), abs=0.001)
    assert iterated.alpha_ == pytest.approx(exact.alpha_, rel=0.05)
    assert not iterated.alpha_at_edge_
    fixed = CGRankRLS(tuple(2.0 ** np.arange(-10, 11)), balance="pairs", selection="tikhonov", cv=5)
    with pytest.warns(InputWarning, match="end of the grid") as caught:
        assert auc(fixed) < auc(iterated) - 0.01
    assert [str(warning.message.parameter) for warning in caught] == ["alphas"]
    assert fixed.alpha_at_edge_


def test_one_ranking_has_no_standard_error():
    (features, y), (Z, labels) = noisy_outcome(m=200)
    best, small = (CGRankRLS(rule=rule).fit(features, y, X_val=Z, y_val=labels) for rule in ("best", "one_se"))
    assert np.isnan(best.best_score_error_)
    assert np.isnan(best.cv_results_["standard_error"]).all()
    assert small.best_params_ == best.best_params_
    np.testing.assert_array_equal(small.coef_, best.coef_)


def test_one_standard_error_takes_a_larger_alpha():
    features, y = noisy(3)
    Z, labels = noisy(4)
    labels = labels + Z @ np.linalg.lstsq(features, y, rcond=None)[0]
    given = {"qid": np.arange(len(y)) // 20, "X_val": Z, "y_val": labels, "qid_val": np.arange(len(labels)) // 20}
    best, small = (CGRankRLS(rule=rule).fit(features, y, **given) for rule in ("best", "one_se"))
    assert small.alpha_ > best.alpha_
    assert best.best_score_ < small.best_score_ <= best.best_score_ + best.best_score_error_
    errors = Measure("disagreement")(labels, small.predict(Z), qid=given["qid_val"], per_query=True)
    assert small.best_score_ == pytest.approx(np.nanmean(errors))


def test_a_rule_compares_converged_models_alone_if_iterations_are_not_selected():
    rng = np.random.default_rng(3)
    w, (features, Z) = rng.normal(size=30), rng.normal(size=(2, 120, 30))
    y, labels = (each @ w + 6 * rng.normal(size=120) for each in (features, Z))
    given = {"qid": np.arange(120) // 20, "X_val": Z, "y_val": labels, "qid_val": np.arange(120) // 20}
    with pytest.warns(InputWarning, match="end of the grid"):
        model = CGRankRLS((1e-3, 10.0, 300.0), selection="tikhonov", rule="one_se").fit(features, y, **given)
    mean, error = (model.cv_results_[name] for name in ("mean_score", "standard_error"))
    assert model.alpha_ == model.alphas_[mean <= mean.min() + error[mean.argmin()]].max()


@pytest.mark.parametrize("selection", ["hybrid", "tikhonov"])
def test_folds_are_separate_fits_and_the_model_is_one_of_all_rows(selection):
    folds = list(GroupKFold(3).split(X, Y, QID))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = CGRankRLS((0.1, 10.0), selection=selection, cv=folds, max_iter=6, patience=9, tol=1e-9)
        model.fit(sparse.csr_array(X), Y, qid=QID)
        own = [
            CGRankRLS((0.1, 10.0), max_iter=6, patience=9, tol=1e-9).fit(
                X[train], Y[train], qid=QID[train], X_val=X[test], y_val=Y[test], qid_val=QID[test]
            )
            for train, test in folds
        ]
        # Queries count the same, whichever fold they are in.
        counts = [sum(len(set(Y[test][QID[test] == q])) > 1 for q in set(QID[test].tolist())) for _, test in folds]
        expected = np.average([m.validation_surface_ for m in own], axis=0, weights=counts)
        np.testing.assert_allclose(model.validation_surface_, expected, atol=1e-12)
        again = CGRankRLS((model.alpha_,), selection="tikhonov", max_iter=model.n_iter_, tol=1e-9).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-10)
    assert model.selection_ == "3 folds of whole queries (given folds)"


def test_what_is_held_out_by_default():
    assert CGRankRLS().fit(X, Y, qid=QID).selection_ == "5 folds of 30 queries"
    rows, labels, qid = ranking_data(61, queries=600, longest=9, n=6)
    model = CGRankRLS(random_state=1).fit(rows, labels, qid=qid)
    assert model.selection_ == "1 of 5 folds of 600 queries"
    again = CGRankRLS(random_state=1).fit(rows, labels, qid=qid)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    features, y = noisy(5, m=500)
    assert CGRankRLS().fit(features[:499], y[:499]).selection_ == "5 folds of 499 rows"
    assert CGRankRLS(random_state=0).fit(features, y).selection_ == "1 of 5 folds of 500 rows"
    features, y = noisy(5)
    assert CGRankRLS(cv=4).fit(features, y).selection_ == "4 folds of 120 rows"
    assert CGRankRLS(cv=4).fit(X, Y, qid=QID).selection_ == "4 folds of 30 queries"
    features, _ = noisy(5, m=600)
    rare = np.zeros(600)
    rare[:10] = 1.0  # a single fold could miss all ten
    assert CGRankRLS(random_state=0).fit(features, rare).selection_ == "5 folds of 600 rows"


def test_a_generator_draws_what_is_held_out():
    features, y = noisy(63, m=600)
    winners = np.arange(599)
    for seed in (0, 1):
        rows, again = (CGRankRLS(random_state=np.random.default_rng(seed)).fit(features, y) for _ in range(2))
        assert rows.selection_ == "1 of 5 folds of 600 rows"
        np.testing.assert_array_equal(rows.validation_surface_, again.validation_surface_)
        items = CGRankRLS(random_state=np.random.default_rng(seed)).fit_pairs(features, winners, winners + 1)
        assert items.selection_ == "1 of 5 folds of 600 items: new items"


@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_several_targets(ties):
    two = np.column_stack((Y, RNG.permutation(Y)))
    model = CGRankRLS((0.5,), ties=ties, **EXACT).fit(X, two, qid=QID)
    for t in range(2):
        one = CGRankRLS((0.5,), ties=ties, **EXACT).fit(X, two[:, t], qid=QID)
        np.testing.assert_allclose(model.coef_[t], one.coef_, atol=1e-12)
    chosen = CGRankRLS(ties=ties).fit(X, two, qid=QID, **{**VALIDATION, "y_val": np.column_stack((Y_VAL, Y_VAL))})
    assert chosen.predict(X_VAL).shape == (len(Y_VAL), 2)
    errors = [Measure("disagreement")(Y_VAL, chosen.predict(X_VAL)[:, t], qid=QID_VAL) for t in range(2)]
    assert chosen.best_score_ == pytest.approx(np.mean(errors))


def test_other_measures():
    model = CGRankRLS(scoring="ndcg@5").fit(X, Y, qid=QID, **VALIDATION)
    assert model.best_score_ == model.validation_surface_.max()
    assert model.best_score_ == pytest.approx(Measure("ndcg", k=5)(Y_VAL, model.predict(X_VAL), qid=QID_VAL))


def test_kernels_by_matrix_and_by_their_products():
    K, K_val = (X @ X.T + 1.0) ** 2, (X_VAL @ X.T + 1.0) ** 2
    w = np.random.default_rng(61).random(len(Y))
    w[::7] = 0.0
    expected = RankRLS(2.0, kernel="precomputed").fit(K, Y, qid=QID, sample_weight=w).predict(K_val)
    product = LinearOperator(K.shape, matvec=lambda v: K @ v, dtype=float)
    for kernel in (K, sparse.csr_array(K), aslinearoperator(K), product):
        model = CGRankRLS((2.0,), kernel="precomputed", max_iter=3000, **EXACT).fit(kernel, Y, qid=QID, sample_weight=w)
        np.testing.assert_allclose(model.predict(K_val), expected, atol=1e-6 * np.abs(expected).max())
        assert model.dual_coef_.shape == (len(Y),)
        np.testing.assert_allclose(model.predict(aslinearoperator(K_val)), model.predict(K_val), atol=1e-9)
    a, b = (
        CGRankRLS(kernel="precomputed").fit(k, Y, qid=QID, X_val=v, y_val=Y_VAL, qid_val=QID_VAL)
        for k, v in ((K, K_val), (aslinearoperator(K), aslinearoperator(K_val)))
    )
    np.testing.assert_allclose(a.validation_surface_, b.validation_surface_, atol=1e-12)
    # Rows of weight zero are still in an operator, which cannot be cut.
    groups = [np.flatnonzero(r == QID % 3) for r in range(3)]
    folds = [(np.setdiff1d(np.arange(len(Y)), test), test) for test in groups]
    a, b = (
        CGRankRLS((1.0, 30.0), kernel="precomputed", cv=folds).fit(k, Y, qid=QID, sample_weight=w)
        for k in (K, aslinearoperator(K))
    )
    np.testing.assert_allclose(a.validation_surface_, b.validation_surface_, atol=1e-12)
    np.testing.assert_allclose(a.dual_coef_, b.dual_coef_, atol=1e-10)
    # Held-out items of the same matrix, against folds of features.
    folds = list(GroupKFold(3).split(X, Y, QID))
    c = CGRankRLS((1.0, 30.0), kernel="precomputed", cv=folds, tol=1e-8).fit(aslinearoperator(X @ X.T), Y, qid=QID)
    d = CGRankRLS((1.0, 30.0), cv=folds, tol=1e-8).fit(X, Y, qid=QID)
    np.testing.assert_allclose(
        c.cv_results_["mean_score"], d.cv_results_["mean_score"], atol=0.02
    )  # other iterates, the same solutions
    for model_of_matrices in (CGRankRLS(), RankRLS(kernel="precomputed")):
        with Refusal("Expected 2D array", "LinearOperator", kind=ValueError):
            model_of_matrices.fit(product, Y)
    with Refusal("must be square", parameter="X"):
        CGRankRLS(kernel="precomputed").fit(aslinearoperator(K_val), Y_VAL)
    with Refusal("one label", parameter="y"):
        CGRankRLS(kernel="precomputed").fit(product, Y[:-1])
    with Refusal("is expecting", parameter="X"):
        model.predict(aslinearoperator(K_val[:, :-1]))


def test_pairs_are_judged_by_pairs():
    i, j = RNG.integers(0, 60, 300), RNG.integers(60, len(Y), 300)
    s, c = RNG.normal(size=300), RNG.integers(0, 3, 300).astype(float)
    pairs = {"strength": s, "weight": c}
    dense = CGRankRLS((2.0,), **EXACT).fit_pairs(X, i, j, **pairs)
    np.testing.assert_allclose(dense.coef_, RankRLS(2.0).fit_pairs(X, i, j, **pairs).coef_, atol=1e-9)
    K = X @ X.T
    dual = CGRankRLS((2.0,), kernel="precomputed", **EXACT).fit_pairs(aslinearoperator(K), i, j, **pairs)
    np.testing.assert_allclose(dual.predict(K), X @ dense.coef_, atol=1e-7)
    held = CGRankRLS().fit_pairs(X, i, j, **pairs)
    assert held.selection_.startswith("5 folds of ")
    grouped = CGRankRLS().fit_pairs(X, i, j, groups=i % 10)
    assert grouped.selection_ == "5 folds of 10 groups of preferences: new groups, known items"
    folded = CGRankRLS((1.0, 9.0), cv=3).fit_pairs(X, i, j, groups=i % 10)
    assert folded.selection_ == "3 folds of 10 groups of preferences: new groups, known items"
    assert folded.validation_surface_.shape[0] == 2
    i, j = RNG.integers(0, 60, 900), RNG.integers(60, len(Y), 900)
    votes = CGRankRLS((1.0,), random_state=0).fit_pairs(X, i, j, strength=RNG.normal(size=900), new="votes")
    assert votes.selection_ == "1 of 5 folds of 900 preferences: new votes, known items"
    grouped = CGRankRLS((1.0,), random_state=0).fit_pairs(X, i, j, groups=np.arange(900) % 600)
    assert grouped.selection_ == "1 of 5 folds of 600 groups of preferences: new groups, known items"


def test_warnings_where_the_model_is_not_what_was_asked_for():
    features, y = noisy(8)
    with pytest.warns(ConvergenceWarning, match=r"alpha=0\.001 has not converged.*too few iterations"):
        model = CGRankRLS((1e-3,), selection="tikhonov", max_iter=2).fit(features, y)
    assert model.status_ == ["max_iter"]
    assert model.n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match="still improved after max_iter=1"):
        CGRankRLS((1e-3,), max_iter=1, random_state=0).fit(features, y)
    K = features @ features.T - 50.0 * np.eye(120)
    with pytest.warns(ConvergenceWarning, match="not positive semidefinite"):
        model = CGRankRLS((1e-3,), selection="tikhonov", kernel="precomputed").fit(K, y)
    assert model.status_ == ["breakdown"]
    coarse = LinearOperator(
        (120, 120),
        matvec=lambda v: ((features @ features.T).astype(np.float32) @ v.astype(np.float32)).astype(float),
        dtype=float,
    )
    with pytest.warns(ConvergenceWarning, match="not converged to tol=1e-11.*: rounding"):
        model = CGRankRLS((1.0,), selection="tikhonov", kernel="precomputed", tol=1e-11).fit(coarse, y)
    assert model.status_ == ["stagnated"]


@pytest.mark.parametrize("selection", ["hybrid", "tikhonov"])
def test_features_that_tell_nothing_apart(selection):
    flat = {"X_val": np.eye(2), "y_val": [0, 1]}
    for model in (
        CGRankRLS(selection=selection).fit(np.ones((4, 2)), [0, 1, 2, 3], **flat),
        CGRankRLS(selection=selection).fit_pairs(sparse.csr_array(np.ones((4, 2))), [0, 1], [2, 3]),
    ):
        assert not model.coef_.any()
        assert model.validation_surface_.tolist() == [[0.5]]  # nothing that a grid could be relative to
        assert (model.alpha_, model.n_iter_, model.best_score_) == (1.0, 0, 0.5)
    model = CGRankRLS((1.0,), selection="tikhonov").fit(np.ones((4, 2)), [0, 1, 2, 3])
    assert not model.coef_.any()
    assert model.status_ == ["converged"]


@pytest.mark.parametrize(
    ("parameters", "refusal"),
    [
        ({"kernel": "rbf"}, Refusal("'linear', 'precomputed'", parameter="kernel")),
        ({"alphas": (-1.0,)}, Refusal("number", "least 0", parameter="alpha")),
        ({"selection": "early_stopping", "alphas": (0.0, 1.0)}, Refusal("one alpha", parameter="alphas")),
        ({"cv": 1}, Refusal("got 1", parameter="cv")),
    ],
)
def test_parameters_that_cannot_be(parameters, refusal):
    with refusal:
        CGRankRLS(**parameters).fit(X, Y, qid=QID)


def test_data_that_cannot_be_judged():
    flat = np.zeros(len(Y_VAL))
    with Refusal("two different labels", parameter="y_val"):
        CGRankRLS().fit(X, Y, qid=QID, **{**VALIDATION, "y_val": flat})
    with Refusal("X_val and y_val", parameter="X_val"):
        CGRankRLS().fit(X, Y, qid=QID, y_val=Y_VAL)
    with Refusal("validation data", parameter="cv"):
        CGRankRLS(cv=3).fit(X, Y, qid=QID, **VALIDATION)
    with Refusal("Without 1 no items", parameter="cv"):
        CGRankRLS().fit(X[:6], [0, 1, 2, 3, 3, 3], qid=[1, 1, 1, 2, 2, 2])
    with Refusal("nothing can be evaluated", parameter="cv"):
        CGRankRLS().fit(X[:4], [0, 1, 2, 3])
    with Refusal("two different labels are left", parameter="cv"):
        CGRankRLS().fit(X[:6], [0, 0, 0, 0, 0, 1])
    i, j = [0, 1, 2], [3, 4, 5]
    with Refusal("needs labels", parameter="scoring"):
        CGRankRLS(scoring="ndcg@5").fit_pairs(X, i, j)
    with Refusal("zero", parameter="weight"):
        CGRankRLS().fit_pairs(X, i, j, weight=[0.0, 0.0, 0.0])
    with Refusal("at least four", parameter="new"):
        CGRankRLS().fit_pairs(X, [0], [1])
    with Refusal("Only one group"):
        CGRankRLS().fit_pairs(X, [0], [1], new="votes")
    assert CGRankRLS((1.0,), selection="tikhonov").fit_pairs(X, [0], [1]).selection_ == "nothing held out"


@pytest.mark.filterwarnings("ignore:.*end of the grid")
@pytest.mark.parametrize("cv", [None, [(np.arange(96), np.arange(96, 120))]], ids=["folds", "a fifth"])
def test_the_measure_of_the_choice_and_its_bias_are_one_half_on_noise(cv):
    honest = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        rows, labels, qid = rng.normal(size=(120, 50)), rng.normal(size=120), np.repeat(np.arange(20), 6)
        model = CGRankRLS(cv=cv).fit(rows, labels, qid=qid)
        honest.append((model.best_score_, model.best_score_ + model.optimism_))
    score, corrected = np.mean(honest, axis=0)
    assert score < 0.485
    assert corrected == pytest.approx(0.5, abs=0.03)


def noise_of(kind, rng):
    """Arguments of ``fit``, or of ``fit_pairs`` for preferences, about few units."""
    if kind == "queries":
        return {"X": rng.normal(size=(48, 50)), "y": rng.normal(size=48), "qid": np.repeat(np.arange(8), 6)}
    if kind == "rows":
        return {"X": rng.normal(size=(40, 50)), "y": rng.normal(size=40)}
    if kind == "items":
        first, second = np.triu_indices(30, 1)
        values = rng.normal(size=30)
        turn = values[first] < values[second]
        ends = {"winners": np.where(turn, second, first), "losers": np.where(turn, first, second)}
        return {"X": rng.normal(size=(30, 50)), **ends}
    groups = {"groups": np.repeat(np.arange(10), 6)} if kind == "groups" else {}
    winners, losers = rng.permutation(120).reshape(2, 60)
    return {"X": rng.normal(size=(120, 50)), "winners": winners, "losers": losers, **groups}


@pytest.mark.filterwarnings("ignore:.*end of the grid")
@pytest.mark.parametrize("kind", ["queries", "rows", "items", "groups", "components"])
def test_a_choice_on_few_units_is_one_half_on_noise(kind):
    """A single fold holds out too few: its disagreement was .35 to .4, mostly without an estimate of the bias."""
    honest = []
    for seed in range(25):
        given = noise_of(kind, np.random.default_rng(seed))
        model = CGRankRLS()
        fit = model.fit if "y" in given else model.fit_pairs
        fit(**given)
        honest.append(model.best_score_ + model.optimism_)
    error = np.std(honest, ddof=1) / np.sqrt(len(honest))
    assert abs(np.mean(honest) - 0.5) < 3.0 * error
    assert error < 0.03


@pytest.mark.filterwarnings("ignore:.*end of the grid")
@pytest.mark.parametrize("kind", ["votes", "groups", "components"])
def test_a_choice_on_one_fold_of_many_votes_is_one_half_on_noise(kind):
    """The fold as one block has no estimate of the bias, and the disagreement was .47."""
    honest = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        winners, losers = rng.permutation(1000).reshape(2, 500)
        given = {"groups": {"groups": np.arange(500)}, "votes": {"new": "votes"}, "components": {}}[kind]
        model = CGRankRLS(patience=5).fit_pairs(rng.normal(size=(1000, 100)), winners, losers, **given)
        assert model.selection_.startswith("1 of 5 folds of 500")
        honest.append(model.best_score_ + model.optimism_)
    error = np.std(honest, ddof=1) / np.sqrt(len(honest))
    assert abs(np.mean(honest) - 0.5) < 2.0 * error
    assert error < 0.01


@pytest.mark.filterwarnings("ignore:.*end of the grid")
def test_repeated_votes_of_a_group_leave_the_standard_error_as_it_is():
    """Of one fold of groups, groups are blocks: five equal votes in each say no more than one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 5))
    winners, losers = rng.permutation(1200).reshape(2, 600)
    once, often = (
        CGRankRLS((1.0,)).fit_pairs(X, *np.repeat([winners, losers], n, axis=1), groups=np.repeat(np.arange(600), n))
        for n in (1, 5)
    )
    assert often.best_score_ == pytest.approx(once.best_score_)
    assert often.best_score_error_ == pytest.approx(once.best_score_error_)
    share = once.best_score_
    assert once.best_score_error_ == pytest.approx(np.sqrt(share * (1.0 - share) / 119))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_columns_whose_weights_the_iteration_does_not_reach_are_warned_of_once(kind):
    """A click rate beside a time in seconds, in any container; scaled columns are no reason to warn."""
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.beta(2, 98, 200), rng.normal(100, 70, 200), rng.uniform(0, 3e7, 200)))
    y = X / X.std(axis=0) @ [1.0, 0.5, 0.5] + rng.normal(size=200)
    with pytest.warns(InputWarning, match="column 2 varies .* as much as column 0.*Scale") as caught:
        CGRankRLS(random_state=0).fit(kind(X), y, qid=np.arange(200) // 10)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    CGRankRLS(random_state=0).fit(kind(X / X.std(axis=0)), y, qid=np.arange(200) // 10)


def test_the_held_out_fold_follows_from_the_ids_of_queries():
    rows, labels, qid = ranking_data(61, queries=600, longest=9, n=6)
    order = np.argsort(-qid, kind="stable")
    one = CGRankRLS((0.1, 10.0), random_state=0).fit(rows, labels, qid=qid)
    assert one.selection_ == "1 of 5 folds of 600 queries"
    other = CGRankRLS((0.1, 10.0), random_state=0).fit(rows[order], labels[order], qid=qid[order])
    np.testing.assert_allclose(other.validation_surface_, one.validation_surface_, rtol=1e-6)
