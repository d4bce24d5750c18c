"""scikit-learn's own checks: of every estimator as it is constructed without arguments, and of other settings."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import SkipTestWarning
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import rankrls
from rankrls import preprocessing

PUBLIC = [getattr(module, name) for module in (rankrls, preprocessing) for name in module.__all__]
CLASSES = [value for value in PUBLIC if inspect.isclass(value) and issubclass(value, BaseEstimator)]
SLOW = (
    *("AutoRankRLS", "CoRankRLS", "CoRankingPursuitCV", "GreedyRankRLS", "RankBoost", "RankSVMCV"),
    *("RankingPursuitCV", "TransductiveRankRLSCV"),
)
"""They take more than a few seconds."""

_ONE_ITEM = "y has one column of utilities, for one item, which orders nothing"
_COPIES = "features are selected by the error of each row without it, and copies of a row stay where one is left out"
_OF_QUERIES = """
check_fit_score_takes_y check_estimators_overwrite_params check_dont_overwrite_parameters
check_estimators_fit_returns_self check_readonly_memmap_input check_n_features_in_after_fitting
check_positive_only_tag_during_fit check_estimators_dtypes check_dtype_object check_pipeline_consistency
check_estimators_nan_inf check_estimator_sparse_tag check_estimator_sparse_array check_estimator_sparse_matrix
check_estimators_pickle check_f_contiguous_array_estimator check_regressors_train check_regressor_data_not_an_array
check_regressors_no_decision_function check_regressors_int check_methods_sample_order_invariance
check_methods_subset_invariance check_fit2d_1feature check_dict_unchanged check_fit_idempotent
check_fit_check_is_fitted check_n_features_in check_fit2d_predict1d check_array_api_input
"""
_CONDITIONAL = dict.fromkeys(_OF_QUERIES.split(), _ONE_ITEM)
_NOT_CONTINUED = {"check_fit_score_takes_y": "partial_fit continues only a model that partial_fit began"}
_ROW_NUMBERS = {
    "check_array_api_input": "row numbers, basis_indices_, are numpy's; pairs of rows are held out on the host"
}
EXPECTED_FAILURES = {
    "AutoRankRLS": {"check_regressor_multioutput": "its labels are negative whatever the tag says, and have no NDCG"},
    "ConditionalRankRLS": _CONDITIONAL,
    "ConditionalRankRLSCV": _CONDITIONAL,
    "RankRLSCV": {"check_array_api_input": "rows of one ranking are held out in pairs, or refitted, on the host"},
    "RankRLS": _NOT_CONTINUED,
    "SparseRankRLS": _ROW_NUMBERS | _NOT_CONTINUED,
    "SparseRankRLSCV": _ROW_NUMBERS,
    "GreedyRankRLS": {
        "check_sample_weight_equivalence_on_dense_data": _COPIES,
        "check_sample_weight_equivalence_on_sparse_data": _COPIES,
    },
}
"""The checks that cannot pass, and why, by estimator. All others do."""


@pytest.mark.parametrize(
    "cls", [pytest.param(cls, marks=[pytest.mark.slow] * (cls.__name__ in SLOW)) for cls in CLASSES]
)
def test_check_estimator(cls):
    expected = EXPECTED_FAILURES.get(cls.__name__, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks provoke them
        results = check_estimator(cls(), expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = [(result["check_name"], result["exception"]) for result in results if result["status"] == "failed"]
    assert failed == []
    known = {result["check_name"] for result in results if result["status"] != "skipped"}
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == known & {*expected}
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert all("array_api" in name for name in skipped), skipped
    assert len(results) > 40 or cls is preprocessing.TableEncoder


def test_a_table_is_no_array():
    tags = get_tags(preprocessing.TableEncoder()).input_tags
    assert (tags.two_d_array, tags.string, tags.categorical, tags.allow_nan) == (False, True, True, True)
    with pytest.warns(SkipTestWarning, match="requires input"):
        results = check_estimator(preprocessing.TableEncoder())
    assert {result["status"] for result in results} == {"passed"}


@pytest.mark.parametrize(
    ("scoring", "positive"),
    [
        ("ndcg@10", True),
        (rankrls.metrics.Measure("ndcg", gain="positive"), False),
        (rankrls.metrics.Measure("ndcg", gain=[0, 1, 3]), True),
        ("err", False),
        ("disagreement", False),
        (lambda y, scores: 0.0, False),
        ("nonsense", False),
    ],
)
def test_the_tag_says_which_labels_the_measure_takes(scoring, positive):
    for model in (rankrls.RankRLSCV(scoring=scoring), rankrls.AutoRankRLS(scoring=scoring, families="linear")):
        assert get_tags(model).target_tags.positive_only is positive
        if scoring != "nonsense":
            X, y = np.random.default_rng(0).normal(size=(20, 2)), np.tile([-1.0, 0.0, 1.0, 2.0], 5)
            refused = False
            try:
                model.fit(X, y, qid=np.repeat(np.arange(4), 5))
            except rankrls.InputError:
                refused = True
            assert refused is positive


def test_the_tag_says_which_estimators_take_arrays_of_devices():
    takes = {cls.__name__ for cls in CLASSES if get_tags(cls()).array_api_support}
    assert takes == {"RankRLS", "RankRLSCV", "SparseRankRLS", "SparseRankRLSCV"}
    for parameters in ({"positive": True}, {"kernel": "precomputed"}, {"kernel": np.dot}):
        assert not get_tags(rankrls.RankRLS(**parameters)).array_api_support


OTHER_SETTINGS = [
    rankrls.AutoRankRLS(scoring="disagreement"),
    rankrls.RankRLS(solver="dual", ties="exclude", balance="pairs"),
    rankrls.RankRLS(kernel="rbf"),
    rankrls.RankRLS(positive=True),
    rankrls.RankSVMCV((0.01, 1.0)),
    rankrls.RankSVM(kernel="rbf", n_basis=20),
    rankrls.RankRLSCV(alphas=(0.1, 10.0), kernel="rbf", gamma=(0.1, 1.0), rule="one_se"),
    rankrls.RankRLSCV(cv=2, scoring="tau"),
    rankrls.TransductiveRankRLS(kernel="rbf", n_basis=20),
    rankrls.RankingPursuit(dictionary="features", backfit=False, regression_weight=0.5),
    rankrls.SparseRankRLS(n_basis=20, ties="exclude", balance="pairs"),
    rankrls.RankBoost(n_estimators=30),
    rankrls.RankingPursuitCV(5),
    rankrls.GreedyRankRLS(max_features=3, alphas=(0.1, 10.0)),
    rankrls.CoRankRLS((0.1,), mu=1.0, n_views=2),
    rankrls.CoRankingPursuitCV(3, nu=(0.0, 0.1)),
    rankrls.TransductiveRankRLSCV([0.1, 1.0], penalty=1.0),
    rankrls.SparseRankRLSCV(gamma=(0.1, 1.0)),
    rankrls.CGRankRLS((0.1, 10.0), selection="tikhonov", tol=1e-9, cv=2, ties="exclude"),
]


class OneColumn:
    """The checks give one column of utilities; the second item's are 0, and its lead is what is predicted."""

    def fit(self, X, y):
        Y = None if y is None else np.asarray(y).reshape(np.shape(np.asarray(y))[0], -1)
        self._single = Y is not None and Y.shape[1] == 1
        return super().fit(X, np.column_stack((Y, np.zeros(len(Y)))) if self._single else y)

    def predict(self, X):
        scores = super().predict(X)
        return scores @ [[1.0], [-1.0]] if self._single else scores

    def score(self, X, y):
        return float(np.corrcoef(self.predict(X).ravel(), np.ravel(y))[0, 1])


class Conditional(OneColumn, rankrls.ConditionalRankRLS):
    pass


class ConditionalCV(OneColumn, rankrls.ConditionalRankRLSCV):
    pass


def expected_failures(estimator):
    known = EXPECTED_FAILURES.get(type(estimator).__name__, {}) if get_tags(estimator).array_api_support else {}
    return known | (_NOT_CONTINUED if hasattr(estimator, "partial_fit") else {})


@parametrize_with_checks(OTHER_SETTINGS, expected_failed_checks=expected_failures, xfail_strict=False)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@parametrize_with_checks([Conditional(), Conditional(kernel="rbf", fit_intercept=True), ConditionalCV()])
def test_scikit_learn_conventions_of_conditional_rankers(estimator, check):
    check(estimator)
