"""Values that are missing: alone, in masked arrays, and as words of text files."""

from __future__ import annotations

from typing import Any

import numpy as np

MISSING = ("", "na", "n/a", "nan", "null", "none", "-", "?")
"""Cell texts of text files that mean missing, in lower case."""


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or ``pandas.NA``."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA refuses to be a truth value
        return True


def unmasked(values: Any) -> Any:
    """A masked array with NaN in place of masked numbers and None in place of others; other values are unchanged."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return values.data
    numbers = values.dtype.kind in "fiub"
    out = values.data.astype(np.result_type(values.dtype, np.float32) if numbers else object)
    out[np.ma.getmaskarray(values)] = np.nan if numbers else None
    return out
