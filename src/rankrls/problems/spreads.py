"""How much each feature varies inside the comparisons, and what rounding of the largest one hides of the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankrls.equations.graded import MOST_GRADED
from rankrls.equations.holdout import holdout_alphas

LEVERAGE = 1.0 - 1e-6
"""Two items that lend each other less than this leave the model determined without them, whatever alpha is."""
_CLEAR = 100.0


@dataclass(frozen=True, eq=False)
class Spreads:
    """What a linear problem knows of its features.

    Attributes
    ----------
    energies : ndarray of shape (n,)
        The diagonal of ``X'LX``.
    size : int
        What rounding grows with: rows that were added up, or features if they are more.
    in_features : bool
        Whether the problem is solved in the weights of features. Up to 300 of them then keep apart whatever their
        spread, but for alphas that are raised to hold out pairs.
    alone : callable, optional
        Of the number of a feature: whether two items alone determine its weight, so that pairs raise alphas.
    """

    energies: NDArray[np.float64]
    size: int
    in_features: bool
    alone: Callable[[int], bool] | None = None

    @property
    def graded(self) -> bool:
        """Whether features keep apart whatever their spread."""
        return self.in_features and len(self.energies) <= MOST_GRADED

    def lost(self, least: float, *, pairs_held_out: bool) -> NDArray[np.intp]:
        """The features that count, since their energies are above the least alpha, but that rounding hides. O(n)."""
        none = np.zeros(0, dtype=np.intp)
        if self.graded and not pairs_held_out:
            return none
        most = float(self.energies.max(initial=0.0))
        noise = _CLEAR * float(np.finfo(np.float64).eps) * self.size * most
        if pairs_held_out:
            noise = max(noise, float(holdout_alphas(np.array([max(least, 1e-300)]), most)[0]))
        lost = np.flatnonzero((self.energies < noise) & (self.energies > least))
        if len(lost) and self.graded and self.alone is not None and not self.alone(int(np.argmax(self.energies))):
            return none
        return lost
