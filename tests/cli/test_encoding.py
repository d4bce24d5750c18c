"""Tables with categories, gaps, dates and texts on the command line: the same as TableEncoder in a pipeline."""

import io
import json
import shlex
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.export import engines
from tests.refusals import Refusal

from rankrls import RankRLSCV, load
from rankrls.io import load_table
from rankrls.persistence import read_info
from rankrls.preprocessing import TableEncoder


def shop(seed=0, queries=14, extra=()):
    rng = np.random.default_rng(seed)
    m = queries * 8
    pick = lambda values: [values[k] for k in rng.integers(len(values), size=m)]
    words = ["red", "blue", "shoe", "shirt", "summer"]
    day = lambda k: f"2023-{k % 12 + 1:02d}-03" if k % 2 else f"3.{k % 12 + 1}.2021"
    frame = pd.DataFrame(
        {
            "query": np.repeat([f"{words[k % 5]} {words[(k + 2) % 5]} {seed}" for k in range(queries)], 8),
            "product": [f"P{seed}-{k:03d}" for k in range(m)],
            "brand": pick(["H&M", 'The "Best"', "Zed, Inc", "", *extra]),
            "price": ["" if rng.random() < 0.1 else f"{v:.2f}" for v in rng.lognormal(3, 1, m)],
            "stock": rng.integers(0, 9, m),
            "added": [day(int(k)) for k in rng.integers(0, 24, m)],
            "title": [" ".join(pick(words)[:3]) for _ in range(m)],
            "url": [f"/{seed}/{k}" for k in range(m)],
        }
    )
    frame["grade"] = np.digitize((frame["brand"] == "H&M") + rng.normal(size=m), [0.3, 1.0])
    return frame


ROLES = ["--label", "grade", "--qid", "query", "--id", "product"]
SAID = ["--categorical", "brand", "--impute", "median", "--dates", "added", "--text", "title", "--ignore", "url"]


@pytest.fixture
def fails(refused):
    """Run a command that must end with one clear line, which has some words and is given back."""

    def run(*argv, words=("",)):
        return refused(*argv, Refusal(*words))

    return run


@pytest.fixture
def tables(tmp_path):
    for seed, name in enumerate(("train", "test")):
        shop(seed, extra=["New"] if seed else []).to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def fit(rankrls, tables, *more, data="train.csv"):
    model = tables / "m.rankrls"
    result = rankrls("fit", tables / data, *ROLES, "-m", model, "--json", *more)
    assert result.status == 0, result.err
    return model, result.json


def read(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def test_the_model_is_that_of_a_pipeline(tables, rankrls):
    model, found = fit(rankrls, tables, *SAID, "--scale", "standard-all", "--test", tables / "test.csv")
    train, test = read(tables / "train.csv"), read(tables / "test.csv")
    encoder = TableEncoder(
        columns="named", categorical="brand", dates="added", text="title", ignore="url", query_text="query"
    )
    columns = ["brand", "price", "stock", "added", "title", "url", "query"]
    alone = make_pipeline(encoder, StandardScaler(), RankRLSCV())
    alone.fit(train[columns], train["grade"].astype(float), rankrlscv__qid=train["query"])
    expected = alone.predict(test)
    scores = rankrls("predict", model, tables / "test.csv")
    np.testing.assert_allclose([float(line) for line in scores.out.split()], expected, rtol=1e-12)
    whole = load(model)
    assert [type(step).__name__ for _, step in whole.steps] == ["TableEncoder", "StandardScaler", "RankRLSCV"]
    np.testing.assert_allclose(whole.predict(test), expected, rtol=1e-12)
    used = {use["name"]: (use["kind"], use["n_missing"]) for use in found["columns_used"]}
    assert used["price"] == ("number", int((train["price"] == "").sum()))
    assert used["query"][0] == "query text"
    assert read_info(model)["given"]["columns_used"] == found["columns_used"]
    assert read_info(model)["steps"] == ["TableEncoder", "StandardScaler"]
    assert found["data"]["train"]["features"] == len(encoder.get_feature_names_out())


def test_missing_and_unseen_cells_are_counted(tables, rankrls):
    model, _ = fit(rankrls, tables, *SAID)
    test = read(tables / "test.csv")
    for command in (["predict", model], ["evaluate", model], ["rank", model]):
        err = rankrls(*command, tables / "test.csv").err
        assert f"brand {(test['brand'] == '').sum()} missing and {(test['brand'] == 'New').sum()} unseen" in err
        assert f"price {(test['price'] == '').sum()} missing" in err


def test_columns_are_decided_and_printed(tables, rankrls):
    shown = rankrls("fit", tables / "train.csv", *ROLES, "--columns", "auto", "-m", tables / "m.rankrls")
    assert shown.status == 0, shown.err
    lines = {line.split()[0]: line.split()[1:] for line in shown.out.splitlines() if line}
    assert lines["brand"][0] == "category"
    assert lines["url"][:3] == ["unused", "like", "an"]
    assert lines["added"][0] == "date"
    info = rankrls("info", tables / "m.rankrls")
    assert next(line for line in info.out.splitlines() if line.startswith("brand")).split()[1] == "category"
    curve = rankrls("cv", tables / "train.csv", *ROLES, "--columns", "auto", "--json")
    assert {use["name"] for use in curve.json["columns_used"]} == {*lines} & {*read(tables / "train.csv")}


def test_formats_are_the_same(tables, rankrls):
    frame = read(tables / "train.csv")
    typed = frame.assign(
        price=pd.to_numeric(frame["price"]), stock=frame["stock"].astype(int), grade=frame["grade"].astype(int)
    )
    typed["brand"] = typed["brand"].replace("", None)
    typed.to_parquet(tables / "train.parquet", index=False)
    typed.to_feather(tables / "train.feather")
    frame.to_csv(tables / "train.tsv", sep="\t", index=False)
    _, expected = fit(rankrls, tables, *SAID)
    for ending in ("parquet", "feather", "tsv"):
        _, found = fit(rankrls, tables, *SAID, data=f"train.{ending}")
        assert found["measures"] == expected["measures"]


def test_explain_and_compare(tables, rankrls):
    model, _ = fit(rankrls, tables, *SAID)
    found = rankrls(
        "explain", model, tables / "test.csv", "P1-000", "P1-001", "--ids", "docid", "--top", "0", "--json"
    ).json
    features = {entry["feature"] for entry in found["contributions"]}
    assert features <= {*load(model)[0].get_feature_names_out()}
    assert any("(" in name or "=" in name for name in features)
    other = shutil.copy(model, tables / "other.rankrls")
    result = rankrls("compare", tables / "test.csv", model, other, "--metrics", "map", "--json")
    assert result.status == 0, result.err


def test_from_a_table_to_solr(tables, rankrls):
    model, _ = fit(rankrls, tables, *SAID, "--text-features", "matches,word", "--scale", "standard-all")
    done = rankrls("export", model, tables / "model.json", "--format", "solr", "--store", "shop", "--offset", "2")
    assert done.status == 0, done.err
    assert "features.json" in done.err
    test = load_raw(tables / "test.csv")
    documents = engines.Documents(test, ("added",), test["query"])
    features = engines.solr_features((tables / "features.json").read_text(), documents)
    scores = engines.solr((tables / "model.json").read_text(), features.__getitem__)
    expected = [float(line) for line in rankrls("predict", model, tables / "test.csv").out.split()]
    np.testing.assert_allclose(scores, np.array(expected) + 2.0, atol=2e-4)
    both = ("export", model, tables / "features.json", "--format", "solr")
    assert "--definitions" in rankrls(*both).err
    there = {*tables.iterdir()}
    done = rankrls(
        "export", model, tables / "es.json", "--format", "elasticsearch", "--definitions", tables / "set.json"
    )
    assert {path.name for path in {*tables.iterdir()} - there} == {"es.json", "set.json"}
    assert json.loads((tables / "set.json").read_text())["featureset"]["features"]


def load_raw(path):
    """The rows of a file as documents: numbers, and dates in seconds since 1970."""
    rows = read(path).replace("", None).to_dict("list")
    seconds = lambda text: pd.Timestamp(
        text if "-" in text else "-".join(reversed([p.zfill(2) for p in text.split(".")]))
    ).timestamp()
    number = lambda text: None if text is None else float(text)
    rows = {name: [None if cell is None or cell != cell else cell for cell in cells] for name, cells in rows.items()}
    return {
        **rows,
        "added": [seconds(text) for text in rows["added"]],
        "price": [number(text) for text in rows["price"]],
        "stock": [number(text) for text in rows["stock"]],
    }


def test_what_solr_cannot_compute_is_named_and_nothing_written(tables, fails, rankrls):
    model, _ = fit(rankrls, tables, *SAID)
    words = ("TF-IDF", "--text-features matches")
    fails("export", model, tables / "model.json", "--format", "solr", words=words)
    assert {path.name for path in tables.iterdir()} == {"train.csv", "test.csv", "m.rankrls"}


def test_one_error_names_every_column(tables, fails):
    columns = ("'brand' (categories: ", "'price' (numbers, ", "'added' (dates: ", "'title' (", "'url' (like an id")
    options = ("--categorical brand", "--impute median", "--dates added", "--ignore url", "--columns auto")
    fails("fit", tables / "train.csv", *ROLES, "-m", tables / "m.rankrls", words=(*columns, *options))


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        (["--label", "grade", "--id", "product"], ("there is 'query'", "--qid", "--global")),
        (["--id", "product"], ("no column 'label'", "--label", "there is 'query'", "--qid")),
        (["--label", "title", "--qid", "query", "--id", "product"], ("labels are numbers",)),
    ],
    ids=["no qid", "neither label nor qid", "labels of text"],
)
def test_it_names_them_where_labels_or_queries_are_amiss_too(roles, said, tables, refused):
    columns = ("'price' (numbers, ", "'added' (dates: ", "'url' (like an id", "--dates added", "--ignore url")
    files = ("fit", tables / "train.csv", "-m", tables / "m.rankrls")
    text = refused(*files, *roles, Refusal(*columns, *said, file="train.csv", remedy="columns='auto'"))
    assert "'query' (" not in text  # a line that was pasted would make it a category
    assert ("'title' (" in text) == ("title" not in roles)


def test_the_line_to_paste_works(tables, fails, rankrls):
    read(tables / "train.csv").rename(columns={"brand": "the brand, as sold"}).to_csv(tables / "odd.csv", index=False)
    line = fails("fit", tables / "odd.csv", *ROLES, "-m", tables / "m.rankrls")
    fit(rankrls, tables, *shlex.split(line[line.index("Give --") + 5 : line.index("; or let")]), data="odd.csv")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--columns", "auto", "--categorical", "brnd"], ["no column 'brnd'"]),
        (["--columns", "auto", "--categorical", "url"], ["train.csv: ", "'url'", "--ignore"]),
        (["--columns", "auto", "--impute", "meidan"], ["--impute"]),
        (["--columns", "auto", "--impute", "brand=0"], ["--impute", "'brand'"]),
        (["--features", "brand", "--categorical", "brand", "--impute", "0"], ["--impute"]),
        (["--columns", "auto", "--dates", "title"], ["train.csv:2: ", "'title'", "--date-format"]),
        (["--columns", "auto", "--text-features", "bm25"], ["--text-features"]),
        (["--columns", "some"], ["--columns"]),
        (["--dates", "added", "--categorical", "added"], ["--dates", "'added'"]),
    ],
    ids=str,
)
def test_bad_input(options, words, tables, fails):
    fails("fit", tables / "train.csv", *ROLES, "-m", tables / "m.rankrls", *options, words=words)


def test_a_date_that_is_none_is_told_with_its_line(tables, fails, rankrls):
    test = (tables / "test.csv").read_text().splitlines()
    test[3] = test[3].replace("2023-", "soon-").replace(".2021", ".soon")
    (tables / "bad.csv").write_text("\n".join(test) + "\n")
    words = ("bad.csv:4: ", "soon", "'added'")
    fails("fit", tables / "bad.csv", *ROLES, *SAID, "-m", tables / "x.rankrls", words=words)
    model, _ = fit(rankrls, tables, *SAID)
    fails("predict", model, tables / "bad.csv", words=words)
    read(tables / "test.csv").drop(columns=["brand", "title"]).to_csv(tables / "less.csv", index=False)
    fails("predict", model, tables / "less.csv", words=("'brand', 'title'",))


def test_a_table_with_none_of_the_columns(tables, refused, rankrls):
    model, _ = fit(rankrls, tables, *SAID)
    (tables / "other.csv").write_text("a,b\n1,2\n")
    refused("predict", model, tables / "other.csv", Refusal("none of the columns", "'brand'", file="other.csv"))


def test_files_by_number_have_no_columns(tables, files, fails, rankrls):
    fails("fit", files / "train.txt", "--columns", "auto", "-m", tables / "m.rankrls", words=("LETOR",))
    model, _ = fit(rankrls, tables, *SAID)
    fails("predict", model, files / "train.txt", words=("LETOR",))


def test_preferences_between_rows_of_a_table(tables, rankrls):
    pd.DataFrame({"winner": [0, 2, 5, 9], "loser": [1, 3, 4, 8]}).to_csv(tables / "votes.csv", index=False)
    model = tables / "m.rankrls"
    options = ["--pairs", tables / "votes.csv", "--ignore", "grade,product,query", "--columns", "auto"]
    result = rankrls("fit", tables / "train.csv", *options, "-m", model)
    assert result.status == 0, result.err
    assert len(rankrls("predict", model, tables / "test.csv").out.split()) == len(
        load_table(tables / "test.csv", features=["stock"], label="grade").y
    )


def test_rows_from_standard_input(tables, rankrls, monkeypatch):
    model, _ = fit(rankrls, tables, *SAID)
    expected = rankrls("predict", model, tables / "test.csv").out
    stream = io.TextIOWrapper(io.BytesIO((tables / "test.csv").read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert rankrls("predict", model, "-", "--input-format", "csv").out == expected


def test_one_ranking_of_all_rows_and_censored_times(tables, rankrls):
    frame = read(tables / "train.csv").assign(days=np.arange(1, 113), died=[k % 3 > 0 for k in range(112)])
    frame.to_csv(tables / "train.csv", index=False)
    common = ["fit", tables / "train.csv", "--global", "--columns", "auto", "-m", tables / "m.rankrls", "--json"]
    one = rankrls(*common, "--label", "grade", "--id", "product", "--ignore", "days,died,query")
    assert one.status == 0, one.err
    times = rankrls(*common, "--label", "days", "--event", "died", "--ignore", "grade,product,query")
    assert times.status == 0, times.err
    used = {use["name"] for use in times.json["columns_used"]}
    assert used == {"brand", "price", "stock", "added", "title", "url"}
    model = load(tables / "m.rankrls")
    assert np.ptp(model.predict(frame)) > 0


def test_votes_have_no_columns_of_rows(tables, fails):
    (tables / "votes.csv").write_text("won,lost\na,b\nb,c\n")
    command = ("fit", tables / "votes.csv", "--winner", "won", "--loser", "lost", "-m", tables / "m.rankrls")
    fails(*command, "--columns", "auto", words=("--columns", "--winner"))
