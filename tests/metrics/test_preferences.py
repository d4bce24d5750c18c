"""Accuracy of preferences, by counting them one by one."""

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls.metrics import Measure, preference_accuracy


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
    assert preference_accuracy(scores, i, j) == pytest.approx(1 - Measure("disagreement")(y, scores), rel=1e-14)


@pytest.mark.parametrize(
    ("arguments", "parameter", "row"),
    [
        ({"winners": [0, 5]}, "winners", 1),
        ({"winners": [0, 2**62]}, "winners", 1),
        ({"winners": [0, 0.5]}, "winners", None),
        ({"winners": [0]}, "losers", None),
        ({"losers": [0, 1]}, "losers", 0),
        ({"strength": [1, np.nan]}, "strength", 1),
        ({"weight": [1, -1]}, "weight", 1),
        ({"weight": 0}, None, None),
        ({"winners": [], "losers": []}, None, None),
        ({"y_score": [1, np.nan, 2]}, "y_score", 1),
    ],
    ids=str,
)
def test_bad_input(arguments, parameter, row):
    good = {"y_score": [1.0, 2.0, 3.0], "winners": [0, 1], "losers": [1, 2]}
    with Refusal(parameter=parameter, row=row):
        preference_accuracy(**(good | arguments))
