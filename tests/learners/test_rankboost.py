"""RankBoost's weights and stumps against enumeration of all pairs, round by round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from rankrls.learners.rankboost import CodedColumns, ExpPairs, PreferencePairs, boost
from rankrls.numerics.graph import LabelledGraph, PreferenceGraph
from tests.learners.pair_oracle import listed_pairs

BALANCES = ("pairs", "examples", "queries")


def label_pairs(y, qid, w, balance):
    codes = np.unique(qid, return_inverse=True)[1]
    return ExpPairs(LabelledGraph.build(y, codes, weights=w, ties="exclude", balance=balance))


def midpoints(column):
    values = np.unique(column)
    return 0.5 * values[:-1] + 0.5 * values[1:]


def enumerated_rounds(X, i, j, c, rounds):
    """RankBoost as it stands in the paper: D over pairs, every stump tried, D renewed and normalized."""
    D = c / c.sum()
    bound = 1.0
    scores = np.zeros(len(X))
    for _ in range(rounds):
        stumps = [(f, theta) for f in range(X.shape[1]) for theta in midpoints(X[:, f])]
        r = np.array([D @ ((X[i, f] > t).astype(float) - (X[j, f] > t)) for f, t in stumps])
        if not len(r) or np.abs(r).max() <= 1e-11:
            return
        chosen = int(np.argmax(np.abs(r) >= np.abs(r).max() - 1e-11))
        if abs(r[chosen]) > 1.0 - 1e-9:
            return
        f, theta = stumps[chosen]
        alpha = 0.5 * np.log((1.0 + r[chosen]) / (1.0 - r[chosen]))
        scores += alpha * (X[:, f] > theta)
        D = D * np.exp(alpha * ((X[j, f] > theta).astype(float) - (X[i, f] > theta)))
        bound *= D.sum()
        D /= D.sum()
        yield f, theta, alpha, r[chosen], bound, D, scores


@st.composite
def problems(draw):
    """Few distinct values and labels, so that there are ties of every kind; rows of queries mixed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m = draw(st.integers(2, 25))
    qid = rng.integers(0, draw(st.integers(1, 5)), m)
    y = rng.integers(0, draw(st.integers(2, 5)), m).astype(float)
    if draw(st.booleans()):
        y += rng.normal(size=m) * rng.integers(0, 2)  # real-valued utilities: a level an item
    y[0], y[1], qid[1] = 1.0, 0.0, qid[0]
    X = rng.integers(-3, 4, (m, draw(st.integers(1, 4)))) * rng.choice([0.1, 1.0, 1e5])
    w = rng.uniform(0.2, 3.0, m) if draw(st.booleans()) else np.ones(m)
    return X.astype(float), y, qid, w


def assert_round(stumps, t, feature, threshold, weight, loss):
    assert (stumps.features[t], stumps.thresholds[t]) == (feature, pytest.approx(threshold))
    assert stumps.weights[t] == pytest.approx(weight, abs=1e-10)
    assert stumps.losses[t] == pytest.approx(loss, rel=1e-10)


@given(problems(), st.sampled_from(BALANCES), st.booleans())
def test_every_round_is_that_of_the_enumerated_pairs(problem, balance, thin):
    X, y, qid, w = problem
    i, j, c = listed_pairs(y, qid.tolist(), w, balance)
    pairs = label_pairs(y, qid, w, balance)
    stumps, _ = boost(pairs, sparse.csr_array(X) if thin else X, 12)
    before, own = 1.0, np.zeros(len(y))
    for t, (f, theta, alpha, r, bound, D, scores) in enumerate(enumerated_rounds(X, i, j, c, 12)):
        assert_round(stumps, t, f, theta, alpha, bound)
        own += stumps.weights[t] * (X[:, f] > stumps.thresholds[t])
        np.testing.assert_allclose(own, scores, atol=1e-10)
        potential, total = pairs.potentials(own + 200.0 * qid)  # an offset of a query changes nothing
        by_pairs = np.bincount(i, D, len(y)) - np.bincount(j, D, len(y))
        np.testing.assert_allclose(potential / total, by_pairs, atol=1e-10)
        # What the rounds promise: the share of pairs in wrong order (ties count) is below the product of the Z.
        wrong = c[scores[i] <= scores[j]].sum() / c.sum()
        assert wrong <= stumps.losses[t] + 1e-12
        before, limit = stumps.losses[t], before * np.sqrt(1.0 - r * r)
        assert stumps.losses[t] <= limit + 1e-12


@given(problems(), st.integers(0, 2**32 - 1))
def test_preferences_weigh_what_enumeration_says(problem, seed):
    X, y, _, _ = problem
    rng = np.random.default_rng(seed)
    p = 12
    i = rng.integers(0, len(y), p)
    j = (i + rng.integers(1, len(y), p)) % len(y)
    c = rng.uniform(0.1, 2.0, p)
    sign = rng.choice([-1.0, 1.0, 0.0], p, p=[0.3, 0.6, 0.1])
    sign[0] = 1.0
    winners, losers = np.where(sign >= 0, i, j), np.where(sign >= 0, j, i)
    judged = sign != 0
    pairs = PreferencePairs(PreferenceGraph.build(i, j, len(y), strength=sign * rng.uniform(0.5, 2.0, p), weights=c))
    stumps, _ = boost(pairs, X, 8)
    expected = enumerated_rounds(X, winners[judged], losers[judged], c[judged], 8)
    for t, (f, theta, alpha, _, bound, _, _) in enumerate(expected):
        assert_round(stumps, t, f, theta, alpha, bound)


def test_neighbouring_numbers_are_told_apart():
    for low in (0.0, 1.0, np.nextafter(1.0, 2.0), -1.0, 1e300, -1e308, 5e-324):  # halfway rounds to either side
        high = np.nextafter(low, np.inf)
        _, cut, _, above = CodedColumns(np.array([[high], [low]])).best(np.array([1.0, -1.0]))
        assert low <= cut < high
        assert above.tolist() == [True, False]
    _, cut, *_ = CodedColumns(np.array([[-1.7e308], [1.7e308]])).best(np.array([1.0, -1.0]))
    assert np.isfinite(cut)


def boost_all(X, y, qid, rounds=500):
    return boost(label_pairs(y, qid, np.ones(len(y)), "examples"), X, rounds)


def test_one_stump_that_orders_every_pair_ends_it():
    X = np.column_stack((np.ones(6), np.arange(6.0)))
    stumps, stopped = boost_all(X, np.array([0, 0, 0, 1, 1, 1.0]), np.zeros(6))
    assert stopped == "separated"
    assert (stumps.features.tolist(), stumps.thresholds.tolist()) == ([1], [2.5])
    assert 0.0 < stumps.weights[0] < 20.0
    assert stumps.losses[0] < 1e-4


def test_separable_pairs_end_where_float64_does():
    """Without an end the margins grow for ever; the loss falls until weights cannot be told from nothing."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (30, 6)).astype(float)
    y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    stumps, stopped = boost_all(X, y, np.arange(30) % 3, 20_000)
    assert stopped == "exhausted"
    assert np.isfinite(stumps.weights).all()
    assert stumps.losses[-2] < 1e-50
    assert (np.diff(stumps.losses) <= 0).all()


def test_equally_good_stumps_the_lowest_feature_then_the_lowest_threshold():
    rng = np.random.default_rng(4)
    x = rng.normal(size=200)
    y = (x + rng.normal(size=200) > 0).astype(float)
    X = np.column_stack((rng.normal(size=200), x, -x, 3.0 * x))  # -x sums from the other side, with other rounding
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(200)
        stumps, _ = boost_all(X[order], y[order], np.zeros(200), 40)
        assert set(stumps.features) <= {0, 1}
    X = np.array([[0.0], [1.0], [2.0], [3.0]])  # thresholds on either side of a row without a pair
    y, qid = np.array([0.0, 5.0, 1.0, 0.0]), np.array([0, 1, 0, 0])
    assert boost_all(X, y, qid, 1)[0].thresholds.tolist() == [0.5]
