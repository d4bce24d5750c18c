"""Measures of censored times, against scikit-survival's values, their definitions, and times before censoring."""

from __future__ import annotations

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls import survival_pairs
from rankrls.metrics import preference_accuracy, time_dependent_auc, uno_concordance

TIME, EVENT = [5, 2, 9, 4, 7, 7, 3, 12, 1, 6, 9, 4], [1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1]
SCORES = [3.0, 1.0, 2.5, 4.0, 3.0, 5.0, 2.0, 6.0, 1.5, 2.5, 4.5, 2.0]
TRAIN = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14], [0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]


def test_values_are_those_of_scikit_survival():  # version 0.28, of the negative scores
    own = uno_concordance(SCORES, TIME, EVENT)
    other = uno_concordance(SCORES, TIME, EVENT, train=TRAIN)
    early = uno_concordance(SCORES, TIME, EVENT, train=TRAIN, tau=7)
    np.testing.assert_allclose([own, other, early], [0.7940458559596291, 0.8551190349097896, 0.901913875598086])
    found = time_dependent_auc(SCORES, TIME, EVENT, [2.5, 5, 8])
    np.testing.assert_allclose(found, [1.0, 0.9099099099099099, 0.8642714570858284])
    found = time_dependent_auc(SCORES, TIME, EVENT, [2.5, 5, 8], train=TRAIN)
    np.testing.assert_allclose(found, [1.0, 0.9107142857142857, 0.8690476190476191])


def test_nothing_is_weighted_where_nobody_is_censored():
    rng = np.random.default_rng(0)
    time, scores = rng.permutation(40.0 + np.arange(40)), rng.integers(0, 9, 40)
    everyone = np.ones(40)
    harrell = preference_accuracy(scores, *survival_pairs(time, everyone))
    assert uno_concordance(scores, time, everyone) == pytest.approx(harrell)
    later = time > 60
    pairs = [
        (scores[i] < scores[j]) + 0.5 * (scores[i] == scores[j])
        for i in np.where(~later)[0]
        for j in np.where(later)[0]
    ]
    assert time_dependent_auc(scores, time, everyone, [60])[0] == pytest.approx(np.mean(pairs))


def test_limits_do_not_depend_on_censoring():
    rng = np.random.default_rng(0)
    m = 4000
    lasted = rng.exponential(size=m)
    scores = np.where(lasted < 0.3, lasted, 0.3 + rng.random(m))  # they know early events only
    seen = rng.exponential(0.7, m)
    time, event = np.minimum(lasted, seen), lasted <= seen
    everyone = np.ones(m)
    truth = uno_concordance(scores, lasted, everyone, tau=1.0)
    assert uno_concordance(scores, time, event, tau=1.0) == pytest.approx(truth, abs=0.01)
    harrell = preference_accuracy(scores, *survival_pairs(np.minimum(time, 1.0), event & (time < 1.0)))
    assert abs(harrell - truth) > 0.04
    at = [0.2, 0.5, 1.0]
    wanted = time_dependent_auc(scores, lasted, everyone, at)
    np.testing.assert_allclose(time_dependent_auc(scores, time, event, at), wanted, atol=0.02)


def test_moments_without_cases_or_controls_have_no_value():
    found = time_dependent_auc(SCORES, TIME, EVENT, [0.5, 5, 20], train=([*TRAIN[0], 30], [*TRAIN[1], 1]))
    assert np.isnan(found).tolist() == [True, False, True]


def test_refusals():
    with Refusal("unknown", parameter="time", row=0):
        uno_concordance([1.0, 2.0], [5, 6], [1, 1], train=([1, 2, 3], [0, 1, 1]), tau=5.5)
    with Refusal("unknown", parameter="time", row=0):
        uno_concordance([1.0, 2.0, 3.0], [5, 6, 7], [1, 1, 1], train=([1, 2, 3], [0, 1, 0]))
    with Refusal("empty", parameter="time"):
        uno_concordance([], [], [])
    with Refusal("empty", parameter="time"):
        time_dependent_auc([1.0, 2.0], [1, 2], [1, 0], at=[1], train=([], []))
    with Refusal("comparable", parameter="event"):
        uno_concordance(SCORES, TIME, EVENT, tau=1)
    with Refusal("shape", parameter="y_score"):
        uno_concordance(np.ones((12, 2)), TIME, EVENT)
    with Refusal("event", parameter="event", row=1):
        time_dependent_auc([1.0, 2.0], [1, 2], [0, 3], [1])
