"""What the text of a cell means: a number, or nothing at all."""

from __future__ import annotations

import math

MISSING = ("", "na", "n/a", "nan", "null", "none", "-", "?")
"""What is written in place of a value that is missing, in small letters."""

_TRUTH = {b"true": 1.0, b"false": 0.0}


def number(raw: bytes) -> float | None:
    """A finite number as Python reads it, but without underscores; true and false; or None."""
    raw = raw.strip()
    word = _TRUTH.get(raw.lower())
    if word is not None:
        return word
    if b"_" in raw:
        return None
    try:
        value = float(raw)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
