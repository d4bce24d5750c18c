"""Conditional ranking against refits without each query."""

from __future__ import annotations

import numpy as np
import pytest

from rankrls.kernels import Kernel
from rankrls.learners.conditional import ConditionalRanking
from tests.oracles import gaussian


@pytest.mark.parametrize("alpha", [1.0, 1e-6, 1e-12])
def test_held_out_queries_are_scored_as_by_refits_also_by_small_alphas(alpha):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(8, 4)), rng.normal(size=(8, 5))
    K, T = gaussian(X, X, 0.5), Y - Y.mean(axis=1, keepdims=True)
    found = ConditionalRanking(K, Y, kernel=Kernel("precomputed")).without_each_query(alpha)
    for u in range(8):
        rest = np.arange(8) != u
        a = np.linalg.solve(K[np.ix_(rest, rest)] + alpha * np.eye(7), T[rest])
        np.testing.assert_allclose(found[u], K[u, rest] @ a, atol=1e-9)
