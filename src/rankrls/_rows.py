"""Rows of matrices and sequences of items: selection, blocks, checks, and scales and offsets of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from rankrls._arrays import on_device, taken
from rankrls._checks import LARGEST, LEAST
from rankrls._compiled import blas_threads_for
from rankrls._errors import InputError
from rankrls._typing import Array, Index

_BLOCK_ROWS = 1024
_READ = 16.0
"""Number of multiplications that BLAS performs while it reads one number from memory."""
_FEW_ROWS = 32
_LARGE = 100.0
"""Offset, in spreads, that costs four of sixteen digits when it is squared."""


def take_items(X: Any, rows: Any) -> Any:
    """Rows of a matrix, or items of a sequence, by numbers or a slice."""
    if on_device(X):
        return X[rows, :] if isinstance(rows, slice) else taken(X, rows)
    if not isinstance(X, list):
        return X[rows]
    return X[rows] if isinstance(rows, slice) else [X[i] for i in rows]


def row_slices(n_rows: int, step: int = _BLOCK_ROWS) -> Iterator[slice]:
    """``slice(0, n_rows)`` cut into pieces of at most ``step`` rows."""
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def mirror(block: Array) -> None:
    """Copy the lower triangle to the upper one."""
    for i in range(1, len(block)):
        block[:i, i] = block[i, :i]


def check_finite_features(X: Any, names: Any, *, products: bool = False, first_row: int = 0) -> None:
    """Refuse NaN and infinity, and with ``products`` values whose products overflow or vanish; name the first one.

    ``first_row`` is the number of X's first row in the user's data.
    """
    values = X.data if sparse.issparse(X) else X
    products = products and values.dtype == np.float64  # products of float32 are added up in float64
    with np.errstate(over="ignore", invalid="ignore"):  # one pass, no copy; a finite sum has finite terms
        flat = values.ravel(order="K")
        with blas_threads_for(_READ * flat.size):
            square = np.vdot(flat, flat)  # no inner product of rows or columns is larger
            if np.isfinite(square) and not (products and not LEAST**2 <= square <= LARGEST**2):
                return
    good = np.isfinite(values)
    if good.all():
        largest = np.abs(values).max(initial=0.0)
        if not products or largest == 0.0 or LEAST <= largest <= LARGEST:
            return
        good = np.abs(values) < largest
    position = int(np.argmin(good))
    if sparse.issparse(X):
        row = int(np.searchsorted(X.indptr, position, side="right")) - 1
        column = int(X.indices[position])
    else:
        row, column = divmod(position, X.shape[1])
    value = values.flat[position]
    row += first_row
    where = f"row {row}, column {column}{'' if names is None else f' ({names[column]!r})'}"
    if np.isfinite(value):
        problem = f"Input X contains values whose products overflow or vanish, such as {value:g}: {where}."
        problem += " Scale the features."
    else:
        word = "NaN" if np.isnan(value) else "infinity" if value > 0 else "-infinity"
        problem = f"Input X contains {word}: {where}. Impute such values (with sklearn's SimpleImputer, or "
        problem += "TableEncoder for tables), or remove them."
    raise InputError(problem, parameter="X", row=row, column=column)


def column_scales(X: Any) -> Array:
    """Standard deviations of the columns of X, (n,), without a copy of X."""
    if sparse.issparse(X):
        return np.asarray(np.sqrt(mean_variance_axis(X, axis=0)[1]))
    means = X.mean(axis=0, dtype=np.float64)
    squares = sum(((X[rows] - means) ** 2).sum(axis=0) for rows in row_slices(len(X)))
    return np.asarray(np.sqrt(squares / len(X)))


def offset_columns(X: Any) -> tuple[Index, Array]:
    """Columns of a CSR matrix that are stored in every row and whose mean dwarfs their spread, and these means.

    Sparse data are never centred, because that would fill them. But a column that is stored in every row (a timestamp
    among indicator features, say) can have an offset that dwarfs its spread, and products would square it. Only such
    columns are shifted towards zero; they have nothing to fill.
    """
    m, n = X.shape
    none = np.zeros(0, dtype=np.intp), np.zeros(0)
    if m < 2:
        return none
    sample = X[np.linspace(0, m - 1, _FEW_ROWS).astype(np.intp)]  # which rule out nearly all columns
    full = np.flatnonzero(np.bincount(sample.indices, minlength=n) >= _FEW_ROWS)
    if not len(full):
        return none
    full = full[np.bincount(X[:, full].indices, minlength=len(full)) >= m]
    columns = X[:, full].toarray().astype(np.float64)
    means = columns.mean(axis=0)
    large = np.abs(means) > _LARGE * columns.std(axis=0)
    return full[large], means[large]


def shift_columns(X: Any, columns: Index, shift: Array) -> Any:
    """``X`` with ``shift`` subtracted from the given columns, in float64; X itself if there are none."""
    if not len(columns):
        return X
    m = X.shape[0]
    k = len(columns)
    offsets = sparse.csr_array((np.tile(shift, m), np.tile(columns, m), k * np.arange(m + 1)), shape=X.shape)
    return sparse.csr_array(X.astype(np.float64) - offsets)
