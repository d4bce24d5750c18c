"""Streamed fits against fits of all rows in memory."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from rankrls import RankRLS, RankRLSCV, RankSVM, SparseRankRLS, SparseRankRLSCV
from rankrls.preprocessing import QueryStandardScaler
from rankrls.streaming import fit_scaler, scaled
from tests.oracles import explicit_laplacian, ridge
from tests.refusals import Refusal
from tests.streaming.arrays import array_dataset, example, starts_of

CUTS = {
    "one part": lambda qid: (),
    "a query each": lambda qid: tuple(starts_of(qid)[1:]),
    "empty, and only ties": lambda qid: (0, 23, 24, 24, 30, 30),
}
GRAPHS = [
    {"ties": ties, "balance": balance, "regression_weight": beta}
    for ties, balance, beta in product(("include", "exclude"), ("pairs", "examples", "queries"), (0.0, 0.3))
]


def centred(scores, qid):
    _, codes = np.unique(qid, return_inverse=True)
    return scores - (np.bincount(codes, scores) / np.bincount(codes))[codes]


def assert_same_choice(streamed, fitted, X, qid, offset=0.0):
    a, b = (centred((X - offset) @ model.coef_, qid) for model in (streamed, fitted))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * np.abs(b).max())
    for name in ("mean_score", "standard_error"):
        np.testing.assert_allclose(streamed.cv_results_[name], fitted.cv_results_[name], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(streamed.alpha_, fitted.alpha_, rtol=1e-8)
    assert streamed.best_index_ == fitted.best_index_
    for name in ("selection_", "n_queries_", "n_features_in_", "alpha_at_edge_"):
        assert getattr(streamed, name) == getattr(fitted, name), name
    assert streamed.best_params_.keys() == fitted.best_params_.keys()


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: "-".join(map(str, g.values())))
def test_the_choice_is_that_of_all_rows(graph, cuts):
    weights, labels = (GRAPHS.index(graph) % 4 < 2, 4 * (GRAPHS.index(graph) % 2))
    X, y, qid, w = example(0, weights=weights, labels=labels)
    model = RankRLSCV(**graph, scoring="map" if labels else "disagreement")
    fitted = model.fit(X, y, qid=qid, sample_weight=w)
    streamed = RankRLSCV(**model.get_params()).fit_dataset(array_dataset(X, y, qid, w, CUTS[cuts](qid)))
    assert_same_choice(streamed, fitted, X, qid)


@pytest.mark.parametrize("kind", ["offset", "float32", "sparse"])
def test_other_features(kind):
    given = {"dtype": np.float32 if kind == "float32" else np.float64, "csr": kind == "sparse"}
    offset = 1e6 if kind == "offset" else 0.0
    X, y, qid, w = example(3, **given, offset=offset, weights=True)
    fitted = RankRLSCV().fit(X - offset if offset else X, y, qid=qid, sample_weight=w)
    streamed = RankRLSCV().fit_dataset(array_dataset(X, y, qid, w, CUTS["a query each"](qid)))
    assert_same_choice(streamed, fitted, X.toarray() if kind == "sparse" else X, qid, offset)


@pytest.mark.parametrize("cuts", CUTS)
def test_one_alpha_is_the_dense_solution(cuts):
    X, y, qid, w = example(5, weights=True)
    data = array_dataset(X, y, qid, w, CUTS[cuts](qid), feature_names=("a", "b", "c", "d"))
    for graph in GRAPHS:
        model = RankRLS(alpha=0.7, **graph).fit_dataset(data)
        kept = w > 0
        names = {"ties": graph["ties"], "balance": graph["balance"], "beta": graph["regression_weight"]}
        L = explicit_laplacian(y[kept], qid[kept], w[kept], **names)
        np.testing.assert_allclose(model.coef_, ridge(X[kept], L, y[kept], 0.7), rtol=1e-8, atol=1e-10)
        assert model.n_queries_ == len(set(qid[kept]))
        assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]


def test_signs_of_weights():
    X, y, qid, w = example(5, weights=True)
    fitted = RankRLS(positive=True).fit(X, -y, qid=qid, sample_weight=w)
    streamed = RankRLS(positive=True).fit_dataset(array_dataset(X, -y, qid, w, CUTS["a query each"](qid)))
    assert (fitted.coef_ == 0).any()
    np.testing.assert_allclose(streamed.coef_, fitted.coef_, rtol=1e-8, atol=1e-12)


def test_several_graphs_and_validation_data():
    X, y, qid, _ = example(2, queries=20)
    model = RankRLSCV(ties=("include", "exclude"), balance=("pairs", "queries"), rule="one_se")
    data, cut = array_dataset(X, y, qid, cuts=CUTS["a query each"](qid)), starts_of(qid)[10]
    fitted = model.fit(X, y, qid=qid)
    streamed = RankRLSCV(**model.get_params()).fit_dataset(data)
    assert_same_choice(streamed, fitted, X, qid)
    assert streamed.best_params_["ties"] == fitted.best_params_["ties"]
    train, rest = (array_dataset(X[rows], y[rows], qid[rows]) for rows in (slice(cut), slice(cut, None)))
    fitted.fit(X[:cut], y[:cut], qid=qid[:cut], X_val=X[cut:], y_val=y[cut:], qid_val=qid[cut:])
    assert_same_choice(streamed.fit_dataset(train, validation=rest), fitted, X, qid)


def test_large_queries_beside_small_ones():
    rng = np.random.default_rng(0)
    qid = np.repeat([1, 2, 3], [5, 5, 300])
    X, y = rng.normal(size=(310, 3)), rng.integers(0, 3, 310).astype(float)
    fitted = RankRLSCV().fit(X, y, qid=qid)
    assert_same_choice(RankRLSCV().fit_dataset(array_dataset(X, y, qid, cuts=(5, 10))), fitted, X, qid)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cuts", CUTS)
def test_a_basis_is_that_of_all_rows_of_positive_weight(cuts, weighted):
    X, y, qid, _ = example(4, queries=20)
    w = np.where(np.arange(len(y)) % 3, 1.0, 0.0) if weighted else None
    data = array_dataset(X, y, qid, w, cuts=CUTS[cuts](qid))
    for model in (
        SparseRankRLS(n_basis=12, alpha=0.3, gamma=0.2, random_state=1),
        SparseRankRLSCV(n_basis=10, kernel=("rbf", "linear"), gamma=(0.05, 0.5), scoring="map", random_state=1),
    ):
        fitted = model.fit(X, y, qid=qid, sample_weight=w)
        streamed = type(model)(**model.get_params()).fit_dataset(data)
        np.testing.assert_array_equal(streamed.basis_indices_, fitted.basis_indices_)
        a, b = (centred(m.predict(X), qid) for m in (streamed, fitted))
        np.testing.assert_allclose(a, b, atol=1e-8 * np.abs(b).max())
        if hasattr(model, "best_params_"):
            assert streamed.best_index_ == fitted.best_index_
            means = streamed.cv_results_["mean_score"], fitted.cv_results_["mean_score"]
            np.testing.assert_allclose(*means, rtol=1e-7)


@pytest.mark.parametrize(
    ("model", "parameter"),
    [
        (RankRLS(kernel="rbf"), "kernel"),
        (RankRLS(solver="dual"), "solver"),
        (RankRLSCV(positive=True), "positive"),
        (RankRLSCV(cv=3), "cv"),
        (SparseRankRLS(basis_indices=[0]), "basis_indices"),
        (SparseRankRLS(kernel="precomputed"), "kernel"),
        (RankSVM(), "data"),
    ],
)
def test_what_needs_all_rows_is_refused(model, parameter):
    X, y, qid, _ = example(0)
    with Refusal(parameter=parameter):
        model.fit_dataset(array_dataset(X, y, qid))


def test_bad_rows_are_named():
    X, y, qid, w = example(0, weights=True)
    for values, parameter in ((y, "y"), (w, "sample_weight")):
        bad = values.copy()
        bad[40] = np.nan
        given = {"y": y, "sample_weight": w, parameter: bad}
        with Refusal("row 40", parameter=parameter, row=40):
            RankRLS().fit_dataset(array_dataset(X, given["y"], qid, given["sample_weight"], (23, 24)))
    holes = X.copy()
    holes[40, 2] = np.inf
    with Refusal("row 40", parameter="X", row=40):
        RankRLS().fit_dataset(array_dataset(holes, y, qid, None, (23, 24)))
    with Refusal("Nothing to compare", parameter="y"):
        RankRLS().fit_dataset(array_dataset(X, 0 * y, qid))
    with Refusal("two queries", parameter="cv"):
        RankRLSCV().fit_dataset(array_dataset(X[:23], y[:23], qid[:23]))


SCALERS = [StandardScaler(), StandardScaler(with_std=False), MinMaxScaler(), MaxAbsScaler(), QueryStandardScaler()]


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_scalers_are_those_of_all_rows(scaler):
    X, y, qid, _ = example(3, offset=1e3)
    data = array_dataset(X, y, qid, cuts=(23, 24, 30))
    fit_scaler(scaler, data)
    found = scaled(data, scaler)
    queries = {"qid": qid} if isinstance(scaler, QueryStandardScaler) else {}
    expected = type(scaler)(**scaler.get_params()).fit_transform(X, **queries)
    np.testing.assert_allclose(np.vstack([part.read().X for part in found.parts]), expected, atol=1e-9)
    assert (found.n_rows, found.parts[1].first_row) == (len(y), 23)
