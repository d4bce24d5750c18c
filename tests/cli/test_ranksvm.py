"""``--method ranksvm``: the estimator that it builds, and what it refuses."""

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls import RankSVMCV, load
from rankrls.io import load_letor
from rankrls.metrics import Measure
from rankrls.persistence import read_info


def test_the_choice_is_that_of_the_estimator(files, rankrls):
    train, test = (load_letor(files / f"{name}.txt") for name in ("train", "test"))
    result = rankrls(
        *("fit", files / "train.txt", "--test", files / "test.txt", "--method", "ranksvm", "--Cs", "0.01:1:3"),
        *("--loss", "hinge", "--balance", "pairs,queries", "--cv", "3", "--metric", "map"),
        *("-m", files / "m.rankrls", "--json"),
    )
    assert result.status == 0
    expected = RankSVMCV(
        (0.01, 0.1, 1.0), cv=3, loss="hinge", balance=("pairs", "queries"), scoring=Measure("map")
    ).fit(train.X, train.y, qid=train.qid)
    assert result.json["chosen"]["C"] == pytest.approx(expected.C_)
    assert result.json["chosen"]["n_support"] == expected.n_support_
    assert result.json["chosen"]["balance"] == expected.best_params_["balance"]
    assert result.json["selection"]["value"] == pytest.approx(expected.best_score_)
    np.testing.assert_allclose(load(files / "m.rankrls").predict(test.X), expected.predict(test.X))
    assert read_info(files / "m.rankrls")["estimator"] == "RankSVMCV"


def test_a_basis_and_when_to_stop(files, rankrls):
    train = load_letor(files / "train.txt")
    result = rankrls(
        *("fit", files / "train.txt", "--method", "ranksvm", "--kernel", "rbf", "--Cs", "0.1,1"),
        *("--n-basis", "9", "--basis", "kmeans", "--random-state", "3", "--tol", "0.1", "--max-iter", "3"),
        *("-m", files / "m.rankrls", "--json"),
    )
    assert result.status == 0, result.err
    basis = {"n_basis": 9, "basis": "kmeans", "random_state": 3}
    expected = RankSVMCV((0.1, 1.0), kernel="rbf", **basis, tol=0.1, max_iter=3).fit(train.X, train.y, qid=train.qid)
    assert result.json["chosen"]["C"] == expected.C_
    np.testing.assert_array_equal(load(files / "m.rankrls").predict(train.X), expected.predict(train.X))
    some = rankrls("fit", files / "train.txt", "--method", "ranksvm", "--max-iter", "1", "-m", files / "n.rankrls")
    assert "note: --method ranksvm stopped before --tol 1e-06 was reached: --max-iter 1 Newton steps" in some.err
    assert "raise --max-iter or --tol." in some.err


def test_preferences(files, rankrls):
    (files / "p.csv").write_text("0,1\n1,2\n3,2\n4,1\n0,5\n")
    fit = ("fit", files / "train.txt", "--pairs", files / "p.csv", "--method", "ranksvm", "-m", files / "p.rankrls")
    result = rankrls(*fit, "--Cs", "1")
    assert result.status == 0
    assert "5 folds of 5 preferences" in result.out


def test_what_is_refused(files, refused):
    fit = ("fit", files / "train.txt", "-m", files / "m.rankrls", "--method", "ranksvm")
    refused(*fit, "--alphas", "1,2", Refusal("--alphas", parameter="alphas"))
    refused(*fit, "--Cs", "-1", Refusal("--Cs", "not be negative", parameter="Cs"))
    refused(*fit, "--Cs", "0", Refusal("--Cs", "above 0", parameter="C"))
    refused(*fit, "--tol", "0", Refusal("--tol", "between 0 and 1; got 0.0", parameter="tol"))
    refused(*fit, "--max-iter", "0", Refusal("--max-iter", "at least 1", parameter="max_iter"))
    refused(*fit, "--n-basis", "5", Refusal("--n-basis", "other than linear", parameter="n_basis"))
    refused(*fit, "--basis", "kmeans", Refusal("--basis", "other than linear", parameter="basis"))
    refused(*fit, "--kernel", "rbf", "--basis", "kmeans", Refusal("--basis", "--n-basis", parameter="basis"))
    refused(
        *fit, "--kernel", "rbf", "--random-state", "1", Refusal("--random-state", "--n-basis", parameter="random_state")
    )
    refused(*fit, "--loss", "log", Refusal("--loss", "one of", parameter="loss"))
