"""Means and standard errors of what was evaluated, against their definitions."""

import numpy as np

from rankrls._curves import of_preferences

RIGHT = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, 0.5], [1.0, 1.0]])
WEIGHT = np.array([2.0, 1.0, 3.0, 0.0])


def chunks():
    return [(RIGHT[:2].copy(), WEIGHT[:2]), (RIGHT[2:].copy(), WEIGHT[2:])]


def test_single_preferences_count_by_their_weight():
    curve = of_preferences(chunks(), np.ones(4, dtype=np.intp))
    mean = np.average(RIGHT, axis=0, weights=WEIGHT)
    np.testing.assert_allclose(curve.mean, mean)
    np.testing.assert_allclose(curve.error, np.sqrt(WEIGHT**2 @ (RIGHT - mean) ** 2) / WEIGHT.sum())
    np.testing.assert_array_equal(curve.values, [*RIGHT[:3], [np.nan, np.nan]])


def test_groups_of_preferences_count_the_same():
    curve = of_preferences(chunks(), np.array([1, 3]))
    values = np.array([RIGHT[0], np.average(RIGHT[1:], axis=0, weights=WEIGHT[1:])])
    np.testing.assert_allclose(curve.values, values)
    np.testing.assert_allclose(curve.mean, values.mean(axis=0))
    np.testing.assert_allclose(curve.error, values.std(axis=0, ddof=1) / np.sqrt(2.0))
