"""The problem of one candidate: what it is asked first does not change what it answers later."""

import numpy as np
import pytest

from rankrls import InputWarning, RankRLS, RankRLSCV
from rankrls._comparisons import GraphSetting, LabelledItems
from rankrls._queries import query_layout
from rankrls.kernels import Kernel
from rankrls.metrics import Measure
from rankrls.selection.least_squares import LeastSquares

ALPHAS = np.array([0.1, 1.0, 10.0])


def _problem(kernel, n, ties="include"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, n))
    X = X @ X.T if kernel == "precomputed" else X
    layout = query_layout(np.repeat(np.arange(6), 4), 24)
    data = LabelledItems(X, None, True, False, rng.integers(0, 3, size=(24, 2)).astype(float), layout, None)
    problem = LeastSquares(kernel=Kernel(kernel), setting=GraphSetting(ties=ties)).problem(data)
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


@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_values_belong_to_the_queries_of_their_fold(ties):
    """Folds in no order: each query's value is that of a model fitted to the queries of the other folds."""
    X, problem = _problem("linear", 3, ties)
    rng = np.random.default_rng(0)
    rng.normal(size=(24, 3))
    qid = np.repeat(np.arange(6), 4)
    Y = rng.integers(0, 3, size=(24, 2)).astype(float)
    folds = [np.array([4, 1]), np.array([5, 0]), np.array([2, 3])]
    measure = Measure("disagreement")
    values = problem.held_out_curve(measure, folds, ALPHAS).per_block
    for k, alpha in enumerate(ALPHAS):
        for fold in folds:
            held = np.isin(qid, fold)
            model = RankRLS(alpha, ties=ties).fit(X[~held], Y[~held], qid=qid[~held])
            for query in fold:
                rows = qid == query
                scores = model.predict(X[rows])
                each = [measure(Y[rows, t], scores[:, t]) for t in range(2)]
                assert values[query, k] == pytest.approx(np.mean(each), abs=1e-12)


def test_the_automatic_grid_begins_at_the_largest_spectrum_of_the_targets():
    """With ties excluded each target has a graph, and so a spectrum of its own."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    qid = np.repeat(np.arange(6), 10)
    few = np.zeros(60)
    few[::10] = 1.0
    many = rng.permutation(60).astype(float)
    for Y in (np.column_stack((few, many)), np.column_stack((many, few))):
        largest = [RankRLSCV(ties="exclude").fit(X, y, qid=qid).cv_results_["alpha"].max() for y in Y.T]
        assert RankRLSCV(ties="exclude").fit(X, Y, qid=qid).cv_results_["alpha"].max() == pytest.approx(max(largest))
        assert max(largest) > 2.0 * min(largest)


def test_an_alpha_is_lost_relative_to_the_scale_of_the_features():
    """A model that fits every label: an alpha below rounding is not evaluated, whatever the unit of the features."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(12, 40))
    y = rng.normal(size=12)
    qid = np.repeat(np.arange(3), 4)
    for unit in (1e-5, 1.0, 1e5):
        alphas = np.array([1.0, 1e-13]) * 40.0 * unit**2
        with pytest.warns(InputWarning, match="not evaluated"):
            model = RankRLSCV(alphas).fit(unit * X, y, qid=qid)
        assert list(np.isnan(model.cv_results_["mean_score"])) == [False, True]
