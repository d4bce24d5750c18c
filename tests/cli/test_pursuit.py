"""``--method pursuit``: the estimator that it builds, and what it refuses."""

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls import GreedyRankRLS, RankingPursuitCV, load
from rankrls.io import load_letor


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_terms_are_features_or_items(kernel, files, rankrls):
    train = load_letor(files / "train.txt")
    result = rankrls(
        *("fit", files / "train.txt", "--method", "pursuit", "--kernel", kernel, "--gamma", "0.05,0.5"),
        *("--max-basis", "5", "--cv", "3", "-m", files / "m.rankrls", "--json"),
    )
    assert result.status == 0, result.err
    dictionary = "features" if kernel == "linear" else "kernel"
    expected = RankingPursuitCV(5, dictionary=dictionary, kernel=kernel, gamma=(0.05, 0.5), cv=3)
    expected.fit(train.X, train.y, qid=train.qid)
    assert result.json["selection"]["value"] == pytest.approx(expected.best_score_)
    assert result.json["chosen"]["n_basis"] == expected.best_params_["n_basis"]
    np.testing.assert_allclose(load(files / "m.rankrls").predict(train.X), expected.predict(train.X), atol=1e-9)


def test_validation_data_pairs_and_curves(files, rankrls):
    pursuit = ("--method", "pursuit", "--max-basis", "4")
    result = rankrls("fit", files / "train.txt", "--vali", files / "vali.txt", *pursuit, "-m", files / "m.rankrls")
    assert result.status == 0, result.err
    assert "validation data with 12 queries" in result.out
    curve = rankrls("cv", files / "train.txt", *pursuit)
    assert curve.status == 0, curve.err
    assert "n_basis" in curve.out
    (files / "p.csv").write_text("\n".join(f"{i},{i + 1}" for i in range(30)) + "\n")
    pairs = rankrls("fit", files / "train.txt", "--pairs", files / "p.csv", *pursuit, "-m", files / "p.rankrls")
    assert pairs.status == 0, pairs.err


def test_what_is_refused(files, refused):
    fit = ("fit", files / "train.txt", "-m", files / "m.rankrls")
    refused(*fit, "--method", "pursuit", "--alphas", "1,2", Refusal("--alphas", "--method pursuit", parameter="alphas"))
    refused(
        *fit, "--method", "pursuit", "--max-basis", "0", Refusal("--max-basis", "at least 1", parameter="max_basis")
    )
    refused(
        *fit,
        "--max-basis",
        "3",
        Refusal("option of --method pursuit"),
    )


@pytest.mark.parametrize("metric", ["pair_squared_error", "disagreement"])
def test_greedy_takes_features_by_their_held_out_measure(metric, files, rankrls):
    train = load_letor(files / "train.txt")
    result = rankrls(
        *("fit", files / "train.txt", "--method", "greedy", "--max-features", "3", "--alphas", "0.1,10", "--cv", "3"),
        *("--metric", metric, "--rule", "one_se", "-m", files / "m.rankrls", "--json"),
    )
    assert result.status == 0, result.err
    expected = GreedyRankRLS(max_features=3, alphas=(0.1, 10.0), cv=3, rule="one_se", scoring=metric)
    expected.fit(train.X, train.y, qid=train.qid)
    assert result.json["selection"]["value"] == pytest.approx(expected.best_score_)
    assert result.json["chosen"]["n_features"] == expected.n_features_
    model = load(files / "m.rankrls")
    np.testing.assert_array_equal(model.selected_, expected.selected_)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    (files / "names.txt").write_text("".join(f"f{k}\n" for k in range(train.X.shape[1])))
    exported = rankrls("export", files / "m.rankrls", "-", "--format", "json", "--names", files / "names.txt")
    assert exported.status == 0, exported.err
