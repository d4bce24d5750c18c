"""Every rule against plain Python, on curves of all kinds."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankrls._curves import Curve
from rankrls.selection.search import RULES, SearchState


def best(goodness, errors):
    return goodness.index(max(value for value in goodness if not math.isnan(value)))


def one_se(goodness, errors):
    top = best(goodness, errors)
    least = goodness[top] - (0.0 if math.isnan(errors[top]) else errors[top])
    return next(k for k, value in enumerate(goodness) if value >= least)


ORACLES = {"best": best, "one_se": one_se}
CURVES = st.lists(
    st.tuples(st.sampled_from([0.25, 0.5, 0.625, 0.75, math.nan]), st.sampled_from([0.0, 0.125, 0.25, math.nan])),
    min_size=1,
    max_size=8,
).filter(lambda curve: any(not math.isnan(value) for value, _ in curve))


@pytest.mark.parametrize("name", RULES)
@given(CURVES)
def test_the_value_that_a_rule_takes(name, curve):
    goodness, errors = map(list, zip(*curve, strict=True))
    assert RULES[name](np.array(goodness), np.array(errors), np.ones(len(curve))) == ORACLES[name](goodness, errors)


@pytest.mark.parametrize("name", RULES)
def test_rounding_does_not_decide(name):
    goodness = np.array([0.5, 0.75, 0.75 + 1e-13, np.nan])
    assert RULES[name](goodness, np.zeros(4), np.ones(4)) == 1


def test_rounding_does_not_decide_between_candidates():
    found = SearchState(True, "best")
    assert found.add({"kernel": "linear"}, np.ones(1), Curve(np.array([0.5]), np.zeros(1), np.array([[0.5]])))
    assert not found.add(
        {"kernel": "rbf"}, np.ones(1), Curve(np.array([0.5 + 1e-13]), np.zeros(1), np.array([[0.5 + 1e-13]]))
    )
    assert found.best_choices == {"kernel": "linear"}
    assert found.add(
        {"kernel": "laplacian"}, np.ones(1), Curve(np.array([0.5 + 1e-6]), np.zeros(1), np.array([[0.5 + 1e-6]]))
    )
    assert found.best_index == 2


def test_rounding_is_relative_to_the_values_that_are_there():
    values = np.array([[1.0, np.nan, -2.0], [-3.0, np.nan, np.nan], [np.nan, np.nan, 4.0]])
    assert Curve(np.zeros(3), np.zeros(3), values).size.tolist() == [2.0, 0.0, 3.0]
