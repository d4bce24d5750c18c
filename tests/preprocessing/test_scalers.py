"""The query scalers against the formulas, scikit-learn's scalers query by query, and exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.refusals import Refusal

from rankrls.preprocessing import LogScaler, QueryMinMaxScaler, QueryStandardScaler

SCALERS = [QueryMinMaxScaler(), QueryStandardScaler()]


@parametrize_with_checks([*SCALERS, LogScaler()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def theirs(scaler):
    """scikit-learn's scaler of the same options, for one query at a time."""
    return MinMaxScaler() if isinstance(scaler, QueryMinMaxScaler) else StandardScaler()


def query_by_query(scaler, X, qid):
    out = np.empty_like(X)
    for q in set(qid):
        rows = np.flatnonzero([v == q for v in qid])
        out[rows] = theirs(scaler).fit_transform(X[rows])
    return out


def some_data(m=60, n=5, queries=8, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((m, n)) * 3, 1)
    X[:, 1] = 4.0
    qid = rng.integers(0, queries, m)
    qid[-1] = 99  # a query of one row
    return X, qid


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
@pytest.mark.parametrize("layout", ["unsorted", "sorted", "text", "objects", "one", "all single"])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_equals_scikit_learn_query_by_query(scaler, layout, order):
    X, qid = some_data()
    qid = {
        "unsorted": qid,
        "sorted": np.sort(qid),
        "text": np.array([f"q{v}" for v in qid]),
        "objects": [("site", int(v)) for v in qid],
        "one": np.zeros(60),
        "all single": np.arange(60),
    }[layout]
    given_X = {"C": X, "F": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=1)[:, ::2]}[order]
    before = given_X.copy()
    out = clone(scaler).fit_transform(given_X, qid=qid)
    np.testing.assert_allclose(out, query_by_query(scaler, X, list(qid)), rtol=1e-13, atol=1e-14)
    assert np.array_equal(given_X, before)
    again = clone(scaler).fit(given_X, qid=qid).transform(given_X, qid=qid)
    assert np.array_equal(again, out)


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_the_order_of_rows_does_not_matter(scaler):
    X, qid = some_data(m=300, n=20)
    expected = clone(scaler).fit_transform(X, qid=qid)
    rows = np.random.default_rng(1).permutation(300)
    moved = clone(scaler).fit_transform(X[rows], qid=qid[rows])
    np.testing.assert_allclose(moved, expected[rows], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_without_qid_it_is_scikit_learns_scaler(scaler):
    X, _ = some_data()
    new = some_data(seed=1)[0]
    ours = clone(scaler).fit(X)
    reference = theirs(scaler).fit(X)
    np.testing.assert_allclose(ours.transform(X), reference.transform(X), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(ours.transform(new), reference.transform(new), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(ours.transform(new[:1]), reference.transform(new[:1]), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_qid_in_fit_and_in_transform_go_together(scaler):
    X, qid = some_data()
    for call, refusal in (
        (lambda: clone(scaler).fit(X, qid=qid).transform(X), Refusal("fitted with qid", parameter="qid")),
        (lambda: clone(scaler).fit(X).transform(X, qid=qid), Refusal("fitted without", parameter="qid")),
    ):
        with refusal as error:
            call()
        assert error.value.parameter == "qid"
    for call in (
        lambda: clone(scaler).fit(X, qid=qid[:3]),
        lambda: clone(scaler).fit(X, qid=qid).transform(X, qid=qid[:3]),
    ):
        with Refusal("3 entries", "60 rows", parameter="qid"):
            call()


def nearly_any(bound):
    return st.floats(-bound, bound, allow_subnormal=False)


@given(
    st.integers(1, 8).flatmap(
        lambda m: st.tuples(
            arrays(float, (m, 2), elements=st.one_of(nearly_any(10), nearly_any(1e100))),
            arrays(int, m, elements=st.integers(0, 2)),
        )
    )
)
def test_min_max_is_right_to_rounding(data):
    X, qid = data
    out = QueryMinMaxScaler().fit_transform(X, qid=qid)
    assert (out >= 0).all()
    assert (out <= 1).all()
    for (i, j), got in np.ndenumerate(out):
        column = [Fraction(v) for v in X[qid == qid[i], j]]
        spread = max(column) - min(column)
        exact = (Fraction(X[i, j]) - min(column)) / spread if spread else Fraction(0)
        # three roundings: two differences, one quotient
        assert abs(Fraction(got) - exact) <= 4 * Fraction(2) ** -53 * exact + Fraction(2) ** -400


@pytest.mark.parametrize("offset", [0.0, 1e7, 1e12, -1e15])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_far_from_zero(offset, dtype):
    X = (offset + np.random.default_rng(0).standard_normal((40, 3))).astype(dtype)
    qid = np.arange(40) % 3
    for scaler in (QueryMinMaxScaler(), QueryStandardScaler()):
        out = scaler.fit_transform(X, qid=qid)
        assert out.dtype == dtype
        near = X.astype(float) - offset  # exact: the same numbers without the offset
        expected = clone(scaler).fit_transform(near, qid=qid)
        np.testing.assert_allclose(out, expected, rtol=1e-14 if dtype == np.float64 else 1e-7, atol=1e-14)


def test_unsorted_sparse_features_are_left_as_they_were():
    data = np.array([1.0, 2.0, 3.0, 4.0])
    X = sp.csr_array((data.copy(), [1, 0, 1, 1], [0, 2, 4]), shape=(2, 2))  # unsorted, with a duplicate
    dense = LogScaler().fit(sp.csr_array(X.toarray()))
    np.testing.assert_allclose(LogScaler().fit(X).scaler_.var_, dense.scaler_.var_)
    dense.transform(X)
    np.testing.assert_array_equal(X.data, data)


def test_sparse_is_refused_since_it_would_become_dense():
    X = sp.csr_array(np.eye(3))
    for scaler in SCALERS:
        with pytest.raises(TypeError, match="dense data is required"):
            clone(scaler).fit(X, qid=[1, 1, 1])
        with pytest.raises(TypeError, match="dense data is required"):
            clone(scaler).fit(np.eye(3)).transform(X)


@pytest.mark.parametrize("scaler", [*SCALERS, LogScaler()], ids=str)
def test_features_of_another_shape_are_refused(scaler):
    fitted = clone(scaler).fit(np.eye(3))
    for call in (fitted.fit, fitted.transform):
        with Refusal("2D array", parameter="X"):
            call(np.ones(3))
    with Refusal("expecting 3", parameter="X"):
        fitted.transform(np.eye(4))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_logarithms_are_standardised_over_all_rows(container):
    X = np.array([[0.0, -3.0], [1.0, 0.0], [1e9, 5.0], [0.0, 2e4]])
    weights = np.array([1.0, 2.0, 1.0, 3.0])
    found = LogScaler().fit(container(X), sample_weight=weights).transform(container(X))
    logs = np.log(np.abs(X) + np.sqrt(X**2 + 1.0)) * np.sign(X)
    mean = np.average(logs, axis=0, weights=weights)
    expected = (logs - (0.0 if sp.issparse(found) else mean)) / np.sqrt(
        np.average((logs - mean) ** 2, axis=0, weights=weights)
    )
    np.testing.assert_allclose(found.toarray() if sp.issparse(found) else found, expected, rtol=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_logarithms_of_parts_are_those_of_all_rows(container):
    X = np.random.default_rng(0).lognormal(size=(50, 3)) * [1.0, 1e3, 1e-3]
    weights = np.arange(1.0, 51.0)
    whole = LogScaler().fit(container(X), sample_weight=weights)
    parts = LogScaler()
    for rows in (slice(0, 7), slice(7, 8), slice(8, 50)):
        parts.partial_fit(container(X[rows]), sample_weight=weights[rows])
    assert parts.n_features_in_ == 3
    found, expected = (scaler.transform(container(X)) for scaler in (parts, whole))
    np.testing.assert_allclose(*((f.toarray() if sp.issparse(f) else f) for f in (found, expected)), rtol=1e-12)
