"""Preferences as they come in: row numbers of winners and losers, strengths and weights, checked once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError

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
        raise InputError(
            "{winners} has {0} entries but {losers} has {1}: each preference needs one of both.",
            len(i),
            len(j),
            parameter="losers",
        )
    same = i == j
    if same.any():
        e = int(np.argmax(same))
        raise InputError(
            "Preference {0} compares row {1} with itself; remove such pairs.", e, i[e], parameter="losers", row=e
        )
    s = _values("strength", strength, len(i), 1.0)
    c = _values("weight", weight, len(i), 1.0)
    if (c < 0.0).any():
        e = int(np.argmax(c < 0.0))
        raise InputError("{weight} must not be negative; preference {0} has {1}.", e, c[e], parameter="weight", row=e)
    return Preferences(i, j, s, c)


def _row_numbers(name: str, values: Any, m: int) -> NDArray[np.intp]:
    numbers = np.asarray(values)
    if numbers.ndim != 1:
        raise _refused(name, "must be one-dimensional, one row number per preference; got shape {0}.", numbers.shape)
    if len(numbers) and numbers.dtype.kind not in "iu":
        whole = numbers.dtype.kind == "f" and np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()
        if not whole:
            raise _refused(name, "must hold whole row numbers of X; got {0}.", _what(numbers))
    outside = (numbers < 0) | (numbers >= m)  # before the cast, which turns large numbers round
    if outside.any():
        e = int(np.argmax(outside))
        template = f"{{{name}}}[{{0}}] is {{1:.0f}}, but X has rows 0 to {{2}}."
        raise InputError(template, e, numbers[e], m - 1, parameter=name, row=e)
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
        raise _refused(name, "must be numeric, one value per preference.") from None
    if out.ndim == 0:
        out = np.full(p, float(out))
    if out.shape != (p,):
        raise _refused(name, "has shape {0}; it needs one value for each of the {1} preferences.", out.shape, p)
    if not np.isfinite(out).all():
        e = int(np.argmin(np.isfinite(out)))
        raise _refused(name, "must be finite; preference {0} has {1}.", e, out[e], row=e)
    return out


def _refused(name: str, problem: str, *values: Any, row: int | None = None) -> InputError:
    return InputError(f"{{{name}}} {problem}", *values, parameter=name, row=row)
