"""X'L(Xp) against the explicit Laplacian."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankrls._queries import query_layout
from rankrls.features.feature_rows import feature_rows
from rankrls.graph import PairGraph, ScoredGraph
from rankrls.graph import scored_product as module
from tests.oracles import explicit_laplacian

GRAPHS = list(product(("include", "exclude"), ("pairs", "examples", "queries"), (0.0, 0.3, 1.0)))


@pytest.fixture(params=["small", "large", "many", "scattered"])
def cache(request, monkeypatch):
    """Everything fits into the cache, or next to nothing does, or mean rows are too many, or rows are scattered."""
    if request.param in ("large", "many"):
        monkeypatch.setattr(module, "_CACHE_ENTRIES", 6)
        monkeypatch.setattr(module, "_CHUNK_ENTRIES", 3)
        monkeypatch.setattr(module, "_ENTRIES_A_MEAN", 0 if request.param == "large" else 1 << 20)
    if request.param == "scattered":
        monkeypatch.setattr(module, "_SCATTERED_ENTRIES", 0)
    return request.param


def problem(seed, *, m=60, n=7, queries=5, labels=3, weighted=True):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((m, n)) < 0.4, rng.normal(size=(m, n)), 0.0)
    qid = rng.integers(0, queries, m)
    y = rng.integers(0, labels, m).astype(float)
    w = rng.random(m) + 0.5 if weighted else None
    return X, y, qid, w, rng.normal(size=n)


def forms(X, rng):
    """One matrix in all the forms that are accepted; duplicates, explicit zeros and unsorted indices among them."""
    m, n = X.shape
    rows, columns = np.nonzero(X)
    rows = np.concatenate((rows, rows, rng.integers(0, m, 9)))
    columns = np.concatenate((columns, columns, rng.integers(0, n, 9)))
    values = np.concatenate((0.25 * X[X != 0], 0.75 * X[X != 0], np.zeros(9)))
    mixed = rng.permutation(len(rows))
    rows, columns, values = rows[mixed], columns[mixed], values[mixed]
    by_row = np.argsort(rows, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=m))))
    messy = sparse.csr_array((values[by_row], columns[by_row], starts), shape=X.shape)
    messy.indices, messy.indptr = messy.indices.astype(np.int64), messy.indptr.astype(np.int64)
    narrow = sparse.csr_array(X)
    narrow.indices, narrow.indptr = narrow.indices.astype(np.int32), narrow.indptr.astype(np.int32)
    single = X.astype(np.float32).astype(float)
    return [
        (X, X),
        (X, narrow),
        (X, messy),
        (single, X.astype(np.float32)),
        (single, sparse.csr_array(X.astype(np.float32))),
    ]


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_scored_graphs(graph, cache, monkeypatch):
    ties, balance, beta = graph
    X, y, qid, w, p = problem(1)
    L = explicit_laplacian(y, list(qid), w, ties=ties, balance=balance, beta=beta)
    scored = ScoredGraph.build(
        y, query_layout(qid, len(y)), weights=w, ties=ties, balance=balance, regression_weight=beta
    )
    scale = np.linalg.norm(X.T @ L @ X)
    for threads, (dense, X_form) in product(("1", "3"), forms(X, np.random.default_rng(2))):
        monkeypatch.setenv("RANKRLS_NUM_THREADS", threads)
        A = scored.laplacian_product(X_form)
        np.testing.assert_allclose(A @ p, dense.T @ (L @ (dense @ p)), atol=1e-12 * scale)
        np.testing.assert_allclose(A.right_side(scored.F @ y), dense.T @ (L @ y), atol=1e-12 * scale)


@pytest.mark.parametrize("labels", [2, 60])
@pytest.mark.parametrize("queries", [1, 2, 30])
def test_sizes_of_queries_and_classes(queries, labels, cache, monkeypatch):
    monkeypatch.setenv("RANKRLS_NUM_THREADS", "2")
    X, y, qid, w, p = problem(3, queries=queries, labels=labels)
    for ties, beta in product(("include", "exclude"), (0.0, 0.4)):
        L = explicit_laplacian(y, list(qid), w, ties=ties, beta=beta)
        scored = ScoredGraph.build(y, query_layout(qid, len(y)), weights=w, ties=ties, regression_weight=beta)
        for form in (X, sparse.csr_array(X)):
            np.testing.assert_allclose(scored.laplacian_product(form) @ p, X.T @ (L @ (X @ p)), atol=1e-11)


@given(st.integers(0, 2**32 - 1), st.integers(1, 25), st.integers(1, 60))
def test_pairs(seed, n, p):
    rng = np.random.default_rng(seed)
    m = 12
    X = np.where(rng.random((m, n)) < 0.5, rng.normal(size=(m, n)), 0.0)
    i = rng.integers(0, m - 2, p)
    j = (i + rng.integers(1, m - 2, p)) % (m - 2)
    c, s, v = rng.random(p) + 0.1, rng.normal(size=p), rng.normal(size=n)
    graph = PairGraph(i, j, m, s, c)
    D = np.sqrt(c)[:, None] * (X[i] - X[j])
    for form in (X, sparse.csr_array(X)):
        A = graph.laplacian_product(form)
        np.testing.assert_allclose(A @ v, D.T @ (D @ v), atol=1e-10)
        np.testing.assert_allclose(A.right_side(graph.target), D.T @ graph.target, atol=1e-10)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_some_rows_of_a_matrix(form, cache):
    X, y, qid, w, p = problem(4)
    rows = np.random.default_rng(5).permutation(len(y))[:40]
    scored = ScoredGraph.build(y[rows], query_layout(qid[rows], 40), weights=w[rows], ties="exclude")
    L = explicit_laplacian(y[rows], list(qid[rows]), w[rows], ties="exclude")
    Z = X[rows]
    source = feature_rows(form(X), centred=True)
    np.testing.assert_allclose(scored.laplacian_product(source, rows) @ p, Z.T @ (L @ (Z @ p)), atol=1e-11)
    pairs = PairGraph(np.array([0, 3, 9]), np.array([5, 5, 1]), 40, np.ones(3), np.ones(3))
    D = Z[pairs.winners] - Z[pairs.losers]
    np.testing.assert_allclose(pairs.laplacian_product(source, rows) @ p, D.T @ (D @ p), atol=1e-11)


@pytest.mark.parametrize("queries", [1, 5])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_an_offset_that_dwarfs_the_spread_is_not_squared(form, queries, cache):
    X, y, qid, w, p = problem(6, queries=queries, m=200)
    X = np.round(X * 1024) / 1024  # exact beside the offset
    for ties in ("include", "exclude"):
        scored = ScoredGraph.build(y, query_layout(qid, len(y)), weights=w, ties=ties)
        plain = scored.laplacian_product(form(X)) @ p
        moved = scored.laplacian_product(form(X + 2.0**23)) @ p
        np.testing.assert_allclose(moved, plain, atol=1e-6 * np.abs(plain).max())
        # An offset of its own for each query: no common shift of the columns takes it away.
        apart = X + 2.0 ** (10 + 2 * qid[:, None])
        np.testing.assert_allclose(scored.laplacian_product(form(apart)) @ p, plain, atol=1e-7 * np.abs(plain).max())


def test_nothing_stored_and_queries_of_one_item():
    scored = ScoredGraph.build(np.arange(4.0), query_layout(np.arange(4), 4))
    A = scored.laplacian_product(sparse.csr_array(np.eye(4)))
    np.testing.assert_array_equal(A @ np.ones(4), np.zeros(4))
    scored = ScoredGraph.build(np.arange(4.0), query_layout(None, 4))
    np.testing.assert_array_equal(scored.laplacian_product(sparse.csr_array((4, 3))) @ np.ones(3), np.zeros(3))
