"""convert keeps every number and id; split passes rows on as they are, whole queries at a time."""

import gzip
import os
import stat
from itertools import chain

import numpy as np
import pandas as pd
import pytest
from tests.refusals import Refusal

from rankrls.io import load_letor, load_table, save_letor


@pytest.fixture
def letor(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 4)) * 10.0 ** rng.integers(-9, 9, (30, 4))
    X[2, 1], X[3, 0] = 0.0, -0.0
    path = tmp_path / "data.txt"
    save_letor(path, X, np.arange(30) % 3, np.arange(30) // 5 + 10, comments=[f"docid = d,{k}" for k in range(30)])
    return path


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet"])
def test_there_and_back(ending, letor, rankrls):
    table, back = letor.with_name(f"t.{ending}"), letor.with_name("back.txt")
    assert rankrls("convert", letor, table).status == 0
    found, expected = load_table(table), load_letor(letor)
    np.testing.assert_array_equal(found.X, expected.X)
    assert np.signbit(found.X[3, 0])
    assert (found.feature_names, found.label, found.id_name) == (("f1", "f2", "f3", "f4"), "label", "docid")
    result = rankrls("convert", table, back)
    assert result.status == 0
    assert "the features 1 to 4 are f1, f2, f3, f4" in result.err
    assert back.read_bytes() == letor.read_bytes()
    again = letor.with_name(f"again.{ending}")
    rankrls("convert", back, again)
    assert again.read_bytes() == table.read_bytes()


def test_names_of_columns(letor, rankrls, refused):
    (letor.parent / "names.txt").write_text("bm25\nage\nsize\nclicks, all\n")
    names = ["--names", letor.parent / "names.txt"]
    rankrls("convert", letor, letor.with_name("t.csv"), *names)
    frame = pd.read_csv(letor.with_name("t.csv"))
    assert [*frame.columns] == ["label", "qid", "docid", "bm25", "age", "size", "clicks, all"]
    frame = frame.rename(columns={"label": "grade", "qid": "query", "docid": "url"})
    frame.to_csv(letor.with_name("named.csv"), index=False)
    given = ["--label", "grade", "--qid", "query", "--id", "url"]
    assert rankrls("convert", letor.with_name("named.csv"), letor.with_name("u.parquet"), *given).status == 0
    found = pd.read_parquet(letor.with_name("u.parquet"))
    pd.testing.assert_frame_equal(found, frame.astype({"grade": float}), check_exact=True)
    refused("convert", letor, letor.with_name("b.txt"), *names, Refusal("--names", "means nothing", parameter="names"))
    (letor.parent / "names.txt").write_text("bm25\n")
    refused(
        "convert",
        letor,
        letor.with_name("b.csv"),
        *names,
        Refusal("--names", "1 names", "4", parameter="feature_names"),
    )
    (letor.parent / "names.txt").write_text("a\nb\nc\nqid\n")
    refused("convert", letor, letor.with_name("b.csv"), *names, Refusal("two columns", column="qid"))
    refused("convert", letor, letor, Refusal("read by this command"))
    assert not letor.with_name("b.csv").exists()


def test_what_a_format_cannot_hold(letor, rankrls, refused):
    pd.DataFrame({"qid": ["red shoes"], "label": [1], "a": [2.0]}).to_csv(letor.with_name("q.csv"), index=False)
    refused(
        "convert",
        letor.with_name("q.csv"),
        letor.with_name("q.txt"),
        Refusal("LETOR text", "empty ids", parameter="qid", row=0),
    )
    pd.DataFrame({"qid": [1, 1], "label": [1, None], "a": [2.0, 3]}).to_csv(letor.with_name("l.csv"), index=False)
    assert rankrls("convert", letor.with_name("l.csv"), letor.with_name("l.parquet")).status == 0
    assert pd.read_parquet(letor.with_name("l.parquet"))["label"].isna().tolist() == [False, True]
    refused(
        "convert",
        letor.with_name("l.csv"),
        letor.with_name("l.txt"),
        Refusal("is empty", column="label", file="l.csv", line=3),
    )
    letor.write_text("1 qid:1 1:2 # some words\n0 qid:1 1:3\n")
    found = rankrls("convert", letor, letor.with_name("c.csv"))
    assert "the comments of" in found.err
    assert letor.with_name("c.csv").read_text() == "label,qid,f1\n1,1,2\n0,1,3\n"


def test_ids_that_are_not_utf8(tmp_path, rankrls, refused):
    """They are refused where they would be written, and comments of LETOR text stay what they are."""
    (tmp_path / "latin.txt").write_bytes("1 qid:1 1:2 # docid = a\n0 qid:1 1:3 # docid = é\n".encode("latin-1"))
    for ending in ("csv", "parquet"):
        said = refused("convert", tmp_path / "latin.txt", tmp_path / f"x.{ending}", Refusal(row=1))
        assert r"'\xe9' is not UTF-8 text: save the file as UTF-8" in said
    assert rankrls("convert", tmp_path / "latin.txt", tmp_path / "same.txt").status == 0
    assert b"docid = \xe9\n" in (tmp_path / "same.txt").read_bytes()
    (tmp_path / "latin.csv").write_bytes("qid,label,a,title\ncafé,1,2,é\ncafé,0,1,é\n".encode("latin-1"))
    refused(
        "fit",
        tmp_path / "latin.csv",
        "--ignore",
        "title",
        "-m",
        tmp_path / "m",
        Refusal("the cell 'caf", column="qid", file="latin.csv", line=2),
    )
    assert not (tmp_path / "m").exists()


def test_numbers_of_features_stay(letor, rankrls):
    letor.write_text("1 qid:1 0:2 1:5\n0 qid:1 0:1 1:3\n")
    rankrls("convert", letor, letor.with_name("again.txt.gz"))
    assert gzip.decompress(letor.with_name("again.txt.gz").read_bytes()) == letor.read_bytes()
    rankrls("convert", letor, letor.with_name("t.csv"))
    assert load_table(letor.with_name("t.csv")).feature_names == ("f0", "f1")


def parts_of(folder, ending, names=("train", "vali", "test")):
    return {name: (folder / f"{name}.{ending}").read_text().splitlines() for name in names}


def test_parts_are_whole_queries_and_rows_as_they_are(letor, rankrls):
    text = "# a comment line\n\n" + letor.read_text().replace("\n", "\r\n", 3)
    letor.write_bytes(text.encode())
    found = rankrls("split", letor, letor.with_name("parts"), "--json", "--parts", "50,33.3,16.7")
    assert {name: part["queries"] for name, part in found.json["parts"].items()} == {"train": 3, "vali": 2, "test": 1}
    parts = parts_of(letor.with_name("parts"), "txt")
    lines = [line for line in text.splitlines() if "qid" in line]
    assert sorted(chain(*parts.values())) == sorted(lines)
    for part in parts.values():
        assert part == [line for line in lines if line in part]  # in the file's order
    queries = [{line.split()[1] for line in part} for part in parts.values()]
    assert sum(map(len, queries)) == len(set.union(*queries)) == 6


def test_the_order_of_rows_does_not_matter_and_the_seed_does(letor, rankrls):
    lines = letor.read_text().splitlines()
    letor.with_name("mixed.txt").write_text("\n".join(lines[k] for k in np.random.default_rng(0).permutation(30)))
    runs = {}
    for name, data, seed in (("a", letor, 0), ("b", letor.with_name("mixed.txt"), 0), ("c", letor, 1)):
        assert rankrls("split", data, letor.with_name(name), "--seed", seed, "-q").out == ""
        runs[name] = {k: sorted(v) for k, v in parts_of(letor.with_name(name), "txt").items()}
    assert runs["a"] == runs["b"] != runs["c"]


def test_folds(letor, rankrls):
    assert rankrls("split", letor, letor.with_name("folds"), "--folds", "3").status == 0
    whole = sorted(letor.read_text().splitlines())
    tests = []
    for k in (1, 2, 3):
        fold = parts_of(letor.with_name("folds") / f"Fold{k}", "txt")
        assert sorted(chain(*fold.values())) == whole
        assert sorted(fold["vali"]) == sorted(parts_of(letor.with_name("folds") / f"Fold{k % 3 + 1}", "txt")["test"])
        tests += fold["test"]
    assert sorted(tests) == whole


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet"])
def test_tables_keep_all_their_columns(ending, tmp_path, rankrls):
    frame = pd.DataFrame(
        {
            "text": [f'so, "{k}"\nhe said' for k in range(20)],
            "query": [f"q {k // 2}" for k in range(20)],
            "a": np.arange(20),
        }
    )
    path = tmp_path / f"d.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    assert rankrls("split", path, tmp_path / "out", "--qid", "query", "--parts", "1,1").status == 0

    def read(name):
        path = tmp_path / "out" / f"{name}.{ending}"
        if ending == "csv.gz":
            assert gzip.decompress(path.read_bytes())
        return pd.read_parquet(path) if ending == "parquet" else pd.read_csv(path, sep="\t" if ending == "tsv" else ",")

    train, test = read("train"), read("test")
    assert not set(train["query"]) & set(test["query"])
    assert len(train) == len(test) == 10
    pd.testing.assert_frame_equal(pd.concat([train, test]).sort_values("a", ignore_index=True), frame)


@pytest.mark.parametrize(
    ("argv", "refusal"),
    [
        (["--parts", "1"], Refusal("--parts", "two or three", parameter="parts")),
        (["--parts", "1,-1"], Refusal("--parts", "two or three", parameter="parts")),
        (["--parts", "a,b"], Refusal("--parts", "two or three", parameter="parts")),
        (["--parts", "99,1"], Refusal("6 queries", "2 parts")),
        (["--folds", "2"], Refusal("--folds", "at least 3", parameter="folds")),
        (["--folds", "7"], Refusal("6 queries", "7 parts")),
        (["--seed", "-1"], Refusal("--seed", "at least 0", parameter="seed")),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_wrong_options(argv, refusal, letor, refused):
    refused("split", letor, letor.with_name("out"), *argv, refusal)
    assert not letor.with_name("out").exists()


def test_wrong_files(letor, refused):
    out = letor.with_name("out")
    letor.write_text("1 1:2\n0 1:3\n")
    refused("split", letor, out, Refusal("whole queries"))
    letor.with_name("d.csv").write_text("qid,a\n1,2\n,3\n")
    refused("split", letor.with_name("d.csv"), out, Refusal("is empty", column="qid", file="d.csv", line=3))
    letor.with_name("d.csv").write_text("qid,a\n1,2\n1,3,4\n")
    refused("split", letor.with_name("d.csv"), out, Refusal("3 cells", "2 columns", file="d.csv", line=3))
    refused(
        "split",
        letor.with_name("d.csv"),
        out,
        "--qid",
        "quid",
        Refusal("no column", "for the query id", parameter="qid", column="quid", file="d.csv", line=1),
    )


def test_parts_that_were_there_are_replaced_with_a_note(letor, tmp_path, rankrls):
    assert rankrls("split", letor, tmp_path / "parts").err == ""
    first = parts_of(tmp_path / "parts", "txt")
    (tmp_path / "parts").chmod(0o750)
    (tmp_path / "parts" / "vali.txt").chmod(0o600)
    said = rankrls("split", letor, tmp_path / "parts", "--seed", "1")
    paths = ", ".join(str(tmp_path / "parts" / f"{part}.txt") for part in ("train", "vali", "test"))
    assert (said.status, said.err) == (0, f"rankrls: note: what was there has been replaced: {paths}.\n")
    assert parts_of(tmp_path / "parts", "txt") != first
    assert stat.S_IMODE((tmp_path / "parts").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "parts" / "vali.txt").stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["data.txt", "parts"]


def test_parts_beside_other_files(letor, tmp_path, rankrls, refused, monkeypatch):
    """Other files stay; parts of two splits are never mixed."""
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "notes").write_text("mine")
    assert rankrls("split", letor, folder).err == ""
    assert sorted(os.listdir(folder)) == ["notes", "test.txt", "train.txt", "vali.txt"]
    first = parts_of(folder, "txt")
    said = refused("split", letor, folder, "--seed", "1", Refusal("notes"))
    assert "train.txt" in said
    (folder / "notes").unlink()
    refused("split", letor, folder, "--parts", "60,40", Refusal("vali.txt"))  # it would be of another split
    monkeypatch.chdir(folder)
    refused("split", letor, ".", "--seed", "1", Refusal("current"))
    assert parts_of(folder, "txt") == first
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert rankrls("split", letor, ".", "--folds", "3").err == ""
    assert sorted(os.listdir(".")) == ["Fold1", "Fold2", "Fold3"]


def test_folders_that_cannot_be_written(letor, tmp_path, refused, monkeypatch):
    refused("split", letor, letor, Refusal("no folder", kind=OSError))
    refused("split", letor, letor / "parts", Refusal(f"{letor}/parts: ", kind=Exception))
    before = sorted(os.listdir(tmp_path))

    def full(file, name):
        file.write(b"half")
        raise OSError(28, "No space left on device", name)

    monkeypatch.setattr("rankrls.io.records.packed", full)
    refused("split", letor, tmp_path / "parts", Refusal(f"{tmp_path / 'parts' / 'train.txt'}: No space", kind=OSError))
    assert sorted(os.listdir(tmp_path)) == before


def test_ids_with_blanks_do_not_go_into_letor_text(tmp_path, refused):
    (tmp_path / "shop.csv").write_text("qid,label,a\nred shoes,1,2\nred shoes,0,1\n")
    said = refused(
        "convert", tmp_path / "shop.csv", tmp_path / "shop.txt", Refusal("'red shoes'", parameter="qid", row=0)
    )
    assert said.endswith("(Write a table, .csv or .parquet, which holds any text; or rename them.)")


class TestShards:
    """What is written is tested with the function; here is what the command line adds."""

    def test_there_and_back(self, letor, rankrls):
        folder = letor.with_name("shards")
        said = rankrls("convert", letor, folder, "--rows-per-file", 12)
        assert (said.status, said.out) == (0, "")
        assert "30 rows of 6 queries with 4 features are in 3 files" in said.err
        found = [load_table(path) for path in sorted(folder.iterdir())]
        expected = load_letor(letor)
        np.testing.assert_array_equal(np.concatenate([table.X for table in found]), expected.X)
        assert [name for table in found for name in table.ids] == [*expected.docids]
        assert rankrls("convert", folder, letor.with_name("again"), "--rows-per-file", 30, "-q").err == ""
        back = letor.with_name("back.txt")
        rankrls("convert", letor.with_name("again") / "part-00000.parquet", back)
        assert back.read_bytes() == letor.read_bytes()

    def test_scattered_queries_and_columns(self, tmp_path, rankrls, refused):
        path = tmp_path / "votes.csv"
        path.write_text("query,grade,a,b,url\nx,1,0.1,2,u\ny,0,3,4,v\nx,2,5,6,w\n")
        (tmp_path / "names.txt").write_text("first\n")
        given = [path, tmp_path / "out", "--rows-per-file", 10, "--qid", "query", "--label", "grade", "--ignore", "url"]
        refused("convert", *given, Refusal("'x'", "--sort", line=4, column="query", file="votes.csv"))
        names = ["--features", "a", "--names", tmp_path / "names.txt"]
        assert rankrls("convert", *given, "--sort", "--float32", *names).status == 0
        found = pd.read_parquet(tmp_path / "out")
        assert [*found.columns] == ["grade", "query", "first"]
        assert found["query"].tolist() == ["x", "x", "y"]
        assert found["first"].tolist() == [np.float32(0.1), 5, 3]
        names = Refusal("--names", "1 names", parameter="feature_names")
        refused("convert", *given, "--sort", "--names", tmp_path / "names.txt", names)

    def test_refused(self, letor, refused):
        refused("convert", letor, letor.with_name("a.csv"), "--sort", Refusal("--rows-per-file", parameter="sort"))
        refused("convert", letor, letor.with_name("a"), "--float32", Refusal(parameter="float32"))
        given = [letor, letor.with_name("a"), "--rows-per-file", 5]
        refused("convert", *given, "--group", "x", Refusal("--group", parameter="group"))
        letor.with_name("a").mkdir()
        letor.with_name("a").joinpath("mine").touch()
        refused("convert", *given, Refusal("mine", file="a", parameter="folder"))
