"""comparisons/auto.py: its table and its check of estimates, on a few queries."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from papers.letor import Rows

from comparisons import auto
from rankrls import AutoRankRLS
from rankrls.metrics import Measure
from rankrls.models import auto_rankrls


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


def test_a_split_compares_the_estimate_with_the_queries_that_were_not_drawn() -> None:
    rows = _rows(0)
    apart, covered, optimism, chosen = auto.split(rows, 3)
    drawn = np.isin(rows.qid, np.random.default_rng(3).permutation(30)[:15])
    model = AutoRankRLS().fit(rows.X[drawn], rows.y[drawn], qid=rows.qid[drawn])
    scores = model.predict(rows.X[~drawn])
    values = Measure("ndcg", k=10)(rows.y[~drawn], scores, qid=rows.qid[~drawn], per_query=True)
    assert apart == pytest.approx(model.best_score_ - values.mean())
    assert covered == (abs(apart) < 1.96 * np.sqrt(values.var(ddof=1) / 15 + model.best_score_error_**2))
    assert (optimism, chosen) == (model.optimism_, model.best_params_["model"])


def test_a_screening_that_drops_the_best_model_shows_its_loss(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.digitize(3.0 * np.sin(3.0 * X[:, 0]), [0.0, 2.0]).astype(float)
    rows = Rows(np.exp(3.0 * X), y, np.repeat(np.arange(30), 10))
    monkeypatch.setattr(auto, "AutoRankRLS", partial(AutoRankRLS, families="linear", scales=("raw", "log")))
    auto.screening("toy", rows, 1)
    assert " 100% equal choices, test NDCG +0.0000" in capsys.readouterr().out
    monkeypatch.setattr(auto, "AutoRankRLS", partial(AutoRankRLS, families="gaussian", scales=("raw", "log")))
    monkeypatch.setattr(auto_rankrls, "_best", lambda models: models[: 1 if auto_rankrls._FINALISTS == 2 else None])
    auto.screening("toy", rows, 1)
    assert " 0% equal choices, test NDCG -0.4" in capsys.readouterr().out


def test_few_queries_say_what_the_choice_gains_over_the_simplest_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(560, 2))
    rows = Rows(X, np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3]).astype(float), np.repeat(np.arange(70), 8))
    monkeypatch.setattr(auto, "CONSTANTS", (30.0, 1e9))
    auto.few("toy", rows, 2)
    gains = []
    for seed in range(2):
        drawn = np.isin(rows.qid, np.random.default_rng(seed).permutation(70)[:20])
        train, test = auto.taken(rows, drawn), auto.taken(rows, ~drawn)
        models = (AutoRankRLS(), AutoRankRLS(families="linear", scales="raw"))
        own, simplest = (
            Measure("ndcg", k=10)(test.y, model.fit(train.X, train.y, qid=train.qid).predict(test.X), qid=test.qid)
            for model in models
        )
        gains.append(own - simplest)
    assert np.mean(gains) > 0.05
    out = capsys.readouterr().out
    assert f"30: {np.mean(gains):+.4f} ± {abs(gains[1] - gains[0]) / 2:.4f}, 1000000000: +0.0000 ± 0.0000" in out
