"""Ranking measures as scikit-learn scorers: what arrives is judged by query, or refused."""

import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import RankRLS, RankRLSCV
from rankrls.metrics import Measure, make_ranking_scorer
from rankrls.metrics._scorer import predict_by_query, unwrapped
from rankrls.preprocessing import QueryMinMaxScaler, QueryStandardScaler
from tests.models.oracles import ranking_data
from tests.refusals import Refusal

X, Y, QID = ranking_data(12, queries=16)
Y = np.digitize(Y, np.quantile(Y, [0.5, 0.8])).astype(float)
W = np.random.default_rng(3).random(len(Y)) + 0.2
FOLDS = list(GroupKFold(4).split(X, Y, QID))
PARAMS = {"qid": QID, "groups": QID}


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def looped(model, measure, **fit):
    """Each fold's value, without scikit-learn's machinery."""
    out = []
    for train, test in FOLDS:
        fold = clone(model).fit(X[train], Y[train], qid=QID[train], **{k: v[train] for k, v in fit.items()})
        out.append(measure(Y[test], fold.predict(X[test]), qid=QID[test]))
    return out


@pytest.mark.usefixtures("routing")
def test_several_scorers_at_once():
    scoring = {
        "map": make_ranking_scorer("map"),
        "ndcg": make_ranking_scorer("ndcg@3", convention="sklearn"),
        "error": make_ranking_scorer("disagreement"),
    }
    found = cross_validate(RankRLS(), X, Y, cv=GroupKFold(4), params=PARAMS, scoring=scoring)
    np.testing.assert_allclose(found["test_map"], looped(RankRLS(), Measure("average_precision")))
    by_sklearn = lambda y, s, qid: Measure("ndcg", k=3, convention="sklearn")(y, s, qid=qid)
    np.testing.assert_allclose(found["test_ndcg"], looped(RankRLS(), by_sklearn))
    np.testing.assert_allclose(found["test_error"], [-v for v in looped(RankRLS(), Measure("disagreement"))])


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize(
    ("search", "options"),
    [(GridSearchCV, {}), (RandomizedSearchCV, {"n_iter": 3, "random_state": 0})],
)
def test_searches_choose_by_the_measure(search, options):
    grid = {"alpha": [0.01, 1.0, 100.0]}
    found = search(RankRLS(), grid, cv=GroupKFold(4), scoring=make_ranking_scorer("map"), **options).fit(X, Y, **PARAMS)
    means = {a: np.mean(looped(RankRLS(alpha=a), Measure("average_precision"))) for a in grid["alpha"]}
    assert found.best_score_ == pytest.approx(max(means.values()))
    for params, mean in zip(found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True):
        assert mean == pytest.approx(means[params["alpha"]])
    assert found.score(X, Y, qid=QID) == pytest.approx(Measure("average_precision")(Y, found.predict(X), qid=QID))


@pytest.mark.usefixtures("routing")
def test_halving_search_with_all_rows():
    """Halving draws rows, which would cut queries: here every round has all of them."""
    search = HalvingGridSearchCV(
        RankRLSCV(),
        {"balance": ["examples", "pairs"]},
        cv=GroupKFold(2),
        scoring=make_ranking_scorer("map"),
        min_resources=len(Y),
        factor=2,
    )
    found = search.fit(X, Y, **PARAMS)
    assert found.best_params_["balance"] in ("examples", "pairs")
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()


@pytest.mark.usefixtures("routing")
def test_weights_reach_measures_that_use_them():
    model = RankRLS().set_fit_request(sample_weight=True)
    scoring = {"pairs": make_ranking_scorer("pair_accuracy"), "map": make_ranking_scorer("map")}
    found = cross_validate(
        model, X, Y, cv=GroupKFold(4), params={**PARAMS, "sample_weight": W}, scoring=scoring, return_estimator=True
    )
    for k, (_, test) in enumerate(FOLDS):
        scores = found["estimator"][k].predict(X[test])
        wanted = Measure("pair_accuracy")(Y[test], scores, qid=QID[test], sample_weight=W[test])
        assert found["test_pairs"][k] == pytest.approx(wanted)
        assert found["test_map"][k] == pytest.approx(Measure("average_precision")(Y[test], scores, qid=QID[test]))


@pytest.mark.usefixtures("routing")
def test_pipelines_that_scale_inside_queries():
    scaler = QueryStandardScaler().set_fit_request(qid=True).set_transform_request(qid=True)
    model = make_pipeline(scaler, RankRLS())
    found = cross_val_score(model, X, Y, cv=GroupKFold(4), params=PARAMS, scoring=make_ranking_scorer("map"))
    for value, (train, test) in zip(found, FOLDS, strict=True):
        Z = [QueryStandardScaler().fit_transform(X[rows], qid=QID[rows]) for rows in (train, test)]
        scores = RankRLS().fit(Z[0], Y[train], qid=QID[train]).predict(Z[1])
        assert value == pytest.approx(Measure("average_precision")(Y[test], scores, qid=QID[test]))


@pytest.mark.usefixtures("routing")
def test_searched_pipelines_that_scale_inside_queries():
    scaler = QueryStandardScaler().set_fit_request(qid=True).set_transform_request(qid=True)
    scorer = make_ranking_scorer("map")
    search = GridSearchCV(make_pipeline(scaler, RankRLS()), {"rankrls__alpha": [0.1, 1.0]}, cv=FOLDS, scoring=scorer)
    search.fit(X, Y, qid=QID)
    assert scorer(search, X, Y, qid=QID) == scorer(search.best_estimator_, X, Y, qid=QID)


def test_without_routing_there_is_an_error_and_no_silent_default():
    scorer = make_ranking_scorer("map")
    model = RankRLS().fit(X, Y, qid=QID)
    with Refusal(parameter="qid", remedy="set_config(enable_metadata_routing=True)"):
        scorer(model, X, Y)
    with Refusal("did not get", parameter="qid"):
        scorer(make_pipeline(StandardScaler(), RankRLS()).fit(X, Y, rankrls__qid=QID), X, Y)
    search = GridSearchCV(RankRLS(), {"alpha": [1.0]}, cv=GroupKFold(4), scoring=scorer, error_score="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Refusal("did not get", parameter="qid"):
            search.fit(X, Y, qid=QID, groups=QID)


def test_a_global_ranking_needs_no_qid():
    model = RankRLS().fit(X, Y)
    assert make_ranking_scorer("disagreement")(model, X, Y) == pytest.approx(model.score(X, Y) - 1.0)
    assert cross_val_score(RankRLS(), X, Y, cv=3, scoring=make_ranking_scorer("ndcg")).shape == (3,)


def test_says_what_it_is():
    assert repr(make_ranking_scorer("ndcg@10")) == "make_ranking_scorer('ndcg@10')"
    with Refusal("nonsense", parameter="measure"):
        make_ranking_scorer("nonsense")


def test_pipelines_in_pipelines_are_walked_from_the_outside_in():
    inner = make_pipeline("passthrough", QueryMinMaxScaler(), RankRLS())
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), make_pipeline(QueryStandardScaler(), "passthrough"), inner)
        model.fit(X, Y, qid=QID)
        wanted = model.predict(X, qid=QID)
    steps, final = unwrapped(model)
    assert [type(step).__name__ for step in steps] == ["StandardScaler", "Pipeline", "QueryMinMaxScaler"]
    assert final is inner[-1]
    np.testing.assert_array_equal(predict_by_query(model, X, QID), wanted)
