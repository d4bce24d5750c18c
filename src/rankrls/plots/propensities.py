"""How often each position is looked at."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from rankrls._errors import InputError
from rankrls.clicks import Propensities
from rankrls.models._pipelines import fitted_ranker
from rankrls.plots._matplotlib import COLOURS, Display


class PropensityDisplay(Display):
    """The examination of each position, with 95 % intervals if it was estimated.

    Parameters
    ----------
    propensities : Propensities

    Attributes
    ----------
    bars_ : matplotlib ErrorbarContainer
        After :meth:`plot`.
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

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **errorbar_kw: Any) -> Self:
        """Draw what an estimator, or the last step of a pipeline, found when it was fitted on clicks."""
        found = getattr(fitted_ranker(estimator), "propensities_", None)
        if found is None:
            raise InputError("The estimator was not fitted on clicks: fit it with position.", parameter="estimator")
        return cls(found).plot(ax=ax, **errorbar_kw)

    def plot(self, ax: Any = None, **errorbar_kw: Any) -> Self:
        """Draw; ``errorbar_kw`` are passed to ``ax.errorbar``, and a new figure is made if no axes are given."""
        self._open(ax)
        found = self.propensities
        ends = np.nan_to_num(np.abs(found.interval - found.examination))
        style = {"marker": "o", "capsize": 3, "color": COLOURS[0], **errorbar_kw}
        self.bars_ = self.ax_.errorbar(found.positions, found.examination, ends, **style)
        self.ax_.set(xlabel="position", ylabel="examination")
        self.ax_.set_ylim(bottom=0.0)
        return self
