"""The held-out measure of every regularization value, and which one was chosen."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankrls._checks import check_word
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.metrics import resolve_measure
from rankrls.models._pipelines import fitted_ranker
from rankrls.plots._matplotlib import AHEAD, BEHIND, Display, floats, one_each, positive_grid
from rankrls.selection.judging import Curve, LabelJudge
from rankrls.selection.search import Results


class AlphaSelectionDisplay(Display):
    """A held-out measure against the regularization value, with its standard error over queries.

    Two values are marked: the best one, and that of the one-standard-error rule, which is the simplest model whose
    measure lies within one standard error of the best.

    Parameters
    ----------
    alphas : array-like of shape (alphas,)
        Regularization values, all positive, in any order.
    values : array-like of shape (alphas,)
        The measure of each; NaN if it was not judged.
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
        One standard error about the curve; the line from the best point's standard error to the rule's choice.
    best_, one_se_, chosen_ : matplotlib Line2D, or None
        The marks: a single one if both rules agree, and a separate one for a value that neither chose.
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
        greater_is_better: bool = False,
        parameter: str = "alpha",
        measure: str | None = None,
    ) -> None:
        check_word("parameter", parameter, ("alpha", "C"))
        grid = positive_grid(alphas)
        order = np.argsort(grid if parameter == "C" else -grid, kind="stable")
        self.alphas = grid[order]
        self.values = floats("values", values, len(grid), "alphas")[order]
        self.errors = None if errors is None else floats("errors", errors, len(grid), "alphas")[order]
        if chosen is not None and chosen not in self.alphas:
            raise InputError("{chosen} must be one of the alphas; got {0!r}.", chosen)
        self.chosen, self.greater_is_better = chosen, greater_is_better
        self.parameter, self.measure = parameter, measure
        self.best = self._rule("best")
        self.one_se = np.nan if self.errors is None else self._rule("one_se")

    def _rule(self, rule: str) -> float:
        """The value that a selecting estimator would take."""
        errors = np.full(len(self.values), np.nan) if self.errors is None else self.errors
        results = Results(self.greater_is_better, rule, self.parameter)
        results.add({}, self.alphas, Curve(self.values, errors, self.values[None, :]))
        return results.best_value

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **line_kw: Any) -> Self:
        """Draw the measure by which a fitted estimator chose, for the kernel and graph that it chose.

        Parameters
        ----------
        estimator : RankRLSCV, SparseRankRLSCV or RankSVMCV, or a Pipeline that ends in one
            After ``fit`` or ``fit_pairs``.
        ax, line_kw
            As for :meth:`plot`.

        Raises
        ------
        ValueError
            If the estimator keeps no measure of every regularization value.
        """
        estimator = fitted_ranker(estimator)
        table = getattr(estimator, "cv_results_", {})
        parameter = next((name for name in ("alpha", "C") if name in table), None)
        if parameter is None or not hasattr(estimator, "best_index_"):  # CGRankRLS has a row an iteration too
            other = {"validation_surface_": "ValidationSurfaceDisplay", "path_": "PursuitPathDisplay"}
            use = next((name for attribute, name in other.items() if hasattr(estimator, attribute)), None)
            raise InputError(
                "This {0} keeps no measure of every regularization value.",
                type(estimator).__name__,
                remedy=f"Use {use}." if use else "Fit RankRLSCV, or give the values themselves.",
                parameter="estimator",
            )
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
            problem = "{scores} must have a row for each item and a column for each alpha; got {0}."
            raise InputError(problem, columns.shape)
        labels = np.asarray(y, dtype=np.float64)
        one_each("y", labels, len(columns), "items")
        measure = resolve_measure(scoring)
        curve = LabelJudge(measure, labels[:, None], query_layout(qid, len(labels))).curve(columns[:, :, None])
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
            If matplotlib is not installed.
        """
        self._open(ax)
        (self.line_,) = self.ax_.plot(self.alphas, self.values, **{"color": AHEAD, "marker": ".", **line_kw})
        colour = self.line_.get_color()
        self.band_ = self._band(self.alphas, self.values, self.errors, colour)
        self.threshold_ = self.one_se_ = self.chosen_ = None
        agree = self.one_se == self.best
        self.best_ = self._mark(self.best, "o", colour, "best and one standard error" if agree else "best")
        if self.errors is not None and not agree:
            k = int(np.argmax(self.alphas == self.best))
            edge = self.values[k] + (-self.errors[k] if self.greater_is_better else self.errors[k])
            corner = [self.best, self.best, self.one_se], [self.values[k], edge, edge]
            (self.threshold_,) = self.ax_.plot(*corner, color="0.4", linestyle=":")
            self.one_se_ = self._mark(self.one_se, "D", BEHIND, "one standard error")
        if self.chosen not in (None, self.best, self.one_se):
            self.chosen_ = self._mark(self.chosen, "s", "black", "given")
        self._measured_by(self.parameter, xscale="log")
        self.ax_.legend()
        return self

    def _mark(self, alpha: Any, marker: str, colour: Any, rule: str) -> Any:
        k = int(np.argmax(self.alphas == alpha))
        end = ", chosen" if self.chosen == alpha else ""
        label = f"{rule}: {self.parameter} = {alpha:.3g}{end}"
        look = {"color": colour, "markersize": 8, "markeredgecolor": "white", "linestyle": "", "zorder": 3}
        return self.ax_.plot([alpha], [self.values[k]], marker=marker, label=label, **look)[0]
