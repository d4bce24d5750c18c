"""Tables as an attacker or an unlucky export writes them: nothing is lost, merged, guessed or allocated for nothing."""

import csv
import gzip
import io
import math
import pickle
import time
import tracemalloc
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.refusals import Refusal

from rankrls._cell_text import number
from rankrls._queries import query_layout
from rankrls.io import LetorError, PairsError, TableError, _source, load_letor, load_pairs, load_table, save_table
from rankrls.io.tables import delimited
from rankrls.io.tables.cells import Unreadable, records
from rankrls.io.tables.columns import Wanted, assign, matching

ENDINGS = ["csv", "tsv", "csv.gz", "parquet", "arrow"]
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


def read(text, **options):
    return load_table(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


def refused(source, **options):
    with pytest.raises(TableError) as found:
        load_table(io.BytesIO(source) if isinstance(source, bytes) else source, **options)
    return found.value


def parquet(**columns):
    file = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), file)
    return file.getvalue()


class TestIds:
    def test_a_long_one_costs_its_length_once(self):
        rows = 5_000
        text = "label,qid,a\n" + f"1,{'x' * 50_000},1\n" + "1,q,1\n" * rows
        tracemalloc.start()
        try:
            table = read(text)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert table.qid.dtype == object
        assert peak < 50e6  # 5,000 x 50,000 x 4 bytes are a gigabyte
        assert query_layout(table.qid, table.n_rows).n_queries == 2

    def test_a_long_one_in_letor_and_parquet(self):
        long = "x" * 20_000
        table = load_letor(io.BytesIO(f"1 qid:{long} 1:1\n".encode() + b"1 qid:q 1:1\n" * 10))
        assert (table.qid.dtype, table.qid[0], table.qid.nbytes) == (object, long, 11 * 8)
        table = load_table(io.BytesIO(parquet(a=[1, 2], label=[1, 0], qid=[long, "q"])), format="parquet")
        assert (table.qid.dtype, table.qid.tolist()) == (object, [long, "q"])

    def test_equal_ids_are_one_object(self):
        table = read("label,qid,a\n" + "1,one text,1\n" * 3, labels="optional")
        assert table.qid[0] is table.qid[2]

    @pytest.mark.parametrize("size", [30, 1 << 20])
    def test_blanks_count_inside_quotes_only(self, size, monkeypatch):
        monkeypatch.setattr(delimited, "_BLOCK", size)
        table = read('label,qid,a\n1,"a ",1\n1,a,1\n1, a ,1\n1, " a" ,1\n1," a",2\n1,a ,1\n')
        assert table.qid.tolist() == ["a ", "a", "a", " a", " a", "a"]

    @pytest.mark.parametrize("size", [4, 12, 1 << 20])
    def test_a_byte_order_mark_inside_is_text(self, size, monkeypatch):
        """Also where a block begins, from which pyarrow would take it."""
        monkeypatch.setattr(delimited, "_BLOCK", size)
        monkeypatch.setattr(delimited, "_BYTES_PER_COLUMN", 1)
        table = read("\ufeffqid,label,a\n\ufeffq,1,2\nq,1,3\n\ufeffq,0,2\n")
        assert table.qid.tolist() == ["\ufeffq", "q", "\ufeffq"]
        error = refused("a,qid,label\n1,q,0\n\ufeff2,q,1\n".encode())
        assert (error.line, error.column) == (3, "a")

    def test_the_delimiter_is_not_looked_for_in_quotes(self):
        table = read('"a;b;\nc",label,qid\n1,2,"x"\n')
        assert table.feature_names == ("a;b;\nc",)

    @pytest.mark.parametrize("line", [2, 4])
    def test_a_nul_is_refused(self, line):
        lines = ["1,q,1", "1,r,2", "1,s,3"]
        lines[line - 2] = "1,q\0,1"
        error = refused(("label,qid,a\n" + "\n".join(lines)).encode())
        assert (error.line, error.column, error.file) == (line, "qid", "<stream>")
        error = refused(parquet(a=[1, 2, 3], label=[1, 1, 1], qid=["a", "a\0", "b"]), format="parquet")
        assert (error.row, error.column) == (1, "qid")

    def test_leading_zeros_stay(self):
        assert read("label,qid,docid,a\n1,007,01,1\n1,7,2,1\n").qid.tolist() == ["007", "7"]


class TestCells:
    """The second pass against Python's csv module, and the first against the second."""

    @given(
        st.lists(st.lists(st.text(st.sampled_from('a ",\r\n;é')), min_size=2, max_size=4), min_size=1),
        st.sampled_from([",", ";"]),
    )
    def test_cells_of_quoted_text(self, rows, delimiter):
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
        found = [*records(file.getvalue().encode(), delimiter.encode())]
        assert [[cell.decode() for cell in record.cells] for record in found] == rows
        assert [record.line for record in found] == [
            1 + sum(cell.count("\n") for row in rows[:k] for cell in row) + k for k in range(len(rows))
        ]

    @given(st.text(st.sampled_from('ab1 ",\r\n'), max_size=12), st.integers(20, 90))
    @example('"q"x', 1 << 20)
    @example('""5', 1 << 20)
    @example('5" disc', 1 << 20)
    @example('" 7"', 1 << 20)
    @example("1\r", 1 << 20)
    def test_pyarrow_reads_what_the_second_pass_reads(self, cell, size):
        """Whatever stands in a cell: the same table, or the same refusal, as cell by cell."""
        text = f"label,qid,a\n1,p,2\n0,{cell},3\n1,r,{cell}\n2,s,4\n".encode()
        tables = []
        for by_cells in (False, True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(delimited, "_BLOCK", size)
                if by_cells:
                    patch.setattr(delimited, "_check_quotes", irregular)
                try:
                    table = read(text)
                    tables.append((table.X.tolist(), table.y.tolist(), table.qid.tolist()))
                except TableError as error:
                    tables.append((str(error), error.line, error.column))
        assert tables[0] == tables[1]

    @given(st.text(st.sampled_from('ab ",\r\n'), max_size=20))
    def test_text_that_is_not_made_of_rows(self, text):
        """Cells are told apart, or a place is named inside the text."""
        data = text.encode() + b"\n"
        found, broken = [], None
        try:
            found.extend(records(data, b","))
        except Unreadable as error:
            broken = error
        if broken is None:
            assert not data[found[-1].end if found else 0 :].strip()
        else:
            assert 1 <= broken.line <= data.count(b"\n")
            assert broken.start < len(data)

    def test_newlines_times_columns_cost_nothing(self):
        columns = 2_000
        header = "label," + ",".join(f"f{k}" for k in range(columns))
        row = "1," + ",".join("2" * columns)
        tracemalloc.start()
        try:
            table = read(header + "\n" + "\n" * 300_000 + row + "\n" + "\n" * 300_000)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert table.X.shape == (1, columns)
        assert peak < 100e6  # 600,000 x 2,000 numbers are ten gigabytes

    def test_blank_lines_cost_next_to_no_time(self):
        begin = time.process_time()
        assert read(b"label,a\n" + b"\n  \r\n" * 4_000_000 + b"1,2\n").X.tolist() == [[2.0]]
        error = refused(b"label,a\n" + b"\n  \r\n" * 1_000_000 + b"1,x\n")
        assert time.process_time() - begin < 5  # they took a third of a minute
        assert error.line == 2_000_002

    def test_a_header_and_a_row_longer_than_a_block(self, monkeypatch):
        monkeypatch.setattr(delimited, "_BLOCK", 64)
        names = [f"feature number {k}" for k in range(100)]
        quoted = "x" * 70 + "\n" + "y" * 300
        text = "label,qid," + ",".join(names) + f'\n1,"{quoted}",' + ",".join(map(str, range(100))) + "\n"
        table = read(text)
        assert table.feature_names == tuple(names)
        assert table.X.tolist() == [[*range(100)]]
        assert table.qid.tolist() == [quoted]


class TestNumbers:
    FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=64)

    @given(st.lists(st.one_of(FLOATS.map(repr), FLOATS.map(lambda v: f"{v:.25e}"), FLOATS.map(lambda v: f"{v:.17g}"))))
    def test_to_the_last_bit(self, words):
        words = ["0.1", "2.2250738585072011e-308", "1.7976931348623157e308", "5e-324", "9007199254740993", *words]
        X = read("label,a\n" + "".join(f"0,{word}\n" for word in words)).X[:, 0]
        assert X.tobytes() == np.array([float(word) for word in words]).tobytes()

    @given(st.text(st.sampled_from("0123456789+-.eE_xXaninftruesfdlbN ()"), min_size=1, max_size=9))
    @example("nan(1)")
    @example("0x10")
    @example("1e400")
    @example("+1.5")
    @example("1_000")
    @example("Infinity")
    @example("2020-01-01")
    def test_unusual_forms_are_read_as_float_reads_them_or_refused(self, word):
        expected = number(word.encode())
        try:
            plain = float(word)
        except ValueError:
            plain = math.nan
        if "_" not in word and math.isfinite(plain):
            assert expected == plain
        elif word.strip().lower() not in ("true", "false"):
            assert expected is None
        text = f"label,a,b\n0,1,2\n0,{word},3\n"
        if expected is None:
            error = refused(text.encode())
            assert (error.line, error.column) == (3, "a")
        else:
            assert read(text).X.tolist() == [[1.0, 2.0], [expected, 3.0]]

    def test_labels_that_only_pyarrow_takes_for_missing(self):
        error = refused(b"label,a\n1,2\nnan(1),3\n", labels="optional")
        assert (error.line, error.column) == (3, "label")
        y = read("label,a\n1,2\nNull,3\nN/a,3\n \t,3\n", labels="optional").y
        np.testing.assert_array_equal(y, [1, np.nan, np.nan, np.nan])

    def test_whole_numbers_that_no_float64_is(self):
        error = refused(parquet(big=[2**60, 2**53, 2**53 + 1], label=[1, 0, 1]), format="parquet")
        assert (error.row, error.column) == (2, "big")
        assert str(2**53 + 1) in error.problem
        table = load_table(io.BytesIO(parquet(big=[2**60, -(2**53), 5], label=[1, 0, 1])), format="parquet")
        assert table.X[:, 0].tolist() == [2.0**60, -(2.0**53), 5.0]

    def test_decimals_are_the_nearest_float64(self):
        values = [Decimal("3.30"), Decimal("0.10"), Decimal("-2.675"), Decimal("99999999999999.995")]
        table = load_table(io.BytesIO(parquet(a=values, label=[1, 0, 1, 0])), format="parquet")
        assert table.X[:, 0].tolist() == [float(value) for value in values]

    def test_ids_of_bytes(self):
        table = load_table(io.BytesIO(parquet(a=[1, 2], label=[1, 0], qid=["é".encode(), b"b"])), format="parquet")
        assert table.qid.tolist() == ["é", "b"]
        error = refused(parquet(a=[1, 2], label=[1, 0], qid=[b"b", b"\xe9"]), format="parquet")
        assert (error.row, error.column) == (1, "qid")
        error = refused(parquet(a=[1, 2], label=[1, 0], qid=["b", ""]), format="parquet")
        assert (error.row, error.column) == (1, "qid")


class TestWriting:
    @pytest.mark.parametrize("ending", ENDINGS)
    @given(ids=st.lists(TEXTS, min_size=1, max_size=8), names=st.lists(TEXTS, min_size=1, max_size=4, unique=True))
    @example(ids=["a\rb", "a ", " a", "a", '"', "\ufeff", "\t", "'", "a\r\nb", "1\n"], names=["x\ty", " n", "\ufeff"])
    @example(ids=["=1+1", "NA", "true", ","], names=["a;b;c;d", '"'])
    def test_every_text_comes_back(self, ending, ids, names, tmp_path_factory):
        path = tmp_path_factory.mktemp("t") / f"t.{ending}"
        names = ["first", *(name for name in names if name not in ("first", "label", "qid", "docid"))]
        X = np.arange(float(len(ids) * len(names))).reshape(len(ids), -1)
        save_table(path, X, np.ones(len(ids)), ids, ids=[*reversed(ids)], feature_names=names)
        table = load_table(path, features=names)
        assert table.feature_names == tuple(names)
        assert [str(q) for q in table.qid] == ids
        assert [str(q) for q in table.ids] == [*reversed(ids)]
        np.testing.assert_array_equal(table.X, X)

    @pytest.mark.parametrize("ending", ENDINGS)
    @pytest.mark.parametrize("bad", ["", "a\0", "\ud800"])
    def test_ids_that_could_not_be_read(self, ending, bad, tmp_path):
        with pytest.raises(ValueError) as found:
            save_table(tmp_path / f"t.{ending}", [[1.0], [2.0]], [1, 0], ["a", bad])
        assert found.value.row == 1
        assert not [*tmp_path.iterdir()]

    def test_names_that_could_not_be_read(self, tmp_path):
        with Refusal("all numbers"):
            save_table(tmp_path / "t.csv", [[1.0]], feature_names=["7"])
        save_table(tmp_path / "t.parquet", [[1.0]], feature_names=["7"])
        assert load_table(tmp_path / "t.parquet", labels="optional").feature_names == ("7",)

    def test_formulas(self, tmp_path):
        given = {"qid": ["=cmd|'/c calc'!A1", "+1", "safe"], "feature_names": ["@x"]}
        path = tmp_path / "t.csv"
        save_table(path, [[-1.0], [2.0], [3.0]], [1, 0, 1], **given)
        assert load_table(path).qid.tolist() == given["qid"]
        save_table(path, [[-1.0], [2.0], [3.0]], [1, 0, 1], **given, escape_formulas=True)
        assert load_table(path).qid.tolist() == ["'=cmd|'/c calc'!A1", "'+1", "safe"]
        assert path.read_text().splitlines()[0] == "label,qid,'@x"
        assert load_table(path).X[0, 0] == -1.0


class TestFormats:
    """Arrow files, streams and data frames give the table that CSV gives."""

    FRAME = pd.DataFrame({"label": [0.0, 1, 2], "qid": ["a", "a", "b"], "x": [1.5, 2, 3], "on": [True, False, True]})

    def check(self, table):
        expected = read(self.FRAME.to_csv(index=False))
        for name in ("X", "y", "qid"):
            np.testing.assert_array_equal(getattr(table, name), getattr(expected, name))
        assert table.feature_names == expected.feature_names

    @pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
    def test_feather(self, compression, tmp_path):
        self.FRAME.to_feather(tmp_path / "t.feather", compression=compression)
        self.check(load_table(tmp_path / "t.feather"))
        data = (tmp_path / "t.feather").read_bytes()
        self.check(load_table(io.BytesIO(data), format="arrow"))
        (tmp_path / "without ending").write_bytes(data)
        self.check(load_table(tmp_path / "without ending"))
        error = refused(data[: len(data) // 2], format="arrow")
        assert (error.file, error.line) == ("<stream>", None)

    def test_streams(self):
        file = io.BytesIO()
        table = pa.Table.from_pandas(self.FRAME)
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
        self.check(load_table(io.BytesIO(file.getvalue()), format="arrow"))

    def test_frames(self):
        import polars as pl

        self.check(load_table(self.FRAME))
        self.check(load_table(pl.from_pandas(self.FRAME)))
        self.check(load_table(pa.Table.from_pandas(self.FRAME)))
        assert load_table(self.FRAME).sha256 == ""
        error = refused(self.FRAME.assign(x=["a", "b", "c"]))
        assert (error.column, error.file) == ("x", "<DataFrame>")
        pairs = load_pairs(pd.DataFrame({"winner": ["a"], "loser": ["b"], "weight": [2]}), ids=["b", "a"])
        assert (pairs.winners.tolist(), pairs.losers.tolist(), pairs.weight.tolist()) == ([1], [0], [2.0])

    def test_lists_in_arrow_files(self, tmp_path):
        E = np.arange(12.0).reshape(4, 3)
        pd.DataFrame({"label": range(4), "emb": [*E]}).to_feather(tmp_path / "t.arrow")
        table = load_table(tmp_path / "t.arrow", features=["emb[2]", "emb[0]", "emb[1]"])
        np.testing.assert_array_equal(table.X, E[:, [2, 0, 1]])


class TestManyColumns:
    NAMES = tuple(f"feature_{k}_{'abc'[k % 3]}" for k in range(20_000))

    def roles(self, *patterns, names=NAMES, **lists):
        refuse = lambda *args, **facts: TableError(*args, **facts)
        wanted = Wanted.checked(None, None, None, patterns, (), "optional")
        begin = time.process_time()
        found = assign(refuse, names, wanted, lists)
        assert time.process_time() - begin < 5  # it took half a minute
        return found.features

    def test_many_patterns(self):
        found = self.roles(*(f"feature_{k}*" for k in range(100, 200)))
        wanted = [k for k in range(20_000) if 100 <= int(str(k)[:3]) < 200 <= k or 100 <= k < 200]
        assert sorted(found) == sorted(self.NAMES[k] for k in wanted)

    def test_a_pattern_takes_time_that_is_linear_in_the_name(self):
        assert self.roles("*a" * 20 + "*b?", names=["x", "a" * 2_000, "a" * 2_000 + "bc"]) == ("a" * 2_000 + "bc",)

    def test_brackets_are_themselves_and_lists_are_taken_whole(self):
        names = ["bm25[title]", "bm25t", "emb", "emb2"]
        assert self.roles("bm25[t*", names=names) == ("bm25[title]",)
        assert self.roles("e*", names=names, emb=3) == ("emb[0]", "emb[1]", "emb[2]", "emb2")
        assert self.roles("emb[?]", names=names, emb=3) == ("emb[0]", "emb[1]", "emb[2]")

    def test_a_name_that_is_not_there(self):
        with pytest.raises(TableError) as found:
            self.roles("featur_17_c")
        assert found.value.column == "featur_17_c"
        assert "'feature_17_c'" in str(found.value)

    def test_names_of_features(self):
        begin = time.process_time()
        for k in range(30):
            assert f"feature_{k}_{'abc'[k % 3]}" in matching(f"feature_{k}*", self.NAMES)
        assert time.process_time() - begin < 5
        assert matching("emb", ["emb[0]", "emb[1]", "x[0"]) == ["emb[0]", "emb[1]"]


class TestGzipBombs:
    """What shrinks to less than 1/200 is read as far as it can do no harm."""

    LINES = {
        load_table: b"label,qid,a\n" + b"1,q,1\n" * 3,
        load_letor: b"1 qid:1 1:1\n" * 3,
        load_pairs: b"winner,loser\n0,1\n",
    }

    @pytest.fixture(params=LINES, ids=lambda reader: reader.__name__)
    def read(self, request, monkeypatch):
        monkeypatch.setattr(_source, "_HARMLESS", 1 << 20)
        more = {"ids": [0, 1]} if request.param is load_pairs else {}
        first = gzip.compress(self.LINES[request.param])
        return lambda packed: request.param(io.BytesIO(first + packed), **more)

    def test_small_ones_are_read(self, read):
        read(gzip.compress(b"\n" * (1 << 19)))

    def test_large_ones_are_refused_before_they_are_unpacked(self, read):
        packed = gzip.compress(b"\n" * (100 << 20))
        tracemalloc.start()
        try:
            with pytest.raises((TableError, LetorError)) as found:
                read(packed)
            assert tracemalloc.get_traced_memory()[1] < 40 << 20
        finally:
            tracemalloc.stop()
        assert (found.value.file, found.value.line) == ("<stream>", None)
        assert "200 times" in found.value.problem
        assert "unpack" in found.value.remedy

    def test_tables_of_few_numbers_are_read(self, monkeypatch):
        monkeypatch.setattr(_source, "_HARMLESS", 1 << 20)
        rng, columns = np.random.default_rng(0), 10_000
        X = np.zeros((120, columns))
        for row in X:
            row[rng.choice(columns, 50, replace=False)] = rng.integers(1, 9, 50)
        text = "label," + ",".join(f"f{k}" for k in range(columns)) + "\n"
        text += "".join("1," + ",".join(f"{v:g}" for v in row) + "\n" for row in X)
        packed = gzip.compress(text.encode())
        assert len(text) > max(1 << 20, 30 * len(packed))
        np.testing.assert_array_equal(load_table(io.BytesIO(packed)).X, X)


def test_errors_keep_their_facts_between_processes():
    errors = [
        refused(b"label,qid,a\n1,q,x\n"),
        refused(b"label,a\n1,2\n", label="lable"),
        refused(parquet(a=[1.0, None], label=[1, 0]), format="parquet"),
    ]
    with pytest.raises(PairsError) as found:
        load_pairs(io.BytesIO(b"winner,loser\na,b\na,c\n"), ids=["a", "b"])
    errors.append(found.value)
    assert (found.value.line, found.value.row, found.value.column) == (3, 1, "loser")
    with pytest.raises(LetorError) as letor:
        load_letor(io.BytesIO(b"1 1:2\n1 1:x\n"))
    errors.append(letor.value)
    assert (letor.value.line, letor.value.column) == (2, 1)
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
        for fact in ("file", "line", "row", "column", "remedy", "parameter"):
            assert getattr(again, fact) == getattr(error, fact)


def test_a_long_token_is_shortened():
    with pytest.raises(LetorError) as found:
        load_letor(io.BytesIO(b"1 1:" + b"\xff" * 5_000_000 + b"\n"))
    assert len(str(found.value)) < 500
    with Refusal(kind=LetorError, file="<stream>", line=4) as found:
        load_letor(io.BytesIO(b"1 qid:a 1:1\n\n# note\n1 qid:\xff 1:1\n"))


@pytest.mark.parametrize("dense", [True, False])
def test_single_precision_without_entries(dense):
    assert load_letor(io.BytesIO(b"1\n0\n"), n_features=3, dtype="float32", dense=dense).X.dtype == np.float32


def test_out_of_memory_names_the_file(monkeypatch):
    def never(*args, **options):
        raise MemoryError

    monkeypatch.setattr("rankrls.io._reader.stream_threads", never)
    file = io.BytesIO(b"1 1:1\n")
    file.name = "stream.txt"
    with Refusal("stream.txt", kind=MemoryError):
        load_letor(file)


def irregular(*args):
    raise delimited._Irregular("not as pyarrow reads it.")


class TestDamagedTypedFiles:
    """pyarrow takes offsets and codes of an Arrow file as they are, and may give fewer rows of a Parquet file."""

    @staticmethod
    def ipc(**columns):
        file = io.BytesIO()
        table = pa.table({"label": [1.0, 0.0, 2.0], "a": [1.0, 2.0, 3.0], **columns})
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        return file.getvalue()

    def test_codes_that_point_nowhere(self):
        texts = pa.array(["x", "y", "x"]).dictionary_encode()
        for code in (2, 500_000_000, -1):
            codes = pa.array([0, code, 1], pa.int32())
            bad = pa.DictionaryArray.from_arrays(codes, texts.dictionary, safe=False)
            error = refused(self.ipc(qid=bad), format="arrow")
            assert (error.file, "damaged" in error.problem) == ("<stream>", True)

    def test_offsets_that_point_nowhere(self):
        data = self.ipc(qid=pa.array(["one text", "another", "third"]))
        offsets = np.array([0, 8, 15, 20], dtype=np.int32)
        assert data.count(offsets.tobytes()) == 1
        for place, value in ((1, 2**30), (2, -5), (3, 2**31 - 1)):
            bad = offsets.copy()
            bad[place] = value
            error = refused(data.replace(offsets.tobytes(), bad.tobytes()), format="arrow")
            assert (error.file, "damaged" in error.problem) == ("<stream>", True)

    def test_a_name_that_is_not_utf8(self):
        error = refused(self.ipc(a_name=[1.0, 2.0, 3.0]).replace(b"a_name", b"a_n\xb0me"), format="arrow")
        assert error.file == "<stream>"

    @pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"compression": "none"}], ids=str)
    def test_no_row_is_lost(self, options):
        """Whatever bit of a Parquet file is flipped: all rows, or an error."""
        file = io.BytesIO()
        rows = 27
        table = pa.table({"label": [1.0] * rows, "a": [0.5 * k for k in range(rows)]})
        pa.parquet.write_table(table, file, row_group_size=23, **options)
        data = file.getvalue()
        for place in range(len(data)):
            changed = bytearray(data)
            changed[place] ^= 1 << (place % 8)
            try:
                found = load_table(io.BytesIO(changed), format="parquet")
            except (TableError, MemoryError):
                continue
            assert found.n_rows == rows
