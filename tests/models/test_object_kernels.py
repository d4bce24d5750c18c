"""A kernel over arbitrary objects: words, compared by the letters that they share."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict

from rankrls import ConditionalRankRLS, RankRLS, RankRLSCV
from rankrls.model_selection import leave_query_out
from tests.models.oracles import held_out_by_refits, query_rows
from tests.refusals import Refusal


def shared_letters(left, right):
    """A count: the inner product of indicators."""
    return float(len({*left} & {*right}))


RNG = np.random.default_rng(60)
QID = RNG.permutation(np.repeat(np.arange(7), 4))
ITEMS, NEW = (["".join(word) for word in RNG.choice([*"abcdefghijklm"], (m, 6))] for m in (28, 5))
Y = np.round([("a" in word) + 2 * ("b" in word) - ("c" in word) for word in ITEMS] + 0.4 * RNG.normal(size=28))
K = np.array([[shared_letters(a, b) for b in ITEMS] for a in ITEMS])
K_NEW = np.array([[shared_letters(a, b) for b in ITEMS] for a in NEW])
ALPHAS = (0.1, 1.0, 100.0)


@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_fit_and_predict_equal_the_precomputed_kernel(ties):
    model = RankRLS(0.5, kernel=shared_letters, ties=ties).fit(ITEMS, Y, qid=QID)
    matrix = RankRLS(0.5, kernel="precomputed", ties=ties).fit(K, Y, qid=QID)
    np.testing.assert_allclose(model.predict(ITEMS), matrix.predict(K), atol=1e-9)
    np.testing.assert_allclose(model.predict(NEW), matrix.predict(K_NEW), atol=1e-9)
    assert model.score(ITEMS, Y, qid=QID) == matrix.score(K, Y, qid=QID) > 0.8
    np.testing.assert_array_equal(model.rank(ITEMS, qid=QID), matrix.rank(K, qid=QID))
    assert model.X_fit_ == ITEMS


def test_queries_that_are_objects():
    utilities = np.column_stack((Y, -Y, RNG.normal(size=len(Y))))
    model = ConditionalRankRLS(0.5, kernel=shared_letters).fit(ITEMS, utilities)
    matrix = ConditionalRankRLS(0.5, kernel="precomputed").fit(K, utilities)
    np.testing.assert_allclose(model.predict(NEW), matrix.predict(K_NEW), atol=1e-9)


def test_zero_weights_drop_objects():
    w = np.ones(len(Y))
    w[[1, 8]] = 0.0
    kept = np.flatnonzero(w)
    model = RankRLS(kernel=shared_letters).fit(ITEMS, Y, qid=QID, sample_weight=w)
    expected = RankRLS(kernel=shared_letters).fit([ITEMS[k] for k in kept], Y[kept], qid=QID[kept])
    np.testing.assert_allclose(model.predict(NEW), expected.predict(NEW), atol=1e-12)


@pytest.mark.parametrize("as_array", [False, True])
def test_leave_query_out_equals_refits(as_array):
    items = np.empty(len(ITEMS), dtype=object)
    items[:] = ITEMS
    model = RankRLSCV(ALPHAS, kernel=shared_letters).fit(items if as_array else ITEMS, Y, qid=QID)
    for k, alpha in enumerate(model.cv_results_["alpha"]):
        make = lambda a=alpha: RankRLS(a, kernel=shared_letters)
        scores = held_out_by_refits(make, items, Y, QID, query_rows(QID))
        np.testing.assert_allclose(leave_query_out(make(), ITEMS, Y, qid=QID), scores, atol=1e-8)
        if alpha == model.alpha_:
            np.testing.assert_allclose(model.held_out_scores_, scores, atol=1e-8)
        matrix = RankRLSCV((alpha,), kernel="precomputed").fit(K, Y, qid=QID)
        assert model.cv_results_["mean_score"][k] == pytest.approx(matrix.best_score_)
    np.testing.assert_allclose(
        model.predict(NEW), RankRLS(model.alpha_, kernel=shared_letters).fit(ITEMS, Y, qid=QID).predict(NEW)
    )


def test_grid_search():
    cv, params = GroupKFold(3), {"qid": QID, "groups": QID}
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(RankRLS(kernel=shared_letters), {"alpha": list(ALPHAS)}, cv=cv)
        search.fit(ITEMS, Y, **params)
        held_out = cross_val_predict(RankRLS(kernel=shared_letters), ITEMS, Y, cv=cv, params=params)
    for k, alpha in enumerate(ALPHAS):
        for fold, (train, test) in enumerate(cv.split(ITEMS, Y, QID)):
            model = RankRLS(alpha, kernel="precomputed").fit(K[np.ix_(train, train)], Y[train], qid=QID[train])
            expected = model.score(K[np.ix_(test, train)], Y[test], qid=QID[test])
            assert search.cv_results_[f"split{fold}_test_score"][k] == pytest.approx(expected)
            if alpha == RankRLS().alpha:
                np.testing.assert_allclose(held_out[test], model.predict(K[np.ix_(test, train)]))
    np.testing.assert_allclose(search.predict(NEW), search.best_estimator_.predict(NEW))


@pytest.mark.parametrize(
    ("kernel", "refusal"),
    [
        (lambda a, b: np.nan, Refusal("returned", "items 0", parameter="kernel")),
        (lambda a, b: None, Refusal("returned None", parameter="kernel")),
        (lambda a, b: np.ones(2), Refusal("return", parameter="kernel")),
    ],
)
def test_kernels_that_are_none(kernel, refusal):
    with refusal:
        RankRLS(kernel=kernel).fit(ITEMS, Y, qid=QID)


@pytest.mark.parametrize(
    ("X", "y", "refusal"),
    [
        ([], [], Refusal("0 samples", parameter="y")),
        (ITEMS, Y[:-1], Refusal("28 rows", "label", parameter="y")),
        (ITEMS, None, Refusal("requires", parameter="y")),
        (ITEMS, [np.nan, *Y[1:]], Refusal("contains NaN", parameter="y", row=0)),
    ],
)
def test_bad_objects(X, y, refusal):
    for model in (RankRLS(kernel=shared_letters), RankRLSCV(kernel=shared_letters)):
        with refusal:
            model.fit(X, y)
