"""The weights of a linear model against its regularization."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankrls._errors import InputError
from rankrls.equations.spectrum import auto_alphas
from rankrls.model_selection._estimators import checked_model
from rankrls.models._pipelines import check_target
from rankrls.models.inputs.validation import check_comparable, labelled_items, preferred_items
from rankrls.models.rankrls import RankRLS
from rankrls.plots._matplotlib import COLOURS, REST, Array, Display, label_line_ends, names_of, positive_grid

_POINTS = 101  # of an automatic grid: enough for smooth curves
_STYLES = ("-", "--", ":", "-.")


class RegularizationPathDisplay(Display):
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

    def __init__(
        self,
        alphas: ArrayLike,
        weights: ArrayLike,
        names: Sequence[Any] | None = None,
        *,
        alpha: float | None = None,
    ) -> None:
        grid = positive_grid(alphas)
        W: Array = np.asarray(weights, dtype=np.float64)
        if W.ndim != 2 or len(W) != len(grid):
            raise InputError("{weights} must have a row for each of {0} alphas; got shape {1}.", len(grid), W.shape)
        if alpha is not None and not alpha > 0.0:
            raise InputError("{alpha} must be positive to be marked on a logarithmic axis; got {0!r}.", alpha)
        order = np.argsort(-grid, kind="stable")
        self.alphas, self.weights = grid[order], W[order]
        self.names = names_of(names, W.shape[1])
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
            With a linear kernel. Its parameters are used; it is not changed. For a fitted RankRLSCV, those that
            it chose are used, and its alpha is marked. RankRLS need not be fitted.
        X, y, qid, sample_weight : as in :meth:`RankRLS.fit`
            Standardise features on different scales before: weights are drawn as they are.
        alphas : "auto" or sequence of float, default="auto"
            Positive values. "auto" is a geometric grid relative to the problem's spectrum.
        names : sequence of str, optional
            By default those of X, if it is a data frame.
        target : int, optional
            Which column of y, if it has several.
        top, ax, line_kw
            As for :meth:`plot`.

        Raises
        ------
        ValueError
            If the model is not linear, or has several targets and none is named.

        Notes
        -----
        The price of one fit by :class:`RankRLSCV`; O(n^2) more for every alpha (primal).
        """
        model, alpha, given = _linear_model(estimator, alphas)
        data = labelled_items(model, X, y, qid, sample_weight, kernel="linear")
        check_comparable(data, float(model.regression_weight))
        chosen = check_target(target, data.Y.shape[1])
        return cls(*_path(model, data, given, chosen), _names(model, names), alpha=alpha).plot(ax, top=top, **line_kw)

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
        data = preferred_items(model, X, winners, losers, strength, weight, kernel="linear")
        return cls(*_path(model, data, given, 0), _names(model, names), alpha=alpha).plot(ax, top=top, **line_kw)

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
        self.ax_.axhline(0.0, color="black", linewidth=0.8)
        rest: dict[str, Any] = {"color": REST, "linewidth": 0.8, "zorder": 1}
        styles = [{"color": colour, "linestyle": style, "zorder": 2} for style in _STYLES for colour in COLOURS]
        looks = dict(zip(largest, cycle(styles), strict=False))
        self.lines_: list[Any] = []
        for j, name in enumerate(self.names):
            look = {"label": name, **looks.get(j, rest), **line_kw}
            self.lines_ += self.ax_.plot(self.alphas, self.weights[:, j], **look)
        self.alpha_ = None
        if self.alpha is not None:
            label = f"alpha = {self.alpha:.3g}"
            self.alpha_ = self.ax_.axvline(self.alpha, color="0.4", linestyle=":", label=label, zorder=0)
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
        kernel = getattr(estimator, "kernel", None)
        raise InputError(
            "A regularization path needs RankRLS with {kernel='linear'}, or a fitted RankRLSCV that chose it; got {0}.",
            type(estimator).__name__ + ("" if kernel is None else f" with kernel={kernel!r}"),
            remedy="Transform X first, and give the last step." if hasattr(estimator, "steps") else "",
            parameter="estimator",
        )
    automatic = isinstance(alphas, str) and alphas == "auto"
    model, grid = checked_model(estimator, None if automatic else alphas, "A regularization path", refits=False)
    return model, alpha, None if automatic else np.sort(positive_grid(grid))[::-1]


def _path(model: Any, data: Any, grid: Array | None, target: int) -> tuple[Array, Array]:
    """The values of alpha, and for each the weights of all features."""
    problem = model._candidate(data).problem(data)
    if grid is None:
        grid = auto_alphas(problem.values, _POINTS, least=problem.least_scale)
    return grid, problem.path(grid).weights[:, :, target]


def _names(model: Any, names: Sequence[Any] | None) -> Sequence[Any] | None:
    return getattr(model, "feature_names_in_", None) if names is None else names
