"""Features of very different spread: small ones count, in solutions, held-out scores and the automatic grid."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rankrls import RankRLS, RankRLSCV
from rankrls.equations import graded
from rankrls.equations.graded import graded_spectrum, is_graded
from rankrls.equations.normal_equations import normal_equations
from rankrls.graph import PairGraph
from rankrls.model_selection import leave_pair_out, leave_preference_out, leave_query_out
from rankrls.problems.primal import PrimalProblem
from tests.oracles import explicit_laplacian
from tests.problems.test_solutions import build

PLAIN = {"ties": "include", "balance": "examples", "beta": 0.0}


def scaled_ridge(X, L, y, alpha):
    """Minimiser of (y - Xw)'L(y - Xw) + alpha w'w, from the stacked rows in units of each feature's own spread."""
    values, vectors = np.linalg.eigh(L)
    FX = np.sqrt(np.maximum(values, 0.0))[:, None] * (vectors.T @ (X - X.mean(axis=0)))
    Fy = np.sqrt(np.maximum(values, 0.0)) * (vectors.T @ y)
    units = 1.0 / np.sqrt((FX**2).sum(axis=0) + alpha)
    stacked = np.vstack((FX * units, np.sqrt(alpha) * np.diag(units)))
    return units * np.linalg.lstsq(stacked, np.concatenate((Fy, np.zeros(len(units)))), rcond=1e-15)[0]


def uneven(seed, powers, m=120, queries=12):
    rng = np.random.default_rng(seed)
    n = len(powers)
    X = rng.normal(size=(m, n)) @ (np.eye(n) + 0.3 * rng.normal(size=(n, n))) * 10.0 ** np.asarray(powers, dtype=float)
    y = X @ (rng.normal(size=n) / 10.0 ** np.asarray(powers, dtype=float)) + 0.1 * rng.normal(size=m)
    return X, y, np.repeat(np.arange(queries), m // queries)


def assert_same_scores(X, found, expected, rtol):
    """Each feature's contribution agrees, relative to the largest contribution."""
    spread = X.std(axis=0)
    np.testing.assert_allclose(found * spread, expected * spread, atol=rtol * np.abs(expected * spread).max())


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(-7, 7), min_size=2, max_size=12),
    st.sampled_from([0.0, 1e-12, 1e-4, 1.0, 1e4, 1e12]),
)
def test_solutions_do_not_depend_on_units(seed, powers, alpha):
    X, y, qid = uneven(seed, powers)
    expected = scaled_ridge(X, explicit_laplacian(y, qid), y, alpha)
    graph = build(y, qid, None, PLAIN)
    problem = PrimalProblem(X, graph, (graph.F @ y)[:, None], own_units=True)
    assert_same_scores(X, problem.solve(alpha)[:, 0], expected, 1e-8)
    assert_same_scores(X, problem.path(np.array([alpha, 1e-3])).coefficients[0, :, 0], expected, 1e-8)


@pytest.mark.parametrize("powers", [(7, 0, 0, 0), (0, 7, 7), (9, 0, -5, 3)], ids=str)
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1.0])
def test_the_estimators(powers, alpha):
    X, y, qid = uneven(0, powers)
    expected = scaled_ridge(X, explicit_laplacian(y, qid), y, alpha)
    for features in (X, sparse.csr_array(X)):
        assert_same_scores(X, RankRLS(alpha).fit(features, y, qid=qid).coef_, expected, 1e-9)
        assert_same_scores(X, RankRLSCV((alpha,)).fit(features, y, qid=qid).coef_, expected, 1e-9)
        assert_same_scores(X, RankRLS(alpha, positive=[]).fit(features, y, qid=qid).coef_, expected, 1e-9)
    half = qid < 6
    updated = RankRLS(alpha).fit(X[half], y[half], qid=qid[half]).partial_fit(X[~half], y[~half], qid=qid[~half])
    assert_same_scores(X, updated.coef_, expected, 1e-9)
    updated.forget(X[half], y[half], qid=qid[half])
    rest = scaled_ridge(X[~half], explicit_laplacian(y[~half], qid[~half]), y[~half], alpha)
    assert_same_scores(X, updated.coef_, rest, 1e-9)


@pytest.mark.parametrize("powers", [(7, 0, 0, 0), (9, 0, -5, 3)], ids=str)
def test_held_out_queries_equal_refits(powers):
    X, y, qid = uneven(1, powers)
    outlier = X.copy()
    outlier[5, 0] *= 1e6  # one query alone says what this feature weighs
    alphas = np.array([1e-6, 1e-2, 1.0, 1e8])
    for features in (X, outlier):
        held = leave_query_out(RankRLS(), features, y, qid=qid, alphas=alphas)
        for q in (0, 7):
            rest = qid != q
            L = explicit_laplacian(y[rest], qid[rest])
            for k, alpha in enumerate(alphas):
                expected = features[~rest] @ scaled_ridge(features[rest], L, y[rest], alpha)
                found = held[~rest, k]
                found, expected = found - found.mean(), expected - expected.mean()
                np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


def test_large_queries_and_constraints_too():
    X, y, qid = uneven(2, (7, 0, 0), queries=3)
    signs = np.array([1, 1, 1])
    for positive in (False, signs):
        held = leave_query_out(RankRLS(1e-3, positive=positive), X, y, qid=qid)
        rest = qid != 1
        refit = RankRLS(1e-3, positive=positive).fit(X[rest], y[rest], qid=qid[rest]).predict(X[~rest])
        found = held[~rest] - held[~rest].mean()
        np.testing.assert_allclose(found, refit - refit.mean(), atol=1e-7 * np.abs(refit - refit.mean()).max())
        assert np.corrcoef(found, y[~rest])[0, 1] > (0.9 if positive is False else 0.0)


def test_held_out_preferences_equal_refits():
    X, y, _ = uneven(3, (7, 0, 0))
    rng = np.random.default_rng(3)
    i, j = rng.integers(0, len(X), (2, 100))
    i, j = i[i != j], j[i != j]
    i, j = np.where(y[i] > y[j], i, j), np.where(y[i] > y[j], j, i)
    lead = leave_preference_out(RankRLS(1e-3), X, i, j)
    for e in (0, 5, 50):
        rest = np.arange(len(i)) != e
        refit = RankRLS(1e-3).fit_pairs(X, i[rest], j[rest])
        assert lead[e] == pytest.approx((X[i[e]] - X[j[e]]) @ refit.coef_, rel=1e-6)


@pytest.mark.parametrize("power", [0, 3, 5, 7, 9])
def test_the_automatic_grid_reaches_every_feature(power):
    X, y, qid = uneven(4, (0, 0, 0, 0))
    y = X[:, 1] + 0.3 * X[:, 2] + 0.3 * np.random.default_rng(5).normal(size=len(y))
    X[:, 0] *= 10.0**power
    for positive in (False, [1]):
        model = RankRLSCV(positive=positive).fit(X, y, qid=qid)
        assert model.best_score_ < 0.12
        assert not model.alpha_at_edge_
    tried = len(RankRLSCV().fit(X, y, qid=qid).cv_results_["alpha"])
    assert tried == 21 if power <= 3 else 21 < tried < 65


def test_ordinary_features_are_not_graded():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(100, 5)) * [1.0, 10.0, 30.0, 0.1, 1.0] + 1e6
    y, qid = X[:, 0], np.repeat(np.arange(10), 10)
    graph = build(y, qid, None, PLAIN)
    assert not PrimalProblem(X, graph, (graph.F @ y)[:, None], own_units=True).graded


@pytest.mark.parametrize("kind", ["dense", "sparse", "pairs", "many pairs"])
def test_columns_that_no_edge_sees_have_no_weight(kind):
    """Rounding of a constant is not a feature, however small beside the others."""
    rng = np.random.default_rng(7)
    qid = np.repeat(np.arange(10), 12)
    by_query = rng.normal(size=10)[qid]
    X = np.column_stack((1e7 * rng.normal(size=120), rng.normal(size=120), np.full(120, 0.1), by_query, 1e6 + by_query))
    if kind in ("sparse", "dense"):
        X[:, 0] *= rng.random(120) < 0.05
        X[:, 1] *= rng.random(120) < 0.05
        X[qid != 3, 3:] = 0.0
        X[:, 2] = 0.1 if kind == "dense" else 0.0
    y = X[:, 1] + 0.1 * rng.normal(size=120)
    features = sparse.csr_array(X) if kind == "sparse" else X
    if "pairs" in kind:
        i, j = np.array([(a, b) for q in range(10) for a in range(12 * q, 12 * q + 12) for b in range(12 * q, a)]).T
        if kind == "pairs":
            i, j = i[::5], j[::5]
        model = RankRLS(1e-9).fit_pairs(features, i, j, strength=y[i] - y[j])
    else:
        graph = build(y, qid, None, PLAIN)
        equations = normal_equations(graph.factor_rows(features), (graph.F @ y)[:, None])
        assert (equations.gram.diagonal()[2:] == 0.0).all()
        model = RankRLS(1e-9).fit(features, y, qid=qid)
    assert np.abs(model.coef_[2:]).max() <= 1e-9
    assert model.coef_[1] == pytest.approx(1.0, abs=0.1)


def test_dependent_features_and_more_features_than_items():
    rng = np.random.default_rng(8)
    X, y, qid = uneven(8, (7, 0, 0, 3))
    X = np.column_stack((X, 3.0 * X[:, 1], X[:, 0] + 1e7 * X[:, 2]))
    graph = build(y, qid, None, PLAIN)
    problem = PrimalProblem(X, graph, (graph.F @ y)[:, None], own_units=True)
    assert problem.graded
    assert problem.spectrum.rank == 4
    np.testing.assert_allclose(problem.spectrum.vectors.T @ problem.spectrum.vectors, np.eye(6), atol=1e-13)
    w = RankRLS(1e-3).fit(X, y, qid=qid).coef_
    assert w[4] == pytest.approx(3.0 * w[1], rel=1e-6)
    wide = rng.normal(size=(20, 60)) * 10.0 ** rng.integers(0, 8, 60)
    G = wide.T @ wide
    s = graded_spectrum(G, 60)
    assert s.rank == 20
    np.testing.assert_allclose((s.vectors * s.values) @ s.vectors.T, G, atol=1e-12 * G.max())


def test_many_features_keep_the_fast_decomposition(monkeypatch):
    G = np.diag([1.0, 1e12])
    assert is_graded(G, 10)
    monkeypatch.setattr(graded, "MOST_GRADED", 1)
    assert not is_graded(G, 10)


def test_pair_graph_of_few_items():
    graph = PairGraph(np.array([0, 1]), np.array([1, 2]), 3, np.ones(2), np.ones(2), None)
    X = np.array([[1e8, 1.0], [0.0, 0.5], [2e8, 0.0]])
    problem = PrimalProblem(X, graph, graph.target[:, None], own_units=True)
    w = problem.solve(1e-6)[:, 0]
    np.testing.assert_allclose([X[0] @ w - X[1] @ w, X[1] @ w - X[2] @ w], [1.0, 1.0], atol=1e-4)


def pair_by_refit(X, y, i, j, alpha):
    rest = np.delete(np.arange(len(y)), [i, j])
    w = scaled_ridge(X[rest], explicit_laplacian(y[rest], np.zeros(len(rest))), y[rest], alpha)
    return (X[i] - X[j]) @ w


def test_held_out_pairs_equal_refits():
    X, y, _ = uneven(9, (7, 0, 0), m=40, queries=1)
    pairs = np.array([(0, 3), (5, 17), (20, 39)])
    alphas = [1e-3, 1.0, 1e10]
    found = leave_pair_out(RankRLS(), X, y, pairs=pairs, alphas=alphas).differences
    for k, alpha in enumerate(alphas):
        expected = [pair_by_refit(X, y, i, j, alpha) for i, j in pairs]
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-6, atol=1e-9)
    assert RankRLSCV().fit(X, y).best_score_ < 0.1


WIDE = np.random.default_rng(10).normal(size=(30, 40))
UNEVEN = WIDE * np.where(np.arange(40) == 3, 1e8, 1.0)
OUTLIER = WIDE[:, :4].copy()
OUTLIER[5, 2] = 1e8
LABELS = WIDE[:, 0] + WIDE[:, 1]
WINNERS, LOSERS = np.arange(15), np.arange(15, 30)
LOST = r"Feature 3 has .*e\+08 times the spread of feature \d+ \(39 features are as small\)"


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: RankRLS(1e-3).fit(UNEVEN, LABELS), LOST + r".*StandardScaler does or take solver='primal'\."),
        (lambda: RankRLS(1e-3, solver="dual").fit(UNEVEN[:, :4], LABELS), "Feature 3 has"),
        (lambda: RankRLSCV().fit(UNEVEN, LABELS), LOST + r".*StandardScaler does\."),
        (lambda: RankRLSCV(cv=3).fit(UNEVEN, LABELS, qid=np.repeat(np.arange(6), 5)), LOST),
        (lambda: RankRLS(1e-3).fit_pairs(UNEVEN, WINNERS, LOSERS), LOST),
        (lambda: leave_pair_out(RankRLS(1e-3), UNEVEN, LABELS), LOST),
        (lambda: leave_pair_out(RankRLS(1e-3), OUTLIER, LABELS), "Feature 2 has .* times the spread of feature"),
        (
            lambda: RankRLS(1e-3).fit(pd.DataFrame(UNEVEN, columns=[f"f{j}" for j in range(40)]), LABELS),
            r"Feature 3 \('f3'\) has",
        ),
    ],
    ids=range(8),
)
def test_what_rounding_hides_is_said(fit, message):
    with pytest.warns(UserWarning, match=message):
        fit()


def test_nothing_is_said_where_nothing_is_hidden():
    """Warnings are errors: features that alpha holds down anyway, constants, offsets, ordinary spreads, the primal."""
    qid = np.repeat(np.arange(6), 5)
    offset = WIDE + 1e7 * np.arange(40)
    offset[:, 7] = 0.1
    offset[:, 8] = 1e6 * qid
    RankRLS(1e-3).fit(offset, LABELS, qid=qid)
    RankRLS(1e3).fit(UNEVEN, LABELS)
    RankRLS(1e-3).fit(UNEVEN[:, :4], LABELS)
    RankRLS(1e-3, kernel="rbf").fit(UNEVEN, LABELS)
    RankRLSCV().fit(UNEVEN[:, :4], LABELS)
    RankRLSCV(cv=3).fit(OUTLIER, LABELS, qid=qid)
    RankRLSCV().fit(WIDE * 10.0 ** (np.arange(40) % 4), LABELS)
    leave_pair_out(RankRLS(1e-3), UNEVEN[:, :4], LABELS)
    RankRLS(1e-3).fit(sparse.csr_array(UNEVEN), LABELS)
