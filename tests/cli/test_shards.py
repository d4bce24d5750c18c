"""Folders and patterns of Parquet shards: the same results as of one file."""

import json
import os
import weakref

import numpy as np
import pandas as pd
import pytest
from tests.refusals import Refusal

from rankrls import RankRLS, load, save
from rankrls.cli._files import score_rows
from rankrls.metrics._scorer import predict_by_query


@pytest.fixture
def shards(files, works):
    for name in ("train", "test"):
        works("convert", f"{name}.txt", f"{name}_shards", "--rows-per-file", "40")
    return files


@pytest.mark.parametrize(
    "extra", [(), ("--scale", "standard-all"), ("--scale", "log-all"), ("--vali", "test")], ids=str
)
def test_the_model_is_that_of_one_file(shards, works, extra):
    of_file = ["test.txt" if word == "test" else word for word in extra]
    of_shards = ["test_shards" if word == "test" else word for word in extra]
    one = works("fit", "train.txt", *of_file, "--metric", "ndcg@10", "--test", "test.txt", "-m", "one", "--json").json
    other = works(
        *("fit", "train_shards", *of_shards, "--metric", "ndcg@10", "--test", "test_shards", "-m", "other", "--json")
    ).json
    assert other["chosen"]["alpha"] == pytest.approx(one["chosen"]["alpha"])
    assert other["selection"]["value"] == pytest.approx(one["selection"]["value"])
    for name, found in one["measures"]["test"].items():
        assert other["measures"]["test"][name]["value"] == pytest.approx(found["value"], nan_ok=True)
    final = [model[-1] if hasattr(model, "steps") else model for model in (load("one"), load("other"))]
    np.testing.assert_allclose(final[1].coef_, final[0].coef_, rtol=1e-7)


@pytest.mark.parametrize("data", ["test_shards", "test_shards/*.parquet"])
def test_predictions_rankings_and_measures_are_those_of_one_file(shards, works, data):
    works("fit", "train_shards", "-m", "m.rankrls")
    works("convert", "test.txt", "test.parquet")
    expected = np.array([float(line) for line in works("predict", "m.rankrls", "test.parquet").out.split()])
    np.testing.assert_allclose([float(line) for line in works("predict", "m.rankrls", data).out.split()], expected)
    works("predict", "m.rankrls", data, "-o", "scores.parquet")
    np.testing.assert_allclose(pd.read_parquet("scores.parquet")["score"], expected)
    ranked = [works("rank", "m.rankrls", each, "--top", "3").out.splitlines() for each in (data, "test.parquet")]
    assert [line.split("\t")[:3] for line in ranked[0]] == [line.split("\t")[:3] for line in ranked[1]]
    assert [line.split("\t")[-1] for line in ranked[0]] == [line.split("\t")[-1] for line in ranked[1]]
    one, other = (works("evaluate", "m.rankrls", each, "--json").json["measures"] for each in ("test.parquet", data))
    assert {name: found["value"] for name, found in one.items()} == pytest.approx(
        {name: found["value"] for name, found in other.items()}
    )
    works("fit", "train_shards", "--alphas", "1000", "-m", "b.rankrls")
    one, other = (works("compare", each, "m.rankrls", "b.rankrls", "--json").json for each in ("test.parquet", data))
    assert json.dumps(other["measures"]["map"]["values"]) == json.dumps(one["measures"]["map"]["values"])


def test_rows_in_any_order_are_predicted_ranked_and_evaluated_and_sorted_to_be_fitted(shards, works, refused):
    """Scores, rankings and measures are those of one file; a fit needs the rows of a query together."""
    works("fit", "train_shards", "-m", "m.rankrls")
    works("convert", "test.txt", "test.parquet")
    rows = pd.read_parquet("test.parquet").sample(frac=1, random_state=0)
    os.mkdir("mixed")
    for k, part in enumerate(np.array_split(np.arange(len(rows)), 3)):
        rows.iloc[part].to_parquet(f"mixed/part-{k}.parquet", index=False)
    rows.to_parquet("all.parquet", index=False)
    one, other = (works("predict", "m.rankrls", data).out for data in ("all.parquet", "mixed"))
    np.testing.assert_allclose([*map(float, other.split())], [*map(float, one.split())])
    one, other = (works("evaluate", "m.rankrls", data, "--json").json for data in ("all.parquet", "mixed"))
    assert other["measures"]["map"]["value"] == pytest.approx(one["measures"]["map"]["value"])
    one, other = (works("rank", "m.rankrls", data).out.splitlines() for data in ("all.parquet", "mixed"))
    for line, words in zip(one[1:], other[1:], strict=True):
        *about, score, row = line.split("\t")
        assert words.split("\t")[:3] + words.split("\t")[4:] == [*about, row]
        assert float(words.split("\t")[3]) == pytest.approx(float(score))
    refused("fit", "mixed", "-m", "n.rankrls", Refusal("--sort", parameter="qid"))
    refused("convert", "all.parquet", "b.parquet", "--sort", Refusal("--rows-per-file", parameter="sort"))
    refused("split", "mixed", "mixed", "--force", Refusal("replace files", parameter="folder"))
    works("convert", "mixed", "sorted", "--rows-per-file", "30", "--sort")
    works("fit", "sorted", "-m", "n.rankrls")


def test_an_evaluation_keeps_no_features(shards, works, monkeypatch):
    features = []

    def scored_and_watched(stored, chunk, report):
        assert not any(each() is not None for each in features)
        features.append(weakref.ref(chunk.X if chunk.X.base is None else chunk.X.base))
        return score_rows(stored, chunk, report)

    works("fit", "train_shards", "-m", "m.rankrls")
    monkeypatch.setattr("rankrls.cli._files.score_rows", scored_and_watched)
    works("evaluate", "m.rankrls", "test_shards")
    assert len(features) > 1


def test_an_evaluation_of_test_shards_keeps_no_features(shards, works, monkeypatch):
    features = []

    def predicted_and_watched(model, X, qid):
        assert not any(each() is not None for each in features)
        features.append(weakref.ref(X if X.base is None else X.base))
        return predict_by_query(model, X, qid)

    monkeypatch.setattr("rankrls.cli.commands.fit.predict_by_query", predicted_and_watched)
    works("fit", "train_shards", "--test", "test_shards", "-m", "m.rankrls")
    assert len(features) > 1


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (("--global",), "all_rows"),
        (("--pairs", "pairs.csv"), "pairs"),
        (("--columns", "auto"), None),
        (("--method", "ranksvm"), "data"),
        (("--cv", "leave_pair_out"), "cv"),
        (("--set", "positive=1"), "positive"),
    ],
)
def test_what_needs_all_rows_in_memory(shards, refused, words, parameter):
    (shards / "pairs.csv").write_text("winner,loser\n0,1\n")
    refused("fit", "train_shards", *words, "-m", "m.rankrls", Refusal(parameter=parameter))


@pytest.mark.parametrize("column", ["label", "f1"])
def test_a_value_that_is_too_large_is_found_in_its_data(shards, refused, works, column):
    works("convert", "train.txt", "train.parquet")
    frame = pd.read_parquet("train.parquet")
    frame.loc[7, column] = 1e300
    os.mkdir("huge")
    frame.to_parquet("huge/part.parquet", index=False)
    refused("fit", "huge", "-m", "m.rankrls", Refusal("row 7", file="huge"))


def test_only_parquet_is_streamed(shards, refused):
    (shards / "texts").mkdir()
    (shards / "train.txt").rename(shards / "texts" / "train.txt")
    refused("fit", "texts", "-m", "m.rankrls", Refusal("convert"))


def test_an_interval_ends_at_one_for_one_file_and_for_shards(files, letor, works):
    y, qid = np.ones(60), np.repeat(np.arange(6), 10)
    y[:7] = 0.0
    X = pd.DataFrame({"f1": y.copy(), "f2": np.linspace(0.0, 1.0, 60)})
    X.loc[0, "f1"] = 2.0
    model = RankRLS().fit(X, y, qid=qid)
    model.coef_ = np.array([1.0, 0.0])
    save(model, "m.rankrls")
    letor(files / "t.txt", X.to_numpy(), y, qid)
    works("convert", "t.txt", "shards", "--rows-per-file", "20")
    for data in ("t.txt", "shards"):
        found = works("evaluate", "m.rankrls", data, "--metrics", "p@5", "--json").json["measures"]["p@5"]
        low, high = found["interval"]
        assert low < found["value"] < high == 1.0


def test_models_that_encode_tables_read_the_files_of_a_folder_one_by_one(tmp_path, monkeypatch, works, refused):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "query": np.repeat([f"q{k}" for k in range(12)], 6),
            "tint": rng.choice(["red", "blue", None], 72),
            "price": np.where(rng.random(72) < 0.2, np.nan, rng.normal(size=72)),
            "grade": rng.integers(0, 3, 72),
        }
    ).sample(frac=1.0, random_state=0)  # each query is in both files
    frame.to_csv("all.csv", index=False)
    (tmp_path / "parts").mkdir()
    frame[:30].to_parquet("parts/part-0.parquet", index=False)
    frame[30:].to_parquet("parts/part-1.parquet", index=False)
    works("fit", "all.csv", "--label", "grade", "--qid", "query", "--columns", "auto", "-m", "m.rankrls")
    scores = [np.array(works("predict", "m.rankrls", data).out.split(), float) for data in ("parts", "all.csv")]
    np.testing.assert_allclose(*scores, rtol=1e-9)
    measures = [works("evaluate", "m.rankrls", data, "--json").json["measures"] for data in ("parts", "all.csv")]
    assert measures[0]["map"]["queries"] == 12
    for name, found in measures[1].items():
        assert measures[0][name]["value"] == pytest.approx(found["value"])
    ranked = [works("rank", "m.rankrls", data).out for data in ("parts", "all.csv")]
    for one, other in zip(*(text.splitlines()[1:] for text in ranked), strict=True):
        assert one.split("\t")[:3] == other.split("\t")[:3]
    scaled = ("--columns", "auto", "--scale", "standard", "-m", "scaled.rankrls")
    works("fit", "all.csv", "--label", "grade", "--qid", "query", *scaled)
    refused("rank", "scaled.rankrls", "parts", Refusal("whole queries", file="scaled.rankrls"))
