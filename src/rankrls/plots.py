"""Displays of the results of an estimator, drawn by matplotlib (``pip install 'rankrls[plots]'``).

Matplotlib is imported only when something is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler

from rankrls._checks import vector_of
from rankrls._errors import InputError, require_extra
from rankrls._shown import records
from rankrls._typing import AnyArray, Array, IdsLike, Index, ItemsLike, Values, VectorLike
from rankrls.clicks import Propensities
from rankrls.metrics import resolve_measure
from rankrls.metrics._scorer import final_step_inputs
from rankrls.models._pipelines import fitted_ranker, linear_weights, names_of_features
from rankrls.models.intake import check_matrix
from rankrls.models.rankrls import RankRLS, RankRLSCV
from rankrls.selection.search import best, one_standard_error

__all__ = [
    "AlphaSelectionDisplay",
    "CoefficientsDisplay",
    "LeaderboardDisplay",
    "PropensityDisplay",
    "RegularizationPathDisplay",
]
# Okabe and Ito's colours, which suit all kinds of colour vision; without yellow, which is too pale for white paper.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "black")


class Display:
    """Display that draws on axes."""

    ax_: Any
    figure_: Any

    def _open(self, ax: Any, names: Sequence[str] = ()) -> Index:
        """Use the given axes, or those of a new figure, with a row for each name from the top; returns their heights.

        An ImportError describes the installation of matplotlib.
        """
        plt = require_extra("Drawing", "plots", "matplotlib.pyplot")
        self.ax_ = plt.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        n = len(names)
        places = np.arange(n)
        if n:
            self.ax_.set_yticks(places, names, parse_math=False)
            self.ax_.set_ylim(n - 0.4, -0.6)
            if ax is None:
                self.figure_.set_figheight(max(2.4, 1.0 + 0.22 * n))
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
        tables = {"values": values, "errors": np.full(np.size(alphas), np.nan) if errors is None else errors}
        self.alphas, self.values, self.errors = _from_simplest(alphas, tables, ascending=parameter == "C")
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
    def from_estimator(cls, estimator: BaseEstimator, *, ax: Any = None, **line_kw: Any) -> Self:
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
            display = cls(
                model.alphas_,
                surface,
                chosen=float(model.alpha_),
                n_iter=int(model.n_iter_),
                measure=str(model.scoring),
            )
            return display.plot(ax=ax, **line_kw)
        table = known.get("cv_results_", {})
        if "best_index_" not in known or not {"alpha", "C"} & table.keys():
            problem = f"This {type(model).__name__} has no score for each regularization value."
            raise InputError(f"{problem} Fit RankRLSCV, or pass the values.", parameter="estimator")
        parameter = "alpha" if "alpha" in table else "C"
        measure = resolve_measure(model.scoring)
        candidates = records(table)
        chosen = candidates[model.best_index_]
        others = model.best_params_.keys() - {parameter}
        rows = [all(each[name] == chosen[name] for name in others) for each in candidates]
        display = cls(
            table[parameter][rows],
            table["mean_score"][rows],
            errors=table["standard_error"][rows],
            chosen=chosen[parameter],
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
            self.lines_ = self.ax_.plot(self.alphas, self.values, **{"color": _COLOURS[0], "marker": ".", **line_kw})
            band = self.values - self.errors, self.values + self.errors
            self.ax_.fill_between(self.alphas, *band, alpha=0.2, linewidth=0, color=self.lines_[0].get_color())
            rules = {"best": self.best, "one standard error": self.one_se, "chosen": self.chosen}
            marked = [alpha for alpha in dict.fromkeys(rules.values()) if alpha in self.alphas]
            for alpha, look in zip(marked, ("oC0", "DC1", "sk"), strict=False):
                names = ", ".join(name for name, value in rules.items() if value == alpha)
                label = f"{names}: {self.parameter} = {alpha:.3g}"
                value = self.values[self.alphas == alpha][:1]
                self.marks_ += self.ax_.plot([alpha], value, look, label=label, markersize=8, zorder=3)
        xlabel = self.parameter if self.values.ndim == 1 else "iterations"
        self.ax_.set(xlabel=xlabel, ylabel=self.measure or "measure", xscale="log")
        self.ax_.legend(fontsize="small")
        return self

    def _draw_surface(self, line_kw: Values) -> None:
        """One curve over iterations for each alpha, from dark for the smallest to light; alpha = 0 is dashed."""
        from matplotlib import colormaps

        iterations = np.arange(1, self.values.shape[1] + 1)
        self.lines_ = self.ax_.plot(iterations, self.values.T, **line_kw)
        colours = colormaps["viridis"](np.linspace(0.95, 0.0, len(self.alphas)))
        for line, alpha, colour in zip(self.lines_, self.alphas, colours, strict=True):
            look = {"label": f"{self.parameter} = {alpha:.3g}", "color": colour}
            look["linestyle"] = "--" if alpha == 0.0 else "-"
            line.set(**look | line_kw)
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

    def plot(self, ax: Any = None, **errorbar_kw: Any) -> Self:
        """Draw on the given axes or a new figure; ``errorbar_kw`` are parameters of ``ax.errorbar``."""
        self._open(ax)
        found = self.propensities
        ends = np.abs(found.interval - found.examination)
        style = {"marker": "o", "capsize": 3, "color": _COLOURS[0], **errorbar_kw}
        self.bars_ = self.ax_.errorbar(found.positions, found.examination, ends, **style)
        self.ax_.set(xlabel="position", ylabel="examination")
        self.ax_.set_ylim(bottom=0.0)
        return self


class RatedItems(Protocol):
    """Rated items from best to worst, such as a :class:`~rankrls.inspection.Leaderboard`."""

    @property
    def columns(self) -> dict[str, AnyArray]: ...


class LeaderboardDisplay(Display):
    """Ratings of items with their intervals, the best at the top, and the ranks consistent with the votes.

    Parameters
    ----------
    board : Leaderboard
        Result of :func:`rankrls.inspection.leaderboard`.
    top : int or None, default=30
        Maximum number of items to draw; None draws all.

    Attributes
    ----------
    columns : dict of str to ndarray
        Columns of the leaderboard with the drawn items, from the top.
    bars_ : matplotlib ErrorbarContainer
        Bars, after :meth:`plot`.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from rankrls.inspection import leaderboard
    >>> from rankrls.plots import LeaderboardDisplay
    >>> board = leaderboard(["owl", "owl", "crow"] * 5, ["crow", "jay", "jay"] * 5)
    >>> LeaderboardDisplay(board, top=2).columns["item"].tolist()
    ['owl', 'crow']
    """

    def __init__(self, board: RatedItems, *, top: int | None = 30) -> None:
        self.columns = {name: values[:top] for name, values in board.columns.items()}

    def plot(self, ax: Any = None, **bar_kw: Any) -> Self:
        """Draw the ratings.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes; by default those of a new figure with room for the names.
        **bar_kw
            Parameters of ``ax.errorbar``.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        shown = self.columns
        places = self._open(ax, [str(item) for item in shown["item"]])
        # rounding may put a bound of an interval of length zero on the wrong side
        sides = np.maximum([shown["rating"] - shown["low"], shown["high"] - shown["rating"]], 0.0)
        look: Values = {"fmt": "o", "color": _COLOURS[0]} | bar_kw
        self.bars_ = self.ax_.errorbar(shown["rating"], places, xerr=sides, **look)
        ranks = self.ax_.secondary_yaxis("right")
        ends = zip(shown["best_rank"], shown["worst_rank"], strict=True)
        ranks.set_yticks(places, [f"{best} to {worst}" for best, worst in ends])
        ranks.set_ylabel("ranks")
        self.ax_.set_xlabel("rating")
        self.ax_.grid(axis="x", alpha=0.3)
        return self


class CoefficientsDisplay(Display):
    """Bars of the largest weights: positive weights above negative ones, each sorted by magnitude.

    Parameters
    ----------
    weights : array-like of shape (n,)
        One weight per feature.
    names : sequence of str, optional
        Names of the features; x0, x1, ... by default.
    top : int or None, default=20
        Maximum number of weights to draw, by magnitude; None draws all. Weights of 0 are never drawn.
    what : str, default="weight"
        Name of the numbers, for the axis.

    Attributes
    ----------
    weights : ndarray
        Drawn weights, from the top.
    names : list of str
        Names of their features.
    indices : ndarray of int
        Columns of their features.
    n_features : int
        Number of features of the model.
    bars_ : matplotlib BarContainer
        Bars, after :meth:`plot`.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from rankrls.plots import CoefficientsDisplay
    >>> display = CoefficientsDisplay([0.1, -2.0, 0.0, 3.0], ["length", "links", "noise", "title"], top=2)
    >>> display.names, display.weights.tolist()
    (['title', 'links'], [3.0, -2.0])
    >>> display.plot().ax_.get_xlabel()  # doctest: +SKIP
    'weight (2 of 4 features)'
    """

    def __init__(
        self,
        weights: ArrayLike,
        names: Sequence[object] | None = None,
        *,
        top: int | None = 20,
        what: str = "weight",
    ) -> None:
        w = vector_of("weights", weights, "one a feature")
        every = _names_of(names, len(w))
        largest = np.argsort(-np.abs(w), kind="stable")[:top]
        largest = largest[w[largest] != 0.0]
        self.indices = largest[np.argsort(w[largest] < 0.0, kind="stable")]
        self.weights = w[self.indices]
        self.names = [every[j] for j in self.indices]
        self.n_features = len(w)
        self.what = what

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ItemsLike | None = None,
        *,
        qid: IdsLike | None = None,
        names: Sequence[object] | None = None,
        target: int | None = None,
        top: int | None = 20,
        ax: Any = None,
        **bar_kw: Any,
    ) -> Self:
        """Draw the weights of a fitted linear model.

        Parameters
        ----------
        estimator : estimator with ``coef_``, or a Pipeline that ends in one
        X : array-like, sparse matrix or data frame of shape (m, n), optional
            Items, such as those of training. Each weight is then multiplied by the standard deviation of its feature
            over them, so that weights of features on different scales are comparable. Other steps of a pipeline
            transform them first.
        qid : array-like of shape (m,), optional
            One query id per row of X, for a step that scales within queries.
        names : sequence of str, optional
            Names of the features. By default those of the data frame that the model was fitted to, or of the other
            steps of the pipeline.
        target : int, optional
            Number of the target, for a model with several.
        top : int or None, default=20
            Maximum number of weights, as for the class.
        ax, bar_kw
            Parameters of :meth:`plot`.

        Raises
        ------
        ValueError
            If the model is not linear, if it has several targets and none is given, or if the number of names is wrong.
        """
        final = fitted_ranker(estimator)
        weights = linear_weights(final, target, "there are no weights of features to draw.")
        names = names_of_features(estimator, None, len(weights)) if names is None else names
        what = "weight"
        if X is not None:
            Z = check_matrix(final, final_step_inputs(estimator, X, qid)[1], final._accepts)
            weights = weights * np.sqrt(StandardScaler(with_mean=False).fit(Z).var_)
            what = "weight × standard deviation of the feature"
        return cls(weights, names, top=top, what=what).plot(ax=ax, **bar_kw)

    def plot(self, ax: Any = None, **bar_kw: Any) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes; by default those of a new figure with room for the names.
        **bar_kw
            Parameters of ``ax.barh``.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        places = self._open(ax, self.names)
        n = len(places)
        colours = [_COLOURS[int(weight < 0.0)] for weight in self.weights]
        self.bars_ = self.ax_.barh(places, self.weights, **{"color": colours, **bar_kw})
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.axvline(0.0, color="black", linewidth=0.8)
        self.ax_.spines[["top", "right", "left"]].set_visible(False)
        shown = f" ({n} of {self.n_features} features)" if n < self.n_features else ""
        self.ax_.set_xlabel(self.what + shown, parse_math=False)
        return self


class RegularizationPathDisplay(Display):
    """Weight of each feature against the regularization value, with the simplest model on the left.

    Parameters
    ----------
    alphas : array-like of shape (alphas,)
        Positive regularization values, in any order.
    weights : array-like of shape (alphas, n)
        Weights of the features for each value.
    names : sequence of str, optional
        Names of the features; x0, x1, ... by default.
    alpha : float, optional
        Value to mark.

    Attributes
    ----------
    alphas, weights : ndarray
        Arrays in descending order of alpha.
    names : list of str
    lines_ : list of matplotlib Line2D
        One line per feature, after :meth:`plot`.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from rankrls.plots import RegularizationPathDisplay
    >>> display = RegularizationPathDisplay([1.0, 0.1], [[0.5, 0.1], [0.9, -0.1]], ["title", "length"])
    >>> [text.get_text() for text in display.plot(top=1).ax_.get_legend().get_texts()]  # doctest: +SKIP
    ['title']
    """

    def __init__(
        self,
        alphas: ArrayLike,
        weights: ArrayLike,
        names: Sequence[object] | None = None,
        *,
        alpha: float | None = None,
    ) -> None:
        self.alphas, self.weights = _from_simplest(alphas, {"weights": weights})
        self.names = _names_of(names, self.weights.shape[1])
        self.alpha = alpha

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ItemsLike,
        *labels: VectorLike,
        alphas: ArrayLike | None = None,
        names: Sequence[object] | None = None,
        top: int = 10,
        ax: Any = None,
        **data: Any,
    ) -> Self:
        """Fit to labels or preferences for every alpha, and draw the weights.

        Parameters
        ----------
        estimator : RankRLS or RankRLSCV
            Estimator with a linear kernel and one target. It is not changed. The alpha of a fitted RankRLSCV is marked.
        X : as in :meth:`rankrls.RankRLS.fit`
            Features; standardize features on different scales first, because weights are drawn unscaled.
        *labels
            ``y`` as in :meth:`rankrls.RankRLS.fit`; or ``winners`` and ``losers`` as in
            :meth:`rankrls.RankRLS.fit_pairs`.
        alphas : array-like of float, optional
            Positive values; by default the automatic grid of RankRLSCV.
        names : sequence of str, optional
            Names of the features; by default those of X, if it is a data frame.
        top, ax
            Parameters of :meth:`plot`.
        **data
            ``qid`` and ``sample_weight`` as in :meth:`rankrls.RankRLS.fit`; or ``strength`` and ``weight`` as in
            :meth:`rankrls.RankRLS.fit_pairs`.

        Raises
        ------
        ValueError
            If the model is not linear.

        Notes
        -----
        One fit of RankRLS per alpha.
        """

        def fit(model: RankRLS | RankRLSCV) -> Any:
            if len(labels) == 1:
                return model.fit(X, *labels, **data)
            return model.fit_pairs(X, *labels, **data)

        chosen = vars(estimator).get("best_params_", {})
        given = estimator.get_params() | chosen
        if not isinstance(estimator, RankRLS | RankRLSCV) or given["kernel"] != "linear":
            problem = "A regularization path needs RankRLS or a fitted RankRLSCV with kernel='linear'"
            raise InputError(f"{problem}; got {estimator!r}.", parameter="estimator")
        given = {name: given[name] for name in RankRLS().get_params().keys() & RankRLSCV().get_params().keys()}
        if alphas is None:
            alphas = np.unique(fit(RankRLSCV(**given)).cv_results_["alpha"])
        models = [fit(RankRLS(alpha=alpha, **given)) for alpha in np.asarray(alphas)]
        if models[0].coef_.ndim != 1:
            raise InputError("A regularization path needs one target; y has several.", parameter="y")
        names = vars(models[0]).get("feature_names_in_") if names is None else names
        display = cls(alphas, [model.coef_ for model in models], names, alpha=chosen.get("alpha"))
        return display.plot(ax, top=top)

    def plot(self, ax: Any = None, *, top: int = 10, **line_kw: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes; by default those of a new figure.
        top : int, default=10
            Number of features that are coloured and named: the largest by magnitude at the marked alpha, or else at the
            smallest one. The others are grey.
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
        at = -1 if self.alpha is None else int(np.argmin(np.abs(np.log(self.alphas / self.alpha))))
        largest = np.argsort(-np.abs(self.weights[at]), kind="stable")[:top].tolist()
        self.ax_.axhline(0.0, color="black", linewidth=0.8)
        grey = {"color": "0.75", "linewidth": 0.8, "zorder": 1}
        self.lines_ = self.ax_.plot(self.alphas, self.weights, **grey | line_kw)
        for k, j in enumerate(largest):
            look = {"color": _COLOURS[k % 7], "linestyle": ("-", "--", ":")[k // 7 % 3], "linewidth": 1.5, "zorder": 2}
            self.lines_[j].set(label=self.names[j], **look | line_kw)
        handles = [self.lines_[j] for j in largest]
        if self.alpha is not None:
            label = f"alpha = {self.alpha:.3g}"
            handles.append(self.ax_.axvline(self.alpha, color="0.4", linestyle=":", label=label, zorder=0))
        for text in self.ax_.legend(handles=handles, fontsize="small").get_texts():
            text.set_parse_math(False)
        self.ax_.set(xscale="log", xlabel="alpha (decreasing)", ylabel="weight")
        self.ax_.xaxis.set_inverted(True)
        return self


def _from_simplest(alphas: ArrayLike, tables: Mapping[str, ArrayLike], *, ascending: bool = False) -> list[Array]:
    """Regularization values, from the simplest model, and tables with an entry or a row for each."""
    grid = vector_of("alphas", alphas, "one value a model")
    order = np.argsort(grid if ascending else -grid, kind="stable")
    found = [grid[order]]
    for name, values in tables.items():
        table: Array = np.asarray(values, dtype=np.float64)
        if len(table) != len(grid):
            raise InputError(
                f"{name} must have an entry or a row for each of {len(grid)} alphas; got {len(table)}.", parameter=name
            )
        found.append(table[order])
    return found


def _names_of(names: Sequence[object] | None, n: int) -> list[str]:
    """Names of features; x0, x1, ... by default, as in scikit-learn."""
    found = [f"x{j}" for j in range(n)] if names is None else [str(name) for name in names]
    if len(found) != n:
        raise InputError(f"There are {n} features but names has {len(found)}; each needs one.", parameter="names")
    return found
