"""Preferences as they come in: row numbers of winners and losers, strengths and weights, checked once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError


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


def check_preferences(
    winners: Any, losers: Any, n_items: int, strength: Any, weight: Any, *, each: str = "preference"
) -> Preferences:
    """Arrays of one length, or an InputError that names the preference (its position, from 0) and the item.

    ``each`` is what a preference is called.
    """
    i = _row_numbers("winners", winners, n_items, each)
    j = _row_numbers("losers", losers, n_items, each)
    if len(i) != len(j):
        problem = "{winners} has {0} entries but {losers} has {1}: each {2} needs one of both."
        raise InputError(problem, len(i), len(j), each, parameter="losers")
    same = i == j
    if same.any():
        e = int(np.argmax(same))
        problem = "{0} {1} compares row {2} with itself;"
        raise InputError(problem, each.capitalize(), e, i[e], remedy="remove such pairs.", parameter="losers", row=e)
    s = _values("strength", strength, len(i), each)
    c = _values("weight", weight, len(i), each)
    if (c < 0.0).any():
        e = int(np.argmax(c < 0.0))
        raise InputError("{weight} must not be negative; {0} {1} has {2}.", each, e, c[e], row=e)
    return Preferences(i, j, s, c)


def _row_numbers(name: str, values: Any, m: int, each: str) -> NDArray[np.intp]:
    numbers = np.asarray(values)
    if numbers.ndim != 1:
        problem = f"{{{name}}} must be one-dimensional, one row number per {{0}}; got shape {{1}}."
        raise InputError(problem, each, numbers.shape)
    if len(numbers) and numbers.dtype.kind not in "iu":
        real = numbers.dtype.kind == "f"
        with np.errstate(invalid="ignore"):
            broken = ~(np.isfinite(numbers) & (numbers == np.floor(numbers))) if real else np.ones(len(numbers), bool)
        if broken.any():
            e = int(np.argmax(broken)) if real else None
            found = f"dtype {numbers.dtype}" if e is None else f"{numbers[e]} in {each} {e}"
            raise InputError(f"{{{name}}} must hold whole row numbers of X; got {{0}}.", found, row=e)
    outside = (numbers < 0) | (numbers >= m)  # before the cast, in which large numbers would become negative
    if outside.any():
        e = int(np.argmax(outside))
        problem = f"{{{name}}}[{{0}}] is {{1:.0f}}, but X has rows 0 to {{2}}."
        raise InputError(problem, e, numbers[e], m - 1, row=e)
    return numbers.astype(np.intp)


def _values(name: str, values: Any, p: int, each: str) -> NDArray[np.float64]:
    """One number for each preference; 1 for all of them if none are given."""
    try:
        out = np.asarray(1.0 if values is None else values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{{{name}}} must be numeric, one value per {{0}}.", each) from None
    if out.ndim == 0:
        out = np.full(p, float(out))
    if out.shape != (p,):
        problem = f"{{{name}}} has shape {{0}}; it needs one value for each of the {{1}} {{2}}s."
        raise InputError(problem, out.shape, p, each)
    if not np.isfinite(out).all():
        e = int(np.argmin(np.isfinite(out)))
        raise InputError(f"{{{name}}} must be finite; {{0}} {{1}} has {{2}}.", each, e, out[e], row=e)
    return out
