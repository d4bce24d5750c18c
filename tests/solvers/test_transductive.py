"""Transduced labels against an explicit minimisation of the cross-validated error over refits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankrls._queries import query_layout
from rankrls.graph import ScoredGraph
from rankrls.solvers.dual import DualProblem
from rankrls.solvers.primal import PrimalProblem
from rankrls.solvers.transductive import transduce
from tests.oracles import dual_coefficients, explicit_laplacian, gaussian


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
    """Every form, with its kernel matrix; labels of hidden rows must play no part."""
    built = ScoredGraph.build(
        y, query_layout(qid, len(y)), weights=w, balance=graph["balance"], regression_weight=graph["beta"]
    )
    filled = y.copy()
    filled[hidden] = 0.0
    target = (built.F @ filled)[:, None]
    K, G = X @ X.T, gaussian(X, X, 0.3)
    yield K, PrimalProblem(X, built, target)
    yield K, PrimalProblem(sparse.csr_array(X), built, target)
    yield K, DualProblem.from_features(X, built, target)
    yield G, DualProblem.from_kernel(G.copy(), built, target)
    spectral = DualProblem.from_kernel(G.copy(), built, target)
    assert len(spectral.values) == len(y)
    yield G, spectral


@given(cases(), st.sampled_from([0.03, 1.0, 30.0]), st.sampled_from([0.1, 1.0, 50.0]))
def test_labels_minimise_the_cross_validated_error(case, alpha, penalty):
    X, y, w, qid, hidden, folds, graph = case
    for K, problem in problems(X, y, w, qid, hidden, graph):
        found = transduce(problem, hidden, folds, alpha, penalty)
        labels, supervised = brute_force(K, y, w, qid, hidden, folds, alpha, penalty, graph)
        scale = max(1.0, np.abs(supervised).max())
        np.testing.assert_allclose(found.supervised[:, 0], supervised, atol=1e-9 * scale)
        np.testing.assert_allclose(found.labels[:, 0], labels, atol=1e-8 * scale)
        full = y.copy()
        full[hidden] = labels
        a = dual_coefficients(K, explicit_laplacian(y, qid.tolist(), w, **graph), full, alpha)
        coefficients = found.coefficients[:, 0]
        scores = X @ coefficients if isinstance(problem, PrimalProblem) else K @ coefficients
        np.testing.assert_allclose(scores, K @ a, atol=1e-8 * scale)


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
