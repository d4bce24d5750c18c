"""Transduced labels against an explicit minimisation of the cross-validated error over refits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankrls._queries import query_layout
from rankrls.features.columns import BasisColumns
from rankrls.graph import ScoredGraph
from rankrls.holdout import transductive
from rankrls.holdout.transductive import HiddenRows, ridge_inverse
from rankrls.kernels import Kernel
from rankrls.problems.dual import DualProblem
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.subset import Basis, SubsetProblem
from tests.oracles import dual_coefficients, explicit_laplacian, gaussian


def transduce(problem, hidden, folds, alpha, penalty):
    return transductive.transduce(problem, HiddenRows(problem.graph, hidden, folds), alpha, penalty)


def residuals(K, L, w, qid, folds, alpha, graph, y):
    """Held-out errors y_U - f_U of every fold in its turn, each by a refit on the explicit graph of the others."""
    out = []
    for fold in folds:
        held = np.isin(np.arange(len(y)), fold)
        rest = ~held
        weights = None if w is None else w[rest]
        a = dual_coefficients(
            K[np.ix_(rest, rest)], explicit_laplacian(y[rest], qid[rest].tolist(), weights, **graph), y[rest], alpha
        )
        out.append(y[held] - K[np.ix_(held, rest)] @ a)
    return out


def brute_force(K, y, w, qid, hidden, folds, alpha, penalty, graph):
    """Minimum of equation (11), as stacked least squares: the errors are affine in the labels sought."""
    L = explicit_laplacian(y, qid.tolist(), w, **graph)
    held = np.isin(np.arange(len(y)), hidden)
    known = residuals(K, L, w, qid, [hidden], alpha, graph, np.where(held, 0.0, y))[0]
    supervised = -known

    def errors(labels):
        full = np.where(held, 0.0, y)
        full[held] = labels
        parts = []
        for fold, r in zip(folds, residuals(K, L, w, qid, folds, alpha, graph, full), strict=True):
            order = np.sort(fold)
            values, vectors = np.linalg.eigh(L[np.ix_(order, order)])
            parts.append(np.sqrt(np.maximum(values, 0.0)) * (vectors.T @ r))
        return np.concatenate(parts)

    start = errors(np.zeros(len(hidden)))
    A = np.column_stack([errors(unit) - start for unit in np.eye(len(hidden))])
    stacked = np.vstack((A, np.sqrt(penalty) * np.eye(len(hidden))))
    return np.linalg.lstsq(stacked, np.concatenate((-start, np.sqrt(penalty) * supervised)), rcond=None)[0], supervised


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    queries = draw(st.integers(2, 5))
    qid = rng.permutation(np.repeat(np.arange(queries), rng.integers(1, 6, queries)))
    X = rng.normal(size=(len(qid), draw(st.integers(1, 12))))
    y = rng.integers(0, 3, len(qid)).astype(float)
    w = rng.random(len(qid)) + 0.3 if draw(st.booleans()) else None
    hidden = np.flatnonzero(qid < draw(st.integers(1, queries - 1)))
    fold = rng.permutation(np.arange(queries) % draw(st.integers(2, queries)))
    folds = [rng.permutation(np.flatnonzero(fold[qid] == f)) for f in np.unique(fold)]
    graph = {
        "balance": draw(st.sampled_from(["pairs", "examples", "queries"])),
        "beta": draw(st.sampled_from([0.0, 0.4, 1.0])),
    }
    return X, y, w, qid, hidden, folds, graph


def problems(X, y, w, qid, hidden, graph):
    """Every form, with its kernel matrix and what its coefficients weigh; labels of hidden rows must play no part."""
    built = ScoredGraph.build(
        y, query_layout(qid, len(y)), weights=w, balance=graph["balance"], regression_weight=graph["beta"]
    )
    filled = y.copy()
    filled[hidden] = 0.0
    target = (built.F @ filled)[:, None]
    K, G = X @ X.T, gaussian(X, X, 0.3)
    yield K, PrimalProblem(X, built, target), X
    yield K, PrimalProblem(sparse.csr_array(X), built, target), X
    yield K, DualProblem.from_features(X, built, target), K
    yield G, DualProblem.from_kernel(G.copy(), built, target), G
    spectral = DualProblem.from_kernel(G.copy(), built, target)
    assert len(spectral.values) == len(y)
    yield G, spectral, G
    for kernel, numbers in (
        (Kernel("rbf", 0.3), np.arange(len(y))),  # over all rows it is the kernel machine itself
        (Kernel("rbf", 0.3), np.arange(0, len(y), 3)),
        (Kernel("rbf", 1e-5), np.arange(0, len(y), 2)),  # K_RR is all but singular: rows are whitened first
    ):
        basis = Basis.build(kernel, X[numbers])
        columns = kernel(X, X[numbers])
        Z = columns @ basis.to_items
        yield (G if len(numbers) == len(y) else Z @ Z.T), SubsetProblem(X, basis, built, target), columns


@given(cases(), st.sampled_from([0.03, 1.0, 30.0]), st.sampled_from([0.1, 1.0, 50.0]))
def test_labels_minimise_the_cross_validated_error(case, alpha, penalty):
    X, y, w, qid, hidden, folds, graph = case
    for K, problem, columns in problems(X, y, w, qid, hidden, graph):
        found = transduce(problem, hidden, folds, alpha, penalty)
        labels, supervised = brute_force(K, y, w, qid, hidden, folds, alpha, penalty, graph)
        scale = max(1.0, np.abs(supervised).max())
        np.testing.assert_allclose(found.supervised[:, 0], supervised, atol=1e-9 * scale)
        np.testing.assert_allclose(found.labels[:, 0], labels, atol=1e-8 * scale)
        full = y.copy()
        full[hidden] = labels
        a = dual_coefficients(K, explicit_laplacian(y, qid.tolist(), w, **graph), full, alpha)
        np.testing.assert_allclose(columns @ found.coefficients[:, 0], K @ a, atol=1e-8 * scale)


@pytest.mark.parametrize("size", [3, 40])
def test_long_queries_take_the_matrix_of_the_columns(size):
    """More rows than columns in a fold, and fewer; primal equals dual."""
    rng = np.random.default_rng(size)
    qid = np.repeat(np.arange(6), size)
    X, y = rng.normal(size=(len(qid), 5)), rng.normal(size=len(qid))
    hidden = np.flatnonzero(qid >= 4)
    graph = ScoredGraph.build(y, query_layout(qid, len(y)))
    y[hidden] = 0.0
    target = graph.F @ np.column_stack((y, 2.0 * y, y**2))
    folds = [np.flatnonzero(qid == q) for q in range(6)]
    primal = transduce(PrimalProblem(X, graph, target), hidden, folds, 0.5, 0.7)
    dual = transduce(DualProblem.from_features(X, graph, target), hidden, folds, 0.5, 0.7)
    np.testing.assert_allclose(primal.labels, dual.labels, atol=1e-10)
    np.testing.assert_allclose(primal.coefficients, X.T @ dual.coefficients, atol=1e-10)
    np.testing.assert_allclose(primal.labels[:, 1], 2.0 * primal.labels[:, 0], atol=1e-10)


@pytest.mark.parametrize("penalty", [1e-9, 0.1])
def test_what_does_not_fit_into_memory_is_computed_anew(monkeypatch, penalty):
    rng = np.random.default_rng(9)
    qid = np.repeat(np.arange(12), 6)
    X, y = rng.normal(size=(72, 9)), rng.normal(size=72)
    hidden = np.flatnonzero(qid >= 5)
    y[hidden] = 0.0
    graph = ScoredGraph.build(y, query_layout(qid, 72))
    problem = PrimalProblem(X, graph, (graph.F @ y)[:, None])
    folds = [np.flatnonzero(qid % 7 == f) for f in range(7)]
    held = transduce(problem, hidden, folds, 0.5, penalty)
    monkeypatch.setattr(transductive, "_HELD_BYTES", 0)
    anew = transduce(problem, hidden, folds, 0.5, penalty)
    np.testing.assert_array_equal(anew.labels, held.labels)
    np.testing.assert_array_equal(anew.coefficients, held.coefficients)


def test_kernel_columns_of_queries_larger_than_a_block(monkeypatch):
    """The rows of such a query come in pieces; primal ranking on explicit whitened features is the oracle."""
    rng = np.random.default_rng(10)
    qid = rng.permutation(np.repeat(np.arange(4), (40, 30, 50, 5)))
    X, y = rng.normal(size=(125, 3)), rng.normal(size=125)
    hidden = np.flatnonzero(qid % 2 == 1)
    y[hidden] = 0.0
    graph = ScoredGraph.build(y, query_layout(qid, 125))
    target = (graph.F @ y)[:, None]
    basis = Basis.build(Kernel("rbf", 0.3), X[:20])
    folds = [np.flatnonzero(qid == q) for q in range(4)]
    monkeypatch.setattr(BasisColumns, "block_rows", 16)
    found = transduce(SubsetProblem(X, basis, graph, target), hidden, folds, 0.5, 0.3)
    Z = basis.kernel(X, X[:20]) @ basis.to_items
    plain = transduce(PrimalProblem(Z, graph, target), hidden, folds, 0.5, 0.3)
    np.testing.assert_allclose(found.labels, plain.labels, atol=1e-9)
    np.testing.assert_allclose(found.coefficients, basis.to_items @ plain.coefficients, atol=1e-7)


@pytest.mark.parametrize("penalty", [1e-6, 0.3, 1e5])
@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_the_inverse_of_a_laplacian_plus_a_ridge(penalty, beta):
    rng = np.random.default_rng(3)
    qid = rng.permutation(np.repeat(np.arange(4), (1, 5, 8, 2)))
    y, w = rng.normal(size=16), rng.random(16) + 0.1
    graph = ScoredGraph.build(y, query_layout(qid, 16), weights=w, balance="pairs", regression_weight=beta)
    V = rng.normal(size=(16, 3))
    A = explicit_laplacian(y, qid.tolist(), w, balance="pairs", beta=beta) + penalty * np.eye(16)
    found = ridge_inverse(graph, penalty, V)
    np.testing.assert_allclose(found, np.linalg.solve(A, V), rtol=1e-9, atol=1e-15 / penalty)


def test_a_tiny_alpha_counts_as_the_smallest_that_rounding_resolves():
    rng = np.random.default_rng(5)
    qid = np.repeat(np.arange(5), 4)
    X, y = rng.normal(size=(20, 40)), rng.normal(size=20)
    hidden = np.arange(4)
    y[hidden] = 0.0
    graph = ScoredGraph.build(y, query_layout(qid, 20))
    folds = [np.flatnonzero(qid == q) for q in range(5)]
    problem = DualProblem.from_features(X, graph, (graph.F @ y)[:, None])
    a, b = (transduce(problem, hidden, folds, alpha, 1.0).labels for alpha in (1e-30, 1e-12))
    np.testing.assert_array_equal(a, b)
    assert np.abs(a).max() < 10.0


def test_items_with_equal_features_get_equal_labels():
    rng = np.random.default_rng(7)
    qid = np.repeat(np.arange(8), 12)
    X, y = rng.integers(0, 2, size=(96, 3)).astype(float), rng.normal(size=96)
    hidden = np.flatnonzero(qid < 4)
    y[hidden] = 0.0
    graph = ScoredGraph.build(y, query_layout(qid, 96))
    folds = [np.flatnonzero(qid == q) for q in range(8)]
    target = (graph.F @ y)[:, None]
    for problem in (PrimalProblem(X, graph, target), DualProblem.from_features(X, graph, target)):
        labels = transduce(problem, hidden, folds, 1.0, 0.1).labels[:, 0]
        for q in range(4):
            own = qid[hidden] == q
            assert len(np.unique(labels[own])) == len(np.unique(X[hidden][own], axis=0))
