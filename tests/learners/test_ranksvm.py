"""Counted sums over pairs against listed pairs; the minimisation's gap, preconditioning and warm starts."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankrls.learners.ranksvm import HingePairs, PreferencePairs, Spectrum, minimize
from rankrls.numerics.graph import LabelledGraph, PreferenceGraph
from tests.learners.pair_oracle import listed_pairs, pair_sums

BALANCES = ("pairs", "examples", "queries")


def label_pairs(y, qid, w, balance):
    """Counted and listed pairs of the same weights."""
    codes = np.unique(qid, return_inverse=True)[1]
    graph = LabelledGraph.build(y, codes, weights=w, ties="exclude", balance=balance)
    return HingePairs(graph), listed_pairs(y, list(qid), w, balance)


def assert_sums(pairs, f, listed):
    active = pairs.active(f)
    loss, gradient, L = pair_sums(f, *listed)
    assert active.loss == pytest.approx(loss, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(active.gradient, gradient, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(active.degree, np.diag(L), rtol=1e-10, atol=1e-12)
    v = np.random.default_rng(0).normal(size=len(f)) + 5.0
    np.testing.assert_allclose(pairs.product(active, v), L @ v, rtol=1e-9, atol=1e-9)


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
    y, qid, w, f, balance = problem
    pairs, listed = label_pairs(y, qid, w, balance)
    assert_sums(pairs, f, listed)


@pytest.mark.parametrize("offset", [0.0, 1e7])
@pytest.mark.parametrize("threads", [1, 3])
def test_long_queries_and_threads(monkeypatch, threads, offset):
    monkeypatch.setenv("RANKRLS_NUM_THREADS", str(threads))
    monkeypatch.setattr("rankrls.learners.ranksvm._ROWS_OF_A_THREAD", 50)
    rng = np.random.default_rng(0)
    y, qid, w = rng.integers(0, 100, 250).astype(float), rng.integers(0, 4, 250), rng.choice([1.0, 2.0], 250)
    pairs, listed = label_pairs(y, qid, w, "examples")
    f = 10 * rng.normal(size=250)
    assert_sums(pairs, f, listed)
    moved = pairs.active(f + offset * qid)
    np.testing.assert_allclose(moved.gradient, pairs.active(f).gradient, atol=1e-14 * offset * len(y) + 1e-11)


def test_small_losses_of_large_scores_do_not_cancel():
    """Two items just inside the margin beside many that are a million margins apart."""
    y = np.concatenate((np.repeat([0.0, 2.0], 40), [0.0, 1.0]))
    f = np.concatenate((np.full(40, -1e6), np.full(40, 1e6), [0.0, 1.0 - 1e-6]))
    pairs, _ = label_pairs(y, np.zeros(82), np.ones(82), "pairs")
    assert pairs.active(f).loss == pytest.approx(1e-12, rel=1e-3)


def test_listed_preferences():
    rng = np.random.default_rng(0)
    winners, losers = rng.integers(0, 12, (2, 40))
    winners, losers = winners[winners != losers], losers[winners != losers]
    c = rng.uniform(0.1, 2.0, len(winners))
    pairs = PreferencePairs(PreferenceGraph.build(winners, losers, 12, weights=c))
    assert_sums(pairs, rng.normal(size=12), (winners, losers, c))


@pytest.fixture
def data():
    """Features of very different scales, half of them nearly copies."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 20))
    y = np.digitize(X @ rng.normal(size=20) / 4 + rng.normal(size=600), [0.0, 1.0]).astype(float)
    X[:, 10:] = X[:, :10] + 1e-3 * X[:, 10:]
    X *= np.exp(2.0 * rng.normal(size=20))
    qid = np.repeat(np.arange(30), 20)
    pairs, _ = label_pairs(y, qid, np.ones(600), "queries")
    graph = LabelledGraph.build(y, qid, ties="exclude", balance="queries")
    return X, pairs, Spectrum.of(graph, X)


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_the_gap_bounds_the_distance_to_the_minimum(data, max_iter):
    X, pairs, spectrum = data
    best = minimize(X, pairs, 1.0, tol=1e-10, spectrum=spectrum)
    cut = minimize(X, pairs, 1.0, tol=1e-12, max_iter=max_iter, spectrum=spectrum)
    assert (cut.status, cut.n_iter) == ("max_iter", max_iter)
    assert -1e-8 * best.value <= cut.value - best.value <= cut.gap * (1 + 1e-9) + 1e-8 * best.value


def test_where_c_is_tiny_the_weights_are_close_wherever_they_start(data):
    """Nearly all of the objective is loss: its minimum is within the tolerance even at weights that rank backwards."""
    X, pairs, _ = data
    best = minimize(X, pairs, 1e-12, tol=1e-15)
    for start in (None, -best.w, 1e-3 * best.w):
        found = minimize(X, pairs, 1e-12, start=start)
        assert found.status == "converged"
        assert np.linalg.norm(found.w - best.w) < 0.51 * np.linalg.norm(found.w)
