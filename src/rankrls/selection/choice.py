"""Which of several measured values is the best, where rounding must not decide.

Averages that are equal on paper differ in their last digits, and how they differ depends on the order of the rows and
on the number of threads. Whatever chooses by a measure compares by the functions below.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError

EQUAL = 1e-10
"""Averages that differ by no more than this share of what they average count as equal.

That is far above the rounding of an average and far below any difference that a choice should rest on.
"""


def scale_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean absolute value of each column over its finite entries: what the rounding of its average is relative to."""
    finite = np.isfinite(values)
    total = np.abs(np.where(finite, values, 0.0)).sum(axis=0)
    return np.asarray(total / np.maximum(finite.sum(axis=0), 1))


def best_within_rounding(goodness: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which entries equal the largest one, of those that are not NaN."""
    k = int(np.nanargmax(goodness))
    return np.asarray(reaches(goodness, goodness[k], scale[k]))


def is_better(new: Any, old: Any, scale: Any) -> Any:
    """Whether a value exceeds another by more than rounding; a value or an array of each."""
    return new > old + EQUAL * scale


def reaches(value: Any, level: Any, scale: Any) -> Any:
    """Whether a value is at least a level, up to rounding; a value or an array of each. NaN reaches nothing."""
    return value >= level - EQUAL * scale


def check_judged(averages: NDArray[np.float64]) -> None:
    """Refuse averages that are all NaN."""
    if np.isnan(averages).all():
        raise InputError(
            "Nothing could be judged: no held-out query has two different labels. Give other folds (cv) "
            "or validation data.",
            parameter="cv",
        )
