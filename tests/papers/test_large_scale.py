"""The large scale experiment: its data, its protocol by plain computation, and what it says."""

import numpy as np
import pytest

from papers import large_scale


@pytest.fixture
def small(monkeypatch):
    """Made-up documents, few of them."""
    monkeypatch.setattr(large_scale, "QUICK_ROWS", (300, 150, 200))
    monkeypatch.setattr("benchmarks._text.RCV1", (781_265, 800))
    return large_scale.synthetic(quick=True)


def laplacian(items, pairs):
    m = len(items.y)
    if pairs is None:
        return np.eye(m) - 1.0 / m
    M = np.zeros((len(pairs[0]), m))
    M[np.arange(len(M)), pairs[0]] = 1.0
    M[np.arange(len(M)), pairs[1]] -= 1.0
    return M.T @ M


def wrong_pairs(y, scores):
    lead = (scores[y == 1][:, None] - scores[y == 0][None, :]).ravel()
    return ((lead < 0) + 0.5 * (lead == 0)).mean()


@pytest.mark.parametrize("number", [None, 400])
def test_tikhonov_by_dense_solves(small, number):
    task = small
    training = large_scale.Training(task.train, number and large_scale.sampled_pairs(task.train, number))
    X, y = task.train.X.toarray(), task.train.y
    L = laplacian(task.train, training.pairs)
    A = X.T @ L @ X
    right = X.T @ L @ y  # all strengths are 1, and so are all differences of the labels
    outcome = large_scale.judge("Tikhonov", task, training)
    errors = {}
    for alpha in large_scale.ALPHAS:
        w = np.linalg.solve(A + alpha * np.eye(len(A)), right)
        errors[alpha] = wrong_pairs(task.validation.y, task.validation.X @ w)
        if alpha == outcome.alpha:
            assert outcome.test_error == pytest.approx(wrong_pairs(task.test.y, task.test.X @ w), abs=2e-4)
    assert outcome.validation_error == pytest.approx(min(errors.values()), abs=2e-4)
    assert errors[outcome.alpha] == pytest.approx(min(errors.values()), abs=2e-4)


@pytest.mark.shared_data
@pytest.mark.slow
def test_reuters(data_dir):
    errors, _ = large_scale.run(large_scale.reuters(data_dir, quick=True), quick=True)
    for kind in ("labels", "pairs"):
        tikhonov, hybrid = (errors.ours[f"{kind}: {name}"]["error"] for name in ("Tikhonov", "hybrid"))
        assert tikhonov < 0.02
        assert abs(hybrid - tikhonov) < 0.002
