"""``--method sparse``: the estimator that it builds, and what it refuses."""

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls import SparseRankRLSCV, load
from rankrls.io import load_letor
from rankrls.persistence import read_info


@pytest.mark.parametrize("basis", ["random", "kmeans", "pursuit"])
def test_kernel_and_alpha_are_chosen_on_a_basis(basis, files, rankrls):
    train = load_letor(files / "train.txt")
    result = rankrls(
        *("fit", files / "train.txt", "--method", "sparse", "--kernel", "rbf", "--gamma", "0.05,0.5"),
        *("--n-basis", "12", "--basis", basis, "--random-state", "3", "-m", files / "m.rankrls", "--json"),
    )
    assert result.status == 0, result.err
    expected = SparseRankRLSCV(gamma=(0.05, 0.5), n_basis=12, basis=basis, random_state=3)
    expected.fit(train.X, train.y, qid=train.qid)
    assert result.json["selection"]["value"] == pytest.approx(expected.best_score_)
    np.testing.assert_allclose(load(files / "m.rankrls").predict(train.X), expected.predict(train.X), atol=1e-9)
    assert read_info(files / "m.rankrls")["estimator"] == "SparseRankRLSCV"


def test_validation_data_pairs_and_curves(files, rankrls):
    sparse = ("--method", "sparse", "--kernel", "rbf", "--n-basis", "12")
    result = rankrls("fit", files / "train.txt", "--vali", files / "vali.txt", *sparse, "-m", files / "m.rankrls")
    assert result.status == 0, result.err
    assert "validation data with 12 queries" in result.out
    assert rankrls("cv", files / "train.txt", *sparse).status == 0
    (files / "p.csv").write_text("\n".join(f"{i},{i + 1}" for i in range(30)) + "\n")
    pairs = rankrls("fit", files / "train.txt", "--pairs", files / "p.csv", *sparse, "-m", files / "p.rankrls")
    assert pairs.status == 0, pairs.err


def test_what_is_refused(files, refused):
    fit = ("fit", files / "train.txt", "-m", files / "m.rankrls", "--method", "sparse")
    refused(*fit, Refusal("other than linear", "--kernel rbf"))
    refused(*fit, "--kernel", "rbf", "--n-basis", "0", Refusal("--n-basis", "at least 1", parameter="n_basis"))
    refused(
        *fit, "--kernel", "rbf", "--basis", "best", Refusal("--basis", "random, kmeans, pursuit", parameter="basis")
    )
    refused(
        "fit",
        files / "train.txt",
        "--n-basis",
        "9",
        "-m",
        files / "m.rankrls",
        Refusal("--n-basis", "nothing to --method rankrls", parameter="n_basis"),
    )
