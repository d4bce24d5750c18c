"""The queries in which two rankings differ: one bar for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.metrics import resolve_measure
from rankrls.metrics._paired import paired_differences
from rankrls.plots._matplotlib import AHEAD, BEHIND, Display, one_each


class PerQueryDifferencesDisplay(Display):
    """Differences of a measure between two rankings, query by query, from the first one's wins to its losses.

    Parameters
    ----------
    first, second : array-like of shape (q,)
        The measure of each query under either ranking; NaN is a query that is not judged, and not drawn.
    qid : sequence of length q, optional
        Ids of the queries. Shown below the axis for up to 40 queries.
    names : tuple of two str, default=("first", "second")
        Names of the rankings.
    measure : str, optional
        Name of the measure, for the axis.
    greater_is_better : bool, default=True
        Whether the first one wins if its value is greater.
    interval : tuple of float, optional
        An interval of the mean difference, drawn as a band behind the bars.

    Attributes
    ----------
    differences : ndarray
        First minus second of the queries that both judge, the first one's clearest win first; queries that are equal
        to 12 digits differ by 0.
    qid : list or None
        Ids in that order.
    mean : float
        Mean difference over these queries.
    wins, ties, losses : int
        Numbers of queries in which the first ranking is better, equal, and worse.
    n_dropped : int
        Queries that one of them does not judge.
    wins_, losses_ : matplotlib StepPatch
        After :meth:`plot`.
    mean_ : matplotlib Line2D
    band_ : matplotlib Rectangle or None
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from rankrls.plots import PerQueryDifferencesDisplay
    >>> display = PerQueryDifferencesDisplay([0.9, 0.5, 0.3], [0.4, 0.5, 0.5], qid=["a", "b", "c"])
    >>> display.wins, display.ties, display.losses, display.qid
    (1, 1, 1, ['a', 'b', 'c'])
    >>> display.plot().ax_.get_ylabel()  # doctest: +SKIP
    'measure: first - second'
    """

    def __init__(
        self,
        first: ArrayLike,
        second: ArrayLike,
        *,
        qid: Sequence[Any] | NDArray[Any] | None = None,
        names: tuple[str, str] = ("first", "second"),
        measure: str | None = None,
        greater_is_better: bool = True,
        interval: tuple[float, float] | None = None,
    ) -> None:
        paired = paired_differences(first, second, ("first", "second"))
        if qid is not None:
            one_each("qid", list(qid), len(paired.both), "queries")
        if not len(paired.differences):
            raise InputError("No query is judged under both rankings: there is no difference to draw.")
        sign = 1.0 if greater_is_better else -1.0
        order = np.argsort(-sign * paired.differences, kind="stable")
        self.differences = paired.differences[order]
        self.qid = None if qid is None else [qid[k] for k in np.flatnonzero(paired.both)[order]]
        self.mean, self.interval = paired.mean, interval
        counts = paired.counts(greater_is_better)
        self.wins, self.ties, self.losses = counts["wins"], counts["ties"], counts["losses"]
        self.n_dropped = counts["n_dropped"]
        self.names, self.measure, self.greater_is_better = names, measure, greater_is_better

    @classmethod
    def from_report(
        cls, report: Any, first: str, second: str, *, measure: str | None = None, ax: Any = None, **patch_kw: Any
    ) -> Self:
        """Draw two rankings of a comparison, with the interval of their mean difference.

        Parameters
        ----------
        report : RankingReport
            Of :func:`rankrls.comparison.compare_rankings`.
        first, second : str
            Names from the report.
        measure : str, optional
            A measure of the report; its first one by default.
        ax, patch_kw
            As for :meth:`plot`.

        Raises
        ------
        ValueError
            For a name that the report does not have.
        """
        found = report.named(measure, first, second)
        lines = {(line.first, line.second): (line.low, line.high) for line in found.randomization}
        lines |= {(b, a): (-high, -low) for (a, b), (low, high) in lines.items()}
        display = cls(
            found.per_query[first],
            found.per_query[second],
            qid=report.qid,
            names=(first, second),
            measure=found.name,
            greater_is_better=found.greater_is_better,
            interval=lines.get((first, second)),
        )
        return display.plot(ax=ax, **patch_kw)

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        first: ArrayLike,
        second: ArrayLike,
        *,
        qid: Any,
        scoring: Any = "disagreement",
        names: tuple[str, str] = ("first", "second"),
        ax: Any = None,
        **patch_kw: Any,
    ) -> Self:
        """Draw the difference between two lists of scores of the same items.

        Parameters
        ----------
        y : array-like of shape (m,)
            Labels.
        first, second : array-like of shape (m,)
            Scores.
        qid : array-like of shape (m,)
        scoring : str, Measure or callable, default="disagreement"
        names : tuple of two str
        ax, patch_kw
            As for :meth:`plot`.
        """
        measure = resolve_measure(scoring)
        labels = np.asarray(y, dtype=np.float64)
        layout = query_layout(qid, len(labels))
        columns = [np.asarray(scores, dtype=np.float64) for scores in (first, second)]
        for name, scores in zip(names, columns, strict=True):
            if scores.shape != labels.shape:
                problem = "Ranking {0!r} has scores of shape {1}; {y} has shape {2}."
                raise InputError(problem, name, scores.shape, labels.shape)
        one, other = (measure.per_query(labels, scores, layout) for scores in columns)
        display = cls(
            one,
            other,
            qid=layout.ids.tolist(),
            names=names,
            measure=str(measure),
            greater_is_better=measure.greater_is_better,
        )
        return display.plot(ax=ax, **patch_kw)

    def plot(self, ax: Any = None, **patch_kw: Any) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Those of a new figure by default.
        **patch_kw
            Passed to ``ax.stairs``, for wins and losses.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self._open(ax)
        q = len(self.differences)
        edges = np.arange(q + 1) - 0.5
        first, second = self.names
        # Two patches, however many queries there are.
        wins = (np.arange(q) < self.wins) * self.differences
        losses = (np.arange(q) >= q - self.losses) * self.differences
        look = {"fill": True, **patch_kw}
        self.wins_ = self.ax_.stairs(wins, edges, label=f"{first} better: {self.wins}", **{"color": AHEAD, **look})
        self.losses_ = self.ax_.stairs(
            losses, edges, label=f"{second} better: {self.losses}", **{"color": BEHIND, **look}
        )
        self.ax_.axhline(0.0, color="black", linewidth=0.8)
        between = "" if self.interval is None else " [{:+.4f}, {:+.4f}]".format(*self.interval)
        self.mean_ = self.ax_.axhline(self.mean, color="black", linestyle="--", label=f"mean {self.mean:+.4f}{between}")
        self.band_ = None
        if self.interval is not None:
            self.band_ = self.ax_.axhspan(*self.interval, color="0.8", linewidth=0, zorder=0)
        if self.ties:
            self.ax_.plot([], [], " ", label=f"equal: {self.ties}")
        self.ax_.set_xlim(-0.5, q - 0.5)
        self.ax_.set(xlabel=f"{q} queries, sorted", ylabel=f"{self.measure or 'measure'}: {first} - {second}")
        if not self._name_places(np.arange(q), self.qid):
            self.ax_.set_xticks([])
        self.ax_.legend()
        return self
