"""Commands and methods together: what a command does is what Python does."""

import csv
import json
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.refusals import Refusal

from rankrls import GreedyRankRLS, RankRLS, RankRLSCV, load
from rankrls.cli._options import METHODS
from rankrls.inspection import selected_features
from rankrls.io import load_letor, load_table
from rankrls.metrics import Measure, evaluate
from rankrls.model_selection import leave_pair_out, nested_estimate, permutation_test
from rankrls.models import auto_rankrls
from rankrls.preprocessing import QueryMinMaxScaler

SETTINGS = {
    "rankrls": [],
    "auto": [],
    "cg": ["--alphas", "1,10", "--set", "tol=1e-8"],
    "sparse": ["--kernel", "rbf", "--set", "n_basis=20"],
    "pursuit": [],
    "greedy": ["--set", "max_features=3"],
    "transductive": ["--alphas", "1,10", "--set", "cv=3"],
    "co-rankrls": ["--alphas", "1,10", "--set", "n_views=2"],
    "co-pursuit": [],
    "ranksvm": ["--set", "Cs=0.1,1"],
    "rankboost": ["--vali", "vali.txt", "--set", "n_estimators=10"],
}


@pytest.mark.parametrize("method", SETTINGS)
def test_every_method_is_fitted_saved_and_used(files, works, method):
    extra = SETTINGS[method]
    if method in ("transductive", "co-rankrls", "co-pursuit"):
        extra = [*extra, "--unlabelled", "vali.txt"]
    found = works(
        "fit", "train.txt", "-m", "m.rankrls", "--method", method, "--test", "test.txt", *extra, "--json"
    ).json
    assert found["measures"]["test"]["disagreement"]["value"] < 0.3
    model = load("m.rankrls")
    final = model[-1] if hasattr(model, "steps") else model
    assert type(final).__name__ == METHODS[method]
    scores = [float(line) for line in works("predict", "m.rankrls", "test.txt").out.split()]
    data = load_letor("test.txt", dense=True)
    np.testing.assert_allclose(scores, model.predict(data.X), rtol=1e-12)
    judged = works("evaluate", "m.rankrls", "test.txt", "--metrics", "disagreement", "--json").json
    assert judged["measures"]["disagreement"]["value"] == found["measures"]["test"]["disagreement"]["value"]
    assert METHODS[method] in works("info", "m.rankrls").out
    if method != "rankboost":
        works("cv", "train.txt", "--method", method, *extra)


def test_trees_are_a_family_of_auto(files, works, monkeypatch):
    monkeypatch.setattr(auto_rankrls, "SETTINGS", ((4, 0.3),))
    given = ("--method", "auto", "--set", "families=all", "--set", "n_basis=20")
    found = works("fit", "train.txt", "-m", "m.rankrls", "--test", "test.txt", *given, "--json").json
    assert [model["model"] for model in found["models"]][-2:] == ["trees", "blend"]
    assert "query" in [model["scale"] for model in found["models"]]  # which Python does not try without being asked
    shown = works("fit", "train.txt", "-m", "m.rankrls", *given).out
    assert "blend" in shown.split("Models")[1]
    works("fit", "train.txt", "-m", "t.rankrls", "--method", "auto", "--set", "families=trees")
    assert "5 folds of 12 queries" in works("info", "t.rankrls").out
    assert len(works("rank", "t.rankrls", "test.txt").out.splitlines()) >= 96
    compared = works("compare", "test.txt", "t.rankrls", "m.rankrls", "--json").json
    assert compared["rankings"] == ["t", "m"]
    data = load_letor("test.txt", dense=True)
    for name in compared["rankings"]:
        scores = np.array(works("predict", f"{name}.rankrls", "test.txt").out.split(), dtype=float)
        expected = Measure("map")(data.y, scores, qid=data.qid)
        assert compared["measures"]["map"]["values"][name]["value"] == pytest.approx(expected)


@pytest.mark.parametrize("how", [("greedy", "max_features=3"), ("pursuit", "backfit=true")])
def test_selected_features_are_shown(files, works, how):
    given = ("--method", how[0], "--set", how[1], "-m", "m.rankrls")
    found = works("fit", "train.txt", *given, "--json").json["selected_features"]
    expected = selected_features(load("m.rankrls"))
    assert found == expected
    assert works("info", "m.rankrls", "--json").json["selected_features"] == found
    for shown in (works("fit", "train.txt", *given).out, works("info", "m.rankrls").out):
        lines = shown.split("in the order of selection\n")[1].splitlines()[1:]
        assert [line.split()[1] for line in lines[: len(found)]] == [one["name"] for one in expected]


def test_the_choice_is_that_of_python(files, works):
    data = load_letor("train.txt", dense=True)
    grid = np.geomspace(1e-2, 1e2, 5)
    found = works(
        *("cv", "train.txt", "--metric", "ndcg@10,map", "--kernel", "linear,rbf", "--alphas", "1e-2:1e2:5"),
        *("--set", "ties=include,exclude", "--set", "gamma=0.1", "--set", "rule=one_se", "--json"),
    ).json
    model = RankRLSCV(
        alphas=grid, kernel=("linear", "rbf"), ties=("include", "exclude"), gamma=0.1, rule="one_se", scoring="ndcg@10"
    ).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(
        [entry["mean_score"] for entry in found["curve"]], model.cv_results_["mean_score"], rtol=1e-9
    )
    assert found["chosen"]["alpha"] == model.alpha_
    assert found["selection"]["how"] == model.selection_ == "leave-query-out over 12 queries"
    values = evaluate(data.y, model.held_out_scores_, qid=data.qid, measures=["map"])
    assert found["measures"]["held_out"]["map"]["value"] == pytest.approx(values["map"])


def test_fit_and_cv_name_the_same_protocol_measure_and_number(files, works):
    by_pairs = ("--cv", "leave_pair_out")
    for extra in ([], ["--global", *by_pairs, "--alphas", "1,10"], ["--cv", "3"]):
        of_fit = works("fit", "train.txt", "-m", "m.rankrls", *extra, "--json").json["selection"]
        assert works("cv", "train.txt", *extra, "--json").json["selection"] == of_fit
    assert "3 folds of 12 queries" in of_fit["how"]
    shown = works("fit", "train.txt", "-m", "m.rankrls").out
    assert "Chosen by leave-query-out over 12 queries" in shown
    assert "held-out disagreement" in shown


def test_one_ranking_has_one_number(files, works):
    """By default, by leave-pair-out and of Python: the C-index under the same name, of the same protocol."""
    one = ("train.txt", "--global", "--alphas", "1,10")
    found = works("fit", *one, "-m", "m.rankrls", "--test", "test.txt", "--json").json
    assert found["selection"]["measure"] == "C-index"
    assert found["selection"]["how"] == "leave-pair-out over 96 items"
    for extra in ([], ["--cv", "leave_pair_out"]):
        assert works("cv", *one, *extra, "--json").json["selection"] == found["selection"]
    table = load_letor("train.txt")
    score = leave_pair_out(RankRLS(alpha=found["chosen"]["alpha"]), table.X, table.y).score
    selection = found["selection"]
    assert selection["value"] + selection["optimism"] == pytest.approx(score)
    judged = works("evaluate", "m.rankrls", "test.txt", "--global", "--json").json["measures"]["C-index"]
    assert judged["value"] == found["measures"]["test"]["C-index"]["value"]
    assert "held-out C-index" in works("fit", *one, "-m", "m.rankrls").out


@pytest.mark.parametrize("word", ["minmax", "standard-all"])
def test_scaling_is_that_of_a_pipeline(files, works, word):
    works("fit", "train.txt", "-m", "m.rankrls", "--scale", word, "--alphas", "1")
    train, test = load_letor("train.txt", dense=True), load_letor("test.txt", dense=True)
    if word == "minmax":
        X = QueryMinMaxScaler().fit_transform(train.X, qid=train.qid)
        expected = RankRLSCV(alphas=[1.0]).fit(X, train.y, qid=train.qid)
        scores = expected.predict(QueryMinMaxScaler().fit(train.X, qid=train.qid).transform(test.X, qid=test.qid))
    else:
        pipeline = make_pipeline(StandardScaler(), RankRLSCV(alphas=[1.0]))
        scores = pipeline.fit(train.X, train.y, rankrlscv__qid=train.qid).predict(test.X)
    found = [float(line) for line in works("predict", "m.rankrls", "test.txt").out.split()]
    np.testing.assert_allclose(found, scores, rtol=1e-9)


def test_from_rows_to_rankings_comparison_and_export(files, works):
    """fit, predict, rank, evaluate, compare, explain, export and info agree with one another."""
    works("fit", "train.txt", "-m", "a.rankrls", "--vali", "vali.txt", "--metric", "map")
    works("fit", "train.txt", "-m", "b.rankrls", "--kernel", "rbf", "--set", "gamma=1")
    works("predict", "a.rankrls", "test.txt", "-o", "a.txt")
    works("predict", "a.rankrls", "test.txt", "-o", "a.csv")
    table = list(csv.DictReader((files / "a.csv").read_text().splitlines()))
    scores = np.array([float(row["score"]) for row in table])
    assert [row["docid"] for row in table[:2]] == ["d0", "d1"]
    np.testing.assert_array_equal(scores, np.loadtxt(files / "a.txt"))
    ranked = [line.split("\t") for line in works("rank", "a.rankrls", "test.txt", "--top", "3").out.splitlines()]
    assert len(ranked) == 1 + 12 * 3
    best = np.flatnonzero(scores[:8] == scores[:8].max())[0]
    assert ranked[1][:3] == ["300", "1", f"d{best}"]
    trec = works("rank", "a.rankrls", "test.txt", "--format", "trec").out.splitlines()[0].split()
    assert (trec[0], trec[2], trec[3], trec[5]) == ("300", f"d{best}", "1", "rankrls")
    by_model = works("evaluate", "a.rankrls", "test.txt", "--per-query", "--json").json
    by_scores = works("evaluate", "--scores", "a.csv", "test.txt", "--json").json
    assert by_model["measures"] == by_scores["measures"]
    assert len(by_model["per_query"]["map"]) == 12
    compared = works("compare", "test.txt", "a.rankrls", "b.rankrls", "a.txt", "--html", "page.html", "--json").json
    for name in ("a.rankrls", "a.txt"):
        value = compared["measures"]["map"]["values"][name]["value"]
        assert value == pytest.approx(by_model["measures"]["map"]["value"])
    assert "map, p values by Holm" in (files / "page.html").read_text()
    found = works("explain", "a.rankrls", "test.txt", "d0", "d1", "--query", "300", "--json").json
    assert sum(part["contribution"] for part in found["contributions"]) == pytest.approx(scores[0] - scores[1])
    works("export", "a.rankrls", "model.json", "--format", "solr", "--names", _names(files))
    assert "f1" in (files / "model.json").read_text()
    works("export", "a.rankrls", "elastic.json", "--format", "elasticsearch", "--names", "names.txt", "--offset", "1.5")
    assert json.loads(works("info", "a.rankrls", "--json").out)["estimator"] == "RankRLSCV"


def _names(files):
    (files / "names.txt").write_text("f1\nf2\nf3\nf4\nf5\n")
    return files / "names.txt"


def test_convert_keeps_every_number(files, works):
    for name in ("t.csv", "t.parquet", "t.arrow", "t.tsv"):
        works("convert", "train.txt", name)
        works("convert", name, "back.txt")
        before, after = load_letor("train.txt", dense=True), load_letor("back.txt", dense=True)
        np.testing.assert_array_equal(before.X, after.X)
        np.testing.assert_array_equal(before.y, after.y)
        assert [*before.docids] == [*after.docids]


@pytest.mark.parametrize("options", [[], ["--parts", "80,20"], ["--folds", "4"]])
def test_split_draws_whole_queries(files, works, options):
    found = works("split", "train.txt", "parts", *options, "--json").json["parts"]
    names = [name for name in found if "/" not in name or name.endswith("test")]
    queries = [{*load_letor(found[name]["path"]).qid.tolist()} for name in names]
    assert len(set().union(*queries)) == sum(map(len, queries)) == 12
    again = works("split", "train.txt", "parts", *options, "--json", "--force").json["parts"]
    assert again == found


def test_models_of_tables_name_their_features(files, works):
    works("convert", "train.txt", "train.csv")
    works("fit", "train.csv", "-m", "m.rankrls", "--ignore", "f5")
    assert [*load("m.rankrls").feature_names_in_] == ["f1", "f2", "f3", "f4"]
    works("convert", "test.txt", "test.csv")
    assert len(works("predict", "m.rankrls", "test.csv").out.split()) == 96


@pytest.mark.parametrize("given", ["['f1*']", "f1", '{{"f1": {sign}}}', "{{'f*1': {sign}, 'f2': 0}}"])
def test_signs_of_features(files, works, given):
    works("convert", "train.txt", "train.csv")
    data = load_table("train.csv")
    assert RankRLSCV().fit(data.X, data.y, qid=data.qid).coef_[0] != 0.0  # a sign then makes a difference
    for sign in (1, -1) if "sign" in given else (1,):
        words = f"positive={given.format(sign=sign) if 'sign' in given else given}"
        works("fit", "train.csv", "-m", "m.rankrls", "--set", words)
        expected = RankRLSCV(positive={0: sign}).fit(data.X, data.y, qid=data.qid)
        np.testing.assert_allclose(load("m.rankrls").coef_, expected.coef_)


@pytest.mark.parametrize("given", ["1", "[1]", "[[1]]", "null", "{1: 1}"])
def test_signs_of_what_is_no_feature_are_refused(files, works, refused, given):
    works("convert", "train.txt", "train.csv")
    named = given.strip("[{").partition(":")[0].rstrip("]")
    unknown = Refusal(named.replace("null", "None"), "f1", parameter="positive")
    refused("fit", "train.csv", "-m", "m.rankrls", "--set", f"positive={given}", unknown)


def test_standard_input_and_output(files, works, monkeypatch):
    import io
    import sys

    works("fit", "train.txt", "-m", "m.rankrls")
    data = (files / "test.txt").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert works("predict", "m.rankrls", "-").out == works("predict", "m.rankrls", "test.txt").out


def test_quiet_and_json_print_only_what_they_should(files, works):
    assert works("fit", "train.txt", "-m", "m.rankrls", "-q").out == ""
    result = works("fit", "train.txt", "-m", "m.rankrls", "-q", "--json")
    assert result.json["command"] == "fit"
    assert result.err == ""


def test_what_looks_suspicious_is_noted(files, works):
    works("convert", "train.txt", "train.csv")
    table = list(csv.DictReader((files / "train.csv").read_text().splitlines()))
    for k, row in enumerate(table):
        row["key"], row["leak"] = (7 * k) % 96 + 1000, 2.5 * float(row["label"]) + 0.1 * (k // 8)
    with (files / "odd.csv").open("w") as file:
        writer = csv.DictWriter(file, [*table[0]])
        writer.writeheader()
        writer.writerows(table)
    err = works("fit", "odd.csv", "-m", "m.rankrls", "--global").err
    assert "key: whole numbers that look like ids" in err
    assert "leak: this feature alone sorts all rows" in err
    assert "the same data" in works("fit", "train.txt", "--test", "train.txt", "-m", "m.rankrls").err
    edge = works("cv", "train.txt", "--alphas", "1e6,1e7,1e8", "--metric", "pair_squared_error")
    assert "Try a wider grid" in edge.err


@pytest.mark.skipif(not find_spec("torch"), reason="torch is not installed")
def test_a_device_of_torch_gives_the_same_model(files, works, refused):
    for more in ((), ("--kernel", "rbf", "--vali", "vali.txt")):
        works("fit", "train.txt", "-m", "host.rankrls", "--alphas", "1,10", "--test", "test.txt", *more)
        found = works(
            *("fit", "train.txt", "-m", "device.rankrls", "--alphas", "1,10", "--test", "test.txt", *more),
            *("--device", "cpu", "--json"),
        ).json
        assert found["measures"]["test"]["disagreement"]["value"] < 0.3
        X = load_letor("test.txt", dense=True).X
        np.testing.assert_allclose(load("device.rankrls").predict(X), load("host.rankrls").predict(X), atol=1e-9)
    refused(
        "fit",
        "train.txt",
        "-m",
        "m.rankrls",
        "--device",
        "nowhere",
        Refusal("cannot compute on 'nowhere'", parameter="device"),
    )


def test_cv_prints_the_p_value_of_permutation_test(files, works):
    table = load_letor("train.txt")
    test = permutation_test(RankRLSCV(), table.X, table.y, qid=table.qid, n_permutations=19)
    found = works("cv", "train.txt", "--permutations", "19", "--json").json
    assert found["permutation_test"]["p_value"] == pytest.approx(test.p_value, rel=1e-12)
    assert f"{test.p_value:.2g}" in works("cv", "train.txt", "--permutations", "19").out


def test_cv_prints_the_nested_estimate(files, works):
    table = load_letor("train.txt")
    expected = nested_estimate(RankRLSCV(), table.X, table.y, qid=table.qid)
    found = works("cv", "train.txt", "--nested", "--json").json["nested"]
    assert found["score"] == pytest.approx(expected.score, rel=1e-12)
    assert f"Nested disagreement {expected.score:.4f} ±" in works("cv", "train.txt", "--nested").out


def test_a_model_that_holds_nothing_out_is_not_evaluated(files, works, refused):
    one = ("train.txt", "--method", "greedy", "--set", "n_features_to_select=2", "--alphas", "1")
    refused("cv", *one, Refusal("Nothing was held out", parameter="cv", remedy="--cv"))
    refused(
        *("cv", "train.txt", "--method", "cg", "--alphas", "1", "--set", "selection=tikhonov"),
        Refusal("Nothing was held out", parameter="cv"),
    )
    (entry,) = works("cv", *one, "--cv", "4", "--json").json["curve"]
    data = load_letor("train.txt", dense=True)
    model = GreedyRankRLS(2, alphas=(1.0,), cv=4, scoring="disagreement").fit(data.X, data.y, qid=data.qid)
    assert entry["mean_score"] == pytest.approx(model.best_score_)
