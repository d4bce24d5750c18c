"""Rules that select one value from a curve, where rounding must not decide.

Averages that are equal in exact arithmetic differ in their last digits, depending on the order of the rows and on the
number of threads. Every selection by a measure therefore compares with the functions below. To add a rule, add a
function here and its name to ``RULES``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankrls._typing import Array, Mask

EQUAL = 1e-10
"""Relative difference up to which averages count as equal.

It is far above the rounding of an average and far below any difference that a selection should rest on.
"""
Rule = Callable[[Array, Array, Array], int]
"""Function of the goodness of each value (NaN if it could not be evaluated), its standard error, and the scale of its
rounding; the simplest model is first."""


def best(goodness: Array, error: Array, scale: Array) -> int:
    """Index of the best value; ties go to the simplest."""
    return int(best_within_rounding(goodness, scale).argmax())


def one_standard_error(goodness: Array, error: Array, scale: Array) -> int:
    """Index of the simplest value within one standard error of the best one (Breiman et al. 1984)."""
    top = best(goodness, error, scale)
    if np.isnan(error[top]):
        return top
    return int(reaches(goodness, goodness[top] - error[top], scale[top]).argmax())


RULES: dict[str, Rule] = {"best": best, "one_se": one_standard_error}


def best_within_rounding(goodness: Array, scale: Any) -> Mask:
    """Mask of the entries that equal the largest one of their column, ignoring NaN."""
    return np.asarray(reaches(goodness, np.fmax.reduce(goodness), scale))


def is_better(new: Any, old: Any, scale: Any) -> Any:
    """Whether a value exceeds another by more than rounding, for single values or arrays."""
    return new > old + EQUAL * scale


def reaches(value: Any, level: Any, scale: Any) -> Any:
    """Whether a value is at least a level, up to rounding, for single values or arrays. False for NaN."""
    return value >= level - EQUAL * scale
