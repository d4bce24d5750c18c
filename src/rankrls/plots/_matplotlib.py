"""Matplotlib, when something is drawn and not before; and what the displays' looks have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from rankrls._extras import needed

__all__ = ["AHEAD", "BEHIND", "COLOURS", "REST", "axes_to_draw_on", "label_line_ends", "one_name_each"]

# Okabe and Ito's, told apart by all kinds of colour vision; without yellow, which white paper swallows.
AHEAD, BEHIND, REST = "#0072B2", "#D55E00", "0.75"
COLOURS = (AHEAD, BEHIND, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "black")
_LINE_HEIGHT = 12.0  # points, of a label


def axes_to_draw_on(ax: Any = None) -> Any:
    """The axes given, or those of a new figure.

    Raises
    ------
    ImportError
        Where matplotlib is not installed, with the command that installs it.
    """
    plt = needed("Drawing", "plots", "matplotlib.pyplot")
    if ax is not None:
        return ax
    return plt.subplots(layout="constrained")[1]


def label_line_ends(ax: Any, lines: Sequence[Any]) -> list[Any]:
    """Write each line's label beside its last point, moved up or down as little as keeps labels apart.

    The least squares move of ordered places to places at least one line's height apart is an isotonic regression.
    """
    if not lines:
        return []
    ends = np.array([[line.get_xdata()[-1], line.get_ydata()[-1]] for line in lines], dtype=np.float64)
    low, high = ax.get_ylim()
    height = ax.get_window_extent().height * 72.0 / ax.figure.dpi
    wanted = (ends[:, 1] - low) / (high - low) * height
    order = np.argsort(wanted, kind="stable")
    room = _LINE_HEIGHT * np.arange(len(lines))
    places = np.empty(len(lines))
    places[order] = isotonic_regression(wanted[order] - room) + room
    return [
        ax.annotate(
            line.get_label(),
            end,
            xytext=(14.0, place - want),
            textcoords="offset points",
            va="center",
            fontsize="small",
            color=line.get_color(),
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": line.get_color(), "shrinkA": 1, "shrinkB": 0},
        )
        for line, end, place, want in zip(lines, ends, places, wanted, strict=True)
    ]


def one_name_each(names: Sequence[Any] | None, n: int) -> list[str]:
    """Names of features; x0, x1, ... by default, as in scikit-learn.

    Raises
    ------
    ValueError
        For another number of names than features.
    """
    if names is None:
        return [f"x{j}" for j in range(n)]
    if len(names) != n:
        raise ValueError(f"There are {len(names)} names but {n} features; each feature needs one.")
    return [str(name) for name in names]
