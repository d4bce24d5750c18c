"""RankRLS among scikit-learn's tools: routing, searches, pipelines, copies and data frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import RankRLS, RankRLSCV
from rankrls.metrics import Measure
from tests.models.oracles import ranking_data
from tests.models.test_routing import RANKERS, SCALERS
from tests.refusals import Refusal

X, Y, QID = ranking_data(70, queries=12)
W = np.random.default_rng(71).random(len(Y)) + 0.2
FOLDS = list(GroupKFold(4).split(X, Y, QID))


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_weights_reach_every_fold_of_a_search():
    model = RankRLS().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    grid = {"alpha": [0.01, 1.0, 100.0], "ties": ["include", "exclude"]}
    search = GridSearchCV(model, grid, cv=GroupKFold(4)).fit(X, Y, qid=QID, groups=QID, sample_weight=W)
    for k, chosen in enumerate(search.cv_results_["params"]):
        for f, (train, test) in enumerate(FOLDS):
            fold = RankRLS(**chosen).fit(X[train], Y[train], qid=QID[train], sample_weight=W[train])
            error = Measure("disagreement")(Y[test], fold.predict(X[test]), qid=QID[test], sample_weight=W[test])
            assert search.cv_results_[f"split{f}_test_score"][k] == pytest.approx(1 - error)
    best = RankRLS(**search.best_params_).fit(X, Y, qid=QID, sample_weight=W)
    np.testing.assert_allclose(search.predict(X), best.predict(X))


@pytest.mark.usefixtures("routing")
def test_a_pipeline_transforms_the_validation_data():
    val, y_val, qid_val = ranking_data(72)
    model = RankRLSCV((0.01, 1.0, 100.0)).set_fit_request(X_val=True, y_val=True, qid_val=True)
    steps = Pipeline([("scale", StandardScaler()), ("rank", model)], transform_input=["X_val"])
    steps.fit(X, Y, qid=QID, X_val=val, y_val=y_val, qid_val=qid_val)
    scaler = StandardScaler().fit(X)
    plain = RankRLSCV((0.01, 1.0, 100.0)).fit(
        scaler.transform(X), Y, qid=QID, X_val=scaler.transform(val), y_val=y_val, qid_val=qid_val
    )
    np.testing.assert_allclose(steps["rank"].cv_results_["mean_score"], plain.cv_results_["mean_score"])
    np.testing.assert_allclose(steps["rank"].coef_, plain.coef_)


def test_a_precomputed_kernel_is_cut_by_cross_validation():
    K = X @ X.T
    folds = KFold(4, shuffle=True, random_state=0)
    np.testing.assert_allclose(
        cross_val_score(RankRLS(kernel="precomputed"), K, Y, cv=folds),
        cross_val_score(RankRLS(solver="dual"), X, Y, cv=folds),
    )
    np.testing.assert_allclose(
        cross_val_predict(RankRLSCV((0.1, 1.0), kernel="precomputed"), K, Y, cv=folds),
        cross_val_predict(RankRLSCV((0.1, 1.0), solver="dual"), X, Y, cv=folds),
        atol=1e-10,
    )


def test_a_fitted_model_keeps_its_kernel_whatever_its_parameters_become():
    model = RankRLS(kernel="rbf", gamma=0.5).fit(X, Y, qid=QID)
    expected = model.predict(X)
    model.set_params(kernel="linear", gamma=7.0, alpha=3.0)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_fitting_again_leaves_nothing_of_the_first_time():
    model = RankRLS(kernel="rbf").fit(X, Y, qid=QID)
    model.set_params(kernel="linear").fit(X, Y, qid=QID)
    assert not hasattr(model, "X_fit_")
    assert not hasattr(model, "dual_coef_")
    model.set_params(kernel="rbf").fit(X[:, :2], np.column_stack((Y, Y)))
    assert not hasattr(model, "coef_")
    assert model.predict(X[:, :2]).shape == (len(Y), 2)
    assert 0 <= model.score(X[:, :2], np.column_stack((Y, Y))) <= 1  # fitted without qid now


NAMES = ["price", "clicks", "bm25", "age"]
FRAMES = {
    "pandas": lambda A, names: pd.DataFrame(A, columns=names),
    "polars": lambda A, names: pl.DataFrame(dict(zip(names, A.T, strict=True))),
    "pyarrow": lambda A, names: pa.table(dict(zip(names, A.T, strict=True))),
}
COLUMNS = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": lambda v: pa.chunked_array([list(v)])}


@pytest.mark.parametrize("library", FRAMES)
def test_frames_of_pairs_validation_data_and_updates(library):
    frame, column = FRAMES[library], COLUMNS[library]
    table = frame(X, NAMES)
    winners, losers = np.array([0, 1, 2]), np.array([3, 4, 5])
    model = RankRLS().fit_pairs(table, column(winners.tolist()), column(losers.tolist()))
    assert list(model.feature_names_in_) == NAMES
    np.testing.assert_array_equal(model.coef_, RankRLS().fit_pairs(X, winners, losers).coef_)
    chosen = RankRLSCV((0.1, 1.0)).fit(
        table, column(Y.tolist()), qid=column(QID.tolist()), X_val=table, y_val=column(Y.tolist()), qid_val=QID
    )
    assert chosen.selection_.startswith("validation data")
    with Refusal("should match", kind=ValueError):
        RankRLSCV().fit(table, Y, qid=QID, X_val=frame(X, NAMES[::-1]), y_val=Y, qid_val=QID)
    rest = ~np.isin(QID, QID[:1])
    model = RankRLS().partial_fit(frame(X[rest], NAMES), Y[rest], qid=QID[rest])
    with Refusal("should match", kind=ValueError):
        model.partial_fit(frame(X[~rest], NAMES[::-1]), Y[~rest], qid=QID[~rest])
    model.partial_fit(frame(X[~rest], NAMES), Y[~rest], qid=QID[~rest])
    np.testing.assert_allclose(model.coef_, RankRLS().fit(X, Y, qid=QID).coef_, atol=1e-12)


ALL = {**RANKERS, **SCALERS}


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("name", ALL)
def test_every_estimator_checks_the_names_of_every_kind_of_frame(name, library):
    """y and qid are columns of the same library; the frame's columns are looked at by name, not only counted."""
    frame, column = FRAMES[library], COLUMNS[library]
    model, plain = clone(ALL[name]), clone(ALL[name])
    qid = column(QID.tolist())
    model.fit(frame(X, NAMES), column(Y.tolist()), qid=qid)
    plain.fit(X, Y, qid=QID)
    assert list(model.feature_names_in_) == NAMES
    if name.startswith("Query"):
        np.testing.assert_array_equal(model.transform(frame(X, NAMES), qid=qid), plain.transform(X, qid=QID))
        call = lambda names: model.transform(frame(X, names), qid=qid)
    else:
        np.testing.assert_array_equal(model.predict(frame(X, NAMES)), plain.predict(X))
        call = lambda names: model.predict(frame(X, names))
    for wrong in (NAMES[::-1], [*NAMES[:3], "years"]):
        with Refusal("should match", kind=ValueError):
            call(wrong)


def test_sparse_frames_of_pandas():
    features = np.where(np.abs(X) < 1.0, 0.0, X)
    frame = pd.DataFrame.sparse.from_spmatrix(sparse.csr_array(features), columns=NAMES)
    model = RankRLS().fit(frame, Y, qid=QID)
    np.testing.assert_allclose(model.coef_, RankRLS().fit(features, Y, qid=QID).coef_)


def test_a_named_column_with_a_missing_value_is_named():
    frame = pd.DataFrame(X.copy(), columns=NAMES)
    frame.loc[frame.index[5], "bm25"] = np.nan
    with Refusal("NaN", "bm25", parameter="X", row=5, column=2):
        RankRLS().fit(frame, Y, qid=QID)


@pytest.mark.parametrize("targets", [1, 2])
def test_linear_models_have_the_intercept_that_tools_read(targets):
    """shap's LinearExplainer takes a model with ``coef_`` and ``intercept_`` as ``X @ coef_ + intercept_``."""
    X, y, qid = ranking_data(3, queries=12)
    Y = y if targets == 1 else np.column_stack((y, -y))
    model = RankRLSCV().fit(X, Y, qid=qid)
    np.testing.assert_allclose(X @ model.coef_.T + model.intercept_, model.predict(X))
    assert np.shape(model.intercept_) == np.shape(model.predict(X))[1:]
    assert not hasattr(RankRLS(kernel="rbf").fit(X, Y, qid=qid), "intercept_")
    assert not hasattr(RankRLS(), "intercept_")
