"""Displays: what an estimator has found, drawn by matplotlib (``pip install 'rankrls[plots]'``)."""

from rankrls.plots.alpha_selection import AlphaSelectionDisplay
from rankrls.plots.coefficients import CoefficientsDisplay
from rankrls.plots.propensities import PropensityDisplay
from rankrls.plots.regularization_path import RegularizationPathDisplay

__all__ = ["AlphaSelectionDisplay", "CoefficientsDisplay", "PropensityDisplay", "RegularizationPathDisplay"]
