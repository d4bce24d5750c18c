"""The rows of each query: any ids, any order."""

from __future__ import annotations

import datetime
from collections import defaultdict

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from rankrls import RankRLS, query_weight_to_sample_weight
from rankrls._errors import InputError
from rankrls._queries import group_to_qid, query_layout
from tests.refusals import Refusal

IDS = st.one_of(
    st.lists(st.integers(-3, 3)),
    st.lists(st.integers(-(2**70), 2**70)),
    st.lists(st.sampled_from([2**63, 2**63 + 1, 2**53, 2**53 + 1, 1, -1])),
    st.lists(st.text(max_size=2)),
    st.lists(st.booleans()),
    st.lists(st.floats(allow_nan=False)),
    st.lists(st.tuples(st.integers(0, 2), st.text(max_size=1))),
    st.lists(st.one_of(st.integers(0, 2), st.text(max_size=1), st.tuples(st.integers(0, 1)), st.binary(max_size=1))),
    st.lists(st.dates(datetime.date(2026, 1, 1), datetime.date(2026, 1, 3))),
    st.lists(st.frozensets(st.integers(0, 2))),
    st.lists(st.one_of(st.integers(0, 2), st.floats(0, 2))),
)


def check(layout, ids):
    """Everything that a layout says, against a dictionary of lists."""
    rows = defaultdict(list)
    for row, value in enumerate(ids):
        rows[value].append(row)
    assert layout.n_rows == len(ids)
    assert layout.n_queries == len(rows)
    assert list(layout.ids) == list(rows)
    np.testing.assert_array_equal(layout.counts, [len(r) for r in rows.values()])
    for number, (value, expected) in enumerate(rows.items()):
        np.testing.assert_array_equal(layout.rows(number), expected)
        assert all(layout.codes[r] == number for r in expected), value
        np.testing.assert_array_equal(layout.order[layout.starts[number] : layout.starts[number + 1]], expected)
    assert layout.contiguous == (layout.codes.tolist() == sorted(layout.codes.tolist()))
    assert layout.codes.dtype == layout.starts.dtype == layout.order.dtype == np.intp


@given(IDS)
def test_any_ids_in_any_order(ids):
    check(query_layout(ids, len(ids)), ids)
    check(query_layout(tuple(ids), len(ids)), ids)
    objects = np.empty(len(ids), dtype=object)
    objects[:] = ids
    check(query_layout(objects, len(ids)), ids)


@given(st.lists(st.integers(-3, 3)))
def test_arrays_and_columns_of_frames(ids):
    m = len(ids)
    words = [f"q{v}" for v in ids]
    for column in (
        np.array(ids, dtype=np.int8),
        np.array(ids, dtype=np.float32),
        pd.Series(ids, index=range(m, 0, -1), dtype="int64"),
        pd.Series(ids, dtype="Int64"),
        pl.Series(ids, dtype=pl.Int16),
        pa.array(ids, type=pa.int32()),
        pa.chunked_array([ids[: m // 2], ids[m // 2 :]], type=pa.int64()),
    ):
        check(query_layout(column, m), ids)
    for column in (
        np.array(words, dtype="U4"),
        np.array(words, dtype="S4").astype("U4"),
        pd.Series(words, dtype="string"),
        pd.Series(words, dtype="category"),
        pd.Categorical(words) if m else np.array(words),
        pl.Series(words, dtype=pl.String),
        pl.Series(words, dtype=pl.Categorical),
        pa.array(words, type=pa.string()),
        pa.chunked_array([words], type=pa.string()),
        *(np.array(words, np.dtypes.StringDType(**na)) for na in ({}, {"na_object": np.nan}, {"na_object": pd.NA})),
        np.ma.array(words, dtype="U4"),
    ):
        check(query_layout(column, m), words)


def test_equal_ids_of_different_kinds():
    check(query_layout([1, 1.0, True, 2], 4), [1, 1.0, True, 2])  # equal and hashed alike: one query
    check(query_layout([1, "1", 1, b"1"], 4), [1, "1", 1, b"1"])  # not equal: numpy alone would turn 1 into "1"
    check(query_layout([0.0, -0.0], 2), [0.0, -0.0])


def test_without_ids_all_rows_are_one_query():
    layout = query_layout(None, 4)
    assert layout.n_queries == 1
    assert layout.contiguous
    np.testing.assert_array_equal(layout.rows(0), [0, 1, 2, 3])
    assert query_layout(None, 0).n_rows == 0


MISSING = [
    [1, None],
    ["a", None],
    [1.0, np.nan],
    np.array(["2026-01-01", "NaT"], dtype="M8[D]"),
    np.array([1, "NaT"], dtype="m8[s]"),
    pd.Series([1, None], dtype="Int64"),
    pd.Series(["a", None], dtype="string"),
    pd.Series(["a", None], dtype="category"),
    [pd.Timestamp(0), pd.NaT],
    ["a", pd.NA],
    pl.Series([1, None]),
    pl.Series(["a", None]),
    pa.array([1, None]),
    pa.array(["a", None]),
    np.ma.array([1, 2], mask=[False, True]),
    np.ma.array(["a", "b"], mask=[False, True]),
    *(np.array(["a", na], np.dtypes.StringDType(na_object=na)) for na in (None, np.nan, pd.NA)),
]


@pytest.mark.parametrize("ids", MISSING, ids=lambda v: f"{type(v).__module__}-{getattr(v, 'dtype', '')}")
def test_missing_ids(ids):
    with Refusal("missing", parameter="qid", row=1):
        query_layout(ids, 2)


@pytest.mark.parametrize(
    ("ids", "refusal"),
    [
        ([1, 2], Refusal("2 entries", "group sizes", parameter="qid")),
        (np.zeros((3, 1)), Refusal("shape (3", parameter="qid")),
        (7, Refusal("got shape ()", "one-dimensional", parameter="qid")),
        ("abc", Refusal("got shape ()", "one-dimensional", parameter="qid")),
        ([{}, {}, {}], Refusal(parameter="qid")),
    ],
)
def test_what_ids_are_not(ids, refusal):
    with refusal:
        query_layout(ids, 3)


def test_an_error_about_ids_names_the_parameter_that_they_are():
    for ids in (np.zeros((3, 1)), [1, 2], [1, None, 2], [{}, {}, {}]):
        with Refusal("groups", parameter="groups"):
            query_layout(ids, 3, name="groups")


@pytest.mark.parametrize(
    ("ids", "by_id"),
    [([3, 1, 3, 2], [1, 2, 0]), (["b", "a", "b"], [1, 0]), ([1, "1", 0], [0, 1, 2]), (None, [0])],
    ids=str,
)
def test_order_of_ids(ids, by_id):
    assert query_layout(ids, 2 if ids is None else len(ids)).by_id.tolist() == by_id


@given(st.lists(st.integers(0, 5), max_size=8))
def test_group_sizes_are_runs_of_ids(sizes):
    qid = group_to_qid(sizes)
    assert qid.tolist() == [number for number, size in enumerate(sizes) for _ in range(size)]
    np.testing.assert_array_equal(group_to_qid(np.array(sizes, dtype=float)), qid)


@pytest.mark.parametrize(
    ("sizes", "row"), [([2, -1], 1), ([1.5], 0), ([1, np.nan], 1), (["a", "b"], None), ([[1, 2]], None), (3, None)]
)
def test_sizes_that_are_none(sizes, row):
    with pytest.raises(InputError) as error:
        group_to_qid(sizes)
    assert (error.value.parameter, error.value.row) == ("group", row)


@pytest.mark.parametrize(("name", "sizes"), [("qid", True), ("item_id", False)])
def test_too_few_query_ids_may_be_sizes(name, sizes):
    with pytest.raises(InputError) as error:
        query_layout([2, 1], 3, name)
    assert ("group_to_qid" in error.value.message) is sizes


@pytest.mark.parametrize("balance", ["examples", "pairs"])
@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_a_query_of_weight_three_is_like_three_copies_of_it(balance, ties):
    rng = np.random.default_rng(0)
    qid = np.array(["b", "a", "b", "c", "a", "c", "b", "c", "c"])
    X = rng.normal(size=(9, 3))
    y = rng.integers(0, 3, size=9)
    times = {"b": 3, "a": 1, "c": 2}
    copies = np.concatenate([np.flatnonzero(qid == query) for query, n in times.items() for _ in range(n)])
    copy_of = np.concatenate([[f"{query}{k}"] * (qid == query).sum() for query, n in times.items() for k in range(n)])
    model = RankRLS(alpha=0.3, balance=balance, ties=ties)
    expected = model.fit(X[copies], y[copies], qid=copy_of).coef_
    weights = query_weight_to_sample_weight([*times.values()], qid)
    weights = np.sqrt(weights) if balance == "pairs" else weights
    np.testing.assert_allclose(model.fit(X, y, qid=qid, sample_weight=weights).coef_, expected, atol=1e-12)


def test_weights_that_are_not_of_the_queries_are_refused():
    with pytest.raises(InputError, match="2 weights for 3 queries"):
        query_weight_to_sample_weight([1, 2], [7, 8, 9])
    with pytest.raises(InputError) as error:
        query_weight_to_sample_weight([1, -2], [7, 8])
    assert (error.value.parameter, error.value.row) == ("query_weight", 1)
