"""Display of a leaderboard: ratings with intervals and possible ranks."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np

from rankrls._typing import AnyArray, Array
from rankrls.plots.choices import COLOURS, Display


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
    items : list of str
        Names of the drawn items, from the top.
    rating, low, high : ndarray
    bars_ : matplotlib ErrorbarContainer
        Bars, after :meth:`plot`.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from rankrls.inspection import leaderboard
    >>> from rankrls.plots import LeaderboardDisplay
    >>> board = leaderboard(["owl", "owl", "crow"] * 5, ["crow", "jay", "jay"] * 5)
    >>> LeaderboardDisplay(board, top=2).items
    ['owl', 'crow']
    """

    def __init__(self, board: RatedItems, *, top: int | None = 30) -> None:
        columns = {name: values[:top] for name, values in board.columns.items()}
        self.items = [str(item) for item in columns["item"]]
        self.rating: Array = columns["rating"]
        self.low: Array = columns["low"]
        self.high: Array = columns["high"]
        self._ranks = [*zip(columns["best_rank"].tolist(), columns["worst_rank"].tolist(), strict=True)]

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
        places = self._open_rows(ax, self.items)
        # rounding may put a bound of an interval of length zero on the wrong side
        sides = np.maximum([self.rating - self.low, self.high - self.rating], 0.0)
        look: dict[str, Any] = {"fmt": "o", "color": COLOURS[0]} | bar_kw
        self.bars_ = self.ax_.errorbar(self.rating, places, xerr=sides, **look)
        ranks = self.ax_.secondary_yaxis("right")
        ranks.set_yticks(places, [f"{best} to {worst}" for best, worst in self._ranks])
        ranks.set_ylabel("ranks")
        self.ax_.set_xlabel("rating")
        self.ax_.grid(axis="x", alpha=0.3)
        return self
