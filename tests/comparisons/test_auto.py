"""comparisons/auto.py: its table and its check of estimates, on a few queries."""

from __future__ import annotations

import numpy as np
import pytest
from papers.letor import Rows

from comparisons import auto
from rankrls import AutoRankRLS
from rankrls.metrics import Measure


def _rows(seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=300), [0.3, 1.0]).astype(float)
    return Rows(X, y, np.repeat(np.arange(30), 10))


def test_the_table_has_the_measure_of_each_method(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(auto, "MOST_TREES", 5)
    monkeypatch.setattr(auto, "METHODS", {name: auto.METHODS[name] for name in ("linear", auto.RIVAL)})
    train, test = _rows(0), _rows(1)
    auto.compare("toy", [(train, test)])
    out = capsys.readouterr().out
    model = AutoRankRLS(families="linear", scales=("raw", "standard")).fit(train.X, train.y, qid=train.qid)
    expected = model.predict(test.X)
    assert f"{Measure('ndcg', k=10)(test.y, expected, qid=test.qid):.4f}" in out
    booster, _ = auto.lambdarank(train)
    assert f"{Measure('ndcg', k=10)(test.y, booster.predict(test.X), qid=test.qid):.4f}" in out
