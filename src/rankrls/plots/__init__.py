"""Displays: what an estimator has found, drawn by matplotlib (``pip install 'rankrls[plots]'``)."""

from rankrls.plots.pursuit_path import PursuitPathDisplay
from rankrls.plots.validation_surface import ValidationSurfaceDisplay

__all__ = ["PursuitPathDisplay", "ValidationSurfaceDisplay"]
