"""Held-out scores of rows and preferences of next to no weight, in the dual, against refits."""

from __future__ import annotations

import numpy as np
import pytest

from rankrls import RankRLS
from rankrls.model_selection import leave_preference_out, leave_query_out
from tests.models.oracles import centred

KERNELS = [{}, {"kernel": "rbf", "gamma": 0.1}]


def weighted_data(tiny, *, whole_query):
    rng = np.random.default_rng(3)
    qid = np.repeat(np.arange(8), 6)
    X, y = rng.normal(size=(48, 4)), rng.integers(0, 3, 48).astype(float)
    w = rng.uniform(0.5, 2.0, 48)
    w[qid == 2 if whole_query else rng.random(48) < 0.3] *= tiny
    return X, y, qid, w


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("whole_query", [False, True])
@pytest.mark.parametrize("balance", ["examples", "pairs", "queries"])
@pytest.mark.parametrize("ties", ["include", "exclude"])
@pytest.mark.parametrize("tiny", [1e-6, 1e-8, 1e-12, 1e-16])
def test_queries_equal_refits(tiny, ties, balance, whole_query, kernel):
    X, y, qid, w = weighted_data(tiny, whole_query=whole_query)
    options = {"solver": "dual", "ties": ties, "balance": balance, **kernel}
    held_out = leave_query_out(RankRLS(1.0, **options), X + 100.0, y, qid=qid, sample_weight=w)
    for q in range(8):
        own = qid == q
        model = RankRLS(1.0, **options).fit(X[~own] + 100.0, y[~own], qid=qid[~own], sample_weight=w[~own])
        expected = centred(model.predict(X[own] + 100.0), qid[own])
        scale = np.abs(expected).max()
        np.testing.assert_allclose(centred(held_out[own], qid[own]), expected, atol=1e-11 * scale, rtol=0)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("tiny", [1e-8, 1e-12, 1e-16])
def test_preferences_equal_refits(tiny, grouped, kernel):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 40))
    winners, losers = np.arange(24), rng.integers(24, 30, size=24)
    weight = rng.uniform(0.5, 2.0, 24)
    weight[::3] *= tiny
    groups = np.arange(24) // 2 if grouped else np.arange(24)
    model = RankRLS(1.0, solver="dual", **kernel)
    lead = leave_preference_out(model, X, winners, losers, weight=weight, groups=groups)
    for g in np.unique(groups):
        own = groups == g
        f = RankRLS(1.0, solver="dual", **kernel).fit_pairs(X, winners[~own], losers[~own], weight=weight[~own])
        scores = f.predict(X)
        np.testing.assert_allclose(lead[own], (scores[winners] - scores[losers])[own], rtol=1e-11, atol=1e-13)


def test_items_of_equal_features_tie_however_little_they_weigh():
    X, y, qid, w = weighted_data(1e-14, whole_query=True)
    X[qid == 2] = X[np.flatnonzero(qid == 2)[[0, 0, 0, 1, 1, 1]]]
    scores = leave_query_out(RankRLS(solver="dual"), X, y, qid=qid, sample_weight=w)[qid == 2]
    assert len(np.unique(scores)) == 2
