"""The weights of a linear model that matter most, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

from rankrls._checks import check_count, check_finite, vector_of
from rankrls._errors import InputError
from rankrls.metrics._scorer import final_step_inputs
from rankrls.models._pipelines import fitted_ranker, linear_weights, names_of_features
from rankrls.plots._matplotlib import COLOURS, Display, names_of


class CoefficientsDisplay(Display):
    """Bars of the largest weights: those that raise a score above those that lower it, each by magnitude.

    Parameters
    ----------
    weights : array-like of shape (n,)
        One weight a feature.
    names : sequence of str, optional
        Names of the features; x0, x1, ... by default.
    top : int or None, default=20
        How many to draw at most, the largest by magnitude; None is all. Weights of 0 are never drawn.
    what : str, default="weight"
        Name of the numbers, for the axis.

    Attributes
    ----------
    weights : ndarray
        Those drawn, from the top.
    names : list of str
        Their names.
    indices : ndarray of int
        Their columns.
    n_features : int
        How many there were to choose from.
    bars_ : matplotlib BarContainer
        After :meth:`plot`.
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
        check_finite("weights", w, "weight")
        if top is not None:
            check_count("top", top, none="all")
        every = names_of(names, len(w))
        largest = np.argsort(-np.abs(w), kind="stable")[:top]
        largest = largest[w[largest] != 0.0]
        self.indices = largest[np.argsort(w[largest] < 0.0, kind="stable")]
        self.weights = w[self.indices]
        self.names = [every[j] for j in self.indices]
        self.n_features, self.what = len(w), what

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
            Items, such as those of training. Each weight is then multiplied by its feature's standard deviation among
            them, which makes weights of features on different scales comparable. A pipeline's other steps transform
            them first.
        qid : array-like of shape (m,), optional
            One query id per row of X, for a step that scales inside queries.
        names : sequence of str, optional
            Of the features that are weighed. By default those of the data frame that the model was fitted on, or those
            that the pipeline's other steps make.
        target : int, optional
            Which target, if there are several.
        top : int or None, default=20
            As for the class.
        ax, bar_kw
            As for :meth:`plot`.

        Raises
        ------
        ValueError
            If the model is not linear, if it has several targets and none is named, and for a wrong number of names.
        """
        needs = "there are no weights of features to draw. Fit with {kernel='linear'}."
        weights = linear_weights(fitted_ranker(estimator), target, needs)
        names = names_of_features(estimator, None, len(weights)) if names is None else names
        what = "weight"
        if X is not None:
            _, Z = final_step_inputs(estimator, X, qid)
            weights = np.multiply(weights, _standard_deviations(Z, len(weights)))
            what = "weight × standard deviation of the feature"
        return cls(weights, names, top=top, what=what).plot(ax=ax, **bar_kw)

    def plot(self, ax: Any = None, **bar_kw: Any) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Those of a new figure, as high as the names need, by default.
        **bar_kw
            Passed to ``ax.barh``.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self._open(ax)
        n = len(self.weights)
        if ax is None:
            self.figure_.set_figheight(max(2.4, 1.0 + 0.22 * n))
        colours = [COLOURS[int(weight < 0.0)] for weight in self.weights]
        self.bars_ = self.ax_.barh(np.arange(n), self.weights, **{"color": colours, **bar_kw})
        self.ax_.set_yticks(np.arange(n), self.names)
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_ylim(n - 0.4, -0.6)
        self.ax_.axvline(0.0, color="black", linewidth=0.8)
        for side in ("top", "right", "left"):
            self.ax_.spines[side].set_visible(False)
        some = f" ({n} of {self.n_features} features)" if n < self.n_features else ""
        self.ax_.set_xlabel(self.what + some)
        return self


def _standard_deviations(X: Any, n: int) -> NDArray[np.float64]:
    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    if X.shape[1] != n:
        raise InputError(f"X has {X.shape[1]} features, but the model weighs {n}.", parameter="X")
    return np.sqrt(StandardScaler(with_mean=False).fit(X).var_)
