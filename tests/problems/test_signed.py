"""Constrained solutions against a bounded least-squares solver on the explicit factor, and against refits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import lsq_linear, nnls

from rankrls.equations.normal_equations import NormalEquations
from rankrls.graph import PairGraph
from rankrls.problems import signed
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.signed import KKT_TOLERANCE, SignedProblem, solve_signed
from tests.equations.test_holdout import blocks_of
from tests.oracles import explicit_laplacian
from tests.problems.test_solutions import build, cases

ALPHAS = np.array([1e-3, 1.0, 1e3])


def factor(L):
    values, vectors = np.linalg.eigh(L)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def bounded(FX, target, alpha, signs):
    """Minimiser of ||FX w - target||^2 + alpha ||w||^2 under the bounds, by scipy, from the stacked rows."""
    n = FX.shape[1]
    stacked = np.vstack((FX, np.sqrt(alpha) * np.eye(n)))
    low, high = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    right = np.concatenate((target, np.zeros(n)))
    if (signs == 0).all():
        return np.linalg.lstsq(stacked, right, rcond=None)[0]
    return lsq_linear(stacked, right, (low, high), method="bvls", tol=1e-15, max_iter=2000).x


def kkt_violation(equations, alpha, signs, weights):
    """How far weights (n, targets) are from the solution: 0 at it, at most KKT_TOLERANCE for what is returned.

    The largest part of the gradient that should not be there, relative to ``sqrt(A_jj) max(|F y|, sum_k sqrt(A_kk)
    |w_k|)``: of a feature, by the lengths of the feature and of what it is multiplied with. Infinite for a weight of
    the wrong sign.
    """
    worst = 0.0
    lengths = np.sqrt(equations.gram.diagonal() + alpha)
    for w, rhs, energy in zip(weights.T, equations.rhs.T, equations.energy, strict=True):
        if (signs * w < 0.0).any():
            return np.inf
        gradient = np.divide(equations.gram @ w + alpha * w - rhs, lengths, out=np.zeros_like(w), where=lengths > 0.0)
        held = (signs != 0) & (w == 0.0)
        wrong = np.where(held, np.maximum(-signs * gradient, 0.0), np.abs(gradient))
        scale = max(np.sqrt(max(energy, 0.0)), lengths @ np.abs(w))
        worst = max(worst, wrong.max(initial=0.0) / scale if scale > 0.0 else 0.0)
    return worst


def signs_for(n, seed):
    return np.random.default_rng(seed).integers(-1, 2, n).astype(np.int8)


@settings(max_examples=30)
@given(cases(), st.integers(0, 2**32 - 1))
def test_equals_a_bounded_least_squares_solver(case, seed):
    X, y, qid, w, options = case
    F = factor(explicit_laplacian(y, qid, w, **options))
    graph = build(y, qid, w, options)
    signs = signs_for(X.shape[1], seed)
    for features in (X, sparse.csr_array(X), X.astype(np.float32)):
        dense = features.toarray() if sparse.issparse(features) else features.astype(float)
        problem = SignedProblem(features, graph, (graph.F @ y)[:, None], signs)
        path = problem.path(ALPHAS).coefficients
        for k, alpha in enumerate(ALPHAS):
            expected = bounded(F @ dense, F @ y, alpha, signs)
            tolerance = {"rtol": 1e-6, "atol": 1e-7 * max(1.0, np.abs(expected).max())}
            np.testing.assert_allclose(path[k, :, 0], expected, **tolerance)
            np.testing.assert_allclose(problem.solve(alpha)[:, 0], expected, **tolerance)
            assert (path[k, :, 0] * signs >= 0.0).all()


@given(cases(), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-12, 1e-6, 1.0, 1e6]))
def test_optimality_conditions(case, seed, alpha):
    """From rank-deficient data with tiny alphas to tight ones, in features of any scale."""
    X, y, qid, w, options = case
    rng = np.random.default_rng(seed)
    X = X * 10.0 ** rng.integers(-4, 5, X.shape[1])
    graph = build(y, qid, w, options)
    signs = signs_for(X.shape[1], seed)
    problem = SignedProblem(X, graph, (graph.F @ y)[:, None], signs)
    weights = problem.solve(alpha)
    tried = [alpha]
    if alpha < 1e-9 * problem.equations.gram.diagonal().max():  # what is lost in rounding is raised until it is not
        diagonal = problem.equations.gram.diagonal()
        tried += [a for k in range(30) for a in (alpha * 10.0**k, 1e-12 * diagonal[diagonal > 0].min() * 10.0**k)]
    assert min(kkt_violation(problem.equations, a, signs, weights) for a in tried) <= KKT_TOLERANCE


def test_a_wrong_point_violates_the_conditions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))
    equations = NormalEquations(X.T @ X, X.T @ X[:, :1] - 3 * X.T @ X[:, 1:2], np.array([100.0]))
    signs = np.ones(5, dtype=np.int8)
    weights = solve_signed(equations, np.array([1.0]), signs)[0][0]
    assert weights[0, 0] > 0.0
    assert kkt_violation(equations, 1.0, signs, weights) <= KKT_TOLERANCE
    for j, change in ((0, 1e-3), (0, -1e-3), (1, 1e-3)):
        moved = weights.copy()
        moved[j] += change
        assert kkt_violation(equations, 1.0, signs, moved) > 1e-5
    dropped = weights.copy()
    dropped[0] = 0.0
    assert kkt_violation(equations, 1.0, signs, dropped) > 1e-5
    assert kkt_violation(equations, 1.0, signs, -weights) == np.inf


@pytest.mark.parametrize("n", [30, 136])
def test_equals_nnls_on_a_cholesky_factor(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(4 * n, n)) @ (np.eye(n) + 0.5 * rng.normal(size=(n, n)))
    y = rng.normal(size=4 * n)
    equations = NormalEquations(X.T @ X, (X.T @ y)[:, None], np.array([y @ y]))
    alphas = np.geomspace(1e-3, 1e5, 9)
    path, passive = solve_signed(equations, alphas, np.ones(n, dtype=np.int8))
    for k, alpha in enumerate(alphas):
        R = np.linalg.cholesky(X.T @ X + alpha * np.eye(n)).T
        expected = nnls(R, np.linalg.solve(R.T, X.T @ y))[0]
        np.testing.assert_allclose(path[k, :, 0], expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())
        np.testing.assert_array_equal(passive[k, :, 0], expected > 0.0)


def test_pivoting_that_takes_too_long_ends_by_descent(monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 12)), rng.normal(size=40)
    equations = NormalEquations(X.T @ X, (X.T @ y)[:, None], np.array([y @ y]))
    signs = signs_for(12, 5)
    expected = solve_signed(equations, ALPHAS, signs)[0]
    assert (expected != 0.0).any()
    monkeypatch.setattr(signed, "_MAX_PIVOTS", -24)
    np.testing.assert_allclose(solve_signed(equations, ALPHAS, signs)[0], expected, rtol=1e-9, atol=1e-12)


def test_no_constraints_is_the_ordinary_solution():
    rng = np.random.default_rng(2)
    X, y, qid = rng.normal(size=(50, 6)), rng.normal(size=50), np.repeat(np.arange(10), 5)
    graph = build(y, qid, None, {"ties": "include", "balance": "examples", "beta": 0.0})
    target = (graph.F @ y)[:, None]
    free = SignedProblem(X, graph, target, np.zeros(6, dtype=np.int8))
    plain = PrimalProblem(X, graph, target)
    np.testing.assert_allclose(free.path(ALPHAS).coefficients, plain.path(ALPHAS).coefficients, rtol=1e-10)
    blocks = blocks_of(graph)
    np.testing.assert_allclose(free.holdout(blocks, ALPHAS), plain.holdout(blocks, ALPHAS), rtol=1e-9, atol=1e-12)


def test_alpha_zero_with_equal_and_constant_columns_is_the_limit_from_above():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    X = np.column_stack((X, 2.0 * X[:, 0], np.full(60, 0.1)))
    y, qid = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=60), np.repeat(np.arange(6), 10)
    graph = build(y, qid, None, {"ties": "include", "balance": "examples", "beta": 0.0})
    problem = SignedProblem(X, graph, (graph.F @ y)[:, None], np.ones(5, dtype=np.int8))
    w = problem.solve(0.0)[:, 0]
    assert w[1] == 0.0
    np.testing.assert_allclose(w[3], 2.0 * w[0], rtol=1e-5)  # minimum norm
    np.testing.assert_allclose(w, problem.solve(1e-6)[:, 0], rtol=1e-4, atol=1e-8)
    assert abs(w[4]) <= 1e-12


@settings(max_examples=30)
@given(cases(), st.integers(0, 2**32 - 1))
def test_held_out_queries_equal_refits(case, seed):
    X, y, qid, w, options = case
    graph = build(y, qid, w, options)
    signs = signs_for(X.shape[1], seed)
    blocks = blocks_of(graph)
    for features in (X, sparse.csr_array(X)):
        scores = SignedProblem(features, graph, (graph.F @ y)[:, None], signs).holdout(blocks, ALPHAS)[:, :, 0]
        for block in blocks:
            train = np.ones(len(y), dtype=bool)
            train[block] = False
            if not train.any():
                continue
            F = factor(explicit_laplacian(y[train], qid[train], None if w is None else w[train], **options))
            for k, alpha in enumerate(ALPHAS):
                expected = X[block] @ bounded(F @ X[train], F @ y[train], alpha, signs)
                scale = max(1.0, np.abs(expected).max())
                np.testing.assert_allclose(scores[block, k], expected, rtol=1e-5, atol=1e-6 * scale)


def test_held_out_preferences_equal_refits():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 4))
    i, j = rng.integers(0, 20, (2, 50))
    i, j = i[i != j], j[i != j]
    s, c = rng.normal(size=len(i)), rng.random(len(i)) + 0.2
    signs = np.array([1, -1, 0, 1], dtype=np.int8)
    graph = PairGraph(i, j, 20, s, c, None)
    problem = SignedProblem(X, graph, graph.target[:, None], signs)
    rows = np.arange(len(i))
    for blocks in ([rows[k : k + 1] for k in rows], np.array_split(rng.permutation(rows), 5)):
        lead = problem.holdout(blocks, ALPHAS)[:, :, 0]
        for block in blocks:
            left = np.setdiff1d(rows, block)
            D = np.sqrt(c)[:, None] * (X[i] - X[j])
            for k, alpha in enumerate(ALPHAS):
                w = bounded(D[left], (np.sqrt(c) * s)[left], alpha, signs)
                np.testing.assert_allclose(lead[block, k], (X[i] - X[j])[block] @ w, rtol=1e-6, atol=1e-9)
