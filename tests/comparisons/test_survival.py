"""comparisons/survival.py: what it prints of a split, on simulated patients."""

from __future__ import annotations

import numpy as np
import pytest

from comparisons import survival
from rankrls import RankRLSCV, survival_pairs
from rankrls.metrics import preference_accuracy


@pytest.mark.parametrize(("method", "options"), [("RankRLSCV, linear", {}), ("RankRLSCV, Gaussian", {"kernel": "rbf"})])
def test_a_split_tests_on_the_patients_that_were_not_fitted(method: str, options: dict[str, str]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * [1.0, 20.0, 1.0, 0.0] + 3.0
    lasted = np.exp(X[:, 0] + 0.3 * rng.normal(size=60))
    seen = rng.exponential(60.0, 60)
    time, event = np.minimum(lasted, seen), (lasted <= seen).astype(float)
    harrell, uno, estimate, _ = survival.split(survival.METHODS[method], X, time, event, seed=1)
    order = np.random.default_rng(1).permutation(60)
    train, test = order[:40], order[40:]
    Z = (X - X[train].mean(axis=0)) / np.where(X[train].std(axis=0) > 0, X[train].std(axis=0), 1.0)
    widths = {"gamma": survival.WIDTHS} if options else {}
    model = RankRLSCV(scoring="pair_accuracy", **options, **widths)
    model.fit_pairs(Z[train], *survival_pairs(time[train], event[train]))
    expected = preference_accuracy(model.predict(Z[test]), *survival_pairs(time[test], event[test]))
    assert harrell == pytest.approx(expected)
    assert estimate == pytest.approx(model.best_score_ - model.optimism_)
    assert 0.7 < uno < 1.0
