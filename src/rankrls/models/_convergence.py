"""The warning of an iteration that ended early."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

from rankrls._errors import InputWarning

__all__ = ["NotConverged"]


class NotConverged(InputWarning, ConvergenceWarning):
    """An iteration ended before its tolerance was reached."""
