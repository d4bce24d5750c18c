"""What learners have in common: their solutions for several values of a parameter, and features around zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


@dataclass(frozen=True, eq=False)
class PathSolutions:
    """Functions of one form.

    Attributes
    ----------
    coefficients : ndarray of shape (values, size, targets)
    read : callable
        Makes a function of items, such as a Scorer, of coefficients (size, columns).
    details : sequence, optional
        What the solver says of each solution.
    """

    coefficients: NDArray[np.float64]
    read: Callable[[NDArray[np.float64]], Any]
    details: Sequence[Any] = ()

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Scores of rows X by every solution, (rows, values, targets)."""
        values, size, targets = self.coefficients.shape
        scores = self.read(self.coefficients.transpose(1, 0, 2).reshape(size, values * targets))(X)
        return scores.reshape(len(scores), values, targets)

    def __getitem__(self, k: int) -> Any:
        """The solution of value number k, with a column for each target."""
        return self.read(self.coefficients[k])


def centred(X: Any) -> Any:
    """X in float64; columns whose offset dwarfs their spread are moved to around zero, if X is dense.

    Only differences of scores matter, and offsets cost digits. X itself where nothing is to be done.
    """
    if sparse.issparse(X):
        return X
    means = X.mean(axis=0, dtype=np.float64)
    far = np.abs(means) > 100.0 * X.std(axis=0, dtype=np.float64)
    if X.dtype == np.float64 and not far.any():
        return X
    return X.astype(np.float64) - np.where(far, means, 0.0)
