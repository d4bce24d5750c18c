"""Every point of a path is a fit of its own."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from scipy import sparse
from sklearn.pipeline import make_pipeline
from tests.refusals import Refusal

from rankrls import CGRankRLS, RankRLS, RankRLSCV
from rankrls.plots import RegularizationPathDisplay

GRID = [1e-3, 10.0, 0.1]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 7)), columns=list("abcdefg"))
    y = np.round(X.to_numpy() @ [2.0, -1.5, 1.0, -0.5, 0.2, 0.0, 0.0] + rng.normal(size=60))
    return X, y, np.repeat(np.arange(12), 5)


def drawn(display):
    return np.column_stack([line.get_ydata() for line in display.lines_])


@pytest.mark.parametrize("solver", ["primal", "dual", "cg"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_against_fits(data, solver, kind):
    X, y, qid = data
    X = X.to_numpy() if kind == "dense" else sparse.csr_array(X.to_numpy())
    model = RankRLS(solver=solver, ties="exclude", balance="queries")
    display = RegularizationPathDisplay.from_estimator(model, X, y, qid=qid, alphas=GRID)
    for alpha, weights in zip([10.0, 0.1, 1e-3], drawn(display), strict=True):
        wanted = RankRLS(alpha, ties="exclude", balance="queries").fit(X, y, qid=qid).coef_
        np.testing.assert_allclose(weights, wanted, rtol=1e-6, atol=1e-9)
    assert [line.get_label() for line in display.lines_] == [f"x{j}" for j in range(7)]
    assert display.lines_[0].get_xdata().tolist() == [10.0, 0.1, 1e-3]
    left, right = display.ax_.get_xlim()
    assert left > right  # less regularization to the right
    assert display.alpha_ is None
    assert not hasattr(model, "coef_")


def test_what_a_model_chose_is_marked(data):
    X, y, qid = data
    model = RankRLSCV(balance=("pairs", "queries"), regression_weight=0.3).fit(X, y, qid=qid, sample_weight=1 + qid % 3)
    display = RegularizationPathDisplay.from_estimator(
        model, X, y, qid=qid, sample_weight=1 + qid % 3, alphas=(model.alpha_, 2 * model.alpha_), top=3
    )
    np.testing.assert_allclose(drawn(display)[1], model.coef_, rtol=1e-8)
    assert set(display.alpha_.get_xdata()) == {model.alpha_}
    largest = np.argsort(-np.abs(model.coef_))[:3]
    assert [label.get_text() for label in display.labels_] == [X.columns[j] for j in largest]
    for label, j in zip(display.labels_, largest, strict=True):
        assert label.xy == (model.alpha_, pytest.approx(model.coef_[j]))
        assert label.get_color() == display.lines_[j].get_color()


def test_largest_where_alpha_is_marked():
    weights = [[1.0, 0.1], [1.0, 5.0]]
    for alpha, first in ((None, "x1"), (1.0, "x0"), (0.011, "x1")):
        display = RegularizationPathDisplay([1.0, 0.01], weights, alpha=alpha).plot(top=1)
        assert [label.get_text() for label in display.labels_] == [first]


def test_labels_do_not_overlap():
    ends = [0.0, 1e-4, 2e-4, 0.5, 0.5, 1.0, 1.0, -1.0]
    display = RegularizationPathDisplay([1.0, 0.1], [np.zeros(8), ends]).plot()
    display.figure_.canvas.draw()
    boxes = [Text.get_window_extent(label) for label in display.labels_]  # without the lines that lead to them
    order = sorted(range(8), key=lambda k: boxes[k].y0)
    assert all(boxes[a].y1 <= boxes[b].y0 + 0.5 for a, b in pairwise(order))
    heights = [display.labels_[k].xy[1] for k in order]
    assert heights == sorted(heights)


@pytest.mark.parametrize("factor", [1.0, 1e6])
def test_automatic_grid_is_fine_and_wide(data, factor):
    X, y, qid = data
    X = X * np.r_[np.ones(X.shape[1] - 1), factor]
    model = RankRLSCV().fit(X, y, qid=qid)
    display = RegularizationPathDisplay.from_estimator(model, X, y, qid=qid)
    assert len(display.alphas) >= 101
    ends = display.alphas[[0, -1]]
    np.testing.assert_allclose(ends, model.cv_results_["alpha"][[0, -1]], rtol=1e-9)
    assert np.abs(display.weights[0]).max() < 0.2 * np.abs(display.weights[-1]).max()


def test_targets(data):
    X, y, qid = data
    Y = np.column_stack([y, y % 3])
    for ties in ("include", "exclude"):
        display = RegularizationPathDisplay.from_estimator(
            RankRLS(ties=ties), X, Y, qid=qid, alphas=[2.0], target=1, names=range(7)
        )
        wanted = RankRLS(2.0, ties=ties).fit(X, y % 3, qid=qid).coef_
        np.testing.assert_allclose(drawn(display)[0], wanted)
    with Refusal("2 targets", parameter="target"):
        RegularizationPathDisplay.from_estimator(RankRLS(), X, Y, qid=qid)
    with Refusal("got 5", parameter="target"):
        RegularizationPathDisplay.from_estimator(RankRLS(), X, Y, qid=qid, target=5)


def test_preferences(data):
    X, y, _ = data
    rng = np.random.default_rng(1)
    i, j = rng.integers(60, size=(2, 100))
    i, j = i[i != j], j[i != j]
    strength, weight = np.sign(y[i] - y[j]), rng.uniform(0, 2, size=len(i))
    display = RegularizationPathDisplay.from_pairs(
        RankRLS(), X, i, j, strength=strength, weight=weight, alphas=GRID, color="black"
    )
    for alpha, weights in zip([10.0, 0.1, 1e-3], drawn(display), strict=True):
        wanted = RankRLS(alpha).fit_pairs(X, i, j, strength=strength, weight=weight).coef_
        np.testing.assert_allclose(weights, wanted, rtol=1e-7, atol=1e-10)
    assert {line.get_color() for line in display.lines_} == {"black"}
    model = RankRLSCV().fit_pairs(X, i, j, strength=strength)
    display = RegularizationPathDisplay.from_pairs(model, X, i, j, strength=strength, alphas=[model.alpha_])
    np.testing.assert_allclose(drawn(display)[0], model.coef_)


def test_estimators_without_such_a_path(data):
    X, y, qid = data
    for estimator, refusal in (
        (RankRLS(kernel="rbf"), Refusal("kernel='rbf'", "RankRLS", parameter="estimator")),
        (RankRLSCV(kernel="rbf").fit(X, y, qid=qid), Refusal("kernel='rbf'", "RankRLS", parameter="estimator")),
        (RankRLSCV(), Refusal("got RankRLSCV", parameter="estimator")),
        (CGRankRLS(), Refusal("got CGRankRLS", parameter="estimator")),
        (make_pipeline(RankRLS()), Refusal("got Pipeline", parameter="estimator")),
    ):
        with refusal as error:
            RegularizationPathDisplay.from_estimator(estimator, X, y)
        assert error.value.parameter == "estimator"
        assert ("Transform X first" in error.value.remedy) is hasattr(estimator, "steps")


def test_errors(data):
    X, y, qid = data
    display = RegularizationPathDisplay
    for call, parameter, refusal in (
        (
            lambda: display.from_estimator(RankRLS(), X, y, qid=qid, alphas=[0.0, 1.0]),
            "alphas",
            Refusal("positive", parameter="alphas"),
        ),
        (
            lambda: display.from_estimator(RankRLS(), X, y, qid=qid, names=["a", "b"]),
            "names",
            Refusal("7 features", "2", parameter="names"),
        ),
        (lambda: display([1.0, 2.0], np.zeros((3, 1))), "weights", Refusal("2 alphas", parameter="weights")),
        (lambda: display([0.0], [[1.0]]), "alphas", Refusal("positive", parameter="alphas")),
        (lambda: display([1.0], [[1.0]], alpha=0.0), "alpha", Refusal("got 0.0", parameter="alpha")),
    ):
        with refusal as error:
            call()
        assert error.value.parameter == parameter
