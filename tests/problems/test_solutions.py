"""Primal and dual solutions against dense solves, for every graph and shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankrls._queries import query_layout
from rankrls.equations.normal_equations import normal_equations
from rankrls.equations.spectrum import auto_alphas, solve_one, spectrum
from rankrls.features.rows import row_products
from rankrls.graph import PairGraph, ScoredGraph
from rankrls.kernels import Kernel
from rankrls.problems.dual import DualProblem
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.reduced import ReducedProblem
from tests.oracles import dual_coefficients, explicit_laplacian, gaussian, refined_dual_coefficients, ridge
from tests.refusals import Refusal

ALPHAS = np.array([1e-8, 1e-3, 1.0, 1e3, 1e8])


@st.composite
def cases(draw):
    """Data of any shape on a graph of any kind."""
    m, n = draw(st.integers(2, 25)), draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    qid = rng.integers(0, draw(st.integers(1, 6)), m)
    y = rng.integers(0, draw(st.integers(2, 6)), m).astype(float)
    w = rng.random(m) + 0.3 if draw(st.booleans()) else None
    graph = {
        "ties": draw(st.sampled_from(["include", "exclude"])),
        "balance": draw(st.sampled_from(["pairs", "examples", "queries"])),
        "beta": draw(st.sampled_from([0.0, 0.4, 1.0])),
    }
    return rng.normal(size=(m, n)), y, qid, w, graph


def build(y, qid, w, graph):
    return ScoredGraph.build(
        y,
        query_layout(qid, len(y)),
        weights=w,
        ties=graph["ties"],
        balance=graph["balance"],
        regression_weight=graph["beta"],
    )


@given(cases())
def test_primal_equals_a_dense_solve(case):
    X, y, qid, w, options = case
    L = explicit_laplacian(y, qid, w, **options)
    graph = build(y, qid, w, options)
    for features in (X, sparse.csr_array(X), X.astype(np.float32)):
        dense = features.toarray() if sparse.issparse(features) else features.astype(float)
        problem = PrimalProblem(features, graph, (graph.F @ y)[:, None])
        alone = np.column_stack([problem.solve(a) for a in ALPHAS])  # by Cholesky, before the spectrum exists
        path = problem.path(ALPHAS).coefficients[:, :, 0]
        for k, alpha in enumerate(ALPHAS):
            expected = ridge(dense, L, y, alpha)
            # At a tiny alpha the data leave directions to rounding; what the rows score is determined
            # (errors of the order eps * lambda / alpha remain).
            loss = 1e-7 if alpha >= 1e-3 else 1e-4
            tolerance = {"rtol": 1e-6, "atol": loss * max(1.0, np.abs(expected).max())}
            np.testing.assert_allclose(dense @ path[k], dense @ expected, **tolerance)
            if alpha >= 1e-3:
                np.testing.assert_allclose(path[k], expected, **tolerance)
                np.testing.assert_allclose(alone[:, k], expected, **tolerance)


@given(cases())
def test_dual_equals_a_dense_solve(case):
    X, y, qid, w, options = case
    L = explicit_laplacian(y, qid, w, **options)
    graph = build(y, qid, w, options)
    target = (graph.F @ y)[:, None]
    for K, problem in (
        (X @ X.T, DualProblem.from_features(X, graph, target)),
        (gaussian(X, X, 0.1), DualProblem.from_kernel(gaussian(X, X, 0.1), graph, target)),
    ):
        values, vectors = np.linalg.eigh(K)
        Phi = vectors * np.sqrt(np.maximum(values, 0.0))
        alone = [problem.solve(a)[:, 0] for a in ALPHAS[1:]]
        path = problem.path(ALPHAS).coefficients[:, :, 0]
        for k, alpha in enumerate(ALPHAS[1:]):
            expected = Phi @ ridge(Phi, L, y, alpha)
            # A mean score that no pair determines is only as exact as the smallest eigenvalues of K.
            tolerance = {"rtol": 1e-6, "atol": 1e-5 * max(1.0, np.abs(expected).max()) if alpha < 1.0 else 1e-7}
            np.testing.assert_allclose(K @ alone[k], expected, **tolerance)
            np.testing.assert_allclose(K @ path[k + 1], expected, **tolerance)
            np.testing.assert_allclose(graph.F @ (K @ path[k + 1]), graph.F @ expected, rtol=1e-6, atol=1e-7)
            if alpha >= 1.0:
                np.testing.assert_allclose(K @ path[k + 1], K @ dual_coefficients(K, L, y, alpha), rtol=1e-6, atol=1e-7)


@given(cases())
def test_primal_equals_dual(case):
    X, y, qid, w, options = case
    graph = build(y, qid, w, options)
    target = (graph.F @ y)[:, None]
    primal, dual = PrimalProblem(X, graph, target), DualProblem.from_features(X, graph, target)
    rows = graph.factor_rows(X)
    for alpha in ALPHAS[1:]:
        w_primal, a = primal.solve(alpha), dual.solve(alpha)
        np.testing.assert_allclose(rows.combine(a), w_primal, rtol=1e-6, atol=1e-9 * max(1.0, np.abs(w_primal).max()))


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 40), st.integers(1, 8))
def test_pairs_primal_dual_and_reduced_agree(seed, m, p, n):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    i = rng.integers(0, m, p)
    j = (i + rng.integers(1, m, p)) % m
    graph = PairGraph(i, j, m, rng.normal(size=p), rng.random(p) + 0.1)
    D = (X[i] - X[j]) * np.sqrt(graph.weight)[:, None]
    target = graph.target[:, None]
    problems = [
        PrimalProblem(X, graph, target),
        PrimalProblem(sparse.csr_array(X), graph, target),
        DualProblem.from_features(X, graph, target),
        DualProblem.from_kernel(X @ X.T, graph, target),
        ReducedProblem(X @ X.T, graph, target),
    ]
    for alpha in (0.01, 1.0, 50.0):
        expected = np.linalg.solve(D.T @ D + alpha * np.eye(n), D.T @ graph.target)
        for problem in problems:
            for solution in (problem.solve(alpha), problem.path(np.array([alpha])).coefficients[0]):
                weights = solution[:, 0] if type(problem) is PrimalProblem else X.T @ solution[:, 0]
                np.testing.assert_allclose(weights, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("alpha", [1e-6, 1e-4, 1e-2, 1.0])
def test_more_pairs_than_items_that_lie_close(alpha):
    """The kernel matrix is singular to rounding, but scores of new items need the coefficients in its null space."""
    rng = np.random.default_rng(3)
    m, new = 25, rng.normal(size=(6, 1)).astype(np.longdouble)
    X, y = np.round(rng.normal(size=(m, 1)), 1).astype(np.longdouble), rng.normal(size=m)
    i, j = np.nonzero(y[:, None] > y + 0.8)
    graph = PairGraph(i, j, m, y[i] - y[j], np.ones(len(i)))
    a = refined_dual_coefficients(gaussian(X, X, 0.5), graph.matrix.T @ graph.matrix.toarray(), y, alpha)
    expected = gaussian(new, X, 0.5) @ a
    problem = ReducedProblem(np.asarray(gaussian(X, X, 0.5), dtype=float), graph, graph.target[:, None])
    for solution in (problem.solve(alpha), problem.path(np.array([alpha, 1.0])).coefficients[0]):
        found = gaussian(new, X, 0.5) @ solution[:, 0]
        rounding = np.finfo(float).eps * m * np.sqrt(m / alpha) * np.linalg.norm(a)
        np.testing.assert_allclose(found, expected, rtol=0, atol=10 * float(rounding))


@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_normal_equations_add_up_over_queries(ties):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(40, 4)), rng.integers(0, 3, 40).astype(float), rng.integers(0, 6, 40)

    def equations(rows):
        graph = ScoredGraph.build(y[rows], query_layout(qid[rows], rows.sum()), ties=ties)
        return normal_equations(graph.factor_rows(X[rows]), (graph.F @ y[rows])[:, None])

    whole, part, rest = equations(qid >= 0), equations(qid < 2), equations(qid >= 2)
    for combined in (part + rest, whole - rest + rest):
        np.testing.assert_allclose(combined.gram, whole.gram, atol=1e-12)
        np.testing.assert_allclose(combined.rhs, whole.rhs, atol=1e-12)
        np.testing.assert_allclose(combined.energy, whole.energy, atol=1e-12)
    np.testing.assert_allclose((whole - rest).gram, part.gram, atol=1e-12)


def test_offsets_of_columns_do_not_reach_the_gram_matrix():
    rng = np.random.default_rng(1)
    X, y, qid = rng.normal(size=(5000, 6)), rng.normal(size=5000), rng.integers(0, 50, 5000)
    graph = ScoredGraph.build(y, query_layout(qid, 5000))
    target = (graph.F @ y)[:, None]
    shift = 1e7 * np.arange(6.0) + 1e7 * rng.normal(size=(50, 6))[qid]  # each query an offset of its own
    plain, moved = PrimalProblem(X, graph, target), PrimalProblem(X + shift, graph, target)
    np.testing.assert_allclose(moved.equations.gram, plain.equations.gram, rtol=1e-6, atol=1e-4)
    np.testing.assert_allclose(moved.solve(1.0), plain.solve(1.0), rtol=1e-6, atol=1e-8)
    small = slice(0, 200)
    graph = ScoredGraph.build(y[small], query_layout(qid[small], 200))
    target = (graph.F @ y[small])[:, None]
    a, b = (DualProblem.from_features(Z[small], graph, target).solve(1.0) for Z in (X, X + shift))
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", [4, 300])
def test_an_offset_of_a_full_sparse_column_is_never_squared(n):
    rng = np.random.default_rng(6)
    m = 200
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.05)
    X[:, 1] = rng.normal(size=m)
    moved = X.copy()
    moved[:, 1] += 1e7
    y, qid = X[:, 1] + rng.normal(size=m), rng.integers(0, 12, m)
    i = rng.permutation(m)[:90]
    graphs = [
        ScoredGraph.build(y, query_layout(qid, m)),
        ScoredGraph.build(np.round(y), query_layout(qid, m), ties="exclude", balance="pairs"),
        PairGraph(i, (i + 1) % m, m, np.ones(90), np.ones(90)),
    ]
    for graph in graphs:
        target = graph.target[:, None] if isinstance(graph, PairGraph) else (graph.F @ y)[:, None]
        blocks = [np.arange(graph.n_rows)[graph.rows_of(b)] for b in range(graph.n_blocks)]
        for form in (PrimalProblem, DualProblem.from_features):
            plain, sparse_one = form(X, graph, target), form(sparse.csr_array(moved), graph, target)
            a, b = plain.solve(0.1), sparse_one.solve(0.1)
            if form is PrimalProblem:
                np.testing.assert_allclose(b, a, atol=1e-8)
            else:
                weights = graph.factor_rows(sparse.csr_array(moved)).combine(b)
                np.testing.assert_allclose(weights, graph.factor_rows(X).combine(a), atol=1e-8)
            held = plain.holdout(blocks, np.ones(1))[:, 0, 0], sparse_one.holdout(blocks, np.ones(1))[:, 0, 0]
            for block in blocks:
                np.testing.assert_allclose(*(h[block] - h[block].mean() for h in held), atol=1e-6)
    K = [Kernel("rbf", gamma=0.1)(Z) for Z in (X, sparse.csr_array(moved))]
    np.testing.assert_allclose(K[1], K[0], atol=1e-7)
    across = Kernel("rbf", gamma=0.1)(sparse.csr_array(moved[:7]), sparse.csr_array(moved))
    np.testing.assert_allclose(across, K[0][:7], atol=1e-7)


@pytest.mark.parametrize("columns", [1, 2, 3, 21])
@pytest.mark.parametrize("n", [1, 2, 25, 136])
def test_equal_rows_have_equal_products(columns, n):
    rng = np.random.default_rng(0)
    for m in (2, 5, 17, 1001):
        X = np.tile(rng.normal(size=n), (m, 1))
        W = rng.normal(size=(n, columns))
        products = row_products(X, W)
        np.testing.assert_allclose(products, X @ W, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(products, np.tile(products[0], (m, 1)))
        np.testing.assert_array_equal(
            row_products(X.astype(np.float32), W[:, 0]), row_products(X.astype(np.float32), W[:, 0])[0]
        )


def test_alpha_zero_is_the_solution_of_minimum_norm():
    rng = np.random.default_rng(2)
    for m, n in ((30, 8), (20, 40)):
        X = rng.normal(size=(m, n))
        X[:, -1] = X[:, 0]  # a column twice
        y, qid = rng.normal(size=m), rng.integers(0, 4, m)
        graph = ScoredGraph.build(y, query_layout(qid, m))
        FX, Fy = graph.F @ X, graph.F @ y
        expected = np.linalg.pinv(FX) @ Fy
        np.testing.assert_allclose(PrimalProblem(X, graph, Fy[:, None]).solve(0.0)[:, 0], expected, atol=1e-8)
        np.testing.assert_allclose(
            PrimalProblem(X, graph, Fy[:, None]).path(np.zeros(1)).coefficients[0, :, 0], expected, atol=1e-8
        )
        dual = DualProblem.from_features(X, graph, Fy[:, None]).solve(0.0)
        np.testing.assert_allclose(graph.factor_rows(X).combine(dual)[:, 0], expected, atol=1e-8)


@pytest.mark.parametrize("alpha", [1e-12, 1e-9, 1e-6, 1e-3])
def test_rank_deficient_features_at_tiny_alpha(alpha):
    rng = np.random.default_rng(3)
    base = rng.normal(size=(60, 4))
    X = np.hstack((base, base @ rng.normal(size=(4, 6)), np.ones((60, 1))))  # rank 4 of 11
    y, qid = base @ [1.0, -2.0, 0.5, 0.0], rng.integers(0, 6, 60)
    graph = ScoredGraph.build(y, query_layout(qid, 60))
    for problem in (
        PrimalProblem(X, graph, (graph.F @ y)[:, None]),
        PrimalProblem(sparse.csr_array(X), graph, (graph.F @ y)[:, None]),
    ):
        fitted = X @ problem.solve(alpha)[:, 0]
        np.testing.assert_allclose(graph.F @ fitted, graph.F @ y, atol=2e-4 if alpha > 1e-4 else 1e-6)


def test_an_indefinite_kernel_is_refused_where_there_is_no_minimum():
    rng = np.random.default_rng(4)
    B = rng.normal(size=(12, 12))
    K = B + B.T
    y = rng.normal(size=12)
    graph = ScoredGraph.build(y, query_layout(None, 12))
    target = (graph.F @ y)[:, None]
    lowest = np.linalg.eigvalsh(graph.F @ (graph.F @ K).T).min()
    assert lowest < 0
    with Refusal("not positive semidefinite", "larger than", parameter="alpha"):
        DualProblem.from_kernel(K.copy(), graph, target).solve(-lowest / 2)
    a = DualProblem.from_kernel(K.copy(), graph, target).solve(-2 * lowest)
    L = explicit_laplacian(y, [0] * 12)
    np.testing.assert_allclose(K @ a[:, 0], K @ dual_coefficients(K, L, y, -2 * lowest), atol=1e-9)
    grid = auto_alphas(spectrum(graph.F @ (graph.F @ K).T, 12).values)
    assert (grid > -lowest).all()
    with Refusal("more preferences than items", kind=ValueError):
        ReducedProblem(K.copy(), graph, target)


def test_auto_grid_is_relative_to_the_spectrum():
    values = np.array([0.0, 1e-3, 2.0])
    grid = auto_alphas(values)
    assert len(grid) == 21
    assert (np.diff(grid) < 0).all()
    np.testing.assert_allclose(auto_alphas(1e6 * values), 1e6 * grid)
    assert grid[0] == pytest.approx(20.0)
    np.testing.assert_array_equal(auto_alphas(np.zeros(3)), [1.0])


def test_solve_one_of_nothing_and_of_a_singular_matrix():
    assert solve_one(np.zeros((0, 0)), np.zeros((0, 1)), 1.0, 1).shape == (0, 1)
    S = np.diag([2.0, 0.0])
    np.testing.assert_allclose(solve_one(S, np.array([[4.0], [1e-17]]), 1e-30, 2), [[2.0], [0.0]])


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_threads_change_nothing_but_rounding(monkeypatch, threads):
    rng = np.random.default_rng(5)
    X, y, qid = rng.normal(size=(5000, 7)), rng.normal(size=5000), rng.integers(0, 40, 5000)
    graph = ScoredGraph.build(y, query_layout(qid, 5000), ties="exclude")
    monkeypatch.setenv("RANKRLS_NUM_THREADS", threads)
    gram = PrimalProblem(X, graph, (graph.F @ y)[:, None]).equations.gram
    FX = graph.F @ X
    np.testing.assert_allclose(gram, FX.T @ FX, rtol=1e-10)
