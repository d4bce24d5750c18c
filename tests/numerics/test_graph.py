"""Graphs against the explicit Laplacian."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from rankrls.numerics.graph import LabelledGraph, PreferenceGraph
from rankrls.numerics.runs import chunks, left_fold, map_chunks
from tests.numerics.cases import cases
from tests.oracles import explicit_laplacian

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


@given(cases())
def test_operators_of_a_labelled_graph_are_those_of_the_explicit_laplacian(case):
    graph, m = case.graph, len(case.y)
    L = case.laplacian()[np.ix_(case.graph.rows, case.graph.rows)]
    np.testing.assert_allclose(graph.laplacian(np.eye(m)), L, **CLOSE)
    D, means = graph.read(np.eye(m))
    F = graph.factor(D, means)
    np.testing.assert_allclose(F.T @ F, case.laplacian(), **CLOSE)
    np.testing.assert_allclose(graph.transposed(np.eye(m)), F[:, graph.rows].T, **CLOSE)
    np.testing.assert_allclose(graph.target[:, 0], F @ case.y, **CLOSE)
    assert graph.n_observations == np.linalg.matrix_rank(L, tol=1e-9)


@given(cases(offset=1e7))
def test_features_of_any_container_are_read_alike_and_scores_are_read_back(case):
    graph = case.graph
    D, means = graph.read(case.X)
    np.testing.assert_allclose(D, case_deviations(case)[graph.rows], rtol=0, atol=1e-7)
    for X in (np.asfortranarray(case.X), sparse.csr_array(case.X)):
        for ours, theirs in zip(graph.read(X), (D, means), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=1e-14)
    FX = graph.factor_rows(case.X)
    seen = ~graph.unseen
    np.testing.assert_allclose(graph.unfactor(FX.T)[:, seen], D.T[:, seen], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(FX, graph.factor(D, means), rtol=1e-12, atol=1e-9)
    assert (graph.restore(case.y[graph.rows]) == case.y).all()


def case_deviations(case):
    w = np.ones(len(case.y)) if case.w is None else case.w
    out = np.empty_like(case.X)
    for q in set(case.q):
        rows = case.q == q
        out[rows] = case.X[rows] - np.average(case.X[rows].astype(np.longdouble), axis=0, weights=w[rows])
    return out


@given(cases())
def test_parts_and_queries_in_another_order_keep_their_weights(case):
    graph = case.graph
    count = len(graph.starts) - 1
    whole = graph.factor_rows(case.X)
    for a, b in chunks(graph.starts, 5):
        part = graph.part(a, b)
        inside = slice(graph.starts[a], graph.starts[b])
        np.testing.assert_allclose(part.factor_rows(case.X), whole[inside], **CLOSE)
        assert (graph.place[part.rows] == np.arange(inside.start, inside.stop)).all()
        assert (part.unseen == graph.unseen[inside]).all()
    order = np.arange(count)[::-1]
    pieces = [graph.part(q, q + 1).factor_rows(case.X) for q in order]
    np.testing.assert_allclose(graph.take(order).factor_rows(case.X), np.concatenate(pieces), **CLOSE)


def test_a_constant_column_is_exactly_zero_inside_queries():
    graph = LabelledGraph.build(np.arange(50.0), np.arange(50) // 7, weights=np.linspace(0.1, 3, 50))
    assert not graph.read(np.full((50, 2), 0.1))[0].any()


@pytest.mark.parametrize("balance", ["pairs", "examples", "queries"])
def test_queries_of_ties_alone_are_exactly_nothing(balance):
    """Class means and query means of large features differ by rounding, which must not count."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(40, 3)) + 1e6, rng.uniform(0.5, 3.0, 40)
    graph = LabelledGraph.build(np.zeros(40), np.arange(40) // 8, weights=w, ties="exclude", balance=balance)
    assert not graph.laplacian(X).any()
    assert not graph.factor_rows(X).any()
    assert graph.n_observations == 0


def test_several_targets_share_a_graph_with_ties():
    y = np.random.default_rng(0).normal(size=(12, 3))
    graph = LabelledGraph.build(y, np.repeat([0, 1], 6), balance="pairs")
    for k in range(3):
        one = LabelledGraph.build(y[:, k], np.repeat([0, 1], 6), balance="pairs")
        np.testing.assert_allclose(graph.restore(graph.target.T)[k], one.restore(one.target.T)[0])


@pytest.mark.parametrize("grouped", [False, True])
def test_operators_of_preferences_are_those_of_the_incidence_matrix(grouped):
    rng = np.random.default_rng(1)
    p, items = 20, 7
    i = rng.integers(0, items - 1, p)
    j = (i + rng.integers(1, items - 1, p)) % (items - 1)
    c, s = rng.uniform(0.5, 2, p), rng.normal(size=p)
    groups = rng.integers(0, 4, p) if grouped else None
    graph = PreferenceGraph.build(i, j, items, strength=s, weights=c, groups=groups)
    F = np.sqrt(c)[:, None] * (np.eye(items)[i] - np.eye(items)[j])
    np.testing.assert_allclose(graph.factor_rows(np.eye(items)), F[graph.rows])
    np.testing.assert_allclose(graph.laplacian(np.eye(items)), F.T @ F, atol=1e-12)
    np.testing.assert_allclose(graph.matrix.toarray(), F.T @ F, atol=1e-12)
    np.testing.assert_allclose(graph.transposed(np.eye(p)), F[graph.rows].T)
    np.testing.assert_allclose(graph.restore(graph.target.T)[0], np.sqrt(c) * s)
    np.testing.assert_allclose(graph.unfactor(F[graph.rows].T), (F / np.sqrt(c)[:, None])[graph.rows].T)
    assert graph.components[-1] == items - 1  # in no preference
    order = np.arange(len(graph.starts) - 1)[::-1]
    pieces = [graph.part(k, k + 1).rows for k in order]
    assert (graph.take(order).rows == np.concatenate(pieces)).all()


@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_the_equations_of_a_long_query_are_those_of_its_pieces_and_their_means(ties):
    rng = np.random.default_rng(2)
    X, w = rng.normal(size=(60, 3)) + 10.0, rng.uniform(0.1, 1.0, 60)
    y = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [7, 30, 4, 3, 16])  # whole classes, and classes that are cut
    graph = LabelledGraph.build(y, weights=w, ties=ties, regression_weight=0.2)
    whole, between = graph.pieces(7)
    pieces = [whole.part(k, k + 1) for k in range(len(whole.starts) - 1)]
    assert max(piece.n_rows for piece in pieces) == 7
    blocks = [(piece, piece.factor_rows(X)) for piece in pieces]
    blocks.append((between, between.factor_rows(np.concatenate([piece.read(X)[1] for piece in pieces]))))
    L = explicit_laplacian(y, np.zeros(60), w, ties=ties, balance="examples", beta=0.2)
    np.testing.assert_allclose(sum(Z.T @ Z for _, Z in blocks), X.T @ L @ X, **CLOSE)
    np.testing.assert_allclose(sum(Z.T @ part.target[:, 0] for part, Z in blocks), X.T @ L @ y, **CLOSE)


def test_a_long_group_of_preferences_is_read_in_pieces():
    rng = np.random.default_rng(3)
    i, j = rng.permutation(40)[:20], rng.permutation(40)[:20]
    graph = PreferenceGraph.build(i, j, 40, weights=rng.random(20), groups=np.zeros(20))
    whole, means = graph.pieces(6)
    pieces = [whole.part(a, b) for a, b in chunks(whole.starts, 6)]
    assert [piece.n_rows for piece in pieces] == [6, 6, 6, 2]
    assert means is None
    np.testing.assert_allclose(sum(piece.matrix.toarray() for piece in pieces), graph.matrix.toarray())


def test_results_are_added_in_order():
    assert left_fold(map_chunks(float, range(10))) == 45.0
    assert list(map_chunks(str, range(5))) == list("01234")
    assert chunks(np.array([0, 3, 4, 9, 11]), 4) == [(0, 2), (2, 3), (3, 4)]
    assert chunks(np.array([0, 100]), 4) == [(0, 1)]
