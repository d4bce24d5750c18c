"""Conditional ranking against dense systems over all pairs, and its shortcuts against refits."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings, strategies as st
from scipy import sparse
from scipy.stats import kendalltau
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import ConditionalRankRLS, ConditionalRankRLSCV, InputError, Items, RankRLS, RankRLSCV
from rankrls.export import to_solr
from rankrls.metrics import Measure
from tests.oracles import gaussian
from tests.refusals import Refusal

KERNELS = {"linear": lambda A, B: A @ B.T, "rbf": lambda A, B: gaussian(A, B, 0.3)}


def made(seed, *, q=9, d=5):
    rng = np.random.default_rng(seed)
    X, Z, Y = rng.normal(size=(q, 3)) + 2.0, rng.normal(size=(d, 2)) - 1.0, rng.normal(size=(q, d))
    return X, Z, Y


def dense_scores(X, Z, Y, alpha, kernel, item_kernel, new_X, new_Z):
    """By one dense system over all utilities; Z None is the identity."""
    u, i = np.nonzero(np.ones(Y.shape))
    C = np.eye(len(u)) - (u[:, None] == u) / np.bincount(u, minlength=len(Y))[u]
    between = lambda a, b: (
        (np.arange(Y.shape[1])[:, None] == np.arange(Y.shape[1])).astype(float) if Z is None else item_kernel(a, b)
    )
    G = between(Z, Z)
    M = kernel(X, X)[np.ix_(u, u)] * G[np.ix_(i, i)]
    a = np.zeros(Y.shape)
    a[u, i] = C @ np.linalg.solve(C @ M @ C + alpha * np.eye(len(u)), C @ Y[u, i])
    return kernel(new_X, X) @ a @ between(new_Z, Z).T


def centred(scores):
    return scores - scores.mean(axis=1, keepdims=True)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from([1e-2, 1.0, 1e3]),
    kernel=st.sampled_from(sorted(KERNELS)),
    item_kernel=st.sampled_from([None, *sorted(KERNELS)]),
    form=st.sampled_from([np.asarray, sparse.csr_array]),
)
def test_scores_of_new_queries_and_new_items_are_those_of_the_dense_system(seed, alpha, kernel, item_kernel, form):
    X, Z, Y = made(seed)
    rng = np.random.default_rng(seed + 1)
    new_X, new_Z = rng.normal(size=(4, 3)), None if item_kernel is None else rng.normal(size=(6, 2))
    items = None if item_kernel is None else Items(form(Z))
    model = ConditionalRankRLS(alpha, kernel=kernel, gamma=0.3, item_kernel=item_kernel or "linear", item_gamma=0.3)
    model.fit(form(X), Y, items=items)
    k, g = KERNELS[kernel], KERNELS.get(item_kernel)
    given_Z = None if item_kernel is None else Z
    for own in (True, False):
        expected = dense_scores(X, given_Z, Y, alpha, k, g, new_X, given_Z if own else new_Z)
        found = model.predict(form(new_X), items=None if own or item_kernel is None else Items(form(new_Z)))
        np.testing.assert_allclose(centred(found), centred(expected), atol=1e-7 * max(1.0, np.abs(expected).max()))


def test_items_in_which_one_direction_is_next_to_nothing():
    """Its eigenvector is found mixed with the items' mean, which must not reach the scores."""
    X, Z, Y = made(5)
    wide = lambda A, B: gaussian(A, B, 0.003)
    found = ConditionalRankRLS(1e-3, item_kernel="rbf", item_gamma=0.003).fit(X, Y, items=Items(Z)).predict(X)
    expected = dense_scores(X, Z, Y, 1e-3, KERNELS["linear"], wide, X, Z)
    np.testing.assert_allclose(centred(found), centred(expected), atol=1e-8)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize(
    ("item_kernel", "fit_intercept"),
    [(None, False), (None, True), ("linear", False), ("rbf", False), ("precomputed", False)],
)
def test_held_out_scores_of_every_alpha_equal_refits(kernel, item_kernel, fit_intercept):
    X, Z, Y = made(7)
    X = gaussian(X, X, 0.3) if kernel == "precomputed" else X
    items = None if item_kernel is None else Items(gaussian(Z, Z, 0.3) if item_kernel == "precomputed" else Z)
    options = {"kernel": kernel, "gamma": 0.3, "item_gamma": 0.3, "fit_intercept": fit_intercept}
    options["item_kernel"] = item_kernel or "linear"
    for alpha in (1e-4, 0.1, 1e2, 1e6):
        held = ConditionalRankRLSCV([alpha], **options).fit(X, Y, items=items).held_out_scores_
        for u in range(len(Y)):
            rest = np.arange(len(Y)) != u
            cut = X[np.ix_(rest, rest)] if kernel == "precomputed" else X[rest]
            row = X[[u]][:, rest] if kernel == "precomputed" else X[[u]]
            found = ConditionalRankRLS(alpha, **options).fit(cut, Y[rest], items=items).predict(row)
            np.testing.assert_allclose(centred(held[[u]]), centred(found), atol=1e-8)


@pytest.mark.parametrize("gamma", [0.2, 1e-3, 1e-5])
def test_held_out_scores_with_intercepts_equal_refits_if_queries_hardly_differ(gamma):
    """The kernel's rounding errors exceed the smallest eigenvalues that are left when it is centred."""
    X = np.ones((5, 5))
    X[3, 2:] = [0.0, 2.0, 2.0]
    Y = np.array([[1.0, 1.0], [2.0, 2.0], [0.0, 1.0], [2.0, 1.0], [0.0, 1.0]])
    options = {"kernel": "rbf", "gamma": gamma, "fit_intercept": True}
    held = ConditionalRankRLSCV([1.0], **options).fit(X, Y).held_out_scores_
    for u in range(5):
        rest = np.arange(5) != u
        found = ConditionalRankRLS(1.0, **options).fit(X[rest], Y[rest]).predict(X[[u]])
        np.testing.assert_allclose(centred(held[[u]]), centred(found), atol=1e-8)


@pytest.mark.parametrize(
    ("item_kernel", "fit_intercept"), [(None, False), (None, True), ("linear", False), ("rbf", False)]
)
def test_squared_error_of_pairs_is_that_of_the_held_out_scores(item_kernel, fit_intercept):
    X, Z, Y = made(11, q=12, d=7)
    options = {"kernel": "rbf", "gamma": 0.3, "item_kernel": item_kernel or "linear", "item_gamma": 0.3}
    model = ConditionalRankRLSCV(
        [1e-3, 0.3, 50.0], scoring="pair_squared_error", fit_intercept=fit_intercept, **options
    )
    model.fit(X, Y, items=None if item_kernel is None else Items(Z))
    qid = np.repeat(np.arange(12), 7)
    expected = Measure("pair_squared_error")(Y.ravel(), model.held_out_scores_.ravel(), qid=qid, per_query=True)
    np.testing.assert_allclose(model.query_scores_, expected, rtol=1e-9)


def test_it_is_rankrls_on_the_kronecker_product():
    X, Z, Y = made(3)
    rows = np.array([np.kron(x, z) for x in X for z in Z])
    ranker = RankRLS(alpha=0.4).fit(rows, Y.ravel(), qid=np.repeat(np.arange(len(X)), len(Z)))
    model = ConditionalRankRLS(0.4).fit(X, Y, items=Items(Z))
    new = np.random.default_rng(0).normal(size=(5, 3))
    expected = ranker.predict(np.array([np.kron(x, z) for x in new for z in Z])).reshape(5, -1)
    np.testing.assert_allclose(centred(model.predict(new)), centred(expected), atol=1e-10)


def test_intercepts_are_a_feature_without_penalty():
    X, _, Y = made(5, q=15)
    model = ConditionalRankRLS(0.5, fit_intercept=True).fit(X, Y)
    wide = lambda X: np.column_stack((X, np.full(len(X), 100.0)))
    almost = ConditionalRankRLS(0.5).fit(wide(X), Y)
    np.testing.assert_allclose(centred(model.predict(X)), centred(almost.predict(wide(X))), atol=1e-3)
    shifted = ConditionalRankRLS(0.5, fit_intercept=True).fit(X + 7.0, Y)
    np.testing.assert_allclose(centred(shifted.predict(X + 7.0)), centred(model.predict(X)), atol=1e-7)


def test_the_best_alpha_is_that_of_the_held_out_measure():
    X, _, Y = made(2, q=20)
    model = ConditionalRankRLSCV(fit_intercept=True, scoring="tau").fit(X, Y)
    taus = [kendalltau(y, f)[0] for y, f in zip(Y, model.held_out_scores_, strict=True)]
    assert model.best_score_ == pytest.approx(np.mean(taus))
    assert model.best_score_ == model.cv_results_["mean_score"].max()
    assert len(model.cv_results_["alpha"]) == 21
    for alpha, value in zip(model.cv_results_["alpha"], model.cv_results_["mean_score"], strict=True):
        alone = ConditionalRankRLSCV([alpha], fit_intercept=True, scoring="tau").fit(X, Y)
        assert alone.best_score_ == pytest.approx(value)
    simple = ConditionalRankRLSCV(fit_intercept=True, scoring="tau", rule="one_se").fit(X, Y)
    assert simple.alpha_ >= model.alpha_


def test_items_travel_through_scikit_learn_uncut_even_if_there_are_as_many_as_queries():
    X, Z, Y = made(4, q=8, d=8)
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(ConditionalRankRLS(), X, Y, params={"items": Items(Z)}, cv=2)
        pipeline = make_pipeline(StandardScaler(), ConditionalRankRLS())
        search = GridSearchCV(pipeline, {"conditionalrankrls__alpha": [1, 9]})
        search.fit(X, Y, items=Items(Z))
    assert np.isfinite(scores).all()
    for train, expected in zip((np.arange(4, 8), np.arange(4)), scores, strict=True):
        test = np.setdiff1d(np.arange(8), train)
        model = ConditionalRankRLS().fit(X[train], Y[train], items=Items(Z))
        assert model.score(X[test], Y[test]) == pytest.approx(expected)


def test_rank_and_score():
    X, Z, Y = made(6)
    model = ConditionalRankRLS(0.1).fit(X, Y, items=Items(Z))
    scores, positions = model.predict(X), model.rank(X)
    np.testing.assert_array_equal(np.sort(positions, axis=1), np.tile(np.arange(1, 6), (9, 1)))
    np.testing.assert_array_equal(positions[np.arange(9), scores.argmax(axis=1)], 1)
    assert model.score(X, scores) == 1.0
    assert model.score(X, -scores) == 0.0


def test_kernels_may_be_functions():
    X, Z, Y = made(6)
    inner = lambda a, b: float(a @ b)
    named = ConditionalRankRLS(0.1).fit(X, Y, items=Items(Z))
    model = ConditionalRankRLS(0.1, kernel=inner, item_kernel=inner).fit(X, Y, items=Items(Z))
    np.testing.assert_allclose(centred(model.predict(X)), centred(named.predict(X)), atol=1e-10)


def _indefinite(n):
    K = np.eye(n)
    K[0, 1] = K[1, 0] = 3.0
    return K


@pytest.mark.parametrize(
    ("options", "changes", "parameter"),
    [
        ({"alpha": 0.0}, {}, "alpha"),
        ({"kernel": "precomputed"}, {}, "X"),
        ({"kernel": "precomputed"}, {"X": _indefinite(9)}, "kernel"),
        ({"item_kernel": "precomputed"}, {"items": Items(_indefinite(5))}, "item_kernel"),
        ({"item_kernel": "precomputed"}, {"items": Items(np.eye(5)[:, :4])}, "items"),
        ({}, {"Y": np.zeros((9, 1))}, "y"),
        ({}, {"items": Items(np.eye(4))}, "items"),
        ({}, {"items": Items(np.full((5, 2), np.nan))}, "items"),
        ({"fit_intercept": True}, {"items": Items(np.eye(5))}, "fit_intercept"),
        ({"item_kernel": "precomputed"}, {"items": Items(np.ones((5, 4)))}, "items"),
        ({}, {"Y": np.full((9, 5), 2.0)}, "y"),
        ({}, {"Y": np.where(np.eye(9)[:, :5] > 0, 1.0, np.nan)}, "y"),
        ({}, {"Y": np.full((9, 5), np.inf)}, "y"),
        ({}, {"Y": np.zeros((8, 5))}, "y"),
    ],
)
def test_refusals(options, changes, parameter):
    X, _, Y = made(0)
    given = {"X": X, "Y": Y, "items": None, **changes}
    with pytest.raises(ValueError) as error:
        ConditionalRankRLS(**options).fit(given["X"], given["Y"], items=given["items"])
    assert error.value.parameter == parameter


def test_unknown_utilities_are_refused_and_the_documented_remedy_works():
    """Rows of the known utilities, with the query as qid, order the items of new queries by the same truth."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(40, 3)), rng.normal(size=(12, 2))
    Y = X @ rng.normal(size=(3, 2)) @ Z.T
    rated = np.where(rng.random(Y.shape) < 0.4, Y, np.nan)
    with Refusal("NaN", parameter="y"):
        ConditionalRankRLS().fit(X[:30], rated[:30], items=Items(Z))
    products = np.einsum("ua,ib->uiab", X, Z).reshape(40, 12, -1)
    query, item = np.nonzero(np.isfinite(rated[:30]))
    model = RankRLSCV().fit(products[query, item], rated[query, item], qid=query)
    for scores, utilities in zip(model.predict(products[30:].reshape(120, -1)).reshape(10, 12), Y[30:], strict=True):
        assert kendalltau(scores, utilities).statistic > 0.9


def test_the_remedy_for_an_intercept_of_items_learns_which_items_are_popular():
    rng = np.random.default_rng(1)
    X, Z, popularity = rng.normal(size=(60, 2)), rng.normal(size=(12, 2)), rng.normal(size=12)
    Y = 0.3 * X @ rng.normal(size=(2, 2)) @ Z.T + popularity
    with Refusal("Add a constant feature to X and an indicator of each item to items", parameter="fit_intercept"):
        ConditionalRankRLS(fit_intercept=True).fit(X, Y, items=Items(Z))
    constant = np.hstack([X, np.ones((60, 1))])
    indicators = np.hstack([Z, np.eye(12)])
    scores = {}
    for name, features in (("constant", Z), ("both", indicators)):
        model = ConditionalRankRLS(0.1).fit(constant[:40], Y[:40], items=Items(features))
        scores[name] = model.score(constant[40:], Y[40:])
    assert scores["constant"] < 0.9 < 0.98 < scores["both"]


def test_a_wrong_number_of_items_does_not_blame_the_class_that_was_used():
    X, Z, Y = made(0)
    with Refusal("There are 4 items, but y has 5 columns. Pass one row of features for each column", parameter="items"):
        ConditionalRankRLS().fit(X, Y, items=Items(Z[:4]))


def test_refusals_at_predict():
    X, Z, Y = made(0)
    with pytest.raises(ValueError) as error:
        ConditionalRankRLS().fit(X, Y).predict(X, items=Items(Z))
    assert error.value.parameter == "items"
    with pytest.raises(ValueError) as error:
        ConditionalRankRLS().fit(X, Y, items=Items(Z)).predict(X, items=Items(Z[:, :1]))
    assert error.value.parameter == "items"


def test_a_model_of_rows_is_asked_for():
    """Exports and explanations of one score a row do not take a model that orders items for each row."""
    rng = np.random.default_rng(0)
    model = ConditionalRankRLS().fit(rng.normal(size=(8, 3)), rng.normal(size=(8, 4)))
    with pytest.raises(InputError) as caught:
        to_solr(model, "m")
    assert caught.value.parameter == "model"
    assert "one score" in str(caught.value)


def test_queries_that_compare_nothing():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 4)), rng.normal(size=(12, 5))
    model = ConditionalRankRLS().fit(X, Y)
    with Refusal("Nothing to compare", parameter="y"):
        model.score(X, np.ones_like(Y))
    constant = Y.copy()
    constant[3] = 1.0
    with Refusal("Nothing to compare", parameter="y"):
        model.score(X, constant, sample_weight=np.arange(12) == 3)
    assert model.score(X, constant) == pytest.approx(model.score(np.delete(X, 3, 0), np.delete(Y, 3, 0)))


def test_queries_are_scored_by_their_weights():
    rng = np.random.default_rng(0)
    X, Y, w = rng.normal(size=(12, 3)), rng.normal(size=(12, 4)), rng.uniform(0.0, 3.0, 12)
    model = ConditionalRankRLS().fit(X, Y)
    each = [model.score(X[q : q + 1], Y[q : q + 1]) for q in range(12)]
    np.testing.assert_allclose(model.score(X, Y, sample_weight=w), np.average(each, weights=w))
