"""What is drawn is what was found: read back from the axes."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from tests.refusals import Refusal

from rankrls import RankRLS, RankRLSCV, RankSVMCV, plots
from rankrls.clicks import Propensities
from rankrls.inspection import leaderboard
from rankrls.plots import (
    AlphaSelectionDisplay,
    CoefficientsDisplay,
    LeaderboardDisplay,
    PropensityDisplay,
    RegularizationPathDisplay,
)

SURFACE = np.array([[0.4, 0.3, 0.35], [0.4, 0.25, 0.25], [0.45, 0.45, np.nan]])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(120, 20)), columns=[f"f{j}" for j in range(20)])
    y = np.digitize(X["f0"] + 2 * rng.normal(size=120), [-1.0, 1.0])
    return X, y, np.repeat(np.arange(24), 5)


def mark(line):
    return line.get_xdata()[0], line.get_ydata()[0]


def test_the_curve_of_a_choice_with_both_rules(data):
    X, y, qid = data
    best = RankRLSCV().fit(X, y, qid=qid)
    simplest = RankRLSCV(rule="one_se").fit(X, y, qid=qid)
    table = best.cv_results_
    display = AlphaSelectionDisplay.from_estimator(best)
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), table["alpha"])
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), table["mean_score"])
    assert [mark(m) for m in display.marks_] == [
        (best.alpha_, best.best_score_),
        (simplest.alpha_, simplest.best_score_),
    ]
    assert ["chosen" in m.get_label() for m in display.marks_] == [True, False]
    assert (display.ax_.get_xscale(), display.ax_.get_xlabel()) == ("log", "alpha")
    other = AlphaSelectionDisplay.from_estimator(make_pipeline("passthrough", simplest))
    assert ["chosen" in m.get_label() for m in other.marks_] == [False, True]


def test_only_the_combination_that_was_chosen(data):
    X, y, qid = data
    model = RankRLSCV(scoring="ndcg@3", gamma=(0.01, 0.1), kernel="rbf", ties=("include", "exclude")).fit(X, y, qid=qid)
    display = AlphaSelectionDisplay.from_estimator(model)
    chosen = {name: value for name, value in model.best_params_.items() if name != "alpha"}
    again = RankRLSCV(scoring="ndcg@3", kernel="rbf", **{k: v for k, v in chosen.items() if k != "kernel"})
    again.fit(X, y, qid=qid)
    np.testing.assert_allclose(display.lines_[0].get_ydata(), again.cv_results_["mean_score"])
    assert display.best == model.alpha_


def test_the_curve_of_pairs_that_were_held_out(data):
    X, y, _ = data
    model = RankRLSCV().fit(X, y)
    display = AlphaSelectionDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), model.cv_results_["mean_score"])
    assert len(display.alphas) > 10


def test_the_simplest_machine_has_the_smallest_c(data):
    X, y, qid = data
    grid = tuple(10.0 ** np.arange(-5, 1))
    display = AlphaSelectionDisplay.from_estimator(RankSVMCV(Cs=grid).fit(X, y, qid=qid))
    assert display.ax_.get_xlabel() == "C"
    assert np.all(np.diff(display.alphas) > 0)


def test_a_surface_over_iterations():
    figure, ax = plt.subplots()
    display = AlphaSelectionDisplay([8.0, 0.5, 0.0], SURFACE[::-1], chosen=0.5, n_iter=2).plot(ax=ax, linewidth=3)
    for line, values in zip(display.lines_, SURFACE[::-1], strict=True):
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert [line.get_label() for line in display.lines_] == ["alpha = 8", "alpha = 0.5", "alpha = 0"]
    assert display.lines_[-1].get_linestyle() == "--"
    assert mark(display.marks_[0]) == (2, 0.25)
    assert display.ax_ is ax
    assert display.figure_ is figure


def test_a_path_is_one_fit_for_each_alpha(data):
    X, y, qid = data
    model = RankRLSCV(balance=("pairs", "queries")).fit(X, y, qid=qid)
    display = RegularizationPathDisplay.from_estimator(model, X, y, qid=qid, alphas=[1e-3, model.alpha_, 1e6], top=3)
    at = display.alphas.tolist().index(model.alpha_)
    np.testing.assert_allclose([line.get_ydata()[at] for line in display.lines_], model.coef_, rtol=1e-8)
    largest = X.columns[np.argsort(-np.abs(model.coef_))[:3]].tolist()
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == [*largest, f"alpha = {model.alpha_:.3g}"]
    left, right = display.ax_.get_xlim()
    assert left > right  # less regularization to the right
    plain = RegularizationPathDisplay.from_estimator(RankRLS(balance="queries"), X, y, qid=qid)
    assert len(plain.alphas) > 10


def test_a_path_of_preferences(data):
    X, y, _ = data
    i, j = np.nonzero(y[:, None] > y)
    display = RegularizationPathDisplay.from_estimator(RankRLS(), X, i[::9], j[::9], alphas=[1.0, 0.1], names=range(20))
    np.testing.assert_allclose(display.weights[0], RankRLS(1.0).fit_pairs(X, i[::9], j[::9]).coef_)
    assert display.names[0] == "0"


def test_refusals(data):
    X, y, qid = data
    alpha, path = AlphaSelectionDisplay, RegularizationPathDisplay
    for call, parameter in (
        (lambda: alpha([1.0, 2.0], [1.0, 2.0, 3.0]), "values"),
        (lambda: alpha([1.0, 2.0], [1.0, 2.0], errors=[1.0]), "errors"),
        (lambda: alpha.from_estimator(RankRLS().fit(X, y, qid=qid)), "estimator"),
        (lambda: path.from_estimator(RankRLS(kernel="rbf"), X, y), "estimator"),
        (lambda: path.from_estimator(make_pipeline(RankRLS()), X, y), "estimator"),
        (lambda: path.from_estimator(RankRLS(), X, np.c_[y, y], alphas=[1.0]), "y"),
        (lambda: path([1.0, 2.0], np.zeros((3, 1))), "weights"),
        (lambda: path([1.0], np.zeros((1, 2)), ["a"]), "names"),
    ):
        with Refusal(parameter=parameter):
            call()


@pytest.mark.parametrize("name", sorted(plots.__all__))
def test_without_matplotlib_the_error_names_the_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    given = {
        "AlphaSelectionDisplay": ([1.0, 2.0], [0.1, 0.2]),
        "LeaderboardDisplay": (leaderboard([0, 1, 0], [1, 2, 2]),),
        "RegularizationPathDisplay": ([1.0, 2.0], [[1.0], [0.5]]),
    }
    with Refusal("pip install 'rankrls[plots]'", kind=ImportError):
        getattr(plots, name)(*given.get(name, ([1.0, 2.0],))).plot()


def test_examination_with_its_intervals():
    theta, error = np.array([1.0, 0.5, 0.2]), np.array([0.0, 0.05, 0.15])
    found = Propensities(np.array([1, 2, 5]), theta, error, np.full(3, 90.0))
    line, _, (bars,) = PropensityDisplay(found).plot(color="black").bars_
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 5])
    np.testing.assert_array_equal(line.get_ydata(), theta)
    ends = np.array([segment[:, 1] for segment in bars.get_segments()]).T
    np.testing.assert_allclose(ends, [[1.0, 0.402, 0.0], [1.0, 0.598, 0.494]])  # none below 0


def test_known_and_estimated_examination():
    rng = np.random.default_rng(0)
    X, position = rng.normal(size=(600, 2)), np.tile([1, 2, 3], 200)
    clicks = rng.random(600) < 0.5 / position
    model = RankRLS().fit(X, clicks, position=position)
    drawn = PropensityDisplay(model.propensities_).plot().bars_
    np.testing.assert_array_equal(drawn[0].get_ydata(), model.propensities_.examination)
    known = PropensityDisplay(Propensities.known({1: 1.0, 2: 0.5})).plot()
    assert np.ptp([segment[:, 1] for segment in known.bars_[2][0].get_segments()], axis=1).max() == 0.0


@pytest.mark.parametrize("scale", ["share", "elo"])
def test_a_leaderboard(scale):
    winners, losers = [0, 0, 1, 2, 0, 1] * 9, [1, 2, 2, 0, 3, 3] * 9
    board = leaderboard(winners, losers, names=["d", "a", "c", "b"], scale=scale, anchor=("a", 1000))
    display = LeaderboardDisplay(board, top=3).plot(color="red")
    axes = display.ax_
    assert [text.get_text() for text in axes.get_yticklabels()] == board.item[:3].tolist()
    np.testing.assert_array_equal(display.bars_.lines[0].get_xdata(), board.rating[:3])
    ends = [segment[:, 0] for segment in display.bars_.lines[2][0].get_segments()]
    np.testing.assert_allclose(ends, np.column_stack((board.low, board.high))[:3], rtol=1e-12)
    (ranks,) = axes.child_axes
    wanted = [f"{a} to {b}" for a, b in zip(board.best_rank[:3], board.worst_rank[:3], strict=True)]
    assert [text.get_text() for text in ranks.get_yticklabels()] == wanted
    _, ax = plt.subplots()
    assert LeaderboardDisplay(board, top=None).plot(ax=ax).ax_ is ax
    assert len(ax.get_yticklabels()) == 4


def test_names_are_no_formulas():
    names = ["$price", r"$\bad$", "x_1"]
    path = RegularizationPathDisplay([1.0, 2.0], [[1, 2, 3], [1, 2, 2]], names=names).plot()
    bars = CoefficientsDisplay([1.0, 2.0, -3.0], names=names).plot()
    board = LeaderboardDisplay(leaderboard([0, 1, 2], [1, 2, 0], names=names)).plot()
    for display in (path, bars, board):
        display.figure_.canvas.draw()
    assert [text.get_text() for text in board.ax_.get_yticklabels()] == board.columns["item"].tolist()
