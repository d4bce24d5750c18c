"""Displays of the selection of alpha and of propensities, and the base class of all displays.

Matplotlib is imported only when something is drawn.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankrls._errors import InputError, require_extra
from rankrls._typing import Array, Index
from rankrls.clicks import Propensities
from rankrls.metrics import resolve_measure
from rankrls.models._pipelines import fitted_ranker
from rankrls.selection.rules import best, one_standard_error

# Okabe and Ito's colours, which suit all kinds of colour vision; without yellow, which is too pale for white paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "black")


class Display:
    """Display that draws on axes."""

    ax_: Any
    figure_: Any

    def _open(self, ax: Any) -> None:
        """Use the given axes, or those of a new figure; an ImportError describes the installation of matplotlib."""
        plt = require_extra("Drawing", "plots", "matplotlib.pyplot")
        self.ax_ = plt.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure

    def _open_rows(self, ax: Any, names: list[str]) -> Index:
        """Like :meth:`_open`, with a named row for each item, the first at the top; returns their heights."""
        self._open(ax)
        n = len(names)
        if ax is None:
            self.figure_.set_figheight(max(2.4, 1.0 + 0.22 * n))
        places = np.arange(n)
        self.ax_.set_yticks(places, names, parse_math=False)
        self.ax_.set_ylim(n - 0.4, -0.6)
        return places


class AlphaSelectionDisplay(Display):
    """A held-out measure against the regularization value, or against iterations with one curve per value.

    For a single curve, two values are marked: the best one, and the selection of the one-standard-error rule, which is
    the simplest model within one standard error of the best. For a surface over iterations, the selected point is
    marked: the end of a curve is Tikhonov regularization, the best point of the curve of alpha = 0 is early stopping,
    and the best point of all is the hybrid of both (Airola, Pahikkala and Salakoski 2010, figures 1 and 2).

    Parameters
    ----------
    alphas : array-like of shape (alphas,)
        Regularization values in any order; all positive for a single curve.
    values : array-like of shape (alphas,) or (alphas, iterations)
        Measure of each; NaN if undefined.
    errors : array-like of shape (alphas,), optional
        Standard errors of a single curve, drawn as a band. Without them, there is no one-standard-error rule.
    chosen : float, optional
        Selected value, one of ``alphas``.
    n_iter : int, optional
        Selected iteration, for a surface.
    greater_is_better : bool, default=False
        Whether larger values of the measure are better.
    parameter : {"alpha", "C"}, default="alpha"
        Name of the parameter. Larger values of alpha give simpler models; so do smaller values of C.
    measure : str, optional
        Name of the values, for the axis.

    Attributes
    ----------
    alphas, values, errors : ndarray
        Arrays from the simplest model to the least regularized one; errors are NaN if unknown.
    best, one_se : float
        Best value, and that of the one-standard-error rule (NaN without errors, and for a surface).
    lines_ : list of matplotlib Line2D
        Curves, after :meth:`plot`.
    marks_ : list of matplotlib Line2D
        Marked points.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from rankrls.plots import AlphaSelectionDisplay
    >>> display = AlphaSelectionDisplay([0.1, 1.0, 10.0], [0.21, 0.2, 0.22], errors=[0.03, 0.03, 0.03])
    >>> display.best, display.one_se
    (1.0, 10.0)
    >>> display.plot().ax_.get_xscale()  # doctest: +SKIP
    'log'
    """

    def __init__(
        self,
        alphas: ArrayLike,
        values: ArrayLike,
        *,
        errors: ArrayLike | None = None,
        chosen: float | None = None,
        n_iter: int | None = None,
        greater_is_better: bool = False,
        parameter: str = "alpha",
        measure: str | None = None,
    ) -> None:
        grid = grid_of(alphas, least=-np.inf if np.ndim(values) == 2 else 0.0)
        order = np.argsort(grid if parameter == "C" else -grid, kind="stable")
        self.alphas = grid[order]
        self.values = table_of("values", values, grid)[order]
        self.errors = np.full(len(grid), np.nan) if errors is None else table_of("errors", errors, grid)[order]
        self.chosen = chosen
        self.n_iter = n_iter
        self.parameter = parameter
        self.measure = measure
        self.best = np.nan
        self.one_se = np.nan
        if self.values.ndim == 1:
            goodness = self.values if greater_is_better else -self.values
            curve = goodness, self.errors, np.abs(goodness)
            self.best = float(self.alphas[best(*curve)])
            if errors is not None:
                self.one_se = float(self.alphas[one_standard_error(*curve)])

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **line_kw: Any) -> Self:
        """Draw the measure of a fitted estimator's selection, for the selected kernel and graph.

        Parameters
        ----------
        estimator : RankRLSCV, SparseRankRLSCV, RankSVMCV or CGRankRLS, or a Pipeline that ends in one
            Estimator after ``fit`` or ``fit_pairs``; CGRankRLS with validation data.
        ax, line_kw
            Parameters of :meth:`plot`.

        Raises
        ------
        ValueError
            If the estimator has no measure for each regularization value.
        """
        model = fitted_ranker(estimator)
        known = vars(model)
        surface = known.get("validation_surface_")
        if surface is not None and np.size(surface):
            given: dict[str, Any] = {"chosen": float(model.alpha_), "n_iter": int(model.n_iter_)}
            return cls(model.alphas_, surface, measure=str(model.scoring), **given).plot(ax=ax, **line_kw)
        table = known.get("cv_results_", {})
        parameter = next((name for name in ("alpha", "C") if name in table), None)
        if parameter is None or "best_index_" not in known:
            problem = f"This {type(model).__name__} has no score for each regularization value."
            raise InputError(f"{problem} Fit RankRLSCV, or pass the values.", parameter="estimator")
        rows = np.ones(len(table[parameter]), dtype=bool)
        measure = resolve_measure(model.scoring)
        for name in set(model.best_params_) - {parameter}:
            chosen = table[name][model.best_index_]
            rows &= [value is chosen or value == chosen for value in table[name]]
        display = cls(
            table[parameter][rows],
            table["mean_score"][rows],
            errors=table["standard_error"][rows],
            chosen=float(table[parameter][model.best_index_]),
            greater_is_better=measure.greater_is_better,
            parameter=parameter,
            measure=f"{measure}, {model.selection_}",
        )
        return display.plot(ax=ax, **line_kw)

    def plot(self, ax: Any = None, **line_kw: Any) -> Self:
        """Draw the curves and the marks.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes; by default those of a new figure.
        **line_kw
            Parameters of ``ax.plot``.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self._open(ax)
        self.marks_: list[Any] = []
        if self.values.ndim == 2:
            self._draw_surface(line_kw)
        else:
            self.lines_ = self.ax_.plot(self.alphas, self.values, **{"color": COLOURS[0], "marker": ".", **line_kw})
            low = self.values - self.errors
            high = self.values + self.errors
            self.ax_.fill_between(self.alphas, low, high, alpha=0.2, linewidth=0, color=self.lines_[0].get_color())
            rules = {"best": self.best, "one standard error": self.one_se, "chosen": self.chosen}
            marked = [alpha for alpha in dict.fromkeys(rules.values()) if alpha in self.alphas]
            for alpha, marker, colour in zip(marked, "oDs", (*COLOURS[:2], "black"), strict=False):
                names = ", ".join(name for name, value in rules.items() if value == alpha)
                look = {"color": colour, "markersize": 8, "markeredgecolor": "white", "linestyle": "", "zorder": 3}
                look["label"] = f"{names}: {self.parameter} = {alpha:.3g}"
                self.marks_ += self.ax_.plot([alpha], self.values[self.alphas == alpha][:1], marker=marker, **look)
        self.ax_.set(ylabel=self.measure or "measure", xscale="log")
        self.ax_.set_xlabel(self.parameter if self.values.ndim == 1 else "iterations")
        self.ax_.legend(fontsize="small")
        return self

    def _draw_surface(self, line_kw: dict[str, Any]) -> None:
        """One curve over iterations for each alpha, from dark for the smallest to light; alpha = 0 is dashed."""
        from matplotlib import colormaps

        self.lines_ = []
        colours = colormaps["viridis"](np.linspace(0.95, 0.0, len(self.alphas)))
        for alpha, values, colour in zip(self.alphas, self.values, colours, strict=True):
            known = np.flatnonzero(~np.isnan(values))
            look = {"color": "black", "linestyle": "--"} if alpha == 0.0 else {"color": colour}
            look = {"label": f"{self.parameter} = {alpha:.3g}", **look, **line_kw}
            self.lines_ += self.ax_.plot(known + 1, values[known], **look)
        if self.chosen is not None and self.n_iter is not None:
            value = self.values[int(np.argmax(self.alphas == self.chosen)), self.n_iter - 1]
            label = f"chosen: {self.chosen:.3g} after {self.n_iter}"
            self.marks_ += self.ax_.plot([self.n_iter], [value], "o", color="tab:red", label=label, zorder=3)


class PropensityDisplay(Display):
    """Examination of each position, with 95 % intervals.

    Parameters
    ----------
    propensities : Propensities

    Attributes
    ----------
    bars_ : matplotlib ErrorbarContainer
        Bars, after :meth:`plot`.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from rankrls.clicks import Propensities
    >>> from rankrls.plots import PropensityDisplay
    >>> display = PropensityDisplay(Propensities.known({1: 1.0, 2: 0.6, 3: 0.4}))
    >>> display.plot().ax_.get_ylabel()  # doctest: +SKIP
    'examination'
    """

    def __init__(self, propensities: Propensities) -> None:
        self.propensities = propensities

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **errorbar_kw: Any) -> Self:
        """Draw the propensities of an estimator, or of the last step of a pipeline, that was fitted to clicks."""
        model: Any = fitted_ranker(estimator)
        return cls(model.propensities_).plot(ax=ax, **errorbar_kw)

    def plot(self, ax: Any = None, **errorbar_kw: Any) -> Self:
        """Draw on the given axes or a new figure; ``errorbar_kw`` are parameters of ``ax.errorbar``."""
        self._open(ax)
        found = self.propensities
        ends = np.abs(found.interval - found.examination)
        style = {"marker": "o", "capsize": 3, "color": COLOURS[0], **errorbar_kw}
        self.bars_ = self.ax_.errorbar(found.positions, found.examination, ends, **style)
        self.ax_.set(xlabel="position", ylabel="examination")
        self.ax_.set_ylim(bottom=0.0)
        return self


def grid_of(alphas: ArrayLike, least: float = 0.0) -> Array:
    """Vector of regularization values, all above ``least``."""
    grid = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    if grid.ndim != 1 or not len(grid) or not (grid > least).all():
        problem = f"alphas must be a sequence of positive numbers, for a logarithmic axis; got {alphas!r}."
        raise InputError(problem, parameter="alphas")
    return grid


def table_of(name: str, values: ArrayLike, grid: Array) -> Array:
    """Array with an entry or a row for each regularization value."""
    table: Array = np.asarray(values, dtype=np.float64)
    if len(table) != len(grid):
        problem = f"{name} must have an entry or a row for each of {len(grid)} alphas; got {len(table)}."
        raise InputError(problem, parameter=name)
    return table
