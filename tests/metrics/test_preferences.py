"""Accuracy of preferences, by counting them one by one."""

import numpy as np
import pytest
from tests.refusals import Refusal

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
    ("arguments", "parameter", "row", "refusal"),
    [
        ({"winners": [0, 5]}, "winners", 1, Refusal("winners[1] is 5", parameter="winners", row=1)),
        ({"winners": [0, -1]}, "winners", 1, Refusal("winners[1] is -1", parameter="winners", row=1)),
        ({"winners": [0, 2.0**70]}, "winners", 1, Refusal("1180591620717411303424", parameter="winners", row=1)),
        (
            {"winners": np.array([0, 2**63], dtype=np.uint64)},
            "winners",
            1,
            Refusal("9223372036854775808", parameter="winners", row=1),
        ),
        ({"winners": [0, 0.5]}, "winners", 1, Refusal("0.5", "preference", parameter="winners", row=1)),
        ({"winners": [0, np.inf]}, "winners", 1, Refusal("inf in", parameter="winners", row=1)),
        ({"winners": ["a", "b"]}, "winners", None, Refusal("dtype", parameter="winners")),
        ({"winners": [[0, 1]]}, "winners", None, Refusal("one-dimensional", parameter="winners")),
        ({"winners": [0]}, "losers", None, Refusal("1 entries", "2", parameter="losers")),
        ({"losers": [0, 1]}, "losers", 0, Refusal("Preference 0 compares", parameter="losers", row=0)),
        ({"strength": [1, np.nan]}, "strength", 1, Refusal("has nan", parameter="strength", row=1)),
        ({"strength": "much"}, "strength", None, Refusal("numeric", parameter="strength")),
        ({"weight": [1, -1]}, "weight", 1, Refusal("has -1", parameter="weight", row=1)),
        ({"weight": [1, 1, 1]}, "weight", None, Refusal("2 preferences", parameter="weight")),
        ({"weight": 0}, None, None, Refusal("No preference")),
        ({"strength": [0, 0]}, None, None, Refusal("No preference")),
        ({"winners": [], "losers": []}, None, None, Refusal("No preference")),
        ({"y_score": [1, np.nan, 2]}, "y_score", 1, Refusal("nan", parameter="y_score", row=1)),
        ({"y_score": 1.0}, "y_score", None, Refusal("shape", parameter="y_score")),
    ],
    ids=str,
)
def test_bad_input(arguments, parameter, row, refusal):
    good = {"y_score": [1.0, 2.0, 3.0], "winners": [0, 1], "losers": [1, 2]}
    with refusal as error:
        preference_accuracy(**(good | arguments))
    assert (error.value.parameter, error.value.row) == (parameter, row)
