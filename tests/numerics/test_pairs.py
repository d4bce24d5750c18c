"""Leave-pair-out against that many refits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankrls.numerics.graph import LabelledGraph, PreferenceGraph
from rankrls.numerics.pairs import (
    feature_rounding,
    held_out_concordance,
    held_out_margins,
    hold_out_preferred_pairs,
    kernel_features,
    kernel_rounding,
    unsupported_reason,
)
from rankrls.numerics.smoother import DualEquations, normal_equations
from tests.numerics.cases import Case, refitted_weights
from tests.oracles import gaussian
from tests.refusals import Refusal


def problem(seed, lengths, n, weighted, classes=4):
    rng = np.random.default_rng(seed)
    q = rng.permutation(np.repeat(np.arange(len(lengths)), lengths))
    m = len(q)
    X, y = rng.normal(size=(m, n)), rng.integers(0, classes, m).astype(float)
    return X, y, q, rng.uniform(0.3, 3.0, m) if weighted else None


def by_refits(case, i, j, alpha):
    out = []
    for a, b in zip(i, j, strict=True):
        train = ~np.isin(np.arange(len(case.y)), (a, b))
        out.append((case.X[a] - case.X[b]) @ refitted_weights(case, train, alpha).astype(float))
    return np.array(out)


@given(
    st.integers(0, 2**32),
    st.sampled_from([([9], "pairs"), ([9], "queries"), ([8], "examples"), ([5, 2, 1, 4], "examples")]),
    st.sampled_from([2, 12]),
    st.booleans(),
)
def test_every_pair_is_scored_as_by_the_refit_without_it(seed, lengths, n, weighted):
    lengths, balance = lengths
    X, y, q, w = problem(seed, lengths, n, weighted and balance == "examples")
    setting = {"ties": "include", "balance": balance, "regression_weight": 0.0}
    case = Case(X, y, q, w, setting)
    graph = case.graph
    pairs = [(a, b) for a in range(len(y)) for b in range(len(y)) if q[a] == q[b] and y[a] > y[b]]
    primal = normal_equations(graph, X).smoother()
    dual = DualEquations.of_kernel(X @ X.T, graph).smoother()
    alphas = np.array([1e4, 1.0, 1e-2, 1e-5]) * primal.top
    if not pairs:
        assert np.isnan(held_out_concordance(primal, graph, X, alphas, balance)[0]).all()
        return
    i, j = np.array(pairs).T
    weight = np.ones(len(i)) if w is None else w[i] * w[j]
    wanted = np.column_stack([by_refits(case, i, j, alpha) for alpha in alphas])
    scale = np.abs(y).max() + np.abs(wanted).max(axis=0)
    for smoother in (primal, dual):
        margins = held_out_margins(smoother, graph, X, alphas, i, j, balance)
        np.testing.assert_allclose((margins - wanted) / scale, 0.0, atol=1e-6)
        (score,), found = held_out_concordance(smoother, graph, X, alphas, balance)
        far = np.abs(wanted / scale) > 1e-5
        right = weight @ (0.5 + 0.5 * np.sign(margins))
        assert (np.sign(margins) == np.sign(wanted))[far].all()
        np.testing.assert_allclose(score, right / weight.sum(), atol=1e-12)
        influence = np.zeros((len(y), len(alphas)))
        for ends in (i, j):
            np.add.at(influence, ends, weight[:, None] * (0.5 + 0.5 * np.sign(margins) - score))
        np.testing.assert_allclose(found, influence[graph.rows] / weight.sum(), atol=1e-12)


@pytest.mark.parametrize("lengths", [[8], [8, 7]])
def test_a_small_eigenvalue_is_not_taken_for_an_intercept(lengths):
    """An eigenvector of an eigenvalue next to 0 is found mixed with those of the intercepts, which are left out."""
    for seed in range(10):
        X, y, q, _ = problem(seed, lengths, sum(lengths), False)
        X *= np.geomspace(1.0, 1e-6, X.shape[1])
        case = Case(X, y, q, None, {"ties": "include", "balance": "examples", "regression_weight": 0.0})
        dual = DualEquations.of_kernel(X @ X.T, case.graph).smoother()
        i, j = np.array([(a, b) for a in range(len(y)) for b in range(a) if q[a] == q[b] and y[a] != y[b]]).T
        alpha = 1e-8 * dual.top
        margins = held_out_margins(dual, case.graph, X, np.array([alpha]), i, j)[:, 0]
        wanted = by_refits(case, i, j, alpha)
        np.testing.assert_allclose(margins, wanted, atol=1e-6 * (np.abs(y).max() + np.abs(wanted).max()))


@pytest.mark.parametrize("balance", ["pairs", "queries"])
def test_a_pair_without_which_all_labels_are_equal_is_a_tie(balance):
    """What remains has no differences, so its model is 0, however small alpha is."""
    for seed in range(20):
        X, w = np.random.default_rng(seed).normal(size=(9, 12)), np.ones(9)
        y = np.array([1.0, 1, 1, 1, 2, 1, 1, 1, 3])
        graph = LabelledGraph.build(y, weights=w, balance=balance)
        smoother = normal_equations(graph, X).smoother()
        alphas = np.geomspace(1.0, 1e-5, 4) * smoother.top
        assert (held_out_margins(smoother, graph, X, alphas, np.array([8]), np.array([4]), balance) == 0.0).all()


def test_equal_items_are_tied():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(6, 3)), 2, axis=0)
    y = np.tile([0.0, 1.0], 6)
    graph = LabelledGraph.build(y)
    i, j = np.arange(1, 12, 2), np.arange(0, 12, 2)
    for smoother in (normal_equations(graph, X).smoother(), DualEquations.of_features(X, graph).smoother()):
        assert not held_out_margins(smoother, graph, X, np.array([1e3, 1.0, 1e-3]), i, j).any()


def test_equal_items_with_a_preference_are_tied():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(10, 3)), 2, axis=0)
    winners, losers = np.triu_indices(20, 1)
    graph = PreferenceGraph.build(winners, losers, 20, strength=rng.normal(size=190))
    i, j = np.arange(1, 20, 2), np.arange(0, 20, 2)
    Z = kernel_features(gaussian(X, X, 0.3))
    alphas = np.array([1e3, 1.0, 1e-3])
    assert not hold_out_preferred_pairs(
        normal_equations(graph, Z).smoother(), graph, Z, alphas, i, j, kernel_rounding(Z)
    ).any()


@pytest.mark.parametrize("alpha", [1.0, 1e-3, 1e-6])
def test_pairs_with_few_other_preferences_are_scored_as_by_refits(alpha):
    rng = np.random.default_rng(0)
    m, p = 30, 45
    winners, losers = rng.permuted(np.tile(np.arange(m), (p, 1)), axis=1)[:, :2].T
    c, s, Z = rng.uniform(0.5, 2.0, p), rng.normal(size=p), rng.normal(size=(m, 25)) * np.geomspace(1.0, 1e3, 25)
    graph = PreferenceGraph.build(winners, losers, m, strength=s, weights=c)
    sides = winners, losers, feature_rounding(Z)
    found = hold_out_preferred_pairs(normal_equations(graph, Z).smoother(), graph, Z, np.array([alpha]), *sides)[:, 0]
    for e in range(0, p, 4):
        i, j = winners[e], losers[e]
        left = ~(np.isin(winners, (i, j)) | np.isin(losers, (i, j)))
        D, root = Z[winners[left]] - Z[losers[left]], np.sqrt(c[left])
        stacked = np.vstack((root[:, None] * D, np.sqrt(alpha) * np.eye(25)))
        w = np.linalg.lstsq(stacked, np.concatenate((root * s[left], np.zeros(25))), rcond=None)[0]
        wanted = (Z[i] - Z[j]) @ w
        assert found[e] == pytest.approx(wanted, abs=1e-6 * np.abs(found).max())


def test_a_pair_without_which_nothing_is_left_is_refused():
    graph = PreferenceGraph.build(np.array([0, 1, 3]), np.array([1, 2, 1]), 4)
    with Refusal("rows 1 and 3", parameter="winners", row=None):  # neither row alone is at fault
        Z = np.eye(4)[:, :2]
        smoother = normal_equations(graph, Z).smoother()
        hold_out_preferred_pairs(smoother, graph, Z, np.ones(1), np.array([3]), np.array([1]), feature_rounding(Z))


def test_graphs_whose_pairs_cannot_be_held_out_are_named():
    y, q = np.arange(8.0) // 2, np.repeat([0, 1], 4)
    assert "ties" in unsupported_reason(LabelledGraph.build(y, ties="exclude"), balance="examples", weighted=False)
    mixed = LabelledGraph.build(y, regression_weight=0.5)
    assert "regression_weight" in unsupported_reason(mixed, balance="examples", weighted=False)
    assert "queries" in unsupported_reason(LabelledGraph.build(y, q, balance="pairs"), balance="pairs", weighted=False)
    assert "sample_weight" in unsupported_reason(
        LabelledGraph.build(y, balance="pairs"), balance="pairs", weighted=True
    )
    assert "four" in unsupported_reason(LabelledGraph.build(y[:3]), balance="examples", weighted=False)
    assert unsupported_reason(LabelledGraph.build(y, q), balance="examples", weighted=True) is None
