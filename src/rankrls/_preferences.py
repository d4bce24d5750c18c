"""Preferences as they come in: row numbers of winners and losers, strengths and weights, checked once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Preferences", "check_preferences"]


class Preferences(NamedTuple):
    """Checked preferences, one entry each.

    Attributes
    ----------
    winners, losers : ndarray of shape (p,), intp
    strength, weight : ndarray of shape (p,), float64
    """

    winners: NDArray[np.intp]
    losers: NDArray[np.intp]
    strength: NDArray[np.float64]
    weight: NDArray[np.float64]

    def rows(self, kept: NDArray[Any]) -> Preferences:
        """Some of them."""
        return Preferences(*(column[kept] for column in self))


def check_preferences(winners: Any, losers: Any, n_items: int, strength: Any, weight: Any) -> Preferences:
    """Arrays of one length, or a ValueError that names the preference (its position, from 0) and the item."""
    i = _row_numbers("winners", winners, n_items)
    j = _row_numbers("losers", losers, n_items)
    if len(i) != len(j):
        raise ValueError(f"winners has {len(i)} entries but losers has {len(j)}: each preference needs one of both.")
    same = i == j
    if same.any():
        e = int(np.argmax(same))
        raise ValueError(f"Preference {e} compares row {i[e]} with itself; remove such pairs.")
    s = _values("strength", strength, len(i), 1.0)
    c = _values("weight", weight, len(i), 1.0)
    if (c < 0.0).any():
        e = int(np.argmax(c < 0.0))
        raise ValueError(f"weight must not be negative; preference {e} has {c[e]}.")
    return Preferences(i, j, s, c)


def _row_numbers(name: str, values: Any, m: int) -> NDArray[np.intp]:
    numbers = np.asarray(values)
    if numbers.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, one row number per preference; got shape {numbers.shape}.")
    if len(numbers) and numbers.dtype.kind not in "iu":
        whole = numbers.dtype.kind == "f" and np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()
        if not whole:
            raise ValueError(f"{name} must hold whole row numbers of X; got {_what(numbers)}.")
    outside = (numbers < 0) | (numbers >= m)  # before the cast, which turns large numbers round
    if outside.any():
        e = int(np.argmax(outside))
        raise ValueError(f"{name}[{e}] is {numbers[e]:.0f}, but X has rows 0 to {m - 1}.")
    return numbers.astype(np.intp)


def _what(numbers: NDArray[Any]) -> str:
    """What stands where a row number should: the first that is none, or the type of all."""
    if numbers.dtype.kind != "f":
        return f"dtype {numbers.dtype}"
    with np.errstate(invalid="ignore"):
        e = int(np.argmax(~(numbers == np.floor(numbers)) | ~np.isfinite(numbers)))
    return f"{numbers[e]} in preference {e}"


def _values(name: str, values: Any, p: int, default: float) -> NDArray[np.float64]:
    if values is None:
        return np.full(p, default)
    try:
        out = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numeric, one value per preference.") from None
    if out.ndim == 0:
        out = np.full(p, float(out))
    if out.shape != (p,):
        raise ValueError(f"{name} has shape {out.shape}; it needs one value for each of the {p} preferences.")
    if not np.isfinite(out).all():
        e = int(np.argmin(np.isfinite(out)))
        raise ValueError(f"{name} must be finite; preference {e} has {out[e]}.")
    return out
