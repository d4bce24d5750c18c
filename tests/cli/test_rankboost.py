"""``--method rankboost``: the estimator that it builds, and what it refuses."""

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls import RankBoost, load
from rankrls.io import load_letor
from rankrls.metrics import Measure
from rankrls.persistence import read_info


def test_rounds_are_chosen_by_validation_data(files, rankrls):
    train, vali, test = (load_letor(files / f"{name}.txt") for name in ("train", "vali", "test"))
    result = rankrls(
        *("fit", files / "train.txt", "--vali", files / "vali.txt", "--test", files / "test.txt"),
        *("--method", "rankboost", "--n-estimators", "40", "--learning-rate", "0.5", "--max-bins", "16"),
        *("--patience", "30", "--balance", "pairs", "--metric", "map", "-m", files / "m.rankrls", "--json"),
    )
    assert result.status == 0
    expected = RankBoost(40, learning_rate=0.5, max_bins=16, balance="pairs", scoring=Measure("map"), patience=30)
    expected.fit(train.X, train.y, qid=train.qid, X_val=vali.X, y_val=vali.y, qid_val=vali.qid)
    assert result.json["chosen"] == {"n_estimators": expected.n_estimators_, "stopped": expected.stopped_}
    assert result.json["selection"]["value"] == pytest.approx(expected.best_score_)
    np.testing.assert_array_equal(load(files / "m.rankrls").predict(test.X), expected.predict(test.X))
    assert read_info(files / "m.rankrls")["estimator"] == "RankBoost"
    shown = rankrls(
        "fit", files / "train.txt", "--vali", files / "vali.txt", "--method", "rankboost", "-m", files / "n.rankrls"
    )
    assert "Chosen by validation data with" in shown.out
    assert "from 300 candidates" in shown.out
    curve = rankrls(
        "cv", files / "train.txt", "--vali", files / "vali.txt", "--method", "rankboost", "--n-estimators", "5"
    )
    assert curve.status == 0
    assert "n_estimators" in curve.out


def test_fewest_rounds_within_one_standard_error(files, rankrls):
    train, vali = (load_letor(files / f"{name}.txt") for name in ("train", "vali"))
    result = rankrls(
        *("fit", files / "train.txt", "--vali", files / "vali.txt", "--method", "rankboost", "--n-estimators", "40"),
        *("--rule", "one_se", "-m", files / "m.rankrls", "--json"),
    )
    best, expected = (
        RankBoost(40, rule=rule, balance="examples", scoring=Measure("disagreement")).fit(
            train.X, train.y, qid=train.qid, X_val=vali.X, y_val=vali.y, qid_val=vali.qid
        )
        for rule in ("best", "one_se")
    )
    assert result.json["chosen"]["n_estimators"] == expected.n_estimators_ < best.n_estimators_
    assert result.json["selection"]["rule"] == "one_se"


def test_without_validation_data_all_rounds_are_kept(files, rankrls):
    result = rankrls(
        "fit", files / "train.txt", "--method", "rankboost", "--n-estimators", "7", "-m", files / "m.rankrls"
    )
    assert result.status == 0
    assert "Fitted" in result.out
    assert load(files / "m.rankrls").n_estimators_ == 7
    (files / "p.csv").write_text("0,1\n1,2\n")
    fit = ("fit", files / "train.txt", "--method", "rankboost", "--pairs", files / "p.csv", "-m", files / "p.rankrls")
    assert rankrls(*fit, "--n-estimators", "3").status == 0


def test_what_is_refused(files, refused):
    fit = ("fit", files / "train.txt", "-m", files / "m.rankrls", "--method", "rankboost")
    refused(*fit, "--alphas", "1,2", Refusal("--alphas", parameter="alphas"))
    refused(*fit, "--patience", "5", Refusal("--patience", "Give --vali", parameter="patience"))
    refused(*fit, "--rule", "one_se", Refusal("--rule", "Give --vali", parameter="rule"))
    refused(*fit, "--n-estimators", "0", Refusal("--n-estimators", "at least 1", parameter="n_estimators"))
    refused("cv", files / "train.txt", "--method", "rankboost", Refusal("validation data", "--vali FILE"))
    (files / "p.csv").write_text("0,1\n1,2\n")
    refused(
        *fit, "--pairs", files / "p.csv", "--vali-pairs", files / "p.csv", Refusal("--pairs", "without validation data")
    )
    refused(
        *fit, "--pairs", files / "p.csv", "--rule", "one_se", Refusal("--rule", "validation data", parameter="rule")
    )
