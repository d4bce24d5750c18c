"""RankSVMCV against refits of RankSVM, one by one."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from rankrls import RankSVM, RankSVMCV
from rankrls.metrics import Measure
from tests.models.oracles import ranking_data
from tests.oracles import gaussian
from tests.refusals import Refusal

CS = (0.03, 0.3, 3.0)


def by_refits(make, X, y, qid, folds, w=None):
    """Held-out scores of every C, (m, Cs)."""
    out = np.empty((len(y), len(CS)))
    for held in folds:
        rest = np.setdiff1d(np.arange(len(y)), held)
        for k, C in enumerate(CS):
            weights = None if w is None else w[rest]
            model = make(C).fit(X[rest], y[rest], qid=None if qid is None else qid[rest], sample_weight=weights)
            out[held, k] = model.predict(X[held])
    return out


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf", "gamma": 0.2}], ids=repr)
def test_folds_of_queries(options):
    X, y, qid = ranking_data(3, queries=9)
    w = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
    options = {"tol": 1e-9, **options}
    model = RankSVMCV(CS, cv=3, **options).fit(X, y, qid=qid, sample_weight=w)
    assert model.selection_ == "3 folds of 9 queries"
    queries = np.unique(qid)
    splits = KFold(3, shuffle=True, random_state=0).split(queries)
    folds = [np.flatnonzero(np.isin(qid, queries[test])) for _, test in splits]
    if "kernel" in options:
        expected = _basis_refits(options, X, y, qid, w, folds)
    else:
        expected = by_refits(lambda C: RankSVM(C, **options), X, y, qid, folds, w)
    errors = Measure("disagreement")(y, expected, qid=qid, sample_weight=w)
    np.testing.assert_allclose(model.cv_results_["mean_score"], errors, atol=1e-9)
    best = int(np.argmin(errors))
    assert model.C_ == model.best_params_["C"] == CS[best]
    np.testing.assert_allclose(model.cv_results_["C"], CS)
    np.testing.assert_allclose(model.held_out_scores_, expected[:, best], atol=1e-5)
    refit = RankSVM(CS[best], **options).fit(X, y, qid=qid, sample_weight=w)
    np.testing.assert_allclose(model.predict(X), refit.predict(X), atol=1e-5)


def _basis_refits(options, X, y, qid, w, folds):
    """The basis is that of all rows, held-out ones too: a linear machine on the rows of a root of K."""
    values, vectors = np.linalg.eigh(gaussian(X, X, options["gamma"]))
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    return by_refits(lambda C: RankSVM(C, tol=options["tol"]), features, y, qid, folds, w)


def test_folds_of_rows_for_one_ranking():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + rng.normal(size=40)
    model = RankSVMCV(CS, tol=1e-9).fit(X, y)
    assert model.selection_ == "5 folds of 40 rows"
    errors = np.zeros((5, 3))
    for k, (train, test) in enumerate(KFold(5, shuffle=True, random_state=0).split(X)):
        for c, C in enumerate(CS):
            errors[k, c] = Measure("disagreement")(
                y[test], RankSVM(C, tol=1e-9).fit(X[train], y[train]).predict(X[test])
            )
    np.testing.assert_allclose(model.cv_results_["mean_score"], errors.mean(axis=0), atol=1e-9)


def test_validation_data_and_balances():
    X, y, qid = ranking_data(5, queries=12)
    late = np.isin(qid, np.unique(qid)[8:])
    model = RankSVMCV(CS, balance=("pairs", "queries"), scoring="ndcg@3", tol=1e-9)
    model.fit(X[~late], y[~late], qid=qid[~late], X_val=X[late], y_val=y[late], qid_val=qid[late])
    expected = [
        Measure("ndcg", k=3)(
            y[late],
            RankSVM(C, balance=b, tol=1e-9).fit(X[~late], y[~late], qid=qid[~late]).predict(X[late]),
            qid=qid[late],
        )
        for b in ("pairs", "queries")
        for C in CS
    ]
    np.testing.assert_allclose(model.cv_results_["mean_score"], expected, atol=1e-9)
    assert model.best_index_ == int(np.argmax(expected))
    assert model.cv_results_["balance"].tolist() == ["pairs"] * 3 + ["queries"] * 3


def test_preferences():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(25, 3))
    winners, losers = rng.integers(0, 25, (2, 60))
    winners, losers = winners[winners != losers], losers[winners != losers]
    turn = X[winners, 0] + rng.normal(size=len(winners)) < X[losers, 0]
    winners, losers = np.where(turn, losers, winners), np.where(turn, winners, losers)
    groups = rng.integers(0, 6, len(winners))
    model = RankSVMCV(CS, cv=3, scoring="pair_accuracy", tol=1e-9)
    model.fit_pairs(X, winners, losers, groups=groups)
    names = np.unique(groups)
    right = np.empty((3, 3))
    for k, (_, test) in enumerate(KFold(3, shuffle=True, random_state=0).split(names)):
        held = np.isin(groups, [names[g] for g in test])
        for c, C in enumerate(CS):
            f = RankSVM(C, tol=1e-9).fit_pairs(X, winners[~held], losers[~held]).predict(X)
            right[k, c] = np.mean(f[winners[held]] > f[losers[held]])
    np.testing.assert_allclose(model.cv_results_["mean_score"], right.mean(axis=0), atol=1e-9)
    assert RankSVMCV(CS).fit_pairs(X, winners, losers).selection_ == "5 folds of 25 items: new items"


def test_automatic_grid_reaches_from_one_direction_to_little_regularization():
    X, y, qid = ranking_data(3, queries=9)
    model = RankSVMCV().fit(X, y, qid=qid)
    Cs = model.cv_results_["C"]
    assert len(Cs) == 15
    assert (np.diff(Cs) > 0).all()
    small, smaller = (RankSVM(C, tol=1e-9).fit(X, y, qid=qid).coef_ for C in (Cs[0], Cs[0] / 100))
    cosine = small @ smaller / np.linalg.norm(small) / np.linalg.norm(smaller)
    assert cosine > 0.99
    scaled = RankSVMCV().fit(1e3 * X, y, qid=qid)
    np.testing.assert_allclose(scaled.cv_results_["C"], Cs / 1e6, rtol=0.05)


def test_a_value_of_the_grid_is_named():
    X, y, qid = ranking_data(1)
    with Refusal("number", "above 0", parameter="C"):
        RankSVMCV(Cs=(1.0, -1.0)).fit(X, y, qid=qid)
