"""Learners of scored and unscored rows that choose by folds of the scored queries, against refits by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

from rankrls import CoRankingPursuit, CoRankingPursuitCV, TransductiveRankRLS, TransductiveRankRLSCV
from rankrls.metrics import Measure
from tests.models.oracles import by_view, ranking_data
from tests.refusals import Refusal

X, Y, QID = ranking_data(21, queries=22, n=6)
SCORED = np.isin(QID, np.unique(QID)[1:12])
PARTLY = np.where(SCORED, Y, np.nan)
W = np.random.default_rng(2).integers(0, 3, len(Y)).astype(float)
VIEWS = ([0, 1, 2], {"features": [2, 3, 4, 5], "kernel": "linear"})
KERNEL = X @ X.T

TRANSDUCTIVE = {
    "linear": {},
    "weights": {"balance": "pairs"},
    "rbf": {"kernel": "rbf", "gamma": 0.2},
    "basis": {"kernel": "rbf", "gamma": 0.2, "basis_indices": np.flatnonzero(SCORED)[::2]},
    "matrix": {"kernel": "precomputed"},
}
PURSUITS = {
    "halves": {"gamma": 0.1},
    "views": {"views": VIEWS, "gamma": 0.1, "balance": "pairs"},
    "combinations": {"views": VIEWS, "gamma": 0.1, "shared_basis": False},
}


def folds_of(qid):
    """What 3 folds of queries are."""
    ids = np.unique(qid)
    return [np.isin(QID, ids[test]) for _, test in KFold(3, shuffle=True, random_state=0).split(ids)]


def judged(make, scores_of, weights=None):
    """The mean over held-out queries of their error, and all scores: by fits in which each fold is unscored."""
    held = np.full(len(Y), np.nan)
    kept = SCORED if weights is None else SCORED & (weights > 0)
    for fold in folds_of(QID[kept]):
        model = make().fit(*scores_of(np.where(fold, np.nan, PARTLY)), qid=QID, sample_weight=weights)
        held[fold & kept] = model.predict(scores_of(PARTLY)[0])[fold & kept]
    return Measure("disagreement")(Y[kept], held[kept], qid=QID[kept], sample_weight=None), held


@pytest.mark.parametrize("name", TRANSDUCTIVE)
@pytest.mark.parametrize("weighted", [False, True])
def test_alpha_and_penalty_are_judged_by_refits(name, weighted):
    w = None if not weighted else W + 1.0 if name == "basis" else W  # items of a basis have positive weights
    options = TRANSDUCTIVE[name]
    of = (lambda y: (KERNEL, y)) if name == "matrix" else (lambda y: (X, y))
    model = TransductiveRankRLSCV([0.3, 30.0], penalty=(0.1, 10.0), cv=3, **options)
    model.fit(*of(PARTLY), qid=QID, sample_weight=w)
    table = model.cv_results_
    assert len(table["alpha"]) == 4
    for alpha, penalty, mean in zip(table["alpha"], table["penalty"], table["mean_score"], strict=True):
        chosen = (alpha, penalty) == (model.alpha_, model.best_params_["penalty"])
        if w is not None and not chosen:
            continue
        error, held = judged(lambda a=alpha, p=penalty: TransductiveRankRLS(a, penalty=p, **options), of, w)
        if w is None:
            assert mean == pytest.approx(error)
        if chosen:
            np.testing.assert_allclose(model.held_out_scores_, held, atol=1e-7)
    assert model.best_score_ == table["mean_score"].min()
    alone = TransductiveRankRLS(model.alpha_, penalty=model.best_params_["penalty"], **options)
    alone.fit(*of(PARTLY), qid=QID, sample_weight=w)
    np.testing.assert_allclose(model.predict(of(PARTLY)[0]), alone.predict(of(PARTLY)[0]), rtol=1e-10)
    np.testing.assert_allclose(model.transduction_, alone.transduction_, rtol=1e-10)
    assert model.n_queries_ == alone.n_queries_


@pytest.mark.parametrize("name", PURSUITS)
@pytest.mark.parametrize("weighted", [False, True])
def test_terms_and_agreement_are_judged_by_refits(name, weighted):
    options, w = PURSUITS[name], W if weighted else None
    model = CoRankingPursuitCV(3, nu=(0.0, 0.5), cv=3, **options).fit(X, PARTLY, qid=QID, sample_weight=w)
    table = model.cv_results_
    assert len(table["n_basis"]) == 6
    for stages, nu, mean in zip(table["n_basis"], table["nu"], table["mean_score"], strict=True):
        chosen = (stages, nu) == (model.best_params_["n_basis"], model.best_params_["nu"])
        if w is not None and not chosen:
            continue
        error, held = judged(lambda s=stages, n=nu: CoRankingPursuit(int(s), nu=n, **options), lambda y: (X, y), w)
        if w is None:
            assert mean == pytest.approx(error)
        if chosen:
            np.testing.assert_allclose(model.held_out_scores_, held, atol=1e-7)
    assert model.best_score_ == table["mean_score"].min()
    alone = CoRankingPursuit(model.best_params_["n_basis"], nu=model.best_params_["nu"], **options)
    alone.fit(X, PARTLY, qid=QID, sample_weight=w)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=1e-10)
    np.testing.assert_array_equal(model.basis_indices_, alone.basis_indices_)
    assert model.n_basis_ == len(model.basis_indices_)
    np.testing.assert_allclose(by_view(model, X), by_view(alone, X), rtol=1e-10)


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
def test_rows_held_out_of_one_ranking_are_left_out(kernel):
    """Their query has labels, so that none can be found for them."""
    K = KERNEL if kernel == "precomputed" else X
    train = np.arange(len(Y)) % 3 > 0
    cv = [(np.flatnonzero(train), np.flatnonzero(~train))]
    model = TransductiveRankRLSCV([0.5], penalty=1.0, kernel=kernel, cv=cv).fit(K, Y)
    rest = TransductiveRankRLS(0.5, kernel=kernel).fit(
        K[train][:, train] if kernel == "precomputed" else X[train], Y[train]
    )
    scores = rest.predict(K[~train][:, train] if kernel == "precomputed" else X[~train])
    assert model.best_score_ == pytest.approx(Measure("disagreement")(Y[~train], scores))
    one = SCORED & (QID[SCORED][0] == QID)
    rows = np.flatnonzero(one)
    mixed = TransductiveRankRLSCV([0.5], penalty=1.0, kernel=kernel, cv=[(rows[2:], rows[:2]), (rows[:-2], rows[-2:])])
    assert np.isfinite(mixed.fit(K, np.where(one, np.arange(len(Y)), np.nan), qid=QID).best_score_)


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (lambda: TransductiveRankRLSCV([0.0, 1.0]), Refusal("above 0", parameter="alpha")),
        (lambda: TransductiveRankRLSCV(penalty=(1.0, 0.0)), Refusal("above 0", parameter="penalty")),
        (lambda: TransductiveRankRLSCV(ties=("include", "exclude")), Refusal("one of 'include'", parameter="ties")),
        (lambda: CoRankingPursuitCV(nu=(0.1, -1)), Refusal("at least 0", parameter="nu")),
        (lambda: CoRankingPursuitCV(kernel=("rbf", "precomputed")), Refusal("one of several", parameter="kernel")),
    ],
)
def test_refusals(make, refusal):
    with refusal:
        make().fit(X, PARTLY, qid=QID)
