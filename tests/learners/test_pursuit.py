"""Matching pursuit against a greedy search by refits with the explicit Laplacian."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from rankrls.learners.paths import Dictionary, orthogonal_part
from rankrls.learners.pursuit import pursue
from rankrls.numerics.graph import LabelledGraph, PreferenceGraph
from tests.models.oracles import GRAPHS, graph_id, laplacian, ranking_data
from tests.oracles import gaussian


def scored(y, qid, w=None, **graph):
    return LabelledGraph.build(y, np.unique(qid, return_inverse=True)[1], weights=w, **graph)


def pairs(m, seed=0, n_pairs=40):
    rng = np.random.default_rng(seed)
    i = rng.integers(0, m, n_pairs)
    j = (i + rng.integers(1, m, n_pairs)) % m
    return PreferenceGraph.build(i, j, m, strength=rng.normal(size=n_pairs), weights=rng.uniform(0.2, 2.0, n_pairs))


def greedy_by_refit(K, L, y, stages, *, backfit=True, const=0.0):
    """The paper's algorithm, literally: try every column, keep the best step, then solve for all coefficients."""
    f, taken, losses, out = np.zeros(len(y)), [], [y @ L @ y + const], []
    a = np.zeros(0)
    for _ in range(stages):
        r = y - f
        best = [np.inf, None]
        for j in range(K.shape[1]):
            k = K[:, j]
            if k @ L @ k > 1e-20 * (k @ k):
                step = (k @ L @ r) / (k @ L @ k)
                loss = (r - step * k) @ L @ (r - step * k)
                if loss < best[0] - 1e-9 * losses[0]:
                    best = [loss, j, step]
        taken.append(best[1])
        A = K[:, taken]
        if backfit:
            values, vectors = np.linalg.eigh(L)
            F = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
            a = np.linalg.lstsq(F @ A, F @ y, rcond=None)[0]
        else:
            a = np.append(a, best[2])
        f = A @ a
        out.append(a)
        losses.append((y - f) @ L @ (y - f) + const)
    return taken, out, losses


def assert_path(path, expected):
    taken, coefficients, losses = expected
    assert path.indices.tolist() == taken
    np.testing.assert_allclose(path.losses, losses, rtol=1e-9, atol=1e-11 * losses[0])
    for p, a in enumerate(coefficients):
        np.testing.assert_allclose(path.coefficients[p, : p + 1], a, rtol=1e-7, atol=1e-9)
        assert not path.coefficients[p, p + 1 :].any()


@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
@pytest.mark.parametrize("backfit", [True, False])
def test_is_the_greedy_search_by_refits(graph, backfit):
    X, y, qid = ranking_data(3, queries=6, longest=7)
    w = np.random.default_rng(1).uniform(0.3, 2.0, len(y))
    g = scored(y, qid, w, **graph)
    K = gaussian(X, X, 0.3)
    path = pursue(Dictionary(gaussian(X, X, 0.3), g), g.target[:, 0], 6, backfit=backfit)
    assert_path(path, greedy_by_refit(K, laplacian(y, qid, w, graph), y, 6, backfit=backfit))


@pytest.mark.parametrize("form", [np.asarray, lambda X: np.asarray(X, np.float32), sparse.csr_array])
@pytest.mark.parametrize("graph", GRAPHS[::4], ids=graph_id)
def test_features_are_a_dictionary_however_they_are_stored(form, graph):
    X, y, qid = ranking_data(5, queries=8, n=9)
    X = np.where(np.abs(X) < 0.4, 0.0, np.round(X, 1))
    X = X.astype(np.float32).astype(float)
    g = scored(y, qid, **graph)
    path = pursue(Dictionary(form(X), g), g.target[:, 0], 5)
    assert_path(path, greedy_by_refit(X, laplacian(y, qid, None, graph), y, 5))


@pytest.mark.parametrize("n_pairs", [20, 90])
def test_preferences(n_pairs):
    X = np.random.default_rng(2).normal(size=(14, 3))
    g = pairs(14, n_pairs=n_pairs)
    path = pursue(Dictionary(gaussian(X, X, 0.3), g), g.target[:, 0], 5)
    # in the pairs' own coordinates the Laplacian is the identity
    assert_path(path, greedy_by_refit(g.factor_rows(gaussian(X, X, 0.3)), np.eye(n_pairs), g.target[:, 0], 5))
    Z = np.random.default_rng(4).integers(0, 2, (14, 8)).astype(float)
    one, other = (pursue(Dictionary(A, g), g.target[:, 0], 4) for A in (Z, sparse.csr_array(Z)))
    assert one.indices.tolist() == other.indices.tolist()
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_columns_that_the_graph_does_not_see_are_skipped(form):
    _, y, qid = ranking_data(1)
    rng = np.random.default_rng(0)
    X = np.column_stack((np.full(len(y), 0.1), qid * 1.7, 1e-3 * rng.normal(size=(len(y), 2)), qid * 1e6 + 0.3))
    g = scored(y, qid)
    dictionary = Dictionary(form(X), g)
    assert (dictionary.energies > 0).tolist() == [False, False, True, True, False]
    assert sorted(pursue(dictionary, g.target[:, 0], 5).indices) == [2, 3]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_column_of_what_is_never_compared_is_skipped(form):
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(900), rng.normal(size=10)]
    qid = np.r_[np.repeat(np.arange(300), 3), np.full(10, 999)]
    w = rng.uniform(0.1, 3.0, 910)
    X = rng.normal(size=(910, 2))
    X[900:, 1] = 0.0  # only where all labels of the query are the same
    dictionary = Dictionary(form(X), scored(y, qid, w, ties="exclude"))
    assert (dictionary.energies > 0).tolist() == [True, False]


def test_equal_columns_go_to_the_lowest_index():
    X, y, qid = ranking_data(2, n=5)
    g = scored(y, qid)
    single = pursue(Dictionary(X, g), g.target[:, 0], 5)
    rng = np.random.default_rng(0)
    for _ in range(20):
        copies = rng.permutation(np.repeat(np.arange(5), 3))
        scale = rng.uniform(0.1, 10.0, 15) * rng.choice([-1, 1], 15)
        path = pursue(Dictionary(X[:, copies] * scale, g), g.target[:, 0], 15)
        first = [int(np.flatnonzero(copies == j)[0]) for j in single.indices]
        assert path.indices.tolist() == first
        assert path.n_stages == 5


def test_stops_when_nothing_improves():
    X, y, qid = ranking_data(4, n=3)
    g = scored(y, qid)
    path = pursue(Dictionary(np.hstack((X, X @ [[1.0], [2.0], [3.0]])), g), g.target[:, 0], 50)
    assert path.n_stages == 3
    h = scored(X @ [0.0, 3.0, 0.0], qid)
    exact = pursue(Dictionary(X, h), h.target[:, 0], 50)
    assert exact.indices.tolist() == [1]
    assert exact.coefficients.tolist() == [[pytest.approx(3.0)]]
    slow = pursue(Dictionary(X, g), g.target[:, 0], 10**4, backfit=False)
    assert slow.n_stages < 500
    np.testing.assert_allclose(slow.losses[-1], path.losses[-1], rtol=1e-10)
    taken, coefficients = slow.merged()
    assert sorted(taken) == [0, 1, 2]
    np.testing.assert_allclose(X[:, taken] @ coefficients[-1], X[:, slow.indices] @ slow.coefficients[-1])
    full = pursue(Dictionary(X, g), g.target[:, 0], 3)
    np.testing.assert_allclose(coefficients[-1][np.argsort(taken)], full.coefficients[-1][np.argsort(full.indices)])
    assert pursue(Dictionary(np.ones_like(X), g), g.target[:, 0], 3).n_stages == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(GRAPHS), st.integers(1, 12), st.integers(1, 6))
def test_any_data(seed, graph, m, n):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (m, n)).astype(float)
    y, qid = rng.integers(0, 3, m).astype(float), rng.integers(0, 3, m)
    g = scored(y, qid, **graph)
    path = pursue(Dictionary(X, g), g.target[:, 0], m + n)
    L = laplacian(y, qid, None, graph)
    assert path.n_stages <= np.linalg.matrix_rank(L @ X)
    assert (np.diff(path.losses) < 1e-12 * max(1.0, path.losses[0])).all()
    if path.n_stages:
        f = X[:, path.indices] @ path.coefficients[-1]
        np.testing.assert_allclose((y - f) @ L @ (y - f), path.losses[-1], atol=1e-9)
        values, vectors = np.linalg.eigh(L)
        F = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        best = np.linalg.lstsq(F @ X, F @ y, rcond=1e-10)[0]
        np.testing.assert_allclose(path.losses[-1], ((F @ (y - X @ best)) ** 2).sum(), atol=1e-8)


def test_nearly_dependent_columns_become_orthonormal():
    A = np.vander(np.linspace(0.0, 1.0, 60), 10)
    Q = np.empty((0, 60))
    for column in A.T:
        rest = orthogonal_part(column, Q)
        Q = np.vstack((Q, rest / np.linalg.norm(rest)))
    np.testing.assert_allclose(Q @ Q.T, np.eye(10), atol=1e-13)
    np.testing.assert_allclose(np.tril(Q @ A, -1), 0.0, atol=1e-13)


def test_scikit_learn_takes_the_same_path():
    """On rows centred inside queries and columns of length 1 its criterion is ours."""
    from sklearn.linear_model import OrthogonalMatchingPursuit

    rng = np.random.default_rng(1)
    X, y, qid = rng.normal(size=(200, 30)), rng.normal(size=200), np.repeat(np.arange(20), 10)
    model = pursue(Dictionary(X, scored(y, qid)), scored(y, qid).target[:, 0], 12)
    blocks = X.reshape(20, 10, 30)
    Z = (blocks - blocks.mean(axis=1, keepdims=True)).reshape(200, 30)
    lengths = np.linalg.norm(Z, axis=0)
    for p in (1, 5, 12):
        theirs = OrthogonalMatchingPursuit(n_nonzero_coefs=p, fit_intercept=False).fit(Z / lengths, y).coef_ / lengths
        ours = np.zeros(30)
        ours[model.indices[:p]] = model.coefficients[p - 1, :p]
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
