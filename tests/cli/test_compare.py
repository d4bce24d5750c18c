"""``rankrls compare``: models and files of scores on one file."""

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls.comparison import compare_rankings
from rankrls.io import load_letor


@pytest.fixture
def models(files, rankrls):
    """Two models, one of which scales, and the scores of the first."""
    common = ("--quiet", "--metric", "map")
    assert rankrls("fit", files / "train.txt", "--model", files / "a.rankrls", *common).status == 0
    options = ("--scale", "minmax", "--alphas", "1000")
    assert rankrls("fit", files / "train.txt", "--model", files / "b.rankrls", *options, *common).status == 0
    assert rankrls("predict", files / "a.rankrls", files / "test.txt", "-o", files / "a.txt").status == 0
    return files


def test_json_is_the_report(models, rankrls):
    arguments = ("compare", models / "test.txt", models / "a.rankrls", models / "b.rankrls", "--metrics", "map,p@3")
    found = rankrls(*arguments, "--json", "--top", "2")
    assert found.status == 0, found.err
    scores = {}
    for name in ("a", "b"):
        rankrls("predict", models / f"{name}.rankrls", models / "test.txt", "-o", models / f"{name}.scores")
        scores[name] = np.loadtxt(models / f"{name}.scores")
    table = load_letor(models / "test.txt")
    wanted = compare_rankings(table.y, scores, qid=table.qid, measures=["map", "p@3"], convention="letor")
    assert found.json["measures"] == wanted.as_dict(top=2)["measures"]
    assert found.json["data"]["rows"] == table.n_rows


def test_scores_from_a_file_are_those_of_the_model(models, rankrls):
    found = rankrls(
        "compare", models / "test.txt", models / "a.rankrls", models / "a.txt", "--metrics", "map", "--json"
    )
    assert found.status == 0, found.err
    (pair,) = found.json["measures"]["map"]["pairs"]
    assert (pair["difference"], pair["wins"], pair["losses"], pair["p_randomization"]) == (0.0, 0, 0, 1.0)
    assert found.json["rankings"] == [str(models / "a.rankrls"), str(models / "a.txt")]


def test_table_and_page(models, rankrls):
    page = models / "r.html"
    found = rankrls(
        "compare", models / "test.txt", models / "a.rankrls", models / "b.rankrls", "--html", page, "--title", "T<"
    )
    assert found.status == 0, found.err
    assert "won/tied/lost" in found.out
    assert "Queries whose map changed most" in found.out
    assert "<title>T&lt;</title>" in page.read_text("utf-8")
    assert f"the page is {page}" in found.err


def test_baseline(models, rankrls):
    (models / "c.txt").write_text("".join(f"{k}\n" for k in range(96)))
    arguments = ("compare", models / "test.txt", models / "a.rankrls", models / "b.rankrls")
    found = rankrls(*arguments, "--baseline", models / "c.txt", "--metrics", "map", "--json")
    assert found.status == 0, found.err
    assert [(p["first"], p["second"]) for p in found.json["measures"]["map"]["pairs"]] == [("a", "c"), ("b", "c")]


def test_bad_input(models, refused):
    test, a, b = models / "test.txt", models / "a.rankrls", models / "b.rankrls"
    page = models / "r.html"
    refused("compare", test, a, "--html", page, Refusal("two rankings at least"))
    refused("compare", test, a, a, "--html", page, Refusal("named twice"))
    refused("compare", test, a, b, "--top", "0", Refusal("--top", "at least 1", parameter="top_queries"))
    refused("compare", test, a, b, "--metrics", "nonsense", Refusal("nonsense", parameter="measure"))
    refused("compare", test, a, models / "none.rankrls", Refusal("none.rankrls", kind=OSError))
    (models / "short.txt").write_text("1\n2\n")
    refused("compare", test, a, models / "short.txt", "--html", page, Refusal("short.txt has 2 scores"))
    (models / "bad.txt").write_text("1\nx\n")
    refused("compare", test, a, models / "bad.txt", Refusal("finite number", file="bad.txt", line=2))
    refused("compare", test, a, b, "--html", models / "no" / "r.html", Refusal("no", kind=OSError))
    assert not page.exists()


@pytest.mark.parametrize("columns", ["40", "72", "200"])
def test_every_number_has_a_name_at_any_width(files, rankrls, monkeypatch, columns):
    for name, alpha in (("one", "1"), ("another", "1000")):
        assert rankrls("fit", files / "train.txt", "-m", files / f"{name}.rankrls", "-q", "--alphas", alpha).status == 0
    models = [files / "one.rankrls", files / "another.rankrls"]
    argv = ("compare", files / "test.txt", *models, "--metrics", "map,ndcg@5")
    expected = set(rankrls(*argv).out.split())
    monkeypatch.setenv("COLUMNS", columns)
    shown = rankrls(*argv).out
    lines = [line for line in shown.splitlines() if "test.txt" not in line]
    assert {word for word in expected if not set(word) <= {"─"}} <= set(shown.split())
    assert max(map(len, lines)) <= max(int(columns), 60)
