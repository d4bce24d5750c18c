"""CSV and Parquet on the command line: the same results as from LETOR text, and columns matched by name."""

import gzip
import io
import sys

import numpy as np
import pandas as pd
import pytest
from tests.refusals import Refusal

from rankrls import RankRLS, load, save
from rankrls.persistence import read_info

NAMES = ["bm25", "clicks", "age", "price", "length"]


def frame_of(X, y, qid):
    frame = pd.DataFrame(X, columns=NAMES)
    frame.insert(0, "grade", y)
    frame.insert(2, "query", [f"q {q}" for q in qid])
    frame["url"] = [f"/{k}" for k in range(len(X))]
    return frame


@pytest.fixture
def frames(files, rows):
    """train, vali and test as LETOR text and, with columns in another order each, as CSV and Parquet."""
    for seed, name in enumerate(("train", "vali", "test"), start=1):
        frame = frame_of(*rows(seed))
        frame = frame[[*np.roll(frame.columns.to_numpy(), seed - 1)]]
        frame.to_csv(files / f"{name}.csv", index=False)
        frame.to_csv(files / f"{name}.tsv", index=False, sep="\t")
        frame.to_parquet(files / f"{name}.parquet", index=False)
        frame.to_feather(files / f"{name}.feather")
    return files


COLUMNS = ["--label", "grade", "--qid", "query", "--id", "url"]


def fit(rankrls, folder, ending, *more):
    model = folder / f"{ending}.rankrls"
    data = [folder / f"train.{ending}", "--vali", folder / f"vali.{ending}", "--test", folder / f"test.{ending}"]
    result = rankrls("fit", *data, "-m", model, "--json", *more)
    assert result.status == 0, result.err
    return model, result.json


@pytest.mark.parametrize("scale", ["none", "minmax", "standard-all"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "feather"])
def test_fit_predict_and_evaluate_as_from_letor(ending, scale, frames, rankrls):
    letor, expected = fit(rankrls, frames, "txt", "--scale", scale)
    model, found = fit(rankrls, frames, ending, "--scale", scale, *COLUMNS)
    assert found["measures"] == expected["measures"]
    assert found["chosen"] == expected["chosen"]
    assert found["notes"] == []
    assert found["data"]["test"]["queries"] == expected["data"]["test"]["queries"]
    shown = rankrls("predict", model, frames / f"test.{ending}")
    assert shown.err == ""
    assert shown.out == rankrls("predict", letor, frames / "test.txt").out
    options = ("--metrics", "map,ndcg@10", "--json")
    one = rankrls("evaluate", letor, frames / "test.txt", *options).json
    other = rankrls("evaluate", model, frames / f"test.{ending}", *options)
    assert other.err == ""
    assert other.json["measures"] == one["measures"]


def test_the_model_knows_its_features_by_name(frames, rankrls, rows):
    model, _ = fit(rankrls, frames, "csv", *COLUMNS, "--scale", "standard-all")
    info = read_info(model)
    assert info["feature_names"] == NAMES
    assert info["given"]["columns"] == {"label": "grade", "qid": "query", "id": "url"}
    X = frame_of(*rows(3))[NAMES]
    lines = rankrls("predict", model, frames / "test.csv").out.split()
    np.testing.assert_array_equal(load(model).predict(X), [float(line) for line in lines])
    with Refusal("feature names should match", kind=ValueError):
        load(model).predict(X[NAMES[::-1]])


def test_predict_takes_columns_by_name(frames, rankrls, refused, rows):
    model, _ = fit(rankrls, frames, "csv", *COLUMNS)
    expected = rankrls("predict", model, frames / "test.csv").out
    frame = frame_of(*rows(3))
    frame.assign(junk="x")[["junk", *NAMES[::-1]]].to_csv(frames / "new.csv", index=False)  # no label, no query
    assert rankrls("predict", model, frames / "new.csv").out == expected
    frame.drop(columns=["age"]).rename(columns={"price": "prize"}).to_csv(frames / "less.csv", index=False)
    refused(
        "predict",
        model,
        frames / "less.csv",
        Refusal("no columns", "'age', 'price'", parameter="features", column="age", file="less.csv", line=1),
    )
    refused("predict", model, frames / "test.csv", "--features", "age", Refusal("names its features itself"))
    refused(
        "predict",
        model,
        frames / "test.csv",
        "--qid",
        "qurey",
        Refusal("no column", "for the query id", parameter="qid", column="qurey", file="test.csv", line=1),
    )
    refused(
        "evaluate",
        model,
        frames / "new.csv",
        Refusal("no column", parameter="label", column="grade", file="new.csv", line=1),
    )
    refused(
        "predict",
        model,
        frames / "train.txt",
        "--input-format",
        "csv",
        Refusal("no columns", "'bm25'", parameter="features", column="bm25", file="train.txt", line=1),
    )


def test_a_model_of_numbered_features_and_a_table(frames, rankrls, refused):
    model, _ = fit(rankrls, frames, "txt")
    expected = rankrls("predict", model, frames / "train.txt").out
    table = frames / "train.csv"
    refused("predict", model, table, Refusal("'q 100'", "value", column="query", file="train.csv", line=2))
    refused("predict", model, table, "--ignore", "url,grade,query,age", Refusal("4 columns", "bm25, clicks"))
    for options in (["--features", ",".join(NAMES)], ["--ignore", "url,query,grade"]):
        found = rankrls("predict", model, table, *options)
        assert found.out == expected
        assert f"are taken in this order: {', '.join(NAMES)}." in found.err
    found = rankrls("predict", fit(rankrls, frames, "csv", *COLUMNS)[0], frames / "train.txt")
    assert found.out == expected
    assert "train.txt has features by number; the model's, in their order, are bm25, clicks" in found.err


def test_a_model_fitted_on_a_frame_in_python(frames, rankrls, rows):
    X, y, qid = rows(1)
    model = RankRLS(alpha=2.0).fit(pd.DataFrame(X, columns=NAMES), y, qid=qid)
    save(model, frames / "py.rankrls")
    found = rankrls("predict", frames / "py.rankrls", frames / "test.csv")
    test = frame_of(*rows(3))
    assert found.err == ""
    np.testing.assert_array_equal([float(v) for v in found.out.split()], model.predict(test[NAMES]))


def test_features_by_pattern_and_by_exclusion(frames, rankrls):
    for options in (["--features", "?rice,*5,c*"], ["--ignore", "url,age,l*"]):
        model, found = fit(rankrls, frames, "csv", "--label", "grade", "--qid", "query", *options)
        assert sorted(read_info(model)["feature_names"]) == ["bm25", "clicks", "price"]
        assert found["data"]["train"]["features"] == 3


def test_names_with_commas(frames, rankrls, refused):
    called = {"bm25": 'bm25("a,b")', "price": "price, EUR"}
    for name in ("train", "test"):
        pd.read_csv(frames / f"{name}.csv").rename(columns=called).to_csv(frames / f"{name}.csv", index=False)
    fit = ["fit", frames / "train.csv", "--label", "grade", "--qid", "query", "-m", frames / "m.rankrls"]
    for features in ('"price, EUR","bm25(""a,b"")",age', ' age , "price, EUR", bm25("a*', '"*,*",age'):
        found = rankrls(*fit, "--features", features)
        assert found.status == 0, found.err
        assert sorted(read_info(frames / "m.rankrls")["feature_names"]) == ["age", called["bm25"], called["price"]]
    assert rankrls("predict", frames / "m.rankrls", frames / "test.csv").err == ""
    assert rankrls(*fit, "--ignore", 'url,"price, EUR"').status == 0
    assert sorted(read_info(frames / "m.rankrls")["feature_names"]) == ["age", called["bm25"], "clicks", "length"]
    assert rankrls(*fit, "--ignore", "url", "--positive", '"price, EUR",age').status == 0
    refused(
        *fit,
        "--features",
        "price, EUR,age",
        Refusal("no columns", "'price', 'EUR'", parameter="features", column="price", file="train.csv", line=1),
    )
    refused(*fit, "--features", '"price, EUR', Refusal("--features", "cell 1", "quote", parameter="features"))
    refused(*fit, "--features", 'age,""', Refusal("--features", "between commas", parameter="features"))


def test_cv_and_compare(frames, rankrls):
    options = ["--alphas", "0.1:10:3", "--metrics", "map", "--json"]
    one = rankrls("cv", frames / "train.txt", *options).json
    other = rankrls("cv", frames / "train.parquet", *COLUMNS, *options).json
    assert other["curve"] == one["curve"]
    linear, _ = fit(rankrls, frames, "csv", *COLUMNS)
    scaled, _ = fit(rankrls, frames, "parquet", *COLUMNS, "--scale", "minmax")
    rankrls("predict", linear, frames / "test.csv", "-o", frames / "scores.csv")
    argv = ["compare", frames / "test.csv", linear, scaled, frames / "scores.csv", "--metrics", "map"]
    found = rankrls(*argv, *COLUMNS)
    assert found.status == 0, found.err
    line = next(line for line in found.out.splitlines() if line.startswith("map "))
    of_linear, of_scaled, of_scores = (part.split("[")[0].strip() for part in line.removeprefix("map ").split("]")[:3])
    assert of_linear == of_scores != of_scaled


def test_tables_of_scores(frames, rankrls, refused):
    model, _ = fit(rankrls, frames, "csv", *COLUMNS)
    plain = rankrls("predict", model, frames / "test.csv").out.split()
    for ending in ("csv", "tsv", "parquet", "csv.gz"):
        path = frames / f"scores.{ending}"
        assert rankrls("predict", model, frames / "test.csv", "-o", path).status == 0
        table = (
            pd.read_parquet(path) if ending == "parquet" else pd.read_csv(path, sep="\t" if ending == "tsv" else ",")
        )
        assert [*table.columns] == ["query", "url", "score"]
        assert table["score"].tolist() == [float(v) for v in plain]
        assert table["url"].tolist() == pd.read_csv(frames / "test.csv")["url"].tolist()
        judge = ["evaluate", "--scores", path, frames / "test.csv", "--label", "grade", "--qid", "query"]
        found = rankrls(*judge, "--ignore", "url", "--metrics", "map", "--json")
        assert (
            found.json["measures"]
            == rankrls("evaluate", model, frames / "test.csv", "--metrics", "map", "--json").json["measures"]
        )
    (frames / "bare.csv").write_text("\n".join(plain))
    judge[2] = frames / "bare.csv"
    assert rankrls(*judge, "--ignore", "url").status == 0
    rankrls("predict", model, frames / "test.txt", "-o", frames / "letor.csv")
    assert [*pd.read_csv(frames / "letor.csv").columns] == ["qid", "score"]
    judge[2] = frames / "train.csv"
    refused(
        *judge, "--ignore", "url", Refusal("no column", parameter="features", column="score", file="train.csv", line=1)
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_preferences_between_items_of_a_table(ending, frames, rankrls, refused):
    def write(frame, name):
        path = frames / f"{name}.{ending}"
        frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
        return path

    items = pd.read_csv(frames / "train.csv").drop(columns=["grade", "query"])
    votes = pd.DataFrame({"winner": ["/1", "/5", "/9"], "loser": ["/2", "/3", "/4"], "strength": [1, 0.5, 2]})
    rows, pairs, model = write(items, "items"), write(votes, "votes"), frames / "m.rankrls"
    given = [rows, "--pairs", pairs, "--id", "url"]
    found = rankrls("fit", *given, "-m", model, "--json")
    assert found.status == 0, found.err
    assert found.json["pairs"]["train"]["preferences"] == 3
    direct = RankRLS(alpha=found.json["chosen"]["alpha"])
    direct.fit_pairs(items[NAMES], [1, 5, 9], [2, 3, 4], strength=[1, 0.5, 2])
    np.testing.assert_allclose(load(model).predict(items[NAMES]), direct.predict(items[NAMES]), atol=1e-12)
    leads = direct.predict(items[NAMES])[[1, 5, 9]] - direct.predict(items[NAMES])[[2, 3, 4]]
    mixed = items[[*NAMES[::-1], "url"]].sample(frac=1, random_state=0)
    # by the model's own name of the ids, by --id, and in any order of rows and columns
    for judged in (["--ids", "docid"], ["--id", "url"]):
        result = rankrls("evaluate", model, write(mixed, "mixed"), "--pairs", pairs, *judged, "--json")
        assert result.status == 0, result.err
        measure = result.json["measures"]["pair_accuracy"]
        assert (measure["preferences"], measure["value"]) == (3, pytest.approx((leads > 0).mean()))
    assert rankrls("cv", *given, "--json").json["curve"]
    votes.loc[1, "loser"] = "/none"
    where = "votes.csv:3" if ending == "csv" else "votes.parquet: row 1, counted from 0"
    write(votes, "votes")
    none = frames / "none.rankrls"
    refused(
        "fit", *given, "-m", none, Refusal(f"{where}: no item has the id '/none' of the loser.", row=1, column="loser")
    )
    refused(
        "fit",
        rows,
        "--pairs",
        pairs,
        "--id",
        "uri",
        "-m",
        none,
        Refusal("no column", "the item's id", parameter="id", column="uri"),
    )
    refused("fit", *given[:3], "--ignore", "url", "--ids", "docid", "-m", none, Refusal("name it by --id"))


def test_rank_and_explain_name_items_and_features(frames, rankrls):
    model, _ = fit(rankrls, frames, "csv", *COLUMNS)
    found = rankrls("rank", model, frames / "test.csv", "--top", "1")
    assert found.status == 0, found.err
    head, first = (line.split("\t") for line in found.out.splitlines()[:2])
    assert dict(zip(head, first, strict=True))["item"] == f"/{first[-1]}"
    found = rankrls("explain", model, frames / "test.csv", "--ids", "docid", "/3", "/4", "--json")
    assert found.status == 0, found.err
    assert sorted(c["feature"] for c in found.json["contributions"]) == sorted(NAMES)


def test_standard_input(frames, rankrls, monkeypatch):
    model, _ = fit(rankrls, frames, "csv", *COLUMNS)
    expected = rankrls("predict", model, frames / "test.csv").out
    for kind, data in (
        ("csv", (frames / "test.csv").read_bytes()),
        ("csv", gzip.compress((frames / "test.tsv").read_bytes())),
        ("parquet", (frames / "test.parquet").read_bytes()),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        found = rankrls("predict", model, "-", "--input-format", kind)
        assert found.out == expected, found.err
    letor, _ = fit(rankrls, frames, "txt")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((frames / "test.txt").read_bytes())))
    assert rankrls("predict", letor, "-").out == expected


@pytest.mark.parametrize(
    ("argv", "refusal"),
    [
        (
            ["train.csv"],
            Refusal("columns: grade, bm25", parameter="label", column="label", file="train.csv", line=1),
        ),
        (["train.csv"], Refusal("which one", parameter="label", column="label", file="train.csv", line=1)),
        (["train.csv", "--label", "grade"], Refusal("'url' (", "there is 'query'", column="url", line=2)),
        (
            ["train.csv", "--label", "grade", "--qid", "query"],
            Refusal("--ignore url", "--columns auto", column="url", file="train.csv", line=2),
        ),
        (
            ["train.csv", "--label", "grade", "--ignore", "url,query"],
            Refusal("no column 'qid'", "--qid"),
        ),
        (
            ["train.csv", "--label", "grade", "--features", "bm25,agee"],
            Refusal("no column", "there is 'age'", parameter="features", column="agee", file="train.csv", line=1),
        ),
        (["train.csv", "--label", "grade", "--ignore", ","], Refusal("--ignore", "between commas", parameter="ignore")),
        (
            ["train.csv", "--input-format", "xls"],
            Refusal("--input-format", "letor, csv, parquet, arrow", parameter="input_format"),
        ),
        (
            ["train.csv", "--input-format", "letor"],
            Refusal("'grade,bm25,query", parameter="format", column="label", file="train.csv", line=1),
        ),
        (
            ["copy.txt"],
            Refusal(
                "It is read as LETOR text",
                "--input-format",
                parameter="format",
                column="label",
                file="copy.txt",
                line=1,
            ),
        ),
        (["train.txt", "--label", "grade"], Refusal("--label", "LETOR text")),
        (["train.txt", "--features", "a,b"], Refusal("--features", "LETOR text", parameter="features")),
        (["train.parquet", "--label", "url", "--qid", "query"], Refusal("no numbers", column="url")),
        (["copy.parquet", "--label", "url"], Refusal("no Parquet", file="copy.parquet")),
    ],
)
def test_errors_say_what_to_do(argv, refusal, frames, refused, monkeypatch):
    monkeypatch.chdir(frames)
    for name in ("copy.txt", "copy.parquet"):
        (frames / name).write_bytes((frames / "train.csv").read_bytes())
    refused("fit", *argv, "-m", "none.rankrls", refusal)
    assert not (frames / "none.rankrls").exists()


def test_validation_data_without_a_feature(frames, refused):
    pd.read_csv(frames / "vali.csv").drop(columns="age").to_csv(frames / "vali.csv", index=False)
    argv = ["fit", frames / "train.csv", "--vali", frames / "vali.csv", *COLUMNS, "-m", frames / "none.rankrls"]
    refused(*argv, Refusal("no column", parameter="features", column="age", file="vali.csv", line=1))


def test_a_model_of_a_table_goes_to_a_search_engine(frames, rankrls):
    model, _ = fit(rankrls, frames, "csv", *COLUMNS, "--scale", "standard-all")
    found = rankrls("export", model, "-", "--format", "solr")
    assert found.status == 0, found.err
    assert all(f'"{name}"' in found.out for name in NAMES)


@pytest.mark.parametrize("scale", ["none", "minmax-all"])
def test_the_offset_of_a_models_own_columns(scale, frames, rankrls, refused):
    model, _ = fit(rankrls, frames, "csv", *COLUMNS, "--scale", scale)
    items = pd.read_csv(frames / "test.csv")
    items[["price", "age", "query", "length", "clicks", "bm25"]].to_csv(frames / "items.csv", index=False)
    items.to_parquet(frames / "items.parquet")
    offset = 1.0 - load(model).predict(items[NAMES]).min()
    assert offset > 1.0
    export = ["export", model, "-", "--format", "json", "--offset"]
    for name in ("items.csv", "items.parquet", "test.tsv"):
        found = rankrls(*export, frames / name)
        assert found.status == 0, found.err
        assert found.out == rankrls(*export, repr(float(offset))).out
    items.drop(columns="age").to_csv(frames / "less.csv", index=False)
    refused(
        *export, frames / "less.csv", Refusal("no column", parameter="features", column="age", file="less.csv", line=1)
    )


@pytest.mark.parametrize("method", ["cg", "sparse", "pursuit", "ranksvm", "rankboost"])
def test_every_method(method, frames, rankrls):
    more = ["--kernel", "rbf", "--n-basis", "20"] if method == "sparse" else []
    model, _ = fit_without_vali(rankrls, frames, "--method", method, *more)
    assert read_info(model)["feature_names"] == NAMES
    assert rankrls("predict", model, frames / "test.csv").err == ""


def fit_without_vali(rankrls, folder, *more):
    model = folder / "m.rankrls"
    result = rankrls("fit", folder / "train.csv", "-m", model, "--json", *COLUMNS, *more)
    assert result.status == 0, result.err
    return model, result.json


def test_signs_of_named_features(frames, rankrls, refused):
    model, _ = fit_without_vali(rankrls, frames, "--positive", "clicks,length")
    coef = dict(zip(NAMES, load(model).coef_, strict=True))
    assert min(coef["clicks"], coef["length"]) >= 0
    argv = ["fit", frames / "train.csv", "-m", frames / "none.rankrls", *COLUMNS]
    refused(*argv, "--positive", "cliks", Refusal("--positive", "'cliks'", parameter="positive"))


@pytest.fixture
def embedded(frames):
    """train and test whose features but "age" are one column of lists."""
    others = [name for name in NAMES if name != "age"]
    for name in ("train", "test"):
        frame = pd.read_csv(frames / f"{name}.csv")
        frame["emb"] = [*frame[others].to_numpy()]
        frame.drop(columns=others).to_parquet(frames / f"{name}_emb.parquet")
    return frames


def test_columns_of_lists(embedded, rankrls, refused):
    names = [f"emb[{k}]" for k in range(4)]
    model = embedded / "m.rankrls"
    fit = ["fit", embedded / "train_emb.parquet", *COLUMNS, "-m", model, "--json"]
    plain = ["fit", embedded / "train.parquet", *COLUMNS, "-m", embedded / "plain.rankrls", "--json"]
    for features, expected in (([], NAMES), (["--features", "emb"], [n for n in NAMES if n != "age"])):
        found = rankrls(*fit, *features)
        assert found.status == 0, found.err
        assert sorted(read_info(model)["feature_names"]) == sorted([*names, "age"] if not features else names)
        reference = rankrls(*plain, "--features", ",".join(expected))
        assert found.json["chosen"]["alpha"] == pytest.approx(reference.json["chosen"]["alpha"])
        scores = rankrls("predict", model, embedded / "test_emb.parquet")
        assert scores.err == ""
        scores = [float(v) for v in scores.out.split()]
        expected = rankrls("predict", embedded / "plain.rankrls", embedded / "test.parquet").out.split()
        np.testing.assert_allclose(scores, [float(v) for v in expected], atol=1e-9)
    flat = embedded / "flat.csv"
    assert rankrls("convert", embedded / "test_emb.parquet", flat, *COLUMNS, "--quiet").status == 0
    assert [float(v) for v in rankrls("predict", model, flat).out.split()] == scores
    frame = pd.read_parquet(embedded / "test_emb.parquet")
    for size, refusal in (
        (3, Refusal("lists of 3", "'emb[3]'", parameter="features", column="emb")),
        (5, Refusal("lists of 5", "'emb[3]'", column="emb")),
    ):
        frame["emb"] = [np.resize(row, size) for row in frame["emb"]]
        frame.to_parquet(embedded / "other.parquet")
        refused("predict", model, embedded / "other.parquet", refusal)
    frame["emb"] = [[0.0] * (4 + (k == 6)) for k in range(len(frame))]
    frame.to_parquet(embedded / "other.parquet")
    refused(
        "predict",
        model,
        embedded / "other.parquet",
        Refusal("a list of 5", "others hold 4", row=6, column="emb", file="other.parquet"),
    )


def test_an_encoder_takes_lists_as_the_reader_does(embedded, rankrls):
    train, test = embedded / "train_emb.parquet", embedded / "test_emb.parquet"
    found = {}
    for name, options in (("plain", []), ("encoded", ["--columns", "auto"])):
        fitted = rankrls("fit", train, *COLUMNS, *options, "-m", embedded / name, "--json")
        assert fitted.status == 0, fitted.err
        found[name] = [float(v) for v in rankrls("predict", embedded / name, test).out.split()]
    np.testing.assert_allclose(found["encoded"], found["plain"], atol=1e-9)
    assert set(read_info(embedded / "encoded")["feature_names"]) == {"emb", "age", "query"}
    assert fitted.json["columns_used"][0]["kind"] in ("list", "number")


def test_lists_are_passed_on_by_split(embedded, rankrls):
    argv = ["split", embedded / "train_emb.parquet", embedded / "parts", "--qid", "query", "--parts", "50,50"]
    assert rankrls(*argv).status == 0
    parts = [pd.read_parquet(embedded / "parts" / f"{name}.parquet") for name in ("train", "test")]
    whole = pd.read_parquet(embedded / "train_emb.parquet").set_index("url")["emb"]
    found = pd.concat(parts).set_index("url")["emb"]
    assert sorted(found.index) == sorted(whole.index)
    assert all((found[url] == whole[url]).all() for url in whole.index)


def test_positive_by_pattern(frames, rankrls, refused):
    model, _ = fit(rankrls, frames, "csv", *COLUMNS, "--positive", "*c*,age")
    assert load(model).positive == {NAMES.index(name): 1 for name in ("clicks", "price", "age")}
    data = ("fit", frames / "train.csv", "-m", frames / "m.rankrls", *COLUMNS)
    refused(*data, "--positive", "x*", Refusal("--positive", "'x*'", parameter="positive"))


def test_explain_speaks_of_items(frames, rankrls, refused):
    model, _ = fit(rankrls, frames, "csv", *COLUMNS)
    asked = ("explain", model, frames / "test.csv", "--id", "url")
    shown = rankrls(*asked, "/2", "/0")
    assert shown.out.startswith("/2 stands ")
    assert " /0 in query q 300 by " in shown.out.splitlines()[0]
    assert ["contribution", "/2", "/0", "weight"] in [line.split() for line in shown.out.splitlines()]
    assert rankrls(*asked, "/2", "/0", "--json").json["items"] == ["/2", "/0"]
    assert rankrls(*asked, "/2").out.startswith("/2 stands ")
    refused(*asked, "/0", "/9", Refusal("query 'q 300'", "query 'q 301'", parameter="b", row=9))
    refused(*asked, "/0", "/0", Refusal("with itself", parameter="b", row=0))


def test_the_same_data_twice(frames, rankrls):
    data = ("fit", frames / "train.csv", "-m", frames / "m.rankrls", *COLUMNS, "--alphas", "1,2")
    (frames / "copy.csv").write_bytes((frames / "train.csv").read_bytes())
    for option in ("--vali", "--test"):
        for name in ("train.csv", "copy.csv"):
            assert (
                f"{name} holds the same data as {frames / 'train.csv'}: the "
                in rankrls(*data, option, frames / name).err
            )
        assert "same data" not in rankrls(*data, option, frames / "vali.csv").err


def test_a_value_too_large_is_named(frames, refused):
    frame = pd.read_csv(frames / "train.csv")
    frame.loc[3, "price"] = 1e300
    frame.to_csv(frames / "huge.csv", index=False)
    said = refused(
        "fit",
        frames / "huge.csv",
        "-m",
        frames / "m.rankrls",
        *COLUMNS,
        Refusal("row 3", row=3, column="price", file="huge.csv"),
    )
    assert (
        "the value 1e+300 of feature 'price' is so large that products overflow. Scale the features (see --scale)"
        in said
    )


def test_what_is_no_table(frames, refused):
    (frames / "book.xlsx").write_bytes(b"PK\x03\x04 and more")
    for more in ((), COLUMNS):
        refused("fit", frames / "book.xlsx", "-m", frames / "m", *more, Refusal("workbook", file="book.xlsx"))
        refused("fit", frames, "-m", frames / "m", *more, Refusal("one format"))
    refused("split", frames / "book.xlsx", frames / "parts", Refusal("workbook", file="book.xlsx"))


def test_labels_too_large_for_a_gain(frames, refused):
    frame = pd.read_csv(frames / "train.csv")
    frame.loc[3, "grade"] = 1200
    frame.to_csv(frames / "huge.csv", index=False)
    said = refused(
        "fit",
        frames / "huge.csv",
        "-m",
        frames / "m",
        *COLUMNS,
        "--metric",
        "ndcg",
        Refusal("label 1200", parameter="gain", row=3),
    )
    assert said.endswith("--convention sklearn, where a label is its own gain.")


def test_preferences_separated_by_semicolons(frames, rankrls):
    for sign in (",", ";"):
        (frames / "votes.csv").write_text(f"winner{sign}loser\n" + "".join(f"{k}{sign}{k + 1}\n" for k in range(20)))
        done = rankrls(
            "fit", frames / "train.txt", "--pairs", frames / "votes.csv", "-m", frames / f"m{ord(sign)}.rankrls"
        )
        assert done.status == 0, done.err
    np.testing.assert_array_equal(*(load(frames / f"m{ord(sign)}.rankrls").coef_ for sign in ",;"))
