"""Offsets of sparse columns.

Sparse data are never centred: that would fill them. But a column that is stored in every row (a timestamp among
indicator features, say) can hold an offset that dwarfs its spread, and products would square it. Such columns, and only
they, are moved to around zero; there is nothing to fill in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_LARGE = 100.0
"""An offset of so many spreads costs four of sixteen digits when it is squared."""


def offset_columns(X: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Columns of a CSR matrix that are stored in every row and whose mean dwarfs their spread; and those means."""
    m = X.shape[0]
    none = np.zeros(0, dtype=np.intp), np.zeros(0)
    if m < 2 or X.nnz < m:
        return none
    # a few rows rule out nearly all columns, before every row is looked at
    some = X[np.unique(np.linspace(0, m - 1, 32).astype(np.intp))]
    full = np.flatnonzero(np.bincount(some.indices, minlength=X.shape[1]) >= some.shape[0])
    if not len(full):
        return none
    stored = X[:, full]
    kept = np.bincount(stored.indices, minlength=len(full)) >= m
    columns, full = stored[:, kept].toarray().astype(np.float64), full[kept]
    means = columns.mean(axis=0)
    large = np.abs(means) > _LARGE * columns.std(axis=0)
    return full[large].astype(np.intp), means[large]


def shift_columns(X: Any, columns: NDArray[np.intp], shift: NDArray[np.float64]) -> Any:
    """``X`` with ``shift`` subtracted from some columns, in float64; X itself where there are none."""
    if not len(columns):
        return X
    m, k = X.shape[0], len(columns)
    offsets = sparse.csr_array((np.tile(shift, m), np.tile(columns, m), k * np.arange(m + 1)), shape=X.shape)
    return sparse.csr_array(X.astype(np.float64) - offsets)
