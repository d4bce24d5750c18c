"""The weights of a linear model for every regularization value."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankrls._errors import InputError
from rankrls.models.rankrls import RankRLS, RankRLSCV
from rankrls.plots._matplotlib import COLOURS, REST, Array, Display, grid_of, names_of

_STYLES = ("-", "--", ":")


class RegularizationPathDisplay(Display):
    """The weight of each feature against the regularization value, from the simplest model on the left.

    Parameters
    ----------
    alphas : array-like of shape (alphas,)
        Regularization values, all positive, in any order.
    weights : array-like of shape (alphas, n)
        The weights of the features for each.
    names : sequence of str, optional
        Names of the features; x0, x1, ... by default.
    alpha : float, optional
        A value to mark.

    Attributes
    ----------
    alphas, weights : ndarray
        From the largest alpha on.
    names : list of str
    lines_ : list of matplotlib Line2D
        One a feature, after :meth:`plot`.
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
        W: Array = np.asarray(weights, dtype=np.float64)
        if W.ndim != 2 or len(W) != len(grid):
            problem = f"weights must have a row for each of {len(grid)} alphas; got shape {W.shape}."
            raise InputError(problem, parameter="weights")
        order = np.argsort(-grid, kind="stable")
        self.alphas, self.weights = grid[order], W[order]
        self.names, self.alpha = names_of(names, W.shape[1]), alpha

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
            With a linear kernel and one target. It is not changed. A fitted RankRLSCV has its alpha marked.
        X : as in :meth:`RankRLS.fit`
            Standardize features on different scales before: weights are drawn as they are.
        *labels
            ``y`` as in :meth:`RankRLS.fit`; or ``winners`` and ``losers`` as in :meth:`RankRLS.fit_pairs`.
        alphas : array-like of float, optional
            Positive values; the automatic grid of RankRLSCV by default.
        names : sequence of str, optional
            By default those of X, if it is a data frame.
        top, ax
            As for :meth:`plot`.
        **data
            ``qid`` and ``sample_weight`` as in :meth:`RankRLS.fit`; or ``strength`` and ``weight`` as in
            :meth:`RankRLS.fit_pairs`.

        Raises
        ------
        ValueError
            If the model is not linear.

        Notes
        -----
        The price of one fit of RankRLS for each alpha.
        """
        fit = lambda model: getattr(model, "fit" if len(labels) == 1 else "fit_pairs")(X, *labels, **data)
        chosen = getattr(estimator, "best_params_", {})
        shared = RankRLS().get_params()
        given = {**getattr(estimator, "get_params", dict)(), **chosen}
        given = {name: value for name, value in given.items() if name in shared}
        if not isinstance(estimator, RankRLS | RankRLSCV) or given["kernel"] != "linear":
            problem = "A regularization path needs RankRLS or a fitted RankRLSCV with kernel='linear'"
            raise InputError(f"{problem}; got {estimator!r}.", parameter="estimator")
        del given["alpha"]
        if alphas is None:
            options = {name: value for name, value in given.items() if name in RankRLSCV().get_params()}
            alphas = np.unique(fit(RankRLSCV(**options)).cv_results_["alpha"])
        grid = grid_of(alphas)
        models = [fit(RankRLS(alpha=alpha, **given)) for alpha in grid]
        if models[0].coef_.ndim != 1:
            raise InputError("A regularization path is that of one target; y has several.", parameter="y")
        names = getattr(models[0], "feature_names_in_", None) if names is None else names
        display = cls(grid, [model.coef_ for model in models], names, alpha=chosen.get("alpha"))
        return display.plot(ax, top=top)

    def plot(self, ax: Any = None, *, top: int = 10, **line_kw: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Those of a new figure by default.
        top : int, default=10
            How many features are coloured and named: the largest by magnitude at the marked alpha, or else at the
            smallest one. The others are grey.
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
        at = -1 if self.alpha is None else int(np.argmin(np.abs(np.log(self.alphas / self.alpha))))
        largest = np.argsort(-np.abs(self.weights[at]), kind="stable")[:top].tolist()
        styles = [{"color": colour, "linestyle": style, "zorder": 2} for style in _STYLES for colour in COLOURS]
        looks = dict(zip(largest, cycle(styles), strict=False))
        rest = {"color": REST, "linewidth": 0.8, "zorder": 1}
        self.ax_.axhline(0.0, color="black", linewidth=0.8)
        self.lines_: list[Any] = []
        for j, name in enumerate(self.names):
            self.lines_ += self.ax_.plot(
                self.alphas, self.weights[:, j], **{"label": name, **looks.get(j, rest), **line_kw}
            )
        handles = [self.lines_[j] for j in largest]
        if self.alpha is not None:
            label = f"alpha = {self.alpha:.3g}"
            handles.append(self.ax_.axvline(self.alpha, color="0.4", linestyle=":", label=label, zorder=0))
        self.ax_.legend(handles=handles, fontsize="small")
        self.ax_.set(xscale="log", xlabel="alpha (decreasing)", ylabel="weight")
        if len(self.alphas) > 1:
            self.ax_.set_xlim(self.alphas[0], self.alphas[-1])
        return self
