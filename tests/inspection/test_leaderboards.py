"""The leaderboard against refits, and against simulations of Bradley and Terry's model."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import t

from rankrls import CGRankRLS, RankRLS, RankRLSCV, SparseRankRLS, SparseRankRLSCV
from rankrls._errors import InputError, InputWarning
from rankrls.inspection import leaderboard


def votes(rng, ability, n, groups=0, spread=0.0):
    """Votes of independent voters, or by groups that move each item's ability; and their expected margins."""
    a, b = rng.integers(len(ability), size=(2, n))
    a, b = a[a != b], b[a != b]
    group = rng.integers(groups, size=len(a)) if groups else None
    moved = rng.normal(0, spread, (max(groups, 1), len(ability)))
    of = 0 if group is None else group
    draws = rng.normal(0, spread, (400, 1)) * np.sqrt(2)
    gap = ability[a] - ability[b]
    expected = 2 * expit(gap + draws).mean(axis=0) - 1
    first = rng.random(len(a)) < expit(gap + moved[of, a] - moved[of, b])
    truth = np.linalg.lstsq(np.eye(len(ability))[a] - np.eye(len(ability))[b], expected, rcond=None)[0]
    return np.where(first, a, b), np.where(first, b, a), group, truth - truth.mean()


@pytest.mark.parametrize("kind", ["linear", "rbf", "basis"])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_interval_is_the_jackknife_of_refits(kind, grouped):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 3))
    winners, losers, groups, _ = votes(rng, X[:, 0], 60, groups=7, spread=0.5)
    strength, weight = rng.choice([0.0, 1.0, 2.0], len(winners)), rng.uniform(0.5, 2.0, len(winners))
    groups = groups if grouped else np.arange(len(winners))
    how = {"alpha": 1e-4, "kernel": "rbf", "gamma": 0.3} if kind != "linear" else {"alpha": 1e-6}
    model = SparseRankRLS(n_basis=4, random_state=0, **how) if kind == "basis" else RankRLS(**how)
    given = {"strength": strength, "weight": weight}
    found = leaderboard(winners, losers, X=X, groups=groups if grouped else None, estimator=model, **given)
    basis = {} if kind != "basis" else {"basis_indices": model.fit_pairs(X, winners, losers, **given).basis_indices_}

    def scores(kept):
        part = {name: values[kept] for name, values in given.items()}
        out = type(model)(**model.get_params() | basis).fit_pairs(X, winners[kept], losers[kept], **part).predict(X)
        return out - out.mean()

    whole, numbers = scores(np.ones(len(winners), dtype=bool)), np.unique(groups)
    left_out = np.array([scores(groups != g) for g in numbers])
    variance = ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0) * (1 - 1 / len(numbers))
    order = found.item
    np.testing.assert_allclose(found.rating, whole[order], rtol=1e-6, atol=1e-8)
    if kind == "linear":  # the penalty's share is nothing here
        half = t.ppf(0.975, len(numbers) - 1) * np.sqrt(variance[order])
        np.testing.assert_allclose(found.high - found.rating, half, rtol=1e-4)
    else:
        half = t.ppf(0.975, len(numbers) - 1) * np.sqrt(variance[order])
        assert (found.high - found.rating >= half * (1 - 1e-6)).all()


@pytest.mark.parametrize(
    ("items", "n", "spread", "groups"),
    [(6, 60, 1.0, 0), (10, 300, 0.2, 0), (10, 300, 3.0, 0), (40, 250, 1.0, 0), (10, 3000, 1.0, 13)],
)
def test_intervals_hold_the_truth(items, n, spread, groups):
    rng = np.random.default_rng(0)
    rating, rank = [], []
    for _ in range(100):
        winners, losers, group, truth = votes(rng, spread * rng.normal(size=items), n, groups, 0.7 if groups else 0.0)
        found = leaderboard(winners, losers, groups=group, names=range(items))
        of = truth[found.item]
        rating.append((found.low <= of) & (of <= found.high))
        ranks = 1 + (truth[None] > of[:, None] + 1e-12).sum(axis=1)
        rank.append((found.best_rank <= ranks) & (ranks <= found.worst_rank))
    assert 0.9 <= np.mean(rating) <= 0.98
    assert np.mean(rank) >= 0.95


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("features", [None, 5])
def test_many_items_are_rated_as_by_dense_algebra(features, grouped):
    rng = np.random.default_rng(0)
    m, alpha = 300, 0.5
    X = np.eye(m) if features is None else rng.normal(size=(m, features)) + 3.0
    ability = rng.normal(size=m)
    winners, losers, groups, _ = votes(rng, 2.0 * ability, 1500, groups=40, spread=0.5)
    c, s = rng.uniform(0.5, 2.0, len(winners)), rng.choice([0.0, 1.0], len(winners), p=[0.2, 0.8])
    own = groups if grouped else np.arange(len(winners))
    items = {"names": np.arange(m)} if features is None else {"X": X}
    how = {"strength": s, "weight": c, "groups": groups if grouped else None, "estimator": RankRLS(alpha=alpha)}
    found = leaderboard(winners, losers, **items, **how)
    D = X[winners] - X[losers]
    A = (D.T * c) @ D + alpha * np.eye(X.shape[1])
    w = np.linalg.solve(A, D.T @ (c * s))
    moves = []
    for g in np.unique(own):  # the held-out residuals of a group, and what they move
        E, e = D[own == g], c[own == g]
        without = np.linalg.solve(A - (E.T * e) @ E, D.T @ (c * s) - E.T @ (e * s[own == g]))
        moves.append(np.linalg.solve(A, E.T @ (e * (s[own == g] - E @ without))))
    moves, Z = np.array(moves), X - X.mean(axis=0)
    shares = np.cov(moves.T, bias=True) * (len(moves) - 1)
    covariance = Z @ (shares + alpha * np.mean(c * s**2) * np.linalg.inv(A @ A)) @ Z.T
    scores, deviation = Z @ w, np.sqrt(np.diag(covariance))
    quantile = t.ppf(0.975, len(moves) - 1)
    apart = deviation[:, None] ** 2 + deviation**2 - 2.0 * covariance
    above = scores[:, None] - scores > quantile * np.sqrt(np.maximum(apart, 0.0))
    np.testing.assert_allclose(found.rating, scores[found.item], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.high - found.rating, quantile * deviation[found.item], rtol=1e-8)
    np.testing.assert_array_equal(found.best_rank, 1 + above.sum(axis=0)[found.item])
    np.testing.assert_array_equal(found.worst_rank, m - above.sum(axis=1)[found.item])


@pytest.mark.parametrize("grouped", [False, True])
def test_ratings_on_the_scale_of_elo_and_effects_are_those_of_a_logistic_regression(grouped):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    m, alpha, unit = 8, 0.3, 400 / np.log(10)
    winners, losers, groups, _ = votes(rng, rng.normal(size=m), 400, groups=9, spread=0.5)
    p = len(winners)
    s, c = rng.choice([0.0, 0.5, 1.0], p), rng.choice([0.0, 0.5, 2.0], p)
    controls = {"length": rng.normal(0.5, 30.0, p), "lists": rng.integers(-2, 3, p)}
    own = groups if grouped else np.arange(p)
    found = leaderboard(
        winners,
        losers,
        names=[f"i{j}" for j in range(m)],
        strength=s,
        weight=c,
        groups=groups if grouped else None,
        controls=controls,
        scale="elo",
        anchor=("i3", 1100),
        estimator=RankRLS(alpha=alpha),
    )
    used = c > 0
    C = np.column_stack([*controls.values()])
    sizes = np.sqrt(np.average(C**2, axis=0, weights=c))
    D = np.hstack([np.eye(m)[winners] - np.eye(m)[losers], C / sizes])
    logistic = LogisticRegression(C=1 / alpha, fit_intercept=False, tol=1e-10, max_iter=10_000)
    shares = (1 + s) / 2
    logistic.fit(np.vstack([D, D]), np.repeat([1, 0], p), np.r_[c * shares, c * (1 - shares)])
    w = logistic.coef_[0]
    wanted = 1100 + unit * (w[:m] - w[3])
    order = np.argsort(-wanted)
    assert found.item.tolist() == [f"i{j}" for j in order]
    np.testing.assert_allclose(found.rating, wanted[order], atol=1e-3)
    np.testing.assert_allclose(found.effects["effect"], unit * w[m:] / sizes, rtol=1e-5)
    assert found.effects["control"].tolist() == ["length", "lists"]
    # one step of Newton's method without each group, from the solution of all
    share = 1 / (1 + np.exp(-D @ w))
    A = (D.T * (c * share * (1 - share))) @ D + alpha * np.eye(m + 2)
    score = D * (c * (shares - share))[:, None]
    curvature = c * share * (1 - share)
    moves = []
    for g in np.unique(own[used]):
        E = D[own == g]
        moves.append(np.linalg.solve(A - (E.T * curvature[own == g]) @ E, score[own == g].sum(axis=0)))
    G = len(moves)
    moves = np.array(moves)
    covariance = np.cov(moves.T, bias=True) * (G - 1) + alpha * np.linalg.inv(A @ A)
    quantile = t.ppf(0.975, G - 1)
    error = quantile * np.sqrt(np.diag(covariance)[m:])
    np.testing.assert_allclose(found.effects["high"] - found.effects["effect"], unit * error / sizes, rtol=1e-4)
    R = np.eye(m + 2)[:m] - np.eye(m + 2)[3]
    half = unit * quantile * np.sqrt(np.einsum("ij,jk,ik->i", R, covariance, R))
    np.testing.assert_allclose((found.rating - found.low)[found.item != "i3"], half[order][order != 3], rtol=1e-4)
    at = found.item == "i3"
    assert (found.low[at], found.rating[at], found.high[at]) == (1100, 1100, 1100)
    assert "length" in str(found)


def test_the_penalized_likelihood_of_elo_ratings_is_stationary():
    unit = 400 / np.log(10)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        m, p, alpha = 4, 12, 1e-5
        i = rng.integers(m, size=p)
        j = (i + rng.integers(1, m, size=p)) % m
        C = rng.standard_t(1.0, size=(p, 2))  # a few votes have enormous controls, where plain Newton steps go too far
        s = rng.choice([0.0, 0.5, 1.0], p)
        controls = {"a": C[:, 0], "b": C[:, 1]}
        how = {"controls": controls, "scale": "elo", "estimator": RankRLS(alpha=alpha), "names": range(m)}
        found = leaderboard(i, j, strength=s, **how)
        sizes = np.sqrt((C**2).mean(axis=0))
        D = np.hstack([np.eye(m)[i] - np.eye(m)[j], C / sizes])
        w = np.concatenate(((found.rating - 1000)[np.argsort(found.item)], found.effects["effect"] * sizes)) / unit
        gradient = D.T @ (expit(D @ w) - (1 + s) / 2) + alpha * w
        np.testing.assert_allclose(gradient, 0.0, atol=1e-7)


def test_weights_of_votes_with_controls_count_copies():
    rng = np.random.default_rng(0)
    winners, losers, groups, _ = votes(rng, rng.normal(size=4), 200, groups=9, spread=0.5)
    length = rng.normal(size=len(winners))
    weight = rng.integers(0, 4, len(winners))
    how = {"names": range(4), "scale": "elo"}
    weighted = leaderboard(winners, losers, weight=weight, groups=groups, controls={"length": length}, **how)
    copied = np.repeat(np.arange(len(winners)), weight)
    how |= {"groups": groups[copied], "controls": {"length": length[copied]}}
    copies = leaderboard(winners[copied], losers[copied], **how)
    np.testing.assert_allclose(weighted.rating, copies.rating, rtol=1e-10)
    np.testing.assert_allclose(weighted.high, copies.high, rtol=1e-10)
    np.testing.assert_allclose(weighted.effects["low"], copies.effects["low"], rtol=1e-9)


def test_controls_remove_what_they_explain():
    rng = np.random.default_rng(0)
    ability, truth, effect = np.linspace(-1.0, 1.0, 6), [], []
    unit = 400 / np.log(10)
    for _ in range(60):
        a = rng.integers(6, size=1500)
        b = (a + rng.integers(1, 6, size=1500)) % 6
        length = 0.5 * (b - a) + rng.normal(size=1500)  # the worst items write the longest answers
        first = rng.random(1500) < expit(ability[a] - ability[b] + 0.8 * length)
        winners, losers = np.where(first, a, b), np.where(first, b, a)
        controls = {"length": np.where(first, length, -length)}
        how = {"controls": controls, "scale": "elo", "estimator": RankRLS(alpha=0.01)}
        found = leaderboard(winners, losers, names=range(6), **how)
        of = 1000 + unit * (ability - ability.mean())[found.item]
        truth.append((found.low <= of) & (of <= found.high))
        effect.append((found.effects["low"] <= unit * 0.8) & (unit * 0.8 <= found.effects["high"]))
    assert 0.9 <= np.mean(truth) <= 0.99
    assert 0.85 <= np.mean(effect) <= 1.0


def test_no_matrix_of_all_rows_of_X_is_made():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    winners, losers, _, _ = votes(rng, X[:50, 0], 500)
    tracemalloc.start()
    try:
        leaderboard(winners, losers, X=X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(X) ** 2 / 5


def test_votes_that_do_not_connect_all_items_are_warned_of():
    apart = ["a", "b", "c"] * 4, ["b", "c", "a"] * 2 + ["c", "a", "b"] * 2
    others = [f"other {name}" for name in apart[0]], [f"other {name}" for name in apart[1]]
    with pytest.warns(InputWarning, match="2 sets of items"):
        leaderboard(apart[0] + others[0], apart[1] + others[1])
    leaderboard([*apart[0], *others[0], "a"], [*apart[1], *others[1], "other a"])  # a warning would be an error


def test_names_ties_and_items_without_votes():
    found = leaderboard(["b", "b", "a"] * 6, ["a", "c", "c"] * 6, strength=[1.0, 1.0, 0.0] * 6)
    assert found.item.tolist() == ["b", "a", "c"] or found.item.tolist() == ["b", "c", "a"]
    assert found.votes.tolist() == [12, 12, 12]
    assert found.best_rank[0] == found.worst_rank[0] == 1
    assert found.best_rank[1:].tolist() == [2, 2]
    lines = str(found).splitlines()
    assert len(lines) == 4
    assert lines[1].split()[:2] == ["1", "b"]
    more = leaderboard([1, 1, 0] * 6, [0, 2, 2] * 6, strength=[1.0, 1.0, 0.0] * 6, names=["a", "b", "c", "new"])
    new = more.item.tolist().index("new")
    assert more.votes[new] == 0
    assert (more.best_rank[new], more.worst_rank[new]) == (1, 4)
    assert (more.high - more.low)[new] > 2 * (more.high - more.low)[0]


def test_refusals():
    with pytest.raises(InputError, match="one name for each of 3 items"):
        leaderboard([0, 1], [1, 2], X=np.eye(3), names=["a"])
    with pytest.raises(InputError, match="positive"):
        leaderboard([0, 1], [1, 2], X=np.eye(3), estimator=RankRLS(positive=True))
    with pytest.raises(InputError, match="RankRLSCV"):
        leaderboard([0, 1], [1, 2], X=np.eye(3), estimator=RankRLSCV())
    with pytest.raises(InputError, match="missing"):
        leaderboard(["a", None], ["b", "c"])
    with pytest.raises(InputError, match="alpha must be a number above 0"):
        leaderboard(["a", "b"], ["b", "c"], estimator=RankRLS(alpha=0.0))
    for scale in ("share", "elo"):
        with pytest.raises(InputError, match="alpha = 1e-12 is too small"):
            leaderboard(["a", "b"], ["b", "c"], weight=[1e3, 1e3], scale=scale, estimator=RankRLS(alpha=1e-12))
    few = ["a", "b", "a"], ["b", "c", "c"]
    with pytest.raises(InputError, match="'length' has 2 values; it needs one for each of 3 votes"):
        leaderboard(*few, controls={"length": [1.0, 2.0]})
    with pytest.raises(InputError, match="0 in each vote"):
        leaderboard(*few, controls={"length": [0, 0, 0]})
    with pytest.raises(InputError, match="no votes"):
        leaderboard([], [])
    with pytest.raises(InputError, match="from 0 .a tie. to 1"):
        leaderboard(*few, strength=[1, 2, 1], scale="elo")
    with pytest.raises(InputError, match="0 in each vote"):  # that counts
        leaderboard(*few, weight=[1, 1, 0], controls={"length": [0, 0, 1]})
    with pytest.raises(InputError, match="must have names"):
        leaderboard(*few, controls=np.ones((3, 1)))
    for anchor in ("a", ("a",), ("a", "high"), ("a", np.nan), ("d", 1000)):
        with pytest.raises(InputError, match="one of the items and its rating"):
            leaderboard(*few, anchor=anchor)


@pytest.mark.parametrize("kind", ["names", "features", "basis"])
def test_win_probabilities_are_calibrated(kind):  # the basis is too small for more than that
    rng = np.random.default_rng(0)
    X = np.eye(30) if kind == "names" else rng.normal(size=(300, 5))
    ability = rng.normal(size=30) if kind == "names" else X @ [1.0, 0.5, 0.2, 0.0, 0.0]
    winners, losers, _, _ = votes(rng, ability, 5000)
    models = {"basis": SparseRankRLSCV(n_basis=50, random_state=0)}
    model = models.get(kind, RankRLSCV()).set_params(scoring="pair_accuracy").fit_pairs(X, winners, losers)
    a, b = rng.integers(len(X), size=(2, 20_000))
    found, truth = model.predict_win_probability(X[a], X[b]), expit(ability[a] - ability[b])
    np.testing.assert_allclose(found + model.predict_win_probability(X[b], X[a]), 1.0)
    for low in np.arange(0.0, 1.0, 0.1):
        here = (found >= low) & (found < low + 0.1)
        assert not here.any() or abs(found[here].mean() - truth[here].mean()) < 0.06
    assert kind == "basis" or np.mean((found - truth) ** 2) < 0.003


def test_the_slope_is_that_of_a_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    from rankrls.model_selection import leave_preference_out

    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    winners, losers, groups, _ = votes(rng, X[:, 0], 800, groups=20, spread=0.3)
    strength, weight = rng.choice([0.0, 1.0], len(winners), p=[0.2, 0.8]), rng.uniform(0.5, 2.0, len(winners))
    how = {"strength": strength, "weight": weight, "groups": groups}
    model = RankRLSCV(scoring="pair_accuracy").fit_pairs(X, winners, losers, **how)
    margins = leave_preference_out(RankRLS(alpha=model.alpha_), X, winners, losers, **how)
    p = len(winners)
    shares = np.where(strength > 0, 0.5 + 0.5 * p / (p + 2), 0.5)
    logistic = LogisticRegression(C=1e12, fit_intercept=False, tol=1e-12, max_iter=1000)
    logistic.fit(np.tile(margins, 2)[:, None], np.repeat([1, 0], p), np.r_[weight * shares, weight * (1 - shares)])
    assert model.win_slope_ == pytest.approx(logistic.coef_[0, 0], rel=1e-4)


def test_probabilities_need_votes():
    X, y = np.random.default_rng(0).normal(size=(2, 12, 3))
    with pytest.raises(InputError, match="fit_pairs"):
        RankRLSCV().fit(X, y[:, 0], qid=np.repeat([0, 1, 2], 4)).predict_win_probability(X, X)
    iterated = CGRankRLS(scoring="pair_accuracy", cv=2).fit_pairs(X, [0, 1, 2, 3], [4, 5, 6, 7], new="votes")
    assert iterated.held_out_scores_ is None
    with pytest.raises(InputError, match="this model does not have"):
        iterated.predict_win_probability(X, X)
    model = RankRLSCV(scoring="pair_accuracy").fit_pairs(X, [0, 1, 2, 3], [4, 5, 6, 7])
    with pytest.raises(InputError, match="X_a has 2 rows and X_b 1"):
        model.predict_win_probability(X[:2], X[:1])
