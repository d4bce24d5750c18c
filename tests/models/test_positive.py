"""``positive=``: what it takes, what it refuses, and that selection, updates and export see the constraints."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import lsq_linear
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import RankRLS, RankRLSCV
from rankrls.export import to_solr
from rankrls.metrics import Measure
from rankrls.model_selection import leave_pair_out, leave_preference_out, leave_query_out
from tests.models.oracles import GRAPHS, centred, graph_id, held_out_by_refits, laplacian, query_rows, ranking_data
from tests.refusals import Refusal

X, Y, QID = ranking_data(70, queries=9, n=6)
NAMES = np.array(list("abcdef"), dtype=object)
SIGNS = dict(enumerate((1, -1, 0, 0, 1, -1)))


def bounded(X, L, y, alpha, signs):
    """By the bounded least squares of scipy; ``signs`` by feature."""
    values, vectors = np.linalg.eigh(L)
    F = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    stacked = np.vstack((F @ X, np.sqrt(alpha) * np.eye(X.shape[1])))
    right = np.concatenate((F @ y, np.zeros(X.shape[1])))
    signs = np.array([signs[k] for k in range(X.shape[1])])
    low, high = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    return lsq_linear(stacked, right, (low, high), method="bvls", tol=1e-15, max_iter=500).x


@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
def test_every_graph_and_kind_of_features(graph):
    w = np.random.default_rng(0).random(len(Y)) + 0.1
    expected = bounded(X, laplacian(Y, QID, w, graph), Y, 0.3, SIGNS)
    for features in (X, sparse.csr_matrix(X), pd.DataFrame(X)):
        model = RankRLS(0.3, positive=SIGNS, **graph).fit(features, Y, qid=QID, sample_weight=w)
        np.testing.assert_allclose(model.coef_, expected, rtol=1e-7, atol=1e-9)
    single = RankRLS(0.3, positive=SIGNS, **graph).fit(X.astype(np.float32), Y, qid=QID, sample_weight=w)
    np.testing.assert_allclose(single.coef_, expected, rtol=1e-5, atol=1e-6)


def test_targets_and_more_features_than_items():
    wide = np.random.default_rng(1).normal(size=(len(Y), 2 * len(Y)))
    both = np.column_stack((Y, -Y))
    model = RankRLS(positive=True).fit(wide, both, qid=QID)
    assert model.coef_.shape == (2, wide.shape[1])
    graph = GRAPHS[0] | {"balance": "examples"}
    for t in (0, 1):
        expected = bounded(wide, laplacian(both[:, t], QID, None, graph), both[:, t], 1.0, np.ones(wide.shape[1]))
        np.testing.assert_allclose(model.coef_[t], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("given", "signs"),
    [
        (np.bool_(True), dict.fromkeys(range(6), 1)),
        ([], {}),
        ({"a": 0}, {}),
        (("b", 0), {0: 1, 1: 1}),
        (np.array([0, 4]), {0: 1, 4: 1}),
        (range(2), {0: 1, 1: 1}),
        ({"c": -1, 0: 1, "e": 0}, {0: 1, 2: -1}),
        (np.array([False, False, True, False, True, False]), {2: 1, 4: 1}),
        ([True, False, False, True, False, False], {0: 1, 3: 1}),
    ],
    ids=str,
)
def test_forms(given, signs):
    frame = pd.DataFrame(X, columns=NAMES)
    one, other = (RankRLS(positive=positive).fit(frame, Y, qid=QID).coef_ for positive in (given, signs))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ("a", Refusal("True", parameter="positive")),
        (1, Refusal("True", parameter="positive")),
        (None, Refusal("True", parameter="positive")),
        (np.array(1), Refusal("True", parameter="positive")),
        ([0.5], Refusal("feature 0.5", parameter="positive")),
        ([6], Refusal("feature 6", parameter="positive", remedy="-1, 0 or 1")),
        ([-1, 1], Refusal("names feature -1", parameter="positive")),
        (["z"], Refusal("feature 'z'", "names", parameter="positive")),
        ([True, False], Refusal("mask of shape (2,)", "6 features", parameter="positive")),
        ({"a": 2}, Refusal("with sign 2", parameter="positive")),
    ],
    ids=str,
)
def test_refused_forms(given, refusal):
    frame = pd.DataFrame(X, columns=NAMES)
    for model in (RankRLS(positive=given), RankRLSCV(positive=given)):
        with refusal:
            model.fit(frame, Y, qid=QID)


@pytest.mark.parametrize(
    ("model", "refusal"),
    [
        (RankRLS(positive=True, kernel="rbf"), Refusal("got kernel='rbf'", parameter="positive")),
        (RankRLS(positive=[0], solver="dual"), Refusal(parameter="positive", remedy="solver='auto'")),
        (RankRLSCV(positive=True, kernel=("linear", "rbf")), Refusal("got kernel='rbf'", parameter="positive")),
        (RankRLSCV(positive=True, solver="dual"), Refusal("got solver='dual'", parameter="positive")),
    ],
    ids=str,
)
def test_only_weights_of_features_have_signs(model, refusal):
    with refusal:
        model.fit(X, Y, qid=QID)
    with refusal:
        model.fit_pairs(X, [0, 1], [1, 2])


def test_held_out_queries_equal_refits():
    alphas = (0.1, 3.0)
    held = leave_query_out(RankRLS(positive=SIGNS), X, Y, qid=QID, alphas=alphas)
    for k, alpha in enumerate(alphas):
        expected = held_out_by_refits(lambda a=alpha: RankRLS(a, positive=SIGNS), X, Y, QID, query_rows(QID))
        np.testing.assert_allclose(centred(held[:, k], QID), centred(expected, QID), rtol=1e-7, atol=1e-9)
    free = leave_query_out(RankRLS(), X, Y, qid=QID, alphas=alphas)
    assert np.abs(free - held).max() > 1e-2  # the constraints bind


def test_selection_by_queries_is_selection_by_refits():
    alphas = (0.1, 3.0, 100.0)
    model = RankRLSCV(alphas, positive=True).fit(X, Y, qid=QID)
    assert model.selection_ == "leave-query-out over 9 queries"
    errors = []
    for alpha in alphas:
        scores = held_out_by_refits(lambda a=alpha: RankRLS(a, positive=True), X, Y, QID, query_rows(QID))
        errors.append(float(Measure("disagreement")(Y, scores, qid=QID)))
    np.testing.assert_allclose(np.sort(model.cv_results_["mean_score"]), np.sort(errors), rtol=1e-12)
    assert model.best_score_ == pytest.approx(min(errors))
    np.testing.assert_array_equal(model.coef_, RankRLS(model.alpha_, positive=True).fit(X, Y, qid=QID).coef_)
    assert (model.coef_ >= 0.0).all()
    assert clone(model).get_params()["positive"] is True


def test_selection_of_a_global_ranking_takes_folds_of_rows():
    assert RankRLSCV(positive=True).fit(X, Y).selection_ == f"5 folds of {len(Y)} rows"
    assert RankRLSCV(positive=[]).fit(X, Y).selection_ == f"leave-pair-out over {len(Y)} items"
    folds = [(np.arange(0, len(Y), 2), np.arange(1, len(Y), 2))]
    model = RankRLSCV((1.0, 10.0), positive=SIGNS, cv=folds).fit(X, Y)
    train, test = folds[0]
    errors = [
        float(Measure("disagreement")(Y[test], RankRLS(a, positive=SIGNS).fit(X[train], Y[train]).predict(X[test])))
        for a in (10.0, 1.0)
    ]
    np.testing.assert_allclose(model.cv_results_["mean_score"], errors)


def test_pairs_of_items_are_not_held_out():
    labels = (Y > 1).astype(int)
    with Refusal("are constrained", parameter="positive"):
        leave_pair_out(RankRLS(positive=True), X, labels)


def test_preferences():
    rng = np.random.default_rng(2)
    i, j = rng.integers(0, len(X), (2, 80))
    i, j = i[i != j], j[i != j]
    model = RankRLS(0.5, positive=SIGNS).fit_pairs(X, i, j)
    stacked = np.vstack((X[i] - X[j], np.sqrt(0.5) * np.eye(6)))
    signs = np.array(list(SIGNS.values()))
    low, high = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    right = np.concatenate((np.ones(len(i)), np.zeros(6)))
    expected = lsq_linear(stacked, right, (low, high), method="bvls", tol=1e-15).x
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-8, atol=1e-10)
    lead = leave_preference_out(RankRLS(0.5, positive=SIGNS), X, i, j)
    for e in (0, 7, 30):
        rest = np.arange(len(i)) != e
        refit = RankRLS(0.5, positive=SIGNS).fit_pairs(X, i[rest], j[rest])
        assert lead[e] == pytest.approx((X[i[e]] - X[j[e]]) @ refit.coef_, rel=1e-7)
    chosen = RankRLSCV(positive=True).fit_pairs(X, i, j)
    assert (chosen.coef_ >= 0.0).all()
    assert (RankRLSCV().fit_pairs(X, i, j).coef_ < 0.0).any()


def test_updates():
    half = np.isin(QID, np.unique(QID)[::2])
    full = RankRLS(0.3, positive=SIGNS).fit(X, Y, qid=QID)
    assert (full.coef_ == 0.0).any()
    model = RankRLS(0.3, positive=SIGNS).partial_fit(X[half], Y[half], qid=QID[half])
    model.partial_fit(X[~half], Y[~half], qid=QID[~half])
    np.testing.assert_allclose(model.coef_, full.coef_, rtol=1e-9, atol=1e-12)


def test_what_a_constraint_holds_is_not_exported():
    frame = pd.DataFrame(X, columns=NAMES)
    scaler = StandardScaler().set_output(transform="pandas")
    ranker = RankRLS(1.0, positive={"a": -1}).fit(scaler.fit_transform(frame), Y, qid=QID)
    assert ranker.coef_[0] == 0.0
    exported = to_solr(make_pipeline(scaler, ranker)).content
    assert '"b"' in str(exported)
    assert '"a"' not in str(exported)
