"""``--method ranksvm``: the estimator that it builds, and what it refuses."""

import numpy as np
import pytest

from rankrls import RankSVMCV, load
from rankrls.io import load_letor
from rankrls.metrics import Measure
from rankrls.persistence import read_info


def test_the_choice_is_that_of_the_estimator(files, rankrls):
    train, test = (load_letor(files / f"{name}.txt") for name in ("train", "test"))
    result = rankrls(
        *("fit", files / "train.txt", "--test", files / "test.txt", "--method", "ranksvm", "--Cs", "0.01:1:3"),
        *("--loss", "hinge", "--balance", "pairs,queries", "--cv", "3", "--metric", "map"),
        *("-m", files / "m.skops", "--json"),
    )
    assert result.status == 0
    expected = RankSVMCV(
        (0.01, 0.1, 1.0), cv=3, loss="hinge", balance=("pairs", "queries"), scoring=Measure("map")
    ).fit(train.X, train.y, qid=train.qid)
    assert result.json["chosen"]["C"] == pytest.approx(expected.C_)
    assert result.json["chosen"]["n_support"] == expected.n_support_
    assert result.json["chosen"]["balance"] == expected.best_params_["balance"]
    assert result.json["selection"]["value"] == pytest.approx(expected.best_score_)
    np.testing.assert_allclose(load(files / "m.skops").predict(test.X), expected.predict(test.X))
    assert read_info(files / "m.skops")["estimator"] == "RankSVMCV"


def test_preferences(files, rankrls):
    (files / "p.csv").write_text("0,1\n1,2\n3,2\n4,1\n0,5\n")
    fit = ("fit", files / "train.txt", "--pairs", files / "p.csv", "--method", "ranksvm", "-m", files / "p.skops")
    result = rankrls(*fit, "--Cs", "1")
    assert result.status == 0
    assert "5 folds of 5 preferences" in result.out


def test_what_is_refused(files, refused):
    fit = ("fit", files / "train.txt", "-m", files / "m.skops", "--method", "ranksvm")
    refused(*fit, "--alphas", "1,2", match="--alphas")
    refused(*fit, "--Cs", "-1", match="--Cs must not be negative")
    refused(*fit, "--Cs", "0", match="C must be a positive")
    refused(*fit, "--loss", "log", match="--loss must be one of")
