"""Accuracy of preferences, by counting them one by one."""

import numpy as np
import pytest

from rankrls.metrics import disagreement_error, preference_accuracy


def counted(scores, winners, losers, strength, weight):
    good = total = 0.0
    for i, j, s, c in zip(winners, losers, strength, weight, strict=True):
        if s == 0:
            continue
        lead = (scores[i] - scores[j]) * (1 if s > 0 else -1)
        good += c * (1.0 if lead > 0 else 0.5 if lead == 0 else 0.0)
        total += c
    return good / total


@pytest.fixture
def some():
    rng = np.random.default_rng(0)
    i = rng.integers(12, size=80)
    j = (i + rng.integers(1, 12, size=80)) % 12
    return rng.integers(4, size=(12, 3)).astype(float), i, j, rng.integers(-2, 4, size=80), rng.integers(4, size=80)


def test_by_counting(some):
    scores, i, j, s, c = some
    expected = [counted(scores[:, k], i, j, s, c) for k in range(3)]
    found = preference_accuracy(scores, i, j, strength=s, weight=c)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    one = preference_accuracy(scores[:, 0], i, j, strength=s, weight=c)
    assert isinstance(one, float)
    assert one == pytest.approx(expected[0], rel=1e-14)
    plain = preference_accuracy(scores[:, 1], i, j)
    assert plain == pytest.approx(counted(scores[:, 1], i, j, np.ones(80), np.ones(80)), rel=1e-14)


def test_each_preference(some):
    scores, i, j, s, c = some
    values = preference_accuracy(scores, i, j, strength=s, weight=c, per_pair=True)
    assert values.shape == (80, 3)
    judged = (s != 0) & (c > 0)
    assert np.isnan(values[~judged]).all()
    for e in np.flatnonzero(judged):
        lead = np.sign(s[e]) * (scores[i[e]] - scores[j[e]])
        np.testing.assert_array_equal(values[e], np.where(lead > 0, 1.0, np.where(lead == 0, 0.5, 0.0)))
    assert preference_accuracy(scores[:, 0], i, j, strength=s, weight=c, per_pair=True).shape == (80,)


def test_all_pairs_of_scored_data_are_one_minus_the_disagreement_error():
    rng = np.random.default_rng(1)
    y, scores = rng.integers(4, size=30), rng.integers(6, size=30).astype(float)
    i, j = np.nonzero(y[:, None] > y)
    assert preference_accuracy(scores, i, j) == pytest.approx(1 - disagreement_error(y, scores), rel=1e-14)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"winners": [0, 5]}, r"winners\[1\] is 5, but X has rows 0 to 2"),
        ({"winners": [0, -1]}, r"winners\[1\] is -1, but X has rows"),
        ({"winners": [0, 2.0**70]}, r"winners\[1\] is 1180591620717411303424, but"),
        ({"winners": np.array([0, 2**63], dtype=np.uint64)}, r"winners\[1\] is 9223372036854775808, but"),
        ({"winners": [0, 0.5]}, r"whole row numbers of X; got 0.5 in preference 1"),
        ({"winners": [0, np.inf]}, r"whole row numbers of X; got inf in preference 1"),
        ({"winners": ["a", "b"]}, "whole row numbers of X; got dtype"),
        ({"winners": [0]}, "winners has 1 entries but losers has 2"),
        ({"losers": [0, 1]}, "Preference 0 compares row 0 with itself"),
        ({"strength": [1, np.nan]}, "strength must be finite; preference 1 has nan"),
        ({"weight": [1, -1]}, "weight must not be negative; preference 1 has -1"),
        ({"weight": 0}, "No preference can be judged"),
        ({"strength": [0, 0]}, "No preference can be judged"),
        ({"winners": [], "losers": []}, "No preference can be judged"),
        ({"y_score": [1, np.nan, 2]}, "row 1"),
        ({"y_score": 1.0}, "y_score must have shape"),
    ],
    ids=str,
)
def test_bad_input(arguments, match):
    good = {"y_score": [1.0, 2.0, 3.0], "winners": [0, 1], "losers": [1, 2]}
    with pytest.raises(ValueError, match=match):
        preference_accuracy(**(good | arguments))
