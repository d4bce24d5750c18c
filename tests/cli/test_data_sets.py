"""Commands on data that are read a part at a time, against the same data in one file."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, ipc

import rankrls
from rankrls.cli import main
from rankrls.io import save_letor
from rankrls.io.datasets import letor, opening
from rankrls.io.datasets.index import cut
from rankrls.persistence import read_info


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of shards, the same rows in one file, and other rows to judge by."""
    home = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    (home / "shards").mkdir()
    for name, queries in (("all", 60), ("other", 25)):
        qid = np.repeat(np.arange(queries), rng.integers(3, 30, queries))
        X = rng.normal(size=(len(qid), 5)).astype(np.float32) + 3
        y = np.digitize(X @ [1, 0.5, 0, 0, -1] + rng.normal(size=len(qid)), [1, 3]).astype(float)
        table = pa.table({"query": qid, "grade": y, **{f"f{k}": X[:, k] for k in range(5)}})
        pq.write_table(table, home / f"{name}.parquet")
        if name == "all":
            for k, start in enumerate(range(0, len(qid), 200)):
                pq.write_table(table.slice(start, 200), home / "shards" / f"part-{k}.parquet", row_group_size=90)
    return home


COLUMNS = ("--label", "grade", "--qid", "query")


def run(capsys, *words):
    status = main([*map(str, words)])
    out, err = capsys.readouterr()
    return status, out, err


def fit(capsys, data, model, *words):
    status, out, err = run(capsys, "fit", data, *COLUMNS, "--model", model, "--json", *words)
    assert status == 0, err
    return json.loads(out)


@pytest.mark.parametrize("scale", ["none", "standard", "standard-all", "minmax-all"])
def test_shards_are_the_one_file(folder, scale, tmp_path, capsys):
    given = ("--metric", "ndcg@5", "--scale", scale, "--test", folder / "other.parquet", "--metrics", "ndcg@5,map")
    whole = fit(capsys, folder / "all.parquet", tmp_path / "whole.rankrls", *given)
    parts = fit(capsys, folder / "shards", tmp_path / "parts.rankrls", "--memory", "1M", "--threads", "2", *given)
    assert parts["parts"] > 1
    assert parts["selection"]["how"] == whole["selection"]["how"]
    for name in ("value", "standard_error"):
        assert parts["selection"][name] == pytest.approx(whole["selection"][name], rel=1e-9)
    assert parts["chosen"]["alpha"] == pytest.approx(whole["chosen"]["alpha"], rel=1e-6)
    for name in ("ndcg@5", "map"):
        a, b = (found["measures"]["test"][name] for found in (parts, whole))
        assert a["value"] == pytest.approx(b["value"], rel=1e-9)
        assert a["queries"] == b["queries"]
    scores = []
    for model, data in (("parts", "shards"), ("whole", "all.parquet")):
        status, _, err = run(capsys, "predict", tmp_path / f"{model}.rankrls", folder / data, "-o", tmp_path / "scores")
        assert status == 0, err
        scores.append(np.loadtxt(tmp_path / "scores"))
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-6)


def test_a_pattern_validation_data_and_a_checkpoint(folder, tmp_path, capsys):
    given = ("--vali", folder / "other.parquet", "--metric", "map", "--alphas", "1,10,100")
    whole = fit(capsys, folder / "all.parquet", tmp_path / "a.rankrls", *given)
    pattern, folder_of_sums = folder / "shards" / "*.parquet", tmp_path / "sums"
    parts = fit(capsys, pattern, tmp_path / "b.rankrls", *given, "--checkpoint", folder_of_sums, "--memory", "1G")
    assert parts["selection"]["how"] == whole["selection"]["how"] == "validation data with 25 queries"
    assert parts["selection"]["value"] == pytest.approx(whole["selection"]["value"], rel=1e-9)
    assert (folder_of_sums / "manifest.json").exists()


def test_one_file_streams_where_it_does_not_fit(folder, tmp_path, capsys):
    found = fit(capsys, folder / "all.parquet", tmp_path / "m.rankrls", "--memory", "100K")
    assert found["parts"] > 1
    found = fit(capsys, folder / "all.parquet", tmp_path / "m.rankrls", "--memory", "1G")
    assert "parts" not in found


def test_text_that_does_not_fit_is_looked_at_once(folder, tmp_path, capsys, monkeypatch):
    passes = []
    monkeypatch.setattr(opening, "cut", lambda *given: (passes.append(1), cut(*given))[1])
    table = pq.read_table(folder / "all.parquet")
    X, y, qid = (table.select(names).to_pandas().to_numpy() for names in (["f0", "f1"], ["grade"], ["query"]))
    save_letor(tmp_path / "all.txt", X, y[:, 0], qid[:, 0])
    words = ("fit", tmp_path / "all.txt", "--model", tmp_path / "m", "--memory", "100K", "--json")
    status, out, err = run(capsys, *words)
    assert status == 0, err
    assert json.loads(out)["parts"] > 1
    assert len(passes) == 1


def test_a_query_longer_than_a_part_is_said(folder, tmp_path, capsys):
    table = pq.read_table(folder / "all.parquet")
    ids = np.maximum(table["query"].to_numpy(), 40)
    pq.write_table(table.set_column(0, "query", pa.array(ids)), tmp_path / "long.parquet")
    given = ("fit", tmp_path / "long.parquet", *COLUMNS, "--json", "--model", tmp_path / "m.rankrls")
    status, whole, _ = run(capsys, *given)
    assert status == 0
    status, parts, err = run(capsys, *given, "--memory", "100K")
    assert status == 0
    assert "longer than a part" in err
    a, b = (json.loads(out)["selection"]["value"] for out in (whole, parts))
    assert a == pytest.approx(b, rel=1e-9)


def test_other_methods(folder, tmp_path, capsys):
    given = ("--method", "sparse", "--kernel", "rbf", "--n-basis", "20", "--cv", "3")
    found = fit(capsys, folder / "shards", tmp_path / "m.rankrls", *given)
    assert found["selection"]["how"] == "3 folds of 60 queries"
    model = rankrls.load(tmp_path / "m.rankrls")
    assert model.X_fit_.shape == (20, 5)
    for more in ((), ("--vali", folder / "other.parquet")):
        words = ("--method", "cg", "--selection", "hybrid", "--patience", "3", *more)
        found = fit(capsys, folder / "shards", tmp_path / "cg.rankrls", *words, "--checkpoint", tmp_path / "sums")
        assert ("validation" if more else "queries held out") in found["selection"]["how"]


def test_provenance_says_how_it_was_learned(folder, tmp_path, capsys):
    fit(capsys, folder / "shards", tmp_path / "m.rankrls")
    given = read_info(tmp_path / "m.rankrls")["given"]
    assert given["streamed"]["engine"] == "threads"
    assert {"parts", "numpy", "blas"} <= given["streamed"].keys()
    assert len(given["files"]["train"]["files"]) == len(list((folder / "shards").iterdir()))
    assert given["columns"]["label"] == "grade"


def test_measures_of_a_folder(folder, tmp_path, capsys):
    fit(capsys, folder / "all.parquet", tmp_path / "m.rankrls")
    found = []
    for data in ("shards", "all.parquet"):
        status, out, err = run(
            capsys, "evaluate", tmp_path / "m.rankrls", folder / data, "--metrics", "ndcg@10,disagreement", "--json"
        )
        assert status == 0, err
        found.append(json.loads(out)["measures"])
    for name in ("ndcg@10", "disagreement"):
        for field in ("value", "standard_error", "queries"):
            assert found[0][name][field] == pytest.approx(found[1][name][field], rel=1e-9)


def test_scores_in_a_table(folder, tmp_path, capsys):
    fit(capsys, folder / "all.parquet", tmp_path / "m.rankrls")
    status, _, err = run(
        capsys, "predict", tmp_path / "m.rankrls", folder / "shards", "-o", tmp_path / "s.parquet", "--memory", "1M"
    )
    assert status == 0, err
    table = pq.read_table(tmp_path / "s.parquet")
    whole = pq.read_table(folder / "all.parquet")
    X = np.column_stack([whole[f"f{k}"] for k in range(5)])
    np.testing.assert_allclose(table["score"], X @ rankrls.load(tmp_path / "m.rankrls").coef_, rtol=1e-6)
    assert table["row"].to_pylist() == list(range(whole.num_rows))
    words = ("predict", tmp_path / "m.rankrls", folder / "shards", "--memory", "1M", "-o", tmp_path / "s.csv")
    status, _, err = run(capsys, *words)
    assert status == 0, err
    text = csv.read_csv(tmp_path / "s.csv")
    assert text["row"].to_pylist() == table["row"].to_pylist()
    assert text["score"].to_pylist() == table["score"].to_pylist()


@pytest.mark.parametrize("words", [("--top", "2"), ("--format", "trec", "--run", "mine"), ()], ids=str)
def test_rankings_of_a_folder_are_those_of_the_file(folder, words, tmp_path, capsys):
    fit(capsys, folder / "all.parquet", tmp_path / "m.rankrls")
    found = []
    for data, more in (("shards", ("--memory", "1M")), ("all.parquet", ())):
        status, out, err = run(capsys, "rank", tmp_path / "m.rankrls", folder / data, *words, *more)
        assert status == 0, err
        status, _, err = run(capsys, "rank", tmp_path / "m.rankrls", folder / data, *words, "-o", tmp_path / "text")
        assert status == 0, err
        assert (tmp_path / "text").read_text() == out
        found.append([line.split() for line in out.splitlines()])
    score = 4 if "trec" in words else 3
    assert len(found[0]) == len(found[1]) > 100
    for a, b in zip(*found, strict=True):
        assert a[:score] == b[:score]
        assert a[score + 1 :] == b[score + 1 :]
    np.testing.assert_allclose(*([float(line[score]) for line in lines[1:]] for lines in found), rtol=1e-6)


def test_a_ranking_in_a_table(folder, tmp_path, capsys):
    fit(capsys, folder / "all.parquet", tmp_path / "m.rankrls")
    whole = pq.read_table(folder / "all.parquet")
    ids = [f"item {k}" for k in range(whole.num_rows)]
    (tmp_path / "named").mkdir()
    pq.write_table(whole.append_column("item", [ids]), tmp_path / "named" / "all.parquet", row_group_size=100)
    words = ("rank", tmp_path / "m.rankrls", tmp_path / "named", "--top", "3", "--id", "item", "-o")
    status, _, err = run(capsys, *words, tmp_path / "r.parquet")
    assert status == 0, err
    table = pq.read_table(tmp_path / "r.parquet").to_pydict()
    assert list(table) == ["query", "rank", "item", "score", "row"]
    assert max(table["rank"]) == 3
    assert table["item"] == [ids[row] for row in table["row"]]
    status, _, err = run(capsys, *words, tmp_path / "r.arrow")
    assert status == 0, err
    assert ipc.open_file(tmp_path / "r.arrow").read_all().to_pydict() == table
    for word in (("--target", "1"), ("--global",), ("--ids", "comment")):
        status, _, err = run(capsys, "rank", tmp_path / "m.rankrls", folder / "shards", *word)
        assert status == 2
        assert word[0] in err


def test_models_are_compared_on_a_folder(folder, tmp_path, capsys):
    for name, alpha in (("a", "1"), ("b", "1e6")):
        fit(capsys, folder / "all.parquet", tmp_path / f"{name}.rankrls", "--alphas", alpha)
    models = [tmp_path / "a.rankrls", tmp_path / "b.rankrls"]
    found = []
    for data in ("shards", "all.parquet"):
        words = (
            "compare",
            folder / data,
            *models,
            "--metrics",
            "map,ndcg@5",
            "--json",
            "--html",
            tmp_path / "page.html",
        )
        status, out, err = run(capsys, *words, "--baseline", models[1])
        assert status == 0, err
        found.append(json.loads(out))
        assert (tmp_path / "page.html").read_text().count("map") > 2
    for name in ("map", "ndcg@5"):
        assert found[0]["measures"][name]["values"] == found[1]["measures"][name]["values"]
        a, b = (part["measures"][name]["pairs"][0] for part in found)
        assert [a[key] for key in a if key != "changed_most"] == [b[key] for key in b if key != "changed_most"]
        assert [c["difference"] for c in a["changed_most"]] == [c["difference"] for c in b["changed_most"]]
    (tmp_path / "scores.txt").write_text("1\n")
    status, _, err = run(capsys, "compare", folder / "shards", models[0], tmp_path / "scores.txt")
    assert status == 2
    assert "scores.txt" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--method", "ranksvm"), "all rows"),
        (("--pairs", "votes.csv"), "--pairs"),
        (("--columns", "auto"), "--columns"),
        (("--global",), "--global"),
        (("--memory", "much"), "--memory"),
        (("--kernel", "rbf"), "--kernel"),
    ],
)
def test_what_needs_all_rows(folder, words, said, tmp_path, capsys):
    status, _, err = run(capsys, "fit", folder / "shards", *COLUMNS, "--model", tmp_path / "m.rankrls", *words)
    assert status == 2
    assert said in err
    assert not (tmp_path / "m.rankrls").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "--items", "items.csv"),
        ("predict", "--group", "sizes"),
        ("evaluate", "--per-query"),
        ("evaluate", "--global"),
        ("evaluate", "--pairs", "votes.csv"),
        ("evaluate", "--event", "f0"),
    ],
    ids=str,
)
def test_what_needs_all_rows_of_other_commands(folder, words, tmp_path, capsys):
    fit(capsys, folder / "all.parquet", tmp_path / "m.rankrls")
    command, *options = words
    status, out, err = run(capsys, command, tmp_path / "m.rankrls", folder / "shards", *options)
    assert (status, out) == (2, "")
    assert f"{options[0]} needs all rows" in err


def test_a_checkpoint_needs_parts(folder, tmp_path, capsys):
    words = ("fit", folder / "all.parquet", *COLUMNS, "--model", tmp_path / "m", "--checkpoint", tmp_path / "c")
    status, _, err = run(capsys, *words)
    assert status == 2
    assert "--checkpoint" in err


class TestInfo:
    def info(self, capsys, *words):
        status, out, err = run(capsys, "info", *words)
        assert status == 0, err
        return out

    def test_what_is_in_a_folder(self, folder, capsys):
        table = pq.read_table(folder / "all.parquet")
        labels, sizes = table["grade"].to_pylist(), np.bincount(table["query"].to_numpy())
        files = [*(folder / "shards").iterdir()]
        for data in (folder / "shards", folder / "shards" / "*.parquet"):
            found = json.loads(self.info(capsys, data, *COLUMNS, "--json"))
            assert (found["rows"], found["queries"], found["files"]) == (len(labels), 60, len(files))
            assert found["labels"] == {f"{v:g}": labels.count(v) for v in sorted({*labels})}
            shape = {"least": sizes.min(), "median": np.median(sizes), "most": sizes.max()}
            assert found["rows_per_query"] == shape
            assert found["feature_names"] == [f"f{k}" for k in range(5)]
            assert found["row_groups"]["largest"] == 90
            assert found["bytes"] == sum(path.stat().st_size for path in files)
            assert found["dtype"] == "float32"
        shown = self.info(capsys, folder / "shards", *COLUMNS)
        assert "f0, f1, f2, f3, f4" in shown
        assert f"{sizes.min()} to {sizes.max()}" in shown

    def test_text_with_labels_of_many_values_and_none(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(letor, "_BLOCK", 300)
        rng = np.random.default_rng(0)
        save_letor(tmp_path / "a.txt", rng.random((90, 3)), rng.random(90), np.arange(90) // 20)
        found = json.loads(self.info(capsys, tmp_path / "a.txt", "--json"))
        assert found["labels"]["distinct"] == 90
        assert found["rows_per_query"] == {"least": 10, "median": 20, "most": 20}
        (tmp_path / "b.csv").write_text("qid,label,a\n1,2,1\n1,,2\n2,,3\n")
        found = json.loads(self.info(capsys, tmp_path / "b.csv", "--json"))
        assert found["labels"] == {"2": 1, "none": 2}
        assert "row_groups" not in found

    def test_columns_mean_nothing_for_a_model(self, folder, tmp_path, capsys):
        fit(capsys, folder / "all.parquet", tmp_path / "m.rankrls")
        status, _, err = run(capsys, "info", tmp_path / "m.rankrls", "--label", "grade")
        assert (status, "--label" in err) == (2, True)


def test_a_pattern_of_folders(folder, tmp_path, capsys):
    """The sign may stand in any part of a path."""
    pattern = folder / "sh*ds" / "part-0.parquet"
    assert "parts" in fit(capsys, pattern, tmp_path / "m.rankrls")
