"""Displays: what an estimator has found, drawn by matplotlib (``pip install 'rankrls[plots]'``)."""

from rankrls._public import publish
from rankrls.plots.alpha_selection import AlphaSelectionDisplay
from rankrls.plots.coefficients import CoefficientsDisplay
from rankrls.plots.pursuit_path import PursuitPathDisplay
from rankrls.plots.query_differences import PerQueryDifferencesDisplay
from rankrls.plots.regularization_path import RegularizationPathDisplay
from rankrls.plots.validation_surface import ValidationSurfaceDisplay

__all__ = [
    "AlphaSelectionDisplay",
    "CoefficientsDisplay",
    "PerQueryDifferencesDisplay",
    "PursuitPathDisplay",
    "RegularizationPathDisplay",
    "ValidationSurfaceDisplay",
]

publish(__name__, globals())
