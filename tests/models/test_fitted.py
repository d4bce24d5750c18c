"""A fit that fails leaves the fitted object as it was."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

import rankrls
from rankrls import InputError, InputWarning, RankRLSCV
from rankrls.metrics import Measure
from rankrls.preprocessing import TableEncoder
from tests.models.oracles import ranking_data

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


@pytest.mark.parametrize("measure", ["ndcg@10", "map"])
def test_rows_in_the_order_of_their_labels_are_noticed(measure):
    """Features of noise that are mostly equal: the order of the file is then the ranking."""
    rng = np.random.default_rng(0)
    X = (rng.random((200, 2)) < 0.1).astype(float)
    y = np.tile([3.0, 2, 1, 0, 0, 0, 0, 0, 0, 0], 20)
    qid = np.repeat(np.arange(20), 10)
    model = RankRLSCV(scoring=measure)
    for order in (slice(None), slice(None, None, -1)):
        with pytest.warns(InputWarning, match=f"{measure} is .*in a random order") as caught:
            model.fit(X[order], y[order], qid=qid[order])
        assert [warning.message.parameter for warning in caught] == ["scoring"]
        assert f"{model.best_score_:.3f}" in str(caught[0].message)
    mixed = rng.permutation(200)
    model.fit(X[mixed], y[mixed], qid=qid[mixed])
    RankRLSCV(scoring=Measure("ndcg", k=10, ties="average")).fit(X, y, qid=qid)
    RankRLSCV().fit(X, y, qid=qid)
