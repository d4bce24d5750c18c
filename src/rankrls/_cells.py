"""Cells of tables: numbers in text, and missing values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

MISSING = ("", "na", "n/a", "nan", "null", "none", "-", "?")
"""Cell texts of text files that mean missing, in lower case."""
_TRUTH = {b"true": 1.0, b"false": 0.0}


def cell_number(text: str) -> float:
    """The number in a cell, as Python reads it, but without underscores; ``true`` and ``false`` are 1 and 0.

    Infinite for an infinity and for a decimal that overflows; NaN for any other text.
    """
    raw = text.strip().encode()  # Python reads the digits of all scripts in a str, those of ASCII in bytes
    truth = _TRUTH.get(raw.lower())
    if truth is not None:
        return truth
    if b"_" in raw:
        return math.nan
    try:
        return float(raw)
    except ValueError:
        return math.nan


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
