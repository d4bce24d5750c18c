"""Files of preferences: what is read, and the errors of wrong lines."""

import csv
import hashlib
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, strategies as st
from tests.refusals import Refusal

from rankrls.io import load_pairs

IDS = ["tea", "milk, cold", "héron", "7"]


def read(text, **options):
    return load_pairs(io.BytesIO(text if isinstance(text, bytes) else text.encode()), **options)


def parquet(**columns):
    file = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), file)
    return file.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        "winner,loser\n0,1\n2,0\n3,1",
        "loser, winner \r\n1,0\r\n0,2\r\n1,3\r\n",
        "winner\tloser\n0\t1\n\n2\t0\n   \n3\t1\n",
        "\ufeffnote,winner,loser\n,0,1\nx y,2,0\n,3,1\n",
        'winner,loser\n 0 ,"1"\n2,0\n3,1\n',
    ],
    ids=repr,
)
def test_row_numbers(text):
    table = read(text, ids=range(4))
    np.testing.assert_array_equal(table.winners, [0, 2, 3])
    np.testing.assert_array_equal(table.losers, [1, 0, 1])
    assert (table.strength, table.weight, table.groups) == (None, None, None)
    assert table.winners.dtype == np.intp
    assert (table.n_pairs, table.ignored) == (3, ("note",) if "note" in text else ())


def test_ids_and_further_columns():
    text = 'group,winner,weight,strength,loser\nann,tea,2,-0.5,"milk, cold"\nben,héron,0,1e-3, 7\nann,7,1,0,tea\n'
    table = read(text, ids=IDS)
    np.testing.assert_array_equal(table.winners, [0, 2, 3])
    np.testing.assert_array_equal(table.losers, [1, 3, 0])
    np.testing.assert_array_equal(table.strength, [-0.5, 1e-3, 0.0])
    np.testing.assert_array_equal(table.weight, [2.0, 0.0, 1.0])
    assert table.groups.tolist() == ["ann", "ben", "ann"]
    assert repr(table) == "<PairTable <stream>: 3 preferences>"


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
    if not any(strength for *_, strength in pairs):
        with Refusal("no vote prefers", file="<stream>"):
            read(out.getvalue(), ids=ids)
        return
    table = read(out.getvalue(), ids=ids)
    np.testing.assert_array_equal(table.winners, [i for i, _, _ in pairs])
    np.testing.assert_array_equal(table.losers, [(i + step) % 6 for i, step, _ in pairs])
    np.testing.assert_array_equal(table.strength, [s for *_, s in pairs])


@pytest.mark.parametrize(
    ("columns", "facts"),
    [
        ({"winner": [0, 2], "loser": [1, 4]}, Refusal("'4' is not the id", "'0'", row=1, column="loser")),
        *(
            ({"winner": ["0", word], "loser": ["1", "2"]}, Refusal(f"'{word}' is not the id", row=1))
            for word in ("-1", "x", "1.5", "1_0", "9" * 30)
        ),
        ({"winner": ["0", ""], "loser": ["1", "2"]}, Refusal("''", row=1, column="winner")),
        ({"winner": [0, 2], "loser": [1, 2]}, Refusal("compared with itself", row=1, column="winner")),
        ({"winner": [0], "looser": [1]}, Refusal(column="loser")),
        ({"winner": [0, 1], "loser": [1, 0], "strength": [2, None]}, Refusal("empty cell", row=1, column="strength")),
        ({"winner": [0, 1], "loser": [1, 0], "weight": [2, -2.5]}, Refusal("negative", row=1, column="weight")),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_with_the_row(columns, facts):
    """In text and in Parquet."""
    for data in (pd.DataFrame(columns).to_csv(index=False).encode(), parquet(**columns)):
        with facts:
            read(data, ids=range(4))
        assert facts.value.file == "<stream>"


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("winner,loser\n0,1\n2\n", Refusal("1 field", "header has 2", row=1, line=3)),
        ("winner,loser,weight\n0,1,2\n1,0,much\n", Refusal("'much'", row=1, column="weight")),
        pytest.param(parquet(winner=[0.5], loser=[1]), Refusal("0.5", column="winner"), id="half"),
        pytest.param(parquet(winner=pa.array([], pa.int8()), loser=[]), Refusal("no rows"), id="no rows"),
    ],
    ids=str,
)
def test_what_is_no_file_of_preferences(text, facts):
    with facts:
        read(text, ids=range(4))


@pytest.mark.parametrize("word", ["-1", "x", "1.5", "1_0", "9" * 30])
def test_row_numbers_that_are_none(word):
    with Refusal(f"'{word}' is not a row number", row=1, column="loser"):
        read(f"winner,loser\n0,1\n2,{word}\n")


def test_ids_that_are_none():
    with Refusal("'Tea'", "one item", row=1, column="loser", file="<stream>"):
        read("winner,loser\ntea,7\n7,Tea\n", ids=IDS)
    with Refusal("'b'", "one item", row=1, column="winner", file="<stream>"):
        read("winner,loser\na,c\nb,a\n", ids=["a", "b", "c", "b"])
    np.testing.assert_array_equal(read("winner,loser\na,c\nc,a\n", ids=["a", "b", "c", "b"]).winners, [0, 2])


def test_parquet_is_the_same_as_text(tmp_path):
    frame = pd.DataFrame(
        {
            "loser": ["milk, cold", "7", "tea"],
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
