"""Multi-shift conjugate gradients against dense solves and against runs of their own."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from rankrls._queries import query_layout
from rankrls.equations.krylov import FeatureSystem, KernelSystem, MultiShiftCG, Status, largest_eigenvalue
from rankrls.graph import PairGraph, ScoredGraph
from tests.oracles import dual_coefficients, explicit_laplacian, ridge
from tests.refusals import Refusal

GRID = 2.0 ** np.arange(-10, 11)


class Matrix:
    """An explicit matrix, as a system."""

    n_watched = 0

    def __init__(self, A):
        self.A, self.size = A, len(A)

    def apply(self, p):
        return self.A @ p, None


def textbook_cg(A, b, steps):
    """Iterates of conjugate gradients (Hestenes & Stiefel 1952), the residuals kept orthogonal to all earlier ones."""
    x, r, p = np.zeros_like(b), b.copy(), b.copy()
    basis, out = [b / np.linalg.norm(b)], []
    for _ in range(steps):
        q = A @ p
        gamma = (r @ r) / (p @ q)
        x = x + gamma * p
        new = r - gamma * q
        for v in basis:
            new -= v * (v @ new)
        out.append(x)
        beta = (new @ new) / (r @ r)
        p, r = new + beta * p, new
        basis.append(r / np.linalg.norm(r))
    return out


def spd(seed, n, rank=None, low=0.05):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    values = rng.uniform(low, 5.0, n)
    values[rank or n :] = 0.0
    A = (Q * values) @ Q.T
    return (A + A.T) / 2, A @ rng.normal(size=n)


@pytest.mark.parametrize(
    "alphas", [GRID, np.array([3.0, 0.0, 3.0, 1e6, 1e-4]), np.array([0.5])], ids=["grid", "any", "one"]
)
def test_every_iterate_of_every_shift_is_that_of_a_run_of_its_own(alphas):
    A, b = spd(0, 25)
    cg = MultiShiftCG(tol=0.0, max_iter=12)
    run = cg.init(Matrix(A), b, alphas)
    own = [textbook_cg(A + alpha * np.eye(25), b, 12) for alpha in alphas]
    for t in range(12):
        cg.step(run)
        for k in range(len(alphas)):
            scale = np.abs(own[k][t]).max()
            if run.iterations[k] == t + 1:
                np.testing.assert_allclose(run.solution(k), own[k][t], atol=1e-9 * scale)
            assert run.residuals[k] == pytest.approx(
                np.linalg.norm(b - A @ run.solution(k) - alphas[k] * run.solution(k)) / np.linalg.norm(b), abs=1e-12
            )


def test_marked_iterates_are_kept_whenever_they_were_marked():
    A, b = spd(1, 30)
    for steps in range(1, 21):
        for k, alpha in enumerate((0.0, 1.0, 50.0)):
            cg = MultiShiftCG(tol=1e-4, max_iter=30)
            run = cg.init(Matrix(A), b, np.array([0.0, 1.0, 50.0]))
            assert run.marked() is None
            expected = None
            for t in range(25):
                cg.step(run)
                if t + 1 == steps:
                    run.mark(k)
                    plain = cg.init(Matrix(A), b, np.array([0.0, 1.0, 50.0]))
                    for _ in range(steps):
                        cg.step(plain)
                    expected = plain.solution(k)
            np.testing.assert_array_equal(run.marked(), expected, err_msg=str((steps, alpha)))


@given(st.integers(0, 2**32 - 1), st.integers(1, 15), st.integers(1, 15), st.sampled_from([0.0, 1e-3, 1.0, 1e3]))
@settings(deadline=None)
def test_at_most_rank_plus_one_iterations(seed, n, rank, alpha):
    rank = min(rank, n)
    A, b = spd(seed, n, rank, low=0.5)
    run = MultiShiftCG(tol=1e-7, max_iter=1000).solve(Matrix(A), b, np.array([alpha]))
    assert run.iterations[0] <= rank + 1
    assert run.status == [Status.CONVERGED]
    values, vectors = np.linalg.eigh(A)
    keep = values > 1e-8
    expected = vectors[:, keep] @ ((vectors[:, keep].T @ b) / (values[keep] + alpha))
    np.testing.assert_allclose(run.solution(0), expected, atol=1e-5 * np.abs(expected).max())  # minimum norm at 0


@pytest.mark.parametrize("exponent", range(-10, 11, 2))
def test_iterations_are_bounded_by_the_root_of_the_condition(exponent):
    """Airola et al. 2010, section 3.3: the error falls by eps in t <= 1/2 sqrt(kappa) ln(2 / eps) iterations."""
    A, b = spd(2, 200, low=1e-4)
    values = np.linalg.eigvalsh(A)
    M = A + 2.0**exponent * np.eye(200)
    kappa = (values[-1] + 2.0**exponent) / (values[0] + 2.0**exponent)
    best = np.linalg.solve(M, b)
    start = np.sqrt(best @ M @ best)
    cg = MultiShiftCG(tol=0.0, max_iter=500)
    run = cg.init(Matrix(A), b, np.array([2.0**exponent]))
    errors = {}
    while not run.done:
        cg.step(run)
        difference = run.solution(0) - best
        errors[run.iteration] = np.sqrt(difference @ M @ difference) / start
    for eps in (1e-1, 1e-3, 1e-5):
        bound = int(np.ceil(0.5 * np.sqrt(kappa) * np.log(2 / eps)))
        if bound in errors:
            assert errors[bound] <= eps * (1 + 1e-6)


def test_one_iteration_at_a_large_alpha():
    A, b = spd(3, 40)
    run = MultiShiftCG(tol=1e-5).solve(Matrix(A), b, np.array([1e7, 1e-2]))
    assert run.iterations[0] == 1 < run.iterations[1]


def test_what_has_converged_is_frozen():
    A, b = spd(4, 60, low=1e-3)
    cg = MultiShiftCG(tol=1e-6)
    run = cg.init(Matrix(A), b, GRID)
    frozen = {}
    while not run.done:
        cg.step(run)
        for k in np.flatnonzero(~run.running):
            frozen.setdefault(k, run.solution(k))
    for k, alpha in enumerate(GRID):
        np.testing.assert_array_equal(run.solution(k), frozen[k])
        x = run.solution(k)
        assert np.linalg.norm(b - A @ x - alpha * x) <= 1.1e-6 * np.linalg.norm(b)
        assert cg.verify(run, k) is Status.CONVERGED
    assert (np.diff(run.iterations) <= 0).all()
    assert run.iterations[0] > 3 * run.iterations[-1]


def test_converged_solutions_where_orthogonality_is_lost():
    """Condition 4e6: iterates of separate runs no longer agree, solutions do (and 500 iterations stay sound)."""
    rng = np.random.default_rng(5)
    Q, _ = np.linalg.qr(rng.normal(size=(120, 120)))
    values = np.geomspace(1e-3, 4e3, 120)
    A = (Q * values) @ Q.T
    b = A @ rng.normal(size=120)
    run = MultiShiftCG(tol=1e-10, max_iter=500).solve(Matrix(A), b, GRID)
    for k, alpha in enumerate(GRID):
        expected = Q @ ((Q.T @ b) / (values + alpha))
        if run.status[k] is Status.CONVERGED:
            np.testing.assert_allclose(run.solution(k), expected, atol=1e-6 * np.abs(expected).max())
        assert np.isfinite(run.solution(k)).all()
    assert sum(status is Status.CONVERGED for status in run.status) >= 15
    one = MultiShiftCG(tol=1e-10, max_iter=500).solve(Matrix(A), b, GRID[-5:-4])
    np.testing.assert_allclose(one.solution(0), run.solution(16), atol=1e-8 * np.abs(run.solution(16)).max())


def test_status():
    A, b = spd(6, 30, low=1e-3)
    run = MultiShiftCG(tol=1e-12, max_iter=3).solve(Matrix(A), b, np.array([0.0, 1e9]))
    assert run.status == [Status.MAX_ITER, Status.CONVERGED]
    assert run.iterations.tolist() == [3, 2]
    # A direction of negative energy: the iterate before it is kept.
    run = MultiShiftCG(max_iter=50).solve(Matrix(np.diag([1.0, -0.5])), np.array([1.0, 1.0]), np.array([0.0, 0.1]))
    assert run.status == [Status.BREAKDOWN, Status.BREAKDOWN]
    assert np.isfinite(run.solutions()).all()
    # Nothing to explain.
    run = MultiShiftCG().solve(Matrix(A), np.zeros(30), np.array([0.0, 1.0]))
    assert run.status == [Status.CONVERGED] * 2
    assert not run.solutions().any()
    assert run.true_residual(1.0, np.zeros(30)) == 0.0
    with Refusal("least 1", parameter="max_iter"):
        MultiShiftCG(max_iter=0).solve(Matrix(A), b, np.ones(1))


def test_a_residual_that_only_the_recurrence_believes_in_is_stagnation():
    A, b = spd(7, 30)

    class Coarse(Matrix):
        def apply(self, p):
            return (A.astype(np.float32) @ p.astype(np.float32)).astype(float), None

    cg = MultiShiftCG(tol=1e-9, max_iter=2000)
    run = cg.solve(Coarse(A), b, np.array([0.1]))
    assert run.status == [Status.CONVERGED]
    assert cg.verify(run, 0) is Status.STAGNATED
    assert run.status == [Status.STAGNATED]
    run = cg.solve(Matrix(A), b, np.array([0.1]))
    assert cg.verify(run, 0) is Status.CONVERGED


@pytest.mark.parametrize(
    "graph", list(product(("include", "exclude"), ("pairs", "examples", "queries"), (0.0, 0.4))), ids=str
)
def test_scored_graphs_with_watched_scores(graph, monkeypatch):
    ties, balance, beta = graph
    rng = np.random.default_rng(8)
    X = np.where(rng.random((60, 6)) < 0.5, rng.normal(size=(60, 6)), 0.0)
    qid, y = rng.integers(0, 6, 60), rng.integers(0, 4, 60).astype(float)
    new = rng.normal(size=(9, 6))
    w = rng.random(60) + 0.5
    L = explicit_laplacian(y, list(qid), w, ties=ties, balance=balance, beta=beta)
    scored = ScoredGraph.build(y, query_layout(qid, 60), weights=w, ties=ties, balance=balance, regression_weight=beta)
    for threads, form in product(("1", "2"), (np.asarray, sparse.csr_array)):
        monkeypatch.setenv("RANKRLS_NUM_THREADS", threads)
        A = scored.laplacian_product(form(X))
        run = MultiShiftCG(tol=1e-13).solve(
            FeatureSystem(A, lambda p: new @ p, 9), A.right_side(scored.F @ y), np.array([1.0, 1e-2, 30.0])
        )
        for k, alpha in enumerate((1.0, 1e-2, 30.0)):
            expected = ridge(X, L, y, alpha)
            np.testing.assert_allclose(run.solution(k), expected, atol=1e-9)
            np.testing.assert_allclose(run.scores_of(np.array([k]))[:, 0], new @ expected, atol=1e-9)
    # The dual, on the kernel matrix and on its products alone.
    K = X @ X.T + 0.1 * np.eye(60)
    for kernel in (K, aslinearoperator(K), LinearOperator((60, 60), matvec=lambda v: K @ v, dtype=float)):
        system = KernelSystem(kernel, scored, np.arange(60), np.array([3, 1]), 2)
        run = MultiShiftCG(tol=1e-13).solve(system, scored.F @ y, np.array([1.0, 1e-2]))
        for k, alpha in enumerate((1.0, 1e-2)):
            a = dual_coefficients(K, L, y, alpha)
            np.testing.assert_allclose(K @ system.items(run.solution(k)), K @ a, atol=1e-8)
            np.testing.assert_allclose(run.scores_of(np.array([k]))[:, 0], (K @ a)[[3, 1]], atol=1e-8)


def test_pairs():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(20, 5))
    i, j = rng.integers(0, 10, 40), rng.integers(10, 20, 40)
    s, c = rng.normal(size=40), rng.random(40) + 0.1
    graph = PairGraph(i, j, 20, s, c)
    D, t = np.sqrt(c)[:, None] * (X[i] - X[j]), np.sqrt(c) * s
    A = graph.laplacian_product(sparse.csr_array(X))
    run = MultiShiftCG(tol=1e-13).solve(FeatureSystem(A), A.right_side(graph.target), np.array([0.0, 2.0]))
    for k, alpha in enumerate((0.0, 2.0)):
        np.testing.assert_allclose(run.solution(k), np.linalg.solve(D.T @ D + alpha * np.eye(5), D.T @ t), atol=1e-9)
    K = X @ X.T
    system = KernelSystem(K, graph, np.arange(20), K[:4], 4)
    run = MultiShiftCG(tol=1e-13).solve(system, graph.target, np.array([2.0]))
    w = np.linalg.solve(D.T @ D + 2.0 * np.eye(5), D.T @ t)
    np.testing.assert_allclose(X.T @ system.items(run.solution(0)), w, atol=1e-9)
    np.testing.assert_allclose(run.scores_of(np.arange(1))[:, 0], X[:4] @ w, atol=1e-9)


def test_the_largest_eigenvalue_is_that_of_lanczos_from_the_right_side():
    A, b = spd(3, 30)
    basis = [b / np.linalg.norm(b)]
    for _ in range(5):  # an orthonormal basis of the Krylov space, by Gram and Schmidt
        v = A @ basis[-1]
        for _ in range(2):
            for u in basis:
                v = v - u * (u @ v)
        basis.append(v / np.linalg.norm(v))
    Q = np.array(basis)
    for steps in range(1, 7):
        expected = np.linalg.eigvalsh(Q[:steps] @ A @ Q[:steps].T)[-1]
        assert largest_eigenvalue(Matrix(A), b, steps) == pytest.approx(expected, rel=1e-10)
    top = np.linalg.eigvalsh(A)[-1]
    assert 0.9 * top < largest_eigenvalue(Matrix(A), b) <= top * (1 + 1e-12)


def test_the_largest_eigenvalue_is_one_that_the_right_side_has():
    A = np.diag([5.0, 3.0, 2.0, 0.0])
    assert largest_eigenvalue(Matrix(A), np.array([0.0, 1.0, 1.0, 0.0])) == pytest.approx(3.0)
    assert largest_eigenvalue(Matrix(A), np.array([0.0, 0.0, 7.0, 0.0])) == pytest.approx(2.0)
    for right in (np.zeros(4), np.array([0.0, 0.0, 0.0, 1.0])):
        assert largest_eigenvalue(Matrix(A), right) == 0.0
