"""Numbers in cells of text."""

from __future__ import annotations

import math

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
