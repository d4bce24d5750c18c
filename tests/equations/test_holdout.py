"""Held-out scores against refits: every graph, both forms, every route, blocks of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankrls._queries import query_layout
from rankrls.equations import holdout
from rankrls.features.columns import BasisColumns
from rankrls.graph import PairGraph, ScoredGraph
from rankrls.kernels import Kernel
from rankrls.problems.dual import DualProblem
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.reduced import ReducedProblem
from rankrls.problems.subset import Basis, SubsetProblem
from tests.oracles import gaussian, scores_without
from tests.problems.test_solutions import build, cases
from tests.refusals import Refusal

ALPHAS = np.array([1e-2, 1.0, 100.0])


def blocks_of(graph):
    return [
        np.sort(graph.layout.order[a:b]) for a, b in zip(graph.layout.starts[:-1], graph.layout.starts[1:], strict=True)
    ]


def assert_equals_refits(scores, blocks, K, y, qid, w, options, tolerance=1e-6):
    for block in blocks:
        held = np.zeros(len(y), dtype=bool)
        held[block] = True
        if held.all():
            continue
        for k, alpha in enumerate(ALPHAS):
            expected = scores_without(K, y, qid, held, alpha, w, **options)
            order = np.argsort(block)
            scale = max(1.0, np.abs(expected).max(initial=0.0))
            np.testing.assert_allclose(scores[np.asarray(block)[order], k], expected, rtol=tolerance, atol=1e-7 * scale)


@given(cases(), st.sampled_from(["chosen", "iterate", "downdate"]))
def test_primal_equals_refits(case, route):
    X, y, qid, w, options = case
    graph = build(y, qid, w, options)
    blocks = blocks_of(graph)
    with pytest.MonkeyPatch.context() as patch:
        if route != "chosen":
            patch.setattr(holdout, "_SPECTRUM_COST", 1e9 if route == "iterate" else -1e9)
        for features in (X, sparse.csr_array(X)):
            scores = PrimalProblem(features, graph, (graph.F @ y)[:, None]).holdout(blocks, ALPHAS)[:, :, 0]
            assert_equals_refits(scores, blocks, X @ X.T, y, qid, w, options)


@given(cases())
def test_dual_equals_refits(case):
    X, y, qid, w, options = case
    graph = build(y, qid, w, options)
    blocks = blocks_of(graph)
    target = (graph.F @ y)[:, None]
    for K, problem in (
        (X @ X.T, DualProblem.from_features(X, graph, target)),
        (gaussian(X, X, 0.2), DualProblem.from_kernel(gaussian(X, X, 0.2), graph, target)),
    ):
        assert_equals_refits(problem.holdout(blocks, ALPHAS)[:, :, 0], blocks, K, y, qid, w, options)


@given(cases(), st.sampled_from([0.2, 1e-5]), st.integers(1, 8), st.sampled_from([4, 2048]))
def test_sparse_equals_refits(case, gamma, size, block):
    """On the kernel of the basis; single queries and two folds of them, also where a query is larger than a block."""
    X, y, qid, w, options = case
    graph = build(y, qid, w, options)
    basis = Basis.build(Kernel("rbf", gamma), X[:size])
    Z = basis.kernel(X, X[:size]) @ basis.to_items
    folds = [np.flatnonzero(graph.layout.codes % 2 == f) for f in (0, 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BasisColumns, "block_rows", block)
        problem = SubsetProblem(X, basis, graph, (graph.F @ y)[:, None])
        for blocks in (blocks_of(graph), [fold for fold in folds if len(fold)]):
            scores = problem.holdout(blocks, ALPHAS)[:, :, 0]
            assert_equals_refits(scores, blocks, Z @ Z.T, y, qid, w, options)


@given(cases(), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_several_queries_held_out_together_in_any_row_order(case, folds, seed):
    X, y, qid, w, options = case
    graph = build(y, qid, w, options)
    rng = np.random.default_rng(seed)
    fold = rng.integers(0, folds, graph.n_blocks)
    blocks = [rng.permutation(np.flatnonzero(fold[graph.layout.codes] == f)) for f in range(folds)]
    blocks = [b for b in blocks if len(b)]
    target = (graph.F @ y)[:, None]
    for problem in (PrimalProblem(X, graph, target), DualProblem.from_features(X, graph, target)):
        scores = problem.holdout(blocks, ALPHAS)[:, :, 0]
        assert_equals_refits(scores, blocks, X @ X.T, y, qid, w, options)


def test_rows_in_no_block_are_nan():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(12, 3)), rng.normal(size=12), np.repeat([0, 1, 2], 4)
    graph = ScoredGraph.build(y, query_layout(qid, 12))
    target = (graph.F @ y)[:, None]
    for problem in (PrimalProblem(X, graph, target), DualProblem.from_features(X, graph, target)):
        scores = problem.holdout([np.arange(4, 8)], ALPHAS)
        assert np.isnan(scores[:4]).all()
        assert np.isnan(scores[8:]).all()
        assert not np.isnan(scores[4:8]).any()


@pytest.mark.parametrize("n", [4, 60])
def test_several_targets_equal_one_at_a_time(n):
    rng = np.random.default_rng(1)
    X, Y, qid = rng.normal(size=(40, n)), rng.normal(size=(40, 3)), rng.integers(0, 7, 40)
    graph = ScoredGraph.build(Y, query_layout(qid, 40))
    for form in (PrimalProblem, DualProblem.from_features):
        together = form(X, graph, graph.F @ Y)
        scores, path = together.holdout(blocks_of(graph), ALPHAS), together.path(ALPHAS).coefficients
        for t in range(3):
            alone = form(X, graph, graph.F @ Y[:, t : t + 1])
            np.testing.assert_allclose(scores[:, :, t], alone.holdout(blocks_of(graph), ALPHAS)[:, :, 0], atol=1e-9)
            np.testing.assert_allclose(path[:, :, t], alone.path(ALPHAS).coefficients[:, :, 0], atol=1e-9)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("m", "p", "n"), [(12, 30, 4), (30, 12, 4), (12, 30, 20), (30, 12, 40)])
def test_left_out_preferences_equal_refits(grouped, m, p, n):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(m, n))
    i = rng.integers(0, m, p)
    j = (i + rng.integers(1, m, p)) % m
    s, c = rng.normal(size=p), rng.random(p) + 0.2
    groups = np.unique(rng.integers(0, 5, p), return_inverse=True)[1] if grouped else None
    graph = PairGraph(i, j, m, s, c, groups)
    blocks = [np.arange(p)[graph.rows_of(b)] for b in range(graph.n_blocks)]
    target = graph.target[:, None]
    D = X[i] - X[j]
    problems = [
        PrimalProblem(X, graph, target),
        DualProblem.from_features(X, graph, target),
        ReducedProblem(X @ X.T, graph, target),
    ]
    for problem in problems:
        differences = problem.holdout(blocks, ALPHAS)[:, :, 0]
        for block in blocks:
            rest = np.setdiff1d(np.arange(p), block)
            for k, alpha in enumerate(ALPHAS):
                A = (D[rest].T * c[rest]) @ D[rest] + alpha * np.eye(n)
                w = np.linalg.solve(A, (D[rest].T * c[rest]) @ s[rest])
                np.testing.assert_allclose(differences[block, k], D[block] @ w, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("balance", ["examples", "pairs"])
def test_items_with_equal_features_tie_whatever_the_route(balance):
    rng = np.random.default_rng(5)
    m = 60
    X = rng.integers(0, 2, (m, 3)).astype(float)
    y, qid = rng.integers(0, 3, m).astype(float), np.repeat(np.arange(10), 6)
    graph = ScoredGraph.build(y, query_layout(qid, m), balance=balance)
    target = (graph.F @ y)[:, None]
    same = (qid[:, None] == qid) & (X[:, None] == X).all(axis=2)
    for problem in (
        PrimalProblem(X, graph, target),
        DualProblem.from_features(X, graph, target),
        DualProblem.from_kernel(gaussian(X, X, 0.3), graph, target),
    ):
        scores = problem.holdout(blocks_of(graph), ALPHAS)[:, :, 0]
        for k in range(len(ALPHAS)):
            np.testing.assert_array_equal((scores[:, None, k] == scores[None, :, k])[same], True)
            assert len(np.unique(scores[:6, k])) == len(np.unique(X[:6], axis=0))


def test_hold_out_refuses_alpha_zero():
    rng = np.random.default_rng(3)
    X, y, qid = rng.normal(size=(8, 2)), rng.normal(size=8), np.repeat([0, 1], 4)
    graph = ScoredGraph.build(y, query_layout(qid, 8))
    target = (graph.F @ y)[:, None]
    for problem in (PrimalProblem(X, graph, target), DualProblem.from_features(X, graph, target)):
        with Refusal("got 0", "> 0", parameter="alpha"):
            problem.holdout(blocks_of(graph), np.array([1.0, 0.0]))


@pytest.mark.parametrize("targets", [1, 3])
def test_small_blocks_by_the_series_equal_refits(targets, monkeypatch):
    """Where a block has little influence, terms of a series take the place of conjugate gradients."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 9, 400)
    qid = np.repeat(np.arange(400), lengths)
    X = rng.normal(size=(len(qid), 3)) * [1e8, 1.0, 1e-8]
    Y = X @ (rng.normal(size=(3, targets)) / [[1e8], [1.0], [1e-8]]) + rng.normal(size=(len(qid), targets))
    graph = build(Y[:, 0], qid, np.ones(len(qid)), {"balance": "examples", "ties": "include", "beta": 0.0})
    calls = []
    series = holdout._series

    def counted(h, Z, *given):
        found = series(h, Z, *given)
        calls.append(0 if found is None else len(Z))
        return found

    monkeypatch.setattr(holdout, "_series", counted)
    alphas = np.array([1e-10, 1.0, 1e3])
    blocks = blocks_of(graph)
    scores = PrimalProblem(X, graph, graph.F @ Y).holdout(blocks, alphas)
    assert sum(calls) > 150
    monkeypatch.setattr(holdout, "_SPECTRUM_COST", -1e9)
    anew = PrimalProblem(X, graph, graph.F @ Y).holdout(blocks, alphas)
    scale = np.abs(anew).max(axis=0)
    assert (np.abs(scores - anew) / scale).max() < 1e-10
