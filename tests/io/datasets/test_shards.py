"""Shards against plain Python: every row, whole queries, the order of first appearance, all or nothing."""

import errno
import gzip
import os
import resource
import signal
import subprocess
import sys
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import Refusal

from rankrls.io import load_letor, load_table, open_dataset, save_letor, save_table, write_shards
from rankrls.io.datasets import grouping, shards


def read(folder):
    """Rows of all shards as (query id, label, features, item's id), and the query ids of each row group and file."""
    rows, groups, files = [], [], []
    for path in sorted(folder.iterdir()):
        table = pq.read_table(path)
        names = table.column_names
        features = [name for name in names if name not in ("label", "qid", "docid")]
        X = np.column_stack([table[name].to_numpy() for name in features]).tolist()
        y = table["label"].to_pylist() if "label" in names else [None] * len(X)
        ids = table["docid"].to_pylist() if "docid" in names else [None] * len(X)
        rows += [*zip(table["qid"].to_pylist(), y, map(tuple, X), ids, strict=True)]
        file = pq.ParquetFile(path)
        groups += [file.read_row_group(k, ["qid"])["qid"].to_pylist() for k in range(file.num_row_groups)]
        files.append(table["qid"].to_pylist())
    return rows, groups, files


def check_layout(groups, files, group, rows_per_file):
    """Row groups hold whole queries, or a piece of one; a query lies in one file; files are not too large."""
    sizes = {q: sum(f.count(q) for f in files) for f in files for q in f}
    for own in groups:
        assert len(own) <= group
        assert all(own.count(q) == sizes[q] for q in own) or len({*own}) == 1
    for own in files:
        assert all(own.count(q) == sizes[q] for q in own)
        assert len(own) <= rows_per_file or len({*own}) == 1
        assert [q for q, _ in groupby(own)] == [*dict.fromkeys(own)]


def grouped(rows):
    """Rows of each id together, in the order in which ids appear first."""
    first = {q: k for k, q in reversed([*enumerate(row[0] for row in rows)])}
    return sorted(rows, key=lambda row: first[row[0]])


def csv(path, rows, qid="qid", ids=True):
    """Rows of (query id, label, features, item's id) as a CSV file."""
    lines = [f"{qid},label,a,b" + ",docid" * ids]
    for q, y, x, name in rows:
        lines.append(f"{q},{'' if y is None else y},{x[0]!r},{x[1]!r}" + f",{name}" * ids)
    path.write_text("\n".join(lines) + "\n")
    return path


def some_rows(qids):
    """Rows that all differ."""
    return [(q, k % 3 * 1.0, (k + 0.5, -k * 1.0), f"d{k}") for k, q in enumerate(qids)]


@given(
    st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=40),
    st.integers(1, 12),
    st.integers(1, 15),
    st.integers(1, 60),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_scattered_queries_come_together(tmp_path_factory, qids, group, rows_per_file, bucket, ids):
    folder = tmp_path_factory.mktemp("sort")
    rows = some_rows(qids) if ids else [(*row[:3], None) for row in some_rows(qids)]
    half = len(rows) // 2
    paths = [csv(folder / "1.csv", rows[:half], ids=ids), csv(folder / "2.csv", rows[half:], ids=ids)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_GROUP_BYTES", 16 * group)
        patch.setattr(grouping, "_BUCKET_BYTES", 32 * bucket)
        found = write_shards(paths[0 if half else 1 :], folder / "out", rows_per_file=rows_per_file, sort=True)
    written, groups, files = read(folder / "out")
    assert written == grouped(rows)
    check_layout(groups, files, min(group, rows_per_file), rows_per_file)
    assert found == {"files": len(files), "rows": len(rows), "queries": len({*qids}), "features": 2}
    assert sorted(os.listdir(folder)) == ["1.csv", "2.csv", "out"]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 12), st.integers(1, 15))
@settings(max_examples=30, deadline=None)
def test_rows_in_order(tmp_path_factory, sizes, group, rows_per_file):
    folder = tmp_path_factory.mktemp("plain")
    rows = some_rows(np.repeat(np.arange(len(sizes)), sizes).tolist())
    path = csv(folder / "1.csv", rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_GROUP_BYTES", 16 * group)
        write_shards(path, folder / "out", rows_per_file=rows_per_file)
    written, groups, files = read(folder / "out")
    assert written == rows
    check_layout(groups, files, min(group, rows_per_file), rows_per_file)


def test_footers_have_no_statistics_of_features(tmp_path):
    write_shards(csv(tmp_path / "a.csv", some_rows("aabbc")), tmp_path / "out", rows_per_file=3)
    for path in (tmp_path / "out").iterdir():
        group = pq.ParquetFile(path).metadata.row_group(0)
        known = {group.column(k).path_in_schema for k in range(5) if group.column(k).is_stats_set}
        assert known == {"label", "qid", "docid"}


class TestInputs:
    @pytest.fixture
    def table(self):
        rng = np.random.default_rng(5)
        X = np.round(rng.standard_normal((90, 3)), 6)
        return X, rng.integers(0, 4, 90).astype(float), np.arange(90) // 8, [f"doc{k}" for k in range(90)]

    def written(self, folder, table):
        """Check shards, which hold the rows of the table."""
        X, y, qid, ids = table
        found = load_table(next(folder.iterdir()))
        assert np.array_equal(found.X, X)
        assert np.array_equal(found.y, y)
        assert found.qid.tolist() == qid.tolist()
        assert found.ids.tolist() == ids
        assert found.feature_names == ("f1", "f2", "f3")
        return found

    @pytest.mark.parametrize("ending", ["txt", "txt.gz", "csv", "csv.gz", "tsv", "parquet", "arrow", "feather"])
    @pytest.mark.parametrize("sort", [False, True])
    def test_whatever_the_library_reads(self, tmp_path, table, ending, sort):
        X, y, qid, ids = table
        path = tmp_path / f"a.{ending}"
        if ending.startswith("txt"):
            save_letor(path, X, y, qid, comments=[f"docid = {name}" for name in ids])
        else:
            save_table(path, X, y, qid, ids=ids)
        write_shards(path, tmp_path / "out", rows_per_file=1000, sort=sort)
        found = self.written(tmp_path / "out", table)
        assert found.qid.dtype == np.int64

    def test_an_arrow_stream(self, tmp_path, table):
        save_table(tmp_path / "a.parquet", *table[:3], ids=table[3])
        content = pq.read_table(tmp_path / "a.parquet")
        with pa.ipc.new_stream(tmp_path / "b.arrow", content.schema) as writer:
            writer.write_table(content, max_chunksize=7)
        write_shards(tmp_path / "b.arrow", tmp_path / "out", rows_per_file=1000)
        self.written(tmp_path / "out", table)

    def test_float32(self, tmp_path, table):
        X, y, qid, ids = table
        save_table(tmp_path / "a.csv", X, y, qid, ids=ids)
        write_shards(tmp_path / "a.csv", tmp_path / "single", rows_per_file=1000, float32=True)
        write_shards(tmp_path / "single", tmp_path / "again", rows_per_file=40)
        for folder in ("single", "again"):
            data = open_dataset(tmp_path / folder)
            assert data.source.dtype == np.float32
            assert np.array_equal(np.concatenate([part.X for part in data]), X.astype(np.float32))

    def test_too_large_for_float32(self, tmp_path, table):
        X, y, qid, _ = table
        X[77, 1] = 1e300
        save_table(tmp_path / "a.csv", X, y, qid)
        for sort in (False, True):
            with Refusal("1e+300", row=77, column="f2", parameter="float32"):
                write_shards(tmp_path / "a.csv", tmp_path / "out", rows_per_file=50, float32=True, sort=sort)
        assert os.listdir(tmp_path) == ["a.csv"]

    def test_sparse_text_without_docids(self, tmp_path):
        X = np.zeros((40, 30))
        X[np.arange(40), np.arange(40) % 30] = np.arange(1, 41)
        save_letor(tmp_path / "a.txt", X, np.ones(40), np.arange(40) // 9, drop_zeros=True)
        assert not open_dataset(tmp_path / "a.txt").source.dense
        write_shards(tmp_path / "a.txt", tmp_path / "out", rows_per_file=20)
        found = np.concatenate([load_table(path).X for path in sorted((tmp_path / "out").iterdir())])
        assert np.array_equal(found, load_letor(tmp_path / "a.txt").X.toarray())

    def test_names_labels_and_query_ids(self, tmp_path):
        rows = [("x", None, (1.0, 2.0), "i"), ("x", 1.0, (3.0, 4.0), "j"), ("7", 0.0, (5.0, 6.0), "k")]
        csv(tmp_path / "a.csv", rows, qid="query")
        write_shards(tmp_path / "a.csv", tmp_path / "out", rows_per_file=9, qid="query", feature_names=["bm25", "age"])
        table = pq.read_table(tmp_path / "out")
        assert table.column_names == ["label", "query", "docid", "bm25", "age"]
        assert table["label"].to_pylist() == [None, 1.0, 0.0]
        assert table["query"].to_pylist() == ["x", "x", "7"]

    def test_texts_of_digits_stay_texts_in_typed_formats(self, tmp_path):
        table = pa.table({"qid": ["1", "1", "2"], "label": [1.0, 0, 1], "a": [1.0, 2, 3]})
        pq.write_table(table, tmp_path / "a.parquet")
        write_shards(tmp_path / "a.parquet", tmp_path / "out", rows_per_file=9)
        assert pq.read_table(tmp_path / "out").equals(table.select(["label", "qid", "a"]))


class TestNoSpace:
    """Files may not grow beyond some size, as on a disk that is full."""

    @pytest.mark.parametrize("sort", [False, True])
    @pytest.mark.parametrize("size", [100, 20_000])
    def test_nothing_is_written_and_the_old_shards_stay(self, tmp_path, sort, size):
        rng = np.random.default_rng(0)
        X, y, qid = rng.random((4000, 4)), rng.integers(0, 3, 4000), np.arange(4000) // 8
        save_table(tmp_path / "a.parquet", X, y, qid)
        write_shards(tmp_path / "a.parquet", tmp_path / "out", rows_per_file=4000)
        before = read(tmp_path / "out")[0]
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            with pytest.raises(OSError, match="nothing was written") as raised:
                write_shards(tmp_path / "a.parquet", tmp_path / "out", rows_per_file=1500, sort=sort)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert (raised.value.errno, raised.value.filename) == (errno.EFBIG, str(tmp_path / "out"))
        assert sorted(os.listdir(tmp_path)) == ["a.parquet", "out"]
        assert read(tmp_path / "out")[0] == before


class TestRefused:
    def test_scattered_rows_without_sort(self, tmp_path):
        csv(tmp_path / "a.csv", some_rows("aba"))
        with Refusal("'a'", line=4, file="a.csv", remedy="--sort"):
            write_shards(tmp_path / "a.csv", tmp_path / "out", rows_per_file=9)
        assert os.listdir(tmp_path) == ["a.csv"]

    def test_errors_about_packed_files_name_them(self, tmp_path):
        (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"1 qid:1 1:1\nx qid:1 1:1\n"))
        with Refusal("x", line=2, file="a.txt.gz"):
            write_shards(tmp_path / "a.txt.gz", tmp_path / "out", rows_per_file=9)
        assert os.listdir(tmp_path) == ["a.txt.gz"]

    def test_bad_features_are_told_and_nothing_is_left(self, tmp_path):
        for path, text in (("a.txt", "1 qid:1 1:1\n1 qid:1 1:x\n"), ("a.csv", "qid,label,a\n1,1,1\n1,1,\n")):
            (tmp_path / path).write_text(text)
            with Refusal(file=path, line=2 if path == "a.txt" else 3):
                write_shards(tmp_path / path, tmp_path / "out", rows_per_file=9)
            assert not (tmp_path / "out").exists()

    def test_a_folder_that_holds_something_else(self, tmp_path):
        csv(tmp_path / "a.csv", some_rows("aab"))
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "notes.md").write_text("mine")
        with Refusal("notes.md", file="out", parameter="folder"):
            write_shards(tmp_path / "a.csv", tmp_path / "out", rows_per_file=9)
        assert (tmp_path / "out" / "notes.md").read_text() == "mine"

    def test_a_folder_that_is_read(self, tmp_path):
        csv(tmp_path / "a.csv", some_rows("aab"))
        write_shards(tmp_path / "a.csv", tmp_path / "out", rows_per_file=9)
        with Refusal("read from it", file="out", parameter="folder"):
            write_shards(tmp_path / "out", tmp_path / "out", rows_per_file=9)
        with Refusal(parameter="folder"):
            write_shards(tmp_path / "a.csv", tmp_path, rows_per_file=9)

    @pytest.mark.parametrize("rows", [0, -3, 2.5])
    def test_rows_per_file(self, tmp_path, rows):
        with Refusal(parameter="rows_per_file"):
            write_shards(csv(tmp_path / "a.csv", some_rows("aab")), tmp_path / "out", rows_per_file=rows)

    def test_more_features_than_columns_can_be(self, tmp_path):
        (tmp_path / "a.txt").write_text("1 qid:1 1:5 20001:6\n")
        with Refusal("20001", parameter="features", file="a.txt"):
            write_shards(tmp_path / "a.txt", tmp_path / "out", rows_per_file=9)
        assert os.listdir(tmp_path) == ["a.txt"]

    def test_names(self, tmp_path):
        path = csv(tmp_path / "a.csv", some_rows("aab"))
        with Refusal("1 names", parameter="feature_names"):
            write_shards(path, tmp_path / "out", rows_per_file=9, feature_names=["x"])
        with Refusal("two columns", column="qid"):
            write_shards(path, tmp_path / "out", rows_per_file=9, feature_names=["x", "qid"])


class TestAllOrNothing:
    def test_earlier_shards_are_replaced_together(self, tmp_path):
        path = csv(tmp_path / "a.csv", some_rows("aabbccdd"))
        assert write_shards(path, tmp_path / "out", rows_per_file=2)["files"] == 4
        assert write_shards(path, tmp_path / "out", rows_per_file=4)["files"] == 2
        assert sorted(os.listdir(tmp_path / "out")) == ["part-00000.parquet", "part-00001.parquet"]

    @pytest.mark.parametrize("sort", [False, True])
    def test_what_fails_half_way_leaves_what_was_there(self, tmp_path, monkeypatch, sort):
        path = csv(tmp_path / "a.csv", some_rows("aabbccdd"))
        write_shards(path, tmp_path / "out", rows_per_file=2)
        before = read(tmp_path / "out")
        write, calls = shards._Writer.write, []

        def fails(self, table, together):
            calls.append(table)
            if len(calls) == 3:
                raise OSError(28, "No space left on device")
            write(self, table, together)

        monkeypatch.setattr(shards._Writer, "write", fails)
        with pytest.raises(OSError, match="No space left"):
            write_shards(path, tmp_path / "out", rows_per_file=2, sort=sort)
        assert len(calls) == 3
        assert read(tmp_path / "out") == before
        assert sorted(os.listdir(tmp_path)) == ["a.csv", "out"]

    def test_a_killed_process_leaves_no_folder(self, tmp_path):
        path = csv(tmp_path / "a.csv", some_rows("aabbccdd"))
        code = (
            "import sys, time; from rankrls.io import write_shards; from rankrls.io.datasets import shards\n"
            "write = shards._Writer.write\n"
            "def slow(self, table, together):\n"
            "    write(self, table, together); print('written', flush=True); time.sleep(60)\n"
            "shards._Writer.write = slow\n"
            "write_shards(sys.argv[1], sys.argv[2], rows_per_file=2)\n"
        )
        with subprocess.Popen([sys.executable, "-c", code, path, tmp_path / "out"], stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"written\n"
            process.send_signal(signal.SIGKILL)
        left = [name for name in os.listdir(tmp_path) if name != "a.csv"]
        assert len(left) == 1
        assert left[0].startswith(".out.")
        write_shards(path, tmp_path / "out", rows_per_file=2)
        assert sorted(os.listdir(tmp_path)) == ["a.csv", "out"]
