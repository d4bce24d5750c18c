"""What is chosen must not depend on the order of rows, on the names of queries, or on the number of threads."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rankrls import (
    CGRankRLS,
    CoRankingPursuitCV,
    CoRankRLS,
    GreedyRankRLS,
    InputWarning,
    RankBoost,
    RankingPursuitCV,
    RankRLSCV,
    RankSVMCV,
    SparseRankRLSCV,
    TransductiveRankRLSCV,
)


def graded(seed, queries=30, items=8):
    """Ordinary data with three grades, in which many alphas rank alike."""
    rng = np.random.default_rng(seed)
    m = queries * items
    X = rng.normal(size=(m, 5))
    y = np.digitize(X[:, 0] + rng.normal(size=m), np.linspace(-1, 1, 2))
    return X, y, np.repeat(np.arange(queries), items)


SELECTING = {
    "RankRLSCV": lambda: RankRLSCV(),
    "RankRLSCV, dual": lambda: RankRLSCV(kernel="rbf", gamma=0.2, ties=("include", "exclude")),
    "RankRLSCV, ndcg, one_se": lambda: RankRLSCV(scoring="ndcg@3", rule="one_se", balance=("examples", "queries")),
    "RankRLSCV, folds": lambda: RankRLSCV(cv=3, scoring="tau"),
    "RankRLSCV, signs": lambda: RankRLSCV(np.geomspace(1e-2, 1e2, 5), positive=True),
    "SparseRankRLSCV": lambda: SparseRankRLSCV(n_basis=1000, kernel="rbf", gamma=0.2),
    "CGRankRLS, folds": lambda: CGRankRLS(cv=3),
    "RankSVMCV": lambda: RankSVMCV([0.01, 0.1, 1.0], cv=3),
    "RankingPursuitCV": lambda: RankingPursuitCV(4, cv=3, dictionary="features"),
    "GreedyRankRLS": lambda: GreedyRankRLS(cv=3, alphas=(0.1, 10.0)),
    "GreedyRankRLS, disagreement": lambda: GreedyRankRLS(cv=3, alphas=(1.0,), scoring="disagreement"),
    "CoRankRLS": lambda: CoRankRLS(n_views=3),
    "CoRankingPursuitCV": lambda: CoRankingPursuitCV(3, nu=(0.0, 0.1), dictionary="features", cv=3),
    "TransductiveRankRLSCV": lambda: TransductiveRankRLSCV([0.1, 10.0], penalty=(0.1, 10.0), cv=3),
    "RankBoost": lambda: RankBoost(15),
}
FOLLOWS_NAMES = ("folds", "RankSVMCV", "PursuitCV", "GreedyRankRLS", "TransductiveRankRLSCV")
"""Folds are drawn in the order of the queries' ids, so that new names must come in the same order."""


def fit(name, X, y, qid, rows, names, w):
    """The choice, the measures of all candidates with their alphas, and scores."""
    model = SELECTING[name]()
    given = {"qid": [names[k] for k in qid[rows]], "sample_weight": None if w is None else w[rows]}
    if name == "RankBoost":
        half, ids = qid[rows] % 2 == 0, np.array(given["qid"])
        seen, held = rows[half], rows[~half]
        model.fit(X[seen], y[seen], qid=ids[half], X_val=X[held], y_val=y[held], qid_val=ids[~half])
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            model.fit(X[rows], y[rows], **given)
    results = {k: v for k, v in model.cv_results_.items() if k in ("mean_score", "standard_error")}
    return model.best_params_, model.best_score_, results, model.predict(X)


@pytest.mark.parametrize("name", SELECTING)
@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.data())
def test_the_choice_does_not_depend_on_rows_names_or_threads(name, seed, weighted, data):
    rng = np.random.default_rng(seed)
    X, y, qid = graded(seed, queries=12, items=5)
    y[:2] = [0, 1]  # something to compare
    X = np.round(X, 1)  # items with equal features, too
    w = rng.uniform(0.5, 2.0, len(y)) if weighted and name != "RankBoost" else None
    p = rng.permutation(len(y))
    names = [f"q{k:02}" for k in range(12)]
    if not any(word in name for word in FOLLOWS_NAMES):
        names = data.draw(st.permutations(names))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKRLS_NUM_THREADS", "1")
        params, score, results, scores = fit(name, X, y, qid, np.arange(len(y)), list(range(12)), w)
        patch.setenv("RANKRLS_NUM_THREADS", "2")
        again, score_again, results_again, scores_again = fit(name, X, y, qid, p, names, w)
    assert {k: v for k, v in again.items() if k != "alpha"} == {k: v for k, v in params.items() if k != "alpha"}
    assert again.get("alpha", 1.0) == pytest.approx(params.get("alpha", 1.0), rel=1e-6)
    assert score_again == pytest.approx(score, abs=1e-9)
    for column in results:
        np.testing.assert_allclose(results_again[column], results[column], atol=1e-9)
    np.testing.assert_allclose(scores_again, scores, atol=1e-5 * (1.0 + np.abs(scores).max()))


def rare_features():
    """Items that differ in features which no other query has: no held-out model can tell them apart."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(12), 5)
    common = rng.integers(0, 2, (60, 3)).astype(float)
    rare = np.zeros((60, 24))
    rare[np.arange(60), 2 * qid + rng.integers(0, 2, 60)] = rng.integers(0, 2, 60)
    return common, np.hstack((common, rare)), rng.integers(0, 3, 60), qid


@pytest.mark.parametrize("options", [{}, {"solver": "dual"}, {"cv": 3}], ids=str)
def test_rare_features_do_not_make_the_choice_depend_on_rows(options):
    _, X, y, qid = rare_features()
    chosen = []
    for shuffle in range(6):
        p = np.random.default_rng(shuffle).permutation(60)
        model = RankRLSCV(**options).fit(X[p], y[p], qid=qid[p])
        chosen.append((model.alpha_, model.best_score_))
    np.testing.assert_allclose(chosen, [chosen[0]] * 6, rtol=1e-9)
