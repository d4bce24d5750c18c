"""Products of a whole feature matrix with vectors, for solvers that need no more of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls.features.feature_rows import feature_rows

_SMALL = 1 << 16
"""Entries of a dense matrix that is multiplied at once: threads would cost more than the product."""


class FeatureProducts:
    """``X w`` and ``X'g``, X dense (float32 or float64) or CSR; O(stored entries) each, threaded.

    Columns whose offset dwarfs their spread are moved to around zero: only differences of scores matter.
    """

    def __init__(self, X: Any) -> None:
        self._rows = feature_rows(X, centred=True)
        self._all = np.arange(self._rows.n_items, dtype=np.intp)
        self.n_rows, self.n_features = self._rows.shape
        small = not self._rows.sparse and 0 < self.n_rows * self.n_features <= _SMALL
        self._whole = self._rows.block(slice(None)) if small else None

    @property
    def X(self) -> Any:
        """The matrix, moved where it is sparse."""
        return self._rows.X

    def scores(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X w``, up to a constant."""
        return self._rows.dot(self._all, w) if self._whole is None else np.asarray(self._whole @ w)

    def combine(self, g: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X'g`` of item values that sum to zero."""
        return self._rows.combine(self._all, g) if self._whole is None else np.asarray(g @ self._whole)
