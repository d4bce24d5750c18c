"""The table of all pairs says what its parts say."""

import numpy as np
import pytest

from rankrls._errors import InputError
from rankrls.comparison import bootstrap_interval, compare_per_query, holm, paired_randomization, paired_wilcoxon


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
    assert [(p.first, p.second) for p in table] == [("good", "same"), ("good", "worse"), ("same", "worse")]
    for p in table:
        assert p.p_wilcoxon == paired_wilcoxon(values[p.first], values[p.second]).p_value
        assert p.p_randomization == paired_randomization(values[p.first], values[p.second]).p_value  # exact
    for test in ("randomization", "wilcoxon"):
        plain = [getattr(p, f"p_{test}") for p in table]
        np.testing.assert_array_equal([getattr(p, f"p_{test}_holm") for p in table], holm(plain))
    assert [(p.wins, p.ties, p.losses) for p in table] == [(0, 10, 0), (9, 0, 0), (9, 0, 0)]
    assert [(p.n_queries, p.n_dropped) for p in table] == [(10, 0), (9, 1), (9, 1)]
    assert table.pairs[0].low == table.pairs[0].high == 0.0
    for pair in table.pairs[1:]:
        assert 0 < pair.low < pair.difference < pair.high
        expected = bootstrap_interval(values[pair.first] - values[pair.second], random_state=9)
        assert pair.difference == pytest.approx(expected.estimate)
        assert pair.low == pytest.approx(expected.low, abs=0.01)


def test_against_a_baseline():
    values = three_rankings()
    table = compare_per_query(values, baseline="good", greater_is_better=False)
    assert [(p.first, p.second) for p in table] == [("same", "good"), ("worse", "good")]
    assert table.pairs[1].p_wilcoxon_holm == 2 * table.pairs[1].p_wilcoxon
    assert (table.pairs[1].wins, table.pairs[1].losses) == (9, 0)  # the smaller error wins
    assert table.pairs[1].difference < 0


def test_prints_as_a_table():
    lines = str(compare_per_query(three_rankings(), random_state=0, confidence=0.9)).splitlines()
    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    assert lines[2].startswith("good - worse")
    assert "9/0/0" in lines[2]


def test_a_p_value_at_the_floor_of_sampling_is_an_upper_bound():
    """The smallest p that so many draws can show, times Holm's factor, is printed as "<"."""
    rng = np.random.default_rng(0)
    values = {name: k + rng.normal(size=60) for k, name in enumerate("abcd")}
    table = compare_per_query(values, n_resamples=9_999, random_state=0)
    assert all(pair.at_floor for pair in table)
    assert {pair.p_texts[0] for pair in table} == {"< 0.0006"}
    exact = compare_per_query({"a": [1.0, 2.0, 3.0], "b": [0.0, 0.0, 0.0]})
    assert exact.pairs[0].p_texts[0] == "0.2500"


@pytest.mark.parametrize(
    ("values", "options", "parameter"),
    [
        ({"a": [1, 2]}, {}, None),
        ({"a": [1, 2], "b": [1, 2]}, {"baseline": "c"}, "baseline"),
        ({"a": [1, 2], "b": [1, 2, 3]}, {}, "a"),
        ({"a": [1, np.nan], "b": [1, 2]}, {}, None),
    ],
)
def test_bad_input(values, options, parameter):
    with pytest.raises(InputError) as error:
        compare_per_query(values, **options)
    assert error.value.parameter == parameter
