"""Parquet data sets against all rows in memory, and the files that are written for them against plain Python."""

import dataclasses
import json
import os
import pickle
from itertools import groupby

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from tests.refusals import Refusal

from rankrls import RankRLS
from rankrls.io import load_letor, load_table, open_dataset, save_letor, save_table, write_shards
from rankrls.io.files import expanded_paths
from rankrls.io.reading import ReadOptions, read_records
from rankrls.io.rows import stack_rows
from rankrls.preprocessing import QueryMinMaxScaler
from rankrls.streaming import evaluate, predict

SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=8)


def frame_of(qids, **columns):
    """Rows that all differ."""
    m = len(qids)
    rows = {"label": np.arange(m) % 3.0, "qid": qids, "docid": [f"d{k}" for k in range(m)]}
    return pd.DataFrame(rows | {"a": np.arange(m) + 0.5, "b": -np.arange(float(m))} | columns)


def write(folder, frames, group=10**6, **options):
    folder.mkdir(exist_ok=True)
    for k, frame in enumerate(frames):
        frame.to_parquet(folder / f"part-{k}.parquet", row_group_size=group, index=False, **options)
    return folder


def groups_of(folder):
    """The query ids of each row group, file by file."""
    files = [pq.ParquetFile(path) for path in sorted(folder.iterdir())]
    return [[file.read_row_group(k)["qid"].to_pylist() for k in range(file.num_row_groups)] for file in files]


@given(sizes=SIZES, group=st.integers(1, 12), limit=st.integers(1, 20), texts=st.booleans(), cut=st.integers(0, 8))
def test_parts_hold_whole_queries_and_all_rows(tmp_path_factory, sizes, group, limit, texts, cut):
    ids = [f"q{k}" if texts else k + 2**60 for k in range(len(sizes))]
    first, second = (
        frame_of(np.repeat(np.array(part, dtype=object if texts else np.int64), own))
        for part, own in ((ids[:cut], sizes[:cut]), (ids[cut:], sizes[cut:]))
    )
    frames = [frame for frame in (first, second) if len(frame)]
    data = open_dataset(write(tmp_path_factory.mktemp("t"), frames, group), rows_per_part=limit)
    rows = pd.concat(frames)
    assert (data.n_rows, data.n_queries, data.n_features) == (len(rows), len(sizes), 2)
    assert (data.feature_names, len(data)) == (("a", "b"), len(data.parts))
    tables = [*pickle.loads(pickle.dumps(data))]
    for name, found in (("qid", "qid"), ("label", "y"), ("docid", "ids")):
        assert [v for table in tables for v in getattr(table, found).tolist()] == rows[name].tolist()
    np.testing.assert_array_equal(np.concatenate([t.X for t in tables]), rows[["a", "b"]])
    start = 0
    for part, table in zip(data.parts, tables, strict=True):
        assert (part.n_rows, part.n_queries) == (table.n_rows, len({*table.qid.tolist()}))
        assert part.first_row == start
        start += part.n_rows
        ends = [q for own in groups_of_part(part) for q in (own[0], own[-1])]
        assert part.n_rows <= limit or len(part.groups) == 1 or goes_on(ends, part, limit)
    assert sum(table.n_rows == 0 for table in tables) == 0
    assert len({q for table in tables for q in {*table.qid.tolist()}}) == len(sizes)


def groups_of_part(part):
    file = pq.ParquetFile(part.path)
    return [file.read_row_group(k)["qid"].to_pylist() for k in part.groups]


def goes_on(ends, part, limit):
    """Whether a part is longer than wanted because a query goes on from one row group to the next."""
    return any(a == b for a, b in zip(ends[1::2], ends[2::2], strict=False))


def test_the_same_as_the_whole_table(tmp_path):
    E = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    frame = frame_of([1, 1, 2, 2, 2, 3], emb=[*E], w=[1.0, 0, 2, 3, 0.5, 1]).astype({"a": np.float32, "b": np.float32})
    folder = write(tmp_path / "t", [frame], 2)
    whole = load_table(folder / "part-0.parquet", features=["b", "emb"])
    data = open_dataset(folder, features=["b", "emb"], weight="w", rows_per_part=2)
    (one, two) = data
    assert (one.n_rows, two.n_rows, one.X.dtype) == (2, 4, np.float32)
    np.testing.assert_array_equal(np.vstack((one.X, two.X)), whole.X)
    np.testing.assert_array_equal(np.concatenate((one.sample_weight, two.sample_weight)), frame["w"])
    assert open_dataset(folder, ignore="w").parts[0].schema.dtype == np.float32
    assert open_dataset(folder).parts[0].schema.dtype == np.float64
    frame.loc[2, "w"] = -1.0
    with Refusal("negative", row=2, column="w"):
        [*open_dataset(write(tmp_path / "negative", [frame]), weight="w", features="a")]


def test_labels_that_are_not_there(tmp_path):
    frame = frame_of([1, 1, 2])
    folder = write(tmp_path / "t", [frame.assign(label=[1.0, np.nan, 2.0])])
    with Refusal("has an empty cell", row=1, column="label"):
        [*open_dataset(folder)]
    (table,) = open_dataset(folder, labels="optional")
    np.testing.assert_array_equal(table.y, [1, np.nan, 2])
    (table,) = open_dataset(folder, labels="ignored")
    assert np.isnan(table.y).all()
    unweighed = write(tmp_path / "w", [frame.assign(w=[1.0, np.nan, 2.0])])
    with Refusal("has an empty cell", row=1, column="w"):
        [*open_dataset(unweighed, weight="w", labels="optional")]


@pytest.mark.parametrize(
    ("queries", "file", "row"),
    [
        ([["a", "b", "a"]], "part-0.parquet", 2),
        ([["a", "b"], ["b", "c"]], "part-1.parquet", 0),
        ([["a", "b"], ["c", "a"]], "part-1.parquet", None),
        ([[1, 2], [3, 1]], "part-1.parquet", None),
    ],
)
@pytest.mark.parametrize("group", [1, 10])
def test_queries_that_do_not_lie_together(queries, file, row, group, tmp_path):
    folder = write(tmp_path / "t", [frame_of(own) for own in queries], group)
    with Refusal("Sort the rows by query", "(sort)", file=file, column="qid", parameter="qid") as found:
        open_dataset(folder)
    assert row is None or group == 10 or found.value.row == row


def test_what_is_no_data_set(tmp_path):
    frame = frame_of([1, 2])
    folder = write(tmp_path / "t", [frame, frame.assign(qid=[3, 4]).rename(columns={"b": "c"})])
    with Refusal(file="part-1.parquet", column="b"):
        open_dataset(folder)
    with Refusal("query ids", parameter="qid"):
        open_dataset(write(tmp_path / "none", [frame.drop(columns="qid")]))
    (tmp_path / "a.csv").write_text("label,qid,a\n1,1,2\n")
    with Refusal("not a Parquet file", file="a.csv", remedy="rankrls convert DATA FOLDER --rows-per-file"):
        open_dataset(tmp_path / "a.csv")
    with Refusal("no rows"):
        open_dataset(write(tmp_path / "empty", [frame[:0].astype({"docid": str})]))
    with Refusal(file="part-0.parquet", row=1, column="b"):
        [*open_dataset(write(tmp_path / "inf", [frame.assign(b=[1, np.inf])]))]
    with Refusal(file="part-0.parquet", row=1, column="b"):  # of the file, not of the part
        open_dataset(write(tmp_path / "rows", [frame.assign(b=[1, np.inf])], 1), rows_per_part=1).parts[1].read()
    frame.to_csv(tmp_path / "t.csv", index=False)
    with Refusal("not a Parquet file", file="t.csv"):
        open_dataset(tmp_path / "t.csv")
    data = (folder / "part-0.parquet").read_bytes()
    (folder / "part-0.parquet").write_bytes(data[:-20])
    with Refusal("Parquet", file="part-0.parquet"):
        open_dataset(folder / "part-0.parquet")


def test_files_that_change(tmp_path):
    data = open_dataset(write(tmp_path / "t", [frame_of([1, 2])]))
    os.utime(tmp_path / "t" / "part-0.parquet", ns=(0, 0))
    with Refusal("has changed", file="part-0.parquet"):
        data.parts[0].read()


def test_paths(tmp_path):
    for name in (
        "part-10.parquet",
        "part-2.csv",
        "_log.csv",
        ".hidden.csv",
        "day=2/x.csv",
        "other/deeper/x.csv",
        "_temporary/x.csv",
        ".git/x.csv",
        "note.md",
        "²1.csv",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    names = lambda *paths: [os.path.relpath(path, tmp_path) for path in expanded_paths(paths)]
    assert names(tmp_path) == ["day=2/x.csv", "other/deeper/x.csv", "part-2.csv", "part-10.parquet", "²1.csv"]
    assert names(tmp_path / "part-*") == ["part-2.csv", "part-10.parquet"]
    assert names(tmp_path / "note.md", tmp_path / "part-2.csv") == ["note.md", "part-2.csv"]
    for wrong in (tmp_path / "none*", tmp_path / "other" / "y*"):
        with Refusal(parameter="path"):
            expanded_paths(wrong)


@pytest.mark.parametrize("keys", [["year", "shop"], ["qid"]], ids=str)
def test_the_keys_of_partitions_are_columns(tmp_path, keys):
    """As pandas reads the folder that it has written, file by file and as a whole."""
    frame = frame_of(np.repeat(["x y", "007", "a/b", "8"], 3), year=np.repeat([2023, 2023, 2024, 2024], 3))
    frame["shop"] = np.repeat(["a", None, "b=c", "a"], 3)
    folder = tmp_path / "run=7" / "data"
    frame.to_parquet(folder, partition_cols=keys, index=False)
    found = pd.concat(
        pd.DataFrame(
            {"docid": part.ids, "qid": [*map(str, part.qid)], "year": part.X[:, 2].astype(int), "a": part.X[:, 0]}
        )
        for part in open_dataset(folder, ignore="shop")
    )
    expected = frame[["docid", "qid", "year", "a"]].sort_values("docid", ignore_index=True)
    pd.testing.assert_frame_equal(
        found.sort_values("docid", ignore_index=True), expected, check_dtype=False, check_index_type=False
    )
    if "shop" in keys:
        (missing,) = (path for path in expanded_paths(folder) if "HIVE" in path)
        with Refusal("'shop'", "not numbers", file=os.path.basename(missing), column="shop"):
            load_table(missing)


def test_a_key_of_a_partition_is_text_in_text_and_no_column_twice(tmp_path):
    path = tmp_path / "day=01" / "a=5" / "t.csv"
    path.parent.mkdir(parents=True)
    path.write_text("label,qid,a\n1,x,2\n0,x,3\n")
    table = load_table(path)
    assert table.feature_names == ("a", "day")
    assert table.X.tolist() == [[2.0, 1.0], [3.0, 1.0]]
    assert load_table(path, qid="day", ignore="qid").qid.tolist() == ["01", "01"]
    read_records(path.parent, ReadOptions(), print).write(tmp_path / "out.csv", [1])
    assert (tmp_path / "out.csv").read_text() == "label,qid,a,day\n0,x,3,01\n"


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_rows_that_are_passed_on_keep_the_keys_of_their_folders(ending, tmp_path):
    for query in (3, 7):
        folder = tmp_path / "in" / f"qid={query}"
        folder.mkdir(parents=True)
        save_table(folder / f"t.{ending}", [[1.0], [query]], [1, 0], feature_names=["a"])
    records = read_records(tmp_path / "in", ReadOptions(), print)
    records.write(tmp_path / f"out.{ending}", [1, 2, 3])
    found = load_table(tmp_path / f"out.{ending}")
    assert [int(query) for query in found.qid] == [3, 7, 7]
    assert found.X.tolist() == [[3.0], [1.0], [7.0]]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_keys_of_folders_that_are_numbers_and_texts(ending, tmp_path):
    """In text, all cells are texts."""
    for query in ("3", "x7"):
        folder = tmp_path / "in" / f"day={query}" / "hour=4"
        folder.mkdir(parents=True)
        save_table(folder / f"t.{ending}", [[1.0], [2.0]], [1, 0], qid=["a", "b"], feature_names=["a"])
    if ending != "csv":
        with Refusal("day", "types", file="in"):
            read_records(tmp_path / "in", ReadOptions(), print)
        return
    read_records(tmp_path / "in", ReadOptions(), print).write(tmp_path / "out.csv", [0, 3])
    assert (tmp_path / "out.csv").read_text() == "label,qid,a,day,hour\n1,a,1,3,4\n0,b,2,x7,4\n"


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "txt"])
def test_rows_of_several_files_are_passed_on_as_those_of_one(ending, tmp_path):
    frame = frame_of(["b", "a", "b", "c", "a", "c"])
    save = save_letor if ending == "txt" else save_table
    for name, rows in (
        ("one/t", slice(6)),
        ("many/t-2", slice(3)),
        ("many/t-10", slice(3, 5)),
        ("many/t-20", slice(5, 6)),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        own = {} if ending == "txt" else {"feature_names": ["a", "b"], "ids": frame["docid"][rows]}
        X = frame[["a", "b"]].to_numpy()[rows]
        save(tmp_path / f"{name}.{ending}", X, frame["label"][rows], frame["qid"][rows], **own)
    one, many = (read_records(tmp_path / name, ReadOptions(), print) for name in ("one", "many"))
    assert many.qid == one.qid == [*frame["qid"]]
    for name, records in (("one", one), ("many", many)):
        records.write(tmp_path / f"{name}.{ending}", [0, 3, 5])
    read = load_letor if ending == "txt" else load_table
    first, second = (read(tmp_path / f"{name}.{ending}") for name in ("one", "many"))
    assert first.X.tolist() == second.X.tolist() == frame[["a", "b"]].to_numpy()[[0, 3, 5]].tolist()
    assert first.qid.tolist() == second.qid.tolist() == ["b", "c", "c"]


def test_files_that_make_no_rows_together(tmp_path):
    write(tmp_path / "t", [frame_of([1, 1]), frame_of([2], c=[1.0])])
    with Refusal("columns differ", file="part-1.parquet"):
        read_records(tmp_path / "t", ReadOptions(), print)


@pytest.mark.parametrize("sparse_part", [False, True])
def test_rows_of_several_files_are_stacked(sparse_part):
    """Ids that are whole numbers in one file and texts in another are texts; labels that a file lacks are NaN."""
    first, second = (
        load_table(pd.DataFrame({"qid": qid, "docid": ["a", "b"], "x": [1.0, 2.0]} | labels), labels="optional")
        for qid, labels in (([7, 8], {"label": [1, 0]}), (["x", "007"], {}))
    )
    if sparse_part:
        second = dataclasses.replace(second, X=sparse.csr_array(second.X))
    rows = stack_rows([first, second])
    assert sparse.issparse(rows.X) == sparse_part
    np.testing.assert_array_equal(rows.X.toarray() if sparse_part else rows.X, [[1], [2], [1], [2]])
    np.testing.assert_array_equal(rows.y, [1, 0, np.nan, np.nan])
    assert rows.qid.tolist() == ["7", "8", "x", "007"]
    assert rows.ids.tolist() == ["a", "b", "a", "b"]
    assert stack_rows([second, second]).y is None
    with Refusal("no query ids", parameter="qid"):
        stack_rows([first, dataclasses.replace(second, qid=None)])


@given(
    queries=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=9), min_size=1, max_size=4),
    size=st.integers(1, 4000),
    limit=st.integers(1, 20),
    texts=st.booleans(),
)
def test_sorted_shards_hold_each_query_together_with_its_rows_in_their_order(
    tmp_path_factory, queries, size, limit, texts
):
    """In any number of files that are sorted alone; a stable sort of pandas has the same rows of each query."""
    folder = tmp_path_factory.mktemp("t")
    frames = [
        frame_of([f"q {q}" if texts else q for q in own], w=np.full(len(own), k)) for k, own in enumerate(queries)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankrls.io.dataset._SORTED_BYTES", size)
        found = write_shards(write(folder / "in", frames, 3), folder / "out", sort=True, rows_per_file=limit)
    rows = pd.concat(frames, ignore_index=True)
    assert (found["rows"], found["queries"]) == (len(rows), rows["qid"].nunique())
    parts = [*open_dataset(folder / "out")]  # which refuses queries whose rows are not adjacent
    written = pd.DataFrame(np.vstack([part.X for part in parts]), columns=["a", "b", "w"])
    written["qid"] = np.concatenate([part.qid for part in parts])
    for qid, own in rows.groupby("qid"):
        np.testing.assert_array_equal(written.loc[written["qid"] == qid, ["a", "b", "w"]], own[["a", "b", "w"]])
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        f"part-{k:05d}.parquet" for k in range(found["files"])
    ]


def test_sorting_closes_its_files_where_no_more_can_be_opened(tmp_path, monkeypatch):
    resource = pytest.importorskip("resource")
    frame_of([f"q{k}" for k in range(500)]).to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr("rankrls.io.dataset._SORTED_BYTES", 10)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            write_shards(tmp_path / "t.csv", tmp_path / "out", sort=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert os.listdir(tmp_path) == ["t.csv"]


def test_parts_without_whole_queries_are_good_for_scores_of_single_rows(tmp_path):
    """Rows in any order, some without query ids, by models that score one row at a time; nothing else takes them."""
    rng = np.random.default_rng(0)
    frame = frame_of(rng.integers(0, 9, 60).tolist(), a=rng.normal(size=60), b=rng.normal(size=60))
    folder = write(tmp_path / "t", [frame[:30], frame[30:]], 7)
    data = open_dataset(folder, whole_queries=False, rows_per_part=14)
    assert (data.n_rows, data.n_queries, [part.n_rows for part in data.parts]) == (60, 0, [14, 14, 2] * 2)
    X, y, qid = frame[["a", "b"]].to_numpy(), frame["label"], frame["qid"]
    model = RankRLS().fit(X, y, qid=qid)
    np.testing.assert_allclose(np.concatenate([*predict(model, data)]), model.predict(X))
    without = open_dataset(write(tmp_path / "w", [frame.drop(columns="qid")]), whole_queries=False)
    np.testing.assert_allclose(np.concatenate([*predict(model, without)]), model.predict(X))
    scaled = make_pipeline(QueryMinMaxScaler(), RankRLS())
    with config_context(enable_metadata_routing=True):
        scaled[0].set_fit_request(qid=True).set_transform_request(qid=True)
        scaled[1].set_fit_request(qid=True)
        scaled.fit(X, y, qid=qid)
    for job in (
        lambda: RankRLS().fit_dataset(data),
        lambda: evaluate(model, data),
        lambda: predict(scaled, data),
    ):
        with Refusal("whole_queries", parameter="data"):
            job()


@given(sizes=SIZES, group=st.integers(1, 12), limit=st.integers(1, 15), texts=st.booleans(), block=st.integers(1, 7))
def test_shards_hold_all_rows_and_whole_queries(tmp_path_factory, sizes, group, limit, texts, block):
    """Text, whose ids stay text, in batches of any size."""
    folder = tmp_path_factory.mktemp("t")
    ids = [f"{k:03d}" if texts and k == len(sizes) - 1 else str(k) for k in range(len(sizes))]
    frame = frame_of(np.repeat(ids, sizes))
    frame.to_csv(folder / "t.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankrls.io.dataset._GROUP_BYTES", 16 * group)
        patch.setattr("rankrls.io.tables._BATCH_CELLS", 5 * block)
        found = write_shards(folder / "t.csv", folder / "out", rows_per_file=limit)
    table = load_table(folder / "t.csv")
    assert found == {"files": len(groups_of(folder / "out")), "rows": len(frame), "queries": len(sizes), "features": 2}
    tables = [*open_dataset(folder / "out")]
    for name in ("X", "y", "qid", "ids"):
        written = np.concatenate([getattr(part, name) for part in tables])
        expected = getattr(table, name)
        assert written.tolist() == (expected.astype(str) if name == "qid" else expected).tolist()
    size = dict(zip(ids, sizes, strict=True))
    for file in groups_of(folder / "out"):
        rows = [str(q) for own in file for q in own]
        assert len(rows) <= limit or len({*rows}) == 1
        for own in file:
            assert len(own) <= min(group, limit) or len({*own}) == 1
            assert all(len([*run]) == size[str(q)] for q, run in groupby(own))
            assert len([*groupby(own)]) == len({*own})


class TestShards:
    FRAME = frame_of(["x", "x", "y", "z", "z"])

    @pytest.mark.parametrize("ending", ["csv", "tsv.gz", "txt", "txt.gz", "parquet", "arrow", "folder"])
    def test_whatever_the_library_reads(self, ending, tmp_path):
        path, frame = tmp_path / f"t.{ending}", self.FRAME
        X, y, qid, ids = frame[["a", "b"]].to_numpy(), frame["label"], frame["qid"], [*frame["docid"]]
        if ending.startswith("txt"):
            save_letor(path, X, y, qid, comments=[f"docid = {name}" for name in ids])
        elif ending == "folder":
            path = write(tmp_path / "in", [frame[:2], frame[2:]])
        else:
            save_table(path, X, y, qid, ids=ids, feature_names=["a", "b"])
        found = write_shards(path, tmp_path / "out", feature_names=["c", "d"])
        assert found == {"files": 1, "rows": 5, "queries": 3, "features": 2}
        (table,) = open_dataset(tmp_path / "out")
        assert table.feature_names == ("c", "d")
        assert (table.X.tolist(), table.y.tolist()) == (X.tolist(), [*y])
        assert (table.qid.tolist(), table.ids.tolist()) == ([*qid], ids)

    def test_sparse_text_of_several_files(self, tmp_path):
        from scipy import sparse

        X = sparse.random_array((40, 60), density=0.02, rng=0, format="csr")
        save_letor(tmp_path / "1.txt", X[:20, :30], np.zeros(20), np.arange(20) // 4)
        save_letor(tmp_path / "2.txt", X[20:], np.ones(20), np.arange(20) // 4 + 9)
        write_shards([tmp_path / "1.txt", tmp_path / "2.txt"], tmp_path / "out", features="60")
        (table,) = open_dataset(tmp_path / "out")
        expected = X.toarray()
        expected[:20, 30:] = 0
        np.testing.assert_array_equal(table.X, expected)
        assert load_letor(tmp_path / "2.txt").qid.astype(str).tolist() == table.qid[20:].tolist()

    def test_texts_of_digits_stay_texts_in_typed_formats(self, tmp_path):
        folder = write(tmp_path / "in", [frame_of(["7", "8"]).astype({"a": np.float32, "b": np.float32})])
        write_shards(folder, tmp_path / "out")
        (table,) = open_dataset(tmp_path / "out")
        assert (table.qid.tolist(), table.X.dtype) == (["7", "8"], np.float32)

    @pytest.mark.parametrize(
        ("change", "options", "facts"),
        [
            ({"qid": list("xxyzx")}, {}, Refusal("Sort the rows", row=4, column="qid")),
            ({"b": [1, 2, 3, np.inf, 4]}, {}, Refusal(row=3, column="b")),
            ({}, {"feature_names": ["a"]}, Refusal(parameter="feature_names")),
            ({}, {"feature_names": ["a", "qid"]}, Refusal(column="qid")),
            ({}, {"rows_per_file": 0}, Refusal(parameter="rows_per_file")),
            ({}, {"qid": "query"}, Refusal(parameter="qid")),
        ],
    )
    def test_what_fails_leaves_what_was_there(self, change, options, facts, tmp_path):
        self.FRAME.to_csv(tmp_path / "t.csv", index=False)
        write_shards(tmp_path / "t.csv", tmp_path / "out")
        before = (tmp_path / "out" / "part-00000.parquet").read_bytes()
        self.FRAME.assign(**change).to_csv(tmp_path / "t.csv", index=False)
        with facts:
            write_shards(tmp_path / "t.csv", tmp_path / "out", force=True, **options)
        assert sorted(os.listdir(tmp_path)) == ["out", "t.csv"]
        assert (tmp_path / "out" / "part-00000.parquet").read_bytes() == before

    @pytest.mark.parametrize("order", [("1.txt", "2.txt"), ("2.txt", "1.txt")])
    def test_features_count_from_0_in_all_files_if_they_do_in_one(self, order, tmp_path):
        (tmp_path / "1.txt").write_text("1 qid:1 1:5 2:6\n0 qid:1 1:7\n")
        (tmp_path / "2.txt").write_text("1 qid:2 0:9 2:3\n0 qid:2 1:4\n")
        write_shards([tmp_path / name for name in order], tmp_path / "out")
        (table,) = open_dataset(tmp_path / "out")
        expected = {"1.txt": [[0, 5, 6], [0, 7, 0]], "2.txt": [[9, 0, 3], [0, 4, 0]]}
        assert table.X.tolist() == expected[order[0]] + expected[order[1]]

    def test_files_hold_as_many_whole_queries_as_fit(self, tmp_path):
        self.FRAME.to_csv(tmp_path / "t.csv", index=False)
        write_shards(tmp_path / "t.csv", tmp_path / "out", rows_per_file=3)
        assert [part.n_rows for part in open_dataset(tmp_path / "out").parts] == [3, 2]

    def test_a_folder_is_replaced_by_force_and_only_if_it_is_ours(self, tmp_path):
        self.FRAME.to_csv(tmp_path / "t.csv", index=False)
        out = tmp_path / "out"
        write_shards(tmp_path / "t.csv", out, rows_per_file=2)
        assert len(os.listdir(out)) == 3
        with Refusal("not empty", parameter="force"):
            write_shards(tmp_path / "t.csv", out)
        write_shards(tmp_path / "t.csv", out, force=True)
        assert os.listdir(out) == ["part-00000.parquet"]
        (out / "mine.txt").write_text("keep")
        with Refusal("mine.txt", parameter="force"):
            write_shards(tmp_path / "t.csv", out, force=True)
        with Refusal("replace files", parameter="folder"):
            write_shards(out / "part-00000.parquet", out, force=True)
        with Refusal("become part of", parameter="folder"):
            write_shards(out, out / "new")
        assert sorted(os.listdir(out)) == ["mine.txt", "part-00000.parquet"]


@pytest.mark.parametrize("ending", ["csv", "tsv.gz", "parquet", "arrow", "txt", "jsonl"])
def test_rows_are_passed_on_as_they_are(ending, tmp_path):
    frame = frame_of(["b", "a", "b"], text=['x "y", z', "", "two\nlines"])
    path, out = tmp_path / f"t.{ending}", tmp_path / f"out.{ending}"
    lines = ["1 qid:b 1:1e0 # c\n", "0 qid:a 3:0.50\n", "2 qid:b\n"]
    if ending == "parquet":
        frame["emb"] = [np.array([1.0, k]) for k in range(3)]
    if ending == "jsonl":
        lines = [f'{{"qid":"{qid}", "log": {{"x": [1, "y"]}}}}\n' for qid in "bab"]
        path.write_text("\n" + "".join(lines))
    elif ending == "txt":
        path.write_text("# head\n\n" + "".join(lines))
    elif ending in ("parquet", "arrow"):
        (frame.to_parquet if ending == "parquet" else frame.to_feather)(path)
    else:
        frame.to_csv(path, index=False, sep="," if ending == "csv" else "\t")
    records = read_records(path, ReadOptions(queries="optional"), print)
    assert (records.qid, records.ending) == (["b", "a", "b"], f".{ending}")
    records.write(out, [0, 2])
    if ending == "txt":
        assert out.read_text() == lines[0] + lines[2]
    elif ending == "jsonl":
        assert [*map(json.loads, out.read_text().splitlines())] == [{"qid": "b", "log.x": '[1, "y"]'}] * 2
    else:
        read = {"parquet": pd.read_parquet, "arrow": pd.read_feather}.get(ending)
        found = read(out) if read else pd.read_csv(out, sep=None, engine="python", keep_default_na=False)
        pd.testing.assert_frame_equal(found, frame.iloc[[0, 2]].reset_index(drop=True), check_dtype=False)


def test_blanks_and_wrong_text_in_rows_that_are_passed_on(tmp_path):
    (tmp_path / "t.csv").write_text("label, qid, a\n1, 7 , 0.50\n")
    read_records(tmp_path / "t.csv", ReadOptions(), print).write(tmp_path / "out.csv", [0])
    assert (tmp_path / "out.csv").read_text() == "label,qid,a\n1,7,0.50\n"
    (tmp_path / "t.csv").write_bytes(b"label,qid,a\n1,7,\xff\n")
    with Refusal("UTF-8", line=2, file="t.csv"):
        read_records(tmp_path / "t.csv", ReadOptions(), print)


def test_a_link_that_leads_back_adds_no_rows(tmp_path):
    folder = write(tmp_path / "data", [frame_of(["x", "x", "y"])])
    os.symlink(folder, folder / "again")
    assert open_dataset(folder).n_rows == 3
