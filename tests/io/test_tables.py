"""Tables with named columns: text against Python's csv module and float, Parquet and Arrow against pyarrow."""

import csv
import gzip
import hashlib
import io
import json
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import example, given, strategies as st
from tests.refusals import Refusal

from rankrls import InputError
from rankrls.io import load_letor, load_table, save_table
from rankrls.io.columns import ColumnRoles
from rankrls.io.reading import open_table

BLANKS = " \t\n\r\v\f"
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)
ENDINGS = ["csv", "tsv", "csv.gz", "parquet", "arrow", "jsonl", "jsonl.gz"]


def read(text, **options):
    return load_table(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


def refused(source, **options):
    with pytest.raises(InputError) as found:
        load_table(io.BytesIO(source) if isinstance(source, bytes) else source, **options)
    return found.value


def parquet(**columns):
    file = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), file, row_group_size=2)
    file.seek(0)
    return file


SIMPLE = "qid,label,a,b\n7,1,0.5,-1e-3\n7,0,2,3.25\n8,2,4,5\n"


def test_a_table():
    table = read(SIMPLE)
    np.testing.assert_array_equal(table.X, [[0.5, -1e-3], [2, 3.25], [4, 5]])
    np.testing.assert_array_equal(table.y, [1, 0, 2])
    assert table.qid.tolist() == [7, 7, 8]
    assert table.qid.dtype == np.int64
    assert table.ids is None
    assert table.feature_names == ("a", "b")
    assert table.schema.columns == {"label": "label", "qid": "qid"}
    assert (table.n_rows, table.n_features) == (3, 2)
    assert table.sha256 == hashlib.sha256(SIMPLE.encode()).hexdigest()
    assert repr(table) == "<Rows of <stream>: 3 rows, 2 features>"
    assert table.X.flags.c_contiguous
    assert table.X.flags.owndata


@pytest.mark.parametrize(
    "text",
    [
        SIMPLE.replace(",", ";"),
        SIMPLE.replace(",", "\t"),
        SIMPLE.replace(",", "|"),
        SIMPLE.replace("\n", "\r\n"),
        "\ufeff" + SIMPLE,
        SIMPLE.rstrip("\n"),
        "\n  \n" + SIMPLE.replace("\n", "\n\n \n"),
        SIMPLE.replace(",", " , "),
        "\n".join(",".join(f'"{c}"' for c in line.split(",")) for line in SIMPLE.split()) + "\r\n",
    ],
    ids=["semicolons", "tabs", "bars", "CRLF", "BOM", "no last line end", "blank lines", "blanks", "quotes"],
)
def test_the_same_table_written_otherwise(text):
    expected, table = read(SIMPLE), read(text)
    np.testing.assert_array_equal(table.X, expected.X)
    np.testing.assert_array_equal(table.y, expected.y)
    np.testing.assert_array_equal(table.qid, expected.qid)
    assert table.feature_names == expected.feature_names


@pytest.mark.parametrize(("row", "fields"), [("1,2", 2), ("1,2,3,4", 4), ('1,"a\nb"', 2)])
def test_a_row_with_too_few_or_too_many_fields_is_named_by_its_line(row, fields):
    text = f'\nlabel,qid,a\n1,"q\nr",2\n\n{row}\n1,2,3\n'
    line = 6 + row.count("\n")  # where it ends
    with Refusal(f"{fields} fields", "the header has 3", line=line, row=1):
        read(text)


def test_gzip_and_names_of_files(tmp_path):
    path = tmp_path / "t.tsv.gz"
    data = gzip.compress(b"label\tq,id\ta\n1\t2\t3\n")  # more commas than a sniffer would like
    path.write_bytes(data + gzip.compress(b"0\t3\t4\n"))
    table = load_table(path, qid="q,id")
    assert (table.X.tolist(), table.qid.tolist(), table.path) == ([[3], [4]], [2, 3], str(path))
    assert table.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    for bad in (data[:-9], data[:-6] + b"x" + data[-5:], data + b"junk"):
        path.write_bytes(bad)
        with Refusal("gzip", file="t.tsv.gz"):
            load_table(path, qid="q,id")


@given(
    rows=st.lists(st.tuples(NUMBERS, NUMBERS, TEXTS), min_size=1),
    delimiter=st.sampled_from(",;\t|"),
    line_end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    size=st.sampled_from([1, 1 << 10, 1 << 22]),
)
def test_whatever_the_csv_module_writes(rows, delimiter, line_end, quoting, size):
    """Any text in a query id, quoted as needed, and every float64; also where a cell spans several blocks."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=line_end, quoting=quoting)
    writer.writerow(["label", "qid", "value", "junk"])
    drop = "\r" if quoting == csv.QUOTE_MINIMAL else ""  # which Python leaves without quotes before 3.13
    rows = [(a, b, f"q{text}".translate(dict.fromkeys(map(ord, drop))).strip(BLANKS)) for a, b, text in rows]
    writer.writerows([(a, q, b, f"{q}\n" * 40) for a, b, q in rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankrls.io.tables._BATCH_CELLS", size)
        patch.setattr("rankrls.io._text._BLOCK", size)
        table = read(file.getvalue(), ignore=["junk"])
    np.testing.assert_array_equal(table.y, [a for a, _, _ in rows])
    np.testing.assert_array_equal(table.X[:, 0], [b for _, b, _ in rows])
    assert np.signbit(table.X[:, 0]).tolist() == [str(b).startswith("-") for _, b, _ in rows]
    assert [str(q) for q in table.qid] == [q for _, _, q in rows]


@given(
    cells=st.lists(
        st.one_of(st.just("plain"), st.lists(st.sampled_from([*'"",;a \n', "\r\n"]), max_size=7).map("".join)),
        min_size=1,
    ),
    size=st.sampled_from([1, 30, 1 << 22]),
    rows=st.sampled_from([1, 3]),
)
@example(cells=['""""', '"a""b"', "x"], size=1 << 22, rows=3)
@example(cells=["plain", '"a\n', "b"], size=30, rows=1)
@example(cells=['"a"b', "x"], size=1 << 22, rows=3)
@example(cells=['5"', "x", '"y"'], size=1, rows=1)
def test_any_quotes_are_those_of_the_csv_module(cells, size, rows):
    """Texts, lines and refusals, also where a cell spans several blocks."""
    text = "label,id,a\n" + "".join(f"{k},{cell},1\n" for k, cell in enumerate(cells))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    expected, lines, fault = [], [], False
    try:
        for found in reader:
            fault |= bool("".join(found).strip()) and (len(found) != 3 or not found[1].strip(BLANKS))
            expected += [found]
            lines.append(reader.line_num)
    except csv.Error:
        fault = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankrls.io._text._BLOCK", size)
        patch.setattr("rankrls.io.formats._TEXT_ROWS", rows)
        if fault:
            refused(text.encode(), id="id")
            return
        both = [(found, line) for found, line in zip(expected[1:], lines[1:], strict=True) if len(found) == 3]
        table = read(text, id="id")
    assert [str(name) for name in table.ids] == [found[1].strip(BLANKS) for found, _ in both]
    assert [table.line_of(row) for row in range(len(both))] == [line for _, line in both]


@given(
    cells=st.lists(st.sampled_from(["plain", "two\nlines", "three\r\n\nlines", 'a "quote"', ""]), min_size=1),
    blank=st.lists(st.sampled_from(["", "\n", "  \n", "\r\n"]), min_size=1),
    size=st.sampled_from([1, 60, 1 << 22]),
)
def test_the_line_of_each_row_is_known_without_reading_again(cells, blank, size):
    """As the csv module counts lines, among blank lines and cells of several, in any blocks; and in errors."""
    rows = ["label,a,text\n", *(f'{k},1,"{cell.replace(chr(34), chr(34) * 2)}"\n' for k, cell in enumerate(cells))]
    text = "".join(row + blank[k % len(blank)] for k, row in enumerate(rows))
    reader = csv.reader(io.StringIO(text, newline=""))
    lines = [reader.line_num for found in reader if len(found) == 3][1:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankrls.io.tables._BATCH_CELLS", size)
        patch.setattr("rankrls.io._text._BLOCK", size)
        table = read(text, ignore=["text"])
        assert [table.line_of(row) for row in range(len(cells))] == lines
        error = refused((text + "1,x,1\n").encode(), ignore=["text"])
        assert (error.row, error.line) == (len(cells), text.count("\n") + 1)
        error = refused((text + "1,1\n").encode(), ignore=["text"])
        assert (error.row, error.line) == (len(cells), text.count("\n") + 1)


@given(st.lists(st.one_of(NUMBERS.map(repr), NUMBERS.map("{:.25e}".format), NUMBERS.map("{:.17g}".format))))
def test_numbers_to_the_last_bit(words):
    words = ["0.1", "2.2250738585072011e-308", "1.7976931348623157e308", "5e-324", "9007199254740993", *words]
    X = read("label,a\n" + "".join(f"0,{word}\n" for word in words)).X[:, 0]
    assert X.tobytes() == np.array([float(word) for word in words]).tobytes()


@given(st.text(st.sampled_from("0123456789+-.eE_xXaninftruesfdlbN ()"), min_size=1, max_size=9))
@example("nan(1)")
@example("0x10")
@example("1e400")
@example("+1.5")
@example("1_000")
@example("true")
def test_unusual_numbers_are_read_as_float_reads_them_or_refused(word):
    try:
        expected = {"true": 1.0, "false": 0.0}.get(word.strip().lower())
        expected = float(word) if expected is None and "_" not in word else expected
    except ValueError:
        expected = None
    text = f"label,a,b\n0,1,2\n0,{word},3\n"
    if expected is None or not math.isfinite(expected):
        error = refused(text.encode())
        assert (error.row, error.column) == (1, "a")
    else:
        assert read(text).X.tolist() == [[1.0, 2.0], [expected, 3.0]]


def test_single_precision():
    table = read("label,a\n1,0.1\n2,3e38\n", dtype=np.float32)
    np.testing.assert_array_equal(table.X[:, 0], np.array([0.1, 3e38], dtype=np.float32))
    assert (table.X.dtype, table.y.dtype) == (np.float32, np.float64)
    error = refused(b"label,a\n1,0.1\n2,1e39\n", dtype="float32")
    assert (error.row, error.column) == (1, "a")


def test_ids_are_texts_unless_all_are_whole_numbers():
    assert read("label,qid,a\n1,-3,1\n1,9223372036854775807,1\n").qid.tolist() == [-3, 2**63 - 1]
    for ids in (["01", "2"], ["007", "7"], ["1.0", "2"], ["a", "2"], ["9223372036854775808", "2"], ["-0", "2"]):
        table = read("label,qid,a\n" + "".join(f"1,{q},1\n" for q in ids))
        assert table.qid.tolist() == ids


def test_no_id_beyond_2_to_the_53_is_cast_to_float(tmp_path):
    ids = [2**53, 2**53 + 1, 2**60 + 1, 2**60]
    frame = pd.DataFrame({"label": [0.0, 1, 2, 3], "qid": ids, "docid": ids, "x": [1.0, 2, 3, 4]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_feather(tmp_path / "t.arrow")
    for source in (tmp_path / "t.csv", tmp_path / "t.parquet", tmp_path / "t.arrow", frame):
        table = load_table(source)
        assert (table.qid.tolist(), table.ids.tolist()) == (ids, ids)
    for beyond in (2**53 + 1, 2**53):
        rounded = pd.DataFrame({"label": [0.0, 1], "qid": np.array([beyond, 1], dtype=np.float64), "x": [1.0, 2]})
        with Refusal("not in range", column="qid"):
            load_table(rounded)
    huge = load_table(pa.table({"qid": pa.array([2**64 - 1, 2**64 - 2], pa.uint64()), "x": [1.0, 2], "label": [0, 1]}))
    assert [str(q) for q in huge.qid] == [str(2**64 - 1), str(2**64 - 2)]


class TestRoles:
    HEADER = "relevance,query,url,price,clicks,price_old\n"
    TEXT = HEADER + "1,q1,/a,2,3,4\n0,q1,/b,5,6,7\n"

    def test_by_name(self):
        table = read(self.TEXT, label="relevance", qid="query", id="url")
        assert table.feature_names == ("price", "clicks", "price_old")
        assert table.ids.tolist() == ["/a", "/b"]
        assert table.schema.columns == {"label": "relevance", "qid": "query", "id": "url"}

    def test_features_in_any_order_and_by_patterns(self):
        of = {"label": "relevance", "qid": "query"}
        assert read(self.TEXT, features=["clicks", "price"], **of).X.tolist() == [[3, 2], [6, 5]]
        assert read(self.TEXT, features=["clicks", "price*"], **of).feature_names == ("clicks", "price", "price_old")
        assert read(self.TEXT, features="pric?", **of).feature_names == ("price",)
        assert read(self.TEXT, features="*", ignore=["url", "*_old"], **of).feature_names == ("price", "clicks")
        assert read("label,a[x],ax\n1,2,3\n", features=["a[x]"]).feature_names == ("a[x]",)
        assert read("label,a*,ax\n1,2,3\n", features=["a*"]).feature_names == ("a*",)

    def test_the_usual_names_are_not_insisted_on(self):
        assert read("label,a\n1,2\n").qid is None
        table = read("label,qid,docid,a\n1,2,x,3\n")
        assert (table.qid.tolist(), table.ids.tolist(), table.feature_names) == ([2], ["x"], ("a",))
        assert read("label,qid,a\n1,2,3\n", features=["qid", "a"]).feature_names == ("qid", "a")
        table = read("label,qid,a\n1,2,3\n", label="qid", features=["a"])
        assert (table.y.tolist(), table.qid) == ([2], None)

    @pytest.mark.parametrize(
        ("options", "facts"),
        [
            ({}, Refusal("Name the column of labels", column="label", parameter="label")),
            ({"label": "relevence"}, Refusal("'relevance'", column="relevence", parameter="label")),
            ({"qid": "QUERY"}, Refusal("'query'", column="QUERY", parameter="qid")),
            ({"id": "zzz"}, Refusal("(id)", column="zzz", parameter="id")),
            ({"features": ["prise", "clicks"]}, Refusal("'price'", column="prise", parameter="features")),
            ({"features": ["z*"]}, Refusal("'z*'", column="z*", parameter="features")),
            ({"features": ["relevance"]}, Refusal("both features and label", column="relevance")),
            ({"qid": "relevance"}, Refusal("both label and qid", column="relevance")),
            ({"ignore": ["ulr"]}, Refusal("'url'", column="ulr", parameter="ignore")),
            ({"ignore": ["*"]}, Refusal("no column is left", parameter="features")),
        ],
        ids=str,
    )
    def test_wrong_names(self, options, facts):
        if options and "label" not in options:
            options = {"label": "relevance", **options}
        with facts:
            read(self.TEXT, **options)

    def test_headers_that_name_nothing(self):
        assert refused(b"label,a,a\n1,2,3\n").column == "a"
        assert read(",label,a\n0,1,2\n").feature_names == ("a",)  # the index of pandas
        with Refusal("no column 'label'", "1, 2, 3"):
            read("1,2,3\n4,5,6\n")

    @pytest.mark.parametrize("options", [{"labels": "maybe"}, {"format": "xls"}, {"dtype": "int32"}])
    def test_wrong_arguments(self, options):
        with Refusal(parameter=next(iter(options))):
            read(SIMPLE, **options)


def row(cells):
    return f"label,qid,price,name\n1,q,2,3\n{cells}\n1,q,2,4\n"


@pytest.mark.parametrize("word", ["", '" "', "NA", "-inf", "1e999", "1_000", "0x1p3", '"1,5"', "$12.50"])
def test_a_cell_that_is_no_number(word):
    for text, column in ((row(f"0,q,{word},3"), "price"), (row(f"{word},q,3,3"), "label")):
        error = refused(text.encode())
        assert (error.row, error.column, error.file) == (1, column, "<stream>")
        assert word.strip('" ') == "" or word.strip('"')[:1] in error.message


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (row("0,q,1,5,3"), Refusal("5 fields", row=1, line=3)),
        (row("0,q,1"), Refusal("3 fields", row=1, line=3)),
        (row("0,,1,3"), Refusal("empty", row=1, column="qid", line=3)),
        ('label,qid,price,name\n\n1,"q\nr",2,3\n0,q,x,3\n', Refusal("'x'", row=1, column="price", line=5)),
        (row("0,a\0,1,3"), Refusal("NUL", line=3)),
        (row('0,"q,1,3'), Refusal("quote", line=3)),
        (row('0,"q"x,1,3'), Refusal("quote", line=3)),
        (row('0,"q\n",1,2\n1,"r"x,1,3'), Refusal("quote", line=5)),
        (b"label,qid,a\n1,1,2\n\x8b\n", Refusal("UTF-8", line=3)),
        ("", Refusal("empty")),
        ("label,a\n\n", Refusal("no row")),
        ("A report,,\nlabel,qid,a\n1,2,3\n", Refusal("first line", column="")),
        ("label^qid^a\n1^2^3\n", Refusal("separated by", parameter="label")),
        ("1 qid:1 1:2 2:3 # d\n0 qid:1 1:3\n", Refusal("separated by", parameter="label")),
        pytest.param("x" * 200_000, Refusal("delimited text"), id="one long word"),
        ("label,ä\n1,2\n".encode("latin-1"), Refusal("UTF-8")),
        ("qid,label,a\nb,1,2\nä,1,2\n".encode("latin-1"), Refusal("UTF-8", line=3)),
        ("label,a\n".encode("utf-16"), Refusal("UTF-8")),
        pytest.param(row('0,"' + "q\n" * 100_000 + '",1,3'), Refusal("too long", row=1, line=3), id="one long cell"),
    ],
    ids=str,
)
def test_what_is_no_table(text, refusal):
    with refusal:
        read(text)


ROWS = [{"label": 1, "a": 2.0}, {"label": 0, "a": 1.0}]
TEXT = "label,a\n1,2\n0,1\n"


@pytest.mark.parametrize(
    ("source", "refusal"),
    [
        (ROWS, Refusal("list", parameter="path")),
        ({"label": [1, 0]}, Refusal("dict", parameter="path")),
        (np.ones((2, 2)), Refusal("ndarray", parameter="path")),
        (io.StringIO(TEXT), Refusal("binary mode", parameter="path")),
    ],
    ids=lambda value: "" if isinstance(value, Refusal) else type(value).__name__,
)
@pytest.mark.parametrize("load", [load_table, load_letor])
def test_what_is_neither_a_file_nor_a_data_frame(load, source, refusal):
    if load is load_table and source is ROWS:
        source, refusal = pl.LazyFrame(ROWS), Refusal("collect()", parameter="path")
    with refusal:
        load(source)


def test_columns_of_other_types_say_what_to_do():
    frame = pd.DataFrame({"label": [1, 0, 1], "qid": ["a", "a", 2], "x": [1.0, 2.0, 3.0]})
    with Refusal("several types", "(int, str)", "Convert it", column="qid"):
        load_table(frame)
    when = frame.assign(qid=1, when=pd.to_datetime(["2024-01-01"] * 3))
    with Refusal("timestamp", "TableEncoder", column="when"):
        load_table(when)


def test_labels_that_are_not_there():
    text = "label,a\n1,2\n,3\nNA,4\n"
    np.testing.assert_array_equal(read(text, labels="optional").y, [1, np.nan, np.nan])
    assert read(text, labels="ignored").y is None
    assert read(text, labels="ignored").feature_names == ("a",)
    assert read("a\n1\n", labels="optional").y is None
    for word in ("x", "inf", "nan(1)"):
        assert refused(text.replace("NA", word).encode(), labels="optional").row == 2


class TestParquet:
    def test_a_table_of_many_types(self):
        from decimal import Decimal

        file = parquet(
            a=pa.array([1, 2, 3], pa.int8()),
            b=pa.array([0.5, 1.5, 2.5], pa.float32()),
            c=pa.array([True, False, True]),
            d=pa.array([Decimal("1.5"), Decimal("2.5"), Decimal("-1.0")]),
            label=pa.array([2, 0, 1], pa.uint16()),
            qid=pa.array(["x", "y", "x"]).dictionary_encode(),
            docid=pa.array([10, 11, 12]),
        )
        table = load_table(file, format="parquet")
        np.testing.assert_array_equal(table.X, [[1, 0.5, 1, 1.5], [2, 1.5, 0, 2.5], [3, 2.5, 1, -1]])
        np.testing.assert_array_equal(table.y, [2, 0, 1])
        assert (table.qid.tolist(), table.ids.tolist()) == (["x", "y", "x"], [10, 11, 12])
        assert table.sha256 == hashlib.sha256(file.getvalue()).hexdigest()

    def test_batches(self, tmp_path, monkeypatch):
        monkeypatch.setattr("rankrls.io.tables._BATCH_CELLS", 7)
        X = np.random.default_rng(1).normal(size=(11, 2))
        frame = pd.DataFrame(X, columns=["p.q", "p"]).assign(label=np.arange(11.0), qid=np.arange(11) // 2)
        frame.to_parquet(tmp_path / "t.parquet", row_group_size=4)
        table = load_table(tmp_path / "t.parquet", dtype="float32")
        np.testing.assert_array_equal(table.X, X.astype(np.float32))
        np.testing.assert_array_equal(table.qid, np.arange(11) // 2)
        np.testing.assert_array_equal(table.y, np.arange(11))
        assert load_table(tmp_path / "t.parquet", features=["p", "p.q"]).feature_names == ("p", "p.q")

    def test_an_index_of_pandas_is_no_feature(self, tmp_path):
        pd.DataFrame({"a": [1.0, 2.0], "label": [0, 1]}, index=[5, 9]).to_parquet(tmp_path / "t.pq")
        assert load_table(tmp_path / "t.pq").feature_names == ("a",)

    @pytest.mark.parametrize(
        ("columns", "row", "column"),
        [
            ({"a": [1.0, None, 2.0]}, 1, "a"),
            ({"a": [1.0, 2.0, float("nan")]}, 2, "a"),
            ({"a": ["x", "y", "z"]}, None, "a"),
            ({"a": [1, 2, 3], "label": [1, None, 1]}, 1, "label"),
            ({"a": [1, 2, 3], "label": list("abc")}, None, "label"),
            ({"a": [1, 2, 3], "qid": ["a", None, "c"]}, 1, "qid"),
            ({"a": [1, 2, 3], "qid": ["a", "", "c"]}, 1, "qid"),
            ({"a": [1, 2, 3], "qid": [b"b", b"\xe9", b"c"]}, None, "qid"),
            ({"a": [None] * 3}, 0, "a"),
            ({"a": [1, 2**53 - 1, 2**53 + 1]}, 2, "a"),
            ({"a": []}, None, None),
        ],
    )
    def test_what_is_wrong_is_named_with_its_row(self, columns, row, column):
        columns.setdefault("label", [1, 0, 1][: len(columns["a"])])
        if not columns["a"]:
            columns = {name: pa.array([], pa.float64()) for name in columns}
        error = refused(parquet(**columns), format="parquet")
        assert (error.row, error.column) == (row, column)

    def test_decimals_are_the_nearest_float64(self):
        values = [Decimal("3.30"), Decimal("0.10"), Decimal("-2.675"), Decimal("99999999999999.995")]
        table = load_table(parquet(a=values, label=[1, 0, 1, 0]), format="parquet")
        assert table.X[:, 0].tolist() == [float(value) for value in values]

    @pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "compression": "none"}], ids=str)
    def test_no_row_is_lost(self, options):
        """If a bit of a file is flipped, all rows are read, or there is an error."""
        file, rows = io.BytesIO(), 27
        table = pa.table({"label": [1.0] * rows, "a": [0.5 * k for k in range(rows)]})
        pa.parquet.write_table(table, file, row_group_size=23, **options)
        data = file.getvalue()
        for place in range(len(data)):
            changed = bytearray(data)
            changed[place] ^= 1 << (place % 8)
            try:
                found = load_table(io.BytesIO(changed), format="parquet")
            except (InputError, MemoryError):
                continue
            assert found.n_rows == rows


class TestOtherFormats:
    """Arrow files, streams and data frames give the table that CSV gives."""

    FRAME = pd.DataFrame({"label": [0.0, 1, 2], "qid": ["a", "a", "b"], "x": [1.5, 2, 3], "on": [True, False, True]})

    @pytest.mark.parametrize("how", ["feather", "lz4", "parquet", "stream", "pandas", "polars", "pyarrow"])
    def test_the_same_table(self, how, tmp_path):
        import polars as pl

        table, path = pa.Table.from_pandas(self.FRAME), tmp_path / "without an ending"
        if how == "stream":
            with pa.ipc.new_stream(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=2)
        elif how == "parquet":
            self.FRAME.to_parquet(path)
        else:
            self.FRAME.to_feather(path, compression=how if how == "lz4" else "uncompressed")
        frames = {"pandas": self.FRAME, "polars": pl.from_pandas(self.FRAME), "pyarrow": table}
        found = load_table(frames.get(how, path), **({"format": "arrow"} if how == "stream" else {}))
        expected = read(self.FRAME.to_csv(index=False))
        for name in ("X", "y", "qid"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert found.feature_names == expected.feature_names
        assert (found.sha256 == "") == (how in frames)

    def test_codes_and_offsets_that_point_nowhere(self):
        def ipc(qid):
            file = io.BytesIO()
            table = pa.table({"label": [1.0, 0.0, 2.0], "a": [1.0, 2.0, 3.0], "qid": qid})
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            return file.getvalue()

        texts = pa.array(["x", "y", "x"]).dictionary_encode()
        for code in (2, 500_000_000, -1):
            codes = pa.array([0, code, 1], pa.int32())
            bad = pa.DictionaryArray.from_arrays(codes, texts.dictionary, safe=False)
            assert "damaged" in refused(ipc(bad), format="arrow").message
        data, offsets = ipc(pa.array(["one text", "another", "third"])), np.array([0, 8, 15, 20], dtype=np.int32)
        assert data.count(offsets.tobytes()) == 1
        for place, value in ((1, 2**30), (2, -5), (3, 2**31 - 1)):
            bad = offsets.copy()
            bad[place] = value
            assert "damaged" in refused(data.replace(offsets.tobytes(), bad.tobytes()), format="arrow").message
        assert refused(data[: len(data) // 2], format="arrow").file == "<stream>"


LISTS = {
    "list": lambda rows: pa.array(rows, pa.list_(pa.float64())),
    "large": lambda rows: pa.array(rows, pa.large_list(pa.float32())),
    "fixed": lambda rows: pa.array(rows, pa.list_(pa.float32(), 3)),
    "integers": lambda rows: pa.array([[int(4 * v) for v in row] for row in rows], pa.list_(pa.int16())),
}


class TestLists:
    """Columns of Parquet that hold lists of numbers: a feature for each place in the list."""

    @pytest.mark.parametrize("kind", LISTS)
    def test_each_number_is_a_feature(self, kind, monkeypatch):
        monkeypatch.setattr("rankrls.io.tables._BATCH_CELLS", 12)
        E = np.random.default_rng(0).integers(-8, 8, size=(7, 3)) / 4
        file = parquet(a=np.arange(7.0), emb=LISTS[kind](E.tolist()), b=np.arange(7) + 0.5, label=range(7))
        table = load_table(file, format="parquet")
        assert table.feature_names == ("a", "emb[0]", "emb[1]", "emb[2]", "b")
        expected = np.column_stack((np.arange(7), E * (4 if kind == "integers" else 1), np.arange(7) + 0.5))
        np.testing.assert_array_equal(table.X, expected)
        assert table.X.flags.c_contiguous

    def test_chosen_and_ignored_by_the_columns_name(self):
        def names(**options):
            file = parquet(label=[1, 0], t_vec=[[1.0, 2], [3, 4]], a=[5, 6], d_vec=[[7.0], [8.0]])
            table = load_table(file, format="parquet", **options)
            columns = {"t_vec[0]": [1, 3], "t_vec[1]": [2, 4], "a": [5, 6], "d_vec[0]": [7, 8]}
            np.testing.assert_array_equal(table.X, np.transpose([columns[name] for name in table.feature_names]))
            return table.feature_names

        assert names(features="t_vec") == ("t_vec[0]", "t_vec[1]")
        assert names(features=["a", "t_vec"]) == ("a", "t_vec[0]", "t_vec[1]")
        assert names(features=["t_vec[1]", "a", "t_vec[0]"]) == ("t_vec[1]", "a", "t_vec[0]")
        assert names(features="*_vec") == ("t_vec[0]", "t_vec[1]", "d_vec[0]")
        assert names(features=["t_vec[1]", "a"], ignore=["a"]) == ("t_vec[1]",)
        assert names(features="?_vec[?]") == ("t_vec[0]", "t_vec[1]", "d_vec[0]")
        assert names(ignore="t_vec") == ("a", "d_vec[0]")
        assert names(ignore=["*_vec"]) == ("a",)
        assert names(features="*", ignore=["a", "d_vec[0]"]) == ("t_vec[0]", "t_vec[1]")

    @pytest.mark.parametrize(
        ("rows", "row", "column"),
        [
            ([[1, 2], [1, 2], [1, 2, 3]], 2, "emb"),
            ([[], [1, 2], [1, 2]], 0, "emb"),
            ([[1, 2], None, [1, 2]], 1, "emb"),
            ([[1, 2], [1, 2], [1, None]], 2, "emb[1]"),
            ([[1, 2], [float("inf"), 2], [1, 2]], 1, "emb[0]"),
            ([[1, 2], [1, 2], [1, 1e39]], 2, "emb[1]"),
            ([["a", "b"]] * 3, None, "emb"),
        ],
    )
    def test_what_is_wrong_is_named_with_its_row(self, rows, row, column):
        columns = {"a": [1, 2, 3], "emb": pa.array(rows), "label": [1, 0, 1]}
        error = refused(parquet(**columns), format="parquet", dtype=np.float32)
        assert (error.row, error.column) == (row, column)
        assert load_table(parquet(**columns), format="parquet", ignore="emb").feature_names == ("a",)


def test_a_missing_file(tmp_path):
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(FileNotFoundError):
            load_table(tmp_path / name)


class TestJsonLines:
    HIT = {"qid": 1, "label": 2, "doc": {"id": "a"}, "emb": [1, 0.5], "x": 3}

    def test_nested_objects_lists_and_logged_features(self):
        """The hits of a search engine, its features in their order in the log; one without a value is 0."""
        logged = {"fields": {"_ltrlog": [{"log": [{"name": "bm25", "value": 1.5}, {"name": "age"}]}]}}
        other = {"fields": {"_ltrlog": [{"log": [{"name": "age", "value": 7}, {"name": "bm25", "value": 2}]}]}}
        rows = [self.HIT | logged, {}, self.HIT | other | {"x": 4.25, "doc": {"id": "b"}}]
        text = "\n".join(json.dumps(row) for row in rows if row) + "\n"
        for source in (io.BytesIO(text.encode()), [rows[0], rows[2]]):
            table = load_table(source, id="doc.id", ignore=["doc.*"])
            assert table.feature_names == ("emb[0]", "emb[1]", "x", "bm25", "age")
            np.testing.assert_array_equal(table.X, [[1, 0.5, 3, 1.5, 0], [1, 0.5, 4.25, 2, 7]])
            assert table.ids.tolist() == ["a", "b"]

    @pytest.mark.parametrize(
        ("line", "refusal"),
        [
            ('{"qid": 1, "label": 2, "x": "7"', Refusal("JSON object", line=3)),
            ('[{"qid": 1}]', Refusal("JSON object", "jq", line=3)),
            ('{"qid": 1, "label": 2}', Refusal("'x'", "empty", line=3, row=1, column="x")),
            ('{"qid": 1, "label": 2, "x": "7"}', Refusal("several types", file="t.jsonl", line=3, row=1, column="x")),
            ('{"qid": 1, "label": "\\ud800", "x": 7}', Refusal("broken text", line=3, row=1, column="label")),
            ('{"qid": 1, "label": 2, "x": 18446744073709551616}', Refusal("64 bits", line=3, row=1, column="x")),
            ('{"qid": 1, "label": 2, "x": NaN}', Refusal("'x'", line=3, row=1, column="x")),
            ('{"a": {"b": 1}, "a.b": 2}', Refusal("twice", line=3, row=1, column="a.b")),
            ("[" * 100_000, Refusal("JSON object", line=3)),
            *(
                (f'{{"_ltrlog": {log}}}', Refusal("names and values", line=3, row=1, column="_ltrlog"))
                for log in ("null", "7", "[1]", '[{"log": [{"value": 1}]}]', '[{"log": ["a"]}]', '[{"log": 1}]')
            ),
        ],
        ids=lambda value: "" if isinstance(value, Refusal) else value[:40],
    )
    @pytest.mark.parametrize("size", [1, 1 << 20])
    def test_bad_lines(self, line, refusal, size, tmp_path, monkeypatch):
        """In one block of text with good lines, and in blocks of a line each."""
        monkeypatch.setattr("rankrls.io._text._BLOCK", size)
        path = tmp_path / "t.jsonl"
        path.write_text('{"qid": 1, "label": 2, "x": 1}\n\n' + line + "\n")
        with refusal:
            load_table(path)

    def test_an_array_on_several_lines_is_refused_as_one(self):
        with Refusal("jq", line=1):
            load_table(io.BytesIO(b'[{"label": 2, "x": 1},\n{"label": 1, "x": 2}]\n'), format="jsonl")

    @pytest.mark.parametrize("size", [1, 1 << 20])
    def test_the_first_value_of_another_type_has_its_line(self, size, tmp_path, monkeypatch):
        monkeypatch.setattr("rankrls.io._text._BLOCK", size)
        path = tmp_path / "t.jsonl"
        path.write_text("".join(f'{{"qid": 1, "label": 2, "x": {x}}}\n' for x in (1, 2.5, "null", '"7"', 8, '"9"')))
        with Refusal("several types", "first at '7'", file="t.jsonl", line=4, row=3, column="x"):
            load_table(path)

    @pytest.mark.parametrize("size", [1, 70, 1 << 20])
    def test_columns_and_types_are_those_of_all_lines(self, size, tmp_path, monkeypatch):
        """Columns that occur late, whole numbers before others, and texts that are missing at first."""
        monkeypatch.setattr("rankrls.io._text._BLOCK", size)
        rows = [
            {"qid": 1, "label": 2, "x": 1, "emb": [1, 2], "text": None},
            {"qid": 1, "x": 2.5, "emb": [0.5, 3], "label": 1, "late": 4},
            {"qid": 2, "label": 0, "x": 3, "emb": [7, 7], "text": "a", "late": 5.5},
        ]
        path = tmp_path / "t.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        with open_table(path) as table:
            cells = table.cells(table.schema(ColumnRoles()), ()).X
            again = table.cells(table.schema(ColumnRoles()), ()).X
        names = ["x", "emb[0]", "emb[1]", "text", "late", "qid"]
        assert cells.equals(again)
        assert cells.select(names[:5]).to_pylist() == [
            {"x": 1.0, "emb[0]": 1.0, "emb[1]": 2.0, "text": None, "late": None},
            {"x": 2.5, "emb[0]": 0.5, "emb[1]": 3.0, "text": None, "late": 4.0},
            {"x": 3.0, "emb[0]": 7.0, "emb[1]": 7.0, "text": "a", "late": 5.5},
        ]

    @pytest.mark.parametrize("text", ["", "\n  \n"])
    def test_no_rows(self, text):
        with Refusal("no rows"):
            load_table(io.BytesIO(text.encode()), format="jsonl")

    def test_texts_that_look_like_dates_and_numbers_stay_texts(self):
        rows = [{"qid": qid, "label": k, "x": k} for k, qid in enumerate(["2020-01-01", "007", "2020-01-01T00:00:00"])]
        assert load_table(rows).qid.tolist() == ["2020-01-01", "007", "2020-01-01T00:00:00"]


class TestWriting:
    @pytest.mark.parametrize("ending", ENDINGS)
    @given(ids=st.lists(TEXTS.filter(bool), min_size=1, max_size=8), names=st.lists(TEXTS, max_size=4, unique=True))
    @example(
        ids=["a\rb", "a", '"', "\ufeff", "'", "a\r\nb", "=1+1", "NA", "true", ","],
        names=["x\ty", "\ufeff", "a;b;c;d", '"'],
    )
    def test_every_text_comes_back(self, ending, ids, names, tmp_path_factory):
        path = tmp_path_factory.mktemp("t") / f"t.{ending}"
        if ending not in ("parquet", "arrow"):
            ids, names = ([text for word in words if (text := word.strip(BLANKS))] for words in (ids, names))
        names = [
            "first",
            *(name for name in dict.fromkeys(names) if name not in ("first", "label", "qid", "docid", "")),
        ]
        if not ids:
            return
        X = np.arange(float(len(ids) * len(names))).reshape(len(ids), -1)
        y = np.where(np.arange(len(ids)) % 2 == 0, 0.1, np.nan)
        save_table(path, X, y, ids, ids=[*reversed(ids)], feature_names=names)
        table = load_table(path, features=names, labels="optional")
        assert table.feature_names == tuple(names)
        assert [str(q) for q in table.qid] == ids
        assert [str(q) for q in table.ids] == [*reversed(ids)]
        np.testing.assert_array_equal(table.X, X)
        np.testing.assert_array_equal(table.y, y)

    @pytest.mark.parametrize("ending", ENDINGS)
    @given(X=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20))
    def test_every_number_comes_back(self, ending, X, tmp_path_factory):
        path = tmp_path_factory.mktemp("t") / f"t.{ending}"
        save_table(path, X, np.zeros(len(X)))
        found = load_table(path).X
        assert found.tobytes() == np.array(X).tobytes()

    def test_blanks_around_ids_are_kept_by_typed_formats(self, tmp_path):
        for ending, expected in (("csv", "a"), ("parquet", "a ")):
            path = tmp_path / f"t.{ending}"
            save_table(path, [[1.0]], qid=["a "], feature_names=["7"])
            table = load_table(path, labels="optional")
            assert (table.feature_names, table.qid.tolist()) == (("7",), [expected])

    @pytest.mark.parametrize(
        ("arguments", "refusal"),
        [
            ({"X": [[np.nan]]}, Refusal("NaN", parameter="X", row=0, column=0)),
            ({"X": np.empty((0, 2))}, Refusal("at least one row and one feature", parameter="X")),
            ({"y": [1, 2]}, Refusal("rows", "shape (2,)", parameter="y")),
            ({"qid": [1, 2]}, Refusal("shape (2,)", parameter="qid")),
            ({"feature_names": ["a", "b"]}, Refusal("columns", "2 names", parameter="feature_names")),
            ({"feature_names": ["label"], "y": [1]}, Refusal("two columns", column="label")),
            ({"path": "t.txt"}, Refusal(".csv, .tsv", file="t.txt")),
        ],
    )
    def test_what_cannot_be_written(self, arguments, refusal, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with refusal:
            save_table(**{"path": "t.csv", "X": [[1.0]], **arguments})
        assert not [*tmp_path.iterdir()]
