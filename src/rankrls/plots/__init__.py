"""Displays of the results of an estimator, drawn by matplotlib (``pip install 'rankrls[plots]'``)."""

from rankrls.plots.choices import AlphaSelectionDisplay, PropensityDisplay
from rankrls.plots.leaderboards import LeaderboardDisplay
from rankrls.plots.weights import CoefficientsDisplay, RegularizationPathDisplay

__all__ = [
    "AlphaSelectionDisplay",
    "CoefficientsDisplay",
    "LeaderboardDisplay",
    "PropensityDisplay",
    "RegularizationPathDisplay",
]
