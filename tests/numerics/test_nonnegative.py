"""Constraints on signs: the conditions of Karush, Kuhn and Tucker, and refits."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.nonnegative import hold_out_signed, signed_path
from rankrls.numerics.smoother import normal_equations
from tests.numerics.cases import cases, pairwise_equations


@given(cases(), st.integers(0, 2**32), st.sampled_from([1e2, 1.0, 1e-3, 1e-6]))
def test_solutions_fulfil_the_conditions_of_a_minimum(case, seed, share):
    signs = np.random.default_rng(seed).integers(-1, 2, case.X.shape[1]).astype(np.int8)
    equations = normal_equations(case.graph, case.X)
    alpha = share * max(float(np.trace(equations.gram)), 1.0)
    w = signed_path(equations, np.array([alpha]), signs)[0, :, 0]
    gradient = equations.gram @ w + alpha * w - equations.right[:, 0]
    noise = 1e-9 * (1e-9 + np.abs(equations.right).max(initial=0.0))
    assert (signs * w >= 0.0).all()
    assert np.abs(gradient[(signs == 0) | (w != 0.0)]).max(initial=0.0) <= noise
    assert (signs * gradient >= -noise)[w == 0.0].all()


@given(cases())
def test_without_constraints_it_is_the_free_solution(case):
    equations = normal_equations(case.graph, case.X)
    alpha = max(float(np.trace(equations.gram)), 1.0) * 1e-3
    free = signed_path(equations, np.array([alpha]), np.zeros(case.X.shape[1], dtype=np.int8))[0]
    np.testing.assert_allclose(free, equations.solve(alpha), atol=1e-9 * (1.0 + np.abs(free).max()))


@given(cases(), st.integers(0, 2**32))
def test_held_out_queries_are_scored_as_by_refits(case, seed):
    signs = np.random.default_rng(seed).integers(-1, 2, case.X.shape[1]).astype(np.int8)
    graph = case.graph
    equations = normal_equations(graph, case.X)
    alphas = np.array([1.0, 1e-3, 1e-5]) * max(float(np.trace(equations.gram)), 1.0)
    found = hold_out_signed(equations, graph, case.X, alphas, signs, means=True)
    held = graph.restore(found[0])
    for query in set(case.q):
        out = case.q == query
        G, b = (a.astype(float) for a in pairwise_equations(case.X[~out], case.y[~out], case.laplacian(~out)))
        left = type(equations)(G, b[:, None], int((~out).sum()))
        wanted = case.X[out] @ signed_path(left, alphas, signs)[:, :, 0].T
        np.testing.assert_allclose(held[:, out], wanted.T, atol=1e-7 * (1.0 + np.abs(case.y).max()))


def test_what_only_a_held_out_query_determines_gets_no_weight():
    q = np.repeat(np.arange(6), [10, 20, 33, 1000, 7, 40])
    for seed in range(10):  # what its rows leave of the sums is rounding, positive or negative
        rng = np.random.default_rng(seed)
        X, alone = rng.uniform(1.0, 2.0, (1110, 3)) * [1.0, 1.0, 1e3], q == 3
        X[~alone, 2] = 0.0
        y = X[:, 0] + 1e-3 * X[:, 2]
        graph = LabelledGraph.build(y, q)
        equations = normal_equations(graph, X)
        found = hold_out_signed(equations, graph, X, np.array([1e-9]), np.ones(3, dtype=np.int8), means=True)
        held = graph.restore(found[0])[0, alone]
        np.testing.assert_allclose(held, X[alone, 0], atol=1e-6)


def test_features_without_spread_get_no_weight_and_change_no_other():
    """Of the problems that were drawn like this one, one in a thousand has wrong weights by scipy's nnls alone."""
    rng = np.random.default_rng(1028)
    m, n = rng.integers(10, 60), rng.integers(2, 12)
    X = rng.integers(-3, 4, (m, n)) * 10.0 ** rng.uniform(-4, 4, n)
    flat, q = rng.random(n) < 0.3, np.unique(np.sort(rng.integers(0, 5, m)), return_inverse=True)[1]
    X[:, flat] = rng.normal(size=flat.sum())
    equations = normal_equations(LabelledGraph.build(rng.normal(size=m), q), X)
    alpha = 10.0 ** rng.uniform(-9, 1) * np.trace(equations.gram)
    w = signed_path(equations, np.array([alpha]), np.ones(n, dtype=np.int8))[0, :, 0]
    gradient = equations.gram @ w + alpha * w - equations.right[:, 0]
    assert not w[flat].any()
    assert np.abs(gradient[w > 0.0]).max() <= 1e-9 * np.abs(equations.right).max()


def test_an_alpha_of_0_with_equal_features_is_solved():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X = np.column_stack((X, X[:, 0], np.zeros(50)))
    y = X @ [1.0, -1.0, 0.5, 1.0, 0.0]
    w = signed_path(normal_equations(LabelledGraph.build(y), X), np.zeros(1), np.ones(5, dtype=np.int8))[0, :, 0]
    assert (w >= 0.0).all()
    np.testing.assert_allclose(w[[0, 3]].sum(), 2.0, atol=0.3)
    assert w[1] == w[4] == 0.0
