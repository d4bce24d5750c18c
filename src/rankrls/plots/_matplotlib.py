"""What the displays have in common. Matplotlib is imported when something is drawn, not before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankrls._errors import InputError, needed

# Okabe and Ito's colours, which all kinds of colour vision can tell apart; without yellow, too pale for white paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "black")
REST = "0.75"
Array = NDArray[np.float64]


class Display:
    """Axes to draw on."""

    ax_: Any
    figure_: Any

    def _open(self, ax: Any) -> None:
        """Draw on the axes given, or on those of a new figure; an ImportError says how to install matplotlib."""
        plt = needed("Drawing", "plots", "matplotlib.pyplot")
        self.ax_ = plt.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure


def names_of(names: Sequence[Any] | None, n: int) -> list[str]:
    """Names of features; x0, x1, ... by default, as in scikit-learn."""
    found = [f"x{j}" for j in range(n)] if names is None else [str(name) for name in names]
    if len(found) != n:
        raise InputError(f"There are {n} features but names has {len(found)}; each needs one.", parameter="names")
    return found


def grid_of(alphas: ArrayLike, least: float = 0.0) -> Array:
    """A vector of regularization values, all above ``least``."""
    grid = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    if grid.ndim != 1 or not len(grid) or not (grid > least).all():
        problem = f"alphas must be a sequence of positive numbers, for a logarithmic axis; got {alphas!r}."
        raise InputError(problem, parameter="alphas")
    return grid
