"""Several sparse solutions: views whose columns are features, what they share, and how they are put together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from rankrls import CoRankingPursuit, RankingPursuit, load, save
from rankrls.metrics import Measure
from tests.learners.dense import DensePursuit
from tests.models.oracles import GRAPHS, by_view, laplacian, ranking_data
from tests.refusals import Refusal

ALL = ({}, {})


def genes(seed=0, queries=12, items=8, n=40):
    """Two groups of features say the same of the utility, each with noise of its own; the others say nothing."""
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(queries * items, 3))
    X = rng.normal(size=(queries * items, n))
    X[:, :3], X[:, 10:13] = (parts + 0.1 * rng.normal(size=parts.shape) for _ in range(2))
    y = parts @ [2.0, -1.0, 1.0] + 0.2 * rng.normal(size=len(parts))
    return X, y, np.repeat(np.arange(queries), items)


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("nu", [0.0, 0.5])
@pytest.mark.parametrize("graph", [GRAPHS[3], GRAPHS[10]], ids=str)
def test_is_the_greedy_search_by_dense_systems(disjoint, nu, graph):
    X, y, qid = ranking_data(3, n=9)
    scored = qid != qid[0]
    partly = np.where(scored, y, np.nan)
    views = (np.arange(6), np.arange(2, 9))
    model = CoRankingPursuit(3, views=views, dictionary="features", disjoint=disjoint, nu=nu, **graph)
    model.fit(X, partly, qid=qid)
    L = [laplacian(y[scored], qid[scored], None, graph)] * 2
    Lbar = laplacian(np.zeros((~scored).sum()), qid[~scored], None, dict(graph, ties="include"))
    # Columns of all features for both views; those that a view has not are zero and never taken.
    masks = [np.isin(np.arange(9), view) for view in views]
    dense = DensePursuit(y[scored], L, Lbar, [X[scored] * m for m in masks], [X[~scored] * m for m in masks])
    taken, a, losses = dense.in_turn(3, nu, disjoint=disjoint)
    np.testing.assert_allclose(model.path_.losses, losses, rtol=1e-8)
    coef = np.zeros((2, 9))
    for (v, j), weight in zip(taken, a, strict=True):
        coef[v, j] += weight
    np.testing.assert_allclose(model.view_coef_, coef, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(by_view(model, X), coef @ X.T, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.coef_, coef.mean(axis=0), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_, atol=1e-10)
    stages = list(model.staged_predict(X))
    np.testing.assert_allclose(stages[-1], model.predict(X), atol=1e-10)
    if disjoint:
        assert not model.view_coef_.all(axis=0).any()


def test_two_groups_that_say_the_same_are_both_found():
    X, y, qid = genes()
    model = CoRankingPursuit(3, views=ALL, dictionary="features", disjoint=True, nu=0.0).fit(X, y, qid=qid)
    pairs = [{j % 10 for j in np.flatnonzero(weights).tolist()} for weights in model.view_coef_]
    assert pairs == [{0, 1, 2}, {0, 1, 2}]
    assert sorted(model.basis_indices_) == [0, 1, 2, 10, 11, 12]
    errors = [Measure("disagreement")(y, scores, qid=qid) for scores in by_view(model, X)]
    assert max(errors) < 0.1
    together = CoRankingPursuit(3, views=ALL, dictionary="features", nu=0.0).fit(X, y, qid=qid)
    np.testing.assert_allclose(*together.view_coef_)


@pytest.mark.parametrize("backfit", [True, False])
def test_one_view_and_views_that_do_not_agree_are_ranking_pursuit(backfit):
    X, y, qid = genes(1)
    alone = RankingPursuit(4, dictionary="features", backfit=backfit)
    one = CoRankingPursuit(4, views=({},), dictionary="features", backfit=backfit).fit(X, y, qid=qid)
    np.testing.assert_allclose(one.coef_, alone.fit(X, y, qid=qid).coef_, rtol=1e-7, atol=1e-10)
    halves = CoRankingPursuit(4, dictionary="features", nu=0.0, backfit=backfit).fit(X, y, qid=qid)
    for weights, half in zip(halves.view_coef_, (slice(0, 20), slice(20, 40)), strict=True):
        np.testing.assert_allclose(weights[half], alone.fit(X[:, half], y, qid=qid).coef_, rtol=1e-7, atol=1e-10)


def test_sparse_named_and_stored(tmp_path):
    X, y, qid = genes(4)
    options = {"views": ALL, "dictionary": "features", "disjoint": True, "nu": 0.1}
    plain = CoRankingPursuit(3, **options).fit(X, y, qid=qid)
    thin = CoRankingPursuit(3, **options).fit(sparse.csr_array(X), y, qid=qid)
    np.testing.assert_allclose(thin.coef_, plain.coef_)
    np.testing.assert_allclose(thin.predict(sparse.csr_array(X)), plain.predict(X))
    frame = pd.DataFrame(X, columns=[f"gene {k}" for k in range(X.shape[1])])
    views = ([f"gene {k}" for k in range(10)], list(range(10, X.shape[1])))
    named = CoRankingPursuit(3, **{**options, "views": views}).fit(frame, y, qid=qid)
    assert not named.view_coef_[1, :10].any()
    save(named, tmp_path / "m.rankrls")
    np.testing.assert_allclose(load(tmp_path / "m.rankrls").predict(frame), named.predict(frame))


@pytest.mark.parametrize(
    ("parameters", "refusal"),
    [
        ({"disjoint": True}, Refusal("features", parameter="disjoint")),
        ({"disjoint": 1}, Refusal("True or False", parameter="disjoint")),
    ],
)
def test_refusals(parameters, refusal):
    X, y, qid = genes(5)
    with refusal:
        CoRankingPursuit(**parameters).fit(X, y, qid=qid)
