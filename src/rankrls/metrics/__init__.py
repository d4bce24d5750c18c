"""Measures of ranking quality, per query and averaged, in the conventions of common evaluation tools."""

from rankrls.metrics._measure import Measure, evaluate, evaluate_run, preference_accuracy, resolve_measure
from rankrls.metrics._survival import time_dependent_auc, uno_concordance

__all__ = [
    "Measure",
    "evaluate",
    "evaluate_run",
    "preference_accuracy",
    "resolve_measure",
    "time_dependent_auc",
    "uno_concordance",
]
