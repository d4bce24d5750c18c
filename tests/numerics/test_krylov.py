"""Products with X'LX and conjugate gradients of all shifts, against dense matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from rankrls.numerics.graph import LabelledGraph, PreferenceGraph
from rankrls.numerics.krylov import (
    FeatureSystem,
    KernelSystem,
    KrylovRun,
    LaplacianProduct,
    Status,
    largest_eigenvalue,
)
from rankrls.numerics.smoother import normal_equations
from tests.numerics.cases import cases


@given(cases(), st.sampled_from([0.0, 1e6]))
def test_products_are_those_of_the_explicit_laplacian(case, offset):
    offset = 0.0 if case.setting["regression_weight"] else offset
    X, p = case.X + offset, np.arange(1.0, case.X.shape[1] + 1)
    L = case.laplacian()
    wanted, right = case.X.T @ (L @ (case.X @ p)), case.X.T @ (L @ case.y)
    scale = np.abs(L).max() * np.abs(case.X).max() ** 2 * len(L) + 1.0
    for container in (X, sparse.csr_array(X)):
        product = LaplacianProduct(container, case.graph)
        np.testing.assert_allclose((product @ p - wanted) / scale, 0.0, atol=1e-7 if offset else 1e-12)
        found = product.right_side(case.graph.target[:, 0])
        np.testing.assert_allclose((found - right) / scale, 0.0, atol=1e-7 if offset else 1e-12)


@pytest.mark.parametrize("ties", ["include", "exclude"])
@pytest.mark.parametrize("queries", [1, 5, 400])
@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "offset"])
def test_one_pass_and_two_passes_over_some_rows(ties, queries, kind):
    rng = np.random.default_rng(0)
    X = sparse.random_array((900, 60), density=0.3, rng=rng, format="csr")
    if kind == "offset":
        X = X.tolil()
        X[:, 7] = 1e7 + rng.normal(size=900)
        X = sparse.csr_array(X)
    rows = np.sort(rng.choice(900, 800, replace=False))
    y, q = rng.integers(0, 3, 800).astype(float), np.unique(rng.integers(0, queries, 800), return_inverse=True)[1]
    graph = LabelledGraph.build(y, q, weights=rng.uniform(0.5, 2, 800), ties=ties)
    dense = X.toarray()[rows]
    dense[:, 7] -= 1e7 * (kind == "offset")
    wanted = dense.T @ graph.restore(graph.laplacian((dense @ np.ones(60))[graph.rows]))
    given_X = {"dense": X.toarray(), "float32": X.toarray().astype(np.float32)}.get(kind, X)
    of_rows = LabelledGraph.build(y, q, weights=graph.restore(graph.weights), ties=ties)
    product = LaplacianProduct(given_X, with_rows(of_rows, rows))
    if kind == "sparse":
        assert (product._one_pass is not None) == (queries < 400)
    tolerance = {"float32": 1e-5, "offset": 1e-6}.get(kind, 1e-10)
    np.testing.assert_allclose(product @ np.ones(60), wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())


def with_rows(graph, rows):
    """The same graph over some rows of a larger X."""
    return replace(graph, rows=rows[graph.rows])


def test_products_of_preferences():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5)) + 1e6
    i = rng.integers(0, 20, 50)
    j = (i + rng.integers(1, 20, 50)) % 20
    compared = rng.permutation(30)[:20]
    i, j = compared[i], compared[j]
    graph = PreferenceGraph.build(i, j, 30, weights=rng.uniform(0.5, 2, 50), strength=rng.normal(size=50))
    equations = normal_equations(graph, X)
    for container in (X, sparse.csr_array(X)):
        product = LaplacianProduct(container, graph)
        np.testing.assert_allclose(product @ np.ones(5), equations.gram @ np.ones(5), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(product.right_side(graph.target[:, 0]), equations.right[:, 0], rtol=1e-6, atol=1e-6)


def solve(*problem, **options):
    """A run to its end."""
    run = KrylovRun(*problem, **options)
    while not run.done:
        run.step()
    return run


def systems(seed=0, m=80, n=12):
    rng = np.random.default_rng(seed)
    X, q = rng.normal(size=(m, n)), np.repeat(np.arange(8), m // 8)
    graph = LabelledGraph.build(X[:, 0] + rng.normal(size=m), q, ties="exclude")
    Xv = rng.normal(size=(9, n))
    product = LaplacianProduct(X, graph)
    A, b = normal_equations(graph, X).gram, product.right_side(graph.target[:, 0])
    yield FeatureSystem(product, lambda p: Xv @ p, 9), A, b, lambda x: Xv @ x
    F = graph.factor_rows(np.eye(m))
    K = X @ X.T
    yield KernelSystem(K, graph, np.arange(9), 9), F @ K @ F.T, graph.target[:, 0], lambda c: (K @ F.T @ c)[:9]
    yield KernelSystem(K, graph, Xv @ X.T, 9), F @ K @ F.T, graph.target[:, 0], lambda c: Xv @ X.T @ F.T @ c


@pytest.mark.parametrize("which", range(3))
def test_solutions_and_watched_scores_of_every_alpha(which):
    system, A, b, scores = list(systems())[which]
    alphas = np.array([1.0, 1e3, 1e-3, 30.0])
    run = solve(system, b, alphas, tol=1e-11, max_iter=400)
    assert [run.verify(k) for k in range(4)] == [Status.CONVERGED] * 4
    watched = run.scores_of(np.arange(4))
    for k, alpha in enumerate(alphas):
        wanted = np.linalg.solve(A + alpha * np.eye(len(A)), b)
        np.testing.assert_allclose(run.solution(k), wanted, atol=1e-8 * np.abs(wanted).max() + 1e-12)
        np.testing.assert_allclose(watched[:, k], scores(wanted), atol=1e-7 * np.abs(scores(wanted)).max())
        assert np.linalg.norm(A @ run.solution(k) + alpha * run.solution(k) - b) < 1e-9 * np.linalg.norm(b)
    assert (np.diff(run.iterations[np.argsort(-alphas)]) >= 0).all()


def test_each_iterate_is_that_of_conjugate_gradients_of_its_own():
    system, A, b, scores = next(systems())
    alphas = np.array([50.0, 0.5])
    run = KrylovRun(system, b, alphas, tol=0.0, max_iter=40)
    states = [[np.zeros_like(b), b.copy(), b.copy()] for _ in alphas]
    for _ in range(9):
        run.step()
        for k, alpha in enumerate(alphas):
            x, r, p = states[k]
            q = A @ p + alpha * p
            gamma = (r @ r) / (p @ q)
            new = r - gamma * q
            states[k] = [x + gamma * p, new, new + (new @ new) / (r @ r) * p]
            np.testing.assert_allclose(run.solution(k), states[k][0], rtol=1e-7, atol=1e-10)
            np.testing.assert_allclose(run.scores_of(np.array([k]))[:, 0], scores(states[k][0]), rtol=1e-6, atol=1e-9)


def test_an_alpha_of_0_goes_to_the_solution_of_minimum_norm_and_bad_systems_stop():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 50))
    graph = LabelledGraph.build(rng.normal(size=20))
    product = LaplacianProduct(X, graph)
    b = product.right_side(graph.target[:, 0])
    run = solve(FeatureSystem(product), b, np.zeros(1), tol=1e-12, max_iter=200)
    F = graph.factor_rows(X)
    np.testing.assert_allclose(run.solution(0), np.linalg.pinv(F) @ graph.target[:, 0], atol=1e-8)
    top = np.linalg.eigvalsh(F.T @ F)[-1]
    assert 0.8 * top < largest_eigenvalue(FeatureSystem(product), b) <= top * (1 + 1e-9)
    assert largest_eigenvalue(FeatureSystem(product), b, 30) == pytest.approx(top)
    indefinite = KernelSystem(-np.eye(20), graph)
    assert solve(indefinite, graph.target[:, 0], np.ones(1) * 0.1).status == [Status.BREAKDOWN]
    assert solve(FeatureSystem(product), np.zeros(50), np.ones(2)).status == [Status.CONVERGED] * 2
    ended = solve(FeatureSystem(product), b, np.ones(1), tol=1e-9, max_iter=3)
    assert ended.status == [Status.MAX_ITER]
    assert largest_eigenvalue(FeatureSystem(product), np.zeros(50)) == 0.0
