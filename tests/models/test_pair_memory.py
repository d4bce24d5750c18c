"""Votes between few items cost what the items cost, and no more than some numbers for each vote."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from rankrls import RankRLSCV


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
