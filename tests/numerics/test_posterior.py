"""The posterior against explicit Gaussian conditioning."""

from __future__ import annotations

import numpy as np
import pytest

from rankrls._errors import InputError
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.posterior import Evidence, feature_differences
from rankrls.numerics.smoother import DualEquations, normal_equations


def problems():
    rng = np.random.default_rng(0)
    X, q, y = rng.normal(size=(30, 4)), np.repeat(np.arange(5), 6), rng.normal(size=30)
    for ties, beta in (("include", 0.0), ("exclude", 0.0), ("include", 0.4)):
        graph = LabelledGraph.build(np.round(y), q, ties=ties, regression_weight=beta)
        yield X, graph


@pytest.mark.parametrize("which", range(3))
def test_evidence_is_the_marginal_density_in_either_form(which):
    X, graph = list(problems())[which]
    F, t = graph.factor_rows(np.eye(len(X))), graph.target[:, 0]
    K = X @ X.T
    forms = [
        Evidence.of(normal_equations(graph, X).smoother(), graph),
        Evidence.of(DualEquations.of_kernel(K.copy(), graph).smoother(), graph),
    ]
    for alpha in (0.1, 10.0):
        C = F @ K @ F.T + alpha * np.eye(len(F))
        objective = alpha * t @ np.linalg.solve(C, t)
        density = -0.5 * (graph.n_observations * np.log(objective) + np.linalg.slogdet(C / alpha)[1])
        for evidence in forms:
            np.testing.assert_allclose(evidence.objective(alpha), objective, rtol=1e-9)
            np.testing.assert_allclose(evidence.log_density(alpha), density, rtol=1e-9)
            np.testing.assert_allclose(evidence.degrees_of_freedom(alpha), np.trace(np.linalg.solve(C, F @ K @ F.T)))
    np.testing.assert_allclose(forms[0].best_alpha(), forms[1].best_alpha(), rtol=1e-4)


def test_what_has_no_posterior_is_refused():
    X, graph = next(problems())
    with pytest.raises(InputError) as refused:
        Evidence.of(normal_equations(graph, np.ones_like(X)).smoother(), graph).best_alpha()
    assert refused.value.parameter == "X"
    smoother = normal_equations(graph, np.column_stack((X, X[:, 0]))).smoother()
    with pytest.raises(InputError) as refused:
        feature_differences(smoother, 1e-18, np.ones((1, 5)))
    assert refused.value.parameter == "alpha"
