"""Rules that choose one value from a curve. A further rule is a function here and its name in ``RULES``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rankrls.selection.choice import best_within_rounding, reaches

__all__ = ["RULES", "Rule", "best", "one_standard_error"]

Array = NDArray[np.float64]
Rule = Callable[[Array, Array, Array], int]
"""Takes how good each value is (NaN if it could not be judged), its standard error, and the scale of its rounding; the
simplest model is first."""


def best(goodness: Array, error: Array, scale: Array) -> int:
    """The best value; of equal ones the simplest."""
    return int(np.argmax(best_within_rounding(goodness, scale)))


def one_standard_error(goodness: Array, error: Array, scale: Array) -> int:
    """The simplest value within one standard error of the best one (Breiman et al. 1984)."""
    top = best(goodness, error, scale)
    if np.isnan(error[top]):
        return top
    return int(np.argmax(reaches(goodness, goodness[top] - error[top], scale[top])))


RULES: dict[str, Rule] = {"best": best, "one_se": one_standard_error}
