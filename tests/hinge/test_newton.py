"""What preconditioning and warm starts are for, and that the reported gap is one."""

import numpy as np
import pytest

from rankrls._queries import query_layout
from rankrls.graph import OrderedPairs
from rankrls.hinge import ranksvm
from rankrls.hinge.ranksvm import HingeProblem


@pytest.fixture
def data():
    """Features of very different scales, half of them nearly copies."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 20))
    y = np.digitize(X @ rng.normal(size=20) / 4 + rng.normal(size=600), [0.0, 1.0])
    X[:, 10:] = X[:, :10] + 1e-3 * X[:, 10:]
    X *= np.exp(2.0 * rng.normal(size=20))
    return X, OrderedPairs.build(y.astype(float), query_layout(np.repeat(np.arange(30), 20), 600), balance="queries")


class Counted:
    """Products with X or its transpose, counted."""

    def __init__(self, products):
        self.products, self.n = products, 0

    def __getattr__(self, name):
        return getattr(self.products, name)

    def scores(self, w):
        self.n += 1
        return self.products.scores(w)

    def combine(self, g):
        self.n += 1
        return self.products.combine(g)


def minimum(problem, C, start=None):
    """The minimum, and how many products it has taken."""
    problem.products = Counted(problem.products)
    return problem.minimum(C, start), problem.products.n


def made(data, loss, tol=None):
    return HingeProblem(*data, loss, tol=tol or {"hinge": 1e-3, "squared_hinge": 1e-6}[loss], max_iter=100)


@pytest.mark.parametrize("loss", ranksvm.LOSSES)
def test_scales_and_correlations_cost_nothing(monkeypatch, data, loss):
    ours, few = minimum(made(data, loss), 500.0)
    monkeypatch.setattr(ranksvm, "_FEW_FEATURES", 0)
    plain, many = minimum(made(data, loss), 500.0)
    assert ours.status == plain.status == "converged"
    assert ours.value == pytest.approx(plain.value, rel=2e-3 if loss == "hinge" else 2e-6)
    assert few < 120
    assert many > 4 * few


@pytest.mark.parametrize("loss", ranksvm.LOSSES)
def test_a_path_starts_where_the_one_before_ended(data, loss):
    problem = made(data, loss)
    alphas = 2.0 ** -np.arange(0, 4, 0.5)
    apart = [minimum(made(data, loss), 0.5 / alpha) for alpha in alphas]
    w, products = None, 0
    for alpha, (alone, _), on_path in zip(alphas, apart, problem.weights(0.5 / alphas)[0], strict=True):
        along, taken = minimum(made(data, loss), 0.5 / alpha, w)
        np.testing.assert_array_equal(along.w, on_path)
        assert along.value == pytest.approx(alone.value, rel=2e-3 if loss == "hinge" else 2e-6)
        w, products = along.w, products + taken
    assert products < sum(taken for _, taken in apart)


@pytest.mark.parametrize("loss", ranksvm.LOSSES)
@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_the_gap_bounds_the_distance_to_the_minimum(data, loss, max_iter):
    best = made(data, loss, tol=1e-8).minimum(1.0)
    problem = made(data, loss, tol=1e-12)
    problem.max_iter = max_iter
    cut = problem.minimum(1.0)
    assert cut.status == "max_iter"
    assert cut.n_iter == max_iter
    assert cut.value - best.value + 1e-8 * best.value >= 0.0
    assert cut.value - best.value <= cut.gap * (1 + 1e-9) + 1e-8 * best.value


def test_where_c_is_tiny_the_weights_are_close_wherever_they_start(data):
    """Nearly all of the objective is loss: its minimum is within the tolerance even at weights that rank backwards."""
    best = made(data, "squared_hinge", tol=1e-15).minimum(1e-12)
    for start in (None, -best.w, 1e-3 * best.w):
        found = made(data, "squared_hinge").minimum(1e-12, start)
        assert found.status == "converged"
        assert np.linalg.norm(found.w - best.w) < 0.51 * np.linalg.norm(found.w)
