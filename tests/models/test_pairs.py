"""Learning from preferences, and choosing by leaving them out."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from sklearn.model_selection import KFold

from rankrls import CGRankRLS, RankRLS, RankRLSCV
from rankrls.model_selection import leave_preference_out
from tests.models.oracles import KERNEL_PARAMETERS, kernel_matrix, ranking_data
from tests.refusals import Refusal

RNG = np.random.default_rng(40)
X = RNG.normal(size=(15, 4))
ALPHAS = (0.05, 1.0, 20.0)
KINDS = [{"solver": "primal"}, {"solver": "dual"}, {"kernel": "rbf", **KERNEL_PARAMETERS}]


def preferences(p, seed=0, m=15):
    """Pairs of items with repetitions and contradictions; the last items are in none."""
    rng = np.random.default_rng(seed)
    i = rng.integers(0, m - 3, p)
    j = (i + rng.integers(1, m - 3, p)) % (m - 3)
    i[-2:], j[-2:] = [i[0], j[0]], [j[0], i[0]]  # the first preference again, and against itself turned round
    return i, j, rng.normal(size=p) + 1.0, rng.random(p) + 0.2


def dense_pair_scores(K_new, K, i, j, s, c, alpha):
    """Minimize sum c_e (s_e - (Ka)_i + (Ka)_j)^2 + alpha a'Ka through its normal equations."""
    M = np.zeros((len(i), len(K)))
    M[np.arange(len(i)), i] += np.sqrt(c)
    M[np.arange(len(i)), j] -= np.sqrt(c)
    a = np.linalg.solve(M.T @ M @ K + alpha * np.eye(len(K)), M.T @ (np.sqrt(c) * s))
    return K_new @ a


def options_of(kind):
    return kind.get("kernel", "linear")


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("p", [1, 5, 12, 60])
def test_equals_a_dense_solve(p, kind):
    i, j, s, c = preferences(p + 2)
    name = options_of(kind)
    K, new = kernel_matrix(name, X), RNG.normal(size=(6, 4))
    for alpha in ALPHAS:
        model = RankRLS(alpha, **kind).fit_pairs(X, i, j, strength=s, weight=c)
        for items, K_items in ((X, K), (new, kernel_matrix(name, new, X))):
            np.testing.assert_allclose(
                model.predict(items), dense_pair_scores(K_items, K, i, j, s, c, alpha), atol=1e-9
            )
        plain = RankRLS(alpha, **kind).fit_pairs(X, i, j).predict(new)
        ones = np.ones(len(i))
        np.testing.assert_allclose(
            plain, dense_pair_scores(kernel_matrix(name, new, X), K, i, j, ones, ones, alpha), atol=1e-9
        )


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_all_pairs_with_label_differences_equal_scored_data_balanced_by_pairs(ties, kind):
    features, y, qid = ranking_data(41)
    i, j = np.triu_indices(len(y), 1)
    keep = qid[i] == qid[j]
    if ties == "exclude":
        keep &= y[i] != y[j]
    i, j = i[keep], j[keep]
    pairs = RankRLS(0.3, **kind).fit_pairs(features, i, j, strength=y[i] - y[j])
    scored = RankRLS(0.3, balance="pairs", ties=ties, **kind).fit(features, y, qid=qid)
    np.testing.assert_allclose(pairs.predict(features), scored.predict(features), atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(1, 50), st.integers(1, 20), st.integers(-6, 6))
def test_primal_equals_dual(seed, p, n, exponent):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(15, n))
    i, j, s, c = preferences(p + 2, seed)
    alpha = 10.0**exponent
    fits = [
        RankRLS(alpha, solver=solver).fit_pairs(Z, i, j, strength=s, weight=c)
        for solver in ("primal", "dual")
        for Z in (features, sparse.csr_array(features))
    ]
    for model in fits[1:]:
        np.testing.assert_allclose(
            model.predict(features), fits[0].predict(features), rtol=1e-6, atol=1e-6 * np.abs(s).max()
        )
        assert model.coef_.shape == (n,)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_weights_are_repetitions_and_turning_a_pair_round_negates_its_strength(kind):
    i, j, s, _ = preferences(20)
    c = np.random.default_rng(1).integers(0, 4, 20)
    model = RankRLS(**kind).fit_pairs(X, i, j, strength=s, weight=c)
    again = np.repeat(np.arange(20), c)
    repeated = RankRLS(**kind).fit_pairs(X, i[again], j[again], strength=s[again])
    turned = RankRLS(**kind).fit_pairs(X, j, i, strength=-s, weight=c)
    np.testing.assert_allclose(model.predict(X), repeated.predict(X), atol=1e-10)
    np.testing.assert_allclose(model.predict(X), turned.predict(X), atol=1e-10)


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("p", [5, 60])
def test_alpha_zero_is_the_minimum_norm_solution(p, solver):
    i, j, s, c = preferences(p)
    for features in (X, np.hstack((X, X)), RNG.normal(size=(15, 40))):
        D = (features[i] - features[j]) * np.sqrt(c)[:, None]
        expected = np.linalg.pinv(D, rcond=1e-10) @ (np.sqrt(c) * s)
        model = RankRLS(0.0, solver=solver).fit_pairs(features, i, j, strength=s, weight=c)
        np.testing.assert_allclose(model.coef_, expected, atol=1e-8)


def test_a_precomputed_kernel_and_a_function():
    i, j, s, c = preferences(30)
    for few in (slice(0, 6), slice(0, 30)):
        pairs = {"strength": s[few], "weight": c[few]}
        expected = RankRLS(solver="dual").fit_pairs(X, i[few], j[few], **pairs)
        given = RankRLS(kernel="precomputed").fit_pairs(X @ X.T, i[few], j[few], **pairs)
        called = RankRLS(kernel=np.dot).fit_pairs(list(X), i[few], j[few], **pairs)
        np.testing.assert_allclose(given.predict(X @ X.T), expected.predict(X), atol=1e-10)
        np.testing.assert_allclose(called.predict(list(X)), expected.predict(X), atol=1e-10)


def test_a_model_of_pairs_takes_new_queries_and_scores_without_qid():
    i, j, *_ = preferences(30)
    model = RankRLS().fit(X, RNG.normal(size=15), qid=np.repeat([0, 1, 2], 5)).fit_pairs(X, i, j)
    assert 0.0 <= model.score(X, RNG.normal(size=15)) <= 1.0
    assert model.n_queries_ == 1
    with Refusal("Call partial_fit for the first queries"):
        model.partial_fit(X, RNG.normal(size=15))


def accuracy_without(blocks, i, j, s, c, alpha, kind):
    """Each block's weighted share of preferences that a refit without the block orders rightly."""
    values, right = [], np.zeros(len(i))
    for block in blocks:
        rest = np.setdiff1d(np.arange(len(i)), block)
        model = RankRLS(alpha, **kind).fit_pairs(X, i[rest], j[rest], strength=s[rest], weight=c[rest])
        f = model.predict(X)
        d = f[i[block]] - f[j[block]]
        d[np.abs(d) < 1e-12] = 0.0
        right[block] = (np.sign(d) * np.sign(s[block]) + 1) / 2
        w = np.where(s[block] == 0, 0.0, c[block])
        if w.sum() > 0:
            values.append((w @ right[block]) / w.sum())
    w = np.where(s == 0, 0.0, c)
    single = len(blocks) == len(i)
    return (w @ right) / w.sum() if single else np.mean(values)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("p", [8, 40])
@pytest.mark.parametrize("how", ["pairs", "groups", "folds", "folds of groups"])
def test_left_out_preferences_equal_refits(how, p, kind):
    i, j, s, c = preferences(p, 3)
    s[1] = 0.0
    s[2] *= -1
    c[3] = 0.0
    groups = (
        np.array([f"annotator {k}" for k in np.random.default_rng(p).integers(0, 5, p)]) if "groups" in how else None
    )
    cv = 3 if "folds" in how else None
    for scoring in ("disagreement", "pair_accuracy"):
        model = RankRLSCV(ALPHAS, cv=cv, scoring=scoring, **kind)
        new = "votes" if groups is None else None
        model.fit_pairs(X, i, j, strength=s, weight=c, groups=groups, new=new)
        kept = np.flatnonzero(c > 0)
        names = kept if groups is None else groups[kept]
        order = sorted(set((np.arange(p) if groups is None else groups).tolist()))
        blocks = [kept[names == g] for g in order if (names == g).any()]
        if cv:
            splits = KFold(cv, shuffle=True, random_state=0).split(blocks)
            blocks = [np.concatenate([blocks[b] for b in test]) for _, test in splits]
        position = {e: k for k, e in enumerate(kept)}
        blocks = [np.array([position[e] for e in block]) for block in blocks]
        for k, alpha in enumerate(model.cv_results_["alpha"]):
            share = accuracy_without(blocks, i[kept], j[kept], s[kept], c[kept], alpha, kind)
            expected = share if scoring == "pair_accuracy" else 1 - share
            assert model.cv_results_["mean_score"][k] == pytest.approx(expected)
        plain = RankRLS(model.alpha_, **kind).fit_pairs(X, i, j, strength=s, weight=c)
        np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-9)
    assert str(len(kept) if groups is None else len(set(names))) in model.selection_


@pytest.mark.parametrize("new", ["votes", "items"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_items_that_are_all_the_same_have_equal_scores(kind, new):
    """With more preferences than items, no direction of the kernel is left."""
    i, j, s, c = preferences(60)
    same = np.zeros_like(X)
    model = RankRLSCV(ALPHAS, scoring="pair_accuracy", **kind)
    model.fit_pairs(same, i, j, strength=s, weight=c, new=new)
    assert model.best_score_ == pytest.approx(0.5)
    assert not np.ptp(model.predict(same))


def test_folds_of_groups_depend_on_their_ids_alone():
    """Neither on the order of preferences, nor on preferences of weight zero."""
    i, j, s, c = preferences(40, 5)
    groups = np.random.default_rng(6).integers(0, 7, 40)
    c[:2] = 0.0
    model = RankRLSCV(ALPHAS, cv=3)
    expected = model.fit_pairs(X, i, j, strength=s, weight=c, groups=groups).cv_results_["mean_score"]
    for rows in (np.flatnonzero(c), np.random.default_rng(7).permutation(40)):
        given = {"strength": s[rows], "weight": c[rows], "groups": groups[rows]}
        found = model.fit_pairs(X, i[rows], j[rows], **given).cv_results_["mean_score"]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_kernel_parameters_are_chosen_too():
    i, j, s, _ = preferences(40, 4)
    model = RankRLSCV(ALPHAS, kernel=("linear", "rbf"), gamma=(0.1, 1.0), rule="one_se").fit_pairs(X, i, j, strength=s)
    assert len(model.cv_results_["alpha"]) == 9
    plain = RankRLS(**model.best_params_).fit_pairs(X, i, j, strength=s)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-9)
    automatic = RankRLSCV().fit_pairs(X, i, j)
    assert len(automatic.cv_results_["alpha"]) in (21, 26, 31)


GOOD = {"X": X, "winners": [0, 1, 2], "losers": [3, 4, 5]}


@pytest.mark.parametrize(
    ("options", "arguments", "refusal"),
    [
        ({"scoring": "ndcg@5"}, {}, Refusal("'pair_accuracy'", "'ndcg@5'", parameter="scoring")),
        ({"cv": KFold(2)}, {"new": "votes"}, Refusal("number of folds", parameter="cv")),
        ({"cv": 4}, {"new": "votes"}, Refusal("got 4", "preferences", parameter="cv")),
        ({"cv": 1}, {"new": "votes"}, Refusal("got 1", "preferences", parameter="cv")),
        ({}, {"groups": [1, 1, 1]}, Refusal("Only one group", parameter="strength")),
        ({}, {"groups": [1, 2]}, Refusal("2 entries", parameter="groups")),
        ({}, {"groups": [1, None, 2]}, Refusal("missing in", parameter="groups", row=1)),
        ({"alphas": (0.0, 1.0)}, {"new": "votes"}, Refusal("needs", "> 0", parameter="alphas")),
        (
            {"cv": "leave_pair_out"},
            {"losers": [3, 3, 3], "winners": [0, 0, 0]},
            Refusal("left to fit", parameter="winners"),
        ),
    ],
)
def test_bad_selection(options, arguments, refusal):
    with refusal:
        RankRLSCV(**options).fit_pairs(**GOOD | arguments)


def test_a_square_kernel_is_needed():
    with Refusal("shape (15", "square", parameter="X"):
        RankRLS(kernel="precomputed").fit_pairs(**GOOD)
    with Refusal("shape (15", "square", parameter="X"):
        RankRLSCV(kernel="precomputed").fit_pairs(**GOOD)


@pytest.mark.filterwarnings("ignore:.*end of the grid")
@pytest.mark.parametrize(("search", "options"), [(RankRLSCV, {}), (CGRankRLS, {"selection": "tikhonov", "tol": 1e-12})])
def test_labelled_validation_data_choose(search, options):
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(40, 6)), rng.normal(size=(30, 6))
    winners, losers = rng.integers(0, 40, size=(2, 60))
    kept = winners != losers
    winners, losers = winners[kept], losers[kept]
    y = np.round(Z[:, 0] + Z[:, 1] + rng.normal(size=30))
    alphas = [1e-3, 1.0, 1e3]
    models = [RankRLS(alpha).fit_pairs(X, winners, losers) for alpha in alphas]
    errors = [1.0 - model.score(Z, y) for model in models]
    model = search(alphas, **options).fit_pairs(X, winners, losers, X_val=Z, y_val=y)
    assert model.alpha_ == alphas[int(np.argmin(errors))]
    assert model.best_score_ == pytest.approx(min(errors))
    np.testing.assert_allclose(model.coef_, models[int(np.argmin(errors))].coef_, atol=1e-4)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(("votes", "items"), [(6_000, 20), (30_000, 100)])
def test_memory_grows_with_the_votes_and_not_with_their_square(kernel, votes, items):
    rng = np.random.default_rng(0)
    a = rng.integers(0, items, votes)
    b = (a + rng.integers(1, items, votes)) % items
    X = np.eye(items)
    RankRLSCV(kernel=kernel).fit_pairs(X, a[:50], b[:50])  # what is compiled and imported once is not counted
    tracemalloc.start()
    try:
        RankRLSCV(kernel=kernel).fit_pairs(X, a, b)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1500 * votes + 1000 * items**2


@pytest.mark.parametrize(("columns", "options"), [(33, {}), (3, {"kernel": "rbf", "gamma": 0.3})])
@pytest.mark.parametrize("votes", [40, 400])
def test_votes_between_equal_items_count_half(columns, options, votes):
    """Rounding, which differs between their rows, must not order them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(27, columns)) * 10.0 ** rng.integers(-2, 3, columns) + 100.0
    X[13:26] = X[:13]
    a = rng.integers(0, 13, votes)
    b = np.where(np.arange(votes) % 2, a + 13, (a + rng.integers(1, 13, votes)) % 13)
    model = RankRLSCV((1e-3, 1.0, 1e3), scoring="pair_accuracy", **options).fit_pairs(X, a, b, new="votes")
    lead = leave_preference_out(RankRLS(**options), X, a, b, alphas=model.cv_results_["alpha"])
    right = (np.sign(lead) + 1.0) / 2.0
    right[1::2] = 0.5
    np.testing.assert_allclose(model.cv_results_["mean_score"], right.mean(axis=0), atol=1e-12)
