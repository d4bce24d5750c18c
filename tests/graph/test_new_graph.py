"""A graph that only says what L, F and its blocks are works in every solver: against dense solves and refits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rankrls import RankRLS, RankRLSCV
from rankrls._comparisons import Comparison, LabelledItems
from rankrls.equations.krylov import FeatureSystem, KernelSystem, MultiShiftCG
from rankrls.features.columns import BasisColumns
from rankrls.greedy.dictionaries import feature_dictionary, kernel_dictionary
from rankrls.kernels import Kernel
from rankrls.problems.dual import DualProblem
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.subset import Basis
from rankrls.problems.subset_cg import SubsetCGProblem
from tests.graph.new_graphs import CycleGraph, StarGraph

RNG = np.random.default_rng(4)
LENGTHS = [3, 7, 1, 12, 5]
X = RNG.normal(size=(sum(LENGTHS), 4)) * [1.0, 3.0, 0.2, 1.0]
Y = RNG.normal(size=(len(X), 2))
GRAPH = CycleGraph.build(LENGTHS, RNG.random(len(X)) + 0.5)
F = GRAPH.F @ np.eye(len(X))
L = F.T @ F
ALPHAS = np.array([0.01, 1.0, 30.0])
BLOCKS = [GRAPH.rows_of(0), np.arange(len(X))[GRAPH.rows_of(3)], GRAPH.rows_of(4)]
FORMS = {
    "dense": np.asarray,
    "single": lambda X: X.astype(np.float32),
    "sparse": sparse.csr_array,
    "columns": lambda X: BasisColumns(X, lambda block: block.copy(), X.shape[1]),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_the_factor(form):
    rows = GRAPH.factor_rows(FORMS[form](X))
    some = np.array([0, 5, 9, 20])
    np.testing.assert_allclose(rows.factor(some), (F @ X)[some], atol=1e-5 if form == "single" else 1e-12)
    np.testing.assert_allclose(rows.factor(slice(2, 9)), (F @ X)[2:9], atol=1e-5 if form == "single" else 1e-12)


def ridge(X, graph, target, alpha):
    FX = graph.F @ X
    return np.linalg.solve(FX.T @ FX + alpha * np.eye(X.shape[1]), FX.T @ target)


def without(block):
    keep = np.setdiff1d(np.arange(GRAPH.n_rows), np.arange(GRAPH.n_rows)[block])
    return (F @ X)[keep], (F @ Y)[keep]


@pytest.mark.parametrize("form", [name for name in FORMS if name != "single"])
def test_primal_path_and_holdout(form):
    problem = PrimalProblem(FORMS[form](X), GRAPH, GRAPH.F @ Y)
    solutions = problem.spectrum.apply_inverse(ALPHAS, problem.equations.rhs)
    for alpha, w in zip(ALPHAS, solutions, strict=True):
        np.testing.assert_allclose(w, ridge(X, GRAPH, F @ Y, alpha), atol=1e-10)
    held = problem.holdout(BLOCKS, ALPHAS)
    for block in BLOCKS:
        Z, t = without(block)
        for k, alpha in enumerate(ALPHAS):
            w = np.linalg.solve(Z.T @ Z + alpha * np.eye(4), Z.T @ t)
            np.testing.assert_allclose(held[block, k], (F @ X @ w)[block], atol=1e-9)


def test_dual_holdout():
    kernel = Kernel("rbf", gamma=0.3)
    K = kernel(X)
    problem = DualProblem.from_kernel(K.copy(), GRAPH, GRAPH.F @ Y)
    held = problem.holdout(BLOCKS, ALPHAS)
    for block in BLOCKS:
        keep = np.setdiff1d(np.arange(GRAPH.n_rows), np.arange(GRAPH.n_rows)[block])
        for k, alpha in enumerate(ALPHAS):
            a = F[keep].T @ np.linalg.solve(F[keep] @ K @ F[keep].T + alpha * np.eye(len(keep)), (F @ Y)[keep])
            np.testing.assert_allclose(held[block, k], (F @ K @ a)[block], atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_products_and_conjugate_gradients(form):
    product = GRAPH.laplacian_product(FORMS[form](X))
    tolerance = 1e-4 if form == "single" else 1e-10
    p = RNG.normal(size=4)
    np.testing.assert_allclose(product @ p, X.T @ L @ (X @ p), atol=tolerance)
    np.testing.assert_allclose(product.right_side(GRAPH.F @ Y[:, 0]), X.T @ L @ Y[:, 0], atol=tolerance)
    run = MultiShiftCG(tol=1e-12, max_iter=100).solve(FeatureSystem(product), X.T @ L @ Y[:, 0], ALPHAS)
    for k, alpha in enumerate(ALPHAS):
        np.testing.assert_allclose(run.solution(k), ridge(X, GRAPH, F @ Y[:, 0], alpha), atol=tolerance)
    rows = np.arange(len(X))[::-1].copy()
    product = GRAPH.laplacian_product(FORMS[form](X), rows)
    np.testing.assert_allclose(product @ p, X[rows].T @ L @ (X[rows] @ p), atol=tolerance)


def test_conjugate_gradients_on_a_kernel():
    K = Kernel("rbf", gamma=0.3)(X)
    system = KernelSystem(K, GRAPH, np.arange(len(X)))
    run = MultiShiftCG(tol=1e-12, max_iter=200).solve(system, F @ Y[:, 0], ALPHAS)
    for k, alpha in enumerate(ALPHAS):
        expected = F.T @ np.linalg.solve(F @ K @ F.T + alpha * np.eye(len(X)), F @ Y[:, 0])
        np.testing.assert_allclose(system.items(run.solution(k)), expected, atol=1e-9)


def test_a_basis_by_preconditioned_conjugate_gradients():
    kernel = Kernel("rbf", gamma=0.3)
    problem = SubsetCGProblem(X, Basis.build(kernel, X[:6]), GRAPH, F @ Y, tol=1e-12)
    K, R = kernel(X, X[:6]), kernel(X[:6])
    for alpha, found in zip(ALPHAS, problem.path(ALPHAS).coefficients, strict=True):
        expected = K @ np.linalg.solve(K.T @ L @ K + alpha * R, K.T @ L @ Y)
        np.testing.assert_allclose(K @ found, expected, atol=1e-7)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_dictionaries(form):
    dictionary = feature_dictionary(FORMS[form](X), GRAPH)
    np.testing.assert_allclose(dictionary.energies, np.diag(X.T @ L @ X), rtol=1e-12)
    np.testing.assert_allclose(dictionary.correlations(F @ Y[:, 0]), X.T @ L @ Y[:, 0], atol=1e-10)
    kernel = Kernel("rbf", gamma=0.3)
    dictionary = kernel_dictionary(kernel, FORMS[form](X), None, GRAPH)
    np.testing.assert_allclose(dictionary.column(3), F @ kernel(X)[3], atol=1e-12)


@pytest.fixture
def stars(monkeypatch):
    """What estimators learn from is compared by stars."""

    def graphs(items, setting):
        graph = StarGraph.build(items.layout.counts)
        return [Comparison(graph, graph.F @ items.Y, slice(0, items.Y.shape[1]))]

    monkeypatch.setattr(LabelledItems, "graphs", graphs)


@pytest.mark.parametrize("options", [{}, {"solver": "dual"}, {"kernel": "rbf", "gamma": 0.3}], ids=str)
def test_estimators_choose_by_its_held_out_queries(options, stars):
    qid = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    model = RankRLSCV(ALPHAS, scoring="tau", **options).fit(X, Y, qid=qid)
    alpha = model.alpha_
    for q in range(len(LENGTHS)):
        held = qid == q
        refit = RankRLS(alpha, **options).fit(X[~held], Y[~held], qid=qid[~held]).predict(X[held])
        found = model.held_out_scores_[held]
        np.testing.assert_allclose(found - found[0], refit - refit[0], atol=1e-8)


def test_queries_are_added_and_forgotten(stars):
    qid = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    some = qid < 3
    whole, star = RankRLS().fit(X, Y, qid=qid), StarGraph.build(LENGTHS)
    np.testing.assert_allclose(whole.coef_[0], ridge(X, star, star.F @ Y[:, 0], 1.0))
    model = RankRLS().fit(X[some], Y[some], qid=qid[some])
    part = model.coef_
    model.partial_fit(X[~some], Y[~some], qid=qid[~some])
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-10)
    np.testing.assert_allclose(
        whole.coef_[0], ridge(X, StarGraph.build(LENGTHS), StarGraph.build(LENGTHS).F @ Y[:, 0], 1)
    )
    model.forget(X[~some], Y[~some], qid=qid[~some])
    np.testing.assert_allclose(model.coef_, part, atol=1e-10)
