"""comparisons/honesty.py, on few sets and on simulated patients."""

from __future__ import annotations

import numpy as np
import pytest

from comparisons import honesty
from rankrls import RankRLSCV, survival_pairs


def test_noise_prints_a_row_for_each_kind(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(honesty, "CHOOSERS", {"linear": RankRLSCV})
    honesty.noise(1)
    out = capsys.readouterr().out
    value, optimism = honesty.of_queries("linear", 0, 10)
    assert f"{value:.4f} + {optimism:.4f} = {value + optimism:.4f}" in out
    for kind in ("all pairs", "votes", "genes", "times"):
        assert f"{kind}, rbf" in out


def test_survival_compares_with_other_patients(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    time, event = np.exp(X[:, 0] + rng.normal(size=80)), (rng.random(80) < 0.8).astype(float)
    monkeypatch.setattr(honesty, "cohorts", lambda: iter([("toy", X, time, event)]))
    honesty.survival(1)
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == 6
    reported, reached = honesty.apart(X, time, event, {}, {}, 0)
    assert f"{reported:.3f}  {reached:.3f}" in lines[0]
    order = np.random.default_rng(0).permutation(80)
    train, test = order[:40], order[40:]
    scaled = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    model = RankRLSCV(scoring="pair_accuracy").fit_pairs(scaled[train], *survival_pairs(time[train], event[train]))
    winners, losers = survival_pairs(time[test], event[test])
    f = model.predict(scaled[test])
    assert reached == pytest.approx(np.mean(f[winners] > f[losers]))
