"""The held-out measure of every regularization value, and which one was chosen."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankrls._queries import query_layout
from rankrls.metrics import resolve_measure
from rankrls.models._pipelines import fitted_ranker
from rankrls.models._results import Results
from rankrls.models._selection import Curve, judged
from rankrls.plots._matplotlib import AHEAD, BEHIND, axes_to_draw_on

__all__ = ["AlphaSelectionDisplay"]


class AlphaSelectionDisplay:
    """A held-out measure against the regularization value, with its standard error over queries.

    Two values are marked: the best one, and that of the one-standard-error rule, which is the simplest model whose
    measure lies within one standard error of the best.

    Parameters
    ----------
    alphas : array-like of shape (alphas,)
        Regularization values, all positive, in any order.
    values : array-like of shape (alphas,)
        The measure of each; NaN where it was not judged.
    errors : array-like of shape (alphas,), optional
        Standard errors, drawn as a band. Without them there is no one-standard-error rule.
    chosen : float, optional
        The value that the model has, one of ``alphas``; its mark says so.
    greater_is_better : bool, default=False
        Which way the measure goes.
    parameter : {"alpha", "C"}, default="alpha"
        Larger values of alpha give simpler models, smaller ones of C.
    measure : str, optional
        Name of the values, for the axis.

    Attributes
    ----------
    alphas, values, errors : ndarray
        From the simplest model to the least regularized one.
    best, one_se : float
        The best value, and the one-standard-error rule's (NaN without errors).
    line_ : matplotlib Line2D
        After :meth:`plot`.
    band_, threshold_ : matplotlib PolyCollection, Line2D, or None
        One standard error about the curve; from the best point's standard error to where the rule meets the curve.
    best_, one_se_, chosen_ : matplotlib Line2D, or None
        The marks: one where both rules agree, and one of its own for a value that neither chose.
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

    ax_: Any
    figure_: Any
    line_: Any
    band_: Any
    threshold_: Any
    best_: Any
    one_se_: Any
    chosen_: Any

    def __init__(
        self,
        alphas: ArrayLike,
        values: ArrayLike,
        *,
        errors: ArrayLike | None = None,
        chosen: float | None = None,
        greater_is_better: bool = False,
        parameter: str = "alpha",
        measure: str | None = None,
    ) -> None:
        grid: NDArray[np.float64] = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        if parameter not in ("alpha", "C"):
            raise ValueError(f"parameter must be 'alpha' or 'C'; got {parameter!r}.")
        if grid.ndim != 1 or not (grid > 0.0).all():
            raise ValueError(f"alphas must be a sequence of positive numbers, for a logarithmic axis; got {alphas!r}.")
        order = np.argsort(grid if parameter == "C" else -grid, kind="stable")
        self.alphas = grid[order]
        self.values = _one_each("values", values, order)
        self.errors = None if errors is None else _one_each("errors", errors, order)
        if chosen is not None and chosen not in self.alphas:
            raise ValueError(f"chosen must be one of the alphas; got {chosen!r}.")
        self.chosen, self.greater_is_better = chosen, greater_is_better
        self.parameter, self.measure = parameter, measure
        self.best = self._rule("best")
        self.one_se = np.nan if self.errors is None else self._rule("one_se")

    def _rule(self, rule: str) -> float:
        """What a selecting estimator would take."""
        errors = np.full(len(self.values), np.nan) if self.errors is None else self.errors
        results = Results(self.greater_is_better, rule, self.parameter)
        results.add({}, self.alphas, Curve(self.values, errors, self.values[None, :]), None)
        return results.best_alpha

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **line_kw: Any) -> Self:
        """Draw what a fitted estimator chose by, for the kernel and graph that it chose.

        Parameters
        ----------
        estimator : RankRLSCV, SparseRankRLSCV or RankSVMCV, or a Pipeline that ends in one
            After ``fit`` or ``fit_pairs``.
        ax, line_kw
            As for :meth:`plot`.

        Raises
        ------
        ValueError
            Where the estimator keeps no measure of every regularization value.
        """
        estimator = fitted_ranker(estimator)
        table = getattr(estimator, "cv_results_", {})
        parameter = next((name for name in ("alpha", "C") if name in table), None)
        if parameter is None or not hasattr(estimator, "best_index_"):  # CGRankRLS has a row an iteration too
            what = f"This {type(estimator).__name__} keeps no measure of every regularization value."
            other = {"validation_surface_": "ValidationSurfaceDisplay", "path_": "PursuitPathDisplay"}
            use = next((name for attribute, name in other.items() if hasattr(estimator, attribute)), None)
            raise ValueError(f"{what} Use {use}." if use else f"{what} Fit RankRLSCV, or give the values themselves.")
        best = estimator.best_index_
        rows = np.ones(len(table[parameter]), dtype=bool)
        for name in set(table) - {parameter, "mean_score", "standard_error"}:
            rows &= [value is table[name][best] or value == table[name][best] for value in table[name]]
        errors = table["standard_error"][rows]
        measure = resolve_measure(estimator.scoring)
        display = cls(
            table[parameter][rows],
            table["mean_score"][rows],
            errors=None if np.isnan(errors).all() else errors,
            chosen=float(table[parameter][best]),
            greater_is_better=measure.greater_is_better,
            parameter=parameter,
            measure=f"{measure}, {estimator.selection_}",
        )
        return display.plot(ax=ax, **line_kw)

    @classmethod
    def from_scores(
        cls,
        y: ArrayLike,
        scores: ArrayLike,
        alphas: ArrayLike,
        *,
        qid: Any = None,
        scoring: Any = "disagreement",
        ax: Any = None,
        **line_kw: Any,
    ) -> Self:
        """Draw the measure of given scores, such as those of :func:`rankrls.model_selection.leave_query_out`.

        Parameters
        ----------
        y : array-like of shape (m,)
            Labels.
        scores : array-like of shape (m, alphas)
            A column for each value.
        alphas : array-like of shape (alphas,)
        qid : array-like of shape (m,), optional
        scoring : str, Measure or callable, default="disagreement"
        ax, line_kw
            As for :meth:`plot`.
        """
        columns = np.asarray(scores, dtype=np.float64)
        if columns.ndim != 2:
            raise ValueError(f"scores must have a row for each item and a column for each alpha; got {columns.shape}.")
        labels = np.asarray(y, dtype=np.float64)
        if labels.shape != columns.shape[:1]:
            raise ValueError(f"y has shape {labels.shape}, but there are scores of {len(columns)} items.")
        measure = resolve_measure(scoring)
        curve = judged(measure, labels[:, None], columns[:, :, None], query_layout(qid, len(labels)), None)
        errors = None if np.isnan(curve.error).all() else curve.error
        display = cls(
            alphas, curve.mean, errors=errors, greater_is_better=measure.greater_is_better, measure=str(measure)
        )
        return display.plot(ax=ax, **line_kw)

    def plot(self, ax: Any = None, **line_kw: Any) -> Self:
        """Draw the curve and its marks.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Those of a new figure by default.
        **line_kw
            Passed to ``ax.plot``.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            Where matplotlib is not installed.
        """
        self.ax_ = axes_to_draw_on(ax)
        self.figure_ = self.ax_.figure
        (self.line_,) = self.ax_.plot(self.alphas, self.values, **{"color": AHEAD, "marker": ".", **line_kw})
        colour = self.line_.get_color()
        self.band_ = self.threshold_ = self.one_se_ = self.chosen_ = None
        (k,) = np.flatnonzero(self.alphas == self.best)[:1]
        if self.errors is not None:
            low, high = self.values - self.errors, self.values + self.errors
            self.band_ = self.ax_.fill_between(self.alphas, low, high, alpha=0.2, linewidth=0, color=colour)
            if self.one_se != self.best:
                edge = (high if not self.greater_is_better else low)[k]
                (self.threshold_,) = self.ax_.plot(
                    [self.best, self.best, self.one_se], [self.values[k], edge, edge], color="0.4", linestyle=":"
                )
        rules = "best" if self.one_se != self.best else "best and one standard error"
        self.best_ = self._mark(self.best, "o", colour, rules)
        if self.threshold_ is not None:
            self.one_se_ = self._mark(self.one_se, "D", BEHIND, "one standard error")
        if self.chosen not in (None, self.best, self.one_se):
            self.chosen_ = self._mark(self.chosen, "s", "black", "given")
        self.ax_.set(xscale="log", xlabel=self.parameter, ylabel=self.measure or "measure")
        self.ax_.legend()
        return self

    def _mark(self, alpha: Any, marker: str, colour: Any, rule: str) -> Any:
        k = int(np.argmax(self.alphas == alpha))
        end = ", chosen" if self.chosen == alpha else ""
        label = f"{rule}: {self.parameter} = {alpha:.3g}{end}"
        look = {"color": colour, "markersize": 8, "markeredgecolor": "white", "linestyle": "", "zorder": 3}
        return self.ax_.plot([alpha], [self.values[k]], marker=marker, label=label, **look)[0]


def _one_each(name: str, given: ArrayLike, order: NDArray[np.intp]) -> NDArray[np.float64]:
    column = np.atleast_1d(np.asarray(given, dtype=np.float64))
    if column.shape != order.shape:
        raise ValueError(f"There are {len(order)} alphas but {name} has shape {column.shape}; each alpha needs one.")
    return np.asarray(column[order])
