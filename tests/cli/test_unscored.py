"""Methods that learn from rows without labels, which stand in TRAIN or in a file of their own."""

import numpy as np
import pandas as pd
import pytest
from tests.refusals import Refusal

from rankrls import CoRankingPursuitCV, CoRankRLS, TransductiveRankRLSCV, load
from rankrls.io import load_letor
from rankrls.metrics import disagreement_error
from rankrls.metrics._scorer import predict_by_query
from rankrls.persistence import read_info

METHODS = {
    "transductive": (
        ["--alphas", "0.1,10", "--penalty", "0.5,5", "--cv", "3"],
        TransductiveRankRLSCV((0.1, 10.0), penalty=(0.5, 5.0), cv=3),
    ),
    "co-rankrls": (
        ["--alphas", "0.1,10", "--mu", "0.1,1", "--n-views", "3", "--seed-of-views"],
        CoRankRLS((0.1, 10.0), mu=(0.1, 1.0), n_views=3, random_state=4),
    ),
    "co-pursuit": (
        ["--kernel", "rbf", "--gamma", "0.1", "--max-basis", "4", "--nu", "0,0.1", "--cv", "3"],
        CoRankingPursuitCV(4, nu=(0.0, 0.1), kernel="rbf", gamma=0.1, cv=3),
    ),
}
METHODS["co-rankrls"][0][-1:] = ["--random-state", "4"]


@pytest.fixture
def partly(files, rows):
    """A table whose last queries have no label; the same in two LETOR files, all of whose rows have one."""
    X, y, qid = rows(1)
    more, _, others = rows(2)
    frame = pd.DataFrame(np.vstack((X, more)), columns=list("abcde"))
    frame.insert(0, "label", [*y, *[np.nan] * len(more)])
    frame.insert(1, "qid", [*qid, *others])
    frame.to_csv(files / "partly.csv", index=False)
    return files


def trained(rankrls, files, name, data):
    options, _ = METHODS[name]
    result = rankrls("fit", *data, "--method", name, *options, "-m", files / "m.rankrls", "--json")
    assert result.status == 0, result.err
    return result.json, load(files / "m.rankrls")


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("given", ["csv", "letor"])
def test_fit_is_the_estimator_on_all_rows(name, given, partly, rankrls):
    train, more = load_letor(partly / "train.txt"), load_letor(partly / "vali.txt")
    data = [partly / f"partly.{given}"]
    if given == "letor":
        data = [partly / "train.txt", "--unscored", partly / "vali.txt"]
    found, model = trained(rankrls, partly, name, [*data, "--test", partly / "test.txt"] if given == "letor" else data)
    X, qid = np.vstack((train.X, more.X)), np.concatenate((train.qid, more.qid))
    expected = METHODS[name][1].fit(X, np.concatenate((train.y, np.full(more.n_rows, np.nan))), qid=qid)
    rows = X if given == "letor" else pd.DataFrame(X, columns=list("abcde"))
    np.testing.assert_allclose(model.predict(rows), expected.predict(X), atol=1e-9)
    assert type(model) is type(expected)
    for key, value in expected.best_params_.items():
        assert found["chosen"][key] == pytest.approx(value)
    held = expected.held_out_scores_[: train.n_rows]
    assert found["measures"]["held_out"]["disagreement"]["value"] == pytest.approx(
        disagreement_error(train.y, held, qid=train.qid)
    )
    roles = found["data"]
    if given == "letor":
        assert roles["unscored"]["labels"] == {"none": more.n_rows}
        assert found["measures"]["test"]["disagreement"]["value"] < 0.5
        assert set(read_info(partly / "m.rankrls")["given"]["data"]) == {"train", "unscored", "test"}
    else:
        assert roles["train"]["labels"]["none"] == more.n_rows
        assert roles["train"]["queries"] == 24


@pytest.mark.parametrize("name", METHODS)
def test_curves_tables_scales_and_predictions(name, partly, rankrls):
    options, _ = METHODS[name]
    curve = rankrls("cv", partly / "partly.csv", "--method", name, *options, "--metric", "ndcg@5")
    assert curve.status == 0, curve.err
    assert "chosen" in curve.out
    assert "none: 96" in curve.out
    data = [partly / "train.txt", "--unscored", partly / "vali.txt", "--scale", "standard"]
    result = rankrls("fit", *data, "--method", name, *options, "-m", partly / "m.rankrls")
    assert result.status == 0, result.err
    assert "unscored" in result.out
    predicted = rankrls("predict", partly / "m.rankrls", partly / "test.txt")
    test = load_letor(partly / "test.txt")
    scores = np.array(predicted.out.split(), dtype=float)
    np.testing.assert_allclose(scores, predict_by_query(load(partly / "m.rankrls"), test.X, test.qid), atol=1e-12)
    assert rankrls("info", partly / "m.rankrls").status == 0


def test_pursuit_takes_features_if_no_kernel_is_named(partly, rankrls):
    result = rankrls(
        *("fit", partly / "partly.csv", "--method", "co-pursuit", "--max-basis", "3", "--nu", "0.1"),
        *("-m", partly / "f.rankrls"),
    )
    assert result.status == 0, result.err
    model = load(partly / "f.rankrls")
    assert model.dictionary == "features"
    assert model.coef_.shape == (5,)
    exported = rankrls("export", partly / "f.rankrls", partly / "f.json", "--format", "solr")
    assert exported.status == 0, exported.err


def test_one_ranking_of_all_rows(partly, rankrls):
    result = rankrls(
        *("fit", partly / "train.txt", "--unscored", partly / "vali.txt", "--global", "--method", "co-rankrls"),
        *("--n-views", "2", "--mu", "1", "--alphas", "1", "-m", partly / "g.rankrls"),
    )
    assert result.status == 0, result.err


def test_what_is_refused(partly, rankrls, refused, letor, rows):
    train = partly / "train.txt"
    fit = ("fit", train, "-m", partly / "m.rankrls")
    of = ("--method", "transductive")
    refused(*fit, "--unscored", partly / "vali.txt", Refusal("--method rankrls", parameter="unscored"))
    refused(*fit, *of, "--vali", partly / "vali.txt", Refusal("--method transductive", parameter="method"))
    refused(*fit, *of, "--ties", "both", Refusal("--ties means nothing", parameter="ties"))
    refused(*fit, *of, "--penalty", "0", Refusal("--penalty must be a number above 0", parameter="penalty"))
    refused(*fit, "--method", "co-pursuit", "--nu", "-1", Refusal("--nu", "at least 0", parameter="nu"))
    refused(*fit, "--method", "co-rankrls", "--gamma", "1,2", Refusal("one value", parameter="gamma"))
    refused(*fit, "--penalty", "1", Refusal("option of --method transductive", parameter="penalty"))
    # a query with labels in one file and none in the other
    X, _, qid = rows(2)
    shared = letor(partly / "shared.txt", X, np.zeros(len(X)), np.r_[np.full(8, 103), qid[8:]])
    refused(*fit, *of, "--unscored", shared, Refusal("103", file="shared.txt", row=0, parameter="y"))
    big = letor(partly / "big.txt", np.where(X[3, 1] == X, 1e300, X), np.zeros(len(X)), qid)
    refused(*fit, *of, "--unscored", big, Refusal("products overflow", file="big.txt", row=3))
    bare = letor(partly / "bare.txt", X, np.zeros(len(X)))
    refused(*fit, *of, "--unscored", bare, Refusal("qid", file="bare.txt"))
    partly_scored = pd.read_csv(partly / "partly.csv")
    partly_scored.loc[2, "label"] = np.nan
    partly_scored.to_csv(partly / "p.csv", index=False)
    refused(
        "fit", partly / "p.csv", *of, "-m", partly / "m.rankrls", Refusal("row 2", file="p.csv", row=2, parameter="y")
    )
    for name in ("label", "grade"):
        partly_scored.drop(columns="label").to_csv(partly / "no.csv", index=False)
        wanted = Refusal("no column", file="no.csv", parameter="label")
        refused("fit", partly / "no.csv", *of, "--label", name, "-m", partly / "m.rankrls", wanted)
    empty = partly_scored.assign(label=np.nan)
    empty.to_csv(partly / "none.csv", index=False)
    refused("fit", partly / "none.csv", *of, "-m", partly / "m.rankrls", Refusal("labels", parameter="y"))
    refused("fit", partly / "partly.csv", "-m", partly / "m.rankrls", Refusal("label", file="partly.csv"))
