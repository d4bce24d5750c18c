"""The collaborative filtering experiment against a plain computation of the same protocol, and against the paper."""

import dataclasses
import gzip

import numpy as np
import pytest
from experiments._tables import paper_figures

from experiments import _collaborative_methods as methods
from experiments import collaborative_filtering as protocol
from rankrls import RankingPursuit, RankSVM, SparseRankRLS


def table(n_users=60, n_items=64, seed=0):
    """Ratings of users whose tastes have three dimensions; NaN where there is none."""
    rng = np.random.default_rng(seed)
    R = rng.normal(size=(n_users, 3)) @ rng.normal(size=(3, n_items)) * 3 + rng.normal(size=(n_users, n_items))
    R = np.clip(R, -10, 10).round(2)
    for user in range(n_users):
        count = rng.integers(42, 60) if user % 2 else rng.integers(50, n_items)
        R[user, rng.permutation(n_items)[count:]] = np.nan
    return R


def write_jester(path, R):
    padded = np.full((len(R), 100), 99.0)
    padded[:, : R.shape[1]] = np.where(np.isnan(R), 99.0, R)
    lines = [f"{int((row != 99).sum())}," + ",".join(f"{v:g}" for v in row) for row in padded]
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


@pytest.fixture
def ratings(tmp_path):
    write_jester(tmp_path / "jester-data-1.csv.gz", table())
    return protocol.read_jester(tmp_path)


def test_reads_both_forms_of_file(tmp_path):
    R = table(20)[:, :63]
    write_jester(tmp_path / "jester-data-1.csv.gz", R)
    users, items = np.nonzero(~np.isnan(R))
    order = np.random.default_rng(1).permutation(len(users))
    lines = [f"{users[k] + 1}::{items[k] * 7 + 3}::{R[users[k], items[k]]:g}::978300760\n" for k in order]
    (tmp_path / "ratings.dat").write_text("".join(lines))
    for ratings in (protocol.read_jester(tmp_path), protocol.read_movielens(tmp_path)):
        for user, row in enumerate(R):
            items, values = ratings.of(user)
            np.testing.assert_array_equal(items, np.flatnonzero(~np.isnan(row)))
            np.testing.assert_array_equal(values, row[items])
        features = ratings.features(np.arange(20))[: R.shape[1]]
        np.testing.assert_array_equal(features.T, np.where(np.isnan(R), np.nanmedian(R, axis=1)[:, None], R))


def test_draws_as_the_paper_says(ratings):
    sizes = protocol.Sizes(users=8, repetitions=3, holdout=8, reference=12)
    group = protocol.draw(ratings, (40, 60), sizes, seed=3)
    counts = ratings.counts
    seen = [{t.user for t in group.holdout[1]}, *({t.user for t in tasks} for _, tasks in group.repetitions)]
    assert [len(s) for s in seen] == [8] * 4
    assert len(set.union(*seen)) == 32  # nobody twice while there are others
    members = np.flatnonzero((counts >= 40) & (counts < 60))
    possible = ratings.features(members)
    for features, tasks in (group.holdout, *group.repetitions):
        columns = [int(np.flatnonzero((possible == column[:, None]).all(axis=0))[0]) for column in features.T]
        assert len(set(columns)) == 12
        assert not {int(members[c]) for c in columns} & {t.user for t in tasks}
        for task in tasks:
            assert 50 <= counts[task.user] <= 300
            items, values = ratings.of(task.user)
            np.testing.assert_array_equal(np.sort(task.items), items)
            np.testing.assert_array_equal(task.y[np.argsort(task.items)], values)
            assert task.n_learn == len(items) // 2


def test_users_recur_when_there_are_too_few_and_constant_ones_are_skipped(tmp_path):
    R = table()
    R[4, ~np.isnan(R[4])] = 1.0
    write_jester(tmp_path / "jester-data-1.csv.gz", R)
    ratings = protocol.read_jester(tmp_path)
    group = protocol.draw(ratings, (40, 60), protocol.Sizes(users=20, repetitions=4, holdout=9, reference=5))
    held = {t.user for t in group.holdout[1]}
    for _, tasks in group.repetitions:
        users = [t.user for t in tasks]
        assert len(set(users)) == 20
        assert not held & set(users)
        assert 4 not in users


def test_two_views_share_the_scored_and_the_unscored_rows():
    first, second = methods.split_views(7, 15)
    assert sorted([*first, *second]) == list(range(15))
    assert [int(sum(view < 7)) for view in (first, second)] == [4, 3]
    assert [len(view) for view in (first, second)] == [8, 7]


def plain_errors(problem_of, tasks, widths, alphas, beta, half):
    """(users, widths, alphas) disagreement and squared error by dense solves with the explicit Laplacian."""
    out = np.zeros((len(tasks), len(widths), len(alphas), 2))
    for t, task in enumerate(tasks):
        n = task.n_learn // 2 if half else task.n_learn
        X, y = problem_of(task), task.y
        squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        L = beta * np.eye(n) + (1 - beta) * (n * np.eye(n) - 1.0)
        for w, width in enumerate(widths):
            K = np.exp(-squared / (2 * width**2))
            for a, alpha in enumerate(alphas):
                f = K[task.n_learn :, :n] @ np.linalg.solve(L @ K[:n, :n] + alpha * np.eye(n), L @ y[:n])
                judged = y[task.n_learn :]
                apart = np.abs(np.sign(judged[:, None] - judged) - np.sign(f[:, None] - f))
                pairs = len(f) * (len(f) - 1)  # equation (1), over its normalisation: i and j in both orders
                out[t, w, a] = 0.5 * apart.sum() / pairs, ((f - judged) ** 2).mean()
    return out


@pytest.mark.parametrize("half", [False, True])
def test_choice_and_figures_are_those_of_a_plain_computation(ratings, monkeypatch, half):
    widths, alphas = (4.0, 16.0, 64.0), (0.01, 1.0, 100.0)
    monkeypatch.setattr(protocol, "WIDTHS", widths)
    monkeypatch.setattr(methods, "ALPHAS", alphas)
    group = protocol.draw(ratings, (40, 60), protocol.Sizes(users=5, repetitions=2, holdout=6, reference=9))
    rows = [m for m in methods.METHODS["full"] if isinstance(m, methods.LeastSquares)]
    part = protocol.run_part(rows, group, half=half, measures=protocol.MEASURES)
    for method in rows:
        beta = method.regression_weight
        plain = lambda features, tasks, beta=beta: plain_errors(
            lambda task: features[task.items], tasks, widths, alphas, beta, half
        )
        held = plain(*group.holdout).mean(axis=0)
        tested = np.concatenate([plain(*repetition) for repetition in group.repetitions])
        for k, by in enumerate(protocol.MEASURES):
            w, a = np.unravel_index(np.argmin(held[:, :, k]), held.shape[:2])
            choice = part.choices[by][method.name]
            assert (choice.width, choice.setting["alpha"]) == (widths[w], alphas[a])
            assert choice.value == pytest.approx(held[w, a, k], rel=1e-6)
            for j, measure in enumerate(protocol.MEASURES):
                np.testing.assert_allclose(part.figures[by, measure][method.name], tested[:, w, a, j], rtol=1e-5)


def test_items_with_equal_features_are_one_to_every_width():
    features = np.random.default_rng(0).normal(size=(12, 300)) * 30 + 1000
    features[[3, 5, 8]] = features[1]
    task = protocol.Task(0, np.arange(12)[::-1].copy(), np.zeros(12))
    same = np.flatnonzero(np.isin(task.items, [1, 3, 5, 8]))
    K = task.problem(protocol.Items(features[task.items]), protocol.WIDTHS[0], half=False).K
    assert (K[np.ix_(same, same)] == 1.0).all()
    assert np.linalg.eigvalsh(K).min() > -1e-12


@pytest.fixture
def problem():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(50, 4)), rng.normal(size=50).round(1)
    items = protocol.Items(X)
    K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    return methods.Problem(K, y, 21, 30, lambda: [np.exp(-0.1 * squared) for squared in items.distances_of_halves])


@pytest.mark.parametrize(
    ("method", "model", "setting"),
    [
        (methods.Pursuit(""), RankingPursuit, {"n_basis": 7, "backfit": True}),
        (methods.Pursuit("", 0.5), RankingPursuit, {"n_basis": 7, "backfit": True}),
        (methods.Pursuit("", 1.0), RankingPursuit, {"n_basis": 12, "backfit": False}),
        (methods.Subset(""), SparseRankRLS, {"n_basis": 5, "alpha": 0.01}),
        (methods.SupportVectors(""), RankSVM, {"C": 0.1}),
    ],
)
def test_methods_are_those_of_the_library(problem, method, model, setting):
    options = {"regression_weight": method.regression_weight} if model is RankingPursuit else {}
    given = dict(setting)
    if model is SparseRankRLS:
        options["basis_indices"] = np.arange(given.pop("n_basis"))
    fitted = model(kernel="precomputed", balance="pairs", **given, **options).fit(problem.K[:21, :21], problem.y[:21])
    (scores,), (used,) = (part.T for part in method.scores(problem, [setting]))
    np.testing.assert_allclose(scores, fitted.predict(problem.K[30:, :21]), rtol=1e-6, atol=1e-8)
    assert used == np.count_nonzero(fitted.dual_coef_)


NAMES = ("RLS", "Matching Pursuit", "RankSVM", "RankRLS", "Sparse RankRLS", "Random Subset", "Ranking Pursuit", "CRRP")
SEMI_SUPERVISED = ("SS Ranking Pursuit", "SS, nu = 0", "CoRankRLS")


def test_every_method_of_the_tables_is_there():
    assert tuple(m.name for m in methods.METHODS["full"]) == NAMES
    assert tuple(m.name for m in methods.METHODS["half"]) == (*NAMES[:-1], *SEMI_SUPERVISED)
    for data in ("jester", "movielens"):
        assert set(paper_figures(data, "full")) <= set(NAMES)
        assert set(paper_figures(data, "half")) <= {*NAMES, *SEMI_SUPERVISED}


@pytest.mark.parametrize("name", [*NAMES, *SEMI_SUPERVISED])
def test_methods_see_the_scored_ratings_only(problem, name):
    (method,) = {m.name: m for part in methods.METHODS.values() for m in part if m.name == name}.values()
    settings = method.settings({"Ranking Pursuit": {"n_basis": 4}})[::7]
    scores, used = method.scores(problem, settings)
    assert scores.shape == (20, len(settings))
    assert (used >= 1).all()
    assert (used <= (30 if name.startswith(("SS", "Co", "RP")) else 21)).all()
    blind = dataclasses.replace(problem, y=np.where(np.arange(50) < 21, problem.y, np.nan))
    np.testing.assert_array_equal(method.scores(blind, settings)[0], scores)


def test_consensus_is_the_joint_system_of_views_and_consensus(problem):
    n, learn, M, alpha, weight = 21, 30, 16, 0.5, 3.0
    kernels = problem.halves[:M]
    scores, _ = methods.Consenting("").scores(problem, [{"mu": weight, "alpha": alpha}])
    C = np.eye(learn) - 1 / learn
    mu = weight / np.mean([np.trace(C @ K[:learn, :learn]) / learn for K in kernels])
    L = n * np.eye(n) - 1.0
    # Stationary in the M coefficient vectors a_v of f_v = K_v a_v and in h, all at once.
    size = (M + 1) * learn
    A, b = np.zeros((size, size)), np.zeros(size)
    h = slice(M * learn, size)
    for v, K in enumerate(kernels):
        K, own = K[:learn, :learn], slice(v * learn, (v + 1) * learn)
        A[own, own] = alpha / M * (K + mu * K @ C @ K)
        A[own, h] = -alpha / M * mu * K @ C
        A[h, own] = A[own, h].T
        A[h, h] += alpha / M * mu * C
    A[h, h][:n, :n] += L
    b[h][:n] = L @ problem.y[:n]
    a = np.linalg.lstsq(A, b, rcond=1e-14)[0].reshape(M + 1, learn)[:M]
    expected = np.mean([K[learn:, :learn] @ a_v for K, a_v in zip(kernels, a, strict=True)], axis=0)
    # A constant that all functions share is nothing to the consensus.
    np.testing.assert_allclose(scores[:, 0] - scores[:, 0].mean(), expected - expected.mean(), rtol=1e-5, atol=1e-6)


def test_claims_are_judged_by_the_difference_and_its_p_value(ratings, monkeypatch):
    monkeypatch.setattr(protocol, "WIDTHS", (16.0, 128.0))
    sizes = protocol.Sizes(users=20, repetitions=2, holdout=4, reference=10)
    options = {"groups": ((40, 60),), "methods": protocol.quick_methods()}
    full, half, mse = protocol.run("jester", ratings, sizes, **options)
    assert [table.paper["RankRLS"]["40-60"] for table in (full, half, mse)] == [0.407, 0.418, 31.3]
    (note,) = [note for note in full.notes if note.startswith("RankRLS < RLS")]
    difference = full.ours["RankRLS"]["40-60"] - full.ours["RLS"]["40-60"]
    assert f"40-60 {difference:+.4f}" in note
    p_value = 0.0 if "p < " in note else float(note.split("p = ")[1].split()[0])
    assert note.endswith(" confirmed" if p_value < 0.05 and difference < 0 else " not confirmed")


@pytest.mark.shared_data
@pytest.mark.slow
def test_jester_comes_near_the_paper(data_dir, monkeypatch):
    monkeypatch.setattr(protocol, "WIDTHS", (2.0**6, 2.0**7, 2.0**8))
    sizes = protocol.Sizes(users=40, repetitions=2, holdout=20)
    options = {"groups": protocol.GROUPS[2:], "methods": protocol.quick_methods()}
    for table in list(protocol.run("jester", protocol.read_jester(data_dir), sizes, **options))[:2]:
        for method, row in table.ours.items():
            assert row["60-80"] < table.paper[method]["60-80"] + 0.025, (table.title, method)
