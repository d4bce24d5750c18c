"""Counted sums over pairs against sums over listed pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankrls._queries import query_layout
from rankrls.graph import OrderedPairs, PairGraph
from rankrls.hinge import ordered_loss
from rankrls.hinge.edge_loss import EdgeSums
from rankrls.hinge.ordered_loss import OrderedSums
from tests.hinge.pair_oracle import listed_pairs, pair_sums
from tests.oracles import explicit_laplacian

BALANCES = ("pairs", "examples", "queries")


def assert_sweep(sums, f, shift, pairs):
    sweep = sums.sweep(f, shift)
    totals, gradient, L = pair_sums(f, *pairs, 1.0 - shift)
    np.testing.assert_allclose([sweep.weight, sweep.slack, sweep.half_squares], totals, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sweep.gradient, gradient, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(sweep.degree, np.diag(L), rtol=1e-10, atol=1e-12)
    return sweep, L


def assert_all(y, qid, w, f, balance):
    m = len(y)
    sums = OrderedSums(OrderedPairs.build(y, query_layout(qid, m), weights=w, balance=balance))
    pairs = listed_pairs(y, list(qid), w, balance)
    v = np.random.default_rng(0).normal(size=m) + 5.0
    outer, L = assert_sweep(sums, f, 0.0, pairs)
    np.testing.assert_allclose(sums.product(outer, v), L @ v, rtol=1e-9, atol=1e-9)
    inner, L_inner = assert_sweep(sums, f, 0.25, pairs)
    np.testing.assert_allclose(sums.product(outer, v, inner), (L - L_inner) @ v, rtol=1e-9, atol=1e-9)


@st.composite
def problems(draw):
    m = draw(st.integers(1, 60))
    labels = draw(st.sampled_from([1, 2, 5, 1000]))
    queries = draw(st.integers(1, 5))
    # Quarters: many pairs lie exactly on the margin, and many scores are tied.
    score = st.integers(-12, 12).map(lambda k: k / 4)
    return (
        np.array(draw(st.lists(st.integers(0, labels), min_size=m, max_size=m)), dtype=float),
        np.array(draw(st.lists(st.integers(0, queries), min_size=m, max_size=m))),
        np.array(draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=m, max_size=m))),
        np.array(draw(st.lists(score, min_size=m, max_size=m))),
        draw(st.sampled_from(BALANCES)),
    )


@given(problems())
def test_sums_are_those_of_listed_pairs(problem):
    assert_all(*problem)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("labels", [2, 5, 10000])
def test_queries_longer_than_a_run(seed, labels):
    rng = np.random.default_rng(seed)
    m = 250
    y = rng.integers(0, labels, m).astype(float)
    qid = rng.integers(0, 2, m)
    f = y / labels + rng.normal(size=m) * rng.choice([0.1, 1.0, 10.0])
    assert_all(y, qid, rng.choice([1.0, 2.0], m), f, BALANCES[seed % 3])


@pytest.mark.parametrize("threads", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_a_long_query_is_shared_among_threads(monkeypatch, threads, seed):
    monkeypatch.setattr(ordered_loss, "_LONG", 8)
    monkeypatch.setenv("RANKRLS_NUM_THREADS", str(threads))
    rng = np.random.default_rng(seed)
    m = int(rng.integers(20, 200))
    y = rng.integers(0, rng.choice([3, 1000]), m).astype(float)
    qid = np.where(np.arange(m) < 0.9 * m, "long", "short")
    assert_all(y, qid, rng.choice([1.0, 2.0], m), rng.normal(size=m), BALANCES[seed % 3])


def test_many_runs(monkeypatch):
    """Some rows against all others, pair by pair; on two threads, each of them has so many runs."""
    monkeypatch.setattr(ordered_loss, "_LONG", 1000)
    rng = np.random.default_rng(0)
    for threads in (1, 2):
        monkeypatch.setenv("RANKRLS_NUM_THREADS", str(threads))
        m = 64 * 128 * threads + 500
        y = rng.permutation(m).astype(float)
        f, v, w = 2 * y / m + rng.normal(size=m), rng.normal(size=m), rng.choice([1.0, 2.0], m)
        sums = OrderedSums(OrderedPairs.build(y, query_layout(None, m), weights=w, balance="pairs"))
        outer, inner = sums.sweep(f), sums.sweep(f, 0.25)
        rows = rng.permutation(m)[: m // 64]
        c = w[rows, None] * w * (y[rows, None] > y), w[rows, None] * w * (y[rows, None] < y)
        lead = f[rows, None] - f
        slack = c[0] * np.maximum(1.0 - lead, 0.0), c[1] * np.maximum(1.0 + lead, 0.0)
        np.testing.assert_allclose(outer.gradient[rows], (slack[1] - slack[0]).sum(axis=1), rtol=1e-8, atol=1e-6)
        band = c[0] * ((lead < 1.0) & (lead >= 0.75)) + c[1] * ((-lead < 1.0) & (-lead >= 0.75))
        product = (band * (v[rows, None] - v)).sum(axis=1)
        np.testing.assert_allclose(sums.product(outer, v, inner)[rows], product, atol=1e-7)
        order = np.argsort(y)
        f, w = f[order], w[order]
        half_squares = 0.5 * sum(w[k] * w[:k] @ np.maximum(1.0 - (f[k] - f[:k]), 0.0) ** 2 for k in range(m))
        assert outer.half_squares == pytest.approx(half_squares)


def test_small_slacks_of_large_scores_do_not_cancel():
    """Two items just inside the margin beside many that are a million margins apart."""
    y = np.concatenate((np.repeat([0.0, 2.0], 40), [0.0, 1.0]))
    f = np.concatenate((np.full(40, -1e6), np.full(40, 1e6), [0.0, 1.0 - 1e-6]))
    sums = OrderedSums(OrderedPairs.build(y, query_layout(None, len(y)), balance="pairs"))
    assert sums.sweep(f).half_squares == pytest.approx(0.5e-12, rel=1e-9)


def test_pairs_of_all_labels_are_the_graph_without_ties():
    rng = np.random.default_rng(0)
    m = 40
    y, qid, w = rng.integers(0, 4, m).astype(float), rng.integers(0, 4, m), rng.uniform(0.5, 2.0, m)
    for balance in BALANCES:
        pairs = OrderedPairs.build(y, query_layout(qid, m), weights=w, balance=balance)
        L = explicit_laplacian(y, list(qid), w, ties="exclude", balance=balance)
        np.testing.assert_allclose(pairs.graph().L @ np.eye(m), L, atol=1e-12)
        far = OrderedSums(pairs).sweep(np.zeros(m), shift=-1e9)
        np.testing.assert_allclose(OrderedSums(pairs).product(far, y), L @ y, atol=1e-9)
        assert pairs.total_weight == pytest.approx(0.5 * np.trace(L))


@pytest.mark.parametrize("seed", range(5))
def test_listed_preferences(seed):
    rng = np.random.default_rng(seed)
    m, p = 12, 40
    winners, losers = rng.integers(0, m, (2, p))
    winners, losers = winners[winners != losers], losers[winners != losers]
    p = len(winners)
    s, c, f, v = rng.uniform(-0.5, 2.0, p), rng.uniform(0.1, 2.0, p), rng.normal(size=m), rng.normal(size=m)
    sums = EdgeSums(PairGraph(winners, losers, m, s, c))
    swept = {}
    for shift in (0.0, 0.3):
        sweep = swept[shift] = sums.sweep(f, shift)
        x = np.maximum(s - shift - (f[winners] - f[losers]), 0.0)
        assert (sweep.slack, sweep.half_squares) == pytest.approx((c @ x, 0.5 * c @ x**2))
        gradient, L = np.zeros(m), np.zeros((m, m))
        for e in np.flatnonzero(x > 0.0):
            d = np.eye(m)[winners[e]] - np.eye(m)[losers[e]]
            gradient -= c[e] * x[e] * d
            L += c[e] * np.outer(d, d)
        np.testing.assert_allclose(sweep.gradient, gradient, atol=1e-12)
        np.testing.assert_allclose(sweep.degree, np.diag(L), atol=1e-12)
        np.testing.assert_allclose(sums.product(sweep, v), L @ v, atol=1e-12)
    band = sums.product(swept[0.0], v) - sums.product(swept[0.3], v)
    np.testing.assert_allclose(sums.product(swept[0.0], v, swept[0.3]), band, atol=1e-12)
