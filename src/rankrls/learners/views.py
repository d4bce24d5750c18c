"""Views of the data: some of the features, and a kernel on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls.kernels import Kernel


@dataclass(frozen=True)
class ViewPlan:
    """One view.

    Attributes
    ----------
    features : ndarray of intp, or None for all
    kernel : Kernel
    loss_rows, basis_rows : ndarray of bool over all rows, or None
        The rows that the view is fitted on, and those that it takes its columns from; None is all scored rows.
    """

    features: NDArray[np.intp] | None
    kernel: Kernel
    loss_rows: NDArray[np.bool_] | None
    basis_rows: NDArray[np.bool_] | None

    def of_rows(self, numbers: NDArray[np.intp]) -> ViewPlan:
        """The view of some of the rows."""
        parts = (None if mask is None else mask[numbers] for mask in (self.loss_rows, self.basis_rows))
        return ViewPlan(self.features, self.kernel, *parts)


def select_features(X: Any, features: NDArray[np.intp] | None) -> Any:
    """X, or some of its columns."""
    if features is None:
        return X
    return X[:, features] if sparse.issparse(X) else np.ascontiguousarray(X[:, features])
