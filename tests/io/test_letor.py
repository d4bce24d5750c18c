"""The LETOR reader against a reader of a few plain lines, on files that are right, odd and wrong."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io

import numpy as np
import pytest
import scipy.sparse as sp
from fuzzing.campaign import Refused
from fuzzing.letor import blocks_of, judge, make
from hypothesis import given, settings, strategies as st
from tests.refusals import Refusal

from rankrls import InputError
from rankrls.cli import main
from rankrls.io import load_letor, load_table, open_dataset, save_letor, write_shards
from rankrls.io.columns import ColumnRoles
from rankrls.io.reading import open_rows


def read(data: bytes, **options):
    return load_letor(io.BytesIO(data), **options)


@given(seed=st.integers(0, 2**40))
def test_reads_and_refuses_what_the_plain_reader_does(seed):
    with contextlib.suppress(Refused):
        judge(make(np.random.default_rng(seed)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"x 1:2", "a line begins with the label, a finite number; got 'x'."),
        (b"1:2 2:3", "a line begins with the label, a finite number; got '1:2'."),
        (b"qid:1 1:2", "a line begins with the label, a finite number; got 'qid:1'."),
        (b"nan 1:2", "a line begins with the label, a finite number; got 'nan'."),
        (b"1e999 1:2", "a line begins with the label, a finite number; got '1e999'."),
        (b"1_0 1:2", "a line begins with the label, a finite number; got '1_0'."),
        (b"1 qid:1 5", "'5' is not 'feature:value' with a whole number as feature id (nor 'qid:id')."),
        (b"1 qid:1 1:2:3", "the value '2:3' of feature 1 is not a finite number (float64)."),
        (b"1 qid:1 a:2", "'a:2' is not 'feature:value' with a whole number as feature id (nor 'qid:id')."),
        (b"1 qid:1 3:", "the value '' of feature 3 is not a finite number (float64)."),
        (b"1 qid:1 3:nan", "the value 'nan' of feature 3 is not a finite number (float64)."),
        (b"1 qid:1 3:1e400", "the value '1e400' of feature 3 is not a finite number (float64)."),
        (b"1 qid:1 3:1,5", "the value '1,5' of feature 3 is not a finite number (float64)."),
        (b"1 qid:1 1234567890123456789:1", "'1234567890123456789:1' is not"),
        (b"1 qid:1 3:1 4:1 3:1", "feature 3 is named twice."),
        (b"1 qid:1 3:1 3:1", "feature 3 is named twice."),
        (b"1 qid: 3:1", "'qid:' is not a query id"),
        (b"1 qid:1 3:1 qid:1", "'qid:1' is not a query id: a line has one"),
        (b"1 qid:a\0 3:1", r"'qid:a\x00' is not a query id"),
        (b"1 3:1", "the line has no query id, unlike the lines before it."),
        (b"1 qid:1 " + b"9" * 60, f"'{'9' * 37}...' is not 'feature:value'"),
        (b"1 qid:1 3:" + b"9" * 400, f"the value '{'9' * 37}...' of feature 3 is not a finite number (float64)."),
        (b"1 qid:1 \xff:2", r"'\xff:2' is not 'feature:value' with a whole number as feature id"),
    ],
)
def test_each_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "train.txt"
    path.write_bytes(b"\xef\xbb\xbf# head\n\n1 qid:1 1:2 7:1\r\n" + line + b"\n0 qid:1 1:x\n")
    with pytest.raises(InputError) as caught:
        load_letor(path)
    assert str(caught.value).startswith(f"{path}:4: {message}")


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_value_that_is_too_large_for_float32_is_refused_whatever_its_sign(sign):
    text = f"1 qid:1 1:2\n0 qid:1 1:{sign}1e39\n".encode()
    assert load_letor(io.BytesIO(text)).X[1, 0] == float(f"{sign}1e39")
    with Refusal("float32", line=2):
        load_letor(io.BytesIO(text), dtype=np.float32)


def test_ids_of_all_blocks_are_texts_if_one_is_not_a_number(monkeypatch):
    monkeypatch.setattr("rankrls.io._text._BLOCK", 8)
    assert load_letor(io.BytesIO(b"1 qid:1 1:1\n1 qid:b 1:1\n0 qid:2 1:1\n")).qid.tolist() == ["1", "b", "2"]


def test_sparse_rows_of_several_blocks_of_text(monkeypatch):
    monkeypatch.setattr("rankrls.io._text._BLOCK", 16)
    text = b"1 qid:1 2:5 900:1\n0 qid:1 7:4\n2 qid:2 1:3 2:2 800:9\n0 qid:2\n1 qid:2 900:6\n"
    X = load_letor(io.BytesIO(text), dense=False).X
    expected = np.zeros((5, 900))
    expected[[0, 0, 1, 2, 2, 2, 4], [1, 899, 6, 0, 1, 799, 899]] = [5, 1, 4, 3, 2, 9, 6]
    np.testing.assert_array_equal(X.toarray(), expected)


def test_a_qid_after_lines_without_one():
    with Refusal("a query id", "before", file="<stream>", line=2):
        read(b"1 1:1\n1 qid:4 1:1\n")


def test_a_block_of_text_without_ids_after_one_with_ids(monkeypatch):
    monkeypatch.setattr("rankrls.io._text._BLOCK", 8)
    with Refusal("no query id", "lines before it", line=3):
        load_letor(io.BytesIO(b"1 qid:1 1:1\n1 qid:1 1:1\n1 1:1\n1 1:2\n"))


def test_the_first_bad_line_is_reported_whatever_the_threads(monkeypatch):
    rows = [b"1 qid:1 1:%d 2:3" % i for i in range(4000)]
    for bad in (3777, 2500, 123):
        rows[bad] = b"1 qid:1 1:2 2:oops"
        for threads in (1, 2, 5):
            monkeypatch.setenv("RANKRLS_NUM_THREADS", str(threads))
            for dense in (True, False):
                with blocks_of(1000), Refusal(file="<stream>", line=bad + 1):
                    read(b"\n".join(rows), dense=dense)


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        (b"", Refusal("empty")),
        (b"\n \n# nothing\n", Refusal("no row")),
        (b"\xef\xbb\xbf", Refusal("no row")),
        (b"1 qid:1\n", Refusal("names a feature", parameter="n_features")),
        (b"PK\x03\x04 abc", Refusal("label", line=1)),
        (b"\xff\xfe1\0 \0", Refusal("label", line=1)),
    ],
)
def test_files_without_rows(data, refusal):
    with refusal:
        read(data)


def test_n_features_makes_shapes_agree():
    data = b"1 1:1\n0 3:2\n"
    for dense in (True, False):
        assert read(data, n_features=7, dense=dense).X.shape == (2, 7)
        with Refusal("feature 3", "to 2", parameter="n_features", file="<stream>", line=2):
            read(data, n_features=2, dense=dense)
        with Refusal("feature 3", "to 2", parameter="n_features", file="<stream>", line=2):
            read(data, n_features=3, zero_based=True, dense=dense)
    empty = read(b"1 qid:1\n2 qid:1\n", n_features=3, dense=True)
    assert np.array_equal(empty.X, np.zeros((2, 3)))


def test_ids_from_zero_and_from_one():
    assert read(b"1 0:5 1:6\n").X.tolist() == [[5, 6]]
    assert read(b"1 1:6\n", zero_based=True).X.tolist() == [[0, 6]]
    assert read(b"1 1:6\n").first_feature == 1
    with Refusal("feature 0", parameter="zero_based", file="<stream>", line=2):
        read(b"1 1:6\n1 0:5\n", zero_based=False)


def test_dense_from_one_cell_in_ten():
    assert isinstance(read(b"1 10:1\n").X, np.ndarray)
    sparse = read(b"1 11:1\n").X
    assert isinstance(sparse, sp.csr_array)
    assert sparse.indices.dtype == np.int32
    huge = read(b"1 5000000000:1 2:3\n", n_features=5_000_000_000).X
    assert huge.shape == (1, 5_000_000_000)
    assert huge.indices.tolist() == [1, 4_999_999_999]


def test_a_feature_id_that_is_probably_wrong():
    with Refusal("most of them empty", parameter="n_features", column=999999999) as found:
        read(b"1 999999999:1\n0 2:1\n")
    error = found.value
    assert (error.column, error.parameter, error.file) == (999_999_999, "n_features", "<stream>")
    assert read(b"1 999999999:1\n", n_features=999_999_999).n_features == 999_999_999


def test_a_hard_decimal_that_overflows_is_an_error_of_its_line():
    over = str(2**1024 - 2**970)  # half a unit above the largest float64; every shorter prefix leaves it open
    assert np.isinf(float(over))
    assert np.isfinite(float(str(int(over) - 1)))
    for text, line in ((f"1 1:1\n1 1:{over}\n1 1:x\n", 2), (f"1 1:1\n{over} 1:1\n", 2)):
        with Refusal("finite", line=line):
            read(text.encode())


def test_query_ids_are_utf8_and_comments_any_bytes():
    with Refusal("'qid:caf\\xe9'", "UTF-8", file="<stream>", line=2):
        load_letor(io.BytesIO("1 qid:b 1:1\n1 qid:café 1:2\n".encode("latin-1")))
    assert load_letor(io.BytesIO("1 qid:café 1:1\n".encode())).qid.tolist() == ["café"]
    assert len(load_letor(io.BytesIO("1 qid:b 1:1 # café\n".encode("latin-1"))).comments) == 1


def some_rows(m: int) -> bytes:
    rng = np.random.default_rng(0)
    return "".join(
        f"{i % 3} qid:{i // 9} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row, 1)) + f" # d{i}\n"
        for i, row in enumerate(rng.standard_normal((m, 5)).tolist())
    ).encode()


@pytest.mark.parametrize("pack", ["plain", "one member", "members", "padded", "misnamed"])
def test_gzip_is_known_by_its_bytes(tmp_path, pack):
    data = some_rows(3000)
    expected = read(data)
    parts = [data] if pack != "members" else [data[:1000], b"", data[1000:]]
    raw = data if pack == "plain" else b"".join(map(gzip.compress, parts)) + b"\0" * (600 * (pack == "padded"))
    path = tmp_path / ("x.txt" if pack == "misnamed" else "x.gz")
    path.write_bytes(raw)
    for size in (100, 1000, 1 << 20):
        with blocks_of(size):
            table = load_letor(path)
        assert np.array_equal(table.X, expected.X)
        assert table.comments == expected.comments
        assert table.sha256 == hashlib.sha256(raw).hexdigest()
        assert table.path == str(path)


def test_damaged_gzip():
    raw = gzip.compress(some_rows(500))
    for cut in (3, 12, len(raw) // 2, len(raw) - 1):
        with Refusal("truncated"):
            read(raw[:cut])
    broken = bytearray(raw)
    broken[-6] ^= 1
    with Refusal("damaged"):
        read(bytes(broken))
    with Refusal("damaged"):
        read(raw + b"trailing rubbish")


def test_a_stream_that_gives_little_at_a_time():
    class Slow(io.RawIOBase):
        def __init__(self, data):
            self.rest = data

        def readable(self):
            return True

        def readinto(self, buffer):
            n = min(3, len(self.rest), len(buffer))
            buffer[:n], self.rest = self.rest[:n], self.rest[n:]
            return n

    data = some_rows(50)
    for stream in (Slow(data), Slow(gzip.compress(data))):
        assert np.array_equal(load_letor(stream).X, read(data).X)


@pytest.mark.parametrize(
    "options",
    [
        {"n_features": 0},
        {"n_features": 2.5},
        {"n_features": True},
        {"zero_based": "yes"},
        {"zero_based": 1},
        {"dense": None},
        {"dtype": np.int32},
    ],
)
def test_options_are_checked(options):
    with Refusal(parameter=next(iter(options))):
        read(b"1 1:1\n", **options)


@settings(max_examples=20)
@given(m=st.integers(1, 30), n=st.integers(1, 6), seed=st.integers(0, 99))
def test_agrees_with_scikit_learn(m, n, seed):
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file

    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.7)
    X[0, -1] = 1.0
    file = io.BytesIO()
    dump_svmlight_file(X, rng.integers(0, 3, m), file, query_id=np.sort(rng.integers(0, 5, m)), zero_based=False)
    file.seek(0)
    theirs, y, qid = load_svmlight_file(file, query_id=True, zero_based=False)
    table = read(file.getvalue(), dense=False)
    assert (theirs != table.X).nnz == 0
    assert np.array_equal(table.y, y)
    assert np.array_equal(table.qid, qid)


def test_a_file_as_tables_of_some_rows_each(tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(some_rows(300) + b"1 qid:x 0:1\n")
    whole = load_letor(path)
    with blocks_of(1000):
        with open_rows(path, "letor") as file:
            schema = file.scan(ColumnRoles())
        with open_rows(path, "letor") as file:
            tables = [*file.parts(schema)]
    assert (schema.n_features, schema.first_feature, [*schema.columns]) == (6, 0, ["label", "qid"])
    assert len(tables) > 10
    assert np.array_equal(np.vstack([table.X.toarray() for table in tables]), whole.X)
    assert [str(name) for table in tables for name in table.qid] == whole.qid.tolist()
    assert [text for table in tables for text in table.comments or [""]] == whole.comments


def test_the_line_of_each_row_is_known():
    """Among comments and blank lines, in any blocks of text."""
    rows = [f"{k % 3} qid:{k // 9} 1:{k}\n" + "\n# note\n" * (k % 4 == 1) for k in range(300)]
    lines = [1 + sum(row.count("\n") for row in rows[:k]) for k in range(len(rows))]
    for size in (100, 1 << 20):
        with blocks_of(size):
            table = read("".join(rows).encode())
        assert [table.line_of(row) for row in range(table.n_rows)] == lines
    assert table.line_of(table.n_rows) is None


@pytest.mark.parametrize(
    ("comments", "ids"),
    [
        (["docid = 7 inc = 0.1", "docid: b", "docid=7"], ["7", "b", "7"]),
        (["doc-0096", "doc-0097", "doc-0096"], ["doc-0096", "doc-0097", "doc-0096"]),  # the last is in another query
        (["doc-0096", "doc-0096", "x"], None),
        (["doc-0096", "two words", "x"], None),
        (["doc-0096", "", "x"], None),
        (["doc-0096", "docid = x y", "x"], None),
        (["", "", ""], None),
    ],
)
def test_comments_that_name_the_items(comments, ids, tmp_path):
    path, shards = tmp_path / "a.txt", tmp_path / "shards"
    save_letor(path, [[1.0], [2.0], [3.0]], [2, 1, 0], [1, 1, 2], comments=comments)
    found = load_letor(path).docids
    assert (None if found is None else found.tolist()) == ids
    write_shards(path, shards)
    written = next(iter(open_dataset(shards))).ids
    assert (None if written is None else written.tolist()) == ids


@pytest.mark.parametrize("form", ["docid = Café{}", "Café{}"])
@pytest.mark.parametrize("coding", ["latin-1", "utf-8"])
def test_ids_in_comments_in_latin_1_can_be_written_everywhere(form, coding, tmp_path, capsys):
    lines = [f"{k % 3} qid:{k // 6} 1:{k} 2:{k * k % 7} # {form.format(k)}" for k in range(24)]
    data, model, shards = tmp_path / "a.txt", str(tmp_path / "m.rankrls"), tmp_path / "shards"
    data.write_bytes("\n".join(lines).encode(coding) + b"\n")
    table, names = load_letor(data), [f"Café{k}" for k in range(24)]
    assert table.docids.tolist() == names
    save_letor(tmp_path / "again.txt", table.X, table.y, table.qid, comments=table.comments)
    assert load_letor(tmp_path / "again.txt").comments == table.comments
    for ending in ("csv", "parquet", "arrow"):
        assert main(["convert", str(data), str(tmp_path / f"a.{ending}")]) == 0
        assert load_table(tmp_path / f"a.{ending}").docids.tolist() == names
    write_shards(data, shards)
    assert [name for part in open_dataset(shards) for name in part.docids] == names
    assert main(["fit", str(data), "-m", model]) == 0
    assert main(["predict", model, str(data), "-o", str(tmp_path / "scores.csv")]) == 0
    assert load_table(tmp_path / "scores.csv", labels="ignored").docids.tolist() == names
    capsys.readouterr()
    assert main(["rank", model, str(data)]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in names)
