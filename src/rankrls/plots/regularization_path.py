"""The weights of a linear model against its regularization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankrls.equations.spectrum import auto_alphas
from rankrls.model_selection._estimators import checked_model
from rankrls.models import RankRLS
from rankrls.models._pairs import pair_graph
from rankrls.models._pipelines import check_target
from rankrls.models._problems import feature_weights
from rankrls.models._validation import check_comparable, training_data
from rankrls.plots._matplotlib import COLOURS, REST, axes_to_draw_on, label_line_ends, one_name_each

__all__ = ["RegularizationPathDisplay"]

_POINTS = 101  # of an automatic grid: enough for smooth curves


class RegularizationPathDisplay:
    """Weights against alpha, from strong regularization on the left to weak on the right, the largest ones named.

    Parameters
    ----------
    alphas : array-like of shape (alphas,)
        Regularization values, all positive, in any order.
    weights : array-like of shape (alphas, n)
        A row for each of them.
    names : sequence of str, optional
        Names of the features; x0, x1, ... by default.
    alpha : float, optional
        A value to mark, such as the chosen one.

    Attributes
    ----------
    alphas, weights : ndarray
        From the largest alpha to the smallest.
    names : list of str
    alpha : float or None
    lines_ : list of matplotlib Line2D
        One a feature, after :meth:`plot`.
    labels_ : list of matplotlib Annotation
        Of the features that are named.
    alpha_ : matplotlib Line2D or None
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from rankrls.plots import RegularizationPathDisplay
    >>> display = RegularizationPathDisplay([1.0, 0.1], [[0.5, 0.1], [0.9, -0.1]], ["title", "length"])
    >>> [label.get_text() for label in display.plot(top=1).labels_]  # doctest: +SKIP
    ['title']
    """

    ax_: Any
    figure_: Any
    lines_: list[Any]
    labels_: list[Any]
    alpha_: Any

    def __init__(
        self,
        alphas: ArrayLike,
        weights: ArrayLike,
        names: Sequence[Any] | None = None,
        *,
        alpha: float | None = None,
    ) -> None:
        grid: NDArray[np.float64] = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        if grid.ndim != 1 or not len(grid) or not (grid > 0.0).all():
            raise ValueError(f"alphas must be a sequence of positive numbers, for a logarithmic axis; got {alphas!r}.")
        W: NDArray[np.float64] = np.asarray(weights, dtype=np.float64)
        if W.ndim != 2 or len(W) != len(grid):
            raise ValueError(f"weights must have a row for each of {len(grid)} alphas; got shape {W.shape}.")
        if alpha is not None and not alpha > 0.0:
            raise ValueError(f"alpha must be positive to be marked on a logarithmic axis; got {alpha!r}.")
        order = np.argsort(-grid, kind="stable")
        self.alphas, self.weights = grid[order], W[order]
        self.names = one_name_each(names, W.shape[1])
        self.alpha = alpha

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        alphas: Any = "auto",
        names: Sequence[Any] | None = None,
        target: int | None = None,
        top: int = 10,
        ax: Any = None,
        **line_kw: Any,
    ) -> Self:
        """Learn from items with labels for every alpha, from one factorisation, and draw the weights.

        Parameters
        ----------
        estimator : RankRLS or RankRLSCV
            With a linear kernel. Its parameters are used; it is not changed. Of a fitted RankRLSCV those that it
            chose, and its alpha is marked. RankRLS need not be fitted.
        X, y, qid, sample_weight : as in :meth:`RankRLS.fit`
            Standardise features on different scales before: weights are drawn as they are.
        alphas : "auto" or sequence of float, default="auto"
            Positive values. "auto" is a geometric grid relative to the problem's spectrum.
        names : sequence of str, optional
            By default those of X, where it is a data frame.
        target : int, optional
            Which column of y, where it has several.
        top, ax, line_kw
            As for :meth:`plot`.

        Raises
        ------
        ValueError
            Where the model is not linear, or has several targets and none is named.

        Notes
        -----
        The price of one fit by :class:`RankRLSCV`; O(n^2) more for every alpha (primal).
        """
        model, alpha, given = _linear_model(estimator, alphas)
        data = training_data(model, X, y, qid, sample_weight, kernel="linear")
        check_comparable(data, float(model.regression_weight))
        chosen = check_target(target, data.Y.shape[1])
        problems = model._holdout_candidate(data).problems(data)
        fitted = next(p for p in problems if p.targets.start <= chosen < p.targets.stop)
        grid = _grid(given, fitted.problem)
        coefficients = fitted.problem.path(grid)[:, :, chosen - fitted.targets.start]
        weights = feature_weights(data.X, fitted.problem, np.ascontiguousarray(coefficients.T)).T
        display = cls(grid, weights, getattr(model, "feature_names_in_", None) if names is None else names, alpha=alpha)
        return display.plot(top=top, ax=ax, **line_kw)

    @classmethod
    def from_pairs(
        cls,
        estimator: Any,
        X: Any,
        winners: Any,
        losers: Any,
        *,
        strength: Any = None,
        weight: Any = None,
        alphas: Any = "auto",
        names: Sequence[Any] | None = None,
        top: int = 10,
        ax: Any = None,
        **line_kw: Any,
    ) -> Self:
        """Learn from preferences for every alpha, from one factorisation, and draw the weights.

        Parameters
        ----------
        estimator, alphas, names : as in :meth:`from_estimator`
        X, winners, losers, strength, weight : as in :meth:`RankRLS.fit_pairs`
        top, ax, line_kw
            As for :meth:`plot`.
        """
        model, alpha, given = _linear_model(estimator, alphas)
        X, graph = pair_graph(model, X, winners, losers, strength, weight, kernel="linear")
        problem = model._preference_problem(X, graph)
        grid = _grid(given, problem)
        coefficients = problem.path(grid)[:, :, 0]
        weights = feature_weights(X, problem, np.ascontiguousarray(coefficients.T)).T
        display = cls(grid, weights, getattr(model, "feature_names_in_", None) if names is None else names, alpha=alpha)
        return display.plot(top=top, ax=ax, **line_kw)

    def plot(self, ax: Any = None, *, top: int = 10, **line_kw: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Those of a new figure by default.
        top : int, default=10
            So many features are coloured and named, the largest by magnitude where alpha is marked, or else at the
            smallest alpha. The others are grey.
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
        at = -1 if self.alpha is None else int(np.argmin(np.abs(np.log(self.alphas / self.alpha))))
        largest = np.argsort(-np.abs(self.weights[at]), kind="stable")[:top].tolist()
        self.ax_.axhline(0.0, color="black", linewidth=0.8)
        self.lines_ = []
        for j, name in enumerate(self.names):
            place = largest.index(j) if j in largest else -1
            look: dict[str, Any] = {"color": REST, "linewidth": 0.8, "zorder": 1}
            if place >= 0:
                styles = ("-", "--", ":", "-.")
                look = {
                    "color": COLOURS[place % len(COLOURS)],
                    "linestyle": styles[place // len(COLOURS) % len(styles)],
                    "zorder": 2,
                }
            self.lines_ += self.ax_.plot(self.alphas, self.weights[:, j], **{"label": name, **look, **line_kw})
        self.alpha_ = None
        if self.alpha is not None:
            self.alpha_ = self.ax_.axvline(
                self.alpha, color="0.4", linestyle=":", label=f"alpha = {self.alpha:.3g}", zorder=0
            )
            self.ax_.legend(handles=[self.alpha_])
        self.ax_.set(xscale="log", xlabel="alpha (decreasing)", ylabel="weight")
        if len(self.alphas) > 1:
            self.ax_.set_xlim(self.alphas[0], self.alphas[-1])
        self.labels_ = label_line_ends(self.ax_, [self.lines_[j] for j in largest])
        return self


def _linear_model(estimator: Any, alphas: Any) -> tuple[Any, float | None, Any]:
    """A clone to learn with, the alpha to mark, and the grid or None for an automatic one."""
    chosen = getattr(estimator, "best_params_", None)
    alpha = None
    if chosen is not None and hasattr(estimator, "alpha_"):
        alpha = float(estimator.alpha_)
        shared = RankRLS().get_params()
        own = {name: value for name, value in estimator.get_params().items() if name in shared}
        estimator = RankRLS(**{**own, **{name: value for name, value in chosen.items() if name in shared}})
    if not isinstance(estimator, RankRLS) or estimator.kernel != "linear":
        what = type(estimator).__name__
        kernel = getattr(estimator, "kernel", None)
        what += f" with kernel={kernel!r}" if kernel is not None else ""
        raise ValueError(
            f"A regularization path needs RankRLS with kernel='linear', or a fitted RankRLSCV that chose it; got "
            f"{what}.{' Transform X first, and give the last step.' if hasattr(estimator, 'steps') else ''}"
        )
    automatic = isinstance(alphas, str) and alphas == "auto"
    model, grid = checked_model(estimator, None if automatic else alphas, "A regularization path", refits=False)
    if not automatic and not (grid > 0.0).all():
        raise ValueError(f"alphas must be positive for a logarithmic axis; got {alphas!r}.")
    return model, alpha, None if automatic else np.sort(grid)[::-1]


def _grid(given: NDArray[np.float64] | None, problem: Any) -> NDArray[np.float64]:
    if given is not None:
        return given
    return auto_alphas(problem.values, _POINTS, least=getattr(problem, "least_scale", np.inf))
