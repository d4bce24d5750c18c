"""Rules that choose one value from a curve. A further rule is a function here and its name in ``RULES``.

The command line lists the names, which is why numpy is imported only where something is chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Rule = Callable[["Array", "Array", "Array"], int]
"""Takes how good each value is (NaN if it could not be judged), its standard error, and the scale of its rounding; the
simplest model is first."""


def best(goodness: Array, error: Array, scale: Array) -> int:
    """The best value; of equal ones the simplest."""
    from rankrls.selection.choice import best_within_rounding

    return int(best_within_rounding(goodness, scale).argmax())


def one_standard_error(goodness: Array, error: Array, scale: Array) -> int:
    """The simplest value within one standard error of the best one (Breiman et al. 1984)."""
    from rankrls.selection.choice import reaches

    top = best(goodness, error, scale)
    if isnan(error[top]):
        return top
    return int(reaches(goodness, goodness[top] - error[top], scale[top]).argmax())


RULES: dict[str, Rule] = {"best": best, "one_se": one_standard_error}
