"""The collaborative filtering experiment against a plain computation of the same protocol, and against the paper."""

import dataclasses
import gzip
import importlib
import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from rankrls import RankSVM

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
SMALL = ("--users", "4", "--repetitions", "2", "--holdout", "4", "--reference", "10")


@pytest.fixture
def experiment(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    before = set(sys.modules)
    yield importlib.import_module("collaborative_filtering")
    for name in set(sys.modules) - before:
        if str(EXPERIMENTS) in str(getattr(sys.modules[name], "__file__", "")):
            sys.modules.pop(name)


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


def write_movies(path, R, form):
    rng = np.random.default_rng(1)
    users, items = np.nonzero(~np.isnan(R))
    order = rng.permutation(len(users))
    rows = [
        (f"{u + 1}", f"{i * 7 + 3}", f"{R[u, i]:g}", "978300760")
        for u, i in zip(users[order], items[order], strict=True)
    ]
    if form == "dat":
        path.write_text("\n".join("::".join(row) for row in rows) + "\n")
    else:
        path.write_text("userId,movieId,rating,timestamp\n" + "\n".join(",".join(row) for row in rows) + "\n")


@pytest.mark.parametrize("form", ["jester", "dat", "csv"])
def test_reads_every_form_of_file(experiment, tmp_path, form):
    import _ratings_data

    R = table(20)
    path = tmp_path / {"jester": "jester-data-1.csv.gz", "dat": "ratings.dat", "csv": "ratings.csv"}[form]
    if form == "jester":
        write_jester(path, R)
    else:
        write_movies(path, R, form)
    ratings = _ratings_data.read_ratings(path)
    np.testing.assert_array_equal(sorted(ratings.counts), sorted((~np.isnan(R)).sum(axis=1)))
    codes = np.arange(20) if form == "jester" else np.argsort(np.argsort([str(u + 1) for u in range(20)]))
    columns = np.arange(64) if form == "jester" else np.argsort(np.argsort([str(i * 7 + 3) for i in range(64)]))
    features = ratings.features(codes[[3, 4]])
    for column, user in enumerate((3, 4)):
        expected = np.where(np.isnan(R[user]), np.nanmedian(R[user]), R[user])
        np.testing.assert_allclose(features[columns, column], expected)


def test_draws_as_the_paper_says(experiment, tmp_path):
    import _collaborative_protocol as protocol
    import _ratings_data

    write_jester(tmp_path / "jester-data-1.csv.gz", table())
    ratings = _ratings_data.read_ratings(_ratings_data.find_jester(tmp_path))
    sizes = protocol.Sizes(users=8, repetitions=3, holdout=8, reference=12, seed=3)
    group = protocol.draw(ratings, (40, 60), sizes)
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


def test_users_recur_when_there_are_too_few_and_constant_ones_are_skipped(experiment, tmp_path):
    import _collaborative_protocol as protocol
    import _ratings_data

    R = table()
    R[4, ~np.isnan(R[4])] = 1.0
    write_jester(tmp_path / "jester-data-1.csv.gz", R)
    ratings = _ratings_data.read_ratings(tmp_path / "jester-data-1.csv.gz")
    group = protocol.draw(ratings, (40, 60), protocol.Sizes(users=20, repetitions=4, holdout=9, reference=5))
    held = {t.user for t in group.holdout[1]}
    for _, tasks in group.repetitions:
        users = [t.user for t in tasks]
        assert len(set(users)) == 20
        assert not held & set(users)
        assert 4 not in users
    assert group.skipped == 1


def test_two_views_share_the_scored_and_the_unscored_rows(experiment):
    import _collaborative_views as methods

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
def test_choice_and_figures_are_those_of_a_plain_computation(experiment, tmp_path, monkeypatch, half):
    import _collaborative_methods as methods
    import _collaborative_protocol as protocol
    import _ratings_data

    widths, alphas = (4.0, 16.0, 64.0), (0.01, 1.0, 100.0)
    monkeypatch.setattr(protocol, "WIDTHS", widths)
    monkeypatch.setattr(methods, "ALPHAS", alphas)
    write_jester(tmp_path / "jester-data-1.csv.gz", table())
    ratings = _ratings_data.read_ratings(tmp_path / "jester-data-1.csv.gz")
    group = protocol.draw(ratings, (40, 60), protocol.Sizes(users=5, repetitions=2, holdout=6, reference=9))
    rows = [m for m in methods.METHODS["full"] if isinstance(m, methods.LeastSquares)]
    part = protocol.run_part(rows, group, half=half, measures=protocol.MEASURES, n_jobs=1)
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


def test_items_with_equal_features_are_one_to_every_width(experiment):
    import _collaborative_protocol as protocol

    features = np.random.default_rng(0).normal(size=(12, 300)) * 30 + 1000
    features[[3, 5, 8]] = features[1]
    task = protocol.Task(0, np.arange(12)[::-1].copy(), np.zeros(12))
    same = np.flatnonzero(np.isin(task.items, [1, 3, 5, 8]))
    K = task.problem(task.described(features), protocol.WIDTHS[0], half=False).K
    assert (K[np.ix_(same, same)] == 1.0).all()
    assert np.linalg.eigvalsh(K).min() > -1e-12


@pytest.fixture
def few_settings(experiment, monkeypatch):
    """A few widths and of each method a few settings: every figure is another, but every table is there."""
    import _collaborative_methods as methods
    import _collaborative_protocol as protocol

    monkeypatch.setattr(protocol, "WIDTHS", (16.0, 128.0))
    kinds = (methods.LeastSquares, methods.Subset, methods.Pursuit, methods.SupportVectors)
    for kind in (*kinds, methods.CoPursuit, methods.Consenting):
        settings = kind.settings
        some = lambda self, chosen, settings=settings: settings(self, chosen)[1::11]
        monkeypatch.setattr(kind, "settings", some)


@pytest.fixture
def problem(experiment):
    import _collaborative_problem

    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(50, 4)), rng.normal(size=50).round(1)
    items = _collaborative_problem.Items(X)
    K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    return _collaborative_problem.Problem(
        K, y, 21, 30, lambda: [np.exp(-0.1 * squared) for squared in items.distances_of_halves]
    )


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("backfit", [True, False])
def test_pursuit_is_the_greedy_search_by_refits(problem, beta, backfit):
    import _collaborative_methods as methods

    K, y, n = problem.K[:21, :21], problem.y[:21], 21
    L = beta * np.eye(n) + (1 - beta) * (n * np.eye(n) - 1.0)
    taken, coefficients, f, expected, sizes = [], np.zeros(n), np.zeros(n), [], []
    for _ in range(12):
        r = y - f
        gains = (K @ L @ r) ** 2 / np.einsum("ij,jk,ik->i", K, L, K)
        if backfit:
            gains[taken] = 0.0
        best = int(np.argmax(gains))
        taken.append(best)
        if backfit:
            coefficients[:] = 0.0
            coefficients[taken] = np.linalg.solve(K[taken] @ L @ K[:, taken], K[taken] @ L @ y)
        else:
            coefficients[best] += K[best] @ L @ r / (K[best] @ L @ K[best])
        f = K @ coefficients
        expected.append(problem.K[30:, :21] @ coefficients)
        sizes.append(len(set(taken)))
    settings = [{"n_basis": p, "backfit": backfit} for p in (1, 4, 12, 7)]
    scores, used = methods.Pursuit("", "", beta).scores(problem, settings)
    np.testing.assert_allclose(scores, np.array(expected)[[0, 3, 11, 6]].T, rtol=1e-6, atol=1e-8)
    assert list(used) == [sizes[k] for k in (0, 3, 11, 6)]
    late, _ = methods.Pursuit("", "", beta).scores(problem, [{"n_basis": 500, "backfit": True}])
    assert np.isfinite(late).all()  # the path ends before


def test_subset_is_the_dense_solution_over_the_first_rows(problem):
    import _collaborative_methods as methods

    n, settings = 21, [{"n_basis": r, "alpha": alpha} for r in (5, 40, 2) for alpha in (1.0, 0.01)]
    L, K, y = n * np.eye(n) - 1.0, problem.K, problem.y[:21]
    scores, used = methods.Subset("", "").scores(problem, settings)
    for column, setting in enumerate(settings):
        r = min(setting["n_basis"], n)
        a = np.linalg.solve(K[:r, :n] @ L @ K[:n, :r] + setting["alpha"] * K[:r, :r], K[:r, :n] @ L @ y)
        np.testing.assert_allclose(scores[:, column], K[30:, :r] @ a, rtol=1e-6, atol=1e-8)
        assert used[column] == r


NAMES = ("RLS", "Matching Pursuit", "RankSVM", "RankRLS", "Sparse RankRLS", "Random Subset", "Ranking Pursuit", "CRRP")
SEMI_SUPERVISED = ("SS Ranking Pursuit", "SS, nu = 0", "CoRankRLS")


def test_every_method_of_the_tables_is_there(experiment):
    import _collaborative_methods as methods
    from _collaborative_paper import TABLES

    assert tuple(m.name for m in methods.METHODS["full"]) == NAMES
    assert tuple(m.name for m in methods.METHODS["half"]) == (*NAMES[:-1], *SEMI_SUPERVISED)
    for parts in TABLES.values():
        assert set(parts["full"][1]) <= set(NAMES)
        assert set(parts["half"][1]) <= {*NAMES, *SEMI_SUPERVISED}


@pytest.mark.parametrize("name", [*NAMES, *SEMI_SUPERVISED])
def test_methods_see_the_scored_ratings_only(problem, name):
    import _collaborative_methods as methods

    (method,) = {m.name: m for part in methods.METHODS.values() for m in part if m.name == name}.values()
    chosen = types.SimpleNamespace(setting={"n_basis": 4})
    settings = method.settings({"Ranking Pursuit": chosen})[::7]
    scores, used = method.scores(problem, settings)
    assert scores.shape == (20, len(settings))
    assert (used >= 1).all()
    assert (used <= (30 if name.startswith(("SS", "Co", "RP")) else 21)).all()
    blind = dataclasses.replace(problem, y=np.where(np.arange(50) < 21, problem.y, np.nan))
    np.testing.assert_array_equal(method.scores(blind, settings)[0], scores)


def test_consensus_is_the_joint_system_of_views_and_consensus(problem):
    import _collaborative_methods as methods

    n, learn, M, alpha, weight = 21, 30, 16, 0.5, 3.0
    kernels = problem.halves[:M]
    scores, _ = methods.Consenting("", "").scores(problem, [{"mu": weight, "alpha": alpha}])
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


def test_ranksvm_is_that_of_the_library(problem):
    import _collaborative_methods as methods

    scores, used = methods.SupportVectors("", "").scores(problem, [{"C": 0.1}])
    model = RankSVM(0.1, kernel="precomputed", balance="pairs").fit(problem.K[:21, :21], problem.y[:21])
    np.testing.assert_allclose(scores[:, 0], problem.K[30:, :21] @ model.dual_coef_, rtol=1e-9)
    assert used == [np.count_nonzero(model.dual_coef_)]


def test_tables_claims_and_json(experiment, few_settings, tmp_path, capsys):
    write_jester(tmp_path / "jester-data-1.csv.gz", table())
    out = tmp_path / "out.json"
    assert experiment.main(["--data", str(tmp_path), "--groups", "40-60", *SMALL, "--json", str(out)]) == 0
    text = capsys.readouterr().out
    assert "the paper's tables 1 and 5" in text
    result = json.loads(out.read_text())
    assert set(result["tables"]) == {"full", "half", "mse"}
    cell = result["tables"]["full"]["40-60"]["RankRLS"]
    assert cell["paper"] == 0.407
    assert cell["interval"][0] <= cell["mean"] <= cell["interval"][1]
    for claim in result["claims"]:
        significant, said = claim["p_value"] < 0.05, claim["claim"]
        if said["says"] == "equal":
            assert claim["verdict"] == ("they differ" if significant else "confirmed")
        elif said["says"] == "compared":
            better = "better" if claim["difference"] < 0 else "worse"
            assert claim["verdict"] == (better if significant else "no difference")
        elif significant:
            assert claim["verdict"] == ("confirmed" if claim["difference"] < 0 else "the reverse")
        else:
            assert claim["verdict"] == "not confirmed"
        means = [result["tables"][said["part"]]["40-60"][said[name]]["mean"] for name in ("first", "second")]
        assert claim["difference"] == pytest.approx(means[0] - means[1], abs=1e-12)


def test_movielens_prints_beside_its_own_tables(experiment, few_settings, tmp_path, capsys):
    write_movies(tmp_path / "ratings.dat", table(), "dat")
    assert experiment.main(["--ratings", str(tmp_path / "ratings.dat"), "--groups", "40-60", *SMALL]) == 0
    text = capsys.readouterr().out
    assert "the paper's table 3" in text
    assert "0.494" in text  # RLS of table 3


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (None, ["--data", "nowhere"], "is not a folder"),
        (None, ["--data", "{folder}"], "No jester-data-1.csv"),
        ("1::2::3::4\n1::2::x::4\n", ["--ratings", "{file}"], ":2: expected user, movie and rating"),
        ("1::2::3::4\n1::2::4::4\n", ["--ratings", "{file}"], "user 1 rates movie 2 more than once"),
        ("1::2::3::4\n1::3::4::4\n", ["--ratings", "{file}"], "users with 50 to 300 ratings are needed"),
        ("1::2::3::4\n", ["--ratings", "{file}", "--groups", "60-40"], "must look like 40-60"),
        ("1::2::3::4\n", ["--ratings", "{file}", "--users", "1"], "--users must be at least 2"),
        ("1::2::3::4\n", ["--ratings", "{file}", "--methods", "RankNet"], "--methods must be some of RLS"),
        ("1::2::3::4\n", ["--ratings", "{file}", "--methods", "Random Subset"], "what Ranking Pursuit chose"),
        ("", ["--ratings", "{file}"], "is empty"),
    ],
)
def test_one_clear_line_on_bad_input(experiment, tmp_path, capsys, content, options, message):
    file = tmp_path / "ratings.dat"
    if content is not None:
        file.write_text(content)
    folder = tmp_path / "folder"
    folder.mkdir()
    assert experiment.main([o.format(file=file, folder=folder) for o in options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.shared_data
@pytest.mark.slow
def test_jester_comes_near_the_paper(experiment, data_dir, capsys, tmp_path, monkeypatch):
    import _collaborative_methods as methods
    import _collaborative_protocol as protocol

    monkeypatch.setattr(protocol, "WIDTHS", (2.0**6, 2.0**7, 2.0**8))
    rows = tuple(m for m in methods.METHODS["full"] if m.name in ("RLS", "RankRLS", "Ranking Pursuit"))
    monkeypatch.setattr(experiment, "METHODS", {"full": rows, "half": rows})
    out = tmp_path / "out.json"
    sizes = ["--users", "40", "--repetitions", "2", "--holdout", "20", "--groups", "60-80"]
    assert experiment.main(["--data", str(data_dir), *sizes, "--json", str(out)]) == 0
    capsys.readouterr()
    for table in ("full", "half"):
        for method, cell in json.loads(out.read_text())["tables"][table]["60-80"].items():
            assert cell["mean"] < cell["paper"] + 0.025, (table, method)
