"""Paired tests and intervals against enumeration and scipy; the table of all pairs says what its parts say."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from rankrls._errors import InputError
from rankrls.comparison import bootstrap_interval, compare_per_query, holm, paired_randomization, paired_wilcoxon


def enumerated(d, statistic):
    """Two-sided p over every assignment of signs: how often the statistic is at least as far from its centre."""
    d = np.asarray(d, float)
    signs = np.array(list(product([-1, 1], repeat=len(d))))
    drawn = statistic(signs * np.abs(d))
    observed, centre = statistic(d[None])[0], drawn.mean()
    return np.mean(np.abs(drawn - centre) >= abs(observed - centre) - 1e-12)


def signed_rank_sum(d):
    ranks = stats.rankdata(np.abs(d[0]))
    return np.sum(ranks * (d > 0), axis=1)


@given(d=st.lists(st.integers(-4, 4), min_size=2, max_size=9))
def test_wilcoxon_with_ties_is_the_enumerated_one(d):
    moved = [v for v in d if v]
    test = paired_wilcoxon(np.array(d) / 10 + 0.3, np.full(len(d), 0.3))
    expected = enumerated(moved, signed_rank_sum) if moved else 1.0
    assert test.p_value == pytest.approx(expected, abs=1e-12)
    assert (test.wins, test.ties, test.losses) == tuple(int(np.sum(np.sign(d) == s)) for s in (1, 0, -1))


@pytest.mark.parametrize("n", [5, 20, 50])
def test_wilcoxon_is_scipys_exact_one(n):
    rng = np.random.default_rng(n)
    a, b = rng.uniform(size=(2, n))
    ours, theirs = paired_wilcoxon(a + 0.1, b), stats.wilcoxon(a + 0.1, b, method="exact")
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-10)
    assert min(ours.statistic, n * (n + 1) / 2 - ours.statistic) == theirs.statistic


@pytest.mark.parametrize("rounded", [False, True])
def test_wilcoxon_over_many_queries_is_scipys_approximation(rounded):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(size=(2, 600))
    if rounded:
        a, b = np.round(a, 1), np.round(b, 1)
    ours, theirs = paired_wilcoxon(a + 0.02, b), stats.wilcoxon(np.round(a + 0.02 - b, 9), method="approx")
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-9)


@given(d=st.lists(st.integers(-4, 4), min_size=2, max_size=9))
def test_small_randomization_tests_are_enumerated(d):
    moved = [v for v in d if v]
    test = paired_randomization(np.array(d) / 10 + 0.3, np.full(len(d), 0.3))
    expected = enumerated(moved, lambda s: s.sum(axis=1)) if moved else 1.0
    assert test.p_value == pytest.approx(expected, abs=1e-12)
    assert test.difference == pytest.approx(np.mean(d) / 10, abs=1e-12)


def test_randomization_is_scipys():
    rng = np.random.default_rng(5)
    a, b = rng.uniform(size=(2, 12))
    theirs = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", n_resamples=np.inf
    )
    assert paired_randomization(a, b).p_value == pytest.approx(theirs.pvalue, abs=1e-12)
    sampled = paired_randomization(a, b, n_resamples=4000, random_state=0)
    assert sampled.p_value == pytest.approx(theirs.pvalue, abs=4 * np.sqrt(0.25 / 4000))


def test_randomization_of_many_queries_agrees_with_the_normal_limit():
    rng = np.random.default_rng(2)
    d = rng.normal(0.05, 1, 800)
    p = paired_randomization(d, np.zeros(800), n_resamples=20_000, random_state=3).p_value
    limit = 2 * stats.norm.sf(abs(d.sum()) / np.sqrt(np.sum(d**2)))
    assert p == pytest.approx(limit, abs=0.02)
    floor = paired_randomization(d + 9, np.zeros(800), n_resamples=999, random_state=3)
    assert (floor.p_value, floor.at_floor) == (1 / 1000, True)


@pytest.mark.parametrize("test", [paired_wilcoxon, lambda a, b: paired_randomization(a, b, random_state=0)])
class TestBoth:
    def test_no_difference_at_all(self, test):
        found = test([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
        assert (found.p_value, found.ties, found.difference) == (1.0, 3, 0.0)
        assert test(np.zeros(4), np.zeros(4)).p_value == 1.0

    def test_rounding_is_no_difference(self, test):
        found = test([0.1 + 0.2, 0.5, 0.7], [0.3, 0.5, 0.7])
        assert (found.p_value, found.ties) == (1.0, 3)

    def test_queries_that_one_does_not_judge_are_dropped(self, test):
        rng = np.random.default_rng(0)
        a, b = rng.uniform(size=(2, 20))
        full = test(a, b)
        nan = np.nan
        found = test([*a, nan, 0.5, nan], [*b, 0.3, nan, nan])
        assert (found.n_queries, found.n_dropped) == (20, 3)
        assert found.p_value == full.p_value
        assert full.n_dropped == 0

    @pytest.mark.parametrize(
        ("a", "b", "parameter", "row"),
        [([1.0, np.nan], [2.0, 1.0], None, None), ([1.0, 2.0], [2.0], "a", None), ([1.0, np.inf], [2.0, 1.0], "a", 1)],
    )
    def test_bad_input(self, test, a, b, parameter, row):
        with pytest.raises(InputError) as error:
            test(a, b)
        assert (error.value.parameter, error.value.row) == (parameter, row)


def test_percentiles_of_every_resample_of_four():
    x = np.array([0.0, 1.0, 3.0, 7.0])
    means = np.array(list(product(x, repeat=4))).mean(axis=1)
    ours = bootstrap_interval(x, confidence=0.8, n_resamples=60_000, random_state=2)
    for value, tail in ((ours.low, 0.1), (ours.high, 0.9)):
        assert np.mean(means < value - 1e-9) <= tail + 0.01
        assert np.mean(means <= value + 1e-9) >= tail - 0.01


def test_intervals_of_equal_values_and_of_unjudged_queries():
    interval = bootstrap_interval([0.25, np.nan, 0.25, 0.25])
    assert (interval.low, interval.value, interval.high) == (0.25, 0.25, 0.25)
    assert interval.n_queries == 3


@pytest.mark.parametrize(("parameter", "value"), [("confidence", 1.0), ("n_resamples", 0)])
def test_bad_interval_parameters(parameter, value):
    with pytest.raises(InputError) as error:
        bootstrap_interval([0.1, 0.2], **{parameter: value})
    assert error.value.parameter == parameter


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_by_its_definition(p):
    """Hypothesis i is rejected at level t exactly where every smaller or equal one is, each at t / those left."""
    adjusted = holm(p)
    order = np.argsort(p, kind="stable")
    for level in (*(a * 0.999 for a in adjusted), *(a * 1.001 + 1e-12 for a in adjusted)):
        rejected = np.zeros(len(p), dtype=bool)
        for step, i in enumerate(order):
            if p[i] * (len(p) - step) > level:
                break
            rejected[i] = True
        if level < 1:
            np.testing.assert_array_equal(adjusted <= level, rejected)


def three_rankings():
    rng = np.random.default_rng(0)
    base = rng.uniform(size=10)
    worse = base - rng.uniform(0, 0.2, 10)
    values = {"good": base, "same": base.copy(), "worse": worse}
    values["worse"][3] = np.nan
    return values


def test_every_pair_by_both_tests():
    values = three_rankings()
    table = compare_per_query(values, random_state=1)
    assert [(p.first, p.second) for p in table.pairs] == [("good", "same"), ("good", "worse"), ("same", "worse")]
    for p in table.pairs:
        assert p.p_wilcoxon == paired_wilcoxon(values[p.first], values[p.second]).p_value
        assert p.p_randomization == paired_randomization(values[p.first], values[p.second]).p_value  # exact
    for test in ("randomization", "wilcoxon"):
        plain = [getattr(p, f"p_{test}") for p in table.pairs]
        np.testing.assert_array_equal([getattr(p, f"p_{test}_holm") for p in table.pairs], holm(plain))
    assert [(p.wins, p.ties, p.losses) for p in table.pairs] == [(0, 10, 0), (9, 0, 0), (9, 0, 0)]
    assert [(p.n_queries, p.n_dropped) for p in table.pairs] == [(10, 0), (9, 1), (9, 1)]
    assert table.pairs[0].low == table.pairs[0].high == 0.0
    for name, interval in table.means.items():
        expected = bootstrap_interval(values[name], random_state=9)
        assert (interval.value, interval.n_queries) == (expected.value, expected.n_queries)
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=0.02)
    for pair in table.pairs[1:]:
        assert 0 < pair.low < pair.difference < pair.high
        expected = bootstrap_interval(values[pair.first] - values[pair.second], random_state=9)
        assert pair.difference == pytest.approx(expected.value)
        assert pair.low == pytest.approx(expected.low, abs=0.01)


def test_against_a_baseline():
    values = three_rankings()
    table = compare_per_query(values, baseline="good", greater_is_better=False)
    assert [(p.first, p.second) for p in table.pairs] == [("same", "good"), ("worse", "good")]
    assert table.pairs[1].p_wilcoxon_holm == 2 * table.pairs[1].p_wilcoxon
    assert (table.pairs[1].wins, table.pairs[1].losses) == (9, 0)  # the smaller error wins
    assert table.pairs[1].difference < 0


def test_a_p_value_at_the_floor_of_sampling_is_an_upper_bound():
    """The smallest p that so many draws can show, times Holm's factor, is printed as "<"."""
    rng = np.random.default_rng(0)
    values = {name: k + rng.normal(size=60) for k, name in enumerate("abcd")}
    table = compare_per_query(values, n_resamples=9_999, random_state=0)
    assert all(pair.at_floor for pair in table.pairs)
    assert {row[4] for row in table.rows()} == {"< 0.0006"}
    exact = compare_per_query({"a": [1.0, 2.0, 3.0], "b": [0.0, 0.0, 0.0]})
    assert exact.rows()[0][4] == "0.2500"


@pytest.mark.parametrize(
    ("values", "options", "parameter"),
    [
        ({"a": [1, 2]}, {}, None),
        ({"a": [1, 2], "b": [1, 2]}, {"baseline": "c"}, "baseline"),
        ({"a": [1, 2], "b": [1, 2, 3]}, {}, "a"),
        ({"a": [1, np.nan], "b": [1, 2]}, {}, None),
    ],
)
def test_bad_tables(values, options, parameter):
    with pytest.raises(InputError) as error:
        compare_per_query(values, **options)
    assert error.value.parameter == parameter
