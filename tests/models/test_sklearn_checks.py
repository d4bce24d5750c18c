"""scikit-learn's own checks, none skipped."""

from __future__ import annotations

import inspect

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankrls
from rankrls import (
    AutoRankRLS,
    CGRankRLS,
    ConditionalRankRLS,
    ConditionalRankRLSCV,
    CoRankingPursuit,
    CoRankingPursuitCV,
    CoRankRLS,
    GreedyRankRLS,
    RankBoost,
    RankingPursuit,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    SparseRankRLS,
    SparseRankRLSCV,
    TransductiveRankRLS,
    TransductiveRankRLSCV,
)

ESTIMATORS = [
    AutoRankRLS(scoring="disagreement"),
    RankRLS(),
    RankRLS(solver="dual", ties="exclude", balance="pairs"),
    RankRLS(kernel="rbf"),
    RankRLS(solver="cg"),
    RankRLS(positive=True),
    RankSVM(),
    RankSVMCV((0.01, 1.0)),
    RankSVM(kernel="rbf", n_basis=20),
    RankRLSCV(),
    RankRLSCV(alphas=(0.1, 10.0), kernel="rbf", gamma=(0.1, 1.0), rule="one_se"),
    RankRLSCV(cv=2, scoring="tau"),
    TransductiveRankRLS(),
    TransductiveRankRLS(kernel="rbf", n_basis=20),
    RankingPursuit(),
    RankingPursuit(dictionary="features", backfit=False, regression_weight=0.5),
    SparseRankRLS(),
    SparseRankRLS(basis="kmeans", ties="exclude", balance="pairs"),
    RankBoost(n_estimators=30),
    RankingPursuitCV(5),
    GreedyRankRLS(max_features=3, alphas=(0.1, 10.0)),
    CoRankRLS((0.1,), mu=1.0, n_views=2),
    CoRankingPursuit(),
    CoRankingPursuitCV(3, nu=(0.0, 0.1)),
    TransductiveRankRLSCV([0.1, 1.0], penalty=1.0),
    SparseRankRLSCV(gamma=(0.1, 1.0)),
    CGRankRLS(),
    CGRankRLS((0.1, 10.0), selection="tikhonov", tol=1e-9, cv=2, ties="exclude"),
]


class OneColumn:
    """The checks give one column of utilities; the second item's are 0, and its lead is what is predicted."""

    def fit(self, X, y):
        Y = None if y is None else np.asarray(y).reshape(np.shape(np.asarray(y))[0], -1)
        self._one_ = Y is not None and Y.shape[1] == 1
        return super().fit(X, np.column_stack((Y, np.zeros(len(Y)))) if self._one_ else y)

    def predict(self, X):
        scores = super().predict(X)
        return scores @ [[1.0], [-1.0]] if self._one_ else scores

    def score(self, X, y):
        return float(np.corrcoef(self.predict(X).ravel(), np.ravel(y))[0, 1])


class Conditional(OneColumn, ConditionalRankRLS):
    pass


class ConditionalCV(OneColumn, ConditionalRankRLSCV):
    pass


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@parametrize_with_checks([Conditional(), Conditional(kernel="rbf", fit_intercept=True), ConditionalCV()])
def test_scikit_learn_conventions_of_conditional_rankers(estimator, check):
    check(estimator)


def test_every_public_estimator_is_checked():
    public = {value for value in (getattr(rankrls, name) for name in rankrls.__all__) if inspect.isclass(value)}
    checked = {*map(type, ESTIMATORS), ConditionalRankRLS, ConditionalRankRLSCV}
    assert {cls for cls in public if issubclass(cls, BaseEstimator)} == checked
