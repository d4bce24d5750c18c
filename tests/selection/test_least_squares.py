"""The problem of one candidate: what it is asked first does not change what it answers later."""

import numpy as np
import pytest

from rankrls._comparisons import LabelledItems, Setting
from rankrls._queries import query_layout
from rankrls.kernels import Kernel
from rankrls.selection.least_squares import LeastSquares

ALPHAS = np.array([0.1, 1.0, 10.0])


def _problem(kernel, n, ties="include"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, n))
    X = X @ X.T if kernel == "precomputed" else X
    layout = query_layout(np.repeat(np.arange(6), 4), 24)
    data = LabelledItems(X, None, True, False, rng.integers(0, 3, size=(24, 2)).astype(float), layout, None)
    problem = LeastSquares(kernel=Kernel(kernel), setting=Setting(ties=ties)).problem(data)
    return X, problem


@pytest.mark.parametrize("ties", ["include", "exclude"])
@pytest.mark.parametrize(("kernel", "n"), [("linear", 3), ("linear", 60), ("rbf", 3), ("precomputed", 5)])
@pytest.mark.parametrize("first", ["axis", "solve", "path"])
def test_the_order_of_questions_changes_no_answer(kernel, n, ties, first):
    X, fresh = _problem(kernel, n, ties)
    expected = np.hstack([fresh.path(ALPHAS)[k](X) for k in range(3)])
    _, problem = _problem(kernel, n, ties)
    {"axis": problem.axis, "solve": lambda: problem.solve(1.0), "path": lambda: problem.path(ALPHAS)}[first]()
    solved = np.hstack([problem.solve(alpha)[0](X) for alpha in ALPHAS])
    chosen = np.hstack([problem.path(ALPHAS)[k](X) for k in range(3)])
    np.testing.assert_allclose(solved, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(chosen, expected, rtol=1e-7, atol=1e-9)
