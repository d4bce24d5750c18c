"""What is evaluated and compared: by the data's own columns, and by document ids under trec's convention."""

import numpy as np
import pandas as pd
import pytest
import pytrec_eval

from rankrls import RankRLS, save


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table with two columns that may be the label, and models fitted on either."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = ["qid,one,two,a,b"]
    rows += [f"{k // 6},{rng.integers(3)},{rng.integers(3)},{rng.normal()},{rng.normal()}" for k in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    return tmp_path / "t.csv"


def test_models_of_other_columns_are_an_error_that_names_both(table, rankrls, works):
    """Whichever comes last, no model's columns may decide what the comparison is about."""
    for label in ("one", "two"):
        works("fit", table, "--label", label, "--qid", "qid", "--features", "a,b", "-m", f"{label}.rankrls")
    values = []
    for pair in (("one.rankrls", "two.rankrls"), ("two.rankrls", "one.rankrls")):
        found = rankrls("compare", table, *pair)
        assert found.status != 0
        assert all(model in found.err for model in pair)
        options = ("--label", "one", "--metrics", "ndcg@5", "--json")
        measures = works("compare", table, *pair, *options).json["measures"]
        values.append({name: v["value"] for name, v in measures["ndcg@5"]["values"].items()})
    assert values[0] == values[1]


def test_trec_orders_ties_by_document_id_everywhere(files, letor, rows, works):
    X, y, qid = rows(4)
    X = np.round(X)
    ids = np.random.default_rng(0).permutation(len(y))
    lines = letor(files / "t.txt", X, y, qid).read_text().splitlines()
    (files / "t.txt").write_text("\n".join(f"{line} # docid = d{k}" for line, k in zip(lines, ids, strict=True)) + "\n")
    frame = pd.DataFrame(X, columns=[f"f{j + 1}" for j in range(5)])
    model = RankRLS().fit(frame, y, qid=qid)
    model.coef_ = np.array([1.0, 0.0, 0.0, -1.0, 0.0])
    save(model, "m.rankrls")
    qrel, run = {}, {}
    for q, k, label, score in zip(qid, ids, y, model.predict(frame), strict=True):
        qrel.setdefault(str(q), {})[f"d{k}"] = int(label)
        run.setdefault(str(q), {})[f"d{k}"] = float(score)
    theirs = pytrec_eval.RelevanceEvaluator(qrel, {"map"}).evaluate(run)
    expected = pytest.approx(np.mean([found["map"] for found in theirs.values()]), abs=1e-12)
    options = ("--convention", "trec", "--metrics", "map", "--json")
    save(RankRLS().fit(frame, y, qid=qid), "other.rankrls")
    works("convert", "t.txt", "shards", "--rows-per-file", "40")
    for data in ("t.txt", "shards"):
        assert works("evaluate", "m.rankrls", data, *options).json["measures"]["map"]["value"] == expected
        compared = works("compare", data, "m.rankrls", "other.rankrls", *options).json["measures"]["map"]["values"]
        assert compared["m"]["value"] == expected
    rows_in_order = works("evaluate", "m.rankrls", "t.txt", "--metrics", "map", "--json").json["measures"]["map"]
    assert rows_in_order["value"] != expected  # there are ties


def test_runs_and_judgements_of_trec_are_evaluated_and_compared_as_by_trec_eval(files, works, rankrls):
    rng = np.random.default_rng(0)
    qrel, runs = {}, {"a": {}, "b": {}}
    for q in range(12):
        qrel[f"q{q}"] = {f"d{k}": int(rng.integers(3)) for k in rng.permutation(20)[:10]}
        for name, run in runs.items():
            if (q, name) != (4, "b"):
                run[f"q{q}"] = {f"d{k}": float(rng.integers(5)) for k in rng.permutation(20)[:8]}
    lines = [f"{q} 0 {d} {label}" for q, labels in qrel.items() for d, label in labels.items()]
    (files / "qrels.txt").write_text("\n".join(lines))
    for name, run in runs.items():
        lines = [f"{q} Q0 {d} 0 {score} x" for q, scores in run.items() for d, score in scores.items()]
        (files / f"{name}.run").write_text("\n".join(lines))
    evaluator = pytrec_eval.RelevanceEvaluator(qrel, {"map", "bpref"})
    theirs = {name: evaluator.evaluate(run) for name, run in runs.items()}
    compared = works("compare", "--qrels", "qrels.txt", "a.run", "b.run", "--metrics", "map,bpref", "--json").json
    for name, values in theirs.items():
        told = works(
            "evaluate", "--qrels", "qrels.txt", f"{name}.run", "--metrics", "map,bpref", "--per-query", "--json"
        )
        assert told.json["counts"]["queries_without_results"] == (name == "b")
        for measure in ("map", "bpref"):
            expected = [values.get(q, {measure: 0.0})[measure] for q in qrel]
            assert told.json["per_query"][measure] == pytest.approx(expected, abs=1e-12)
            mean = pytest.approx(np.mean(expected), abs=1e-12)
            assert told.json["measures"][measure]["value"] == mean
            assert compared["measures"][measure]["values"][name]["value"] == mean
    assert "without results" in rankrls("evaluate", "--qrels", "qrels.txt", "b.run").err


@pytest.mark.filterwarnings("default")
def test_a_ranking_that_is_the_order_of_the_rows_is_noted(works, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"q": np.repeat(np.arange(40), 8), "y": np.tile([2, 1, 1, 0, 0, 0, 0, 0], 40)})
    np.savetxt("coarse.txt", rng.random(320) < 0.2)
    np.savetxt("fine.txt", rng.random(320))
    table.to_csv("t.csv", index=False)
    columns = ("--label", "y", "--qid", "q", "--metrics", "p@3")
    for scores in ("coarse.txt", "fine.txt"):
        said = works("evaluate", "t.csv", "--scores", scores, *columns).err
        assert ("in a random order" in said) == (scores == "coarse.txt")
    assert works("compare", "t.csv", "coarse.txt", "fine.txt", *columns).err.count("in a random order") == 1
