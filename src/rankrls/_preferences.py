"""Preferences as they come in: row numbers of winners and losers, strengths and weights, checked once."""

from __future__ import annotations

from dataclasses import dataclass
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
        raise InputError(
            f"winners has {len(i)} entries but losers has {len(j)}: each {each} needs one of both.", parameter="losers"
        )
    same = i == j
    if same.any():
        e = int(np.argmax(same))
        raise InputError(
            f"{each.capitalize()} {e} compares row {i[e]} with itself; remove such pairs.", parameter="losers", row=e
        )
    s = _values("strength", strength, len(i), each)
    c = _values("weight", weight, len(i), each)
    if (c < 0.0).any():
        e = int(np.argmax(c < 0.0))
        raise InputError(f"weight must not be negative; {each} {e} has {c[e]}.", parameter="weight", row=e)
    return Preferences(i, j, s, c)


def _row_numbers(name: str, values: Any, m: int, each: str) -> NDArray[np.intp]:
    numbers = np.asarray(values)
    if numbers.ndim != 1:
        raise InputError(
            f"{name} must be one-dimensional, one row number per {each}; got shape {numbers.shape}.", parameter=name
        )
    if len(numbers) and numbers.dtype.kind not in "iu":
        real = numbers.dtype.kind == "f"
        with np.errstate(invalid="ignore"):
            broken = ~(np.isfinite(numbers) & (numbers == np.floor(numbers))) if real else np.ones(len(numbers), bool)
        if broken.any():
            e = int(np.argmax(broken)) if real else None
            found = f"dtype {numbers.dtype}" if e is None else f"{numbers[e]} in {each} {e}"
            raise InputError(f"{name} must hold whole row numbers of X; got {found}.", parameter=name, row=e)
    outside = (numbers < 0) | (numbers >= m)  # before the cast, in which large numbers would become negative
    if outside.any():
        e = int(np.argmax(outside))
        raise InputError(f"{name}[{e}] is {numbers[e]:.0f}, but X has rows 0 to {m - 1}.", parameter=name, row=e)
    return numbers.astype(np.intp)


def _values(name: str, values: Any, p: int, each: str) -> NDArray[np.float64]:
    """One number for each preference; 1 for all of them if none are given."""
    try:
        out = np.asarray(1.0 if values is None else values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numeric, one value per {each}.", parameter=name) from None
    if out.ndim == 0:
        out = np.full(p, float(out))
    if out.shape != (p,):
        raise InputError(
            f"{name} has shape {out.shape}; it needs one value for each of the {p} {each}s.", parameter=name
        )
    if not np.isfinite(out).all():
        e = int(np.argmin(np.isfinite(out)))
        raise InputError(f"{name} must be finite; {each} {e} has {out[e]}.", parameter=name, row=e)
    return out


@dataclass(frozen=True, eq=False)
class PreferenceTable:
    """Preferences between numbered items, in the order in which they came.

    Attributes
    ----------
    winners, losers : ndarray of shape (p,), intp
    n_items : int
        Items in all, those without preferences too.
    strength, weight : ndarray of shape (p,)
    groups : ndarray of shape (p,), intp, or None
        Numbers of the groups that are held out together; None if each preference is a group by itself.
    """

    winners: NDArray[np.intp]
    losers: NDArray[np.intp]
    n_items: int
    strength: NDArray[np.float64]
    weight: NDArray[np.float64]
    groups: NDArray[np.intp] | None = None

    @property
    def n_rows(self) -> int:
        """Preferences."""
        return len(self.winners)

    @property
    def n_groups(self) -> int:
        """Groups of preferences."""
        return self.n_rows if self.groups is None else int(self.groups.max(initial=-1)) + 1

    def blocks(self) -> Any:
        """A sequence of the preferences of each group."""
        numbers = np.arange(self.n_rows, dtype=np.intp)
        if self.groups is None:
            return numbers[:, None]
        order = np.argsort(self.groups, kind="stable")
        cuts = np.searchsorted(self.groups[order], np.arange(1, self.n_groups))
        return np.split(numbers[order], cuts)

    def differences(self, values: NDArray[Any], rows: Any = slice(None)) -> NDArray[Any]:
        """Winner minus loser of some preferences. Exact where an offset is common to both."""
        return np.asarray(values[self.winners[rows]] - values[self.losers[rows]])

    def take(self, rows: Any) -> PreferenceTable:
        """Some preferences, between the same items; their groups are numbered anew."""
        groups = None if self.groups is None else np.unique(self.groups[rows], return_inverse=True)[1].astype(np.intp)
        columns = (self.strength[rows], self.weight[rows], groups)
        return PreferenceTable(self.winners[rows], self.losers[rows], self.n_items, *columns)

    def among_own_items(self, rows: Any) -> tuple[NDArray[np.intp], PreferenceTable]:
        """The items of some preferences, ascending, and these preferences between those items alone."""
        items, number = np.unique([self.winners[rows], self.losers[rows]], return_inverse=True)
        winners, losers = number.reshape(2, -1)
        return items, PreferenceTable(winners, losers, len(items), self.strength[rows], self.weight[rows])
