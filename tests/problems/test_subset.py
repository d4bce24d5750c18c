"""Sparse RankRLS against dense solves of equation 8, in blocks of every size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, sparse

from rankrls._queries import query_layout
from rankrls.equations import normal_equations
from rankrls.features import columns
from rankrls.features.columns import BasisColumns, Lowered
from rankrls.graph import PairGraph, ScoredGraph, scored_columns
from rankrls.graph.scored_columns import ColumnRows
from rankrls.kernels import Kernel
from rankrls.problems.subset import Basis, SubsetProblem
from tests.oracles import explicit_laplacian
from tests.refusals import Refusal

RNG = np.random.default_rng(0)
M = 90
X = RNG.normal(size=(M, 4))
Y = np.column_stack((RNG.integers(0, 4, M), RNG.normal(size=M)))
W = RNG.random(M) + 0.3
MIXED = RNG.integers(0, 14, M)
QIDS = {
    "mixed": MIXED,
    "sorted": np.sort(MIXED),
    "global": np.zeros(M, dtype=int),
    "one-large": np.where(np.arange(M) < 60, 0, MIXED + 1),
    "singles": np.arange(M),
}
GRAPHS = [
    {"ties": "include", "balance": "examples", "beta": 0.0},
    {"ties": "include", "balance": "pairs", "beta": 0.3},
    {"ties": "exclude", "balance": "queries", "beta": 0.0},
    {"ties": "exclude", "balance": "pairs", "beta": 0.3},
]


@pytest.fixture
def block_sizes(monkeypatch):
    """Walk through sizes of the blocks in which columns are evaluated."""
    monkeypatch.setattr(columns, "_MIN_ROWS", 1)
    monkeypatch.setattr(scored_columns, "_SAMPLE", 7)
    monkeypatch.setenv("RANKRLS_NUM_THREADS", "2")

    def sizes():
        for size in (2048, 8, 1):
            monkeypatch.setattr(columns, "_BLOCK_ROWS", size)
            yield size

    return sizes


def scored(qid, *, ties, balance, beta):
    layout = query_layout(qid, M)
    y = Y[:, :1] if ties == "exclude" else Y
    graph = ScoredGraph.build(y, layout, weights=W, ties=ties, balance=balance, regression_weight=beta)
    return graph, graph.F @ y, y


def laplacian(qid, graph):
    return explicit_laplacian(Y[:, 0], list(qid), W, **graph)


def factor(K):
    values, vectors = np.linalg.eigh(K)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def dense(F, K, K_R, y, alphas):
    """Equation 8 as a stacked least-squares problem, whose condition is not squared, with F'F = L."""
    FK, R = F @ K, factor(K_R)
    target = np.vstack((F @ y, np.zeros((len(K_R), y.shape[1]))))
    return [linalg.lstsq(np.vstack((FK, np.sqrt(alpha) * R)), target, cond=1e-13)[0] for alpha in alphas]


def centred(scores, qid):
    out = scores.copy()
    for q in set(qid.tolist()):
        out[qid == q] -= out[qid == q].mean(axis=0)
    return out


@pytest.mark.parametrize("gamma", [0.3, 1e-3], ids=["well", "ill-conditioned"])
@pytest.mark.parametrize("graph", GRAPHS, ids=str)
@pytest.mark.parametrize("queries", [name for name in QIDS if name != "sorted"])
def test_equation_8(queries, graph, gamma, block_sizes):
    qid = QIDS[queries]
    if queries == "singles" and graph["beta"] == 0.0:
        return
    kernel = Kernel("rbf", gamma=gamma)
    numbers = np.concatenate((np.arange(5, 25), [7, 7])) if gamma == 1e-3 else np.arange(5, 25)
    basis = Basis.build(kernel, X[numbers])
    assert basis.rows_first == (gamma == 1e-3)
    g, target, y = scored(qid, **graph)
    K, K_R = kernel(X, X[numbers]), kernel(X[numbers])
    alphas = np.array([0.5, 4.0])
    oracle = dense(factor(laplacian(qid, graph)), K, K_R, y, alphas)
    for _ in block_sizes():
        problem = SubsetProblem(X, basis, g, target)
        for b, a in zip(oracle, problem.path(alphas).coefficients, strict=True):
            ours, expected = K @ a, K @ b
            if graph["beta"] == 0.0:
                ours, expected = centred(ours, qid), centred(expected, qid)
            np.testing.assert_allclose(ours, expected, atol=1e-7)
            np.testing.assert_allclose(a.T @ K_R @ a, b.T @ K_R @ a, rtol=1e-5, atol=1e-7)
        fresh = SubsetProblem(X, basis, g, target)
        np.testing.assert_allclose(K @ fresh.solve(4.0), K @ problem.path(alphas).coefficients[1], atol=1e-8)


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
@pytest.mark.parametrize("queries", [name for name in QIDS if name != "sorted"])
def test_factor_rows(queries, graph, block_sizes):
    """Pieces cover every row once, and their factors are the graph's, also after products."""
    g, _, _ = scored(QIDS[queries], **graph)
    kernel = Kernel("rbf", gamma=0.3)
    K = kernel(X, X[:6])
    FK, V = g.F @ K, RNG.normal(size=(6, 3))
    for _ in block_sizes():
        rows = ColumnRows(BasisColumns(X, kernel.columns(X[:6]), 6), g)
        pieces = rows.pieces(slice(0, M))
        seen = np.concatenate([np.arange(M)[p] for p in pieces])
        np.testing.assert_array_equal(np.sort(seen), np.arange(M))
        for piece in pieces:
            np.testing.assert_allclose(rows.factor(piece), FK[piece], atol=1e-12)
            D = rows.differences(piece) @ V
            np.testing.assert_allclose(rows.factor_of(piece, D, V), FK[piece] @ V, atol=1e-12)


@pytest.mark.parametrize("queries", ["mixed", "sorted", "one-large"])
@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_holdout_equals_refits(graph, queries, block_sizes):
    qid = QIDS[queries]
    kernel = Kernel("rbf", gamma=0.3)
    g, target, y = scored(qid, **graph)
    blocks = [g.layout.rows(q) for q in range(g.n_blocks)]
    blocks = [np.sort(np.concatenate([np.arange(M)[b] for b in blocks[:3]])), *blocks[3:]]
    rests = [np.setdiff1d(np.arange(M), np.arange(M)[block]) for block in blocks]
    factors = [factor(explicit_laplacian(Y[rest, 0], list(qid[rest]), W[rest], **graph)) for rest in rests]
    alphas = np.array([0.01, 2.0])
    for rows_first in (False, True):
        basis = Basis.build(kernel, X[np.r_[:12, :3]] if rows_first else X[:12])
        assert basis.rows_first == rows_first
        K, K_R = kernel(X, basis.items), kernel(basis.items)
        expected = np.empty((M, 2, y.shape[1]))
        for block, rest, F in zip(blocks, rests, factors, strict=True):
            for k, a in enumerate(dense(F, K[rest], K_R, y[rest], alphas)):
                expected[block, k] = K[block] @ a
        for _ in block_sizes():
            held = SubsetProblem(X, basis, g, target).holdout(blocks, alphas)
            np.testing.assert_allclose(held, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("gamma", "size", "lowered", "atol"),
    [(0.03, 60, True, 5e-8), (0.1, 80, True, 5e-8), (1e-3, 60, True, 1e-4), (3e-3, 85, False, 1e-4)],
    ids=["few-large", "many-large", "rank-lost", "low-rank"],
)
def test_large_eigenvalues_of_the_basis_cost_no_accuracy(gamma, size, lowered, atol):
    """Nothing is lost that whitening row by row keeps; whitening Gram matrices alone errs ten times as much or more."""
    kernel, qid = Kernel("rbf", gamma=gamma), QIDS["mixed"]
    basis = Basis.build(kernel, X[:size])
    assert basis.rows_first
    assert (basis.whitening is not None) == lowered
    Z, one = kernel(X, X[:size]) @ basis.to_items, np.eye(basis.to_items.shape[1])
    columns = basis.columns(X)
    assert isinstance(columns.mixing, Lowered) == lowered
    T = one if basis.whitening is None else basis.whitening
    block = columns.block(slice(0, M))
    rounding = 10 * size * np.finfo(float).eps * np.abs(basis.to_items).max()
    np.testing.assert_allclose(block @ T, Z, atol=rounding)
    np.testing.assert_allclose(columns.products(T)(slice(0, M)), Z, atol=rounding)

    g, target, y = scored(qid, **GRAPHS[0])
    problem = SubsetProblem(X, basis, g, target)
    alphas = problem.values.max() * np.array([1e-6, 1e-4])
    expected = dense(factor(laplacian(qid, GRAPHS[0])), Z, one, y, alphas[:1])[0]
    ours = kernel(X, X[:size]) @ problem.path(alphas).coefficients[0]
    np.testing.assert_allclose(centred(ours, qid), centred(Z @ expected, qid), atol=5e-7)
    blocks = [np.arange(M)[g.layout.rows(q)] for q in range(g.n_blocks)]
    held = problem.holdout(blocks, alphas)[:, 1]
    for block in blocks:
        rest = np.setdiff1d(np.arange(M), block)
        F = factor(explicit_laplacian(Y[rest, 0], list(qid[rest]), W[rest], **GRAPHS[0]))
        refit = dense(F, Z[rest], one, y[rest], alphas[1:])[0]
        np.testing.assert_allclose(held[block], Z[block] @ refit, atol=atol)


@pytest.mark.parametrize("gamma", [0.3, 0.1, 0.03, 1e-3])
@pytest.mark.parametrize("alpha", [0.0, 1e-12])
def test_more_functions_than_comparisons_are_no_reason_to_refuse(gamma, alpha):
    """Rounding makes eigenvalues negative that are 0, by more the worse the basis is conditioned."""
    qid = np.repeat(np.arange(M // 3), 3)
    g, target, y = scored(qid, **GRAPHS[0])
    basis = Basis.build(Kernel("rbf", gamma=gamma), X[:80])
    problem = SubsetProblem(X, basis, g, target)
    for a in (problem.solve(alpha), problem.path(np.array([alpha, 1.0])).coefficients[0]):
        assert np.isfinite(a).all()
        if gamma > 0.03:
            scores = basis.kernel(X, X[:80]) @ a
            np.testing.assert_allclose(centred(scores, qid), centred(y, qid), atol=1e-3)
    if alpha:
        assert np.isfinite(problem.holdout([np.arange(M)[g.layout.rows(0)]], np.array([alpha]))[:3]).all()


@pytest.mark.parametrize("many", [False, True])
def test_preferences(many, block_sizes):
    p = 400 if many else 60
    i = RNG.integers(0, M, p)
    j = (i + RNG.integers(1, M, p)) % M
    graph = PairGraph(i, j, M, RNG.random(p), RNG.random(p) + 0.1)
    kernel = Kernel("rbf", gamma=0.3)
    M_inc = np.zeros((p, M))
    M_inc[np.arange(p), i], M_inc[np.arange(p), j] = 1.0, -1.0
    FK = np.sqrt(graph.weight)[:, None] * (M_inc @ kernel(X, X[:12]))
    expected = np.linalg.solve(FK.T @ FK + 0.3 * kernel(X[:12]), FK.T @ graph.target)
    for basis in (Basis.build(kernel, X[:12]), Basis.build(kernel, X[np.r_[:12, 2]])):
        K = kernel(X, basis.items)
        for _ in block_sizes():
            problem = SubsetProblem(X, basis, graph, graph.target[:, None])
            np.testing.assert_allclose(K @ problem.solve(0.3)[:, 0], kernel(X, X[:12]) @ expected, atol=1e-8)


def test_linear_columns_do_not_square_an_offset():
    moved = np.round(X * 1024) / 1024
    g, target, _ = scored(QIDS["mixed"], **GRAPHS[0])
    scores = []
    for offset in (0.0, 1e6):
        Z = moved + offset
        for items in (Z[:9], sparse.csr_array(Z[:9])):
            basis = Basis.build(Kernel("linear"), items)
            data = sparse.csr_array(Z) if sparse.issparse(items) else Z
            a = SubsetProblem(data, basis, g, target).solve(0.1)
            weights = Z[:9].T @ a
            scores.append(centred(moved @ weights, MIXED))
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], atol=1e-5)
    L = laplacian(MIXED, GRAPHS[0])
    w = np.linalg.solve(moved.T @ L @ moved + 0.1 * np.eye(4), moved.T @ L @ Y)
    np.testing.assert_allclose(scores[0], centred(moved @ w, MIXED), atol=1e-9)


def test_indefinite_kernels_are_refused():
    with Refusal("not positive semidefinite", "basis items", kind=ValueError):
        Basis.build(Kernel("sigmoid", gamma=2.0, coef0=-1.0), X[:20])


@pytest.mark.parametrize("queries", ["mixed", "global"])
def test_a_block_at_a_time_and_each_row_once(queries, monkeypatch):
    monkeypatch.setattr(columns, "_BLOCK_ROWS", 16)
    monkeypatch.setattr(columns, "_MIN_ROWS", 1)
    monkeypatch.setattr(scored_columns, "_SAMPLE", 9)
    kernel = Kernel("rbf", gamma=0.3)
    asked = []

    def evaluate(block):
        asked.append(len(block))
        return kernel(block, X[:6])

    g, target, _ = scored(QIDS[queries], **GRAPHS[0])
    normal_equations.normal_equations(ColumnRows(BasisColumns(X, evaluate, 6), g), target)
    assert max(asked) <= 16
    assert sum(asked) == M + 9 * (queries == "global")
