"""What is held out of preferences: items, votes or groups, and that it is left out entirely."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rankrls import (
    CGRankRLS,
    GreedyRankRLS,
    RankingPursuit,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVMCV,
    SparseRankRLS,
    SparseRankRLSCV,
    survival_pairs,
)
from rankrls._curves import logistic_slope
from rankrls.models.intake import preferred_items
from rankrls.selection.folds import item_folds, numbered_folds, with_new
from tests.refusals import Refusal

M, P = 30, 240
RNG = np.random.default_rng(0)
X = RNG.normal(size=(M, 4))
WINNERS = RNG.integers(0, M, P)
LOSERS = (WINNERS + RNG.integers(1, M, P)) % M


def within(sets: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of the items of each set, which are consecutive rows."""
    size = M // sets
    first, second = np.triu_indices(size, 1)
    starts = size * np.arange(sets)[:, None]
    return (starts + first).ravel(), (starts + second).ravel()


TEN, THREE = within(10), within(3)
BY_SET = np.repeat(np.arange(10), 3)
ONE = (WINNERS, LOSERS)
VOTES = "leave-one-out over 240 preferences: new votes, known items"
ITEMS = "5 x 5 folds of 30 items: new items"
TABLE = [
    (X, ONE, {}, ITEMS),
    (sparse.csr_array(X), ONE, {}, ITEMS),
    (X, ONE, {"new": "votes"}, VOTES),
    (np.eye(M), ONE, {}, VOTES),
    (sparse.eye_array(M, format="csr"), ONE, {}, VOTES),
    (3.0 * np.eye(M)[RNG.permutation(M)], ONE, {}, VOTES),
    (np.eye(M), ONE, {"new": "items"}, ITEMS),
    (X[:, :1], ONE, {}, ITEMS),
    (X, TEN, {}, "leave-one-out over 10 separate comparisons: new items"),
    (X, TEN, {"new": "items"}, "leave-one-out over 10 separate comparisons: new items"),
    (X, TEN, {"item_id": np.arange(M) % 15}, "leave-one-out over 5 separate comparisons: new items"),
    (X, TEN, {"item_id": np.arange(M) % 6}, "3 x 3 folds of 6 items: new items"),
    (X, THREE, {}, ITEMS),
    (X, TEN, {"groups": BY_SET}, "leave-one-out over 10 groups of preferences: new groups and items"),
    (X, TEN, {"groups": BY_SET, "item_id": np.arange(M) % 29}, "10 groups of preferences: new groups, known items"),
    (X, ONE, {"groups": WINNERS % 7}, "leave-one-out over 7 groups of preferences: new groups, known items"),
    (X, ONE, {"groups": WINNERS % 7, "new": "votes"}, VOTES),
    (X, ONE, {"groups": WINNERS % 7, "new": "items"}, ITEMS),
    (X, ONE, {"item_id": [f"patient {row // 2}" for row in range(M)]}, "5 x 5 folds of 15 items: new items"),
]


@pytest.mark.parametrize(("items", "pairs", "options", "expected"), TABLE)
def test_what_is_held_out(items, pairs, options, expected):
    model = RankRLSCV((1.0,)).fit_pairs(items, *pairs, **options)
    assert model.selection_.endswith(expected.replace("3 x 3", "5 x 3"))


def test_a_precomputed_kernel_of_identities_holds_out_votes():
    for K, expected in ((2.0 * np.eye(M), VOTES), (X @ X.T, ITEMS)):
        assert RankRLSCV((1.0,), kernel="precomputed").fit_pairs(K, *ONE).selection_ == expected


def test_the_number_of_folds():
    assert RankRLSCV((1.0,), cv=3).fit_pairs(X, *ONE).selection_ == "5 x 3 folds of 30 items: new items"
    assert RankRLSCV((1.0,), cv=3).fit_pairs(X, *TEN).selection_ == "3 folds of 10 separate comparisons: new items"
    assert RankSVMCV((1.0, 2.0)).fit_pairs(X, *ONE).selection_ == "5 folds of 30 items: new items"
    held = CGRankRLS((1.0, 2.0), selection="tikhonov").fit_pairs(X, *ONE).selection_
    assert held == "5 folds of 30 items: new items"


@pytest.mark.parametrize(
    ("options", "arguments", "refusal"),
    [
        ({}, {"new": "patients"}, Refusal("'patients'", "'items'", parameter="new")),
        ({}, {"new": "groups"}, Refusal("needs groups", parameter="groups")),
        ({"cv": 16}, {}, Refusal("from 2 to 15", "got 16", parameter="cv")),
        ({"cv": 1}, {}, Refusal("from 2 to 15", parameter="cv")),
        ({}, {"item_id": np.arange(3)}, Refusal("3 entries", parameter="item_id")),
    ],
)
def test_refusals(options, arguments, refusal):
    with refusal:
        RankRLSCV((1.0,), **options).fit_pairs(X, *ONE, **arguments)


def test_too_few_preferences_between_items_say_what_else_can_be_held_out():
    with Refusal("new='votes'", "groups", parameter="new"):
        RankRLSCV((1.0,)).fit_pairs(X, [0] * 6, [1, 2, 3, 4, 5, 6])
    with Refusal("at least four", "there are 3", parameter="new"):
        RankRLSCV((1.0,)).fit_pairs(X, [0, 1, 2], [1, 2, 0])


def as_data(**given):
    return with_new(
        preferred_items(RankRLS()._spec(), X, WINNERS, LOSERS, given.pop("strength", None), None, **given), "items"
    )


@pytest.mark.parametrize("item_id", [np.arange(M), np.arange(M) // 2], ids=["rows", "ids"])
def test_no_preference_of_a_held_out_item_is_fitted(item_id):
    folds, _ = item_folds(as_data(item_id=item_id), 5, range(3))
    assert len(folds) == 15
    for repetition in range(3):
        held = []
        for fold in folds[5 * repetition : 5 * repetition + 5]:
            inside = {*item_id[WINNERS[fold.test]], *item_id[LOSERS[fold.test]]}
            fitted = {*item_id[WINNERS[fold.train]], *item_id[LOSERS[fold.train]]}
            assert not inside & fitted
            held += inside
        assert len(held) == len({*held})


def test_every_preference_counts_the_same_on_average():
    """Although items of one stratum share a fold less often than others."""
    counts = np.zeros(P)
    for fold in item_folds(as_data(), 3, range(600))[0]:
        counts[fold.test] += fold.weight
    np.testing.assert_allclose(counts / 600, 1.0, atol=0.25)


def test_folds_have_the_same_mix_of_winners():
    time = np.arange(100.0)
    winners, losers = survival_pairs(time, np.ones(100))
    data = with_new(
        preferred_items(RankRLS()._spec(), np.random.default_rng(0).normal(size=(100, 2)), winners, losers, None, None),
        None,
    )
    for fold in item_folds(data, 5, range(2))[0]:
        items = np.unique((winners[fold.test], losers[fold.test]))
        np.testing.assert_array_equal(np.bincount(items // 20), 4)


KINDS = {
    "primal": (RankRLSCV, RankRLS, {}),
    "dual": (RankRLSCV, RankRLS, {"solver": "dual"}),
    "rbf": (RankRLSCV, RankRLS, {"kernel": "rbf", "gamma": 0.2}),
    "basis": (SparseRankRLSCV, SparseRankRLS, {"gamma": 0.2, "basis_indices": list(range(12))}),
    "positive": (RankRLSCV, RankRLS, {"positive": True}),
}


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_folds_of_items_equal_refits(kind, few):
    chooser, plain, options = KINDS[kind]
    rng = np.random.default_rng(1)
    some = slice(0, 26 if few else P)
    i, j = WINNERS[some], LOSERS[some]
    strength = rng.normal(size=len(i)) + 1.0
    strength[::7] = 0.0
    weight = rng.random(len(i)) + 0.2
    alphas = (0.05, 1.0, 20.0)
    offset = X + np.array([0.0, 1e3, 0.0, 0.0])
    model = chooser(alphas, scoring="pair_accuracy", cv=2, **options)
    model.fit_pairs(offset, i, j, strength=strength, weight=weight)
    data = with_new(preferred_items(RankRLS()._spec(), offset, i, j, strength, weight), None)
    folds, description = item_folds(data, 2, range(5))
    assert model.selection_ == description
    for alpha, mean in zip(model.cv_results_["alpha"], model.cv_results_["mean_score"], strict=True):
        right, total = 0.0, 0.0
        for fold in folds:
            fit = {"strength": strength[fold.train], "weight": weight[fold.train]}
            f = plain(alpha, **options).fit_pairs(offset, i[fold.train], j[fold.train], **fit).predict(offset)
            lead = np.sign(f[i[fold.test]] - f[j[fold.test]]) * np.sign(strength[fold.test])
            right += fold.weight @ (0.5 + 0.5 * lead)
            total += fold.weight.sum()
        assert mean == pytest.approx(right / total, abs=1e-12)


@pytest.mark.parametrize("kind", ["primal", "dual", "rbf", "basis"])
def test_leave_pair_out_equals_refits(kind):
    chooser, plain, options = KINDS[kind]
    i, j = WINNERS[:60], LOSERS[:60]
    model = chooser((0.3,), scoring="pair_accuracy", cv="leave_pair_out", **options).fit_pairs(X, i, j)
    right = []
    for a, b in zip(i, j, strict=True):
        rest = ~np.isin(i, (a, b)) & ~np.isin(j, (a, b))
        f = plain(0.3, **options).fit_pairs(X, i[rest], j[rest]).predict(X)
        right.append(f[a] > f[b])
    assert model.best_score_ == pytest.approx(np.mean(right))
    assert model.selection_.endswith(": new items")


def test_leave_pair_out_needs_rows_that_are_items():
    with Refusal("other rows are the same items", parameter="item_id"):
        RankRLSCV((1.0,), cv="leave_pair_out").fit_pairs(X, *ONE, item_id=np.arange(M) // 2)


def test_refitting_learners_use_the_same_folds():
    model = RankingPursuitCV(3, gamma=0.2, scoring="pair_accuracy").fit_pairs(X, *ONE)
    folds, _ = item_folds(as_data(), None, range(1))
    right, total = 0.0, 0.0
    for fold in folds:
        one = RankingPursuit(2, gamma=0.2).fit_pairs(X, WINNERS[fold.train], LOSERS[fold.train])
        f = one.predict(X)
        right += fold.weight @ (f[WINNERS[fold.test]] > f[LOSERS[fold.test]])
        total += fold.weight.sum()
    assert model.cv_results_["mean_score"][1] == pytest.approx(right / total)


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf", "gamma": 0.1}], ids=["linear", "rbf"])
def test_equal_items_are_ties_whatever_rounding_says(options):
    rng = np.random.default_rng(3)
    items = rng.normal(size=(20, 33)) * 10.0 ** rng.integers(-2, 3, 33) + 100.0
    items = np.concatenate((items, items))
    i, j = np.triu_indices(40, 1)
    same = j - i == 20
    model = RankRLSCV((1e-3, 1.0, 1e3), scoring="pair_accuracy", **options)
    model.fit_pairs(items, i, j, item_id=np.arange(40) % 20)
    data = with_new(preferred_items(RankRLS()._spec(), items, i, j, None, None, item_id=np.arange(40) % 20), None)
    folds, _ = item_folds(data, None, range(5))
    for alpha, mean in zip(model.cv_results_["alpha"], model.cv_results_["mean_score"], strict=True):
        right, total = 0.0, 0.0
        for fold in folds:
            f = RankRLS(alpha, **options).fit_pairs(items, i[fold.train], j[fold.train]).predict(items)
            lead = np.where(same[fold.test], 0.0, np.sign(f[i[fold.test]] - f[j[fold.test]]))
            right += fold.weight @ (0.5 + 0.5 * lead)
            total += fold.weight.sum()
        assert mean == pytest.approx(right / total, abs=1e-12)


def noise(kind, seed):
    rng = np.random.default_rng(seed)
    if kind == "times":
        times = survival_pairs(rng.exponential(size=60), rng.random(60) < 0.7)
        return rng.normal(size=(60, 300)), *times
    y = rng.normal(size=60)
    first, second = np.triu_indices(60, 1)
    turn = y[first] < y[second]
    return rng.normal(size=(60, 300)), np.where(turn, second, first), np.where(turn, first, second)


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf"}], ids=["linear", "rbf"])
@pytest.mark.parametrize("kind", ["all pairs", "times"])
def test_noise_is_worth_one_half(kind, options):
    """Holding out single pairs gives .99, and holding out events .61."""
    scores, covered = [], 0
    for seed in range(24):
        model = RankRLSCV((10.0,), scoring="pair_accuracy", **options).fit_pairs(*noise(kind, seed))
        scores.append(model.best_score_)
        covered += model.cv_results_["low"][0] <= 0.5 <= model.cv_results_["high"][0]
    assert np.mean(scores) == pytest.approx(0.5, abs=0.04)
    assert covered >= 20


def test_win_probabilities_of_new_items_are_those_of_chance_on_noise():
    items, winners, losers = noise("all pairs", 0)
    model = RankRLSCV((10.0,)).fit_pairs(items, winners, losers)
    p = model.predict_win_probability(items[winners], items[losers])
    assert np.abs(p - 0.5).max() < 0.2
    assert model.query_scores_ is None


@pytest.mark.parametrize(
    "model", [RankingPursuitCV(3), GreedyRankRLS(max_features=2, cv=5), RankSVMCV((1.0,)), CGRankRLS(cv=5)], ids=str
)
def test_a_fold_of_tied_votes_is_not_evaluated(model):
    """The second of five folds of votes has strength zero: the others are averaged, without warnings."""
    winners = np.tile(np.arange(5), 2)
    losers = np.r_[np.roll(np.arange(5), -1), np.roll(np.arange(5), -2)]
    tied = [*numbered_folds(5, 10, "votes")][1]
    strength = np.where(np.isin(np.arange(10), tied), 0.0, 1.0)
    model.fit_pairs(np.eye(5), winners, losers, strength=strength, new="votes")
    assert 0.0 <= model.best_score_ <= 1.0


def test_preferences_of_strength_zero_do_not_make_a_component_large():
    """Ten sets of three items, one of which also has many pairs that order nothing."""
    winners, losers = TEN
    one_set = np.zeros(40, dtype=int), np.ones(40, dtype=int)
    pairs = np.r_[winners, one_set[0]], np.r_[losers, one_set[1]]
    strength = np.r_[np.ones(len(winners)), np.zeros(40)]
    model = RankRLSCV((1.0,)).fit_pairs(X, *pairs, strength=strength)
    assert model.selection_.endswith("leave-one-out over 10 separate comparisons: new items")


@pytest.mark.parametrize("new", ["votes", "items"])
def test_win_probabilities_follow_from_held_out_margins_of_the_chosen_alpha(new):
    alphas = (1e4, 1.0, 1e-2)
    model = RankRLSCV(alphas).fit_pairs(X, *ONE, new=new)
    alone = RankRLSCV((model.alpha_,)).fit_pairs(X, *ONE, new=new)
    assert model.alpha_ != alphas[0]
    assert model.win_slope_ == pytest.approx(alone.win_slope_, rel=1e-6)


def test_a_negative_strength_is_a_preference_for_the_other_item():
    turned = RNG.random(P) < 0.5
    strength = np.where(turned, -1.5, 1.0)
    swapped = np.where(turned, LOSERS, WINNERS), np.where(turned, WINNERS, LOSERS)
    model = RankRLSCV((0.1, 1.0), cv="leave_pair_out").fit_pairs(X, *ONE, strength=strength)
    same = RankRLSCV((0.1, 1.0), cv="leave_pair_out").fit_pairs(X, *swapped, strength=np.abs(strength))
    np.testing.assert_allclose(model.cv_results_["mean_score"], same.cv_results_["mean_score"], rtol=1e-12)


def test_the_slope_of_win_probabilities_is_that_of_all_margins_of_refits():
    winners, losers = WINNERS[:40], LOSERS[:40]
    model = RankRLSCV((1.0,)).fit_pairs(X, winners, losers, new="votes")
    margins = np.empty(40)
    for e in range(40):
        rest = np.arange(40) != e
        scores = RankRLS(1.0).fit_pairs(X, winners[rest], losers[rest]).predict(X)
        margins[e] = scores[winners[e]] - scores[losers[e]]
    assert model.win_slope_ == pytest.approx(logistic_slope(margins, np.ones(40), np.ones(40)), rel=1e-6)
