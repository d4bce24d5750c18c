"""Transduced labels against an explicit minimisation of the cross-validated error over refits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from rankrls.kernels import Kernel
from rankrls.learners.transductive import transduce
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.scorer import Basis
from rankrls.numerics.smoother import DualEquations, normal_equations
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
    graph = {
        "balance": draw(st.sampled_from(["pairs", "examples", "queries"])),
        "beta": draw(st.sampled_from([0.0, 0.4, 1.0])),
    }
    return X, y, w, qid, hidden, graph


def hidden_first(y, w, qid, hidden, graph):
    """The graph with the hidden queries first, and their number."""
    built = LabelledGraph.build(y, qid, weights=w, balance=graph["balance"], regression_weight=graph["beta"])
    of_query = np.isin(np.arange(qid.max() + 1), qid[hidden])
    taken = built.take(np.argsort(~of_query, kind="stable"))
    return taken, int(of_query.sum())


def problems(X, graph):
    """Every form: its kernel matrix, its smoother, what it reads, and what its coefficients weigh."""
    K, G = X @ X.T, gaussian(X, X, 0.3)
    yield K, normal_equations(graph, X).smoother(), X, X
    yield K, normal_equations(graph, sparse.csr_array(X)).smoother(), sparse.csr_array(X), X
    yield K, DualEquations.of_features(X, graph).smoother(), None, K
    yield G, DualEquations.of_kernel(G.copy(), graph).smoother(), None, G
    for kernel, numbers in (
        (Kernel("rbf", 0.3), np.arange(len(X))),  # over all rows it is the kernel machine itself
        (Kernel("rbf", 0.3), np.arange(0, len(X), 3)),
        (Kernel("rbf", 1e-5), np.arange(0, len(X), 2)),  # K_RR is all but singular: rows are whitened first
    ):
        basis = Basis.build(kernel, X[numbers])
        columns = kernel(X, X[numbers])
        Z = columns @ basis.to_items
        smoother = normal_equations(graph, basis.features(X)).whitened(basis.whitening).smoother()
        K_R = G if len(numbers) == len(X) else Z @ Z.T
        yield K_R, smoother, basis.features(X), Z if basis.rows_first else columns


@given(cases(), st.sampled_from([0.03, 1.0, 30.0]), st.sampled_from([0.1, 1.0, 50.0]))
def test_labels_minimise_the_cross_validated_error(case, alpha, penalty):
    X, y, w, qid, hidden, graph = case
    folds = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    taken, count = hidden_first(y, w, qid, hidden, graph)
    for K, smoother, features, columns in problems(X, taken):
        found = transduce(smoother, taken, features, alpha, penalty, count)
        labels, supervised = brute_force(K, y, w, qid, hidden, folds, alpha, penalty, graph)
        scale = max(1.0, np.abs(supervised).max())
        order = np.argsort(found.rows)
        assert (found.rows[order] == hidden).all()
        np.testing.assert_allclose(found.supervised[order, 0], supervised, atol=1e-8 * scale)
        np.testing.assert_allclose(found.labels[order, 0], labels, atol=1e-7 * scale)
        full = y.copy()
        full[hidden] = labels
        a = dual_coefficients(K, explicit_laplacian(y, qid.tolist(), w, **graph), full, alpha)
        np.testing.assert_allclose(columns @ found.coefficients[:, 0], K @ a, atol=1e-7 * scale)


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize("penalty", [1e-6, 0.7, 1e4])
def test_primal_equals_dual_for_queries_shorter_and_longer_than_features(size, penalty):
    rng = np.random.default_rng(size)
    qid = np.repeat(np.arange(6), size)
    X, y = rng.normal(size=(len(qid), 5)), rng.normal(size=len(qid))
    graph = LabelledGraph.build(np.column_stack((y, 2.0 * y, y**2)), qid)
    primal = transduce(normal_equations(graph, X).smoother(), graph, X, 0.5, penalty, 2)
    dual = transduce(DualEquations.of_features(X, graph).smoother(), graph, None, 0.5, penalty, 2)
    np.testing.assert_allclose(primal.labels, dual.labels, atol=1e-8)
    np.testing.assert_allclose(primal.coefficients, X.T @ dual.coefficients, atol=1e-8)
    np.testing.assert_allclose(primal.labels[:, 1], 2.0 * primal.labels[:, 0], atol=1e-8)
    other = replace(graph, y=graph.y + 5.0 * (np.arange(len(y)) < graph.starts[2])[:, None])
    again = transduce(normal_equations(other, X).smoother(), other, X, 0.5, penalty, 2)
    np.testing.assert_allclose(again.labels, primal.labels, atol=1e-8)  # labels of hidden rows play no part
