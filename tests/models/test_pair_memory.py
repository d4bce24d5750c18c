"""Votes between few items: what they cost, and that equal items are tied."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from rankrls import RankRLS, RankRLSCV
from rankrls.model_selection import leave_preference_out


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(("votes", "items"), [(6_000, 20), (30_000, 100)])
def test_memory_grows_with_the_votes_and_not_with_their_square(kernel, votes, items):
    rng = np.random.default_rng(0)
    a = rng.integers(0, items, votes)
    b = (a + rng.integers(1, items, votes)) % items
    X = np.eye(items)
    RankRLSCV(kernel=kernel).fit_pairs(X, a[:50], b[:50])  # what is compiled and imported once is not counted
    tracemalloc.start()
    try:
        RankRLSCV(kernel=kernel).fit_pairs(X, a, b)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1500 * votes + 1000 * items**2


@pytest.mark.parametrize(("columns", "options"), [(33, {}), (3, {"kernel": "rbf", "gamma": 0.3})])
@pytest.mark.parametrize("votes", [40, 400])
def test_votes_between_equal_items_count_half(columns, options, votes):
    """Rounding, which differs between their rows, must not order them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(27, columns)) * 10.0 ** rng.integers(-2, 3, columns) + 100.0
    X[13:26] = X[:13]
    a = rng.integers(0, 13, votes)
    b = np.where(np.arange(votes) % 2, a + 13, (a + rng.integers(1, 13, votes)) % 13)
    model = RankRLSCV((1e-3, 1.0, 1e3), scoring="pair_accuracy", **options).fit_pairs(X, a, b)
    lead = leave_preference_out(RankRLS(**options), X, a, b, alphas=model.cv_results_["alpha"])
    right = (np.sign(lead) + 1.0) / 2.0
    right[1::2] = 0.5
    np.testing.assert_allclose(model.cv_results_["mean_score"], right.mean(axis=0), atol=1e-12)
