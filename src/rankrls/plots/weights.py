"""Displays of the weights of linear models: the largest of one model, and those for every regularization value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.preprocessing import StandardScaler

from rankrls._checks import vector_of
from rankrls._errors import InputError
from rankrls.metrics._scorer import final_step_inputs
from rankrls.models._pipelines import fitted_ranker, linear_weights, names_of_features
from rankrls.models.intake import check_matrix
from rankrls.models.rankrls import RankRLS, RankRLSCV
from rankrls.plots.choices import COLOURS, Display, grid_of, table_of


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
        names: Sequence[Any] | None = None,
        *,
        top: int | None = 20,
        what: str = "weight",
    ) -> None:
        w = vector_of("weights", weights, "one a feature")
        every = names_of(names, len(w))
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
        estimator: Any,
        X: Any = None,
        *,
        qid: Any = None,
        names: Sequence[Any] | None = None,
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
        places = self._open_rows(ax, self.names)
        n = len(places)
        colours = [COLOURS[int(weight < 0.0)] for weight in self.weights]
        self.bars_ = self.ax_.barh(places, self.weights, **{"color": colours, **bar_kw})
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.axvline(0.0, color="black", linewidth=0.8)
        self.ax_.spines[["top", "right", "left"]].set_visible(False)
        some = f" ({n} of {self.n_features} features)" if n < self.n_features else ""
        self.ax_.set_xlabel(self.what + some, parse_math=False)
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
        self, alphas: ArrayLike, weights: ArrayLike, names: Sequence[Any] | None = None, *, alpha: float | None = None
    ) -> None:
        grid = grid_of(alphas)
        order = np.argsort(-grid, kind="stable")
        self.alphas = grid[order]
        self.weights = table_of("weights", weights, grid)[order]
        self.names = names_of(names, self.weights.shape[1])
        self.alpha = alpha

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *labels: Any,
        alphas: ArrayLike | None = None,
        names: Sequence[Any] | None = None,
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

        def fit(model: Any) -> Any:
            return (model.fit if len(labels) == 1 else model.fit_pairs)(X, *labels, **data)

        known = vars(estimator) if isinstance(estimator, RankRLS | RankRLSCV) else {}
        chosen = known.get("best_params_", {})
        given = estimator.get_params() | chosen if known else {}
        if given.get("kernel") != "linear":
            problem = "A regularization path needs RankRLS or a fitted RankRLSCV with kernel='linear'"
            raise InputError(f"{problem}; got {estimator!r}.", parameter="estimator")
        given = {name: given[name] for name in RankRLS().get_params().keys() & RankRLSCV().get_params().keys()}
        if alphas is None:
            alphas = np.unique(fit(RankRLSCV(**given)).cv_results_["alpha"])
        grid = grid_of(alphas)
        models = [fit(RankRLS(alpha=alpha, **given)) for alpha in grid]
        if models[0].coef_.ndim != 1:
            raise InputError("A regularization path needs one target; y has several.", parameter="y")
        names = vars(models[0]).get("feature_names_in_") if names is None else names
        display = cls(grid, [model.coef_ for model in models], names, alpha=chosen.get("alpha"))
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
        self.lines_: list[Any] = []
        for j, name in enumerate(self.names):
            look: dict[str, Any] = {"color": "0.75", "linewidth": 0.8, "zorder": 1}
            if j in largest:
                k = largest.index(j)
                look = {"color": COLOURS[k % 7], "linestyle": ("-", "--", ":")[k // 7 % 3], "zorder": 2}
            self.lines_ += self.ax_.plot(self.alphas, self.weights[:, j], **{"label": name, **look, **line_kw})
        handles = [self.lines_[j] for j in largest]
        if self.alpha is not None:
            label = f"alpha = {self.alpha:.3g}"
            handles.append(self.ax_.axvline(self.alpha, color="0.4", linestyle=":", label=label, zorder=0))
        for text in self.ax_.legend(handles=handles, fontsize="small").get_texts():
            text.set_parse_math(False)
        self.ax_.set(xscale="log", xlabel="alpha (decreasing)", ylabel="weight")
        self.ax_.xaxis.set_inverted(True)
        return self


def names_of(names: Sequence[Any] | None, n: int) -> list[str]:
    """Names of features; x0, x1, ... by default, as in scikit-learn."""
    found = [f"x{j}" for j in range(n)] if names is None else [str(name) for name in names]
    if len(found) != n:
        raise InputError(f"There are {n} features but names has {len(found)}; each needs one.", parameter="names")
    return found
