"""The collaborative filtering experiment against a plain computation of the same protocol, and against the paper."""

import gzip

import numpy as np
import pytest

from experiments import _collaborative_methods as methods, collaborative_filtering as protocol


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


@pytest.fixture
def problem():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(50, 4)), rng.normal(size=50).round(1)
    items = protocol.Items(X)
    K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    return methods.Problem(K, y, 21, 30, lambda: [np.exp(-0.1 * squared) for squared in items.distances_of_halves])


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


@pytest.mark.shared_data
@pytest.mark.slow
def test_jester_comes_near_the_paper(data_dir, monkeypatch):
    monkeypatch.setattr(protocol, "WIDTHS", (2.0**6, 2.0**7, 2.0**8))
    sizes = protocol.Sizes(users=40, repetitions=2, holdout=20)
    options = {"groups": protocol.GROUPS[2:], "methods": protocol.quick_methods()}
    for table in list(protocol.run("jester", protocol.read_jester(data_dir), sizes, **options))[:2]:
        for method, row in table.ours.items():
            assert row["60-80"] < table.paper[method]["60-80"] + 0.025, (table.title, method)
