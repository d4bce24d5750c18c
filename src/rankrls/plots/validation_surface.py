"""The measure of every regularization value after every iteration, as curves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from rankrls._errors import InputError
from rankrls.plots._matplotlib import Array, Display, floats


class ValidationSurfaceDisplay(Display):
    """A measure on validation data against iterations, one curve for each regularization value.

    Figures 1 and 2 of Airola, Pahikkala and Salakoski (2010), from one run: reading a curve's end is Tikhonov
    regularization, reading the curve of alpha = 0 at its best point is early stopping, and the best point of all
    curves is the hybrid of both.

    Parameters
    ----------
    surface : array-like of shape (alphas, iterations)
        The measure; NaN for a value that was not judged.
    alphas : array-like of shape (alphas,)
        Regularization values of the rows.
    alpha, n_iter : float and int, optional
        The chosen values, marked by a dot.
    measure : str, optional
        Name of the measure, for the axis.

    Attributes
    ----------
    surface, alphas : ndarray
    lines_ : list of matplotlib Line2D
        One a curve, after :meth:`plot`.
    chosen_ : matplotlib Line2D or None
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from rankrls.plots import ValidationSurfaceDisplay
    >>> display = ValidationSurfaceDisplay([[0.3, 0.2, 0.25], [0.3, 0.22, 0.22]], [0.01, 1.0], alpha=0.01, n_iter=2)
    >>> len(display.plot().lines_)  # doctest: +SKIP
    2
    """

    def __init__(
        self,
        surface: ArrayLike,
        alphas: ArrayLike,
        *,
        alpha: float | None = None,
        n_iter: int | None = None,
        measure: str | None = None,
    ) -> None:
        self.surface: Array = np.atleast_2d(np.asarray(surface, dtype=np.float64))
        self.alphas = floats("alphas", alphas, len(self.surface), "rows of the surface")
        self.alpha, self.n_iter, self.measure = alpha, n_iter, measure

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **line_kw: Any) -> Self:
        """Draw the measures that a fitted :class:`~rankrls.CGRankRLS` has computed.

        Parameters
        ----------
        estimator : CGRankRLS
            Fitted with validation data, folds or a part held out.
        ax, line_kw
            As for :meth:`plot`.

        Raises
        ------
        ValueError
            If the estimator has no surface.
        """
        check_is_fitted(estimator)
        surface = getattr(estimator, "validation_surface_", None)
        if surface is None or np.size(surface) == 0:
            problem = "This {0} has no validation surface: nothing was judged while it was fitted."
            raise InputError(problem, type(estimator).__name__, parameter="estimator")
        display = cls(
            surface,
            estimator.alphas_,
            alpha=float(estimator.alpha_),
            n_iter=int(estimator.n_iter_),
            measure=str(estimator.scoring),
        )
        return display.plot(ax=ax, **line_kw)

    def plot(self, ax: Any = None, *, colormap: str = "viridis", **line_kw: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Those of a new figure by default.
        colormap : str
            Colours from the smallest positive alpha to the largest; alpha = 0 is black and dashed.
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
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LogNorm

        positive = self.alphas[self.alphas > 0.0]
        low, high = (positive.min(), positive.max()) if len(positive) else (1.0, 1.0)
        colours, scale = colormaps[colormap], LogNorm(low, high if high > low else 2.0 * low)
        self.lines_: list[Any] = []
        for alpha, values in zip(self.alphas, self.surface, strict=True):
            known = ~np.isnan(values)
            look = {"color": "black", "linestyle": "--"} if alpha == 0.0 else {"color": colours(scale(alpha))}
            look = {"label": f"alpha = {alpha:.3g}", **look, **line_kw}
            self.lines_ += self.ax_.plot(np.flatnonzero(known) + 1, values[known], **look)
        if len(positive) > 1:
            self.figure_.colorbar(ScalarMappable(scale, colormap), ax=self.ax_).set_label("alpha")
        self.chosen_ = None
        row = np.flatnonzero(self.alphas == (np.nan if self.alpha is None else self.alpha))
        if len(row) and self.n_iter and self.n_iter <= self.surface.shape[1]:
            value = self.surface[row[0], self.n_iter - 1]
            self.chosen_ = self._chosen(self.n_iter, value, f"{self.alpha:.3g} after {self.n_iter}")
        self._measured_by("iterations", xscale="log")
        return self
