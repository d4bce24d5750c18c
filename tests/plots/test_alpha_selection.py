"""The drawn curve is the one that was chosen by, and the marked values are those that estimators take."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from tests.refusals import Refusal

from rankrls import CGRankRLS, RankingPursuitCV, RankRLS, RankRLSCV, RankSVMCV
from rankrls.metrics import disagreement_error, ndcg
from rankrls.model_selection import leave_query_out
from rankrls.plots import AlphaSelectionDisplay


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 20))
    y = np.digitize(X[:, 0] + 2 * rng.normal(size=120), [-1.0, 1.0])
    return X, y, np.repeat(np.arange(24), 5)


def band_of(display):
    """Lower and upper edge of the band, by ascending position."""
    corners = display.band_.get_paths()[0].vertices
    at = np.unique(corners[:, 0])
    return np.array([[corners[corners[:, 0] == x, 1].min(), corners[corners[:, 0] == x, 1].max()] for x in at])


def mark(line):
    return line.get_xdata()[0], line.get_ydata()[0]


def test_the_curve_of_a_choice_with_both_rules(data):
    X, y, qid = data
    best = RankRLSCV().fit(X, y, qid=qid)
    simplest = RankRLSCV(rule="one_se").fit(X, y, qid=qid)
    assert best.alpha_ < simplest.alpha_
    table = best.cv_results_
    display = AlphaSelectionDisplay.from_estimator(best)
    np.testing.assert_array_equal(display.line_.get_xdata(), table["alpha"])
    np.testing.assert_array_equal(display.line_.get_ydata(), table["mean_score"])
    wanted = np.column_stack(
        [table["mean_score"] - table["standard_error"], table["mean_score"] + table["standard_error"]]
    )
    np.testing.assert_allclose(band_of(display), wanted[::-1])
    assert mark(display.best_) == (best.alpha_, best.best_score_)
    assert mark(display.one_se_) == (simplest.alpha_, simplest.best_score_)
    edge = best.best_score_ + best.best_score_error_
    assert display.threshold_.get_ydata()[-1] == edge
    assert display.best_.get_label().endswith(", chosen")
    assert not display.one_se_.get_label().endswith("chosen")
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_xlabel() == "alpha"
    assert display.ax_.get_ylabel() == "disagreement, leave-query-out over 24 queries"
    other = AlphaSelectionDisplay.from_estimator(make_pipeline("passthrough", simplest))
    assert other.one_se_.get_label().endswith(", chosen")
    assert mark(other.best_) == mark(display.best_)


def test_only_the_combination_that_was_chosen(data):
    X, y, qid = data
    model = RankRLSCV(scoring="ndcg@3", kernel=("rbf", "linear"), gamma=(0.01, 0.1), ties=("include", "exclude"))
    model.fit(X, y, qid=qid)
    display = AlphaSelectionDisplay.from_estimator(model)
    chosen = {name: value for name, value in model.best_params_.items() if name != "alpha"}
    again = RankRLSCV(scoring="ndcg@3", **chosen).fit(X, y, qid=qid)
    np.testing.assert_allclose(display.line_.get_xdata(), again.cv_results_["alpha"])
    np.testing.assert_allclose(display.line_.get_ydata(), again.cv_results_["mean_score"])
    assert display.best == model.alpha_
    assert display.threshold_ is None or display.threshold_.get_ydata()[-1] < model.best_score_  # greater is better


def test_the_simplest_machine_has_the_smallest_c(data):
    X, y, qid = data
    grid = tuple(10.0 ** np.arange(-5, 1))
    best = RankSVMCV(Cs=grid).fit(X, y, qid=qid)
    simplest = RankSVMCV(Cs=grid, rule="one_se").fit(X, y, qid=qid)
    display = AlphaSelectionDisplay.from_estimator(best)
    assert (display.best, display.one_se) == (best.C_, simplest.C_)
    assert display.ax_.get_xlabel() == "C"
    assert np.all(np.diff(display.line_.get_xdata()) > 0)


def test_from_held_out_scores(data):
    X, y, qid = data
    model = RankRLSCV().fit(X, y, qid=qid)
    alphas = model.cv_results_["alpha"][::-1]  # any order
    scores = leave_query_out(RankRLS(), X, y, qid=qid, alphas=alphas)
    figure, ax = plt.subplots()
    display = AlphaSelectionDisplay.from_scores(y, scores, alphas, qid=qid, ax=ax, color="black")
    np.testing.assert_allclose(display.values, model.cv_results_["mean_score"], atol=1e-12)
    np.testing.assert_allclose(display.errors, model.cv_results_["standard_error"], atol=1e-12)
    per_query = disagreement_error(y, scores, qid=qid, per_query=True)
    per_query = per_query[~np.isnan(per_query[:, 0])]
    by_hand = per_query.std(axis=0, ddof=1) / np.sqrt(len(per_query))
    np.testing.assert_allclose(display.errors[::-1], by_hand)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert display.line_.get_color() == "black"
    display = AlphaSelectionDisplay.from_scores(y, scores, alphas, qid=qid, scoring="ndcg@2")
    np.testing.assert_allclose(display.values[::-1], ndcg(y, scores, qid=qid, k=2))
    assert display.best == alphas[np.argmax(display.values[::-1])]


def test_without_errors_there_is_one_rule():
    display = AlphaSelectionDisplay([1.0, 100.0, 10.0], [0.3, 0.4, 0.2], chosen=100.0).plot()
    assert display.alphas.tolist() == [100.0, 10.0, 1.0]
    assert display.best == 10.0
    assert np.isnan(display.one_se)
    assert display.band_ is display.one_se_ is display.threshold_ is None
    assert mark(display.chosen_) == (100.0, 0.4)
    one_query = AlphaSelectionDisplay.from_scores([0, 1, 2], np.eye(3)[:, :2], [1.0, 2.0], scoring="ndcg")
    assert one_query.errors is None


def test_one_standard_error_below_the_best_where_greater_is_better():
    display = AlphaSelectionDisplay([1.0, 10.0, 100.0], [0.8, 0.76, 0.7], errors=[0.05] * 3, greater_is_better=True)
    display.plot()
    assert (display.best, display.one_se) == (1.0, 10.0)
    assert display.threshold_.get_xdata().tolist() == [1.0, 1.0, 10.0]
    assert display.threshold_.get_ydata().tolist() == [0.8, 0.75, 0.75]


def test_one_mark_where_the_rules_agree():
    display = AlphaSelectionDisplay([1.0, 10.0], [0.3, 0.2], errors=[0.01, 0.01], chosen=10.0).plot()
    assert display.best_.get_label() == "best and one standard error: alpha = 10, chosen"
    assert display.one_se_ is None


@pytest.mark.parametrize(
    ("arguments", "parameter", "refusal"),
    [
        ({"values": [1.0, 2.0, 3.0]}, "values", Refusal("2 alphas", "3", parameter="values")),
        ({"values": [[1.0, 2.0]]}, "values", Refusal("shape", parameter="values")),
        ({"errors": [1.0]}, "errors", Refusal("2 alphas", "1", parameter="errors")),
        ({"alphas": [0.0, 2.0]}, "alphas", Refusal("positive", parameter="alphas")),
        ({"parameter": "gamma"}, "parameter", Refusal("'gamma'", parameter="parameter")),
        ({"chosen": 3.0}, "chosen", Refusal("got 3.0", parameter="chosen")),
    ],
)
def test_bad_values(arguments, parameter, refusal):
    with refusal as error:
        AlphaSelectionDisplay(**({"alphas": [1.0, 2.0], "values": [1.0, 2.0]} | arguments))
    assert error.value.parameter == parameter


def test_estimators_without_such_a_curve_say_what_to_use(data):
    X, y, qid = data
    for estimator, use in (
        (CGRankRLS(), "ValidationSurfaceDisplay"),
        (RankingPursuitCV(2, cv=2), "PursuitPathDisplay"),
        (RankRLS(), "Fit RankRLSCV"),
    ):
        with Refusal(type(estimator).__name__, remedy=use):
            AlphaSelectionDisplay.from_estimator(estimator.fit(X, y, qid=qid))


def test_bad_scores(data):
    _, y, _ = data
    with Refusal("column for each alpha", parameter="scores"):
        AlphaSelectionDisplay.from_scores(y, np.zeros(120), [1.0])
    with Refusal("100 items", "120", parameter="y"):
        AlphaSelectionDisplay.from_scores(y, np.zeros((100, 1)), [1.0])
