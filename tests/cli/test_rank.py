"""``rankrls rank``: lists of a model's scores; a run that trec_eval reads in the same order."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from tests.refusals import Refusal

from rankrls import RankRLS, load, save
from rankrls.inspection import rank_scores
from rankrls.io import load_letor, save_letor


@pytest.fixture
def model(files, rankrls):
    assert rankrls("fit", files / "train.txt", "--scale", "minmax", "-m", files / "m.rankrls", "-q").status == 0
    return files / "m.rankrls"


def listed(text):
    lines = [line.split("\t") for line in text.splitlines()]
    assert lines[0] == ["query", "rank", "item", "score", "row"]
    return lines[1:]


def test_the_list_is_that_of_the_scores(model, files, rankrls):
    table = load_letor(files / "test.txt")
    scores = np.array(rankrls("predict", model, files / "test.txt").out.split(), dtype=float)
    for options, k in (((), None), (("--top", "3"), 3)):
        ranking = rank_scores(scores, qid=table.qid, k=k)
        result = rankrls("rank", model, files / "test.txt", *options)
        assert (result.status, result.err) == (0, "")
        found = listed(result.out)
        assert [int(line[4]) for line in found] == ranking.rows.tolist()
        assert [line[0] for line in found] == [str(q) for q in ranking.qid]
        assert [int(line[1]) for line in found] == ranking.positions.tolist()
        assert [float(line[3]) for line in found] == ranking.scores.tolist()
        assert [line[2] for line in found] == [line[4] for line in found]
    again = rankrls("rank", model, files / "test.txt", "--top", "3", "-o", files / "list.txt")
    assert again.out == ""
    assert (files / "list.txt").read_text() == result.out
    assert rankrls("rank", model, files / "test.txt", "--top", "3", "-o", files / "list.csv").status == 0
    with open(files / "list.csv", newline="") as file:
        assert [*csv.reader(file)] == [line.split("\t") for line in result.out.splitlines()]


def test_a_run_has_the_order_of_trec_eval(files, rankrls):
    """Ties in single precision that are none in double, and ids that sort otherwise as text."""
    X = np.array([[1.0], [1.0 + 1e-12], [1.0], [0.0], [2.0]])
    names = ["d9", "d10", "d11", "d1", "d2"]
    ranker = RankRLS().fit([[0.0], [1.0]], [0, 1])
    save(ranker, files / "one.rankrls")
    save_letor(files / "ties.txt", X, [1, 0, 0, 0, 0], qid=[7] * 5, comments=[f"docid = {n}" for n in names])
    result = rankrls("rank", files / "one.rankrls", files / "ties.txt", "--format", "trec", "--run", "mine")
    lines = [line.split() for line in result.out.splitlines()]
    assert [line[2] for line in lines] == ["d2", "d9", "d11", "d10", "d1"]
    assert [line[3] for line in lines] == ["1", "2", "3", "4", "5"]
    assert {(line[0], line[1], line[5]) for line in lines} == {("7", "Q0", "mine")}
    run = {"7": {line[2]: float(line[4]) for line in lines}}
    for place, line in enumerate(lines, 1):  # the reciprocal rank of each document alone is its place there
        judge = pytrec_eval.RelevanceEvaluator({"7": {line[2]: 1}}, {"recip_rank"})
        assert judge.evaluate(run)["7"]["recip_rank"] == pytest.approx(1 / place)
    tsv = listed(rankrls("rank", files / "one.rankrls", files / "ties.txt").out)
    assert [line[2] for line in tsv] == ["d2", "d10", "d9", "d11", "d1"]


def test_ids_and_targets(model, files, rankrls, refused):
    table = load_letor(files / "train.txt")
    two = RankRLS().fit(table.X, np.column_stack([table.y, -table.y]))
    save(two, files / "two.rankrls")
    found = listed(rankrls("rank", files / "two.rankrls", files / "train.txt", "--target", "1", "--global").out)
    assert [int(line[4]) for line in found] == rank_scores(
        load(files / "two.rankrls").predict(table.X)[:, 1]
    ).rows.tolist()
    assert {line[0] for line in found} == {""}
    run = rankrls(
        "rank", files / "two.rankrls", files / "train.txt", "--target", "1", "--global", "--format", "trec"
    ).out
    assert {line.split()[0] for line in run.splitlines()} == {"1"}
    save_letor(files / "plain.txt", table.X[:2], [0, 1], comments=["a long  name", "b"])
    lines = listed(rankrls("rank", files / "two.rankrls", files / "plain.txt", "--ids", "comment", "--target", "0").out)
    assert {line[2] for line in lines} == {"a long name", "b"}
    two_targets = ("rank", files / "two.rankrls", files / "plain.txt", "--target", "0")
    refused("rank", files / "two.rankrls", files / "plain.txt", Refusal("--target 0 to 1", parameter="target"))
    refused(
        "rank",
        files / "two.rankrls",
        files / "plain.txt",
        "--target",
        "2",
        Refusal("--target", "0 to 1", parameter="target"),
    )
    refused("rank", model, files / "test.txt", "--target", "1", Refusal("--target", "0 to 0", parameter="target"))
    refused(*two_targets, "--ids", "comment", "--format", "trec", Refusal("'a long name'", row=0))
    (files / "named.csv").write_text("qid,label,a,b,c,d,e\nmy query,1,1,2,3,4,5\n")
    refused(
        "rank",
        files / "two.rankrls",
        files / "named.csv",
        "--target",
        "0",
        "--format",
        "trec",
        "-q",
        Refusal("'my query'", row=0),
    )
    alone = ("rank", files / "two.rankrls", files / "plain.txt", "--target", "0", "-o", files / "alone.csv")
    assert rankrls(*alone).status == 0
    assert (files / "alone.csv").read_text().splitlines()[0] == "rank,item,score,row"
    refused(*two_targets, "--ids", "docid", Refusal("'docid = NAME'"))
    refused(*two_targets, "--top", "0", Refusal("--top", "at least 1", parameter="top_items"))
    refused(*two_targets, "--format", "csv", Refusal("--format", "tsv, trec", parameter="layout"))
    refused(*two_targets, "--run", "a b", Refusal("--run", "one word", parameter="run"))
    refused(*two_targets, "-o", files / "plain.txt", Refusal("would be overwritten"))


def test_queries_are_not_compared(model, files, rankrls, refused, rows, letor):
    X, y, _ = rows(3)
    letor(files / "plain.txt", X, y, None)
    refused("rank", model, files / "plain.txt", Refusal("every line needs a qid"))
    refused("rank", model, files / "test.txt", "--global", Refusal("fitted with queries"))
    rankrls("fit", files / "train.txt", "-m", files / "n.rankrls", "-q")
    refused("rank", files / "n.rankrls", files / "plain.txt", Refusal("every line needs a qid"))


def test_queries_with_tabs_are_quoted(files, rankrls, tmp_path):
    rows = load_letor(files / "test.txt").X[:3]
    names = ["a\tb", 'say "x"', "line\nend"]
    frame = pd.DataFrame(rows, columns=[f"f{k}" for k in range(rows.shape[1])]).assign(qid=names)
    frame.assign(label=0).to_csv(files / "odd.csv", index=False)
    assert rankrls("fit", files / "train.txt", "-m", tmp_path / "m.rankrls", "-q").status == 0
    ranked = rankrls("rank", tmp_path / "m.rankrls", files / "odd.csv", "--quiet")
    assert ranked.status == 0, ranked.err
    assert pd.read_csv(io.StringIO(ranked.out), sep="\t")["query"].tolist() == names
