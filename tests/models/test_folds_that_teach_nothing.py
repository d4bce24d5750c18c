"""Folds whose training part compares nothing are refused: what they would judge is rounding noise."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from rankrls import (
    CGRankRLS,
    GreedyRankRLS,
    RankingPursuit,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    SparseRankRLS,
    SparseRankRLSCV,
)
from rankrls.metrics import resolve_measure
from rankrls.model_selection import leave_preference_out, leave_query_out
from tests.refusals import Refusal

LEARNERS = {
    "RankRLSCV": RankRLSCV,
    "RankRLSCV, dual": lambda cv: RankRLSCV(cv=cv, kernel="rbf", gamma=0.1),
    "SparseRankRLSCV": lambda cv: SparseRankRLSCV(basis_indices=range(5), cv=cv),
    "CGRankRLS": lambda cv: CGRankRLS([1.0], selection="tikhonov", tol=1e-12, cv=cv),
    "RankSVMCV": lambda cv: RankSVMCV([1.0], cv=cv),
    "RankingPursuitCV": lambda cv: RankingPursuitCV(3, cv=cv),
    "GreedyRankRLS": lambda cv: GreedyRankRLS(cv=cv),
}

ONE_MODEL = {
    "RankRLSCV": lambda model: RankRLS(model.alpha_),
    "RankRLSCV, dual": lambda model: RankRLS(model.alpha_, kernel="rbf", gamma=0.1),
    "SparseRankRLSCV": lambda model: SparseRankRLS(model.alpha_, basis_indices=range(5)),
    "CGRankRLS": lambda model: RankRLS(model.alpha_),
    "RankSVMCV": lambda model: RankSVM(1.0),
    "RankingPursuitCV": lambda model: RankingPursuit(model.best_params_["n_basis"]),
    "GreedyRankRLS": lambda model: GreedyRankRLS(model.n_features_, alphas=(model.alpha_,)),
}
"""The chosen model with nothing to choose."""


def made(name, cv):
    return LEARNERS[name](cv=cv)


def four_queries():
    """Labels vary in queries 2 and 3 only, which two folds hold out together."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(4), 6)
    y = np.where(qid < 2, 1, rng.integers(0, 3, 24))
    return rng.normal(size=(24, 3)), y, qid


@pytest.mark.parametrize("name", LEARNERS)
def test_folds_of_queries(name):
    X, y, qid = four_queries()
    parts = [np.flatnonzero(qid < 2), np.flatnonzero(qid >= 2)]
    for cv in (2, [parts, parts[::-1]]):
        with Refusal("Without 2, 3", parameter="cv", remedy="folds"):
            made(name, cv).fit(X, y, qid=qid)


@pytest.mark.parametrize("name", LEARNERS)
def test_each_of_two_queries_is_left_to_learn_from(name):
    X, y, qid = four_queries()
    model = made(name, 4).fit(X, y, qid=qid)
    measure = resolve_measure(model.scoring)
    again = ONE_MODEL[name](model)
    values = []
    for query in range(4):
        held = qid == query
        scores = clone(again).fit(X[~held], y[~held], qid=qid[~held]).predict(X[held])
        values.append(measure(y[held], scores, qid=qid[held], per_query=True)[0])
    assert np.isfinite(values[2:]).all()
    assert model.best_score_ == pytest.approx(np.nanmean(values))


@pytest.mark.parametrize("name", LEARNERS)
def test_folds_of_rows(name):
    X, y = np.random.default_rng(1).normal(size=(24, 3)), np.zeros(24)
    y[3] = 1
    with Refusal("held-out rows", parameter="cv"):
        made(name, 3).fit(X, y)


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "RankRLSCV, dual"])
@pytest.mark.parametrize("grouped", [False, True])
def test_folds_of_preferences(name, grouped):
    rng = np.random.default_rng(2)
    X, winners, losers = rng.normal(size=(24, 3)), rng.integers(12, size=20), rng.integers(12, 24, size=20)
    strength = np.zeros(20)
    strength[4] = 1.0
    with Refusal("Only one fold", parameter="cv"):
        made(name, 4).fit_pairs(
            X, winners, losers, strength=strength, **({"groups": np.arange(20) // 2} if grouped else {"new": "votes"})
        )


def test_what_a_fifth_of_preferences_is_drawn_from_orders_something():
    rng = np.random.default_rng(3)
    X, winners, losers = rng.normal(size=(24, 3)), rng.integers(12, size=20), rng.integers(12, 24, size=20)
    strength = np.zeros(20)
    strength[[4, 11]] = 1.0
    given = {"strength": strength, "new": "votes"}
    model = CGRankRLS(random_state=0).fit_pairs(X, winners, losers, **given)
    assert np.abs(model.coef_).max() > 0.0
    strength[11] = 0.0
    with Refusal("Only one fold", parameter="cv"):
        CGRankRLS().fit_pairs(X, winners, losers, **given)
    for learner in (RankRLSCV(), SparseRankRLSCV(n_basis=5)):
        with Refusal("Only one group", parameter="strength"):
            learner.fit_pairs(X, winners, losers, **given)
    with Refusal("Only one group", parameter="strength"):
        leave_preference_out(RankRLS(), X, winners, losers, strength=strength)


def test_each_target_needs_a_training_part_that_teaches_it():
    X, y, qid = four_queries()
    other = np.where(qid == 0, np.arange(24) % 3, 5)  # varies in one query only
    for fit in (
        lambda Y: RankRLSCV(cv=4).fit(X, Y, qid=qid),
        lambda Y: leave_query_out(RankRLS(), X, Y, qid=qid),
    ):
        with Refusal("in target 1", column=1):
            fit(np.column_stack((y, other)))
        fit(np.column_stack((y, np.full(24, 5.0))))  # a target that orders nothing anywhere is not judged
