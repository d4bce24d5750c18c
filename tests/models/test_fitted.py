"""A fit that fails leaves the fitted object as it was."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone

import rankrls
from rankrls import CGRankRLS, InputError, InputWarning, RankRLSCV, RankSVMCV
from rankrls.metrics import Measure
from rankrls.preprocessing import TableEncoder
from tests.models.oracles import ranking_data
from tests.streaming.arrays import array_dataset

X, Y, QID = ranking_data(80)
SMALL = {
    "AutoRankRLS": {"families": ("linear",)},
    "CoRankRLS": {"n_views": 2},
    "RankBoost": {"n_estimators": 3},
    "GreedyRankRLS": {"max_features": 2},
    "RankingPursuitCV": {"max_basis": 2},
    "CoRankingPursuitCV": {"max_basis": 2},
}
CLASSES = [value for value in (getattr(rankrls, name) for name in rankrls.__all__) if inspect.isclass(value)]
RANKERS = [
    cls(**SMALL.get(cls.__name__, {}))
    for cls in CLASSES
    if issubclass(cls, BaseEstimator) and "Conditional" not in cls.__name__
]


@pytest.mark.parametrize("model", RANKERS, ids=lambda model: type(model).__name__)
def test_labels_that_order_nothing(model):
    names = [f"x{j}" for j in range(X.shape[1])]
    model.fit(pd.DataFrame(X, columns=names), Y, qid=QID)
    expected, scores = set(vars(model)), model.predict(pd.DataFrame(X, columns=names))
    with pytest.raises(InputError):
        model.fit(X[:, :2], np.zeros(len(Y)), qid=QID)
    assert set(vars(model)) == expected
    np.testing.assert_array_equal(model.predict(pd.DataFrame(X, columns=names)), scores)


@pytest.mark.parametrize("model", [rankrls.RankRLS(), rankrls.RankRLSCV(), rankrls.RankSVM()], ids=str)
def test_preferences_that_are_refused(model):
    model.fit_pairs(X, [0, 1, 2, 5], [1, 2, 3, 4])
    scores = model.predict(X)
    with pytest.raises(InputError):
        model.fit_pairs(X[:, :2], [0, 1], [1, 1])
    np.testing.assert_array_equal(model.predict(X), scores)


@pytest.mark.parametrize("bad", [{"X": X[:, :2]}, {"qid": QID[1:]}])
def test_a_batch_that_is_refused(bad):
    model = rankrls.RankRLS().partial_fit(X, Y, qid=QID)
    other = rankrls.RankRLS().partial_fit(X, Y, qid=QID)
    new = {"X": X, "y": Y, "qid": QID + 1000}
    with pytest.raises(ValueError, match=r"features|qid"):
        model.partial_fit(**{**new, **bad})
    np.testing.assert_array_equal(model.partial_fit(**new).coef_, other.partial_fit(**new).coef_)


@pytest.mark.parametrize("model", [rankrls.ConditionalRankRLS(), rankrls.ConditionalRankRLSCV()], ids=str)
def test_queries_that_are_refused(model):
    queries, utilities = np.random.default_rng(0).normal(size=(2, 12, 4))
    scores = model.fit(queries, utilities).predict(queries)
    for bad in (np.ones_like(utilities), utilities[1:], np.full_like(utilities, np.nan)):
        with pytest.raises(InputError):
            model.fit(queries[:, :2], bad)
        np.testing.assert_array_equal(model.predict(queries), scores)


@pytest.mark.parametrize(
    "cls", [rankrls.ConditionalRankRLS, rankrls.ConditionalRankRLSCV], ids=lambda cls: cls.__name__
)
def test_queries_that_cannot_be_solved(cls):
    queries, utilities = np.random.default_rng(1).normal(size=(2, 12, 4))
    model = cls(kernel="precomputed").fit(queries @ queries.T, utilities)
    before = dict(vars(model))
    indefinite = -np.eye(11)
    with pytest.raises(InputError):
        model.fit(indefinite, utilities[1:], items=rankrls.Items(np.eye(4)))
    assert vars(model).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(model).items())


def test_tables_that_are_refused():
    table = pd.DataFrame({"a": ["x", "y", "x", "y"] * 5, "b": np.arange(20.0)})
    encoder = TableEncoder(categorical=("a",)).fit(table)
    expected = encoder.transform(table)
    with pytest.raises(InputError):
        encoder.fit(table[["b"]])
    np.testing.assert_array_equal(encoder.transform(table), expected)


def test_nothing_of_an_earlier_fit_is_left():
    model = RankRLSCV((1.0, 10.0))
    model.fit_pairs(X, np.arange(12), np.arange(12, 24))
    of_preferences = {*vars(model)}
    model.fit(X, Y, qid=QID)
    of_labels = {*vars(model)}
    assert of_labels == {*vars(RankRLSCV((1.0, 10.0)).fit(X, Y, qid=QID))}
    assert "win_slope_" in of_preferences - of_labels
    model.set_params(kernel="rbf").fit(X, Y, qid=QID)
    assert not hasattr(model, "coef_")


def relevant_first():
    """Features of noise that are mostly equal: the order of the file is then the ranking."""
    rng = np.random.default_rng(0)
    X = (rng.random((200, 2)) < 0.1).astype(float)
    return X, np.tile([3.0, 2, 1, 0, 0, 0, 0, 0, 0, 0], 20), np.repeat(np.arange(20), 10), rng.permutation(200)


def in_parts(model, X, y, qid):
    """A fit of a dataset of three parts. Mixed rows are sorted by query first."""
    rows = np.argsort(qid, kind="stable")
    return model.fit_dataset(array_dataset(X[rows], y[rows], qid[rows], cuts=(60, 150)))


def on_parts(model, X, y, qid):
    """The same, evaluated on another dataset of parts."""
    rows = np.argsort(qid, kind="stable")
    data = array_dataset(X[rows], y[rows], qid[rows], cuts=(60, 150))
    return model.fit_dataset(data, validation=data)


def with_validation(model, X, y, qid):
    return model.fit(X, y, qid=qid, X_val=X, y_val=y, qid_val=qid)


def of_rows(model, X, y, qid):
    return model.fit(X, y, qid=qid)


WAYS = {
    "queries": (RankRLSCV(), of_rows),
    "validation data": (RankRLSCV(), with_validation),
    "parts": (RankRLSCV(), in_parts),
    "parts of validation data": (RankRLSCV(), on_parts),
    "refits": (RankSVMCV((1.0,)), of_rows),
    "iterations": (CGRankRLS((1.0, 10.0, 100.0), selection="tikhonov"), of_rows),
}


@pytest.mark.parametrize("measure", ["ndcg@10", "map"])
@pytest.mark.parametrize("way", WAYS)
def test_rows_in_the_order_of_their_labels_are_noticed(way, measure):
    X, y, qid, mixed = relevant_first()
    model, fit = WAYS[way]
    model = clone(model).set_params(scoring=measure)
    for order in (slice(None), slice(None, None, -1)):
        with pytest.warns(InputWarning, match=f"{measure} is .*in a random order") as caught:
            fit(model, X[order], y[order], qid[order])
        assert [warning.message.parameter for warning in caught] == ["scoring"]
        assert f"{model.best_score_:.3f}" in str(caught[0].message)
    fit(model, X[mixed], y[mixed], qid[mixed])
    fit(model.set_params(scoring=Measure("ndcg", k=10, ties="average")), X, y, qid)
    fit(model.set_params(scoring="disagreement"), X, y, qid)
