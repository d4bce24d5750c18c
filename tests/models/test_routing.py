"""qid through every tool of scikit-learn, for every public ranker; without routing, a word on what to do."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankrls
from rankrls import preprocessing
from rankrls.metrics import Measure, resolve_measure
from rankrls.preprocessing import QueryMinMaxScaler, QueryStandardScaler
from tests.models.oracles import ranking_data
from tests.refusals import Refusal

X, Y, QID = ranking_data(33, queries=14)
FOLDS = list(GroupKFold(3).split(X, Y, QID))
PARAMS = {"qid": QID, "groups": QID}
BALANCES = ["examples", "pairs"]
QUICK = {  # folds that do not look at the order of rows, which halving mixes
    "AutoRankRLS": {"n_basis": 20},
    "CGRankRLS": {"cv": GroupKFold(3)},
    "CoRankingPursuit": {"n_basis": 3},
    "CoRankRLS": {"n_views": 2, "mu": 1.0},
    "CoRankingPursuitCV": {"max_basis": 2, "nu": 0.1},
    "TransductiveRankRLSCV": {"alphas": [1.0], "penalty": 1.0},
    "GreedyRankRLS": {"max_features": 3, "alphas": (0.1, 1.0), "cv": GroupKFold(3)},
    "RankBoost": {"n_estimators": 5},
    "RankSVMCV": {"Cs": (0.01, 1.0), "cv": GroupKFold(3)},
    "RankingPursuitCV": {"max_basis": 4, "cv": GroupKFold(3)},
}


def public(module):
    found = {name: getattr(module, name) for name in sorted(module.__all__)}
    return {n: c for n, c in found.items() if inspect.isclass(c) and issubclass(c, BaseEstimator)}


OF_QUERIES = {name: cls for name, cls in public(rankrls).items() if "qid" in inspect.signature(cls.fit).parameters}
RANKERS = {name: cls(**QUICK.get(name, {})) for name, cls in OF_QUERIES.items()}
SCALERS = {name: cls() for name, cls in public(preprocessing).items() if name.startswith("Query")}
every_ranker = pytest.mark.parametrize("model", RANKERS.values(), ids=RANKERS)
BALANCED = {name: model for name, model in RANKERS.items() if "balance" in model.get_params()}
every_balanced = pytest.mark.parametrize("model", BALANCED.values(), ids=BALANCED)
every_scaler = pytest.mark.parametrize("scaler", SCALERS.values(), ids=SCALERS)


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def by_hand(model, rows, scale=None):
    """Fitted on the rows, and judged on the other ones, with neither routing nor pipelines."""
    train, test = rows
    Z = X if scale is None else clone(scale).fit_transform(X, qid=QID)  # a query's scaling sees no other query
    fold = clone(model).fit(Z[train], Y[train], qid=QID[train])
    scores = fold.predict(Z[test])
    error = Measure("disagreement")(Y[test], scores, qid=QID[test])
    return {"score": 1.0 - error, "map": Measure("average_precision")(Y[test], scores, qid=QID[test])}


@pytest.mark.usefixtures("routing")
@every_ranker
def test_pipelines_and_cross_validation(model):
    steps = make_pipeline(QueryMinMaxScaler(), clone(model))
    scorers = {"map": resolve_measure("map"), "error": resolve_measure("disagreement")}
    found = cross_validate(steps, X, Y, cv=GroupKFold(3), params=PARAMS, scoring=scorers)
    plain = cross_validate(steps, X, Y, cv=GroupKFold(3), params=PARAMS)
    expected = [by_hand(model, fold, QueryMinMaxScaler()) for fold in FOLDS]
    np.testing.assert_allclose(found["test_map"], [e["map"] for e in expected])
    np.testing.assert_allclose(found["test_error"], [e["score"] - 1.0 for e in expected], atol=1e-12)
    np.testing.assert_allclose(plain["test_score"], [e["score"] for e in expected])
    fitted = steps.fit(X, Y, qid=QID)
    assert fitted[-1].n_queries_ == len(np.unique(QID))
    assert fitted.score(X, Y, qid=QID) == pytest.approx(
        1 - Measure("disagreement")(Y, fitted.predict(X, qid=QID), qid=QID)
    )
    with Refusal(parameter="qid"):
        fitted.score(X, Y)


@pytest.mark.usefixtures("routing")
@every_balanced
def test_searches(model):
    """One id a row is enough for folds of whole queries as well: the splitter takes qid as its groups."""
    folds = GroupKFold(3).set_split_request(groups="qid")
    expected = {b: [by_hand(clone(model).set_params(balance=b), f)["score"] for f in FOLDS] for b in BALANCES}
    search = GridSearchCV(model, {"balance": BALANCES}, cv=folds).fit(X, Y, qid=QID)
    for k, balance in enumerate(BALANCES):
        values = [search.cv_results_[f"split{f}_test_score"][k] for f in range(3)]
        np.testing.assert_allclose(values, expected[balance])
    assert search.best_score_ == pytest.approx(max(np.mean(v) for v in expected.values()))
    assert search.best_estimator_.n_queries_ == len(np.unique(QID))
    draw = RandomizedSearchCV(model, {"balance": BALANCES}, n_iter=1, cv=folds, random_state=0).fit(X, Y, qid=QID)
    assert draw.best_score_ == pytest.approx(np.mean(expected[draw.best_params_["balance"]]))
    halving = HalvingGridSearchCV(
        model, {"balance": BALANCES}, cv=folds, min_resources=len(Y), factor=2, random_state=0
    )
    halving.fit(X, Y, qid=QID)
    assert halving.cv_results_["mean_test_score"].max() == pytest.approx(search.best_score_)


@pytest.mark.usefixtures("routing")
def test_scorers_see_into_what_wraps_a_ranker():
    scorer = resolve_measure("map")
    columns = ColumnTransformer([("some", QueryStandardScaler(), [0, 1]), ("rest", "passthrough", [2, 3])])
    inner = make_pipeline(make_pipeline(QueryMinMaxScaler()), rankrls.RankRLS())
    search = GridSearchCV(inner, {"rankrls__alpha": [0.1, 1.0]}, cv=GroupKFold(2).set_split_request(groups="qid"))
    for model in (inner, search, make_pipeline(columns, rankrls.RankRLS())):
        fitted = clone(model).fit(X, Y, qid=QID)
        with Refusal("did not get", parameter="qid"):
            scorer(fitted, X, Y)
        best = getattr(fitted, "best_estimator_", fitted)
        assert scorer(fitted, X, Y, qid=QID) == Measure("average_precision")(Y, best.predict(X, qid=QID), qid=QID)
    found = cross_validate(search, X, Y, cv=GroupKFold(3), params=PARAMS, scoring=scorer)
    assert np.isfinite(found["test_score"]).all()


@pytest.mark.usefixtures("routing")
def test_weights_reach_measures_that_use_them():
    weights = np.random.default_rng(3).random(len(Y)) + 0.2
    scoring = {name: resolve_measure(name) for name in ("pair_accuracy", "ndcg")}
    model, given = rankrls.RankRLS().set_fit_request(sample_weight=True), {**PARAMS, "sample_weight": weights}
    found = cross_validate(model, X, Y, cv=GroupKFold(3), params=given, scoring=scoring, return_estimator=True)
    for fitted, (_, test), pairs, ndcg in zip(
        found["estimator"], FOLDS, found["test_pair_accuracy"], found["test_ndcg"], strict=True
    ):
        scores, qid = fitted.predict(X[test]), QID[test]
        assert pairs == pytest.approx(Measure("pair_accuracy")(Y[test], scores, qid=qid, sample_weight=weights[test]))
        assert ndcg == pytest.approx(Measure("ndcg")(Y[test], scores, qid=qid))


def test_a_global_ranking_needs_no_qid():
    model = rankrls.RankRLS().fit(X, Y)
    assert resolve_measure("disagreement")(model, X, Y) == pytest.approx(model.score(X, Y) - 1.0)


@pytest.mark.parametrize("measure", [Measure("disagreement"), Measure("ndcg", k=3)], ids=str)
def test_a_measure_is_a_scorer(measure):
    model = rankrls.RankRLS().fit(X, Y)
    sign = 1.0 if measure.greater_is_better else -1.0
    assert measure(model, X, Y) == sign * measure(Y, model.predict(X))
    with config_context(enable_metadata_routing=True):
        given = cross_validate(rankrls.RankRLS(), X, Y, cv=GroupKFold(3), params=PARAMS, scoring=measure)["test_score"]
        assert np.isfinite(given).all()
        search = GridSearchCV(rankrls.RankRLS(), {"alpha": [0.1, 1.0]}, scoring={"it": measure}, refit="it", cv=FOLDS)
        assert np.isfinite(search.fit(X, Y, qid=QID).cv_results_["mean_test_it"]).all()


def judged_without_qid(run):
    """What a tool that swallows errors gives, and all that it says."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        values = run()
    return np.asarray(values), " ".join(str(w.message) for w in said)


@every_balanced
def test_without_routing_nothing_is_judged_as_one_query(model):
    for scoring in (None, Measure("map")):
        for run in (
            lambda s=scoring: cross_validate(model, X, Y, cv=FOLDS, params={"qid": QID}, scoring=s)["test_score"],
            lambda s=scoring: (
                GridSearchCV(model, {"balance": BALANCES}, cv=FOLDS, scoring=s)
                .fit(X, Y, qid=QID)
                .cv_results_["mean_test_score"]
            ),
        ):
            values, said = judged_without_qid(run)
            assert np.isnan(values).all()
            assert "enable_metadata_routing=True" in said
    search = GridSearchCV(model, {"balance": BALANCES}, cv=FOLDS, error_score="raise")
    with Refusal("score", parameter="qid", remedy="enable_metadata_routing=True"):
        search.fit(X, Y, qid=QID)
    steps = make_pipeline(StandardScaler(), clone(model))
    with Refusal("does not accept the qid", kind=ValueError):
        steps.fit(X, Y, qid=QID)
    steps.fit(X, Y, **{f"{steps.steps[-1][0]}__qid": QID})
    assert steps[-1].n_queries_ == len(np.unique(QID))
    with Refusal("score", parameter="qid", remedy="enable_metadata_routing=True"):
        steps.score(X, Y)
    held_out = cross_val_predict(model, X, Y, cv=FOLDS, params={"qid": QID})  # nothing is judged: right as it is
    for train, test in FOLDS:
        fold = clone(model).fit(X[train], Y[train], qid=QID[train])
        np.testing.assert_allclose(held_out[test], fold.predict(X[test]))


@every_scaler
def test_without_routing_scalers_refuse_rows_without_qid(scaler):
    name = type(scaler).__name__.lower()
    steps = make_pipeline(clone(scaler), rankrls.RankRLS()).fit(X, Y, **{f"{name}__qid": QID, "rankrls__qid": QID})
    for use in (steps.predict, lambda Z: steps.score(Z, Y)):
        with Refusal("needs the qid", parameter="qid", remedy="enable_metadata_routing=True"):
            use(X)
    scaled = clone(scaler).fit_transform(X, qid=QID)  # what the guide advises: it leaks nothing
    nested = make_pipeline(make_pipeline(clone(scaler)), rankrls.RankRLS())
    nested.fit(X, Y, **{f"pipeline__{name}__qid": QID, "rankrls__qid": QID})
    scorer = resolve_measure("map")
    expected = scorer(rankrls.RankRLS().fit(scaled, Y, qid=QID), scaled, Y, qid=QID)
    assert scorer(steps, X, Y, qid=QID) == scorer(nested, X, Y, qid=QID) == pytest.approx(expected)


NAMES = ["bm25", "age", "clicks", "links"]


@every_scaler
@pytest.mark.parametrize("ids", [QID, None], ids=["queries", "one query"])
def test_set_output_and_names_of_scalers(scaler, ids):
    expected = clone(scaler).fit_transform(X, qid=ids)
    numbered = clone(scaler).fit(X, qid=ids)
    assert numbered.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]
    assert numbered.get_feature_names_out(NAMES).tolist() == NAMES
    index = np.arange(len(X))[::-1]
    for library, frame in (
        ("pandas", pd.DataFrame(X, columns=NAMES, index=index)),
        ("polars", pl.DataFrame({name: X[:, k] for k, name in enumerate(NAMES)})),
    ):
        named = clone(scaler).set_output(transform=library)
        out = named.fit_transform(frame, qid=ids)
        assert type(out) is type(frame)
        assert list(out.columns) == named.get_feature_names_out().tolist() == NAMES
        np.testing.assert_array_equal(out.to_numpy(), expected)
        np.testing.assert_array_equal(named.transform(frame, qid=ids).to_numpy(), expected)
        with Refusal("input_features", kind=ValueError):
            named.get_feature_names_out(NAMES[::-1])
        if library == "pandas":
            assert out.index.tolist() == index.tolist()
        arrays = clone(scaler).fit(frame, qid=ids)
        assert type(arrays.transform(frame, qid=ids)) is np.ndarray
        default = arrays.set_output(transform="default").transform(frame, qid=ids)
        np.testing.assert_array_equal(default, expected)
