"""Parquet files read a part at a time, against the same rows in memory and against plain Python."""

import os
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import Refusal

from rankrls import InputWarning
from rankrls._compiled.threads import n_threads
from rankrls.io import load_table, open_dataset, write_shards
from rankrls.io.datasets import opening, shards
from rankrls.io.datasets.runs import Seen, keys_of
from rankrls.io.tables.arrow import parquet_batches

NAMES = ("a", "b")


def write(path, rows, row_group_size=None, ids=str, dtype=np.float32):
    """Rows of (query id, label, a, b) as a Parquet file."""
    qid, y, *columns = ([*column] for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
    given = {name: pa.array(np.array(column, dtype=dtype)) for name, column in zip(NAMES, columns, strict=True)}
    kind = pa.string() if ids is str else pa.int64()
    table = pa.table(
        {"qid": pa.array([*map(ids, qid)], kind), "label": pa.array(np.array(y, dtype=np.float64), from_pandas=True)}
        | given
    )
    pq.write_table(table, path, row_group_size=row_group_size or 1 << 20)
    return str(path)


def rows_of(queries):
    """Rows of queries of these sizes, all different."""
    sizes = np.array(queries)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    k = np.arange(len(qid))
    return [*zip(qid.tolist(), (k % 3).tolist(), k.tolist(), (-k).tolist(), strict=True)]


def check_parts(data, rows, limit, weights=None):
    """What every data set has to keep, whatever its files: the rows in order, whole queries, what pieces know."""
    parts = [data.read(address, names=True) for address in data.parts]
    assert [part.number for part in parts] == [*range(len(parts))]
    X = np.concatenate([part.X for part in parts])
    assert np.array_equal(X, np.array([row[2:] for row in rows], dtype=X.dtype))
    y = np.concatenate([part.y for part in parts])
    assert np.array_equal(y, [row[1] for row in rows], equal_nan=True)
    runs = [[name, len([*run])] for name, run in groupby(str(row[0]) for row in rows)]
    assert (data.n_rows, data.n_queries) == (len(rows), len(runs))
    expected = np.repeat(np.arange(len(runs)), [size for _, size in runs])
    assert np.array_equal(np.concatenate([part.query for part in parts]), expected)
    row = 0
    for part, address in zip(parts, data.parts, strict=True):
        assert part.first_row == address.first_row == row
        assert len(part.y) == address.rows <= limit
        assert part.query_names == [runs[q][0] for q in dict.fromkeys(part.query.tolist())]
        assert address.queries == len(part.query_names)
        own = list(dict.fromkeys(part.query.tolist()))
        whole = all((part.query == q).sum() == runs[q][1] for q in own)
        assert whole == (part.piece is None)
        if part.piece is not None:
            (query,) = own
            assert runs[query][1] > limit
            mine = np.flatnonzero(expected == query)
            labels = y[mine][~np.isnan(y[mine])]
            assert (part.piece.query, part.piece.start) == (query, row - mine[0])
            assert np.array_equal(part.piece.labels, np.unique(labels))
            assert part.piece.counts.tolist() == [int((labels == v).sum()) for v in part.piece.labels]
            w = np.ones(len(y)) if weights is None else weights
            sums = [w[mine][y[mine] == v].sum() for v in part.piece.labels]
            assert np.allclose(part.piece.weights, sums, rtol=1e-14)
            pieces = [p.piece for p in parts if p.piece is not None and p.piece.query == query]
            assert part.piece.n_pieces == len(pieces) > 1
            assert [p.index for p in pieces] == [*range(len(pieces))]
        row += len(part.y)
    return parts


@st.composite
def cuttings(draw):
    """Sizes of queries, how their rows lie in files and row groups, and the limit of a part."""
    queries = draw(st.lists(st.integers(1, 9), min_size=1, max_size=12))
    total = sum(queries)
    borders = draw(st.lists(st.integers(0, total), max_size=4))
    groups = draw(st.lists(st.integers(1, 12), min_size=5, max_size=5))
    return queries, sorted(borders), groups, draw(st.integers(1, 15))


@given(cuttings(), st.sampled_from([str, int]), st.data())
@settings(max_examples=80, deadline=None)
def test_parts_of_any_files(tmp_path_factory, cutting, ids, data):
    queries, borders, groups, limit = cutting
    rows = rows_of(queries)
    unscored = data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=3))
    rows = [(q, np.nan if k in unscored else y, *x) for k, (q, y, *x) in enumerate(rows)]
    folder = tmp_path_factory.mktemp("shards")
    for k, (start, stop) in enumerate(zip([0, *borders], [*borders, len(rows)], strict=True)):
        write(folder / f"part-{k}.parquet", rows[start:stop], groups[k], ids)
    found = open_dataset(folder, labels="optional", rows_per_part=limit)
    check_parts(found, rows, limit)


def test_all_cuts_of_a_small_file(tmp_path):
    rows = rows_of([2, 1, 3])
    n = len(rows)
    for border in range(n + 1):
        for group in range(1, n + 1):
            paths = [write(tmp_path / "0.parquet", rows[:border], group), write(tmp_path / "1.parquet", rows[border:])]
            for limit in range(1, n + 2):
                check_parts(open_dataset(paths, rows_per_part=limit), rows, limit)


class TestWhatIsRead:
    def test_as_load_table_reads_it(self, tmp_path):
        rng = np.random.default_rng(0)
        table = pa.table(
            {
                "query": [f"q{k // 7}" for k in range(50)],
                "grade": rng.integers(0, 3, 50),
                "docid": [f"d{k}" for k in range(50)],
                "w": rng.random(50),
                "yes": rng.random(50) < 0.5,
                "small": rng.integers(0, 9, 50).astype(np.int8),
                "x": rng.random(50).astype(np.float32),
            }
        )
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=13)
        data = open_dataset(tmp_path / "a.parquet", label="grade", qid="query", weight="w", rows_per_part=20)
        memory = load_table(tmp_path / "a.parquet", label="grade", qid="query", ignore="w")
        parts = [data.read(address, names=True) for address in data.parts]
        assert data.feature_names == memory.feature_names == ("yes", "small", "x")
        assert np.array_equal(np.concatenate([part.X for part in parts]), memory.X)
        assert all(part.X.dtype == np.float32 and part.X.flags.c_contiguous for part in parts)
        assert np.array_equal(np.concatenate([part.y for part in parts]), memory.y)
        assert np.array_equal(np.concatenate([part.weight for part in parts]), table["w"].to_numpy())
        assert np.concatenate([part.ids for part in parts]).tolist() == memory.ids.tolist()
        assert data.has_weights

    def test_weights_of_pieces(self, tmp_path):
        rows = rows_of([3, 11])
        weights = np.random.default_rng(1).random(len(rows))
        path = write(tmp_path / "a.parquet", rows)
        pq.write_table(pq.read_table(path).append_column("w", pa.array(weights)), path, row_group_size=4)
        check_parts(open_dataset(path, weight="w", rows_per_part=5), rows, 5, weights)

    def test_one_wide_column_makes_float64(self, tmp_path):
        path = write(tmp_path / "a.parquet", rows_of([3]))
        pq.write_table(pq.read_table(path).append_column("c", pa.array([1.0, 2.0, 3.0])), path)
        assert next(iter(open_dataset(path))).X.dtype == np.float64
        assert next(iter(open_dataset(path, features=["b", "a"]))).X.dtype == np.float32

    def test_features_in_the_order_asked_for_whatever_that_of_the_file(self, tmp_path):
        rows = rows_of([3, 2])
        write(tmp_path / "a.parquet", rows[:3])
        pq.write_table(
            pq.read_table(write(tmp_path / "b.parquet", rows[3:])).select(["b", "label", "a", "qid"]),
            tmp_path / "b.parquet",
        )
        (part,) = open_dataset(tmp_path, features=["b", "a"])
        assert part.X.tolist() == [[row[3], row[2]] for row in rows]

    def test_row_groups_are_not_read_twice_if_they_fit(self, tmp_path):
        path = write(tmp_path / "a.parquet", rows_of([2] * 60), 10)
        data = open_dataset(path, rows_per_part=25)
        assert [(s.first, s.last, s.skip) for address in data.parts for s in address.spans] == [
            (k, k + 2, 0) for k in range(0, 12, 2)
        ]

    def test_a_large_row_group_is_cut_evenly(self, tmp_path):
        path = write(tmp_path / "a.parquet", rows_of([2] * 130), 130)
        assert [address.rows for address in open_dataset(path, rows_per_part=100).parts] == [66, 64] * 2

    def test_a_warning_where_much_is_decoded_again(self, tmp_path, monkeypatch):
        monkeypatch.setattr(opening, "_MANY_ROWS", 500)
        path = write(tmp_path / "a.parquet", rows_of([2] * 130), 260)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            open_dataset(path, rows_per_part=100)  # three parts: 0 + 88 + 176 rows are decoded again
        with pytest.warns(InputWarning, match="row groups") as found:
            data = open_dataset(path, rows_per_part=30)
        again = sum(span.skip for address in data.parts for span in address.spans)
        assert f"{1 + again / 260:.1f} rows" in str(found[0].message)
        assert found[0].message.parameter == "rows_per_part"
        assert found[0].filename == __file__

    def test_in_another_process(self, tmp_path):
        rows = rows_of([3, 4, 2])
        data = open_dataset(write(tmp_path / "a.parquet", rows, 4), rows_per_part=4)
        with ProcessPoolExecutor(1) as pool:
            parts = [*pool.map(data.read, data.parts)]
        assert np.concatenate([part.X for part in parts]).tolist() == [[*row[2:]] for row in rows]
        assert pickle.loads(pickle.dumps(data)).n_queries == 3

    def test_describe_and_repr(self, tmp_path):
        path = write(tmp_path / "a.parquet", rows_of([3, 4]))
        data = open_dataset(path, rows_per_part=4)
        described = data.describe()
        assert (described["rows"], described["queries"], described["parts"]) == (7, 2, 2)
        assert described["files"][0]["size"] == os.path.getsize(path)
        assert repr(data) == "<Dataset of 1 parquet file: 7 rows, 2 features, 2 queries, 2 parts>"


class TestLargeRowGroups:
    """A thread that reads parts in their order decodes each row group once."""

    @pytest.fixture
    def decoded(self, monkeypatch):
        """Rows that pyarrow has decoded of features."""
        found = [0]

        def counted(file, names, groups, rows):
            for batch in parquet_batches(file, names, groups, min(rows, 7)):
                found[0] += batch.num_rows * ("a" in batch.schema.names)
                yield batch

        monkeypatch.setattr("rankrls.io.tables.arrow.parquet_batches", counted)
        return found

    @given(st.lists(st.integers(1, 9), min_size=1, max_size=15), st.integers(1, 60), st.integers(1, 20), st.data())
    @settings(max_examples=40, deadline=None)
    def test_in_any_order(self, tmp_path_factory, queries, group, limit, data):
        rows = rows_of(queries)
        folder = tmp_path_factory.mktemp("groups")
        for k, begin in enumerate(range(0, len(rows), 50)):
            write(folder / f"{k}.parquet", rows[begin : begin + 50], group)
        found = open_dataset(folder, rows_per_part=limit)
        X = np.array([row[2:] for row in rows])
        for number in data.draw(st.lists(st.integers(0, len(found.parts) - 1), max_size=12)):
            address = found.parts[number]
            for names in data.draw(st.sampled_from([(False,), (True,), (True, False)])):
                part = found.read(address, names=names)
                assert np.array_equal(part.X, X[address.first_row : address.first_row + address.rows])

    def test_each_row_is_decoded_once(self, tmp_path, decoded):
        rows = rows_of([3] * 200)
        data = open_dataset(write(tmp_path / "a.parquet", rows, 250), rows_per_part=20)
        check_parts(data, rows, 20)
        assert decoded[0] == len(rows)

    def test_by_threads(self, tmp_path, decoded):
        rows = rows_of([3] * 200)
        data = open_dataset(write(tmp_path / "a.parquet", rows, 600), rows_per_part=20)
        with ThreadPoolExecutor(2) as pool:
            parts = [*pool.map(data.read, data.parts)]
        assert np.concatenate([part.X for part in parts]).tolist() == [[*row[2:]] for row in rows]
        assert decoded[0] <= 2 * len(rows)

    def test_shards_of_them(self, tmp_path, decoded, monkeypatch):
        monkeypatch.setattr(shards, "_GROUP_BYTES", 16 * 20)
        path = write(tmp_path / "a.parquet", rows_of([3] * 200), 600)
        write_shards(path, tmp_path / "out", rows_per_file=1000)
        assert decoded[0] <= 600 * n_threads()

    def test_a_file_that_changes_between_two_parts(self, tmp_path):
        path = write(tmp_path / "a.parquet", rows_of([3] * 20))
        data = open_dataset(path, rows_per_part=20)
        data.read(data.parts[0])
        os.utime(path, ns=(0, 0))
        with Refusal("changed", file="a.parquet"):
            data.read(data.parts[1])

    def test_a_bad_value_is_told_with_its_row(self, tmp_path):
        rows = rows_of([3] * 20)
        rows[40] = (13, 0, np.nan, 0)
        data = open_dataset(write(tmp_path / "a.parquet", rows), rows_per_part=20)
        for address in data.parts[:2]:
            data.read(address)
        for _ in range(2):
            with Refusal("nan", row=40, column="a"):
                data.read(data.parts[2])


class TestLists:
    def table(self, kind, m=23):
        rng = np.random.default_rng(2)
        emb = rng.random((m, 4)).astype(np.float32)
        return emb, pa.table(
            {
                "qid": np.arange(m) // 4,
                "x": np.arange(m, dtype=np.float32),
                "emb": pa.array(emb.tolist(), kind),
                "label": np.arange(m) % 3 * 1.0,
            }
        )

    @pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 4), pa.large_list(pa.float32())])
    def test_as_load_table_reads_them(self, tmp_path, kind):
        emb, table = self.table(kind)
        pq.write_table(table.slice(0, 9), tmp_path / "1.parquet", row_group_size=4)
        pq.write_table(table.slice(9).select(["emb", "label", "qid", "x"]), tmp_path / "2.parquet")
        data = open_dataset(tmp_path, rows_per_part=6)
        assert data.feature_names == ("x", "emb[0]", "emb[1]", "emb[2]", "emb[3]")
        X = np.concatenate([part.X for part in data])
        assert X.dtype == np.float32
        assert np.array_equal(X, np.column_stack([np.arange(23), emb]).astype(np.float32))
        data = open_dataset(tmp_path, features="emb", rows_per_part=6)
        assert np.array_equal(np.concatenate([part.X for part in data]), emb)
        write_shards(tmp_path, tmp_path / "out", rows_per_file=10)
        assert np.array_equal(np.concatenate([part.X for part in open_dataset(tmp_path / "out")]), X)

    def test_lists_of_several_lengths(self, tmp_path):
        _, table = self.table(pa.list_(pa.float32()))
        pq.write_table(table, tmp_path / "1.parquet")
        odd = table.set_column(0, "qid", pa.array(table["qid"].to_numpy() + 50))
        lists = odd["emb"].to_pylist()
        lists[7] = [1.0]
        pq.write_table(odd.set_column(2, "emb", pa.array(lists, pa.list_(pa.float32()))), tmp_path / "2.parquet")
        data = open_dataset(tmp_path)
        with Refusal("length", file="2.parquet", row=7, column="emb"):
            [*data]
        _, table = self.table(pa.list_(pa.float32(), 4))
        short = [row[:3] for row in table["emb"].to_pylist()]
        pq.write_table(odd.set_column(2, "emb", pa.array(short, pa.list_(pa.float32(), 3))), tmp_path / "2.parquet")
        with Refusal(file="2.parquet", column="emb[3]", remedy="schema"):
            open_dataset(tmp_path)

    def test_missing_numbers(self, tmp_path):
        _, table = self.table(pa.list_(pa.float32(), 4))
        lists = table["emb"].to_pylist()
        lists[5][2] = None
        pq.write_table(table.set_column(2, "emb", pa.array(lists, pa.list_(pa.float32(), 4))), tmp_path / "a.parquet")
        with Refusal("missing", file="a.parquet", row=5, column="emb[2]"):
            open_dataset(tmp_path)

    def test_lists_that_are_no_features_may_be_anything(self, tmp_path):
        _, table = self.table(pa.list_(pa.float32()), 3)
        words = table.append_column("words", pa.array([["a"], [], None]))
        odd = words.append_column("sizes", pa.array([[1], [2, 3], []]))
        pq.write_table(odd, tmp_path / "a.parquet")
        data = open_dataset(tmp_path, ignore=["words", "sizes"])
        assert data.n_features == 5
        assert len(next(iter(data)).X) == 3
        with Refusal(column="words", remedy="ignore"):
            open_dataset(tmp_path)


class TestPaths:
    def test_numbers_in_names_count_by_value(self, tmp_path):
        rows = rows_of([4, 4, 4])
        for k, name in ((0, "p-2"), (1, "p-10"), (2, "p-100")):
            write(tmp_path / f"{name}.parquet", rows[4 * k : 4 * k + 4])
        (tmp_path / "_SUCCESS").touch()
        (tmp_path / ".hidden.parquet").touch()
        (tmp_path / "notes.md").touch()
        for paths in (tmp_path, str(tmp_path / "*.parquet"), [tmp_path / f"p-{k}.parquet" for k in (2, 10, 100)]):
            check_parts(open_dataset(paths), rows, 100)

    def test_partitions(self, tmp_path):
        rows = rows_of([4, 4, 4, 4])
        for k, name in enumerate(
            ["a.parquet", "day=2/b.parquet", "day=10/part=1/c.parquet", "day=10/part=2/a.parquet"]
        ):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            write(tmp_path / name, rows[4 * k : 4 * k + 4])
        for other in ("old", "day=11/old", "_day=3"):
            (tmp_path / other).mkdir(parents=True)
            write(tmp_path / other / "x.parquet", rows[:4])
        data = open_dataset(tmp_path)
        check_parts(data, rows, 100)
        assert data.feature_names == NAMES  # the key is none

    def test_folders_that_are_no_partitions_are_named_by_a_pattern(self, tmp_path):
        rows = rows_of([4, 4])
        for k in range(2):
            (tmp_path / f"{k}").mkdir()
            write(tmp_path / f"{k}" / "x.parquet", rows[4 * k : 4 * k + 4])
        with Refusal("no file", parameter="path", remedy="**"):
            open_dataset(tmp_path)
        check_parts(open_dataset(str(tmp_path / "**" / "*.parquet")), rows, 100)

    def test_nothing_there(self, tmp_path):
        with Refusal("no file", parameter="path"):
            open_dataset(tmp_path)
        with Refusal("no file", parameter="path"):
            open_dataset(str(tmp_path / "*.parquet"))
        with Refusal("empty", parameter="path"):
            open_dataset([])
        with pytest.raises(FileNotFoundError):
            open_dataset(tmp_path / "a.parquet")

    def test_a_file_that_is_there_twice(self, tmp_path):
        path = write(tmp_path / "a.parquet", rows_of([3]))
        os.symlink(path, tmp_path / "b.parquet")
        for paths in ([path, path], tmp_path):
            with Refusal("twice", parameter="path"):
                open_dataset(paths)


class TestRefused:
    def test_a_query_that_comes_back(self, tmp_path):
        rows = [(q, 1, k, k) for k, q in enumerate("aabbcca")]
        one, other = write(tmp_path / "1.parquet", rows[:3], 2), write(tmp_path / "2.parquet", rows[3:], 2)
        with Refusal("'a'", "row 0", one, "row 3", file="2.parquet", row=3, column="qid", remedy="--sort"):
            open_dataset([one, other])

    def test_rows_in_any_order_are_found_early(self, tmp_path):
        rows = [(k % 50, 1, k, k) for k in range(500)]
        with Refusal("'0'", "row 0", row=50, remedy="--sort"):
            open_dataset(write(tmp_path / "a.parquet", rows, 100, int))

    def test_the_same_rows_in_two_files(self, tmp_path):
        paths = [write(tmp_path / f"{k}.parquet", rows_of([2, 3])) for k in range(2)]
        with Refusal("'0'", file="1.parquet", row=0):
            open_dataset(paths)

    @pytest.mark.parametrize(
        ("change", "column"),
        [
            (lambda t: t.drop_columns(["b"]), "b"),
            (lambda t: t.append_column("c", t["a"]), "c"),
            (lambda t: t.set_column(2, "a", t["a"].cast(pa.float64())), "a"),
            (lambda t: t.set_column(0, "qid", pa.array([1, 1, 1])), "qid"),
        ],
    )
    def test_another_schema(self, tmp_path, change, column):
        paths = [write(tmp_path / f"{k}.parquet", rows_of([3])) for k in range(2)]
        pq.write_table(change(pq.read_table(paths[1])), paths[1])
        with Refusal(paths[0], file="1.parquet", column=column, remedy="schema"):
            open_dataset(paths)

    def test_texts_of_several_kinds_are_one(self, tmp_path):
        paths = [write(tmp_path / f"{k}.parquet", rows_of([3])[:2] if k == 0 else [("7", 1, 2, 3)]) for k in range(3)]
        for path, kind in zip(paths[1:], (pa.large_string(), pa.dictionary(pa.int32(), pa.string())), strict=True):
            table = pq.read_table(path)
            pq.write_table(table.set_column(0, "qid", table["qid"].cast(kind)), path)
        assert open_dataset(paths).n_queries == 2

    @pytest.mark.parametrize("statistics", [True, False])
    def test_a_missing_feature(self, tmp_path, statistics):
        paths = [write(tmp_path / f"{k}.parquet", [(f"{k}{j // 3}", 1, j, j) for j in range(9)]) for k in range(2)]
        table = pq.read_table(paths[1])
        b = pa.array([None if k == 7 else float(k) for k in range(9)], pa.float32())
        pq.write_table(table.set_column(3, "b", b), paths[1], row_group_size=4, write_statistics=statistics)
        with Refusal("missing", file="1.parquet", row=7, column="b"):
            data = open_dataset(paths)
            assert not statistics  # a footer that counts them is enough
            [*data]

    def test_a_feature_that_is_not_finite(self, tmp_path):
        rows = rows_of([3, 3])
        rows[4] = (1, 0, np.nan, 0)
        data = open_dataset(write(tmp_path / "a.parquet", rows, 2), rows_per_part=3)
        assert len(data.read(data.parts[0]).y) == 3
        with Refusal("nan", file="a.parquet", row=4, column="a"):
            data.read(data.parts[1])

    def test_missing_labels_queries_and_weights(self, tmp_path):
        path = write(tmp_path / "a.parquet", [*rows_of([3]), (1, np.nan, 0, 0)], 2)
        with Refusal("label", row=3, column="label"):
            open_dataset(path)
        table = pq.read_table(path)
        with Refusal("label", column="label", parameter="label"):
            open_dataset(write_again(path, table.drop_columns(["label"])))
        assert np.isnan(next(iter(open_dataset(path, labels="optional"))).y).all()
        with Refusal("qid", column="qid", parameter="qid"):
            open_dataset(write_again(path, table.drop_columns(["qid"])), labels="optional")
        weights = table.append_column("w", pa.array([1.0, 2.0, -1.0, 0.0]))
        with Refusal("negative", row=2, column="w"):
            open_dataset(write_again(path, weights), labels="optional", weight="w")
        with Refusal("there is no column", column="v", parameter="weight"):
            open_dataset(path, labels="optional", weight="v")

    def test_columns_of_other_things(self, tmp_path):
        path = write(tmp_path / "a.parquet", rows_of([3]))
        table = pq.read_table(path).append_column("words", pa.array(["x", "y", "z"]))
        with Refusal("no numbers", column="words", remedy="ignore"):
            open_dataset(write_again(path, table))
        assert open_dataset(path, ignore="words").feature_names == NAMES

    def test_no_rows(self, tmp_path):
        with Refusal("no rows", file="a.parquet"):
            open_dataset(write(tmp_path / "a.parquet", []))

    def test_not_parquet(self, tmp_path):
        (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing of the kind")
        with Refusal("Parquet", file="a.parquet"):
            open_dataset(tmp_path / "a.parquet")

    @pytest.mark.parametrize("keep", [0.0, 0.3, 0.99])
    def test_a_truncated_file_among_others(self, tmp_path, keep):
        paths = [write(tmp_path / f"{k}.parquet", [(f"{k}{j}", 1, j, j) for j in range(50)]) for k in range(3)]
        whole = Path(paths[1]).read_bytes()
        Path(paths[1]).write_bytes(whole[: int(keep * len(whole))])
        with Refusal("Parquet", file="1.parquet"):
            open_dataset(paths)
        assert not (tmp_path / "out").exists()
        with Refusal("Parquet", file="1.parquet"):
            write_shards(paths, tmp_path / "out", rows_per_file=100)
        assert sorted(os.listdir(tmp_path)) == ["0.parquet", "1.parquet", "2.parquet"]

    @pytest.mark.parametrize("rows_per_part", [0, -1, 1.5, "many"])
    def test_sizes_of_parts(self, tmp_path, rows_per_part):
        with Refusal(parameter="rows_per_part"):
            open_dataset(write(tmp_path / "a.parquet", rows_of([3])), rows_per_part=rows_per_part)


def write_again(path, table):
    pq.write_table(table, path)
    return path


class TestFilesThatChange:
    def test_size_and_time(self, tmp_path):
        path = write(tmp_path / "a.parquet", rows_of([3]))
        data = open_dataset(path)
        data.check_unchanged()
        os.utime(path, ns=(0, 0))
        for read in (data.check_unchanged, lambda: data.read(data.parts[0])):
            with Refusal("changed", file="a.parquet"):
                read()

    def test_footer(self, tmp_path):
        path = write(tmp_path / "a.parquet", rows_of([3]))
        data, times = open_dataset(path), os.stat(path)
        content = bytearray(Path(path).read_bytes())
        content[-20] ^= 1
        Path(path).write_bytes(content)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        with Refusal("changed", file="a.parquet"):
            data.check_unchanged()

    def test_gone(self, tmp_path):
        path = write(tmp_path / "a.parquet", rows_of([3]))
        data = open_dataset(path)
        os.remove(path)
        with pytest.raises(FileNotFoundError):
            data.check_unchanged()


class TestSeen:
    @given(st.lists(st.lists(st.integers(0, 40), max_size=10), max_size=20))
    def test_against_a_set(self, blocks):
        seen, told = Seen(), set()
        for block in blocks:
            told |= {*seen.add(np.array(block, dtype=np.int64)).tolist()}
        told |= {*seen.repeated().tolist()}
        every = [key for block in blocks for key in block]
        assert told == {key for key in every if every.count(key) > 1}

    def test_a_number_and_its_text_are_the_same(self):
        as_text = keys_of((["7", "x", "-12"], np.array([0, 1, 2])), np.arange(3))
        as_number = keys_of((None, np.array([7, 0, -12])), np.arange(3))
        assert as_text[[0, 2]].tolist() == as_number[[0, 2]].tolist()
        assert as_text[1] != 0

    def test_two_ids_with_one_key_are_no_error(self, tmp_path, monkeypatch):
        monkeypatch.setattr("rankrls.io.datasets.runs._key", lambda text: 1)
        assert open_dataset(write(tmp_path / "a.parquet", rows_of([2, 1, 3]), 2)).n_queries == 3
