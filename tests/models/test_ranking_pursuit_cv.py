"""Choosing the number of terms, against refits of every number."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rankrls import RankingPursuit, RankingPursuitCV, load, save
from rankrls.metrics import Measure, preference_accuracy
from tests.models.oracles import kernel_matrix, ranking_data


def errors_by_refits(folds, make, X, y, qid, most, w=None, precomputed=False):
    """The disagreement error of every held-out query and number of stages: a fit for each."""
    out = []
    for train, test in folds:
        inner = X[np.ix_(train, train)] if precomputed else X[train]
        held = X[np.ix_(test, train)] if precomputed else X[test]
        columns = []
        for p in range(1, most + 1):
            model = make(p).fit(
                inner, y[train], qid=None if qid is None else qid[train], sample_weight=None if w is None else w[train]
            )
            columns.append(
                Measure("disagreement")(
                    y[test], model.predict(held), qid=None if qid is None else qid[test],
                    sample_weight=None if w is None else w[test], per_query=True,
                )
            )  # fmt: skip
        out.append(np.column_stack([np.atleast_1d(c) for c in columns]))
    values = np.vstack(out)
    return np.nanmean(values, axis=0)


@pytest.mark.parametrize("dictionary", ["kernel", "features"])
@pytest.mark.parametrize("backfit", [True, False])
def test_folds_of_whole_queries_are_refits(dictionary, backfit):
    X, y, qid = ranking_data(3, queries=12, n=6)
    w = np.random.default_rng(0).uniform(0.3, 2.0, len(y))
    parameters = {"dictionary": dictionary, "backfit": backfit, "gamma": 0.3, "balance": "pairs"}
    model = RankingPursuitCV(7, **parameters).fit(X, y, qid=qid, sample_weight=w)
    assert model.selection_ == "5 folds of 12 queries"
    # the same folds as a splitter's
    queries = np.unique(qid)
    from sklearn.model_selection import KFold

    splits = KFold(5, shuffle=True, random_state=0).split(np.empty(12))
    held = [np.isin(qid, queries[test]) for _, test in splits]
    folds = [(np.flatnonzero(~h), np.flatnonzero(h)) for h in held]
    make = lambda p: RankingPursuit(p, **parameters)
    expected = errors_by_refits(folds, make, X, y, qid, 7, w)
    np.testing.assert_allclose(model.cv_results_["mean_score"], expected, atol=1e-12)
    assert model.cv_results_["n_basis"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    best = int(np.argmin(expected)) + 1
    assert model.best_params_ == {**model.best_params_, "n_basis": best}
    np.testing.assert_allclose(model.predict(X), make(best).fit(X, y, qid=qid, sample_weight=w).predict(X))
    np.testing.assert_allclose(list(model.staged_predict(X))[-1], model.predict(X), rtol=1e-9, atol=1e-12)
    assert model.path_.n_stages == best


def test_one_ranking_has_folds_of_rows_and_a_precomputed_kernel_is_cut_rightly():
    X, y, _ = ranking_data(4, n=5)
    y = y + 0.1 * np.random.default_rng(0).normal(size=len(y))
    K = kernel_matrix("rbf", X)
    rows = np.random.default_rng(1).permutation(len(y))
    folds = [(np.setdiff1d(rows, part), part) for part in np.array_split(rows, 3)]
    w = np.ones(len(y))
    w[folds[0][1][0]] = 0.0
    model = RankingPursuitCV(6, cv=folds, kernel="precomputed").fit(K, y, sample_weight=w)
    kept = [tuple(part[w[part] > 0] for part in fold) for fold in folds]
    expected = errors_by_refits(
        kept, lambda p: RankingPursuit(p, kernel="precomputed"), K, y, None, 6, precomputed=True
    )
    np.testing.assert_allclose(model.cv_results_["mean_score"], expected, atol=1e-12)
    plain = RankingPursuitCV(6, cv=folds, gamma=0.2).fit(X, y, sample_weight=w)
    assert plain.best_params_["n_basis"] == model.best_params_["n_basis"]
    np.testing.assert_allclose(model.predict(K), plain.predict(X), rtol=1e-8, atol=1e-10)
    assert RankingPursuitCV(3).fit(X, y).selection_ == f"5 folds of {len(y)} rows"
    assert RankingPursuitCV(3, cv=4).fit(X, y).selection_ == f"4 folds of {len(y)} rows"


@pytest.mark.parametrize("dictionary", ["kernel", "features"])
def test_validation_data_and_kernel_grids(dictionary):
    X, y, qid = ranking_data(6, queries=30)
    train = qid < np.median(qid)
    grid = {"gamma": (0.05, 0.5), "balance": ("pairs", "queries"), "scoring": "ndcg@3", "dictionary": dictionary}
    model = RankingPursuitCV(5, **grid).fit(
        X[train], y[train], qid=qid[train], X_val=sparse.csr_array(X[~train]), y_val=y[~train], qid_val=qid[~train]
    )
    seen = {}
    for k in range(len(model.cv_results_["n_basis"])):
        row = {name: column[k] for name, column in model.cv_results_.items()}
        parameters = {name: row[name] for name in ("gamma", "balance") if name in row}
        one = RankingPursuit(int(row["n_basis"]), dictionary=dictionary, **parameters)
        scores = one.fit(X[train], y[train], qid=qid[train]).predict(X[~train])
        seen[k] = Measure("ndcg", k=3)(y[~train], scores, qid=qid[~train])
        np.testing.assert_allclose(row["mean_score"], seen[k], rtol=1e-10)
    assert len(seen) == 5 * 2 * (2 if dictionary == "kernel" else 1)
    assert model.best_score_ == pytest.approx(max(seen.values()))
    assert model.selection_.startswith("validation data with")


def test_the_fewest_of_equals_and_of_one_standard_error():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(120, 10)), np.repeat(np.arange(24), 5)
    y = 3 * X[:, 4] + X[:, 7] + rng.normal(size=120)
    model = RankingPursuitCV(10, dictionary="features", rule="one_se").fit(X, y, qid=qid)
    mean, error = model.cv_results_["mean_score"], model.cv_results_["standard_error"]
    best = int(np.argmin(mean))
    assert model.best_params_["n_basis"] == 1 + int(np.argmax(mean <= mean[best] + error[best]))
    exact = RankingPursuitCV(10, dictionary="features").fit(X, X[:, 4], qid=qid)
    assert exact.best_params_["n_basis"] == 1
    assert exact.cv_results_["mean_score"].tolist() == [0.0] * 10  # ended paths stay where they ended
    assert not exact.n_basis_at_edge_
    assert RankingPursuitCV(2, dictionary="features").fit(X, y, qid=qid).n_basis_at_edge_


@pytest.mark.parametrize("grouped", [False, True])
def test_preferences_are_left_out_by_refits(grouped):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4))
    i = rng.integers(0, 20, 60)
    j = (i + rng.integers(1, 20, 60)) % 20
    s = X[i, 0] - X[j, 0] + rng.normal(size=60)
    groups = np.arange(60) % 7 if grouped else None
    model = RankingPursuitCV(5, gamma=0.2, cv=None if grouped else 4)
    model.fit_pairs(X, i, j, strength=s, groups=groups, new="groups" if grouped else "votes")
    expected = "5 folds of 7 groups of preferences: new groups" if grouped else "4 folds of 60 preferences: new votes"
    assert model.selection_ == f"{expected}, known items"
    from rankrls.models.intake import preferred_items
    from rankrls.selection.folds import preference_units, with_new

    data = with_new(
        preferred_items(RankingPursuit()._spec(), X, i, j, s, None, groups=groups), "groups" if grouped else "votes"
    )
    blocks = data.blocks(preference_units(data, 5 if grouped else 4)[0])
    values = np.zeros((len(blocks), 5))
    for b, block in enumerate(blocks):
        left = np.setdiff1d(np.arange(60), block)
        for p in range(5):
            one = RankingPursuit(p + 1, gamma=0.2).fit_pairs(X, i[left], j[left], strength=s[left])
            values[b, p] = 1 - preference_accuracy(one.predict(X), i[block], j[block], strength=s[block])
    np.testing.assert_allclose(model.cv_results_["mean_score"], values.mean(axis=0), atol=1e-12)
    best = RankingPursuit(model.best_params_["n_basis"], gamma=0.2).fit_pairs(X, i, j, strength=s)
    np.testing.assert_allclose(model.predict(X), best.predict(X))


@pytest.mark.parametrize("options", [{"dictionary": "features"}, {"gamma": 0.1}, {"kernel": "precomputed"}])
def test_a_model_without_terms_is_saved_and_loaded(tmp_path, options):
    """Items that no column tells apart leave nothing to take."""
    X, y, qid = np.ones((12, 12)), np.tile([0.0, 1.0, 2.0], 4), np.repeat(np.arange(4), 3)
    model = RankingPursuitCV(3, **options).fit(X, y, qid=qid)
    assert (model.n_basis_, model.path_.n_stages) == (0, 0)
    save(model, tmp_path / "m.rankrls")
    again = load(tmp_path / "m.rankrls")
    assert not again.predict(X).any()
    assert list(again.staged_predict(X)) == []


@pytest.mark.parametrize("with_queries", [True, False])
def test_more_features_than_rows(with_queries):
    rng = np.random.default_rng(3)
    X, y, qid = rng.normal(size=(20, 300)), rng.normal(size=20), np.repeat(np.arange(5), 4)
    parameters = {"dictionary": "features"}
    rows = rng.permutation(20)
    tests = [np.flatnonzero(qid == q) for q in range(5)] if with_queries else np.array_split(rows, 5)
    folds = [(np.setdiff1d(rows, test), test) for test in tests]
    given = qid if with_queries else None
    model = RankingPursuitCV(4, cv=folds, **parameters).fit(X, y, qid=given)
    expected = errors_by_refits(folds, lambda p: RankingPursuit(p, **parameters), X, y, given, 4)
    np.testing.assert_allclose(model.cv_results_["mean_score"], expected, atol=1e-12)
