"""What is drawn is what was found."""

import matplotlib.pyplot as plt
import numpy as np
from tests.refusals import Refusal

from rankrls import RankRLS
from rankrls.plots import ValidationSurfaceDisplay

SURFACE = np.array([[0.4, 0.3, 0.35], [0.4, 0.25, 0.25], [0.45, 0.45, np.nan]])


def test_curves_and_the_choice():
    display = ValidationSurfaceDisplay(SURFACE, [0.0, 0.5, 8.0], alpha=0.5, n_iter=2, measure="disagreement").plot()
    assert len(display.lines_) == 3
    for line, values in zip(display.lines_, SURFACE, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), values[~np.isnan(values)])
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 1 + (~np.isnan(values)).sum()))
    assert [line.get_label() for line in display.lines_] == ["alpha = 0", "alpha = 0.5", "alpha = 8"]
    assert display.lines_[0].get_linestyle() == "--"
    assert (display.chosen_.get_xdata()[0], display.chosen_.get_ydata()[0]) == (2, 0.25)
    assert display.ax_.get_ylabel() == "disagreement"
    assert display.ax_.get_xscale() == "log"


def test_axes_and_options_are_taken():
    figure, ax = plt.subplots()
    display = ValidationSurfaceDisplay(SURFACE[0], [0.0]).plot(ax=ax, color="tab:blue", linewidth=3)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert display.chosen_ is None
    assert display.lines_[0].get_color() == "tab:blue"


def test_errors():
    with Refusal("3 rows", "2", parameter="alphas"):
        ValidationSurfaceDisplay(SURFACE, [1.0, 2.0])
    with Refusal("no validation surface", parameter="estimator"):
        ValidationSurfaceDisplay.from_estimator(RankRLS().fit([[0.0], [1.0]], [0, 1]))
