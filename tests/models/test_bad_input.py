"""Bad input: one clear error each, which says what is wrong, where, and what to do."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold, KFold

from rankrls import (
    AutoRankRLS,
    CGRankRLS,
    ConditionalRankRLS,
    CoRankingPursuit,
    InputError,
    RankBoost,
    RankRLS,
    RankRLSCV,
    RankSVM,
    TransductiveRankRLSCV,
)
from tests.models.oracles import ranking_data
from tests.refusals import Refusal, told

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


DAYS = [datetime(2024, 1, 1 + row % 28) for row in range(M)]
GOOD = {"X": X, "y": Y, "qid": QID}
BAD_DATA = [
    ({"X": with_entry(X, (3, 1), np.nan)}, Refusal("NaN", parameter="X", row=3, column=1)),
    ({"X": with_entry(X, (4, 2), np.inf)}, Refusal("contains infinity", parameter="X", row=4, column=2)),
    (
        {"X": with_entry(X, (4, 2), -np.inf).astype(np.float32)},
        Refusal("contains -infinity", parameter="X", row=4, column=2),
    ),
    ({"X": holey(np.nan)}, Refusal("NaN", parameter="X", row=1, column=0)),
    (
        {"X": with_entry(X, (4, 2), -1e155)},
        Refusal("products overflow", parameter="X", row=4, column=2),
    ),
    ({"X": holey(1e200)}, Refusal("overflow", parameter="X", row=1, column=0)),
    ({"X": 1e-100 * with_entry(X, (4, 2), 9.0)}, Refusal("vanish", "Scale", parameter="X", row=4, column=2)),
    ({"X": 1e80 * with_entry(X, (4, 2), 9.0)}, Refusal("overflow", parameter="X", row=4, column=2)),
    ({"y": 1e155 * with_entry(Y, 2, 9.0)}, Refusal("9e+155", "Multiply", parameter="y", row=2)),
    ({"sample_weight": np.full(M, 1e155)}, Refusal("1e+155", "Multiply", parameter="sample_weight", row=0)),
    ({"sample_weight": np.full(M, 1e-160)}, Refusal("1e-160", "Multiply", parameter="sample_weight", row=0)),
    ({"X": [{"a": 1.0, "b": 2.0}] * (M - 1) + [{"a": 1.0}]}, Refusal("NaN", "'b'", parameter="X", row=M - 1)),
    ({"X": [{"a": 1.0}] * (M - 1) + [{"a": "1"}]}, Refusal("several types", column="a")),
    ({"X": pl.LazyFrame(X)}, Refusal("collect()", parameter="X")),
    *(
        (
            {"X": form({"a": X[:, 0], "when": DAYS})},
            Refusal("numbers", parameter="X", column="when", remedy="TableEncoder"),
        )
        for form in (pd.DataFrame, pl.DataFrame)
    ),
    ({"X": np.full(X.shape, "red", dtype=object)}, Refusal("'red'", parameter="X", row=0, column=0)),
    ({"X": X[:, 0]}, Refusal("2D array", parameter="X")),
    ({"X": X[:, :, None]}, Refusal("dim 3", parameter="X")),
    ({"X": X[:, :0]}, Refusal("0 feature", parameter="X")),
    ({"X": X[:0], "y": Y[:0], "qid": QID[:0]}, Refusal("0 sample", parameter="X")),
    ({"X": [[1.0, 2.0]] * (M - 1) + [[1.0]]}, Refusal("inhomogeneous", parameter="X")),
    ({"X": X + 0j}, Refusal("Complex", parameter="X")),
    ({"X": np.full(X.shape, "2024-05-01", dtype="M8[D]")}, Refusal("datetime64", parameter="X", remedy="TableEncoder")),
    ({"y": Y[:-1]}, Refusal(f"{M} rows", f"y has {M - 1}", parameter="y")),
    ({"y": None}, Refusal("requires", parameter="y")),
    ({"y": with_entry(Y, 2, np.nan)}, Refusal("contains NaN", parameter="y", row=2)),
    ({"y": with_entry(Y, 2, -np.inf)}, Refusal("contains infinity", parameter="y", row=2)),
    ({"y": with_entry(np.column_stack((Y, Y)), (5, 1), np.nan)}, Refusal("contains", "target 1", parameter="y", row=5)),
    ({"y": ["good"] * M}, Refusal("numbers", "'good'", parameter="y")),
    ({"y": Y[:, None, None]}, Refusal(parameter="y")),
    ({"y": [[1.0, 2.0]] * (M - 1) + [[1.0]]}, Refusal("inhomogeneous", parameter="y")),
    ({"y": np.array(DAYS, dtype="M8[D]")}, Refusal("datetime64", parameter="y")),
    ({"y": np.zeros((M, 0))}, Refusal(parameter="y")),
    ({"y": np.zeros(M)}, Refusal("7 queries", "compare", parameter="y")),
    ({"y": np.zeros(M), "qid": None}, Refusal("different labels", parameter="y")),
    ({"qid": np.arange(M)}, Refusal("none of the", parameter="y", remedy="Check the labels")),
    ({"qid": QID[:-1]}, Refusal(f"{M - 1} entries", "group sizes", parameter="qid")),
    ({"qid": [5] * 4}, Refusal("4 entries", f"{M} rows", parameter="qid")),
    ({"qid": QID[:, None]}, Refusal("one-dimensional", parameter="qid")),
    ({"qid": 3}, Refusal("one-dimensional", parameter="qid")),
    ({"qid": "abc"}, Refusal("one-dimensional", parameter="qid")),
    ({"qid": with_entry(QID, 6, np.nan)}, Refusal("missing in", parameter="qid", row=6)),
    ({"qid": [None if k == 4 else "a" for k in range(M)]}, Refusal("missing in", parameter="qid", row=4)),
    ({"sample_weight": np.ones(M - 1)}, Refusal("weight per", parameter="sample_weight")),
    ({"sample_weight": np.ones((M, 2))}, Refusal("weight per", parameter="sample_weight")),
    ({"sample_weight": with_entry(np.ones(M), 7, -0.5)}, Refusal("-0.5", "negative", parameter="sample_weight", row=7)),
    ({"sample_weight": with_entry(np.ones(M), 7, np.nan)}, Refusal("finite", parameter="sample_weight", row=7)),
    ({"sample_weight": ["heavy"] * M}, Refusal("numbers", parameter="sample_weight")),
    ({"sample_weight": np.ones(M) + 0j}, Refusal("Complex", parameter="sample_weight")),
    ({"sample_weight": [[1.0, 2.0]] * (M - 1) + [[1.0]]}, Refusal("inhomogeneous", parameter="sample_weight")),
    ({"sample_weight": np.zeros(M)}, Refusal("zero", parameter="sample_weight")),
    ({"sample_weight": np.arange(M) == 3}, Refusal("Nothing to compare", parameter="y")),
]


@pytest.mark.parametrize(("change", "refusal"), BAD_DATA, ids=told)
@pytest.mark.parametrize("model", [RankRLS(), RankRLS(kernel="rbf"), RankRLSCV((0.1, 1.0))], ids=str)
def test_bad_data(model, change, refusal):
    with refusal:
        model.fit(**{**GOOD, **change})


ONE_TARGET = (RankSVM(), RankBoost(), CoRankingPursuit())


@pytest.mark.parametrize("model", ONE_TARGET, ids=str)
def test_several_targets_are_refused(model):
    with Refusal("1d array", parameter="y"):
        model.fit(X, np.column_stack((Y, Y)), qid=QID)


def test_labels_of_a_score():
    model = RankRLS().fit(X, Y, qid=QID)
    with Refusal("inhomogeneous", parameter="y"):
        model.score(X, [[1.0, 2.0]] * (M - 1) + [[1.0]], qid=QID)


BAD_PARAMETERS = [
    ({"alpha": -1.0}, Refusal("got -1.0", "number", parameter="alpha")),
    ({"alpha": True}, Refusal("got True", parameter="alpha")),
    ({"alpha": (0.1, 1.0)}, Refusal("must be a number", parameter="alpha")),
]
BAD_CHOICES = [
    ({"kernel": "gaussian"}, Refusal("got 'gaussian'", "'linear', 'rbf'", parameter="kernel")),
    ({"kernel": X @ X.T}, Refusal("one of", parameter="kernel", remedy="'precomputed'")),
    ({"kernel": "polynomial", "degree": 0}, Refusal("whole", "got 0", parameter="degree")),
    ({"kernel": "polynomial", "degree": 2.5}, Refusal("got 2.5", "whole", parameter="degree")),
    ({"regression_weight": 1.5}, Refusal("got 1.5", "number", parameter="regression_weight")),
    ({"regression_weight": True}, Refusal("got True", parameter="regression_weight")),
    ({"solver": "primal", "kernel": "rbf"}, Refusal("solver='primal'", "got 'rbf'", parameter="solver")),
    ({"kernel": "precomputed"}, Refusal("square", f"({M}, 4)", parameter="X")),
]


@pytest.mark.parametrize(("change", "refusal"), BAD_PARAMETERS + BAD_CHOICES, ids=told)
def test_bad_parameters(change, refusal):
    with refusal:
        RankRLS(**change).fit(**GOOD)
    if "precomputed" not in map(str, change.values()):
        with refusal:
            RankRLS(**change).fit_pairs(X, [0], [1])


GRIDS = [
    ({"alphas": (1.0, -1.0)}, Refusal("got -1.0", "number", parameter="alpha")),
    ({"alphas": ("a", "b")}, Refusal("a number", "got 'a'", parameter="alpha")),
    ({"alphas": (0.0, 1.0)}, Refusal("needs", "got 0", parameter="alphas")),
    ({"scoring": "area"}, Refusal("'area'", "unknown", parameter="scoring")),
    ({"scoring": "precision"}, Refusal("precision needs", parameter="scoring")),
    ({"scoring": "ndcg@0"}, Refusal("a whole number", parameter="scoring")),
    ({"scoring": lambda y, f: None}, Refusal("returned None", parameter="measure")),
    ({"ties": ("include", "no")}, Refusal("got 'no'", "'include', 'exclude'", parameter="ties")),
    ({"gamma": (0.1, -1.0)}, Refusal("got -1.0", "above 0", parameter="gamma")),
    ({"kernel": ("linear", "precomputed")}, Refusal("callable", parameter="kernel")),
    ({"kernel": ("rbf", np.dot)}, Refusal("callable", parameter="kernel")),
    ({"kernel": ("rbf", "linear"), "solver": "primal"}, Refusal("solver='primal'", "got 'rbf'", parameter="solver")),
    ({"cv": 1}, Refusal("got 1", parameter="cv")),
    ({"cv": 8}, Refusal("got 8", parameter="cv")),
    ({"cv": [(np.arange(5),)]}, Refusal("Fold 0", "(train, test)", parameter="cv")),
    ({"cv": [([0.5], [1.5])]}, Refusal("Fold 0", "row numbers", parameter="cv")),
    ({"cv": [([True, False], [False, True])]}, Refusal("Masks", parameter="cv")),
    ({"cv": [([0, 1], [2]), ([], [2])]}, Refusal("Fold 1", parameter="cv")),
    ({"cv": [([0, 1], [M])]}, Refusal("Fold 0", f"0 to {M - 1}", parameter="cv")),
    ({"cv": [([0, 1], [1, 2])]}, Refusal("in common", parameter="cv")),
    ({"cv": KFold(M + 1)}, Refusal("splits", kind=ValueError)),
]


@pytest.mark.parametrize(
    ("change", "refusal"),
    BAD_CHOICES + GRIDS,
    ids=told,
)
def test_bad_selections(change, refusal):
    options = {"alphas": (0.1, 1.0), **change}
    with refusal:
        RankRLSCV(**options).fit(**GOOD)


def test_values_too_large_to_multiply():
    """Only who multiplies them minds, and only in fit; what is just inside the range is no error."""
    RankBoost(n_estimators=2).fit(1e200 * X, Y, qid=QID)
    model = RankRLS().fit(1e39 * X, Y, qid=QID)
    np.testing.assert_allclose(model.predict(1e39 * X), RankRLS(0.0).fit(X, Y, qid=QID).predict(X), atol=1e-8)
    assert np.isfinite(RankRLS().fit(X, Y, qid=QID).predict(1e200 * X)).all()


def test_groups_are_needed_by_who_asks_for_them():
    with Refusal("'groups' parameter", kind=ValueError):
        RankRLSCV(cv=GroupKFold(2)).fit(X, Y)


VALIDATION = {"X_val": X[:6], "y_val": [0, 1, 2, 0, 1, 2], "qid_val": [1, 1, 1, 2, 2, 2]}


@pytest.mark.parametrize(
    ("options", "change", "refusal"),
    [
        ({}, {"X_val": None}, Refusal("Validation data", parameter="X_val")),
        ({}, {"y_val": None}, Refusal("Validation data", parameter="X_val")),
        ({}, {"X_val": None, "y_val": None}, Refusal("Validation data", parameter="X_val")),
        ({"cv": 3}, {}, Refusal("either cv", "validation data", parameter="cv")),
        ({}, {"qid_val": None}, Refusal("Pass qid_val", "validation data need", parameter="qid_val")),
        ({}, {"qid_val": [1, 2]}, Refusal("6 rows", "entries", parameter="qid_val")),
        ({}, {"X_val": X[:6, :3]}, Refusal("RankRLSCV", "expecting 4", parameter="X_val")),
        ({}, {"X_val": with_entry(X[:6], (2, 0), np.nan)}, Refusal("NaN", parameter="X_val", row=2, column=0)),
        ({}, {"y_val": [0, 1]}, Refusal("6 rows", "label", parameter="y_val")),
        ({}, {"y_val": [0, 1, 2, 0, 1, np.nan]}, Refusal("contains NaN", parameter="y_val", row=5)),
        ({}, {"y_val": np.zeros((6, 2))}, Refusal("2 targets", parameter="y_val")),
        ({}, {"y_val": np.zeros(6)}, Refusal("two different labels", parameter="y_val")),
    ],
)
def test_bad_validation_data(options, change, refusal):
    with refusal:
        RankRLSCV((0.1, 1.0), **options).fit(**GOOD, **{**VALIDATION, **change})


def test_bad_scoring():
    model = RankRLS().fit(**GOOD)
    cases = [
        (lambda: model.score(X, Y), Refusal("fitted with qid", "score was called without", parameter="qid")),
        (lambda: model.rank(X), Refusal("called without", parameter="qid")),
        (lambda: model.score(X, Y, qid=QID[:-1]), Refusal(f"{M - 1} entries", f"{M} rows", parameter="qid")),
        (lambda: model.rank(X, qid=QID[:-1]), Refusal(f"{M - 1} entries", f"{M} rows", parameter="qid")),
        (lambda: model.score(X, Y[:-1], qid=QID), Refusal("needed", parameter="y_score")),
        (lambda: model.score(X, with_entry(Y, 1, np.nan), qid=QID), Refusal("contains nan", parameter="y_true", row=1)),
        (lambda: model.score(X, np.zeros(M), qid=QID), Refusal("two items")),
        (
            lambda: model.score(X, Y, qid=QID, sample_weight=-np.ones(M)),
            Refusal("negative in", parameter="sample_weight", row=0),
        ),
    ]
    for call, refusal in cases:
        with refusal:
            call()
    two = RankRLS().fit(X, np.column_stack((Y, Y)), qid=QID)
    with Refusal("targets, but the model has", parameter="y"):
        two.score(X, Y, qid=QID)


def test_leave_query_out_needs_two_comparable_queries():
    y = np.zeros(M)
    y[np.flatnonzero(QID[1] == QID)[0]] = 1.0
    with Refusal("two queries", "1 of 7", parameter="cv"):
        RankRLSCV((0.1, 1.0)).fit(X, y, qid=QID)


def test_an_indefinite_kernel_says_how_large_alpha_must_be():
    rng = np.random.default_rng(81)
    features, y = 3 * rng.normal(size=(30, 4)), rng.normal(size=30)
    with Refusal("not positive semidefinite", "larger than", parameter="alpha") as caught:
        RankRLS(1e-6, kernel="sigmoid").fit(features, y)
    needed = float(str(caught.value).split("larger than ")[1].split(";")[0])
    RankRLS(1.01 * needed, kernel="sigmoid").fit(features, y)
    with Refusal("not positive semidefinite", parameter="alpha"):
        RankRLS(0.98 * needed, kernel="sigmoid").fit(features, y)
    with Refusal("not positive semidefinite", parameter="kernel"):  # pairs are not held out of such a kernel
        RankRLSCV((1e-6, 1.0), kernel="sigmoid").fit(features, y)
    assert RankRLSCV(kernel="sigmoid", cv=3).fit(features, y).cv_results_["alpha"].min() > needed
    with Refusal("not positive semidefinite", kind=ValueError):
        RankRLS(kernel="sigmoid").fit_pairs(features, np.arange(40) % 29, np.arange(40) % 29 + 1)


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = RankRLS().fit(**GOOD)
    expected = model.predict(X)
    for change in ({"y": np.zeros(M)}, {"qid": QID[1:]}, {"sample_weight": np.zeros(M)}):
        with pytest.raises(InputError):
            model.fit(**{**GOOD, **change})
    model.set_params(alpha=-1.0)
    with Refusal(parameter="alpha"):
        model.fit(**GOOD)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_text_is_named_with_its_place():
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["1", "2", "red"]})
    with Refusal("'red'", parameter="X", row=2, column="b"):
        RankRLS().fit(X, [1, 2, 3])
    model = RankRLS().fit([[1.0, 0.0], [2.0, 1.0], [3.0, 1.0]], [1, 2, 3])
    with Refusal("'x'", parameter="X", row=0, column=1):
        model.predict([["1", "x"]])


@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
@pytest.mark.parametrize("factor", [4.0**-60, 4.0**60])
def test_no_choice_depends_on_the_units_of_the_data(name, factor):
    """Within what is not refused, 1e-36 to 1e36."""
    data = GOOD | {"sample_weight": np.arange(1.0, M + 1.0)}
    before = RankRLSCV().fit(**data)
    after = RankRLSCV().fit(**data | {name: data[name] * factor})
    np.testing.assert_allclose(after.cv_results_["mean_score"], before.cv_results_["mean_score"], atol=1e-12)
    assert np.isfinite(after.coef_).all()


@pytest.mark.parametrize("factor", [1e155, 1e-160])
def test_weights_and_strengths_of_preferences_are_refused_by_name(factor):
    with Refusal("Multiply", parameter="weight", row=0):
        RankRLSCV().fit_pairs(X, [0, 1, 2], [3, 4, 5], weight=np.full(3, factor))
    with Refusal("Multiply", parameter="strength", row=0):
        RankRLSCV().fit_pairs(X, [0, 1, 2], [3, 4, 5], strength=np.full(3, factor))


CHOOSERS = [RankRLSCV(), AutoRankRLS(), CGRankRLS(), TransductiveRankRLSCV()]


@pytest.mark.parametrize("model", [RankRLS(), RankSVM(), RankBoost(), *CHOOSERS], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("group", "Pass qid"),
        ("groups", "group_to_qid"),
        ("eval_set", "X_val, y_val and qid_val"),
        ("event", "survival_pairs"),
        ("eval_group", "qid_val"),
    ],
)
def test_arguments_of_other_libraries(model, name, words):
    with Refusal(words, parameter=name):
        model.fit(X, Y, **{name: [M]})


def test_arguments_that_no_library_has_are_errors_of_python():
    with pytest.raises(TypeError, match="unexpected keyword"):
        RankRLS().fit(X, Y, nonsense=1)
    with pytest.raises(TypeError, match="unexpected keyword"):
        RankRLS().fit_pairs(X, [0], [1], qid=QID)
    assert "groups" in RankRLSCV().fit_pairs(X, [0, 1, 2], [3, 4, 5], groups=["a", "b", "c"]).selection_


@pytest.mark.parametrize(
    ("table", "refusal"),
    [
        (pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["1", "2", "red"]}), Refusal("TableEncoder", row=2, column="b")),
        (pd.DataFrame({"a": pd.Categorical(["x", "y", "x"])}), Refusal("TableEncoder", "'x'", row=0, column="a")),
        (
            pd.DataFrame({"n": [1, 2, 3], "day": pd.date_range("2020-01-05", periods=3)}),
            Refusal("TableEncoder", column="day"),
        ),
        ([{"a": "x"}, {"a": "y"}, {"a": "x"}], Refusal("TableEncoder", "'x'", row=0, column="a")),
        ([[1.0], [np.nan], [2.0]], Refusal("SimpleImputer", "TableEncoder", row=1, column=0)),
        (pd.DataFrame({"a": [1.0, None, 2.0]}), Refusal("SimpleImputer", "TableEncoder", row=1, column=0)),
    ],
    ids=told,
)
def test_tables_of_other_things_than_numbers(table, refusal):
    for model in (RankRLS(), RankBoost(n_estimators=2)):
        with refusal:
            model.fit(table, [1, 2, 3])


@pytest.mark.parametrize("model", [RankRLS(), RankSVM(), ConditionalRankRLS()], ids=str)
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.coo_matrix])
def test_sparse_labels(model, make):
    with Refusal("y.toarray()", parameter="y"):
        model.fit(X, make(np.column_stack((Y, Y))))


def test_sparse_weights():
    with Refusal("sample_weight.toarray()", parameter="sample_weight"):
        RankRLS().fit(X, Y, sample_weight=sparse.csr_array(np.ones((M, 1))))


def test_a_kernel_larger_than_the_memory(monkeypatch):
    monkeypatch.setattr("rankrls._checks.available_memory", lambda: 2.0**30)
    many = np.random.default_rng(0).normal(size=(12_000, 2))
    for model in (RankRLS(kernel="rbf"), RankRLSCV(kernel="rbf"), CoRankingPursuit(kernel="rbf")):
        with Refusal("1.07 GiB", "SparseRankRLSCV", parameter="kernel"):
            model.fit(many, many[:, 0], qid=np.arange(12_000) // 10)
