"""The terms that a pursuit took, stage by stage, and what each gained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from rankrls._queries import query_layout
from rankrls.metrics import resolve_measure
from rankrls.plots._matplotlib import MOST_NAMES, Display, floats, one_each


class PursuitPathDisplay(Display):
    """A measure against the number of terms, with the name of what each stage took.

    Parameters
    ----------
    values : array-like of shape (stages,)
        The measure after 1, 2, ... stages.
    errors : array-like of shape (stages,), optional
        Standard errors, drawn as a band.
    names : sequence of str, optional
        Names of what each stage took: features or training rows. Shown below the axis for up to 40 stages.
    chosen : int, optional
        A number of stages to mark.
    measure : str, optional
        Name of the values, for the axis.

    Attributes
    ----------
    values, errors, names, chosen
        As given.
    line_ : matplotlib Line2D
        After :meth:`plot`.
    band_ : matplotlib PolyCollection or None
    chosen_ : matplotlib Line2D or None
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from rankrls.plots import PursuitPathDisplay
    >>> display = PursuitPathDisplay([0.3, 0.2, 0.19], names=["bm25", "pagerank", "title"], chosen=2)
    >>> display.plot().ax_.get_xlabel()  # doctest: +SKIP
    'terms taken, in order'
    """

    def __init__(
        self,
        values: ArrayLike,
        *,
        errors: ArrayLike | None = None,
        names: Sequence[Any] | None = None,
        chosen: int | None = None,
        measure: str | None = None,
    ) -> None:
        self.values = floats("values", values)
        n = len(self.values)
        self.errors = None if errors is None else floats("errors", errors, n, "stages")
        self.names = None if names is None else [str(name) for name in names]
        self.chosen, self.measure = chosen, measure
        if self.names is not None:
            one_each("names", self.names, n, "stages")

    @classmethod
    def from_path(cls, path: Any, *, names: Sequence[Any] | None = None, ax: Any = None, **line_kw: Any) -> Self:
        """Draw a path: the share of the loss that is left after each stage.

        Parameters
        ----------
        path : PursuitPath or CoPursuitPath
            ``path_`` of an estimator.
        names : sequence, optional
            Names of the features or rows that the path's indices number; the numbers themselves by default.
        ax, line_kw
            As for :meth:`plot`.
        """
        whole = float(path.losses[0])
        shares = path.losses[1:] / whole if whole > 0.0 else path.losses[1:]
        return cls(shares, names=_names(path, names), measure="share of the loss left").plot(ax=ax, **line_kw)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        qid: Any = None,
        scoring: Any = None,
        names: Sequence[Any] | None = None,
        ax: Any = None,
        **line_kw: Any,
    ) -> Self:
        """Draw the course of a fitted pursuit.

        With X and y, the curve is the measure on those data after each stage. Without, it is the held-out measure by
        which an estimator of these with CV chose, and for other estimators the share of the loss that is left.

        Parameters
        ----------
        estimator : RankingPursuit, CoRankingPursuit or either with CV
        X, y, qid : optional
            Data to judge every stage on.
        scoring : str, Measure or callable, optional
            By default the estimator's own, or the disagreement error.
        names : sequence, optional
            As for :meth:`from_path`. Features have the estimator's names if it knows them.
        ax, line_kw
            As for :meth:`plot`.
        """
        check_is_fitted(estimator)
        path = estimator.path_
        if names is None and getattr(estimator, "dictionary", None) == "features":
            names = getattr(estimator, "feature_names_in_", None)
        if X is not None and y is not None:
            measure = resolve_measure(scoring or getattr(estimator, "scoring", None) or "disagreement")
            scores = np.column_stack(list(estimator.staged_predict(X)) or [np.empty((len(y), 0))])
            _, values = measure.judge(np.asarray(y, dtype=np.float64), scores, query_layout(qid, len(scores)), None)
            return cls(values, names=_names(path, names), measure=str(measure)).plot(ax=ax, **line_kw)
        if not hasattr(estimator, "cv_results_"):
            return cls.from_path(path, names=names, ax=ax, **line_kw)
        table, best = estimator.cv_results_, estimator.best_index_
        stages = int(table["n_basis"][best])
        first = best - stages + 1
        rows = slice(first, first + int(estimator.max_basis))
        taken = _names(path, names)
        values = table["mean_score"][rows]
        display = cls(
            values,
            errors=table["standard_error"][rows],
            names=taken + [""] * (len(values) - len(taken)),
            chosen=stages,
            measure=f"{estimator.scoring}, {estimator.selection_}",
        )
        return display.plot(ax=ax, **line_kw)

    def plot(self, ax: Any = None, **line_kw: Any) -> Self:
        """Draw the curve.

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
        stages = np.arange(1, len(self.values) + 1)
        look = {"color": "tab:blue", "marker": "." if len(stages) <= MOST_NAMES else "", **line_kw}
        (self.line_,) = self.ax_.plot(stages, self.values, **look)
        self.band_ = self._band(stages, self.values, self.errors, self.line_.get_color())
        self.chosen_ = None
        if self.chosen is not None and 1 <= self.chosen <= len(stages):
            self.chosen_ = self._chosen(self.chosen, self.values[self.chosen - 1], str(self.chosen))
            self.ax_.legend()
        named = self.names is not None and self._name_places(stages, self.names)
        self._measured_by("terms taken, in order" if named else "number of terms")
        return self


def _names(path: Any, names: Sequence[Any] | None) -> list[str]:
    """What each stage took: one name, or one for each view."""
    found = []
    for stage in path.indices:
        numbers = np.unique(stage) if np.ndim(stage) else [stage]
        found.append(", ".join(str(k if names is None else names[k]) for k in numbers))
    return found
