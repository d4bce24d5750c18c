"""Tables with named columns: CSV and TSV against Python's csv module and float, Parquet against pyarrow."""

import csv
import gzip
import hashlib
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import Refusal

from rankrls.io import TableError, load_table, save_letor, save_table
from rankrls.io.tables import delimited


def read(text, **options):
    return load_table(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


def refused(text, match, **options):
    with pytest.raises(TableError) as found:
        read(text, **options)
    assert match in str(found.value), str(found.value)


SIMPLE = "qid,label,a,b\n7,1,0.5,-1e-3\n7,0,2,3.25\n8,2,4,5\n"


def test_a_table():
    table = read(SIMPLE)
    np.testing.assert_array_equal(table.X, [[0.5, -1e-3], [2, 3.25], [4, 5]])
    np.testing.assert_array_equal(table.y, [1, 0, 2])
    assert table.qid.tolist() == [7, 7, 8]
    assert table.qid.dtype == np.int64
    assert table.ids is None
    assert table.feature_names == ("a", "b")
    assert (table.label, table.qid_name, table.id_name) == ("label", "qid", None)
    assert (table.n_rows, table.n_features) == (3, 2)
    assert table.sha256 == hashlib.sha256(SIMPLE.encode()).hexdigest()
    assert repr(table) == "<ColumnTable <stream>: 3 rows, 2 features (dense), 2 queries>"
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


def test_gzip_and_names_of_files(tmp_path):
    path = tmp_path / "t.tsv.gz"
    data = gzip.compress(b"label\tq,id\ta\n1\t2\t3\n")  # more commas than a sniffer would like
    path.write_bytes(data)
    table = load_table(path, qid="q,id")
    assert (table.X.tolist(), table.qid.tolist(), table.path) == ([[3]], [2], str(path))
    assert table.sha256 == hashlib.sha256(data).hexdigest()
    path.write_bytes(data[:-9])
    with Refusal("too early", kind=TableError, file="t.tsv.gz"):
        load_table(path)


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(
    rows=st.lists(
        st.tuples(NUMBERS, NUMBERS, st.text(st.characters(codec="utf-8", exclude_characters="\0"))), min_size=1
    ),
    delimiter=st.sampled_from(",;\t|"),
    line_end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    buffer=st.integers(40, 200),
)
def test_whatever_the_csv_module_writes(rows, delimiter, line_end, quoting, buffer):
    """Any text in a query id, quoted as needed, and every float64; in pieces that end anywhere."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=line_end, quoting=quoting)
    writer.writerow(["label", "qid", "value", "junk"])
    rows = [(a, b, f"q{text.strip()}") for a, b, text in rows if text.isprintable() or "\r" not in text]
    if not rows:
        return
    writer.writerows([(a, q, b, q) for a, b, q in rows])
    old = delimited._BLOCK
    delimited._BLOCK = buffer
    try:
        table = read(file.getvalue(), ignore=["junk"], delimiter=delimiter)
    finally:
        delimited._BLOCK = old
    np.testing.assert_array_equal(table.y, [a for a, _, _ in rows])
    np.testing.assert_array_equal(table.X[:, 0], [b for _, b, _ in rows])
    assert np.signbit(table.X[:, 0]).tolist() == [str(b).startswith("-") for _, b, _ in rows]
    # blanks that only Unicode knows belong to the text
    assert [str(q) for q in table.qid] == [q.strip(" \t\n\r\v\f") for _, _, q in rows]


def test_pieces_of_any_size_give_the_same_table(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    lines = [f'{k % 3},"q ""{k % 7}""\n",' + ",".join(map(repr, x)) for k, x in enumerate(X.tolist())]
    text = "label,qid,a,b,c\n" + "\n".join(lines) + "\n"
    expected = read(text)
    np.testing.assert_array_equal(expected.X, X)
    assert expected.qid[8] == 'q "1"\n'  # what stands in quotes belongs to the id
    for size in (30, 64, 100, 127, 1000, 5000):
        monkeypatch.setattr(delimited, "_BLOCK", size)
        table = read(text)
        np.testing.assert_array_equal(table.X, X)
        np.testing.assert_array_equal(table.qid, expected.qid)
        np.testing.assert_array_equal(table.y, expected.y)
        refused(
            text.replace(repr(float(X[50, 1])), "x"), f"<stream>:{52 + 50}: the value 'x' of column 'b' is not a number"
        )


def test_words_and_long_decimals():
    table = read("label,a,b\n1,true,0.1000000000000000055511151231257827\n0,FALSE,1e400e\n".replace("1e400e", "1e-400"))
    assert table.X.tolist() == [[1, 0.1], [0, 0]]


def test_single_precision():
    table = read("label,a\n1,0.1\n2,3e38\n", dtype=np.float32)
    assert table.X.dtype == np.float32
    np.testing.assert_array_equal(table.X[:, 0], np.array([0.1, 3e38], dtype=np.float32))
    assert table.y.dtype == np.float64
    refused("label,a\n1,0.1\n2,1e39\n", ":3: the value '1e39' of column 'a' is too large for float32", dtype="float32")


def test_ids_of_queries():
    assert read("label,qid,a\n1,-3,1\n1,9223372036854775807,1\n").qid.tolist() == [-3, 2**63 - 1]
    for ids in (["01", "2"], ["1.0", "2"], ["a", "2"], ["9223372036854775808", "2"], ["-0", "2"]):
        table = read("label,qid,a\n" + "".join(f"1,{q},1\n" for q in ids))
        assert table.qid.tolist() == ids


class TestRoles:
    HEADER = "relevance,query,url,price,clicks,price_old\n"
    TEXT = HEADER + "1,q1,/a,2,3,4\n0,q1,/b,5,6,7\n"

    def test_by_name(self):
        table = read(self.TEXT, label="relevance", qid="query", id="url")
        assert table.feature_names == ("price", "clicks", "price_old")
        assert table.ids.tolist() == ["/a", "/b"]
        assert (table.label, table.qid_name, table.id_name) == ("relevance", "query", "url")

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
        ("options", "match"),
        [
            (
                {},
                "<stream>:1: there is no column 'label' (columns: relevance, query, url",
            ),
            ({"label": "relevence"}, "there is no column 'relevence' for the label; there is 'relevance'."),
            ({"qid": "QUERY"}, "there is no column 'QUERY' for the query id; there is 'query'."),
            ({"id": "zzz"}, "there is no column 'zzz' for the item's id (columns: relevance"),
            ({"features": ["prise", "clicks"]}, "there is no column 'prise'; there is 'price'"),
            ({"features": ["x", "y"]}, "there are no columns 'x', 'y' (columns:"),
            ({"features": ["z*"]}, "no column is called like 'z*' (features)"),
            ({"features": ["relevance"]}, "the column 'relevance' cannot be both the label and a feature"),
            ({"qid": "relevance"}, "the column 'relevance' cannot be both the label and the query id"),
            ({"ignore": ["ulr"]}, "there is no column 'ulr' to ignore; there is 'url'"),
            ({"ignore": ["*"]}, "no column is left for the features"),
        ],
        ids=lambda v: str(v) if isinstance(v, dict) else "",
    )
    def test_wrong_names(self, options, match):
        if options and "label" not in options:
            options = {"label": "relevance", **options}
        refused(self.TEXT, match, **options)

    def test_headers_that_name_nothing(self):
        refused("label,a,a\n1,2,3\n", ":1: columns 2 and 3 are both called 'a'")
        refused(",label,a\n0,1,2\n", ":1: column 1 has no name. Name it, or leave it out: pandas writes its index so")
        assert read(",label,a\n0,1,2\n", ignore=[""]).feature_names == ("a",)
        refused("1,2,3\n4,5,6\n", ":1: the first line must name the columns; it holds numbers only")

    @pytest.mark.parametrize(
        ("options", "refusal"),
        [
            ({"label": 3}, Refusal("name", parameter="label")),
            ({"labels": "maybe"}, Refusal(parameter="labels")),
            ({"features": []}, Refusal("empty", parameter="features")),
            ({"features": [1]}, Refusal("hold names", parameter="features")),
            ({"format": "xls"}, Refusal(parameter="format")),
            ({"delimiter": " "}, Refusal(parameter="delimiter")),
            ({"dtype": "int32"}, Refusal(parameter="dtype")),
        ],
    )
    def test_wrong_arguments(self, options, refusal):
        with refusal:
            read(SIMPLE, **options)


def row(cells):
    return f"label,qid,price,name\n1,q,2,3\n{cells}\n1,q,2,x\n"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (row("0,q,,3"), ":3: the cell of column 'price' is empty: fill it, or leave the column or the row out"),
        (row('0,q," ",3'), ":3: the cell of column 'price' is empty"),
        (row("0,q,NA,3"), ":3: the value 'NA' of column 'price' is missing or not finite"),
        (row("0,q,nan,3"), ":3: the value 'nan' of column 'price' is missing or not finite"),
        (row("0,q,-inf,3"), ":3: the value '-inf' of column 'price' is missing or not finite"),
        (row("0,q,1e999,3"), ":3: the value '1e999' of column 'price' is too large for a float64"),
        (row("0,q,1_000,3"), ":3: the value '1_000' of column 'price' is not a number"),
        (row("0,q,0x1p3,3"), ":3: the value '0x1p3' of column 'price' is not a number"),
        (row('0,q,"1,5",3'), ":3: the value '1,5' of column 'price' is not a number: write decimals with a point"),
        (row("0,q,1,5,3"), ":3: 5 cells, but line 1 names 4 columns. (Decimals are written with a point.)"),
        (row("0,q,1"), ":3: 3 cells, but line 1 names 4 columns."),
        (row("0,,1,3").replace("x", "4"), ":3: the cell of column 'qid' is empty: every row needs a query id."),
        (row(",q,1,3"), ":3: the cell of column 'label' is empty: every row needs a label."),
        (row("good,q,1,3"), ":3: the value 'good' of column 'label' is not a number: labels are numbers."),
        (
            row("0,q,1,3"),
            ":4: the value 'x' of column 'name' is not a number: leave the column out (ignore), or name",
        ),
        (
            row('0,q,1,"1,299.00"'),
            ":3: the value '1,299.00' of column 'name' is not a number: write 1299.00, without",
        ),
        (row("0,q,1,$12.50"), ":3: the value '$12.50' of column 'name' is not a number: write 12.50, without signs of"),
        (row("0,q,1,-7 EUR"), "is not a number: write -7, without signs of currency or percent and"),
        (row('0,q,1,"1,299"'), "write decimals with a point, 1.299 (or, of thousands, 1299)."),
        (row("0,q,1,ABC 1x"), "is not a number: leave the column out (ignore), or name"),
        (row("0,q,1,2\x007"), "the value '2\\x007' of column 'name' holds a NUL byte: the file is damaged"),
        (row("0,q,1,nan"), "is missing or not finite: every row needs a number."),
        ("qid:label:a\n1:2:3\n", "The line is one name: columns are separated by a comma, a semicolon, a tab or |."),
        (row('0,"q,1,3'), ':3: cell 2 begins with a quote (") that is never closed.'),
        (row('0,"q"x,1,3'), ":3: something stands behind the closing quote of cell 2"),
        (row("0,q,1\r0,q"), ":3: something stands behind the closing quote of cell 3, or a line end is broken"),
        (SIMPLE.replace("\n", "\r"), "<stream>"),
        ("", "<stream>: the file is empty."),
        (" \n\n", "<stream>: the file is empty."),
        ("label,a\n\n", "<stream>: there is no row below the line that names the columns."),
        ("label,ä\n1,2\n".encode("latin-1"), "<stream>:1: this is not UTF-8 text: save the file as UTF-8"),
        (
            'qid,label,a\nb,1,2\n"ä,b",1,2\n'.encode("latin-1"),
            r":3: the cell '\xe4,b' of column 'qid' is not UTF-8 text: save the file as UTF-8 (of Latin-1: iconv ",
        ),
        ("docid,label,a\nä,1,2\n".encode("latin-1"), r":2: the cell '\xe4' of column 'docid' is not UTF-8 text"),
        ("label,a\n".encode("utf-16"), "<stream>: this is UTF-16 text, not delimited text"),
        (b"PK\x03\x04....", "<stream>: this is a zip archive"),
        (b"PAR1....", "<stream>: this is a Parquet file"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text, match):
    refused(text, match)


def test_labels_that_are_not_there():
    text = "label,a\n1,2\n,3\nNA,4\n"
    table = read(text, labels="optional")
    np.testing.assert_array_equal(table.y, [1, np.nan, np.nan])
    assert read(text, labels="ignored").y is None
    assert read(text, labels="ignored").feature_names == ("a",)
    assert read("a\n1\n", labels="optional").y is None
    refused(text.replace("NA", "x"), ":4: the value 'x' of column 'label' is not a number", labels="optional")
    refused(text.replace("NA", "inf"), ":4: the value 'inf' of column 'label' is missing or not", labels="optional")


def parquet(**columns):
    file = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), file, row_group_size=2)
    file.seek(0)
    return file


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
        monkeypatch.setattr("rankrls.io.tables.arrow._BATCH_CELLS", 7)
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
        ("columns", "match"),
        [
            ({"a": [1.0, None, 2.0]}, "row 1, counted from 0: column 'a' is missing: a feature is a number"),
            ({"a": [1.0, 2.0, float("nan")]}, "row 2, counted from 0: column 'a' is nan: a feature is a finite number"),
            ({"a": ["x", "y", "z"]}, "the column 'a' holds string, no numbers: leave the column out"),
            ({"a": [1, 2, 3], "label": [1, None, 1]}, "row 1, counted from 0: column 'label' is missing"),
            ({"a": [1, 2, 3], "label": list("abc")}, "the column 'label' holds string, no numbers: labels are numbers"),
            ({"a": [1, 2, 3], "qid": ["a", None, "c"]}, "row 1, counted from 0: column 'qid' is missing"),
            ({"a": [1, 2, 3], "qid": [1.0, 1.5, 2]}, "row 1, counted from 0: column 'qid' is 1.5: an id is a whole"),
            ({"a": [None] * 3}, "row 0, counted from 0: column 'a' is missing"),
            ({"a": []}, "the table has no rows"),
        ],
    )
    def test_what_is_wrong_is_named_with_its_row(self, columns, match):
        columns.setdefault("label", [1, 0, 1][: len(columns["a"])])
        if not columns["a"]:
            columns = {name: pa.array([], pa.float64()) for name in columns}
        with pytest.raises(TableError) as found:
            load_table(parquet(**columns), format="parquet")
        assert match in str(found.value)

    def test_labels_that_are_not_there(self):
        table = load_table(parquet(a=[1, 2], label=[1.0, None]), format="parquet", labels="optional")
        np.testing.assert_array_equal(table.y, [1, np.nan])

    def test_damaged_or_no_parquet(self, tmp_path):
        path = tmp_path / "t.parquet"
        path.write_text("label,a\n1,2\n")
        with Refusal("no Parquet", kind=TableError, file="t.parquet"):
            load_table(path)

    def test_the_same_as_text(self, tmp_path):
        frame = pd.DataFrame({"label": [0, 1, 2], "qid": ["a", "a", "b"], "x": [1.5, 2, 3], "on": [True, False, True]})
        frame.to_parquet(tmp_path / "t.parquet")
        frame.to_csv(tmp_path / "t.csv", index=False)
        one, other = load_table(tmp_path / "t.parquet"), load_table(tmp_path / "t.csv")
        for name in ("X", "y", "qid"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


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
        monkeypatch.setattr("rankrls.io.tables.arrow._BATCH_CELLS", 12)
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
        assert names(features="?_vec[?]") == ("t_vec[0]", "t_vec[1]", "d_vec[0]")
        assert names(ignore="t_vec") == ("a", "d_vec[0]")
        assert names(ignore=["*_vec"]) == ("a",)
        assert names(features="*", ignore=["a", "d_vec[0]"]) == ("t_vec[0]", "t_vec[1]")

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            (
                {"features": ["emb[0]", "emb[1]"]},
                "the column 'emb' holds lists of 3 numbers, each a feature, but only 'emb[0]' to 'emb[1]' are wanted; "
                "a list is taken whole.",
            ),
            ({"ignore": ["emb[0]", "emb[1]"]}, "but only 'emb[2]' is wanted"),
            (
                {"features": [f"emb[{k}]" for k in range(5)]},
                "the column 'emb' holds lists of 3 numbers, each a feature, but 'emb[3]' to 'emb[4]' are wanted too.",
            ),
            ({"features": ["emb[3]", "emb"]}, "but 'emb[3]' is wanted too."),
            ({"features": ["embed"]}, "there is no column 'embed'; there is 'emb'."),
            ({"features": ["vec[0]"]}, "there is no column 'vec[0]' (columns: emb, a, label)."),
            ({"label": "emb"}, "the column 'emb' holds list<element: double>, no numbers: labels are numbers"),
        ],
        ids=["shorter", "ignored", "longer", "one more", "hint", "none", "label"],
    )
    def test_a_list_is_taken_whole(self, options, match):
        file = parquet(emb=[[1.0, 2, 3], [4, 5, 6]], a=[1, 2], label=[1, 0])
        with pytest.raises(TableError) as found:
            load_table(file, format="parquet", **options)
        assert str(found.value).startswith("<stream>: ")
        assert match in str(found.value)

    @pytest.mark.parametrize("fixed", [False, True], ids=["list", "fixed"])
    @pytest.mark.parametrize(
        ("rows", "match"),
        [
            ([[1, 2], [1, 2], [1, 2, 3]], "row 2, counted from 0: column 'emb' holds a list of 3 numbers, and others "),
            ([[1, 2], [1, 2], [1]], "a list of 1 number, and others hold 2: all must be of one length."),
            ([[], [1, 2], [1, 2]], "row 0, counted from 0: column 'emb' holds a list of 0 numbers, and others hold 2"),
            ([[1, 2], None, [1, 2]], "row 1, counted from 0: column 'emb' is missing: a list of 2 numbers is wanted"),
            ([None, [1, 2], [1, 2]], "row 0, counted from 0: column 'emb' is missing: a list of 2 numbers is wanted"),
            ([[1, 2], [1, 2], [1, None]], "row 2, counted from 0: column 'emb[1]' is missing: a feature is a number"),
            ([[1, 2], [float("inf"), 2], [1, 2]], "row 1, counted from 0: column 'emb[0]' is inf: a feature is a fin"),
            ([[1, 2], [1, 2], [1, 1e39]], "row 2, counted from 0: the value 1e+39 of column 'emb[1]' is too large for"),
            ([["a", "b"]] * 3, "the column 'emb' holds "),
            ([[[1.0]]] * 3, "no numbers: leave the column out (ignore), or name"),
            ([None] * 3, "no numbers: leave the column out (ignore), or name"),
        ],
        ids=[
            "longer",
            "shorter",
            "empty",
            "null",
            "null first",
            "holds null",
            "inf",
            "large",
            "text",
            "nested",
            "none",
        ],
    )
    def test_what_is_wrong_is_named_with_its_row(self, rows, match, fixed):
        kind = pa.list_(pa.float64())
        if rows[-1] is not None and not isinstance(rows[-1][0], float | int):
            kind = pa.array(rows).type
        elif fixed and all(row is None or len(row) == 2 for row in rows) and rows[-1] is not None:
            kind = pa.list_(pa.float64(), 2)
        columns = {"a": [1, 2, 3], "emb": pa.array(rows, kind), "label": [1, 0, 1]}
        with pytest.raises(TableError) as found:
            load_table(parquet(**columns), format="parquet", dtype=np.float32)
        assert match in str(found.value)
        assert load_table(parquet(**columns), format="parquet", ignore="emb").feature_names == ("a",)

    def test_names_that_collide(self):
        names = ["emb", "label", "emb[1]"]
        file = parquet(**dict(zip(names, ([[1.0, 2], [3, 4]], [0, 1], [5, 6]), strict=True)))
        with Refusal("1 and 3", kind=TableError, column="emb[1]"):
            load_table(file, format="parquet")

    def test_from_pandas_and_polars_and_back(self, tmp_path):
        import polars as pl

        E = np.random.default_rng(2).normal(size=(5, 4))
        pd.DataFrame({"label": range(5), "emb": [*E]}).to_parquet(tmp_path / "pandas.parquet")
        pl.DataFrame({"label": range(5), "emb": E}).write_parquet(tmp_path / "polars.parquet")
        for name in ("pandas", "polars"):
            table = load_table(tmp_path / f"{name}.parquet")
            np.testing.assert_array_equal(table.X, E)
            save_table(tmp_path / "again.csv", table.X, table.y, feature_names=table.feature_names)
            again = load_table(tmp_path / "again.csv", features=table.feature_names)
            np.testing.assert_array_equal(again.X, E)


def test_a_missing_file(tmp_path):
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(FileNotFoundError):
            load_table(tmp_path / name)


def test_the_reader_of_letor_says_that_a_file_is_parquet(tmp_path):
    from rankrls.io import load_letor

    with Refusal("Parquet file", parameter="format"):
        load_letor(parquet(a=[1]))
    save_letor(tmp_path / "t.txt", [[1.0]], [1.0])
    refused((tmp_path / "t.txt").read_bytes(), "<stream>:1: there is no column 'label'")


class TestWriting:
    @given(
        rows=st.lists(st.tuples(NUMBERS, NUMBERS, TEXTS), min_size=1, max_size=20),
        ending=st.sampled_from(["csv", "tsv", "csv.gz", "parquet"]),
    )
    def test_what_is_written_is_read_again(self, rows, ending, tmp_path_factory):
        path = tmp_path_factory.mktemp("t") / f"t.{ending}"
        qid = ["q" + text.strip().replace("\r", "") for _, _, text in rows]
        X = np.array([row[:2] for row in rows])
        y = np.where(np.arange(len(rows)) % 2 == 0, X[:, 0], np.nan)
        save_table(path, X, y, qid, ids=np.arange(len(rows)), feature_names=["a b", 'c"d'], label="grade")
        table = load_table(path, label="grade", labels="optional")
        np.testing.assert_array_equal(table.X, X)
        np.testing.assert_array_equal(np.signbit(table.X), np.signbit(X))
        np.testing.assert_array_equal(table.y, y)
        assert [str(q).rstrip(" \t\n\v\f") for q in table.qid] == [q.rstrip(" \t\n\v\f") for q in qid]
        assert table.ids.tolist() == [*range(len(rows))]

    def test_the_sign_of_zero(self, tmp_path):
        save_table(tmp_path / "t.csv", [[-0.0, 0.0]], [1])
        assert np.signbit(load_table(tmp_path / "t.csv").X).tolist() == [[True, False]]

    def test_sparse_and_many_blocks(self, tmp_path, monkeypatch):
        from scipy import sparse

        monkeypatch.setattr("rankrls.io.tables.writing._BLOCK_CELLS", 10)
        X = sparse.random_array((17, 3), density=0.4, rng=0, format="csr")
        for ending in ("csv", "parquet"):
            save_table(tmp_path / f"t.{ending}", X, np.arange(17))
            np.testing.assert_array_equal(load_table(tmp_path / f"t.{ending}").X, X.toarray())

    @pytest.mark.parametrize(
        ("arguments", "refusal"),
        [
            ({"X": [[np.nan]]}, Refusal("nan", parameter="X", row=0, column="f1")),
            ({"X": np.empty((0, 2))}, Refusal("nothing", parameter="X")),
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
