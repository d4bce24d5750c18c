"""scikit-learn's own checks, none skipped."""

from __future__ import annotations

import inspect

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankrls

ESTIMATORS = [
    rankrls.AutoRankRLS(scoring="disagreement"),
    rankrls.RankRLS(),
    rankrls.RankRLS(solver="dual", ties="exclude", balance="pairs"),
    rankrls.RankRLS(kernel="rbf"),
    rankrls.RankRLS(positive=True),
    rankrls.RankSVM(),
    rankrls.RankSVMCV((0.01, 1.0)),
    rankrls.RankSVM(kernel="rbf", n_basis=20),
    rankrls.RankRLSCV(),
    rankrls.RankRLSCV(alphas=(0.1, 10.0), kernel="rbf", gamma=(0.1, 1.0), rule="one_se"),
    rankrls.RankRLSCV(cv=2, scoring="tau"),
    rankrls.TransductiveRankRLS(),
    rankrls.TransductiveRankRLS(kernel="rbf", n_basis=20),
    rankrls.RankingPursuit(),
    rankrls.RankingPursuit(dictionary="features", backfit=False, regression_weight=0.5),
    rankrls.SparseRankRLS(),
    rankrls.SparseRankRLS(n_basis=20, ties="exclude", balance="pairs"),
    rankrls.RankBoost(n_estimators=30),
    rankrls.RankingPursuitCV(5),
    rankrls.GreedyRankRLS(max_features=3, alphas=(0.1, 10.0)),
    rankrls.CoRankRLS((0.1,), mu=1.0, n_views=2),
    rankrls.CoRankingPursuit(),
    rankrls.CoRankingPursuitCV(3, nu=(0.0, 0.1)),
    rankrls.TransductiveRankRLSCV([0.1, 1.0], penalty=1.0),
    rankrls.SparseRankRLSCV(gamma=(0.1, 1.0)),
    rankrls.CGRankRLS(),
    rankrls.CGRankRLS((0.1, 10.0), selection="tikhonov", tol=1e-9, cv=2, ties="exclude"),
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


class Conditional(OneColumn, rankrls.ConditionalRankRLS):
    pass


class ConditionalCV(OneColumn, rankrls.ConditionalRankRLSCV):
    pass


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@parametrize_with_checks([Conditional(), Conditional(kernel="rbf", fit_intercept=True), ConditionalCV()])
def test_scikit_learn_conventions_of_conditional_rankers(estimator, check):
    check(estimator)


def test_every_public_estimator_is_checked():
    public = {value for value in (getattr(rankrls, name) for name in rankrls.__all__) if inspect.isclass(value)}
    checked = {*map(type, ESTIMATORS), rankrls.ConditionalRankRLS, rankrls.ConditionalRankRLSCV}
    assert {cls for cls in public if issubclass(cls, BaseEstimator)} == checked
