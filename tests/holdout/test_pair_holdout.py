"""Leave-pair-out against refits: every graph for which the shortcut is exact, both forms, and the refusals."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import sparse

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.graph import ScoredGraph
from rankrls.holdout import pair_holdout
from rankrls.holdout.pair_holdout import (
    held_out_differences,
    leave_pair_out_concordance,
    pair_setting,
    refuses_pair_holdout,
    tournament_wins,
)
from rankrls.kernels import Kernel
from rankrls.problems.dual import DualProblem
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.subset import Basis, SubsetProblem
from tests.oracles import gaussian, scores_without
from tests.refusals import Refusal

ALPHAS = np.array([1e-2, 1.0, 100.0])
M = 14
ONE, SEVERAL = np.zeros(M, dtype=int), np.array([2, 0, 1, 0, 2, 0, 0, 1, 2, 0, 1, 0, 3, 3])
CASES = [
    ("one, examples", ONE, {"balance": "examples"}, False),
    ("one, pairs", ONE, {"balance": "pairs"}, False),
    ("one, queries", ONE, {"balance": "queries"}, False),
    ("one, examples, weights", ONE, {"balance": "examples"}, True),
    ("mixture, examples", ONE, {"balance": "examples", "beta": 0.3}, False),
    ("mixture, pairs", ONE, {"balance": "pairs", "beta": 0.7}, False),
    ("mixture, queries", ONE, {"balance": "queries", "beta": 0.1}, False),
    ("regression", ONE, {"balance": "examples", "beta": 1.0}, False),
    ("queries of 1, 2 and more", np.append(SEVERAL[:-1], 4), {"balance": "examples"}, False),
    ("queries of 2 and more", SEVERAL, {"balance": "examples"}, False),
    ("queries, weights", SEVERAL, {"balance": "examples"}, True),
]


def data(n, weighted, *, coarse=False):
    rng = np.random.default_rng(n)
    X = rng.integers(0, 2, size=(M, n)).astype(float) if coarse else rng.normal(size=(M, n))
    y = rng.integers(0, 4, M) + 5.0
    return X, y, rng.random(M) + 0.5 if weighted else None


def refitted_differences(K, y, qid, w, graph):
    """f_i - f_j of every pair of a query by a model refitted without the two, (m, m, alphas); NaN between queries."""
    out = np.full((M, M, len(ALPHAS)), np.nan)
    for i in range(M):
        for j in range(i):
            if qid[i] == qid[j]:
                held = np.isin(np.arange(M), (i, j))
                for k, alpha in enumerate(ALPHAS):
                    f_j, f_i = scores_without(K, y, qid, held, alpha, w, **graph)
                    difference = 0.0 if abs(f_i - f_j) < 1e-11 * max(1.0, abs(f_i)) else f_i - f_j
                    out[i, j, k], out[j, i, k] = difference, -difference
    return out


@cache
def refits_of_a_case(name, n, kernel):
    """The same, of a case and the bytes of a kernel matrix: they take most of the time and serve several tests."""
    _, qid, graph, weighted = next(case for case in CASES if case[0] == name)
    _, y, w = data(n, weighted)
    return refitted_differences(np.frombuffer(kernel).reshape(M, M), y, qid, w, graph)


def problems(X, y, qid, w, graph):
    """Every form on the graph of pairs, with its kernel matrix and ridge parameters."""
    beta, balance = graph.get("beta", 0.0), graph["balance"]
    built = ScoredGraph.build(y, query_layout(qid, M), weights=w, balance=balance, regression_weight=beta)
    assert refuses_pair_holdout(built, balance=balance, regression_weight=beta, weighted=w is not None) is None
    on, factor = pair_setting(built, balance=balance, regression_weight=beta)
    ridge = ALPHAS * factor
    target = (on.F @ y)[:, None]
    K, G = X @ X.T, gaussian(X, X, 0.3)
    yield K, PrimalProblem(X, on, target), ridge
    yield K, PrimalProblem(sparse.csr_array(X), on, target), ridge
    yield K, DualProblem.from_features(X, on, target), ridge
    yield G, DualProblem.from_kernel(G.copy(), on, target), ridge
    spectral = DualProblem.from_kernel(G.copy(), on, target)
    assert len(spectral.values) == M
    yield G, spectral, ridge
    wide = 1.0 / X.shape[1]  # or items far from the basis would all but tie
    for kernel, numbers in ((Kernel("rbf", wide), np.arange(0, M, 3)), (Kernel("rbf", 1e-5), np.arange(0, M, 2))):
        basis = Basis.build(kernel, X[numbers])
        Z = kernel(X, X[numbers]) @ basis.to_items
        yield Z @ Z.T, SubsetProblem(X, basis, on, target), ridge


@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize(("name", "qid", "graph", "weighted"), CASES, ids=[c[0] for c in CASES])
@pytest.mark.parametrize("rows", [4, 128])
def test_equals_refits(name, qid, graph, weighted, n, rows, monkeypatch):
    monkeypatch.setattr(pair_holdout, "_ROWS", rows)
    X, y, w = data(n, weighted)
    pair_weight = np.ones((M, M)) if w is None else w[:, None] * w
    for K, problem, ridge in problems(X, y, qid, w, graph):
        expected = refits_of_a_case(name, n, K.tobytes())
        i, j = np.nonzero(~np.isnan(expected[:, :, 0]))
        got = held_out_differences(problem, y, ridge, i, j)
        np.testing.assert_allclose(got, expected[i, j], rtol=1e-6, atol=1e-8)
        judged = pair_weight * ((y[:, None] != y) & (qid[:, None] == qid))
        seen = judged.sum(axis=1)
        result = leave_pair_out_concordance(problem, y, ridge)
        wins = tournament_wins(problem, y, ridge)
        for k in range(len(ALPHAS)):
            won = np.nan_to_num(0.5 + 0.5 * np.sign(expected[:, :, k]))
            right = np.where(y[:, None] > y, won, 1.0 - won) * judged
            score = right.sum() / judged.sum()
            assert result.score[k] == pytest.approx(score, abs=1e-12)
            influence = right.sum(axis=1) - score * seen
            assert result.standard_error[k] == pytest.approx(2 * np.linalg.norm(influence) / judged.sum(), abs=1e-12)
            weight = np.ones(M) if w is None else w
            np.testing.assert_allclose(wins[:, k], won @ weight, atol=1e-12)


@pytest.mark.parametrize("qid", [ONE, SEVERAL], ids=["one", "several"])
def test_items_with_equal_features_tie(qid):
    X, y, _ = data(2, False, coarse=True)
    same = (X[:, None] == X).all(axis=2) & (qid[:, None] == qid) & ~np.eye(M, dtype=bool)
    i, j = np.nonzero(same)
    assert len(i)
    for K, problem, ridge in problems(X, y, qid, None, {"balance": "examples"}):
        np.testing.assert_array_equal(held_out_differences(problem, y, ridge, i, j), 0.0)
        expected = refitted_differences(K, y, qid, None, {"balance": "examples"})[:, :, 1]
        if isinstance(problem, PrimalProblem):
            won = np.nan_to_num(0.5 + 0.5 * np.sign(expected)).sum(axis=1)
            np.testing.assert_allclose(tournament_wins(problem, y, ridge)[:, 1], won, atol=1e-12)


def test_many_items_and_threads(monkeypatch):
    """Blocks of rows on several threads add up to the same."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(600, 5)), rng.integers(0, 2, 600).astype(float)
    graph = ScoredGraph.build(y, query_layout(None, 600))
    problem = PrimalProblem(X, graph, (graph.F @ y)[:, None])
    alone = leave_pair_out_concordance(problem, y, np.ones(1)), tournament_wins(problem, y, np.ones(1))
    monkeypatch.setattr(pair_holdout, "_ALONE", 10)
    monkeypatch.setenv("RANKRLS_NUM_THREADS", "3")
    again = leave_pair_out_concordance(problem, y, np.ones(1)), tournament_wins(problem, y, np.ones(1))
    assert alone[0].score == pytest.approx(again[0].score, abs=1e-14)
    np.testing.assert_allclose(alone[1], again[1], atol=1e-9)
    assert alone[1].sum() == pytest.approx(600 * 599 / 2)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"ties": "exclude"}, "ties='exclude'"),
        ({"regression_weight": 0.5, "weighted": True}, "sample_weight and regression_weight"),
        ({"balance": "pairs", "weighted": True}, "sample_weight and balance='pairs'"),
        ({"qid": [0, 0, 0, 1, 1], "regression_weight": 0.5}, "regression_weight > 0 with several queries"),
        ({"qid": [0, 0, 0, 1, 1], "balance": "pairs"}, "several queries and balance='pairs'"),
        ({"y": [1.0, 2.0, 3.0]}, "fewer than four"),
        ({"qid": [0, 0, 0, 1, 2]}, "fewer than four"),
    ],
)
def test_refused_where_it_would_be_wrong(options, why):
    y = np.array(options.get("y", [0.0, 1.0, 1.0, 2.0, 2.0]))
    beta = options.get("regression_weight", 0.0)
    graph = ScoredGraph.build(
        y, query_layout(options.get("qid"), len(y)), ties=options.get("ties", "include"), regression_weight=beta
    )
    reason = refuses_pair_holdout(
        graph,
        balance=options.get("balance", "examples"),
        regression_weight=beta,
        weighted=options.get("weighted", False),
    )
    assert why in str(InputError(reason))


def test_equal_labels_are_an_error():
    X, y = np.arange(10.0).reshape(5, 2), np.ones(5)
    graph = ScoredGraph.build(y, query_layout(None, 5))
    with Refusal("labels are equal", parameter="y"):
        leave_pair_out_concordance(PrimalProblem(X, graph, (graph.F @ y)[:, None]), y, np.ones(1))


@pytest.mark.parametrize("relative", [1e-4, 1e-7, 1e-10])
def test_equal_items_of_contradictory_labels_tie_at_any_alpha(relative):
    """There rounding exceeds every tolerance: the features decide."""
    rng = np.random.default_rng(11)
    X = np.repeat(1e3 * rng.normal(size=(12, 40)), 2, axis=0)
    y = rng.normal(size=24)
    graph = ScoredGraph.build(y, query_layout(None, 24))
    target = (graph.F @ y)[:, None]
    i = np.arange(0, 24, 2)
    for problem in (
        PrimalProblem(X, graph, target),
        DualProblem.from_features(X, graph, target),
        DualProblem.from_kernel(X @ X.T, graph, target),
    ):
        ridge = np.array([relative * problem.spectrum_bound()])
        np.testing.assert_array_equal(held_out_differences(problem, y, ridge, i, i + 1), 0.0)
        wins = tournament_wins(problem, y, ridge)[:, 0]
        np.testing.assert_allclose(wins * 2, np.round(wins * 2), atol=1e-9)
        assert (wins[i] % 1.0 == 0.5).all()  # an odd number of halves: the one against the equal item


@pytest.mark.parametrize("share", [1e-8, 1e-3, 10.0])
@pytest.mark.parametrize("balance", ["examples", "pairs"])
def test_a_problem_that_was_held_out_solves_as_before(share, balance):
    """As exact as a decomposition allows: the residual is what rounding of C leaves, however small alpha."""
    rng = np.random.default_rng(11)
    K = gaussian(*[rng.normal(size=(60, 2))] * 2, 0.2)
    y = K @ rng.normal(size=60)
    graph = ScoredGraph.build(y, query_layout(None, 60), balance=balance)
    problem, plain = (DualProblem.from_kernel(K.copy(), graph, (graph.F @ y)[:, None]) for _ in range(2))
    alpha = share * np.trace(plain.C) / 60
    leave_pair_out_concordance(problem, y, np.array([alpha]))
    a = problem.solve(alpha)
    L = graph.L @ np.eye(60)
    residual = np.abs(L @ (K @ a - y[:, None]) + alpha * a).max()
    assert residual < 1e-15 * np.abs(plain.C).max() * np.abs(a).max() * 60
    np.testing.assert_allclose(K @ a, K @ plain.solve(alpha), atol=1e-9 * np.abs(K @ a).max())
