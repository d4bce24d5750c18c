"""Files of preferences: what comes back, and what is said of a wrong line."""

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

from rankrls.io import PairsError, load_pairs

IDS = ["tea", "milk, cold", "héron", "7"]


def read(text, **options):
    return load_pairs(io.BytesIO(text if isinstance(text, bytes) else text.encode()), **options)


@pytest.mark.parametrize(
    "text",
    [
        "0,1\n2,0\n3,1\n",
        "winner,loser\n0,1\n2,0\n3,1",
        "Loser, WINNER \r\n1,0\r\n0,2\r\n1,3\r\n",
        "winner\tloser\n0\t1\n\n2\t0\n   \n3\t1\n",
        "\ufeffnote,winner,loser\n,0,1\nx y,2,0\n,3,1\n",
        ' 0 ,"1"\n2,0\n+3,1\n',
    ],
    ids=repr,
)
def test_row_numbers(text):
    table = read(text, n_items=4)
    np.testing.assert_array_equal(table.winners, [0, 2, 3])
    np.testing.assert_array_equal(table.losers, [1, 0, 1])
    assert (table.strength, table.weight, table.groups) == (None, None, None)
    assert table.winners.dtype == np.intp
    assert table.n_pairs == 3


def test_ids_and_further_columns():
    text = 'group,winner,weight,strength,loser\nann,tea,2,-0.5,"milk, cold"\nben,héron,0,1e-3, 7\nann,7,1,0,tea\n'
    table = read(text, ids=IDS)
    np.testing.assert_array_equal(table.winners, [0, 2, 3])
    np.testing.assert_array_equal(table.losers, [1, 3, 0])
    np.testing.assert_array_equal(table.strength, [-0.5, 1e-3, 0.0])
    np.testing.assert_array_equal(table.weight, [2.0, 0.0, 1.0])
    assert table.groups.tolist() == ["ann", "ben", "ann"]
    assert repr(table) == "<PairTable <stream>: 3 preferences, with strength, weight, groups>"


def test_without_names_the_order_counts():
    table = read("0,1,2.5\n1,0,1\n")
    np.testing.assert_array_equal(table.strength, [2.5, 1.0])
    assert table.weight is None
    np.testing.assert_array_equal(read("0,1,2.5,3\n").weight, [3.0])


def test_files_plain_and_packed(tmp_path):
    text = b"winner,loser\n0,1\n"
    for name, data in (("p.csv", text), ("p.csv.gz", gzip.compress(text))):
        (tmp_path / name).write_bytes(data)
        table = load_pairs(tmp_path / name)
        assert (table.path, table.sha256) == (str(tmp_path / name), hashlib.sha256(data).hexdigest())
        np.testing.assert_array_equal(table.losers, [1])
    with pytest.raises(FileNotFoundError):
        load_pairs(tmp_path / "none.csv")


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(1, 5), st.floats(allow_nan=False, allow_infinity=False, width=64)),
        min_size=1,
    ),
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=6, max_size=6),
)
def test_what_was_written_comes_back(pairs, words):
    ids = [f"{k} {word} ." for k, word in enumerate(words)]
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(["winner", "loser", "strength"])
    for i, step, s in pairs:
        writer.writerow([ids[i], ids[(i + step) % 6], repr(s)])
    table = read(out.getvalue(), ids=ids)
    np.testing.assert_array_equal(table.winners, [i for i, _, _ in pairs])
    np.testing.assert_array_equal(table.losers, [(i + step) % 6 for i, step, _ in pairs])
    np.testing.assert_array_equal(table.strength, [s for *_, s in pairs])


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("", Refusal("empty")),
        ("0,1\n\n2,4\n", Refusal("'4' is no row number", "0 to 3", row=1, column="loser")),
        *((f"0,1\n{w},2\n", Refusal(f"'{w}' is no row number", row=1)) for w in ("-1", "x", "1.5", "1_0", "9" * 30)),
        ("0,1\n,2\n", Refusal("empty", row=1, column="winner")),
        ("0,1\n2,2\n", Refusal("compared with itself", row=1)),
        ("0,1\n2\n", Refusal("1 cells", row=1)),
        ("0,1\n2,1,0\n", Refusal("3 cells", row=1)),
        ("0,1,1,1,1\n", Refusal("without a line that names them", line=1)),
        ("winner,looser\n0,1\n", Refusal(column="loser")),
        ("winner,loser,winner\n0,1,2\n", Refusal("two columns", column="winner")),
        ("0,1,2\n1,0,nan\n", Refusal(row=1, column="strength")),
        ("0,1,2\n1,0,\n", Refusal("empty", row=1, column="strength")),
        ("0,1,2,1\n1,0,1,-2\n", Refusal("negative", row=1, column="weight")),
        ("0,1,2,1\n1,0,1,much\n", Refusal("'much'", row=1, column="weight")),
        ("0,1,1,0\n1,0,1,0\n", Refusal("weight 0", column="weight")),
        ('0,1\n"1,2\n', Refusal("never closed", line=2)),
        (b"0,1\n\xff,2\n", Refusal("UTF-8", line=2)),
        pytest.param(gzip.compress(b"0,1\n" * 99, mtime=0)[:20], Refusal("gzip"), id="gzip"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_with_the_row(text, facts):
    with facts:
        read(text, n_items=4)
    assert isinstance(facts.value, PairsError)
    assert facts.value.file == "<stream>"


def test_ids_that_are_none():
    with Refusal("no item", "'Tea'", kind=PairsError, row=1, column="loser", file="<stream>"):
        read("winner,loser\ntea,7\n7,Tea\n", ids=IDS)
    with Refusal("'b'", "several items", kind=PairsError, row=1, column="winner", file="<stream>"):
        read("a,c\nb,a\n", ids=["a", "b", "c", "b"])
    np.testing.assert_array_equal(read("a,c\nc,a\n", ids=["a", "b", "c", "b"]).winners, [0, 2])
    with Refusal("is empty", kind=PairsError, column="loser", file="<stream>"):
        read("a,\n", ids=["a", "", "c"])
    with Refusal("2 entries", "3 items", parameter="ids"):
        read("a,b\n", ids=["a", "b"], n_items=3)


def parquet(**columns):
    file = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), file)
    return file.getvalue()


class TestParquet:
    def test_the_same_as_text(self, tmp_path):
        frame = pd.DataFrame(
            {
                "Loser": ["milk, cold", "7", "tea"],
                "note": [[1], [2], [3]],
                "strength": [-0.5, 1e-3, 0.1],
                "winner": ["tea", "héron", "7"],
                "weight": pd.array([2, 0, 1], dtype="int8"),
                "group": pd.Categorical(["ann", "ben", "ann"]),
            }
        )
        frame.to_csv(tmp_path / "p.csv", index=False)
        frame.to_parquet(tmp_path / "p.parquet")
        text, table = (load_pairs(tmp_path / name, ids=IDS) for name in ("p.csv", "p.parquet"))
        for name in ("winners", "losers", "strength", "weight", "groups"):
            np.testing.assert_array_equal(getattr(table, name), getattr(text, name))
        assert table.winners.tolist() == [0, 2, 3]
        data = (tmp_path / "p.parquet").read_bytes()
        assert table.sha256 == hashlib.sha256(data).hexdigest()
        np.testing.assert_array_equal(read(data, ids=IDS).losers, text.losers)  # known by its bytes

    @pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float64(), pa.string()], ids=str)
    def test_row_numbers(self, kind):
        winner, loser = (pa.array(v).cast(kind) for v in ([0, 2, 3], [1, 0, 1]))
        table = read(parquet(winner=winner, loser=loser), n_items=4)
        assert (table.winners.tolist(), table.losers.tolist()) == ([0, 2, 3], [1, 0, 1])
        assert (table.strength, table.weight, table.groups) == (None, None, None)

    def test_whole_numbers_as_ids(self):
        table = read(parquet(winner=[12.0, 7.0], loser=[7, 12]), ids=np.array([7, 12]))
        assert (table.winners.tolist(), table.losers.tolist()) == ([1, 0], [0, 1])

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"winner": [0, 1], "loser": [1, 4]}, "row 1, counted from 0: the loser '4' is no row number; rows"),
            ({"winner": [0, 1], "loser": [1, None]}, "row 1, counted from 0: column 'loser' is missing"),
            (
                {"winner": [0, 1.5], "loser": [1, 0]},
                "row 1, counted from 0: column 'winner' is 1.5: an id is",
            ),
            ({"winner": [0, 2], "loser": [1, 2]}, "row 1, counted from 0: the item '2' is compared with itself."),
            ({"winner": [0], "loser": [1], "weight": [-2.5]}, "row 0, counted from 0: the weight -2.5 is negative."),
            (
                {"winner": [0], "loser": [1], "strength": [None]},
                "row 0, counted from 0: column 'strength' is missing",
            ),
            ({"winner": [0], "looser": [1]}, "there is no column 'loser'."),
            ({"winner": [0], "loser": [1], "Winner": [2]}, "there are two columns 'winner'."),
            ({"winner": [], "loser": []}, "the table has no rows."),
        ],
        ids=["number", "null", "half", "itself", "negative", "no strength", "name", "twice", "empty"],
    )
    def test_what_is_wrong_is_said_with_the_row(self, columns, message):
        with pytest.raises(PairsError) as error:
            read(parquet(**columns), n_items=4)
        assert str(error.value).startswith(f"<stream>: {message}")

    def test_damaged_or_text(self, tmp_path):
        data = parquet(winner=[0], loser=[1])
        (tmp_path / "p.parquet").write_bytes(data[:-20])
        with Refusal("no Parquet", kind=PairsError, file="p.parquet"):
            load_pairs(tmp_path / "p.parquet")
        assert read("PAR1,PAR2\nPAR2,PAR1\n", ids=["PAR1", "PAR2"]).winners.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("winner,loser\n1,2\n".encode("utf-16"), "UTF-16"),
        (b'PK\x03\x04"group",loser,winner\n,2,1\n', "zip archive"),
    ],
    ids=["utf-16", "zip"],
)
def test_other_formats_are_named(data, what):
    with pytest.raises(PairsError) as caught:
        load_pairs(io.BytesIO(data), n_items=4)
    assert what in caught.value.message


def test_an_id_may_begin_as_another_format_does():
    assert load_pairs(io.BytesIO(b"BZh9,a\n"), ids=["a", "BZh9"]).winners.tolist() == [1]
