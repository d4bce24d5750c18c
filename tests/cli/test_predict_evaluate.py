"""``predict`` and ``evaluate``: the model's own scores, judged as the library judges them."""

import gzip
import io
import sys

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls import RankRLS, RankRLSCV, load, save
from rankrls.io import load_letor
from rankrls.metrics import Measure, evaluate


@pytest.fixture(params=["none", "minmax"])
def model(request, files, rankrls):
    path = files / "m.rankrls"
    assert rankrls("fit", files / "train.txt", "--scale", request.param, "-m", path, "-q").status == 0
    return path


def scores_of(result):
    assert result.status == 0, result.err
    return np.array([float(line) for line in result.out.splitlines()])


def direct_scores(path, table):
    model = load(path)
    if hasattr(model, "steps"):
        return model[-1].predict(model[0].transform(table.X, qid=table.qid))
    return model.predict(table.X)


def test_scores_are_the_models_to_the_last_bit(model, files, rankrls):
    table = load_letor(files / "test.txt")
    result = rankrls("predict", model, files / "test.txt")
    np.testing.assert_array_equal(scores_of(result), direct_scores(model, table))
    assert result.err == ""
    again = rankrls("predict", model, files / "test.txt", "-o", files / "scores.txt")
    assert again.out == ""
    assert (files / "scores.txt").read_text() == result.out


def test_rows_keep_the_files_order(model, files, rankrls):
    """Rows of a query may lie anywhere; the scores follow the rows."""
    lines = (files / "test.txt").read_text().splitlines()
    order = np.random.default_rng(0).permutation(len(lines))
    (files / "shuffled.txt").write_text("\n".join(lines[i] for i in order) + "\n")
    scores = scores_of(rankrls("predict", model, files / "test.txt"))
    np.testing.assert_allclose(scores_of(rankrls("predict", model, files / "shuffled.txt")), scores[order], rtol=1e-12)
    (files / "packed.gz").write_bytes(gzip.compress((files / "test.txt").read_bytes()))
    np.testing.assert_array_equal(scores_of(rankrls("predict", model, files / "packed.gz")), scores)


def test_several_targets(files, rankrls, refused):
    table = load_letor(files / "train.txt")
    fitted = RankRLS().fit(table.X, np.column_stack([table.y, -table.y]), qid=table.qid)
    save(fitted, files / "two.rankrls")
    result = rankrls("predict", files / "two.rankrls", files / "train.txt")
    found = np.array([[float(v) for v in line.split("\t")] for line in result.out.splitlines()])
    np.testing.assert_array_equal(found, fitted.predict(table.X))
    refused("evaluate", files / "two.rankrls", files / "train.txt", Refusal("2 scores a row"))


def test_features_that_the_file_does_not_name(files, rankrls, refused):
    rankrls("fit", files / "train.txt", "-m", files / "m.rankrls", "-q")
    (files / "short.txt").write_text("1 qid:1 1:0.5\n0 qid:1 2:1\n")
    result = rankrls("predict", files / "m.rankrls", files / "short.txt")
    weights = load(files / "m.rankrls").coef_
    np.testing.assert_array_equal(scores_of(result), [0.5 * weights[0], weights[1]])
    assert result.err.startswith("rankrls: note: ")
    assert "the model has 5" in result.err
    (files / "long.txt").write_text("1 qid:1 1:0.5\n0 qid:1 7:1\n")
    for command in ("predict", "evaluate"):
        line = refused(
            command, files / "m.rankrls", files / "long.txt", Refusal(parameter="n_features", file="long.txt", line=2)
        )
        assert "model has 5 features" in line


def test_a_file_without_qid(files, rows, letor, rankrls, refused):
    X, y, _ = rows(3)
    letor(files / "flat.txt", X, y)
    rankrls("fit", files / "train.txt", "-m", files / "plain.rankrls", "-q")
    rankrls("fit", files / "train.txt", "-m", files / "scaled.rankrls", "--scale", "minmax", "-q")
    rankrls("fit", files / "flat.txt", "-m", files / "global.rankrls", "--scale", "minmax", "--global", "-q")
    # scores of a model that looks at rows only need no qid
    assert rankrls("predict", files / "plain.rankrls", files / "flat.txt").status == 0
    refused("predict", files / "scaled.rankrls", files / "flat.txt", Refusal("inside each query"))
    with_qid = scores_of(rankrls("predict", files / "global.rankrls", files / "test.txt"))
    np.testing.assert_array_equal(scores_of(rankrls("predict", files / "global.rankrls", files / "flat.txt")), with_qid)
    # judging is another matter
    refused("evaluate", files / "plain.rankrls", files / "flat.txt", Refusal("no line has a qid"))
    refused("evaluate", files / "plain.rankrls", files / "flat.txt", "--global", Refusal("fitted with queries"))
    judged = rankrls("evaluate", files / "global.rankrls", files / "flat.txt", "--global", "--json")
    expected = evaluate(y, with_qid, measures=["disagreement"])["disagreement"]
    assert judged.json["measures"]["disagreement"]["value"] == pytest.approx(expected, rel=1e-12)
    assert judged.json["measures"]["disagreement"]["interval"] is None  # one query says nothing about others


def test_evaluate_is_the_librarys(model, files, rankrls):
    table = load_letor(files / "test.txt")
    scores = direct_scores(model, table)
    names = ["map", "ndcg@3", "p@5", "mrr", "disagreement", "tau"]
    for convention in ("letor", "trec", "sklearn", "lightgbm"):
        result = rankrls(
            *(
                "evaluate",
                model,
                files / "test.txt",
                "--metrics",
                ",".join(names),
                "--convention",
                convention,
                "--json",
            ),
            "--per-query",
        )
        for name in names:
            values = evaluate(table.y, scores, qid=table.qid, measures=[name], convention=convention, per_query=True)[
                name
            ]
            found = result.json["measures"][name]
            assert found["value"] == pytest.approx(np.nanmean(values), rel=1e-12)
            assert found["interval"][0] <= found["value"] <= found["interval"][1]
            assert found["queries"] == 12
            np.testing.assert_allclose(result.json["per_query"][name], values, rtol=1e-12)
        assert result.json["per_query"]["qid"] == list(dict.fromkeys(table.qid.tolist()))


def test_scores_of_any_tool(model, files, rankrls, monkeypatch):
    rankrls("predict", model, files / "test.txt", "-o", files / "scores.txt")
    by_model = rankrls("evaluate", model, files / "test.txt", "--json").json
    by_scores = rankrls("evaluate", "--scores", files / "scores.txt", files / "test.txt", "--json").json
    assert by_scores["measures"] == by_model["measures"]
    assert by_scores["data"] == by_model["data"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((files / "scores.txt").read_bytes())))
    piped = rankrls("evaluate", "--scores", "-", files / "test.txt", "--json").json
    assert piped["measures"] == by_model["measures"]


def test_ties_by_document_id(tmp_path, rows, letor, rankrls):
    X, y, qid = rows(1)
    letor(tmp_path / "data.txt", X, y, qid, docid=True)
    (tmp_path / "scores.txt").write_text("0.5\n" * len(y))
    result = rankrls(
        *("evaluate", "--scores", tmp_path / "scores.txt", tmp_path / "data.txt", "--convention", "trec"),
        *("--metrics", "ndcg@3", "--json"),
    )
    documents = [f"d{i}" for i in range(len(y))]
    wanted = evaluate(y, np.full(len(y), 0.5), qid=qid, measures=["ndcg@3"], convention="trec", docno=documents)
    plain = evaluate(y, np.full(len(y), 0.5), qid=qid, measures=["ndcg@3"], convention="trec")
    assert result.json["measures"]["ndcg@3"]["value"] == pytest.approx(wanted["ndcg@3"], rel=1e-12)
    assert wanted != plain


def test_what_people_read(model, files, rankrls):
    result = rankrls("evaluate", model, files / "test.txt", "--per-query")
    assert "95 % interval" in result.out
    assert " to " in result.out
    queries = result.out[: result.out.index("letor measures")]
    assert all(f"\n{qid} " in queries for qid in range(300, 312))


def test_queries_that_are_not_judged(tmp_path, rankrls, refused):
    (tmp_path / "data.txt").write_text("0 qid:1 1:1\n0 qid:1 1:2\n1 qid:2 1:1\n0 qid:2 1:2\n0 qid:3 1:1\n1 qid:3 1:2\n")
    (tmp_path / "scores.txt").write_text("1\n2\n3\n4\n5\n6\n")
    files = ("--scores", tmp_path / "scores.txt", tmp_path / "data.txt")
    found = rankrls("evaluate", *files, "--json", "--per-query").json
    assert found["measures"]["disagreement"] == {
        "value": 0.5,
        "standard_error": pytest.approx(0.5),
        "queries": 2,
        "interval": [0.0, 1.0],
        "confidence": 0.95,
    }
    assert found["per_query"]["disagreement"] == [None, 1.0, 0.0]
    (tmp_path / "data.txt").write_text("0 qid:1 1:1\n0 qid:1 1:2\n" * 3)
    shown = rankrls("evaluate", *files)
    assert "disagreement        -" in shown.out.replace("─", "")
    refused("evaluate", *files, "--metrics", "disagreement", Refusal("judges nothing"))


@pytest.mark.parametrize("how", ["ignore", "half"])
def test_tied_labels_are_half_an_error_or_none(how, model, files, rankrls):
    """Of every command that judges, and of the choice itself: the library's measure with the same argument."""
    measures = [Measure("disagreement", tied_labels=how), "map"]
    train, test = load_letor(files / "train.txt"), load_letor(files / "test.txt")
    wanted = ("--metrics", "disagreement,map", "--tied-labels", how, "--json")
    ours = evaluate(test.y, direct_scores(model, test), qid=test.qid, measures=measures)
    found = rankrls("evaluate", model, files / "test.txt", *wanted).json["measures"]
    assert {name: each["value"] for name, each in found.items()} == pytest.approx(ours)
    other = files / "other.rankrls"
    fitted = rankrls("fit", files / "train.txt", "--test", files / "test.txt", "-m", other, *wanted).json
    expected = RankRLSCV(scoring=measures[0]).fit(train.X, train.y, qid=train.qid)
    assert fitted["selection"]["value"] == pytest.approx(expected.best_score_)
    assert fitted["selection"]["measure"] == str(measures[0])
    ours = evaluate(test.y, expected.predict(test.X), qid=test.qid, measures=measures)
    assert {name: each["value"] for name, each in fitted["measures"]["test"].items()} == pytest.approx(ours)
    report = rankrls("compare", files / "test.txt", model, other, *wanted).json
    assert list(report["measures"]) == [str(measures[0]), "map"]
    searched = rankrls("cv", files / "train.txt", "--tied-labels", how, "--json").json
    assert searched["selection"]["value"] == pytest.approx(expected.best_score_)


def test_only_measures_of_pairs_of_labels_have_tied_labels(model, files, refused):
    test = files / "test.txt"
    for measure in ("map", "tau", "map,ndcg@10"):
        named = Refusal(f"got {measure.replace(',', ', ')}", parameter="tied_labels")
        refused("evaluate", model, test, "--metrics", measure, "--tied-labels", "half", named)
    new = ("-m", files / "new.rankrls")
    refused(
        "fit",
        files / "train.txt",
        *new,
        "--metric",
        "map",
        "--tied-labels",
        "half",
        Refusal("got map", parameter="tied_labels"),
    )
    refused("cv", files / "train.txt", "--leave-pair-out", "--tied-labels", "half", Refusal("exclude each other"))
    refused("evaluate", model, test, "--tied-labels", "third", Refusal("half", parameter="tied_labels"))
