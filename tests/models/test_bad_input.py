"""Bad input: one clear error each, which says what is wrong, where, and what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold, KFold

import rankrls
from rankrls import RankBoost, RankRLS, RankRLSCV
from tests.models.oracles import ranking_data

X, Y, QID = ranking_data(80)
M = len(Y)


def with_entry(A, position, value):
    out = np.array(A, dtype=float)
    out[position] = value
    return out


def holey(value):
    matrix = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    matrix.data[3] = value
    return matrix


GOOD = {"X": X, "y": Y, "qid": QID}
BAD_DATA = [
    ({"X": with_entry(X, (3, 1), np.nan)}, "Input X contains NaN: row 3, column 1. Remove or impute"),
    ({"X": with_entry(X, (4, 2), np.inf)}, "Input X contains infinity: row 4, column 2"),
    ({"X": with_entry(X, (4, 2), -np.inf).astype(np.float32)}, "Input X contains infinity: row 4, column 2"),
    ({"X": holey(np.nan)}, r"Input X contains NaN: row \d+, column \d+"),
    (
        {"X": with_entry(X, (4, 2), -1e155)},
        "Input X holds values whose products overflow, the largest -1e.155: row 4, column 2",
    ),
    ({"X": holey(1e200)}, r"Input X holds values whose products overflow, the largest 1e.200: row \d+, column \d+"),
    ({"X": X[:, 0]}, "Expected 2D array, got 1D array"),
    ({"X": np.float64(3.0)}, "Expected 2D array, got scalar array"),
    ({"X": X[None]}, "Found array with dim 3"),
    ({"X": X[:0], "y": Y[:0], "qid": QID[:0]}, r"Found array with 0 sample\(s\)"),
    ({"X": X[:, :0]}, r"Found array with 0 feature\(s\)"),
    ({"X": X + 1j}, "Complex data not supported"),
    ({"X": np.full(X.shape, "red", dtype=object)}, "Input X holds the text 'red': row 0, column 0"),
    ({"X": None}, "Expected 2D array|NoneType"),
    ({"y": Y[:-1]}, rf"inconsistent numbers of samples: \[{M}, {M - 1}\]"),
    ({"y": None}, "requires y to be passed"),
    ({"y": with_entry(Y, 2, np.nan)}, "Input y contains NaN: row 2. Every row needs a finite label"),
    ({"y": with_entry(Y, 2, -np.inf)}, "Input y contains infinity .*: row 2"),
    ({"y": with_entry(np.column_stack((Y, Y)), (5, 1), np.nan)}, "Input y contains NaN: row 5, target 1"),
    ({"y": ["good"] * M}, "y must be numeric"),
    ({"y": Y + 1j}, "Complex data not supported"),
    ({"y": Y[:, None, None]}, r"y must have shape \(m,\) or \(m, targets\)|Found array with dim 3"),
    ({"y": np.zeros((M, 0))}, r"y must have shape|0 feature"),
    ({"y": np.zeros(M)}, r"Nothing to compare: none of the 7 queries holds two items with different labels"),
    ({"y": np.zeros(M), "qid": None}, "Nothing to compare: the data do not hold two items with different labels"),
    ({"qid": np.arange(M)}, "none of the .* queries holds two items with different labels .* Check the labels"),
    ({"qid": QID[:-1]}, f"qid has {M - 1} entries but there are {M} rows: .*not the sizes of the groups"),
    ({"qid": [5] * 4}, f"qid has 4 entries but there are {M} rows"),
    ({"qid": QID[:, None]}, "qid must be one-dimensional"),
    ({"qid": 3}, "qid must be one-dimensional"),
    ({"qid": "abc"}, "qid must be one-dimensional"),
    ({"qid": with_entry(QID, 6, np.nan)}, "qid is missing in row 6"),
    ({"qid": [None if k == 4 else "a" for k in range(M)]}, "qid is missing in row 4"),
    ({"sample_weight": np.ones(M - 1)}, "it needs one weight per row"),
    ({"sample_weight": np.ones((M, 2))}, "Sample weights must be 1D array or scalar"),
    ({"sample_weight": with_entry(np.ones(M), 7, -0.5)}, "not negative; row 7 has -0.5"),
    ({"sample_weight": with_entry(np.ones(M), 7, np.nan)}, "finite and not negative; row 7 has nan"),
    ({"sample_weight": ["heavy"] * M}, "sample_weight must be numeric"),
    ({"sample_weight": np.zeros(M)}, "All values of sample_weight are zero"),
    ({"sample_weight": np.arange(M) == 3}, "Nothing to compare"),
]


@pytest.mark.parametrize(("change", "message"), BAD_DATA, ids=lambda v: v[:40] if isinstance(v, str) else "")
@pytest.mark.parametrize("model", [RankRLS(), RankRLS(kernel="rbf"), RankRLSCV((0.1, 1.0))], ids=str)
def test_bad_data(model, change, message):
    with pytest.raises(ValueError, match=message):
        model.fit(**{**GOOD, **change})


BAD_PARAMETERS = [
    ({"alpha": -1.0}, "alpha must be a number of at least 0; got -1.0"),
    ({"alpha": np.nan}, "alpha must be a number of at least 0; got nan"),
    ({"alpha": np.inf}, "alpha must be a number of at least 0; got inf"),
    ({"alpha": "1"}, "alpha must be a number; got '1'"),
    ({"alpha": None}, "alpha must be a number of at least 0; got None"),
    ({"alpha": True}, "alpha must be a number of at least 0; got True"),
    ({"alpha": (0.1, 1.0)}, "alpha must be a number"),
]
BAD_CHOICES = [
    ({"kernel": "gaussian"}, "kernel must be one of 'linear', 'rbf'.*; got 'gaussian'"),
    ({"kernel": 3}, "kernel must be one of"),
    ({"gamma": -1.0}, "gamma must be None or a positive number; got -1.0"),
    ({"gamma": 0}, "gamma must be None or a positive number; got 0"),
    ({"gamma": "scale"}, "gamma must be None or a positive number; got 'scale'"),
    ({"kernel": "polynomial", "degree": 0}, "degree must be a whole number of at least 1; got 0"),
    ({"kernel": "polynomial", "degree": 2.5}, "degree must be a whole number of at least 1; got 2.5"),
    ({"coef0": np.nan}, "coef0 must be a finite number; got nan"),
    ({"kernel_params": {"a": 1}}, "kernel_params are the keyword arguments of a kernel function"),
    ({"ties": "drop"}, "ties must be one of 'include', 'exclude'; got 'drop'"),
    ({"balance": "query"}, "balance must be one of 'pairs', 'examples', 'queries'; got 'query'"),
    ({"regression_weight": 1.5}, "regression_weight must be a number from 0 to 1; got 1.5"),
    ({"regression_weight": np.nan}, "regression_weight must be a number from 0 to 1; got nan"),
    ({"regression_weight": True}, "regression_weight must be a number from 0 to 1; got True"),
    ({"solver": "cholesky"}, "solver must be one of 'auto', 'primal', 'dual'.*; got 'cholesky'"),
    ({"solver": "primal", "kernel": "rbf"}, "solver='primal' .* needs kernel='linear'; got 'rbf'"),
    ({"kernel": "precomputed"}, rf"must be square to fit; got shape \({M}, 4\)"),
]


@pytest.mark.parametrize(
    ("change", "message"), BAD_PARAMETERS + BAD_CHOICES, ids=lambda v: v[:40] if isinstance(v, str) else ""
)
def test_bad_parameters(change, message):
    with pytest.raises(ValueError, match=message):
        RankRLS(**change).fit(**GOOD)
    if "precomputed" not in change.values():
        with pytest.raises(ValueError, match=message):
            RankRLS(**change).fit_pairs(X, [0], [1])


GRIDS = [
    ({"alphas": ()}, "alphas is empty: there is nothing to choose from"),
    ({"alphas": "all"}, "alphas must be 'auto' or a sequence of numbers; got 'all'"),
    ({"alphas": 1.0}, "alphas must be 'auto' or a sequence of numbers; got 1.0"),
    ({"alphas": None}, "alphas must be 'auto' or a sequence of numbers; got None"),
    ({"alphas": (1.0, -1.0)}, "alpha must be a number of at least 0; got -1.0"),
    ({"alphas": (1.0, np.nan)}, "alpha must be a number of at least 0; got nan"),
    ({"alphas": ("a", "b")}, "alpha must be a number; got"),
    ({"alphas": (0.0, 1.0)}, "needs alpha > 0; got 0"),
    ({"rule": "1se"}, "rule must be one of 'best', 'one_se'; got '1se'"),
    ({"scoring": "auc"}, "unknown measure 'auc'; known are"),
    ({"scoring": 3}, "a measure is a name"),
    ({"scoring": "precision"}, "precision needs a depth"),
    ({"scoring": "ndcg@0"}, "k must be a whole number"),
    ({"scoring": lambda y, f: None}, "must return one number per query; it returned None"),
    ({"ties": ()}, "A tuple of values to choose from must not be empty"),
    ({"ties": ("include", "no")}, "ties must be one of 'include', 'exclude'; got 'no'"),
    ({"gamma": (0.1, -1.0)}, "gamma must be None or a positive number; got -1.0"),
    ({"kernel": ("linear", "precomputed")}, "A callable or precomputed kernel cannot be one of several"),
    ({"kernel": ("rbf", np.dot)}, "A callable or precomputed kernel cannot be one of several"),
    ({"kernel": ("rbf", "linear"), "solver": "primal"}, "solver='primal' .* needs kernel='linear'; got 'rbf'"),
    ({"cv": 1}, "cv must be at least 2 folds; got 1"),
    ({"cv": 8}, "cv=8 folds need 8 queries; there are 7. Leave-query-out needs no number"),
    ({"cv": "loo"}, "cv must be None, a number of folds, a splitter or .* row lists; got 'loo'"),
    ({"cv": True}, "cv must be None, a number of folds"),
    ({"cv": 2.5}, "cv must be None, a number of folds"),
    ({"cv": []}, "cv gave no folds"),
    ({"cv": [(np.arange(5),)]}, r"cv must give pairs of lists of row numbers, \(train, test\)"),
    ({"cv": [(QID > 0, QID <= 0)]}, "masks are not row numbers"),
    ({"cv": [([0.5], [1.5])]}, "cv must give pairs of lists of row numbers"),
    ({"cv": [3, 4]}, "cv must give pairs of lists of row numbers"),
    ({"cv": [([0, 1], [])]}, "Fold 0 of cv has no test rows"),
    ({"cv": [([0, 1], [2]), ([], [2])]}, "Fold 1 of cv has no training rows"),
    ({"cv": [([0, 1], [M])]}, f"Fold 0 of cv names row {M}, but the rows are 0 to {M - 1}"),
    ({"cv": [([0, -1], [2])]}, "Fold 0 of cv names row -1"),
    ({"cv": [([0, 1], [1, 2])]}, "Fold 0 of cv has rows that are both for training and for testing"),
    ({"cv": KFold(M + 1)}, "Cannot have number of splits"),
]


@pytest.mark.parametrize(
    ("change", "message"),
    [c for c in BAD_CHOICES if "tuple" not in c[1]] + GRIDS,
    ids=lambda v: v[:40] if isinstance(v, str) else "",
)
def test_bad_selections(change, message):
    options = {"alphas": (0.1, 1.0), **change}
    with pytest.raises(ValueError, match=message):
        RankRLSCV(**options).fit(**GOOD)


def test_values_too_large_to_multiply():
    """Only who multiplies them minds, and only in fit; squares just inside the range are no error."""
    RankBoost(n_estimators=2).fit(1e200 * X, Y, qid=QID)
    model = RankRLS().fit(1e150 * X, Y, qid=QID)
    np.testing.assert_allclose(model.predict(1e150 * X), RankRLS(0.0).fit(X, Y, qid=QID).predict(X), atol=1e-8)
    assert np.isfinite(RankRLS().fit(X, Y, qid=QID).predict(1e200 * X)).all()


def test_groups_are_needed_by_who_asks_for_them():
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        RankRLSCV(cv=GroupKFold(2)).fit(X, Y)


VALIDATION = {"X_val": X[:6], "y_val": [0, 1, 2, 0, 1, 2], "qid_val": [1, 1, 1, 2, 2, 2]}


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({}, {"X_val": None}, "Validation data need X_val and y_val"),
        ({}, {"y_val": None}, "Validation data need X_val and y_val"),
        ({}, {"X_val": None, "y_val": None}, "Validation data need X_val and y_val"),
        ({"cv": 3}, {}, "Give either cv or validation data"),
        ({}, {"qid_val": None}, r"fitted with qid, but fit's validation data \(qid_val\) was called without"),
        ({}, {"qid_val": [1, 2]}, "qid has 2 entries but there are 6 rows"),
        ({}, {"X_val": X[:6, :3]}, "X has 3 features, but RankRLSCV is expecting 4"),
        ({}, {"X_val": with_entry(X[:6], (2, 0), np.nan)}, "NaN: row 2, column 0"),
        ({}, {"y_val": [0, 1]}, "X_val has 6 rows but y_val has 2 labels"),
        ({}, {"y_val": [0, 1, 2, 0, 1, np.nan]}, "Input y contains NaN: row 5"),
        ({}, {"y_val": np.zeros((6, 2))}, "y_val has 2 targets but y has 1"),
        ({}, {"y_val": np.zeros(6)}, "validation data hold no query that the measure can judge"),
    ],
)
def test_bad_validation_data(options, change, message):
    with pytest.raises(ValueError, match=message):
        RankRLSCV((0.1, 1.0), **options).fit(**GOOD, **{**VALIDATION, **change})


@pytest.mark.parametrize("model", [RankRLS(), RankRLS(kernel="rbf"), RankRLSCV((0.1, 1.0))], ids=str)
def test_bad_prediction(model):
    model.fit(**GOOD)
    for items, message in [
        (X[:, :3], "X has 3 features, but .* is expecting 4 features"),
        (X[0], "Expected 2D array, got 1D array"),
        (X[:0], r"Found array with 0 sample\(s\)"),
        (with_entry(X, (1, 3), np.nan), "NaN: row 1, column 3"),
        (sparse.csr_array((5, 9)), "X has 9 features"),
    ]:
        for method in (
            model.predict,
            lambda Z: model.rank(Z, qid=np.zeros(len(Z))),
            lambda Z: model.score(Z, Y, qid=QID),
        ):
            if sparse.issparse(items) and method != model.predict:
                continue
            with pytest.raises(ValueError, match=message):
                method(items)


def test_bad_scoring():
    model = RankRLS().fit(**GOOD)
    cases = [
        (lambda: model.score(X, Y), "fitted with qid, but score was called without.*Pass qid to score"),
        (lambda: model.rank(X), "fitted with qid, but rank was called without"),
        (lambda: model.score(X, Y, qid=QID[:-1]), f"qid has {M - 1} entries but there are {M} rows"),
        (lambda: model.rank(X, qid=QID[:-1]), f"qid has {M - 1} entries but there are {M} rows"),
        (lambda: model.score(X, Y[:-1], qid=QID), "one score per label is needed"),
        (lambda: model.score(X, with_entry(Y, 1, np.nan), qid=QID), "y_true holds nan in row 1"),
        (lambda: model.score(X, np.zeros(M), qid=QID), "ordered pair|different labels"),
        (lambda: model.score(X, Y, qid=QID, sample_weight=-np.ones(M)), "negative in row 0"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
    two = RankRLS().fit(X, np.column_stack((Y, Y)), qid=QID)
    with pytest.raises(ValueError, match="y has shape .* but the model has targets for shape"):
        two.score(X, Y, qid=QID)


@pytest.mark.parametrize("model", [RankRLS(), RankRLSCV()])
def test_not_fitted(model):
    for call in (lambda: model.predict(X), lambda: model.rank(X), lambda: model.score(X, Y)):
        with pytest.raises(ValueError, match="is not fitted yet"):
            call()


def test_unknown_keywords():
    for make in (RankRLS, RankRLSCV):
        with pytest.raises(TypeError, match="unexpected keyword argument 'lamda'"):
            make(lamda=1.0)
        with pytest.raises(TypeError, match="unexpected keyword argument 'groups'"):
            make().fit(X, Y, groups=QID)
        with pytest.raises(ValueError, match="Invalid parameter 'lamda'"):
            make().set_params(lamda=1.0)
        with pytest.raises(TypeError, match="positional"):
            make(1.0, "rbf")


def test_leave_query_out_needs_two_comparable_queries():
    y = np.zeros(M)
    y[np.flatnonzero(QID[1] == QID)[0]] = 1.0
    with pytest.raises(ValueError, match=r"needs two queries that hold different labels; only 1 of 7 does"):
        RankRLSCV((0.1, 1.0)).fit(X, y, qid=QID)


def test_an_indefinite_kernel_says_how_large_alpha_must_be():
    rng = np.random.default_rng(81)
    features, y = 3 * rng.normal(size=(30, 4)), rng.normal(size=30)
    with pytest.raises(
        ValueError, match=r"not positive semidefinite: .* alpha must be larger than ([\d.e+-]+)"
    ) as caught:
        RankRLS(1e-6, kernel="sigmoid").fit(features, y)
    needed = float(str(caught.value).split("larger than ")[1].split(";")[0])
    RankRLS(1.01 * needed, kernel="sigmoid").fit(features, y)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        RankRLS(0.98 * needed, kernel="sigmoid").fit(features, y)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        RankRLSCV((1e-6, 1.0), kernel="sigmoid").fit(features, y)
    assert RankRLSCV(kernel="sigmoid").fit(features, y).cv_results_["alpha"].min() > needed
    with pytest.raises(ValueError, match="not positive semidefinite.*more preferences than items"):
        RankRLS(kernel="sigmoid").fit_pairs(features, np.arange(40) % 29, np.arange(40) % 29 + 1)


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = RankRLS().fit(**GOOD)
    expected = model.predict(X)
    for change in ({"y": np.zeros(M)}, {"qid": QID[1:]}, {"sample_weight": np.zeros(M)}):
        with pytest.raises(ValueError, match="."):
            model.fit(**{**GOOD, **change})
    model.set_params(alpha=-1.0)
    with pytest.raises(ValueError, match="alpha"):
        model.fit(**GOOD)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_text_is_named_with_its_place():
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["1", "2", "red"]})
    with pytest.raises(ValueError, match=r"Input X holds the text 'red': row 2, column 1 \('b'\)"):
        RankRLS().fit(X, [1, 2, 3])
    model = RankRLS().fit([[1.0, 0.0], [2.0, 1.0], [3.0, 1.0]], [1, 2, 3])
    with pytest.raises(ValueError, match=r"Input X holds the text 'x': row 0, column 1\."):
        model.predict([["1", "x"]])
    with pytest.raises(ValueError, match=r"y must be numeric: .*Row 1 holds 'good'"):
        RankRLS().fit([[1.0], [2.0]], ["1", "good"])


@pytest.mark.parametrize(
    "kind", [getattr(rankrls, name) for name in rankrls.__all__ if hasattr(getattr(rankrls, name), "fit")]
)
def test_errors_about_arguments_name_the_public_class(kind):
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.fit\(\)") as error:
        kind().fit(X, Y, group=[M])
    assert error.value.parameter == "group"
    assert "group_to_qid" in error.value.remedy
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.fit\(\).*'y'"):
        kind().fit(X)
