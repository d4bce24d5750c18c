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


def test_wilcoxon_table():
    values = three_rankings()
    table = compare_per_query(values, test="wilcoxon", random_state=1)
    assert [(p.first, p.second) for p in table] == [("good", "same"), ("good", "worse"), ("same", "worse")]
    singles = [paired_wilcoxon(values[p.first], values[p.second]) for p in table]
    assert [p.p_value for p in table] == [s.p_value for s in singles]
    np.testing.assert_array_equal([p.p_holm for p in table], holm([s.p_value for s in singles]))
    assert [(p.wins, p.ties, p.losses) for p in table] == [(0, 10, 0), (9, 0, 0), (9, 0, 0)]
    assert [(p.n_queries, p.n_dropped) for p in table] == [(10, 0), (9, 1), (9, 1)]
    assert table.pairs[0].low == table.pairs[0].high == 0.0
    for pair in table.pairs[1:]:
        assert 0 < pair.low < pair.difference < pair.high
        gap = values[pair.first] - values[pair.second]
        expected = bootstrap_interval(gap, random_state=9)
        assert pair.difference == pytest.approx(expected.estimate)
        assert pair.low == pytest.approx(expected.low, abs=0.01)


def test_randomisation_table_against_a_baseline():
    values = three_rankings()
    table = compare_per_query(values, baseline="good", greater_is_better=False)
    assert [(p.first, p.second) for p in table] == [("same", "good"), ("worse", "good")]
    assert table.pairs[1].p_value == paired_randomization(values["worse"], values["good"]).p_value
    assert table.pairs[1].p_holm == 2 * table.pairs[1].p_value
    assert (table.pairs[1].wins, table.pairs[1].losses) == (9, 0)  # the smaller error wins
    assert table.pairs[1].difference < 0


def test_the_same_seed_gives_the_same_table():
    rng = np.random.default_rng(3)
    values = {name: rng.uniform(size=40) for name in "abc"}
    tables = [compare_per_query(values, n_resamples=500, random_state=seed) for seed in (1, 1, 2)]
    assert tables[0] == tables[1] != tables[2]


def test_prints_as_a_table():
    lines = str(compare_per_query(three_rankings(), random_state=0, confidence=0.9)).splitlines()
    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    assert "90% interval" in lines[0]
    assert lines[2].startswith("good - worse")
    assert "9/0/0" in lines[2]


@pytest.mark.parametrize(
    ("values", "options", "parameter", "words"),
    [
        ({"a": [1, 2]}, {}, None, "at least two rankings"),
        ({"a": [1, 2], "b": [1, 2]}, {"test": "t"}, "test", "'wilcoxon'"),
        ({"a": [1, 2], "b": [1, 2]}, {"baseline": "c"}, "baseline", "'c' .* 'a', 'b'"),
        ({"a": [1, 2], "b": [1, 2, 3]}, {}, "a", r"^comparing 'a' \(a\) with 'b' \(b\): .* 2 and 3"),
        ({"a": [1, np.nan], "b": [1, 2]}, {}, None, "^comparing 'a' .* two judged queries"),
        ({"a": [1, np.inf], "b": [1, 2]}, {}, "a", "holds inf"),
        ({"a": [1, 2], "b": [1, 3]}, {"n_resamples": 0}, "n_resamples", "got 0"),
        ({"a": [1, 2], "b": [1, 3]}, {"confidence": 95}, "confidence", "between 0 and 1"),
    ],
)
def test_bad_input(values, options, parameter, words):
    with pytest.raises(InputError, match=words) as error:
        compare_per_query(values, **options)
    assert error.value.parameter == parameter
