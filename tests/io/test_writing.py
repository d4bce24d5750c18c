"""What is written is what is read back, and files are there whole or not at all."""

from __future__ import annotations

import errno
import os
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from tests.refusals import Refusal

from rankrls.io import atomic_write, load_letor, load_table, save_letor, save_table, writing as writer

finite = st.floats(allow_nan=False, allow_infinity=False)
ids = st.text(st.characters(codec="utf-8", exclude_characters=" \t\r\v\f\n#\0"), min_size=1, max_size=6)
notes = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=8)


def same_bits(a, b) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@st.composite
def tables(draw):
    m, n = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    cell = st.just(0.0) | st.just(-0.0) | finite
    X = np.array(draw(st.lists(cell, min_size=m * n, max_size=m * n))).reshape(m, n)
    y = np.array(draw(st.lists(finite, min_size=m, max_size=m)))
    whole = st.integers(-(2**63), 2**63 - 1)
    qid = draw(st.none() | st.lists(whole, min_size=m, max_size=m) | st.lists(ids, min_size=m, max_size=m))
    comments = draw(st.none() | st.lists(notes, min_size=m, max_size=m))
    return X, y, qid, comments


@given(tables(), st.booleans(), st.sampled_from(["", ".gz"]), st.integers(1, 20))
def test_round_trip(tmp_path_factory, table, zero_based, suffix, block):
    X, y, qid, comments = table
    path = tmp_path_factory.mktemp("letor") / f"table.txt{suffix}"
    with mock.patch.object(writer, "_BLOCK_CELLS", block):
        save_letor(path, X, y, qid, comments=comments, zero_based=zero_based)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") is (suffix == ".gz")
    back = load_letor(path, dense=True)
    assert back.zero_based is zero_based
    assert same_bits(back.X, X)
    assert same_bits(back.y, y)
    if qid is None:
        assert back.qid is None
    elif isinstance(qid[0], int):
        assert same_bits(back.qid, np.array(qid))
    else:
        assert [str(q) for q in back.qid.tolist()] == qid
    stripped = [c.strip(" \t\r\v\f") for c in comments or ()]
    assert back.comments == (stripped if any(stripped) else None)
    again = path.with_name(f"again.txt{suffix}")
    save_letor(again, back.X, back.y, back.qid, comments=back.comments, zero_based=zero_based)
    assert load_letor(again, dense=True).comments == back.comments
    if suffix == "":
        assert again.read_bytes() == path.read_bytes()


@given(tables(), st.booleans(), st.integers(1, 9))
def test_round_trip_of_sparse(tmp_path_factory, table, zero_based, block):
    X, y, _, _ = table
    path = tmp_path_factory.mktemp("letor") / "table.txt"
    sparse = sp.csr_array(X)
    with mock.patch.object(writer, "_BLOCK_CELLS", block):
        save_letor(path, sparse, y, zero_based=zero_based)
    back = load_letor(path, dense=False, n_features=X.shape[1], zero_based=zero_based).X
    assert same_bits(back.toarray() + 0.0, X + 0.0)  # scipy drops the sign of -0.0 when it makes a sparse array
    assert back.nnz == sparse.nnz


def test_sparse_formats_and_unsorted_entries(tmp_path):
    path = tmp_path / "x"
    X = sp.coo_array(([1.0, 2.0, 3.0, 4.0], ([0, 0, 1, 0], [4, 1, 2, 1])), shape=(2, 6))
    unsorted = sp.csr_array(([5.0, 6.0], [3, 0], [0, 2, 2]), shape=(2, 4))
    for given_X in (X, X.tocsc(), sp.csr_matrix(X), unsorted):
        save_letor(path, given_X, [1, 2])
        assert np.array_equal(
            load_letor(path, dense=True, n_features=X.shape[1]).X[:, : given_X.shape[1]], given_X.toarray()
        )
    assert unsorted.indices.tolist() == [3, 0]


def test_the_text(tmp_path):
    path = tmp_path / "x"
    X = np.array([[0.0, 0.5], [-0.0, 1e-9]])
    save_letor(path, X, [1, 2.5], ["a", "b:c"], comments=["", "doc 1"])
    assert path.read_text() == "1 qid:a 1:0 2:0.5\n2.5 qid:b:c 1:-0 2:1e-9 # doc 1\n"
    save_letor(path, sp.csr_array([[0, 0, 2.0], [0, 0, 0]]), [0, 1], zero_based=True)
    assert path.read_text() == "0 2:2\n1\n"


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (([[1.0, np.nan]], [1]), Refusal("NaN", parameter="X", row=0, column=1)),
        ((sp.csr_array([[0, 0, 1.0], [0, np.inf, 0]]), [1, 2]), Refusal("inf", parameter="X", row=1, column=1)),
        (([[1.0], [2.0]], [1, np.inf]), Refusal("inf", parameter="y", row=1)),
        (([[1.0]], [1, 2]), Refusal("rows", "shape (2,)", parameter="y")),
        (([1.0], [1]), Refusal("at least one row and one feature", parameter="X")),
        ((np.zeros((0, 2)), []), Refusal("at least one row and one feature", parameter="X")),
        ((np.zeros((2, 0)), [1, 2]), Refusal("at least one row and one feature", parameter="X")),
        (([[1.0]], [1], [1, 2]), Refusal("shape (2,)", parameter="qid")),
        (([[1.0]], [1], [1.5]), Refusal("1.5", "string", parameter="qid", row=0)),
        (([[1.0]], [1], np.array([None])), Refusal("None", parameter="qid", row=0)),
        (([[1.0]], [1], ["a b"]), Refusal("'a b'", parameter="qid", row=0)),
        (([[1.0]], [1], ["a#b"]), Refusal("'a#b'", parameter="qid", row=0)),
        (([[1.0]], [1], ["a\0"]), Refusal("NUL", parameter="qid", row=0)),
        (([[1.0], [1]], [1, 1], ["a", ""]), Refusal("''", parameter="qid", row=1)),
    ],
)
def test_what_cannot_be_written(tmp_path, arguments, refusal):
    path = tmp_path / "x"
    path.write_text("old")
    with refusal:
        save_letor(path, *arguments)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_comments_that_cannot_be_written(tmp_path):
    with Refusal("line end", parameter="comments", row=1):
        save_letor(tmp_path / "x", [[1.0], [2]], [1, 2], comments=["", "a\nb"])
    with Refusal("shape (1,)", "2 rows", parameter="comments"):
        save_letor(tmp_path / "x", [[1.0], [2]], [1, 2], comments=[""])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_nul_is_not_written_to_delimited_text(ending, tmp_path):
    with Refusal("a\\x00b", "NUL"):
        save_table(tmp_path / f"x.{ending}", [[1.0], [2]], qid=["c", "a\0b"])
    assert os.listdir(tmp_path) == []
    save_table(tmp_path / "x.jsonl", [[1.0], [2]], qid=["c", "a\0b"])
    assert load_table(tmp_path / "x.jsonl", labels="ignored").qid.tolist() == ["c", "a\0b"]


def write_new(path, error=None):
    with atomic_write(path, "w") as file:
        file.write("new")
        if error is not None:
            raise error


@pytest.mark.parametrize("step", ["os.fsync", "os.replace"])
def test_a_failure_in_the_last_steps(tmp_path, step):
    path = tmp_path / "x"
    path.write_text("old")
    broken = mock.patch(step, side_effect=OSError(errno.EIO, "Input/output error"))
    with broken, Refusal("Input/output error", "nothing was written", kind=OSError):
        write_new(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_text_of_single_precision_is_the_float64_that_equals_it(tmp_path):
    X = np.array([[0.1, 1e-9], [1.0 / 3.0, 3.0]], dtype=np.float32)
    save_table(tmp_path / "a.csv", X)
    np.testing.assert_array_equal(load_table(tmp_path / "a.csv", labels="ignored").X, X.astype(np.float64))


def test_the_same_table_is_the_same_packed_file_at_any_time(tmp_path, monkeypatch):
    for name, now in (("a.csv.gz", 1e9), ("b.csv.gz", 1.5e9)):
        monkeypatch.setattr("time.time", lambda now=now: now)
        save_table(tmp_path / name, [[1.0], [2.0]])
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
