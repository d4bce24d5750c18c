"""The experiments on posteriors and questions, on few draws."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture
def experiment(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    yield importlib.import_module
    for name in ("asking", "calibration"):
        sys.modules.pop(name, None)


def test_intervals(experiment):
    calibration = experiment("calibration")
    found = np.array([calibration.draw([10] * 12, 5, "true", "examples", seed) for seed in range(40)])
    assert found[:, 0].mean() == pytest.approx(0.95, abs=0.03)
    assert found[:, 1].mean() == pytest.approx(1.0, abs=0.3)
    assert calibration.alpha_of("ranking", np.eye(4), np.arange(4.0), np.array([1, 1, 2, 2]), "examples") > 0


def test_questions(experiment, capsys):
    asking = experiment("asking")
    curves = {strategy: asking.run("synthetic", strategy, 0, 25) for strategy in ("random", "vote")}
    for curve in curves.values():
        assert curve.shape == (25 - asking.FIRST + 1,)
        assert ((curve > 0) & (curve < 1)).all()
    assert curves["random"][0] == curves["vote"][0]  # the same first questions
    assert asking.needed(np.array([0.1, 0.5, 0.7]), 0.5) == asking.FIRST + 1
    assert asking.needed(np.array([0.1]), 0.5) is None
    asking.main(["--data", "diabetes", "--repeats", "2", "--questions", "12"])
    assert "random" in capsys.readouterr().out
