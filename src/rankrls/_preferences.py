"""Preferences as given by users: row numbers of winners and losers, strengths and weights, checked once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankrls._checks import array_of, numbers_of, refuse_where
from rankrls._errors import InputError
from rankrls._typing import AnyArray, Array, Index


@dataclass(frozen=True, eq=False)
class PreferenceTable:
    """Checked preferences between numbered items, in the given order.

    Attributes
    ----------
    winners, losers : ndarray of shape (p,), intp
    n_items : int
        Number of items, including those without preferences.
    strength, weight : ndarray of shape (p,)
    groups : ndarray of shape (p,), intp, or None
        Numbers of the groups that are held out together; None if each preference is its own group.
    """

    winners: Index
    losers: Index
    n_items: int
    strength: Array
    weight: Array
    groups: Index | None = None

    @property
    def n_rows(self) -> int:
        """Number of preferences."""
        return len(self.winners)

    @property
    def n_groups(self) -> int:
        """Number of groups of preferences."""
        return self.n_rows if self.groups is None else int(self.groups.max(initial=-1)) + 1

    def blocks(self) -> Any:
        """Preferences of each group, as a sequence."""
        if self.groups is None:
            return np.arange(self.n_rows)[:, None]
        order = np.argsort(self.groups, kind="stable")
        return np.split(order, np.searchsorted(self.groups[order], np.arange(1, self.n_groups)))

    def differences(self, values: AnyArray) -> AnyArray:
        """Winner minus loser for each preference. Exact if both share an offset."""
        return np.asarray(values[self.winners] - values[self.losers])

    def take(self, rows: Any) -> PreferenceTable:
        """A subset of the preferences, between the same items; their groups are renumbered."""
        groups = None if self.groups is None else np.unique(self.groups[rows], return_inverse=True)[1].astype(np.intp)
        columns = (self.strength[rows], self.weight[rows], groups)
        return PreferenceTable(self.winners[rows], self.losers[rows], self.n_items, *columns)

    def among_own_items(self, rows: Any) -> tuple[Index, PreferenceTable]:
        """Items of some preferences, ascending, and these preferences between only those items."""
        items, number = np.unique([self.winners[rows], self.losers[rows]], return_inverse=True)
        winners, losers = number.reshape(2, -1)
        return items, replace(self.take(rows), winners=winners, losers=losers, n_items=len(items))


def check_preferences(winners: Any, losers: Any, n_items: int, strength: Any, weight: Any) -> PreferenceTable:
    """Check arrays of preferences; an InputError names the preference (its position, from 0) and the item."""
    i = _row_numbers("winners", winners, n_items)
    j = _row_numbers("losers", losers, n_items)
    if len(i) != len(j):
        problem = f"winners has {len(i)} entries but losers has {len(j)}: each preference needs one of each."
        raise InputError(problem, parameter="losers")
    refuse_where(i == j, "losers", lambda e: f"Preference {e} compares row {i[e]} with itself; remove such pairs.")
    s = _numbers("strength", strength, len(i))
    c = _numbers("weight", weight, len(i))
    refuse_where(c < 0.0, "weight", lambda e: f"weight must not be negative; preference {e} has {c[e]}.")
    return PreferenceTable(i, j, n_items, s, c)


def _row_numbers(name: str, values: Any, m: int) -> Index:
    given = array_of(name, values)
    if given.ndim != 1 or (len(given) and given.dtype.kind not in "iu"):
        problem = f"{name} must contain whole row numbers of X, one per preference; got {given.dtype}, {given.shape}."
        raise InputError(problem, parameter=name)
    outside = (given < 0) | (given >= m)  # before the cast, which would make large numbers negative
    refuse_where(outside, name, lambda e: f"{name}[{e}] is {given[e]}, but X has rows 0 to {m - 1}.")
    return given.astype(np.intp)


def _numbers(name: str, values: Any, p: int) -> Array:
    """One number per preference; 1 for all if none are given."""
    out = numbers_of(name, 1.0 if values is None else values)
    out = np.full(p, float(out)) if out.ndim == 0 else out
    if out.shape != (p,):
        raise InputError(
            f"{name} has shape {out.shape}; it needs one value for each of the {p} preferences.", parameter=name
        )
    refuse_where(~np.isfinite(out), name, lambda e: f"{name} must be finite; preference {e} has {out[e]}.")
    return out
