"""Functions over a basis of items, and their scores."""

from __future__ import annotations

import numpy as np
import pytest

from rankrls.kernels import Kernel
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.scorer import Basis, Scorer
from rankrls.numerics.smoother import DualEquations, normal_equations
from tests.oracles import gaussian


def scores_of_basis(basis, graph, X, alpha):
    equations = normal_equations(graph, basis.features(X)).whitened(basis.whitening)
    return basis.scorer(equations.solve(alpha))(X)[:, 0]


@pytest.mark.parametrize("alpha", [10.0, 1e-3])
def test_a_linear_basis_of_dependent_items_that_spans_everything_is_the_linear_model(alpha):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    graph = LabelledGraph.build(rng.normal(size=60), np.arange(60) // 6)
    basis = Basis.build(Kernel("linear"), np.vstack((X[:4], X[:4], X[0] + X[1])))
    wanted = X @ normal_equations(graph, X).solve(alpha)[:, 0]
    np.testing.assert_allclose(scores_of_basis(basis, graph, X, alpha), wanted, atol=1e-10)


def test_an_item_in_the_span_of_others_adds_nothing_to_a_linear_basis():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    graph = LabelledGraph.build(rng.normal(size=60), np.arange(60) // 6)
    items = np.vstack((X[:2], X[0] - X[1], X[0] + 3.0 * X[1]))
    few, more = (scores_of_basis(Basis.build(Kernel("linear"), Z), graph, X, 1e-3) for Z in (items[:2], items))
    np.testing.assert_allclose(more, few, atol=1e-10)


@pytest.mark.parametrize("gamma", [1.0, 0.1, 1e-3])
def test_a_basis_of_all_items_is_the_kernel_machine_however_alike_items_are(gamma):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    graph = LabelledGraph.build(rng.normal(size=40), np.arange(40) // 8)
    K = gaussian(X, X, gamma)
    equations = DualEquations.of_kernel(K.copy(), graph)
    alpha = 1e-5 * np.linalg.eigvalsh(equations.C)[-1]
    wanted = K @ equations.smoother().path(np.array([alpha]))[0, :, 0]
    found = scores_of_basis(Basis.build(Kernel("rbf", gamma), X), graph, X, alpha)
    np.testing.assert_allclose(found - found.mean(), wanted - wanted.mean(), atol=1e-8)


def test_equal_items_have_exactly_equal_scores():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(37, 1))
    for count in (2, 3, 5, 9, 4099):
        X = np.tile(rng.normal(size=37), (count, 1))
        assert np.ptp(Scorer(weights)(X)) == 0.0
