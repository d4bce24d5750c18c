"""What plans hold out, and RankRLSCV on one global ranking: leave-pair-out, and when folds of rows stand in for it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

from rankrls import CGRankRLS, InputWarning, RankingPursuitCV, RankRLS, RankRLSCV
from rankrls.metrics import Measure
from rankrls.models.intake import labelled_items, preferred_items
from rankrls.selection import plans
from rankrls.selection.folds import with_new
from tests.models.oracles import kernel_of_sums
from tests.refusals import Refusal

RNG = np.random.default_rng(30)
X = RNG.normal(size=(12, 3))
Y = np.round(X[:, 0] + RNG.normal(size=12), 1)
Y[5] = Y[6]
ALPHAS = (0.02, 40.0)
KINDS = [{"solver": "primal"}, {"solver": "dual"}, {"kernel": "rbf", "gamma": 0.3}]


def left_out_pairs(y, make, features=X, *, weights=None):
    """Error over every pair with different labels, each left out of a refit of its own; and its standard error."""
    m = len(y)
    wrong, seen = np.zeros(m), np.zeros(m)
    for i in range(m):
        for j in range(i):
            if y[i] == y[j]:
                continue
            train = np.ones(m, dtype=bool)
            train[[i, j]] = False
            w = None if weights is None else weights[train]
            f = make().fit(features[train], y[train], sample_weight=w).predict(features[[i, j]])
            difference = 0.0 if abs(f[0] - f[1]) < 1e-12 else f[0] - f[1]
            error = 0.5 * (1.0 - np.sign(difference) * np.sign(y[i] - y[j]))
            pair = 1.0 if weights is None else weights[i] * weights[j]
            wrong[[i, j]] += pair * error
            seen[[i, j]] += pair
    mean = wrong.sum() / seen.sum()
    return mean, 2.0 * np.linalg.norm(wrong - mean * seen) / seen.sum()


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("balance", ["pairs", "examples", "queries"])
def test_leave_pair_out_equals_refits(balance, kind):
    model = RankRLSCV(ALPHAS, balance=balance, **kind).fit(X, Y)
    assert model.selection_ == "leave-pair-out over 12 items"
    for k, alpha in enumerate(model.cv_results_["alpha"]):
        mean, error = left_out_pairs(Y, lambda a=alpha: RankRLS(a, balance=balance, **kind))
        assert model.cv_results_["mean_score"][k] == pytest.approx(mean)
        assert model.cv_results_["standard_error"][k] == pytest.approx(error)
    assert model.best_index_ == int(np.argmin(model.cv_results_["mean_score"]))
    plain = RankRLS(model.alpha_, balance=balance, **kind).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-9)
    accuracy = RankRLSCV(ALPHAS, balance=balance, scoring="pair_accuracy", **kind).fit(X, Y)
    np.testing.assert_allclose(accuracy.cv_results_["mean_score"], 1 - model.cv_results_["mean_score"])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_one_query_by_name_is_one_global_ranking(kind):
    a = RankRLSCV(ALPHAS, **kind).fit(X, Y, qid=["only"] * len(Y))
    b = RankRLSCV(ALPHAS, **kind).fit(X, Y)
    np.testing.assert_array_equal(a.cv_results_["mean_score"], b.cv_results_["mean_score"])


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("balance", ["pairs", "examples", "queries"])
def test_pairs_with_equal_features_are_half_an_error(balance, kind):
    features = RNG.integers(0, 2, size=(12, 3)).astype(float)
    model = RankRLSCV(ALPHAS, balance=balance, **kind).fit(features, Y)
    for k, alpha in enumerate(model.cv_results_["alpha"]):
        mean, _ = left_out_pairs(Y, lambda a=alpha: RankRLS(a, balance=balance, **kind), features)
        assert model.cv_results_["mean_score"][k] == pytest.approx(mean)


FALLBACKS = [
    ({"ties": "exclude"}, {}),
    ({"ties": ("include", "exclude")}, {}),
    ({"regression_weight": 0.5}, {"sample_weight": np.linspace(1, 2, 12)}),
    ({"scoring": "ndcg@5"}, {}),
    ({"scoring": Measure("disagreement", tied_labels="half")}, {}),
    ({"scoring": lambda y, f: -float(np.abs(y - f).max())}, {}),
    ({"balance": "pairs"}, {"sample_weight": np.linspace(1, 2, 12)}),
    ({"balance": ("examples", "queries")}, {"sample_weight": np.linspace(1, 2, 12)}),
]


@pytest.mark.filterwarnings("ignore:Without qid")
@pytest.mark.parametrize(("options", "arguments"), FALLBACKS, ids=lambda v: str(list(v)))
def test_five_folds_where_leave_pair_out_would_be_wrong(options, arguments):
    model = RankRLSCV(ALPHAS, **options).fit(X, np.clip(Y, 0, None), **arguments)
    assert model.selection_ == "5 folds of 12 rows"


def test_five_folds_where_only_a_later_target_has_ties():
    targets = np.column_stack((Y + 0.001 * np.arange(12), np.round(Y)))
    assert RankRLSCV(ALPHAS, ties="exclude").fit(X, targets).selection_ == "5 folds of 12 rows"


def test_five_folds_of_many_items(monkeypatch):
    monkeypatch.setattr(plans, "MAX_PAIR_HOLDOUT", 11)
    assert RankRLSCV(ALPHAS).fit(X, Y).selection_ == "5 folds of 12 rows"


@pytest.mark.filterwarnings("ignore:Without qid")
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("cv", [None, 3])
def test_folds_of_rows_equal_refits(cv, kind):
    y = np.clip(Y, 0, None)
    for scoring, function in (("ndcg@4", Measure("ndcg", k=4)), ("disagreement", Measure("disagreement"))):
        if cv is None and scoring == "disagreement":
            continue
        model = RankRLSCV(ALPHAS, cv=cv, scoring=scoring, **kind).fit(X, y)
        folds = list(KFold(cv or 5, shuffle=True, random_state=0).split(X))
        for k, alpha in enumerate(model.cv_results_["alpha"]):
            values = []
            for train, test in folds:
                scores = RankRLS(alpha, **kind).fit(X[train], y[train]).predict(X[test])
                values.append(function(y[test], scores))
            assert model.cv_results_["mean_score"][k] == pytest.approx(np.mean(values))
            assert model.cv_results_["standard_error"][k] == pytest.approx(
                np.std(values, ddof=1) / np.sqrt(len(values))
            )


def test_three_items_fall_back_to_folds():
    model = RankRLSCV(ALPHAS, cv=[([0, 1], [2, 3])]).fit(X[:4], [0, 1, 0, 1])
    assert model.selection_ == "1 folds of rows (given folds)"
    with Refusal("nothing can be evaluated", parameter="cv"):
        RankRLSCV(ALPHAS).fit(X[:3], [0, 1, 2])  # folds of one row hold no pair


def test_constant_features_score_one_half():
    model = RankRLSCV(ALPHAS).fit(np.ones((12, 2)), Y)
    np.testing.assert_allclose(model.cv_results_["mean_score"], 0.5)
    assert model.alpha_ == 40.0
    np.testing.assert_array_equal(RankRLSCV().fit(np.zeros((12, 2)), Y).coef_, 0.0)


@pytest.mark.parametrize("kind", KINDS[:2], ids=str)
def test_an_offset_of_the_columns_does_not_reach_leave_pair_out(kind):
    plain = np.round(X * 1024) / 1024
    a, b = (RankRLSCV(ALPHAS, **kind).fit(Z, Y) for Z in (plain, plain + 1e7))
    np.testing.assert_array_equal(a.cv_results_["mean_score"], b.cv_results_["mean_score"])


@pytest.mark.parametrize("model", [RankRLSCV(scoring="ndcg@10"), CGRankRLS(scoring="map", random_state=0)])
def test_positions_of_one_ranking_of_all_rows_are_warned_of_once(model):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    with pytest.warns(InputWarning) as caught:
        model.fit(X, y)
    (warning,) = caught
    told = Refusal("Without qid", str(model.scoring), kind=InputWarning, parameter="qid")
    told.check(warning.message, str(warning.message))
    assert warning.filename == __file__
    model.fit(X, y, qid=np.arange(60) // 10)


def test_held_out_scores_of_refits_that_differ_by_rounding_are_equal():
    """The kernel sees sums of features, and each item again with its features in another order."""
    rng = np.random.default_rng(0)
    items = rng.random((24, 3))
    items = np.vstack([items, items[:, [2, 0, 1]]])
    y = np.round(3.0 * items.sum(axis=1) + rng.normal(size=48))
    model = RankingPursuitCV(kernel=kernel_of_sums).fit(items, y, qid=np.tile(np.repeat(np.arange(6), 4), 2))
    first, second = model.predict(items).reshape(2, 24)
    assert not np.array_equal(first, second)
    first, second = model.held_out_scores_.reshape(2, 24)
    np.testing.assert_array_equal(first, second)


def check_splits(splits, held, unit_of):
    """Check that each split holds out all rows of some units, trains on all others, and that each row is held once."""
    every = np.arange(len(unit_of))
    for split, rows in zip(splits, held, strict=True):
        np.testing.assert_array_equal(np.sort(rows), np.flatnonzero(np.isin(unit_of, unit_of[rows])))
        np.testing.assert_array_equal(np.sort(split.train), np.setdiff1d(every, rows))
    np.testing.assert_array_equal(np.sort(np.concatenate(held)), every)


@pytest.mark.parametrize(("cv", "n_splits"), [(None, 7), (3, 3)])
def test_a_split_trains_on_no_row_of_the_queries_that_it_watches(cv, n_splits):
    qid = np.random.default_rng(0).permutation(np.repeat(np.arange(7), 4))
    items = np.random.default_rng(1).normal(size=(28, 2))
    data = labelled_items(RankRLS()._spec(), items, np.arange(28.0), qid, None)
    plan = plans.QueryPlanner(Measure("disagreement"), data, 0.0).exact(cv, [])
    assert type(plan) is plans.UnitsPlan
    splits = plan.splits(data)
    assert len(splits) == n_splits
    for split in splits:
        np.testing.assert_array_equal(split.data.Y[:, 0], split.watched)  # the labels number the rows
    check_splits(splits, [split.watched for split in splits], qid)


@pytest.mark.parametrize(("cv", "n_splits"), [(None, 7), (3, 3)])
def test_a_split_trains_on_no_preference_of_the_groups_that_it_watches(cv, n_splits):
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(7), 4))
    winners, losers = np.random.default_rng(1).permutation(56).reshape(2, 28)
    items = np.random.default_rng(2).normal(size=(56, 2))
    strength = 1.0 + np.arange(28)
    given = preferred_items(RankRLS()._spec(), items, winners, losers, strength, None, groups=groups)
    data = with_new(given, "groups")
    plan = plans.PreferencePlanner(Measure("disagreement"), data).exact(cv, [])
    assert type(plan) is plans.GroupsPlan
    splits = plan.splits(data)
    assert len(splits) == n_splits
    tables = [split.data.preferences for split in splits]
    held = [(table.strength - 1.0).astype(int) for table in tables]  # the strengths number the preferences
    for split, table, rows in zip(splits, tables, held, strict=True):
        np.testing.assert_array_equal(split.watched[table.winners], winners[rows])
        np.testing.assert_array_equal(split.watched[table.losers], losers[rows])
    check_splits(splits, held, groups)
