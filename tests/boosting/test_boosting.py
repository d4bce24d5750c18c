"""RankBoost's weights and stumps against enumeration of all pairs, round by round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankrls._queries import query_layout
from rankrls.boosting.boosting import TIE, Boosting, EdgeWeights, LevelWeights
from rankrls.boosting.stumps import StepFunctions, bin_features, column_values, cut_points
from rankrls.graph import OrderedPairs, PairGraph

BALANCES = ("pairs", "examples", "queries")


def enumerated_pairs(y, qid, w, balance):
    """(better, worse, weight) of every ordered pair, by the definition."""
    out = []
    for q in dict.fromkeys(qid.tolist()):
        rows = np.flatnonzero(qid == q)
        pairs = [(i, j, w[i] * w[j]) for i in rows for j in rows if y[i] > y[j]]
        total = sum(c for *_, c in pairs)
        rho = {"pairs": 1.0, "examples": 1.0 / w[rows].sum(), "queries": 1.0 / total if pairs else 0.0}[balance]
        out += [(i, j, rho * c) for i, j, c in pairs]
    i, j, c = (np.array(column) for column in zip(*out, strict=True))
    return i, j, c


def midpoints(column):
    values = np.unique(column)
    return 0.5 * values[:-1] + 0.5 * values[1:]


def enumerated_rounds(X, i, j, c, rounds, rate=1.0):
    """RankBoost as it stands in the paper: D over pairs, every stump tried, D renewed and normalised."""
    D = c / c.sum()
    bound = 1.0
    scores = np.zeros(len(X))
    for _ in range(rounds):
        stumps = [(f, theta) for f in range(X.shape[1]) for theta in midpoints(X[:, f])]
        r = np.array([D @ ((X[i, f] > t).astype(float) - (X[j, f] > t)) for f, t in stumps])
        if not len(r) or np.abs(r).max() <= TIE:
            return
        chosen = int(np.argmax(np.abs(r) >= np.abs(r).max() - TIE))
        if abs(r[chosen]) > 1.0 - 1e-9:
            return
        f, theta = stumps[chosen]
        alpha = rate * 0.5 * np.log((1.0 + r[chosen]) / (1.0 - r[chosen]))
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


@given(problems(), st.sampled_from(BALANCES), st.sampled_from([1.0, 0.3]))
def test_every_round_is_that_of_the_enumerated_pairs(problem, balance, rate):
    X, y, qid, w = problem
    i, j, c = enumerated_pairs(y, qid, w, balance)
    pairs = LevelWeights(OrderedPairs.build(y, query_layout(qid, len(y)), weights=w, balance=balance))
    boosting = Boosting(pairs, bin_features(X, pairs.order, w, None), rate)
    before = 1.0
    for f, theta, alpha, r, bound, D, scores in enumerated_rounds(X, i, j, c, 12, rate):
        stump = boosting.round()
        assert (stump.feature, stump.threshold) == (f, pytest.approx(theta))
        assert stump.r == pytest.approx(r, abs=1e-10)
        assert stump.weight == pytest.approx(alpha, abs=1e-10)
        assert stump.loss == pytest.approx(bound, rel=1e-10)
        own = np.empty(len(y))
        own[pairs.order] = boosting.scores
        np.testing.assert_allclose(own, scores, atol=1e-10)
        potential, total = pairs.potentials(boosting.scores)
        found = np.empty(len(y))
        found[pairs.order] = potential / total
        by_pairs = np.bincount(i, D, len(y)) - np.bincount(j, D, len(y))
        np.testing.assert_allclose(found, by_pairs, atol=1e-12)
        # What the rounds promise: the share of pairs in wrong order (ties count) is below the product of the Z.
        wrong = c[scores[i] <= scores[j]].sum() / c.sum()
        assert wrong <= stump.loss + 1e-12
        if rate == 1.0:
            before, limit = stump.loss, before * np.sqrt(1.0 - r * r)
            assert stump.loss <= limit + 1e-12


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
    graph = PairGraph(i, j, len(y), sign * rng.uniform(0.5, 2.0, p), c)
    winners, losers = np.where(sign >= 0, i, j), np.where(sign >= 0, j, i)
    judged = sign != 0
    pairs = EdgeWeights(graph)
    boosting = Boosting(pairs, bin_features(X, pairs.order, None, None))
    expected = enumerated_rounds(X, winners[judged], losers[judged], c[judged], 8)
    for f, theta, alpha, _, bound, _, _ in expected:
        stump = boosting.round()
        assert (stump.feature, stump.threshold) == (f, pytest.approx(theta))
        assert stump.weight == pytest.approx(alpha, abs=1e-10)
        assert stump.loss == pytest.approx(bound, rel=1e-10)


@pytest.mark.parametrize("balance", BALANCES)
def test_all_pairs_as_preferences_give_the_same_rounds(balance):
    rng = np.random.default_rng(3)
    m = 40
    X, y, qid, w = rng.normal(size=(m, 3)), rng.integers(0, 3, m) * 1.0, rng.integers(0, 5, m), rng.uniform(1, 2, m)
    i, j, c = enumerated_pairs(y, qid, w, balance)
    levels = LevelWeights(OrderedPairs.build(y, query_layout(qid, m), weights=w, balance=balance))
    edges = EdgeWeights(PairGraph(i, j, m, np.ones(len(i)), c))
    one = Boosting(levels, bin_features(X, levels.order, None, None))
    other = Boosting(edges, bin_features(X, edges.order, None, None))
    for _ in range(30):
        a, b = one.round(), other.round()
        assert (a.feature, a.threshold) == (b.feature, b.threshold)
        assert a.weight == pytest.approx(b.weight)
        assert a.loss == pytest.approx(b.loss)


@given(problems(), st.integers(2, 6))
def test_sparse_and_dense_bins_hold_the_same_rows(problem, max_bins):
    X, _, _, w = problem
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    potential = rng.normal(size=len(X))
    for bins in (None, max_bins):
        dense = bin_features(X, order, w, bins)
        thin = bin_features(sparse.csr_array(X), order, w, bins)
        np.testing.assert_array_equal(dense.thresholds, thin.thresholds)
        np.testing.assert_array_equal(dense.starts, thin.starts)
        np.testing.assert_allclose(dense.histograms(potential), thin.histograms(potential), atol=1e-12)
        for f in range(X.shape[1]):
            for k, theta in enumerate(dense.thresholds[dense.starts[f] : dense.starts[f + 1]]):
                np.testing.assert_array_equal(dense.above(f, k), X[order, f] > theta)
                np.testing.assert_array_equal(thin.above(f, k), X[order, f] > theta)


@pytest.mark.parametrize("rows", [1, 3, 8191, 8192, 8195, 20_000])
@pytest.mark.parametrize("values", [3, 300, None])
def test_histograms_are_the_sums_of_their_bins(rows, values, monkeypatch):
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, 11)) if values is None else rng.integers(0, values, (rows, 11)).astype(float)
    order, potential = rng.permutation(rows), rng.normal(size=rows)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("RANKRLS_NUM_THREADS", threads)
        bins = bin_features(X, order, None, None)
        found.append(bins.histograms(potential))
    np.testing.assert_array_equal(*found)  # to the last bit: every histogram is one thread's
    for f in range(11):
        _, code = np.unique(X[order, f], return_inverse=True)
        own = found[0][bins.bin_starts[f] : bins.bin_starts[f + 1]]
        np.testing.assert_allclose(own, np.bincount(code, potential), atol=1e-9)


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=200),
    st.integers(2, 40),
    st.integers(0, 2**32 - 1),
)
def test_quantile_cuts_separate_values_and_keep_to_their_number(values, max_bins, seed):
    x = np.array(values, dtype=float)
    w = np.random.default_rng(seed).integers(1, 5, len(x)).astype(float)
    cuts = cut_points(x, w, max_bins)
    distinct = np.unique(x)
    assert len(cuts) < max_bins
    assert (np.diff(cuts) > 0).all()
    number = np.searchsorted(cuts, distinct)
    assert len(np.unique(number)) == len(cuts) + 1  # no empty bin
    if len(distinct) <= max_bins:
        assert len(cuts) == len(distinct) - 1
    else:
        share = np.array([w[np.searchsorted(cuts, x) == b].sum() for b in np.unique(number)]) / w.sum()
        alone = np.array([(number == b).sum() == 1 for b in np.unique(number)])
        heaviest = max(w[x == v].sum() for v in distinct) / w.sum()
        assert (alone | (share <= 3.0 / max_bins + heaviest)).all() or max_bins < 6
    # Weights are repetitions.
    np.testing.assert_array_equal(cuts, cut_points(np.repeat(x, w.astype(int)), None, max_bins))


def test_a_value_that_most_rows_have_does_not_cost_the_others_their_bins():
    rng = np.random.default_rng(0)
    x = np.concatenate((np.zeros(9000), rng.normal(size=1000)))
    cuts = cut_points(x, None, 64)
    bins = np.searchsorted(cuts, x)
    assert len(cuts) >= 60
    zero = bins[0]
    assert set(bins[x != 0.0]).isdisjoint({zero})
    counts = np.bincount(bins)
    assert counts[np.arange(len(counts)) != zero].max() <= 20


def test_heavy_values_between_light_ones_keep_to_the_number_of_bins():
    rng = np.random.default_rng(0)
    x = np.concatenate((np.repeat(np.arange(10.0), 100), rng.uniform(-1.0, 10.0, 90)))
    cuts = cut_points(x, None, 22)
    assert len(cuts) < 22
    assert len(np.unique(np.searchsorted(cuts, np.arange(10.0)))) == 10


def test_neighbouring_numbers_are_told_apart():
    for low in (0.0, 1.0, np.nextafter(1.0, 2.0), -1.0, 1e300, -1e308, 5e-324):  # halfway rounds to either side
        high = np.nextafter(low, np.inf)
        (cut,) = cut_points(np.array([high, low]), None, None)
        assert high > cut
        assert not low > cut
    (cut,) = cut_points(np.array([-1.7e308, 1.7e308]), None, None)
    assert np.isfinite(cut)
    x = np.array([1.0, np.nextafter(np.float32(1.0), np.float32(2.0))], dtype=np.float32)
    (cut,) = cut_points(x, None, None)
    assert (x > cut).tolist() == [False, True]


def boost_all(X, y, qid, rounds=500, rate=1.0):
    pairs = LevelWeights(OrderedPairs.build(y, query_layout(qid, len(y)), balance="examples"))
    boosting = Boosting(pairs, bin_features(X, pairs.order, None, None), rate)
    stumps = []
    while len(stumps) < rounds and (stump := boosting.round()) is not None:
        stumps.append(stump)
    return boosting, stumps


def test_one_stump_that_orders_every_pair_ends_it():
    X = np.column_stack((np.ones(6), np.arange(6.0)))
    boosting, stumps = boost_all(X, np.array([0, 0, 0, 1, 1, 1.0]), np.zeros(6))
    assert boosting.status == "separated"
    assert boosting.round() is None
    (stump,) = stumps
    assert (stump.feature, stump.threshold) == (1, 2.5)
    assert 0.0 < stump.weight < 20.0
    assert stump.loss < 1e-4


def test_no_stump_without_an_edge():
    X = np.zeros((4, 2))
    boosting, stumps = boost_all(X, np.array([0, 1, 0, 1.0]), np.zeros(4))
    assert (boosting.status, stumps) == ("no edge", [])
    X = np.array([[0.0], [0.0], [1.0], [1.0]])  # either value holds one of either label
    boosting, stumps = boost_all(X, np.array([0, 1, 0, 1.0]), np.zeros(4))
    assert (boosting.status, stumps) == ("no edge", [])


def test_separable_pairs_end_where_float64_does():
    """Without an end the margins grow for ever; the loss falls until weights cannot be told from nothing."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (30, 6)).astype(float)
    y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    boosting, stumps = boost_all(X, y, np.arange(30) % 3, 20_000)
    assert boosting.status == "exhausted"
    assert np.isfinite([s.weight for s in stumps]).all()
    assert stumps[-2].loss < 1e-50
    assert (np.diff([s.loss for s in stumps]) <= 0).all()


def test_a_common_offset_of_a_query_changes_no_potential():
    rng = np.random.default_rng(2)
    y, qid = rng.integers(0, 3, 50) * 1.0, np.repeat(np.arange(5), 10)
    pairs = LevelWeights(OrderedPairs.build(y, query_layout(qid, 50), balance="pairs"))
    f = rng.normal(size=50)
    potential, total = pairs.potentials(f)
    far = f + 200.0 * qid[pairs.order]  # scores are then centred inside queries first
    again, total_again = pairs.potentials(far)
    np.testing.assert_allclose(again / total_again, potential / total, rtol=1e-10, atol=1e-14)


def test_equally_good_stumps_the_lowest_feature_then_the_lowest_threshold():
    rng = np.random.default_rng(4)
    x = rng.normal(size=200)
    y = (x + rng.normal(size=200) > 0).astype(float)
    X = np.column_stack((rng.normal(size=200), x, -x, 3.0 * x))  # -x sums from the other side, with other rounding
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(200)
        _, stumps = boost_all(X[order], y[order], np.zeros(200), 40)
        assert {s.feature for s in stumps} <= {0, 1}
    X = np.array([[0.0], [1.0], [2.0], [3.0]])  # thresholds on either side of a row without a pair
    y, qid = np.array([0.0, 5.0, 1.0, 0.0]), np.array([0, 1, 0, 0])
    _, stumps = boost_all(X, y, qid, 1)
    assert stumps[0].threshold == 0.5


@given(problems())
def test_step_functions_are_the_sum_of_their_stumps(problem):
    X, *_ = problem
    rng = np.random.default_rng(0)
    t = 9
    features, weights = rng.integers(0, X.shape[1], t), rng.normal(size=t)
    thresholds = rng.choice(X.ravel(), t)
    expected = ((X[:, features] > thresholds) * weights).sum(axis=1)
    steps = StepFunctions.of(features, thresholds, weights)
    np.testing.assert_allclose(steps(X), expected, atol=1e-12)
    single = X.astype(np.float32)
    np.testing.assert_allclose(steps(single), ((single[:, features] > thresholds) * weights).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(steps(sparse.csr_array(X)), expected, atol=1e-12)
    for f in range(X.shape[1]):
        np.testing.assert_array_equal(column_values(sparse.csc_array(X), f), X[:, f])
