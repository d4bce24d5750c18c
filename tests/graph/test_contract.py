"""One contract that every graph keeps: equal to the explicit Laplacian, factorised, permutation-equivariant."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankrls._queries import query_layout
from rankrls.features.columns import BasisColumns
from rankrls.graph import PairGraph, ScoredGraph
from tests.graph.new_graphs import CycleGraph, StarGraph
from tests.oracles import explicit_laplacian
from tests.refusals import Refusal

TIES = ("include", "exclude")
BALANCE = ("pairs", "examples", "queries")


@st.composite
def scored_data(draw):
    m = draw(st.integers(1, 12))
    qid = draw(st.lists(st.sampled_from(["b", "a", "c", "d"]), min_size=m, max_size=m))
    y = np.array(draw(st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.0, 0.5]), min_size=m, max_size=m)))
    w = np.array(draw(st.lists(st.sampled_from([1.0, 0.25, 2.0, 3.0]), min_size=m, max_size=m)))
    return y, qid, w


@st.composite
def graphs(draw):
    """A graph of any kind, with its explicit Laplacian."""
    kind = draw(st.sampled_from(["scored", "pairs", "cycle", "star"]))
    if kind in ("cycle", "star"):
        lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
        weight = draw(st.lists(st.sampled_from([1.0, 0.5, 4.0, 0.0]), min_size=sum(lengths), max_size=sum(lengths)))
        graph = (CycleGraph if kind == "cycle" else StarGraph).build(lengths, np.array(weight))
        explicit = np.zeros((graph.n_items, graph.n_items))
        for lo, hi in zip(graph.starts[:-1], graph.starts[1:], strict=True):
            for i in range(lo, hi):
                e = np.zeros(graph.n_items)
                e[i] += 1.0
                e[i + 1 if kind == "cycle" and i + 1 < hi else lo] -= 1.0
                explicit += weight[i] * np.outer(e, e)
        return graph, explicit
    if kind == "scored":
        y, qid, w = draw(scored_data())
        ties, balance = draw(st.sampled_from(TIES)), draw(st.sampled_from(BALANCE))
        beta = draw(st.sampled_from([0.0, 0.3, 1.0]))
        graph = ScoredGraph.build(
            y, query_layout(qid, len(y)), weights=w, ties=ties, balance=balance, regression_weight=beta
        )
        return graph, explicit_laplacian(y, qid, w, ties=ties, balance=balance, beta=beta)
    m = draw(st.integers(2, 9))
    pairs = draw(st.lists(st.tuples(st.integers(0, m - 1), st.integers(1, m - 1)), min_size=1, max_size=20))
    winners = np.array([i for i, _ in pairs])
    losers = np.array([(i + d) % m for i, d in pairs])
    weights = st.sampled_from([1.0, 0.5, 4.0, 1e-9, 0.0])
    c = np.array(draw(st.lists(weights, min_size=len(pairs), max_size=len(pairs))))
    groups = np.unique(np.arange(len(pairs)) % 3, return_inverse=True)[1]
    graph = PairGraph(winners, losers, m, np.ones(len(pairs)), c, groups)
    explicit = np.zeros((m, m))
    for i, j, weight in zip(winners, losers, c, strict=True):
        e = np.zeros(m)
        e[i], e[j] = 1.0, -1.0
        explicit += weight * np.outer(e, e)
    return graph, explicit


@given(graphs())
def test_equals_the_explicit_laplacian(case):
    graph, L = case
    eye = np.eye(graph.n_items)
    np.testing.assert_allclose(graph.L @ eye, L, atol=1e-12)
    np.testing.assert_allclose(graph.L.T @ eye, L, atol=1e-12)


@given(graphs())
def test_factor_and_its_transpose(case):
    graph, L = case
    F = graph.F @ np.eye(graph.n_items)
    assert F.shape == (graph.n_rows, graph.n_items) == graph.F.shape
    np.testing.assert_allclose(F.T @ F, L, atol=1e-12)
    np.testing.assert_allclose(graph.F.T @ np.eye(graph.n_rows), F.T, atol=1e-12)


@given(graphs(), st.integers(0, 2**32 - 1))
def test_quadratic_form_vectors_and_sparse_right_hand_sides(case, seed):
    graph, L = case
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(graph.n_items, 3)) * (rng.random((graph.n_items, 3)) < 0.5)
    U = rng.normal(size=(graph.n_rows, 2)) * (rng.random((graph.n_rows, 2)) < 0.5)
    np.testing.assert_allclose(graph.quadratic(V), np.diag(V.T @ L @ V), atol=1e-12)
    np.testing.assert_allclose(graph.quadratic(V[:, 0]), V[:, 0] @ L @ V[:, 0], atol=1e-12)
    np.testing.assert_allclose(graph.L @ V[:, 1], L @ V[:, 1], atol=1e-12)
    for operator, right in ((graph.L, V), (graph.F, V), (graph.F.T, U)):
        dense = operator @ right
        for kind in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array):
            product = operator @ kind(right)
            assert sparse.issparse(product)
            np.testing.assert_allclose(product.toarray(), dense, atol=1e-12)
    np.testing.assert_allclose(graph.quadratic(sparse.csr_array(V)), graph.quadratic(V), atol=1e-12)


@given(graphs())
def test_symmetric_and_positive_semidefinite(case):
    graph, _ = case
    L = graph.L @ np.eye(graph.n_items)
    np.testing.assert_allclose(L, L.T, atol=1e-12)
    assert np.linalg.eigvalsh(L).min() > -1e-10 * max(1.0, np.abs(L).max())


@given(graphs())
def test_blocks_partition_the_rows_of_f(case):
    graph, L = case
    rows = [np.arange(graph.n_rows)[graph.rows_of(b)] for b in range(graph.n_blocks)]
    assert sorted(np.concatenate(rows)) == list(range(graph.n_rows))
    if isinstance(graph, ScoredGraph):
        for b, r in enumerate(rows):
            np.testing.assert_allclose(graph.block(b).L @ np.eye(len(r)), L[np.ix_(r, r)], atol=1e-12)
        some = np.arange(0, graph.n_blocks, 2)
        r = np.flatnonzero(np.isin(graph.layout.codes, some))
        np.testing.assert_allclose(graph.select(some).L @ np.eye(len(r)), L[np.ix_(r, r)], atol=1e-12)
    elif isinstance(graph, PairGraph):
        parts = [graph.block(b).L @ np.eye(graph.n_items) for b in range(graph.n_blocks)]
        np.testing.assert_allclose(sum(parts), L, atol=1e-12)


@given(graphs(), st.integers(0, 2**32 - 1))
def test_rows_and_products_of_features(case, seed):
    """What the graph makes of features is what its operators make of them, in every storage."""
    graph, L = case
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(graph.n_items, 3)) * (rng.random((graph.n_items, 3)) < 0.7)
    FX, p, everything = graph.F @ X, rng.normal(size=3), slice(0, graph.n_rows)
    target = rng.normal(size=(graph.n_rows, 2))
    for form in (X, sparse.csr_array(X), BasisColumns(X, np.copy, 3)):
        rows = graph.factor_rows(form)
        for piece in rows.pieces(everything):
            np.testing.assert_allclose(rows.factor(piece), FX[piece], atol=1e-12)
            D = rows.differences(piece) @ p[:, None]
            np.testing.assert_allclose(rows.factor_of(piece, D, p[:, None])[:, 0], FX[piece] @ p, atol=1e-12)
        gram, rhs = rows.equations(target)
        np.testing.assert_allclose(gram, X.T @ L @ X, atol=1e-11)
        np.testing.assert_allclose(rhs, FX.T @ target, atol=1e-11)
        np.testing.assert_allclose(graph.laplacian_product(form) @ p, X.T @ (L @ (X @ p)), atol=1e-11)
    assert (graph.degrees >= np.diag(L) - 1e-12).all()
    for form in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(graph.factor_rows(form).energies(), np.diag(X.T @ L @ X), atol=1e-11)


@given(graphs(), st.integers(0, 2**32 - 1))
def test_scores_of_a_block_follow_from_the_factor(case, seed):
    """``F_U f_U`` and what F does not see give back the values that held-out rows are judged by."""
    check_scores_of_blocks(case[0], seed)


@pytest.mark.parametrize("balance", BALANCE)
def test_scores_of_items_that_are_never_compared(balance):
    """Queries of one label, ties excluded: F has no row for their items."""
    y, qid = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 5.0]), [0, 0, 1, 1, 1, 2]
    graph = ScoredGraph.from_labels(y, qid=qid, ties="exclude", balance=balance)
    assert list(graph.faint_rows) == [0, 1, 5]
    check_scores_of_blocks(graph, 0)


def check_scores_of_blocks(graph, seed):
    f = np.random.default_rng(seed).normal(size=(graph.n_items, 2))
    Ff, judged, unseen = graph.F @ f, graph.differences(f), graph.unseen(f)
    for b in range(graph.n_blocks):
        rows = graph.rows_of(b)
        with np.errstate(invalid="ignore"):  # a preference of weight 0 has no score
            found = graph.block_scores(rows, Ff[rows], Ff[rows], unseen, np.eye(2))
        keep = graph.weight[rows] > 0.0 if isinstance(graph, PairGraph) else slice(None)
        np.testing.assert_allclose(found[keep], judged[rows][keep], atol=1e-9)


@given(scored_data(), st.sampled_from(TIES), st.sampled_from(BALANCE))
def test_null_space_holds_a_constant_for_every_query(data, ties, balance):
    y, qid, w = data
    graph = ScoredGraph.build(y, query_layout(qid, len(y)), weights=w, ties=ties, balance=balance)
    constants = graph.layout.codes[:, None] == np.arange(graph.n_blocks)
    np.testing.assert_allclose(graph.L @ constants.astype(float), 0.0, atol=1e-12)


@given(scored_data(), st.sampled_from(TIES), st.sampled_from(BALANCE), st.floats(0, 1))
def test_mixture_is_linear_in_beta(data, ties, balance, beta):
    y, qid, w = data
    layout = query_layout(qid, len(y))
    eye = np.eye(len(y))

    def laplacian(b):
        return ScoredGraph.build(y, layout, weights=w, ties=ties, balance=balance, regression_weight=b).L @ eye

    np.testing.assert_allclose(laplacian(beta), beta * laplacian(1) + (1 - beta) * laplacian(0), atol=1e-12)
    np.testing.assert_allclose(laplacian(1), np.diag(w), atol=1e-12)


@given(scored_data(), st.sampled_from(TIES), st.sampled_from(BALANCE), st.randoms())
def test_permutation_of_rows_permutes_the_operator(data, ties, balance, random):
    y, qid, w = data
    p = list(range(len(y)))
    random.shuffle(p)
    z = np.linspace(-1, 2, len(y)) ** 3
    straight = ScoredGraph.build(y, query_layout(qid, len(y)), weights=w, ties=ties, balance=balance)
    moved = ScoredGraph.build(y[p], query_layout([qid[i] for i in p], len(y)), weights=w[p], ties=ties, balance=balance)
    np.testing.assert_allclose(moved.L @ z[p], (straight.L @ z)[p], atol=1e-12)
    np.testing.assert_allclose(moved.F @ z[p], (straight.F @ z)[p], atol=1e-12)


@given(scored_data(), st.sampled_from(TIES), st.sampled_from(BALANCE))
def test_all_labels_distinct_makes_ties_irrelevant(data, ties, balance):
    _, qid, w = data
    y = np.arange(len(w), dtype=float)
    layout = query_layout(qid, len(y))
    a = ScoredGraph.build(y, layout, weights=w, ties="include", balance=balance).L @ np.eye(len(y))
    b = ScoredGraph.build(y, layout, weights=w, ties="exclude", balance=balance).L @ np.eye(len(y))
    np.testing.assert_allclose(a, b, atol=1e-10)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("balance", BALANCE)
def test_integer_weights_equal_repetition(ties, balance):
    rng = np.random.default_rng(3)
    y, qid = rng.integers(0, 3, 20).astype(float), rng.integers(0, 4, 20)
    w = rng.integers(1, 4, 20)
    z = rng.normal(size=20)
    again = np.repeat(np.arange(20), w)
    weighted = ScoredGraph.build(
        y, query_layout(qid, 20), weights=w.astype(float), ties=ties, balance=balance
    ).quadratic(z)
    repeated = ScoredGraph.build(y[again], query_layout(qid[again], len(again)), ties=ties, balance=balance).quadratic(
        z[again]
    )
    if (ties, balance) == ("include", "queries"):
        assert repeated < weighted  # repetition adds compared pairs, so each pair counts less
    else:
        np.testing.assert_allclose(weighted, repeated, rtol=1e-12)


def test_an_offset_common_to_a_query_cancels():
    rng = np.random.default_rng(0)
    qid = rng.integers(0, 5, 60)
    z = rng.normal(size=60)
    graph = ScoredGraph.build(rng.normal(size=60).round(), query_layout(qid, 60), ties="exclude")
    np.testing.assert_allclose(graph.F @ (z + 1e7), graph.F @ z, atol=1e-7)


def test_scored_graph_of_all_pairs_is_the_pair_graph():
    rng = np.random.default_rng(1)
    y, qid = rng.normal(size=15), rng.integers(0, 3, 15)
    i, j = np.nonzero((qid[:, None] == qid) & (np.arange(15)[:, None] < np.arange(15)))
    pairs = PairGraph(i, j, 15, y[i] - y[j], np.ones(len(i)))
    scored = ScoredGraph.build(y, query_layout(qid, 15), balance="pairs")
    np.testing.assert_allclose(pairs.L @ np.eye(15), scored.L @ np.eye(15), atol=1e-12)
    np.testing.assert_allclose(pairs.F.T @ pairs.target, scored.L @ y, atol=1e-12)


def test_wrong_number_of_rows_is_an_error():
    graph = ScoredGraph.build(np.arange(3.0), query_layout(None, 3))
    with Refusal("4 rows"):
        graph.L @ np.ones(4)


@pytest.mark.parametrize(("option", "value"), [("ties", "maybe"), ("balance", "documents")])
def test_unknown_options_are_named(option, value):
    with Refusal(f"got '{value}'", parameter=option):
        ScoredGraph.build(np.arange(3.0), query_layout(None, 3), **{option: value})


def test_a_graph_from_labels():
    y, qid = [2, 0, 1, 1], ["b", "a", "b", "b"]
    w = [1.0, 2.0, 0.5, 3.0]
    graph = ScoredGraph.from_labels(y, qid, weights=w, ties="exclude", balance="queries", regression_weight=0.2)
    expected = explicit_laplacian(np.array(y), qid, np.array(w), ties="exclude", balance="queries", beta=0.2)
    np.testing.assert_allclose(graph.L @ np.eye(4), expected, atol=1e-12)
    assert ScoredGraph.from_labels(y).n_blocks == 1
    for bad, refusal in (
        ({"y": [1.0, np.nan]}, Refusal("finite labels", parameter="y")),
        ({"y": [1.0, 2.0], "weights": [1.0, 0.0]}, Refusal("positive", parameter="weights")),
        ({"y": [1.0, 2.0], "weights": [1.0]}, Refusal("positive", parameter="weights")),
        ({"y": [1.0, 2.0], "qid": [1]}, Refusal("1 entries", parameter="qid")),
    ):
        with refusal:
            ScoredGraph.from_labels(**bad)
