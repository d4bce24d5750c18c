"""Rules that choose one value from a curve, where rounding must not decide.

Averages that are equal on paper differ in their last digits, and how they differ depends on the order of the rows and
on the number of threads. Whatever chooses by a measure compares by the functions below. A further rule is a function
here and its name in ``RULES``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankrls._typing import Array, Mask

EQUAL = 1e-10
"""Averages that differ by no more than this share of what they average count as equal.

That is far above the rounding of an average and far below any difference that a choice should rest on.
"""
Rule = Callable[[Array, Array, Array], int]
"""Takes how good each value is (NaN if it could not be evaluated), its standard error, and the scale of its rounding;
the simplest model is first."""


def best(goodness: Array, error: Array, scale: Array) -> int:
    """The best value; of equal ones the simplest."""
    return int(best_within_rounding(goodness, scale).argmax())


def one_standard_error(goodness: Array, error: Array, scale: Array) -> int:
    """The simplest value within one standard error of the best one (Breiman et al. 1984)."""
    top = best(goodness, error, scale)
    if np.isnan(error[top]):
        return top
    return int(reaches(goodness, goodness[top] - error[top], scale[top]).argmax())


RULES: dict[str, Rule] = {"best": best, "one_se": one_standard_error}


def best_within_rounding(goodness: Array, scale: Any) -> Mask:
    """Which entries equal the largest one of their column, of those that are not NaN."""
    return np.asarray(reaches(goodness, np.fmax.reduce(goodness), scale))


def is_better(new: Any, old: Any, scale: Any) -> Any:
    """Whether a value exceeds another by more than rounding; a value or an array of each."""
    return new > old + EQUAL * scale


def reaches(value: Any, level: Any, scale: Any) -> Any:
    """Whether a value is at least a level, up to rounding; a value or an array of each. NaN reaches nothing."""
    return value >= level - EQUAL * scale
