"""The collaborative filtering experiment against a plain computation of the same protocol, and against the paper."""

import gzip

import numpy as np
import pytest

from papers import _collaborative_methods as methods, collaborative_filtering as protocol


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
                pairs = len(f) * (len(f) - 1)  # equation (1), over its normalization: i and j in both orders
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
