"""Estimators on arrays of other libraries, by the oracles of numpy's.

The devices of array-api-strict tell what leaves them. Its arrays in the host's memory are read in place, as those of
torch; "torch" is torch as on a device of its own.
"""

from __future__ import annotations

from importlib import import_module

import array_api_strict
import numpy as np
import pytest
from sklearn import config_context

from rankrls import CGRankRLS, RankRLS, RankRLSCV, SparseRankRLS, SparseRankRLSCV, _arrays, load, save
from rankrls.models import intake, ranker
from tests.models.oracles import (
    GRAPHS,
    KERNEL_PARAMETERS,
    centred,
    dense_scores,
    graph_id,
    kernel_matrix,
    query_rows,
    ranking_data,
)
from tests.refusals import Refusal

DEVICE, HOST = array_api_strict.Device("device1"), array_api_strict.Device("CPU_DEVICE")
X, Y, QID = ranking_data()
W = np.random.default_rng(1).random(len(Y)) + 0.4
X_NEW = np.random.default_rng(2).normal(size=(9, X.shape[1]))


class Library:
    """Where arrays are: ``put`` moves them there, and ``back`` brings them to numpy and sees that they were there."""

    def __init__(self, name):
        self.name = name

    def put(self, values):
        if self.name == "numpy":
            return np.asarray(values)
        if self.name in ("strict", "in place"):
            return array_api_strict.asarray(values, device=DEVICE if self.name == "strict" else HOST)
        return import_module("torch").asarray(values)

    def back(self, values):
        assert type(values) is type(self.put(np.zeros(1)))
        if self.name == "strict":
            assert values.device == DEVICE
            return np.asarray(array_api_strict.asarray(values, device=HOST))
        return np.asarray(values)


@pytest.fixture(params=["numpy", "strict", "in place", "torch"])
def library(request, monkeypatch):
    if request.param == "torch":
        pytest.importorskip("torch")
        for module in (intake, ranker):
            monkeypatch.setattr(module, "in_place", lambda X: X)
    monkeypatch.setattr(_arrays, "DEVICE_VALUES", 1 << 12)
    with config_context(array_api_dispatch=True):
        yield Library(request.param)


@pytest.mark.parametrize("graph", GRAPHS[::2], ids=graph_id)
def test_every_graph_kernel_and_form(library, graph):
    forms = [
        ("linear", {"solver": "primal"}),
        ("linear", {"solver": "dual"}),
        *((kernel, KERNEL_PARAMETERS) for kernel in ("rbf", "laplacian", "polynomial")),
    ]
    given = library.put(X)
    for kernel, options in forms:
        K, K_new = kernel_matrix(kernel, X), kernel_matrix(kernel, X_NEW, X)
        expected = dense_scores(K_new, K, Y, QID, W, graph, 0.5)
        model = RankRLS(0.5, kernel=kernel, **options, **graph).fit(given, Y, qid=QID, sample_weight=W)
        np.testing.assert_allclose(library.back(model.predict(library.put(X_NEW))), expected, atol=1e-9)
        kept = [getattr(model, name) for name in ("coef_", "dual_coef_") if hasattr(model, name)]
        assert {library.back(values).shape for values in kept} <= {(len(Y),), (X.shape[1],)}
        sparse = SparseRankRLS(0.5, n_basis=1000, kernel=kernel, **(options if kernel != "linear" else {}), **graph)
        sparse.fit(given, Y, qid=QID, sample_weight=W)
        np.testing.assert_allclose(library.back(sparse.predict(library.put(X_NEW))), expected, atol=1e-6)


def test_a_basis_of_some_rows(library):
    rows = np.arange(0, len(Y), 2)
    for kernel, gamma in (("rbf", 0.2), ("rbf", 1e-4), ("linear", None)):  # of a kernel of any condition
        options = {"kernel": kernel, "gamma": gamma, "basis_indices": rows}
        expected = SparseRankRLS(0.5, **options).fit(X, Y, qid=QID)
        model = SparseRankRLS(0.5, **options).fit(library.put(X), Y, qid=QID)
        np.testing.assert_allclose(library.back(model.predict(library.put(X_NEW))), expected.predict(X_NEW), atol=1e-7)
        assert np.array_equal(model.basis_indices_, rows)


def test_an_offset_of_a_column_and_single_precision(library):
    moved = (X + [1e7, 0.0, 0.0, -3e6]).astype(np.float64)
    for solver in ("primal", "dual"):
        model = RankRLS(0.5, solver=solver).fit(library.put(moved), Y, qid=QID)
        scores = library.back(model.predict(library.put(moved)))
        expected = dense_scores(X @ X.T, X @ X.T, Y, QID, None, GRAPHS[3], 0.5)
        np.testing.assert_allclose(centred(scores, QID), centred(expected, QID), atol=1e-6)
        single = RankRLS(0.5, solver=solver).fit(library.put(X.astype(np.float32)), Y, qid=QID)
        expected = RankRLS(0.5, solver=solver).fit(X.astype(np.float32).astype(float), Y, qid=QID)
        np.testing.assert_allclose(library.back(single.coef_), expected.coef_, atol=1e-12)


def test_several_targets_and_labels_beside_X(library):
    both = np.stack((Y, -2.0 * Y), axis=1)
    for options in ({}, {"kernel": "rbf"}, {"ties": "exclude"}):
        model = RankRLS(0.5, **options).fit(library.put(X), library.put(both), qid=library.put(QID))
        scores = library.back(model.predict(library.put(X)))
        np.testing.assert_allclose(scores[:, 1], -2.0 * scores[:, 0], atol=1e-9)
        assert model.score(library.put(X), library.put(both), qid=QID) == RankRLS(0.5, **options).fit(
            X, both, qid=QID
        ).score(X, both, qid=QID)
        assert np.array_equal(
            model.rank(library.put(X), qid=QID)[:, 0], RankRLS(0.5, **options).fit(X, Y, qid=QID).rank(X, qid=QID)
        )


FORMS = [
    (RankRLSCV, {"solver": "primal"}),
    (RankRLSCV, {"solver": "dual"}),
    (RankRLSCV, {"kernel": "rbf", "gamma": 0.2}),
    (SparseRankRLSCV, {"kernel": "rbf", "gamma": 0.2, "basis_indices": tuple(range(0, len(Y), 2))}),
]


@pytest.mark.parametrize("graph", [GRAPHS[0], GRAPHS[7], GRAPHS[14]], ids=graph_id)
@pytest.mark.parametrize("alpha", [1e-6, 10.0])
def test_held_out_scores_are_those_of_refits(library, graph, alpha):
    queries, everything = query_rows(QID), np.arange(len(Y))
    two = [np.concatenate(queries[:3]), np.concatenate(queries[3:])]
    for blocks, cv in ((queries, None), (two, [(np.setdiff1d(everything, block), block) for block in two])):
        for form, options in FORMS:
            K = kernel_matrix("rbf", X) if "kernel" in options else X @ X.T
            if "basis_indices" in options:  # the kernel whose functions are those over the basis
                R = list(options["basis_indices"])
                K = K[:, R] @ np.linalg.solve(K[np.ix_(R, R)], K[R])
            expected = np.full(len(Y), np.nan)
            for block in blocks:
                rest = np.setdiff1d(everything, block)
                refit = RankRLS(alpha, kernel="precomputed", **graph)
                refit.fit(K[np.ix_(rest, rest)], Y[rest], qid=QID[rest], sample_weight=W[rest])
                expected[block] = refit.predict(K[np.ix_(block, rest)])
            model = form(alphas=(alpha,), cv=cv, **options, **graph)
            model.fit(library.put(X), Y, qid=QID, sample_weight=W)
            scores = library.back(model.held_out_scores_)
            if graph["regression_weight"] == 0.0:
                scores, expected = centred(scores, QID), centred(expected, QID)
            np.testing.assert_allclose(scores, expected, atol=1e-6 * max(1.0, np.abs(expected).max()))


def test_units_of_any_length(library):
    """Few rows, many, more rows than features and than are iterated for, and units that determine a feature alone."""
    rng = np.random.default_rng(5)
    sizes = np.concatenate(([1, 1, 600, 40], rng.integers(2, 12, 60)))
    qid = np.repeat(np.arange(len(sizes)), sizes)
    features = rng.normal(size=(len(qid), 5))
    features[:, 4] *= qid == 3
    y = np.round(features @ rng.normal(size=5) + rng.normal(size=len(qid)))
    options = {"alphas": np.geomspace(1e4, 1e-6, 11)}
    for more in ({}, {"cv": 3}, {"ties": "exclude"}):
        expected = RankRLSCV(**options, **more).fit(features, y, qid=qid)
        model = RankRLSCV(**options, **more).fit(library.put(features), y, qid=qid)
        assert model.alpha_ == expected.alpha_
        np.testing.assert_allclose(model.cv_results_["mean_score"], expected.cv_results_["mean_score"], atol=1e-9)
        scores = library.back(model.held_out_scores_)
        np.testing.assert_allclose(scores, expected.held_out_scores_, atol=1e-8)


def test_a_device_without_double_precision():
    single, device = X.astype(np.float32), array_api_strict.Device("no_float64")
    with config_context(array_api_dispatch=True):
        given = array_api_strict.asarray(single, device=device)
        for form, options in FORMS:
            options = {"alphas": (1.0,), **options}
            model = form(**options).fit(given, Y, qid=QID)
            expected = form(**options).fit(single, Y, qid=QID)
            assert model.predict(given).device == device
            for found, right in (
                (model.predict(given), expected.predict(single)),
                (model.held_out_scores_, expected.held_out_scores_),
            ):
                found = np.asarray(array_api_strict.asarray(found, device=HOST))
                np.testing.assert_allclose(found, right, atol=1e-3 * np.ptp(right))


def test_validation_data_and_a_search_over_kernels(library):
    given = {"X_val": library.put(X_NEW), "y_val": np.arange(9.0), "qid_val": np.repeat([0, 1, 2], 3)}
    plain = {**given, "X_val": X_NEW}
    for form in (RankRLSCV, SparseRankRLSCV):
        options = {"kernel": ("rbf", "laplacian"), "gamma": (0.05, 0.5), "alphas": (1.0, 0.01)}
        expected = form(**options).fit(X, Y, qid=QID, **plain)
        model = form(**options).fit(library.put(X), library.put(Y), qid=QID, **given)
        assert model.best_params_ == expected.best_params_
        np.testing.assert_allclose(library.back(model.predict(library.put(X))), expected.predict(X), atol=1e-8)
    by_rows = [
        (np.flatnonzero(np.arange(len(Y)) % 3 != k), np.flatnonzero(np.arange(len(Y)) % 3 == k)) for k in range(3)
    ]
    expected = RankRLSCV(alphas=(1.0, 0.01), cv=by_rows, kernel="rbf").fit(X, Y, qid=QID)
    model = RankRLSCV(alphas=(1.0, 0.01), cv=by_rows, kernel="rbf").fit(library.put(X), Y, qid=QID)
    assert model.alpha_ == expected.alpha_


def test_a_model_file_is_numpys(library, tmp_path):
    model = RankRLS(0.5, kernel="rbf").fit(library.put(X), Y, qid=QID)
    save(model, tmp_path / "model.rankrls")
    loaded = load(tmp_path / "model.rankrls")
    assert isinstance(loaded.dual_coef_, np.ndarray)
    np.testing.assert_allclose(loaded.predict(X_NEW), library.back(model.predict(library.put(X_NEW))), atol=1e-12)


def test_what_stays_on_the_host_says_so():
    library = Library("strict")
    given = library.put(X)
    with config_context(array_api_dispatch=True):
        for model in (CGRankRLS(), RankRLS(positive=True), RankRLS(kernel="precomputed"), RankRLS(kernel=np.dot)):
            with Refusal("numpy", parameter="X"):
                model.fit(given, Y, qid=QID)
        with Refusal("preferences", "numpy", parameter="X"):
            RankRLS().fit_pairs(given, [0], [1])
        with Refusal("Leave-pair-out", "numpy", parameter="X"):
            RankRLSCV().fit(given, Y)
        with Refusal("partial_fit", "numpy", parameter="X"):
            RankRLS().partial_fit(given, Y, qid=QID)
        with Refusal("clicks", "numpy", parameter="X"):
            RankRLS().fit(given, Y > 1, qid=QID, position=np.ones(len(Y), dtype=int))
        fitted = RankRLS().fit(given, Y, qid=QID)
        with Refusal("namespace and device", parameter="X"):
            fitted.predict(X)
        with Refusal("namespace and device", parameter="X"):
            RankRLS().fit(X, Y, qid=QID).predict(given)


def test_bad_cells_of_a_device_are_named():
    library, bad = Library("strict"), X.copy()
    bad[3, 1] = np.nan
    with config_context(array_api_dispatch=True), Refusal("NaN", parameter="X", row=3, column=1):
        RankRLS().fit(library.put(bad), Y, qid=QID)
    bad[3, 1] = 1e200
    with config_context(array_api_dispatch=True), Refusal("overflow", parameter="X", row=3, column=1):
        RankRLS().fit(library.put(bad), Y, qid=QID)
