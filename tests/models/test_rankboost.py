"""RankBoost as an estimator: what changes its model and what must not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_selection import SelectFromModel

from rankrls import RankBoost
from rankrls.metrics import Measure, preference_accuracy
from tests.models.oracles import ranking_data
from tests.refusals import Refusal

ROUNDS = 25


def fitted(X, y, qid=None, *, weights=None, **parameters):
    return RankBoost(n_estimators=ROUNDS, **parameters).fit(X, y, qid=qid, sample_weight=weights)


def same_model(a, b, *, rtol=1e-9):
    np.testing.assert_array_equal(a.features_, b.features_)
    np.testing.assert_allclose(a.thresholds_, b.thresholds_, rtol=rtol)
    np.testing.assert_allclose(a.weights_, b.weights_, rtol=rtol)
    np.testing.assert_allclose(a.train_loss_, b.train_loss_, rtol=rtol)


@pytest.mark.parametrize("balance", ["pairs", "examples", "queries"])
def test_what_must_not_change_the_model(balance):
    X, y, qid = ranking_data(1, queries=9)
    w = np.random.default_rng(5).integers(0, 4, len(y))
    parameters = {"balance": balance}
    model = fitted(X, y, qid, weights=w, **parameters)
    assert model.n_estimators_ == ROUNDS
    order = np.random.default_rng(0).permutation(len(y))
    same_model(model, fitted(X[order], y[order], qid[order], weights=w[order], **parameters))
    same_model(model, fitted(X, y, [f"query {q}" for q in qid], weights=w, **parameters))
    same_model(model, fitted(X, np.exp(y) - 7.0, qid, weights=w, **parameters))  # only the order of labels counts
    same_model(model, fitted(X, y + 10.0 * qid, qid, weights=w, **parameters))
    rows = np.repeat(np.arange(len(y)), w)
    same_model(model, fitted(X[rows], y[rows], qid[rows], **parameters))
    if balance != "examples":  # equal factors cancel: D is a distribution
        same_model(model, fitted(X, y, qid, weights=2.5 * w, **parameters))
    same_model(model, fitted(sparse.csr_array(X), y, qid, weights=w, **parameters))


def test_float32_and_sparse():
    X, y, qid = ranking_data(4)
    X = X.astype(np.float32).astype(float)
    model = fitted(X, y, qid)
    for given in (X.astype(np.float32), sparse.csr_matrix(X), sparse.csc_array(X), X[:, ::-1][:, ::-1]):
        same_model(model, fitted(given, y, qid))
        np.testing.assert_allclose(model.predict(given), model.predict(X), atol=1e-12)
    nothing = fitted(sparse.csr_array(X.shape), y, qid)
    assert (nothing.n_estimators_, nothing.stopped_) == (0, "no edge")


def test_stages_and_importances():
    X, y, qid = ranking_data(5)
    model = fitted(X, y, qid, balance="pairs")
    for given in (X, sparse.csr_array(X)):
        stages = list(model.staged_predict(given))
        assert len(stages) == model.n_estimators_ == ROUNDS
        np.testing.assert_allclose(stages[-1], model.predict(X), atol=1e-12)
    better, worse = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    for stage, loss in zip(stages, model.train_loss_, strict=True):
        assert 1.0 - preference_accuracy(stage, better, worse) <= loss
    np.testing.assert_allclose(
        stages[0] > 0, (X[:, model.features_[0]] > model.thresholds_[0]) & (model.weights_[0] > 0)
    )
    expected = [np.abs(model.weights_[model.features_ == f]).sum() for f in range(4)]
    np.testing.assert_allclose(model.feature_importances_, expected / np.sum(expected))
    selected = SelectFromModel(model, prefit=True, threshold="mean").transform(X)
    np.testing.assert_array_equal(selected, X[:, expected >= np.mean(expected)])
    short = RankBoost(n_estimators=7, balance="pairs").fit(X, y, qid=qid)
    np.testing.assert_array_equal(short.weights_, model.weights_[:7])
    assert short.stopped_ == "n_estimators"


@pytest.mark.parametrize("scoring", ["disagreement", "map"])
def test_validation_data_choose_the_first_of_the_best_rounds(scoring):
    X, y, qid = ranking_data(6, queries=12)
    X_val, y_val, qid_val = ranking_data(7, queries=12)
    validation = {"X_val": X_val, "y_val": y_val, "qid_val": qid_val}
    model = RankBoost(n_estimators=60, scoring=scoring).fit(X, y, qid=qid, **validation)
    everything = RankBoost(n_estimators=60).fit(X, y, qid=qid)
    sign, measure = (-1.0, "disagreement") if scoring == "disagreement" else (1.0, "average_precision")
    values = sign * np.array([Measure(measure)(y_val, s, qid=qid_val) for s in everything.staged_predict(X_val)])
    np.testing.assert_allclose(sign * model.cv_results_["mean_score"], values)
    best = int(np.argmax(np.round(values, 12)))
    assert model.n_estimators_ == best + 1 == model.best_params_["n_estimators"] == len(model.train_loss_)
    assert model.best_score_ == model.cv_results_["mean_score"][best]
    assert model.best_score_error_ > 0.0
    assert model.selection_ == "validation data with 12 queries"
    np.testing.assert_array_equal(model.weights_, everything.weights_[: best + 1])
    thin = RankBoost(n_estimators=60, scoring=scoring).fit(
        sparse.csr_array(X), y, qid=qid, **{**validation, "X_val": sparse.csr_array(X_val)}
    )
    np.testing.assert_allclose(thin.cv_results_["mean_score"], model.cv_results_["mean_score"])
    again = model.fit(X, y, qid=qid)
    assert not hasattr(again, "cv_results_")
    assert not hasattr(again, "selection_")
    assert again.n_estimators_ == 60


def test_preferences():
    X, y, qid = ranking_data(9)
    i, j = (rows.ravel() for rows in np.indices((len(y), len(y))))
    kept = (qid[i] == qid[j]) & (y[i] > y[j])
    i, j = i[kept], j[kept]
    model = RankBoost(n_estimators=ROUNDS, balance="pairs").fit_pairs(X, i, j)
    same_model(model, fitted(X, y, qid, balance="pairs"))
    turned = RankBoost(n_estimators=ROUNDS).fit_pairs(X, j, i, strength=-2.0)
    same_model(model, turned)
    extra = np.append(i, [0, 0]), np.append(j, [1, 2])
    ties = np.append(np.ones(len(i)), [0.0, 1.0])
    same_model(
        model,
        RankBoost(n_estimators=ROUNDS).fit_pairs(
            X, *extra, strength=ties, weight=np.append(np.ones(len(i)), [1.0, 0.0])
        ),
    )
    assert preference_accuracy(model.predict(X), i, j) > 0.8
    assert model.n_queries_ == 1


def test_rounds_that_tie_every_validation_query_are_not_the_best():
    """The first stumps look at a feature that is constant in the validation data: their tau is 0/0."""
    rng = np.random.default_rng(0)
    qid, X = np.repeat(np.arange(20), 10), rng.normal(size=(200, 2))
    y = np.digitize(2 * X[:, 0] + X[:, 1], [-1.0, 1.5]).astype(float)
    Z = np.column_stack((np.full(200, -50.0), X[:, 1]))
    model = RankBoost(60, scoring="tau").fit(X, y, qid=qid, X_val=Z, y_val=y, qid_val=qid)
    curve = model.cv_results_["mean_score"]
    unjudged = int(np.isnan(curve).sum())
    assert unjudged >= 2
    assert np.isnan(curve[:unjudged]).all()
    assert model.best_score_ == np.nanmax(curve)
    assert model.n_estimators_ == np.nanargmax(curve) + 1 > unjudged


def test_nothing_to_learn_is_no_error_but_no_labels_to_compare_is():
    X, y, qid = ranking_data(1)
    model = fitted(np.ones_like(X), y, qid)
    assert (model.n_estimators_, model.stopped_) == (0, "no edge")
    assert not model.predict(X).any()
    assert not model.feature_importances_.any()
    assert list(model.staged_predict(X)) == []
    validated = RankBoost().fit(np.ones_like(X), y, qid=qid, X_val=X, y_val=y, qid_val=qid)
    assert validated.n_estimators_ == 0
    with Refusal("Nothing to compare", parameter="y"):
        fitted(X, np.ones(len(y)), qid)
    with Refusal("Every strength", parameter="strength"):
        RankBoost().fit_pairs(X, [0], [1], strength=0.0)
