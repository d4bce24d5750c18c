"""Features that can be computed with: no NaN, no infinity, and no products that overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rankrls._compiled.threads import blas_threads_for
from rankrls._errors import InputError

_READ = 16.0
"""Multiplications that BLAS makes in the time in which it reads a number from memory."""


class OverflowInputError(InputError):
    """Features so large that their products overflow."""


def check_finite_features(X: Any, names: Any, what: str = "X", *, products: bool = False, first_row: int = 0) -> None:
    """Refuse NaN and infinity, and values too large to be multiplied where ``products``; name the first one's place.

    ``first_row`` is the number of X's first row in what the user gave.
    """
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):  # one pass, no copy; a finite sum has finite terms
        if products and values.dtype == np.float64:  # and no inner product of rows or columns is larger than this one
            flat = values.ravel(order="K")
            with blas_threads_for(_READ * flat.size):
                if np.isfinite(np.vdot(flat, flat)):
                    return
        elif np.isfinite(values.sum(dtype=np.float64)):
            return
    good = np.isfinite(values)
    if good.all():
        if not products or values.dtype != np.float64:
            return
        good = np.abs(values) < np.abs(values).max()
    if sparse.issparse(X):
        position = int(np.argmin(good))
        row = int(np.searchsorted(X.indptr, position, side="right")) - 1
        column, value = int(X.indices[position]), values[position]
    else:
        row, column = (int(v) for v in np.argwhere(~good)[0])
        value = values[row, column]
    row += first_row
    name = "" if names is None else f" ({names[column]!r})"
    kind: type[InputError] = InputError
    problem, word = "Input {0} contains {1}", "NaN" if np.isnan(value) else "infinity" if value > 0 else "-infinity"
    remedy = "Remove or impute such values before fitting."
    if np.isfinite(value):
        kind, word, remedy = OverflowInputError, f"{value:g}", "Scale the features before fitting."
        problem = "Input {0} holds values whose products overflow, the largest {1}"
    facts: dict[str, Any] = {"parameter": what, "row": row, "column": column}
    raise kind(problem + ": row {2}, column {3}{4}.", what, word, row, column, name, remedy=remedy, **facts)
