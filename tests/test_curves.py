"""Means and standard errors of what was evaluated, against their definitions."""

import numpy as np
from scipy.optimize import minimize_scalar

from rankrls._curves import ItemFold, logistic_slope, of_item_folds, of_preferences
from rankrls._preferences import PreferenceTable
from rankrls.metrics import Measure

RIGHT = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, 0.5], [1.0, 1.0]])
WEIGHT = np.array([2.0, 1.0, 3.0, 0.0])


def chunks():
    return [(RIGHT[:2].copy(), WEIGHT[:2]), (RIGHT[2:].copy(), WEIGHT[2:])]


def test_single_preferences_count_by_their_weight():
    curve = of_preferences(chunks(), np.ones(4, dtype=np.intp))
    mean = np.average(RIGHT, axis=0, weights=WEIGHT)
    np.testing.assert_allclose(curve.mean, mean)
    np.testing.assert_allclose(curve.error, np.sqrt(WEIGHT**2 @ (RIGHT - mean) ** 2) / WEIGHT.sum())
    np.testing.assert_array_equal(curve.per_block, [*RIGHT[:3], [np.nan, np.nan]])


def test_groups_of_preferences_count_the_same():
    curve = of_preferences(chunks(), np.array([1, 3]))
    values = np.array([RIGHT[0], np.average(RIGHT[1:], axis=0, weights=WEIGHT[1:])])
    np.testing.assert_allclose(curve.per_block, values)
    np.testing.assert_allclose(curve.mean, values.mean(axis=0))
    np.testing.assert_allclose(curve.error, values.std(axis=0, ddof=1) / np.sqrt(2.0))


def test_folds_of_items_average_their_margins_and_double_the_variance():
    ones = np.ones(4)
    table = PreferenceTable(np.array([0, 2, 0, 1]), np.array([1, 3, 2, 3]), 4, ones, ones)
    folds = [
        ItemFold(np.array([1, 2, 3]), np.array([0]), np.array([1.0])),
        ItemFold(np.array([0, 2, 3]), np.array([1]), np.array([1.0])),
        ItemFold(np.array([1, 3]), np.array([0, 2]), np.array([1.0, 2.0])),
    ]
    margins = [np.array([[1.0, -1.0]]), np.array([[-2.0, 3.0]]), np.array([[3.0, 5.0], [4.0, -4.0]])]
    curve = of_item_folds(Measure("pair_accuracy"), table, np.arange(4), folds, margins)
    np.testing.assert_allclose(curve.mean, curve.per_block.mean(axis=0))
    np.testing.assert_allclose(curve.error, np.sqrt(2.0 / 4.0) * curve.per_block.std(axis=0, ddof=1))
    np.testing.assert_allclose(curve.scores(0)[:, 0], [2.0, -2.0, 4.0, np.nan])
    np.testing.assert_allclose(curve.scores(1)[:, 0], [2.0, 3.0, -4.0, np.nan])


def test_the_slope_of_win_probabilities_is_platts():
    rng = np.random.default_rng(0)
    margins, weight = rng.normal(size=30), rng.uniform(0.5, 2.0, 30)
    strength = np.sign(margins + rng.normal(size=30))
    strength[:3] = 0.0
    target = np.select([strength > 0.0, strength < 0.0], [31.0 / 32.0, 1.0 / 32.0], 0.5)

    def loss(a):
        return weight @ (np.logaddexp(0.0, -a * margins) + (1.0 - target) * a * margins)

    expected = minimize_scalar(loss, bounds=(0.0, 50.0), method="bounded", options={"xatol": 1e-10}).x
    np.testing.assert_allclose(logistic_slope(margins, strength, weight), expected, rtol=1e-6)
