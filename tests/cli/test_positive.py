"""``--positive``: features by the numbers of the file."""

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls import RankRLSCV, load
from rankrls.io import load_letor
from rankrls.io.data import feature_columns


@pytest.mark.parametrize(("text", "positive"), [("all", True), ("2", (1,)), ("2, 4", (1, 3))])
def test_the_constraints_of_the_estimator(text, positive, files, rankrls):
    train = load_letor(files / "train.txt")
    assert (RankRLSCV().fit(train.X, train.y, qid=train.qid).coef_[1]) < 0.0
    result = rankrls("fit", files / "train.txt", "--positive", text, "-m", files / "m.rankrls", "--json")
    assert result.status == 0, result.err
    expected = RankRLSCV(positive=positive).fit(train.X, train.y, qid=train.qid)
    model = load(files / "m.rankrls")
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.coef_[1] == 0.0
    assert result.json["selection"]["value"] == pytest.approx(expected.best_score_)
    assert rankrls("cv", files / "train.txt", "--positive", text).status == 0


def test_files_that_count_from_zero_preferences_and_names(files, rankrls, rows):
    X, y, qid = rows(1)
    lines = [
        f"{label:g} qid:{q} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row))
        for row, label, q in zip(X.tolist(), y, qid, strict=True)
    ]
    (files / "zero.txt").write_text("\n".join(lines) + "\n")
    assert rankrls("fit", files / "zero.txt", "--positive", "1", "-m", files / "m.rankrls").status == 0
    assert load(files / "m.rankrls").positive == {1: 1}
    (files / "p.csv").write_text("\n".join(f"{i},{i + 1}" for i in range(30)) + "\n")
    of_pairs = ("--pairs", files / "p.csv", "--positive", "all")
    assert rankrls("fit", files / "train.txt", *of_pairs, "-m", files / "p.rankrls").status == 0
    assert (load(files / "p.rankrls").coef_ >= 0.0).all()

    class Named:
        feature_names, feature_ids, path = ("bm25", "7"), ["bm25", "7"], "t.csv"

    assert feature_columns(("7", "bm25"), Named(), "positive") == {"7": [1], "bm25": [0]}
    with Refusal("'1'", "t.csv", parameter="positive"):
        feature_columns(("1",), Named(), "positive")


def test_all_of_two_features(files, rankrls, rows):
    """Their numbers, 0 and 1, could be taken for signs."""
    X, y, qid = rows(1)
    lines = [f"{label:g} qid:{q} 1:{-row[0]!r} 2:{-row[1]!r}" for row, label, q in zip(X.tolist(), y, qid, strict=True)]
    (files / "two.txt").write_text("\n".join(lines) + "\n")
    for text, held in (("1,2", [0, 1]), ("1", [0]), ("2", [1])):
        assert rankrls("fit", files / "two.txt", "--positive", text, "-m", files / "m.rankrls").status == 0
        coef = load(files / "m.rankrls").coef_
        assert [j for j in held if coef[j] < 0.0] == []


def test_what_is_refused(files, refused):
    fit = ("fit", files / "train.txt", "-m", files / "m.rankrls")
    refused(*fit, "--positive", "6", Refusal("features 1 to 5", parameter="positive"))
    refused(*fit, "--positive", "0", Refusal("--positive", "feature '0'", parameter="positive"))
    refused(*fit, "--positive", "title", Refusal("--positive", "feature 'title'", parameter="positive"))
    refused(*fit, "--positive", "2,02", Refusal("--positive", "'02'", "twice", parameter="positive"))
    refused(*fit, "--positive", "1,,2", Refusal("--positive", "between commas", parameter="positive"))
    refused(
        *fit, "--positive", "all", "--kernel", "rbf", Refusal("--positive", "weights of features", parameter="positive")
    )
    refused(*fit, "--positive", "all", "--method", "cg", Refusal("option of --method rankrls"))
    refused(
        *("cv", files / "train.txt", "--global", "--leave-pair-out", "--positive", "all"),
        Refusal("--leave-pair-out", "--positive", "exclude", parameter="leave_pair_out"),
    )
