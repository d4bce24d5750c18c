"""Several sparse solutions: views whose columns are features, what they share, and how they are put together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import KFold

from rankrls import CoRankingPursuit, RankingPursuit, load, save
from rankrls.metrics import Measure
from tests.learners.dense import DensePursuit
from tests.models.oracles import GRAPHS, laplacian, ranking_data
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
    for v, view in enumerate(model.views_):
        np.testing.assert_allclose(view.coef_, coef[v], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(view.support_, np.flatnonzero(coef[v]))
        np.testing.assert_allclose(view.predict(X), X @ coef[v], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.coef_, coef.mean(axis=0), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_, atol=1e-10)
    stages = list(model.staged_predict(X))
    np.testing.assert_allclose(stages[-1], model.predict(X), atol=1e-10)
    if disjoint:
        assert not set(model.views_[0].support_) & set(model.views_[1].support_)


def test_two_groups_that_say_the_same_are_both_found():
    X, y, qid = genes()
    model = CoRankingPursuit(3, views=ALL, dictionary="features", disjoint=True, nu=0.0).fit(X, y, qid=qid)
    pairs = [{j % 10 for j in view.support_.tolist()} for view in model.views_]
    assert pairs == [{0, 1, 2}, {0, 1, 2}]
    assert sorted(model.basis_indices_) == [0, 1, 2, 10, 11, 12]
    errors = [Measure("disagreement")(y, view.predict(X), qid=qid) for view in model.views_]
    assert max(errors) < 0.1
    together = CoRankingPursuit(3, views=ALL, dictionary="features", nu=0.0).fit(X, y, qid=qid)
    np.testing.assert_allclose(together.views_[0].coef_, together.views_[1].coef_)


@pytest.mark.parametrize("backfit", [True, False])
def test_one_view_and_views_that_do_not_agree_are_ranking_pursuit(backfit):
    X, y, qid = genes(1)
    alone = RankingPursuit(4, dictionary="features", backfit=backfit)
    one = CoRankingPursuit(4, views=({},), dictionary="features", backfit=backfit).fit(X, y, qid=qid)
    np.testing.assert_allclose(one.coef_, alone.fit(X, y, qid=qid).coef_, rtol=1e-7, atol=1e-10)
    halves = CoRankingPursuit(4, dictionary="features", nu=0.0, backfit=backfit).fit(X, y, qid=qid)
    for view, half in zip(halves.views_, (slice(0, 20), slice(20, 40)), strict=True):
        np.testing.assert_allclose(view.coef_[half], alone.fit(X[:, half], y, qid=qid).coef_, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("dictionary", ["features", "kernel"])
@pytest.mark.parametrize("aggregation", ["weighted", "best"])
def test_views_are_weighed_by_held_out_queries(dictionary, aggregation):
    X, y, qid = genes(2)
    X[:, 10:13] += 1.5 * np.random.default_rng(9).normal(size=(len(y), 3))  # the second group knows less
    partly = np.where(qid < 10, y, np.nan)
    views = (slice(0, 10), slice(10, 20))
    options = {"views": views, "dictionary": dictionary, "nu": 0.1, "gamma": 0.02}
    model = CoRankingPursuit(3, aggregation=aggregation, **options).fit(X, partly, qid=qid)
    errors = np.zeros((2, 10))
    for _, test in KFold(5, shuffle=True, random_state=0).split(np.empty(10)):
        rows = np.isin(qid, test)
        fold = CoRankingPursuit(3, **options).fit(X, np.where(rows, np.nan, partly), qid=qid)
        for v, view in enumerate(fold.views_):
            errors[v, test] = Measure("disagreement")(y[rows], view.predict(X[rows]), qid=qid[rows], per_query=True)
    np.testing.assert_allclose(model.view_errors_, errors.mean(axis=1), rtol=1e-10)
    worth = 1.0 - 2.0 * errors.mean(axis=1)
    wanted = [1.0, 0.0] if aggregation == "best" else worth / worth.sum()
    np.testing.assert_allclose(model.view_weights_, wanted)
    scores = [view.predict(X) for view in model.views_]
    np.testing.assert_allclose(model.predict(X), wanted @ np.array(scores), atol=1e-10)
    np.testing.assert_allclose(list(model.staged_predict(X))[-1], model.predict(X), atol=1e-10)
    plain = CoRankingPursuit(3, **options).fit(X, partly, qid=qid)
    np.testing.assert_allclose(plain.predict(X), np.mean(scores, axis=0), atol=1e-10)
    assert not hasattr(plain, "view_errors_")


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
    assert (named.views_[1].support_ >= 10).all()
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


def test_views_of_kernel_functions_have_no_weights():
    X, y, qid = genes(5)
    with pytest.raises(AttributeError, match="weights of features"):
        _ = CoRankingPursuit(2).fit(X, y, qid=qid).views_[0].coef_
