"""RankBoost as an estimator: what changes its model and what must not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import RankBoost, load, save
from rankrls.metrics import Measure, average_precision, disagreement_error, preference_accuracy
from rankrls.persistence import read_info
from tests.models.oracles import centred, ranking_data
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
@pytest.mark.parametrize("max_bins", [4, None])
def test_what_must_not_change_the_model(balance, max_bins):
    X, y, qid = ranking_data(1, queries=9)
    w = np.random.default_rng(5).integers(0, 4, len(y))
    parameters = {"balance": balance, "max_bins": max_bins}
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


def test_increasing_transformations_of_features_move_thresholds_only():
    X, y, qid = ranking_data(2)
    model = fitted(X, y, qid)
    moved = fitted(np.column_stack((np.exp(X[:, 0]), X[:, 1] ** 3, 5.0 * X[:, 2] - 2.0, X[:, 3])), y, qid)
    np.testing.assert_array_equal(model.features_, moved.features_)
    np.testing.assert_allclose(model.weights_, moved.weights_)
    turned = fitted(-X, y, qid)
    np.testing.assert_allclose(centred(model.predict(X), qid), centred(turned.predict(-X), qid), atol=1e-9)


def test_labels_turned_round_turn_the_scores_round():
    X, y, qid = ranking_data(3)
    up, down = fitted(X, y, qid), fitted(X, -y, qid)
    np.testing.assert_allclose(centred(down.predict(X), qid), -centred(up.predict(X), qid), atol=1e-9)
    np.testing.assert_allclose(up.train_loss_, down.train_loss_)


def test_float32_sparse_and_frames():
    import pandas as pd

    X, y, qid = ranking_data(4)
    X = X.astype(np.float32)
    model = fitted(X, y, qid)
    same_model(model, fitted(X.astype(np.float64), y, qid))
    for given in (X.astype(np.float64), sparse.csr_matrix(X), sparse.csc_array(X), X[:, ::-1][:, ::-1]):
        np.testing.assert_allclose(model.predict(given), model.predict(X), atol=1e-12)
    assert not hasattr(model, "feature_names_in_")
    named = fitted(pd.DataFrame(X, columns=list("abcd")), y, qid)
    assert named.feature_names_in_.tolist() == list("abcd")
    same_model(model, named)


def test_entries_that_stand_twice_add_up():
    X, y, qid = ranking_data(4)
    m, n = X.shape
    twice = sparse.csr_array(
        (
            np.column_stack((X.ravel() - 1.0, np.ones(m * n))).ravel(),
            np.repeat(np.tile(np.arange(n), m), 2),
            2 * n * np.arange(m + 1),
        ),
        shape=X.shape,
    )
    assert not twice.has_canonical_format
    validation = {"y_val": y, "qid_val": qid}
    model = RankBoost(n_estimators=ROUNDS).fit(X, y, qid=qid, X_val=X, **validation)
    same_model(model, RankBoost(n_estimators=ROUNDS).fit(twice, y, qid=qid, X_val=twice, **validation))
    for given in (twice, twice.tocsc()):
        entries = given.nnz
        np.testing.assert_allclose(model.predict(given), model.predict(X), atol=1e-12)
        np.testing.assert_allclose(list(model.staged_predict(given))[-1], model.predict(X), atol=1e-12)
        assert given.nnz == entries  # the caller's matrix stays as it was


def test_stages_and_importances():
    X, y, qid = ranking_data(5)
    model = fitted(X, y, qid, balance="pairs")
    for given in (X, sparse.csr_array(X)):
        stages = list(model.staged_predict(given))
        assert len(stages) == model.n_estimators_ == ROUNDS
        np.testing.assert_allclose(stages[-1], model.predict(X), atol=1e-12)
    for stage, loss in zip(stages, model.train_loss_, strict=True):
        assert disagreement_error(y, stage, qid=qid, average="pair") <= loss
    np.testing.assert_allclose(
        stages[0] > 0, (X[:, model.features_[0]] > model.thresholds_[0]) & (model.weights_[0] > 0)
    )
    expected = [np.abs(model.weights_[model.features_ == f]).sum() for f in range(4)]
    np.testing.assert_allclose(model.feature_importances_, expected / np.sum(expected))
    short = RankBoost(n_estimators=7, balance="pairs").fit(X, y, qid=qid)
    np.testing.assert_array_equal(short.weights_, model.weights_[:7])
    assert short.stopped_ == "n_estimators"


@pytest.mark.parametrize("scoring", ["disagreement", "map", "ndcg@3"])
def test_validation_data_choose_the_first_of_the_best_rounds(scoring):
    X, y, qid = ranking_data(6, queries=12)
    X_val, y_val, qid_val = ranking_data(7, queries=12)
    measure = scoring if scoring == "disagreement" else Measure(scoring.split("@")[0], k=3 if "@" in scoring else None)
    validation = {"X_val": X_val, "y_val": y_val, "qid_val": qid_val}
    model = RankBoost(n_estimators=60, scoring=measure).fit(X, y, qid=qid, **validation)
    everything = RankBoost(n_estimators=60).fit(X, y, qid=qid)
    if scoring == "disagreement":
        values = [1.0 - disagreement_error(y_val, s, qid=qid_val) for s in everything.staged_predict(X_val)]
        np.testing.assert_allclose(1.0 - model.validation_scores_, values)
    elif scoring == "map":
        values = [average_precision(y_val, s, qid=qid_val) for s in everything.staged_predict(X_val)]
        np.testing.assert_allclose(model.validation_scores_, values)
    else:
        values = model.validation_scores_
    best = int(np.argmax(np.round(values, 12)))
    assert model.n_estimators_ == best + 1 == model.best_params_["n_estimators"] == len(model.train_loss_)
    assert model.best_score_ == model.validation_scores_[best]
    assert model.best_score_error_ > 0.0
    assert model.selection_ == "validation data with 12 queries"
    np.testing.assert_array_equal(model.weights_, everything.weights_[: best + 1])
    thin = RankBoost(n_estimators=60, scoring=measure).fit(
        sparse.csr_array(X), y, qid=qid, **{**validation, "X_val": sparse.csr_array(X_val)}
    )
    np.testing.assert_allclose(thin.validation_scores_, model.validation_scores_)
    again = model.fit(X, y, qid=qid)
    assert not hasattr(again, "validation_scores_")
    assert not hasattr(again, "selection_")
    assert again.n_estimators_ == 60


@pytest.mark.parametrize("patience", [1, 3, 26])
def test_patience_stops_where_a_full_run_says(patience):
    X, y, qid = ranking_data(6, queries=12)
    X_val, y_val, qid_val = ranking_data(8, queries=12)
    run = lambda **p: RankBoost(n_estimators=90, **p).fit(X, y, qid=qid, X_val=X_val, y_val=y_val, qid_val=qid_val)
    values = run().validation_scores_
    best = 0
    for t, value in enumerate(values):
        best = t if value < values[best] else best
        if t - best >= patience:
            break
    model = run(patience=patience)
    assert model.stopped_ == "patience"
    assert len(model.validation_scores_) == t + 1 < 90
    np.testing.assert_array_equal(model.validation_scores_, values[: t + 1])
    assert model.n_estimators_ == best + 1


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


@pytest.mark.parametrize("patience", [1, 4, None])
def test_rounds_that_tie_every_validation_query_are_not_the_best(patience):
    """The first stumps look at a feature that is constant in the validation data: their tau is 0/0."""
    rng = np.random.default_rng(0)
    qid, X = np.repeat(np.arange(20), 10), rng.normal(size=(200, 2))
    y = np.digitize(2 * X[:, 0] + X[:, 1], [-1.0, 1.5]).astype(float)
    Z = np.column_stack((np.full(200, -50.0), X[:, 1]))
    model = RankBoost(60, scoring="tau", patience=patience).fit(X, y, qid=qid, X_val=Z, y_val=y, qid_val=qid)
    curve = model.validation_scores_
    unjudged = int(np.isnan(curve).sum())
    assert unjudged >= 2
    assert np.isnan(curve[:unjudged]).all()
    assert model.best_score_ == np.nanmax(curve)
    assert model.n_estimators_ == np.nanargmax(curve) + 1 > unjudged
    if patience is not None:
        assert (model.stopped_, len(curve)) == ("patience", model.n_estimators_ + patience)


def test_nothing_to_learn_is_no_error_but_no_labels_to_compare_is():
    X, y, qid = ranking_data(1)
    model = fitted(np.ones_like(X), y, qid)
    assert (model.n_estimators_, model.stopped_) == (0, "no edge")
    assert not model.predict(X).any()
    assert not model.feature_importances_.any()
    assert list(model.staged_predict(X)) == []
    validated = RankBoost().fit(np.ones_like(X), y, qid=qid, X_val=X, y_val=y, qid_val=qid)
    assert (validated.n_estimators_, len(validated.validation_scores_)) == (0, 0)
    assert np.isnan(validated.best_score_)
    with Refusal("Nothing to compare", parameter="y"):
        fitted(X, np.ones(len(y)), qid)
    with Refusal("Every strength", parameter="strength"):
        RankBoost().fit_pairs(X, [0], [1], strength=0.0)


@pytest.mark.parametrize(
    ("parameters", "refusal"),
    [
        ({"n_estimators": 0}, Refusal("whole", "got 0", parameter="n_estimators")),
        ({"n_estimators": 2.0}, Refusal("a whole number", parameter="n_estimators")),
        ({"n_estimators": True}, Refusal("a whole number", parameter="n_estimators")),
        ({"max_bins": 1}, Refusal("got 1", "whole", parameter="max_bins")),
        ({"patience": 0}, Refusal("whole", "least 1", parameter="patience")),
        ({"patience": 5}, Refusal("validation data", parameter="patience")),
        ({"learning_rate": 0.0}, Refusal("got 0.0", "above", parameter="learning_rate")),
        ({"learning_rate": 1.5}, Refusal(parameter="learning_rate")),
        ({"learning_rate": "fast"}, Refusal(parameter="learning_rate")),
        ({"balance": "all"}, Refusal(parameter="balance")),
        ({"scoring": "auc"}, Refusal("'auc'", "unknown", parameter="measure")),
    ],
)
def test_bad_parameters(parameters, refusal):
    X, y, qid = ranking_data(1)
    with refusal:
        RankBoost(**parameters).fit(X, y, qid=qid)


def test_bad_data():
    X, y, qid = ranking_data(1)
    model = RankBoost(n_estimators=3)
    with Refusal("2)", "shape (", parameter="y"):
        model.fit(X, np.column_stack((y, y)), qid=qid)
    with Refusal("y_val", parameter="X_val"):
        model.fit(X, y, qid=qid, X_val=X)
    with Refusal("qid_val", parameter="qid"):
        model.fit(X, y, qid=qid, X_val=X, y_val=y)
    with Refusal("can judge", parameter="y_val"):
        model.fit(X, y, qid=qid, X_val=X, y_val=np.ones(len(y)), qid_val=qid)
    with Refusal("NaN", parameter="X", row=2, column=1):
        model.fit(np.where(np.arange(4 * len(y)).reshape(-1, 4) == 9, np.nan, X), y, qid=qid)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with Refusal("3 features", kind=ValueError):
        model.fit(X, y, qid=qid).predict(X[:, :3])
    with Refusal("fitted", parameter="qid"):
        model.score(X, y)


def test_saved_and_loaded(tmp_path):
    X, y, qid = ranking_data(6, queries=12)
    model = RankBoost(n_estimators=30, scoring=Measure("map", convention="trec"))
    model = Pipeline([("scale", StandardScaler()), ("rank", model)])
    with config_context(enable_metadata_routing=True):
        model.set_params(transform_input=["X_val"])
        model["rank"].set_fit_request(X_val=True, y_val=True, qid_val=True)
        model.fit(X, y, qid=qid, X_val=X + 0.1, y_val=y, qid_val=qid)
    save(model, tmp_path / "m.rankrls", provenance={"data": "random"})
    again = load(tmp_path / "m.rankrls")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again["rank"].feature_importances_, model["rank"].feature_importances_)
    info = read_info(tmp_path / "m.rankrls")
    assert info["estimator"] == "RankBoost"
    assert info["kernel"] is None
    assert info["selection"]["chosen"] == {"n_estimators": model["rank"].n_estimators_}
    assert info["selection"]["measure"] == "map(convention='trec')"
    plain = clone(model["rank"]).set_params(scoring="map").fit(X, y, qid=qid)
    save(plain, tmp_path / "p.rankrls")
    assert read_info(tmp_path / "p.rankrls")["selection"] is None


def test_in_a_grid_search():
    X, y, qid = ranking_data(6, queries=12)
    with config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        search = GridSearchCV(RankBoost(), {"n_estimators": [5, 20]}, cv=GroupKFold(3))
        search.fit(X, y, qid=qid, groups=qid)
    assert search.best_params_["n_estimators"] in (5, 20)


@pytest.mark.parametrize("threads", ["1", "4"])
def test_threads_change_nothing(threads, monkeypatch):
    X, y, qid = ranking_data(10, queries=40, n=19)
    expected = fitted(X, y, qid)
    monkeypatch.setenv("RANKRLS_NUM_THREADS", threads)
    model = fitted(X, y, qid)
    np.testing.assert_array_equal(model.weights_, expected.weights_)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
