"""``rankrls explain``: the library's explanation of two rows of a file."""

import json

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls import load
from rankrls.inspection import explain
from rankrls.io import load_letor, save_letor


@pytest.fixture
def model(files, rankrls):
    assert rankrls("fit", files / "train.txt", "-m", files / "m.rankrls", "-q").status == 0
    return files / "m.rankrls"


def test_the_pair_of_two_rows(model, files, rankrls):
    table = load_letor(files / "test.txt")
    pair = explain(load(model), table.X, qid=table.qid, feature_names=list("12345")).pair(2, 0)
    result = rankrls("explain", model, files / "test.txt", "2", "0")
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines()[0] == pair.title()
    assert [line.split()[0] for line in result.out.splitlines()[3:8]] == list(pair.feature_names)
    found = rankrls("explain", model, files / "test.txt", "2", "0", "--json", "--top", "2").json
    assert found["difference"] == pair.difference
    assert (found["a"], found["b"], found["query"]) == (2, 0, table.qid[0])
    assert found["items"] is None
    assert [part["feature"] for part in found["contributions"]] == [*pair.feature_names[:2], "3 others"]
    assert sum(part["contribution"] for part in found["contributions"]) == pytest.approx(pair.difference)
    assert found["contributions"][-1]["a"] is None
    alone = rankrls("explain", model, files / "test.txt", "2", "--json").json
    assert alone["b"] is None
    assert alone["difference"] == pytest.approx(explain(load(model), table.X, qid=table.qid).item(2).difference)


def test_scaled_inside_queries(files, rankrls):
    rankrls("fit", files / "train.txt", "--scale", "standard", "-m", files / "s.rankrls", "-q")
    scores = [float(line) for line in rankrls("predict", files / "s.rankrls", files / "test.txt").out.split()]
    result = rankrls("explain", files / "s.rankrls", files / "test.txt", "1", "0", "--json")
    assert result.json["difference"] == pytest.approx(scores[1] - scores[0])
    result = rankrls("explain", files / "s.rankrls", files / "test.txt", "1", "0")
    assert result.err == "rankrls: note: features as QueryStandardScaler inside each query made them.\n"


def test_items_by_name(model, files, rankrls, refused):
    table = load_letor(files / "test.txt")
    qid = np.asarray(table.qid)
    one, other = dict.fromkeys(qid.tolist()) if len(set(qid.tolist())) == 2 else list(dict.fromkeys(qid.tolist()))[:2]
    inside = {q: np.flatnonzero(qid == q) for q in (one, other)}
    names = [f"docid = d{i}" for i in range(table.n_rows)]
    names[inside[other][0]] = names[inside[one][0]]  # the same document in two queries
    save_letor(files / "named.txt", table.X, table.y, qid=qid, comments=names)
    (files / "names.txt").write_text("a\nb\nc\nd\ne\n")
    first, second = inside[one][:2]
    by_name = ("explain", model, files / "named.txt", f"d{first}", f"d{second}", "--ids", "docid")
    found = json.loads(rankrls(*by_name, "--query", one, "--json", "--names", files / "names.txt").out)
    assert (found["a"], found["b"]) == (first, second)
    assert {part["feature"] for part in found["contributions"]} == set("abcde")
    refused(*by_name, Refusal(f"2 lines are called 'd{first}'; name one by --query"))
    refused(*by_name, "--query", "nowhere", Refusal("no query nowhere"))
    refused(*by_name[:-1], "row", Refusal(f"has rows 0 to {table.n_rows - 1}; got 'd{first}'"))
    refused(
        "explain",
        model,
        files / "test.txt",
        "0",
        str(inside[other][0]),
        Refusal("belongs to query", parameter="b", row=8),
    )
    refused(
        "explain",
        model,
        files / "test.txt",
        "0",
        "1",
        "--query",
        other,
        Refusal(f"row 0 is not in query {other}", row=0),
    )
    refused("explain", model, files / "named.txt", "x", "d1", "--ids", "docid", Refusal("no line", "'x'"))
    refused(
        "explain",
        model,
        files / "test.txt",
        "0",
        "1",
        "--top=-1",
        Refusal("--top", "at least 0", parameter="top_features"),
    )
    refused(
        "explain",
        model,
        files / "test.txt",
        "0",
        "1",
        "--target",
        "3",
        Refusal("--target", "0 to 0", parameter="target"),
    )
    rankrls("fit", files / "train.txt", "--kernel", "rbf", "-m", files / "rbf.rankrls", "-q")
    refused(
        "explain",
        files / "rbf.rankrls",
        files / "test.txt",
        "0",
        "1",
        Refusal("not linear", "--method rankrls"),
    )
