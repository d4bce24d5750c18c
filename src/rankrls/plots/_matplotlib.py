"""What the displays have in common. Matplotlib is imported when something is drawn, not before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression

from rankrls._errors import InputError
from rankrls._extras import needed

# Okabe and Ito's colours, which all kinds of colour vision can tell apart; without yellow, too pale for white paper.
AHEAD, BEHIND, REST = "#0072B2", "#D55E00", "0.75"
COLOURS = (AHEAD, BEHIND, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "black")
MOST_NAMES = 40  # below an axis
_LINE_HEIGHT = 12.0  # points, of a label
Array = NDArray[np.float64]


class Display:
    """Axes to draw on, and parts that several displays draw."""

    ax_: Any
    figure_: Any
    measure: str | None = None

    def _open(self, ax: Any) -> None:
        """Draw on the axes given, or on those of a new figure; an ImportError says how to install matplotlib."""
        plt = needed("Drawing", "plots", "matplotlib.pyplot")
        self.ax_ = plt.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure

    def _band(self, x: Any, values: Array, errors: Array | None, colour: Any) -> Any:
        """One standard error about a curve; None without errors."""
        if errors is None:
            return None
        return self.ax_.fill_between(x, values - errors, values + errors, alpha=0.2, linewidth=0, color=colour)

    def _chosen(self, x: float, y: float, what: str) -> Any:
        """A dot at the point that was chosen."""
        return self.ax_.plot([x], [y], "o", color="tab:red", label=f"chosen: {what}")[0]

    def _measured_by(self, xlabel: str, **scale: str) -> None:
        """What the axes show: the measure, against something else."""
        self.ax_.set(xlabel=xlabel, ylabel=self.measure or "measure", **scale)

    def _name_places(self, places: Any, names: Sequence[Any] | None) -> bool:
        """Write a name below each place of the axis, if there are not too many."""
        few = names is not None and len(names) <= MOST_NAMES
        if few:
            self.ax_.set_xticks(places, list(map(str, names or ())), rotation=90)
        return few


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


def one_each(name: str, given: Any, n: int, of: str) -> None:
    """Refuse another number of entries than there are alphas, features or the like (``of``)."""
    shape = (len(given),) if isinstance(given, list) else np.shape(given)
    if shape != (n,):
        found = len(given) if len(shape) == 1 else f"shape {shape}"
        raise InputError(f"There are {{0}} {{1}} but {{{name}}} has {{2}}; each needs one.", n, of, found)


def floats(name: str, given: ArrayLike, n: int | None = None, of: str = "") -> Array:
    """Numbers as a vector, ``n`` of them where each of those things (``of``) needs one."""
    out: Array = np.atleast_1d(np.asarray(given, dtype=np.float64))
    if n is not None:
        one_each(name, out, n, of)
    return out


def names_of(names: Sequence[Any] | None, n: int) -> list[str]:
    """Names of features; x0, x1, ... by default, as in scikit-learn."""
    found = [f"x{j}" for j in range(n)] if names is None else [str(name) for name in names]
    one_each("names", found, n, "features")
    return found


def positive_grid(alphas: ArrayLike) -> Array:
    """A vector of positive numbers, which a logarithmic axis needs."""
    grid = floats("alphas", alphas)
    if grid.ndim != 1 or not len(grid) or not (grid > 0.0).all():
        raise InputError("{alphas} must be a sequence of positive numbers, for a logarithmic axis; got {0!r}.", alphas)
    return grid
