"""Votes between two sides of a row: what stood on each, and which was preferred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import check_word
from rankrls._errors import InputError
from rankrls.io._rows import coded, few, objects, quoted
from rankrls.io.preferences import PairsError, PairTable, check_weights, row_error, strings
from rankrls.io.tables.arrays import Opened, read_arrays
from rankrls.io.tables.columns import ReadPlan, expanded, matching
from rankrls.io.tables.formats import Source, open_table

Names = str | Sequence[str]
_SIDES = {1.0: ("left", "a", "l", "first"), -1.0: ("right", "b", "r", "second")}
_BOTH = tuple(f"both{apart}{how}" for how in ("bad", "good") for apart in ("", " ", "_"))
_TIES = (
    *("tie", "tied", "draw", "both", "neither", "equal", "same", "none", *_BOTH),
    *(f"tie ({both})" for both in _BOTH),
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class VoteTable(PairTable):
    """Votes of a file between the items that it names, or describes.

    Attributes
    ----------
    items : object ndarray of shape (m,) of str, or ndarray of shape (m, n), float64
        Each different item once, in the order in which they appear: its text, or its features.
    feature_names : tuple of str, or None
        Names of the features: what the star of both sides' patterns stands for, or the columns of the first side.
    winners, losers : ndarray of shape (p,), intp
        Numbers of items. Of a tie the left one is the winner, with strength 0.
    strength, weight : ndarray of shape (p,), float64, or None
        None if there are no ties and no such column.
    groups : object ndarray of shape (p,) of str, or None
    n_ties, n_left_out : int
        Ties among the votes; votes that were left out, because they were ties or between equal items.
    path, sha256 : str
        Where they came from, and the hash of the file's bytes; empty for a data frame.
    """

    items: NDArray[Any]
    feature_names: tuple[str, ...] | None
    n_ties: int
    n_left_out: int

    def preferences(self) -> PairTable:
        """The votes as preferences between the items."""
        return PairTable(**{of.name: getattr(self, of.name) for of in fields(PairTable)})

    def __repr__(self) -> str:
        return f"<VoteTable {self.path}: {self.n_pairs} votes, {self.n_ties} of them ties, on {len(self.items)} items>"


def load_votes(
    path: Source,
    *,
    winner: Names | None = None,
    loser: Names | None = None,
    left: Names | None = None,
    right: Names | None = None,
    preferred: str | None = None,
    group: str | None = None,
    strength: str | None = None,
    weight: str | None = None,
    ties: str = "include",
) -> VoteTable:
    r"""Read votes from a table that holds both sides of each: CSV, TSV, Parquet, Arrow or a data frame.

    A side is one column with the item's name or text, or several columns with its features: given by name, by a
    pattern with one ``*`` such as ``left_*``, or as a column of lists of numbers. Either the sides are the winner's
    and the loser's, or ``preferred`` is a column that says which of left and right was preferred.

    Parameters
    ----------
    path : path, binary file object or data frame
        As for :func:`load_table`.
    winner, loser, left, right : str or sequence of str
        The columns of the sides: ``winner`` and ``loser``, or ``left`` and ``right``.
    preferred : str
        The column of choices between left and right. A choice is the item's text or the name of the side's column, as
        they are written; or one of these words, in small or capital letters: left, a, l or first; right, b, r or
        second; or for a tie tie, tied, draw, both, neither, equal, same, none, both_bad or both_good (also ``both bad``
        and ``bothbad``), or one of these last ones behind ``tie``, as in ``tie (bothbad)``. The item's text comes
        before a word. Anything else is an error.
    group : str, optional
        The column that says which votes are held out together, such as the prompt or the voter.
    strength, weight : str, optional
        Columns of numbers: by how much the winner should lead (0 is a tie), and how much a vote counts.
    ties : {"include", "exclude"}, default="include"
        Whether ties are kept, with strength 0, or left out.

    Returns
    -------
    VoteTable

    Raises
    ------
    PairsError
        ``path:line: what is wrong`` (without lines, the row): a choice that is missing or neither side, a column that
        is not there, a number that is not finite, a negative weight; and if no vote is left that prefers one item.
    OSError
        If the file cannot be read.

    Notes
    -----
    O(bytes). Votes between two equal items are left out: they say nothing. An empty cell on a side is the empty text.

    Examples
    --------
    >>> import io
    >>> from rankrls.io import load_votes
    >>> text = b"model_a,model_b,winner\nowl,crow,model_a\nowl,jay,tie\ncrow,jay,model_b\n"
    >>> votes = load_votes(io.BytesIO(text), left="model_a", right="model_b", preferred="winner")
    >>> votes.items
    array(['owl', 'crow', 'jay'], dtype=object)
    >>> votes.winners, votes.losers, votes.strength
    (array([0, 0, 2]), array([1, 2, 1]), array([1., 0., 1.]))
    """
    check_word("ties", ties, ("include", "exclude"))
    names = _checked(winner, loser, left, right, preferred)
    with open_table(path, "auto", PairsError) as table:
        reading = _Reading(table, names, preferred, {"strength": strength, "weight": weight}, group)
        return reading.votes(ties == "include")


def _checked(winner: Any, loser: Any, left: Any, right: Any, preferred: Any) -> dict[str, Any]:
    """The two sides by their parameters."""
    by_outcome, by_place = {"winner": winner, "loser": loser}, {"left": left, "right": right}
    sides = by_place
    if winner is not None or loser is not None:
        wrong = next((n for n, v in {**by_place, "preferred": preferred}.items() if v is not None), None)
        if wrong is not None:
            raise InputError(f"Give winner and loser, or {wrong}, not both.", parameter=wrong)
        sides = by_outcome
    for name, value in sides.items():
        if value is None:
            message = f"{name} is missing: votes have winner and loser, or left and right."
            raise InputError(message, parameter=name)
    if sides is by_place and preferred is None:
        raise InputError("preferred is missing: which column says whether left or right won?", parameter="preferred")
    return sides


class _Reading:
    """Which columns are what, and the votes of the rows."""

    def __init__(
        self, table: Opened, sides: dict[str, Any], preferred: str | None, numbers: dict[str, Any], group: str | None
    ) -> None:
        self.table, self.sides, self.preferred = table, sides, preferred
        self.lists = table.lists({preferred, group, *numbers.values()})
        header = [name for column in table.columns for name in expanded(column, self.lists)]
        texts = {"preferred": preferred, "group": group}
        for role, given in {**sides, **numbers, **texts}.items():
            for word in [given] if isinstance(given, str) else given or ():
                if word not in header and (role not in sides or not matching(word, header)):
                    listed = few([*map(repr, table.columns)], 8)
                    message = f"there is no column {word!r} ({role}); there are {listed}."
                    raise table.refuse(message, column=word, parameter=role)
        self.columns = {
            role: [name for word in ([given] if isinstance(given, str) else given) for name in matching(word, header)]
            for role, given in sides.items()
        }
        self.textual = all(self.columns[role] == [given] for role, given in sides.items())
        self.numbers = {role: name for role, name in numbers.items() if name is not None}
        self.texts = {role: name for role, name in texts.items() if name is not None}

    def votes(self, keep_ties: bool) -> VoteTable:
        first, second = self.columns.values()
        feature_names = None if self.textual else self._feature_names(first, second)
        features = [] if self.textual else [*first, *second]
        texts = {**self.texts}
        if self.textual:
            texts |= {f"side {role}": columns[0] for role, columns in self.columns.items()}
        numbers = (*features, *self.numbers.values())
        lists = {column: size for column, size in self.lists.items() if {*expanded(column, self.lists)} & {*numbers}}
        may_be_empty = ("group", *(f"side {role}" for role in self.columns))
        found = read_arrays(self.table, ReadPlan(numbers, texts=texts, lists=lists, may_be_empty=may_be_empty))
        words = {role: strings(values) for role, values in found.texts.items()}
        values = {role: found.X[:, len(features) + k].copy() for k, role in enumerate(self.numbers)}
        items: NDArray[Any]
        if self.textual:
            names, codes = coded(np.stack([words[f"side {role}"] for role in self.columns], axis=1).flat)
            items = objects(names)
        else:
            items, codes = _different_rows(found.X[:, : len(features)].reshape(2 * len(found.X), -1))
        sides = codes.reshape(-1, 2)
        choice = np.ones(len(sides)) if self.preferred is None else self._choices(words["preferred"], items, sides)
        strength = values.get("strength", np.ones(len(sides))) * np.abs(choice)
        kept = (sides[:, 0] != sides[:, 1]) & (keep_ties | (strength != 0.0))
        check_weights(self.table.name, values.get("weight"), self.numbers.get("weight"))
        strength = strength[kept]
        if not strength.any():
            raise PairsError("no vote prefers one of two different items.", file=self.table.name)
        pairs = np.where((choice < 0)[:, None], sides[:, ::-1], sides)[kept]
        used, again = np.unique(pairs, return_inverse=True)
        winners, losers = again.reshape(-1, 2).T
        groups = words.get("group")
        return VoteTable(
            items=items[used],
            feature_names=feature_names,
            winners=winners.astype(np.intp),
            losers=losers.astype(np.intp),
            strength=strength if "strength" in values or (strength == 0.0).any() else None,
            weight=values["weight"][kept] if "weight" in values else None,
            groups=None if groups is None else groups[kept],
            n_ties=int((strength == 0.0).sum()),
            n_left_out=int((~kept).sum()),
            path=self.table.name,
            sha256=self.table.sha256,
        )

    def _feature_names(self, first: list[str], second: list[str]) -> tuple[str, ...]:
        """What both sides call their features: by name if the sides are patterns, else in their order."""
        one, other = self.columns
        if len(first) != len(second):
            counts = f"{one} has {len(first)} columns but {other} has {len(second)}"
            raise self.table.refuse(f"{counts}: both sides need the same features.", parameter=other)
        patterns = [given for given in self.sides.values() if isinstance(given, str)]
        if len(patterns) < 2:
            return tuple(first)
        stems, others = (_stems(given, columns) for given, columns in zip(patterns, (first, second), strict=True))
        lacking = next((stem for stem in stems if stem not in others), None)
        if lacking is not None:
            raise self.table.refuse(f"{one} has a feature {lacking!r} that {other} lacks.", parameter=other)
        second[:] = [second[others.index(stem)] for stem in stems]
        return tuple(stems)

    def _choices(self, words: NDArray[Any], items: NDArray[Any], sides: NDArray[np.intp]) -> NDArray[np.float64]:
        """1 for left, -1 for right, 0 for a tie: an item before a column's name, and that before a word."""
        known = dict.fromkeys(_TIES, 0.0) | {word: sign for sign, words in _SIDES.items() for word in words}
        sides_of = zip(self.sides.values(), (1.0, -1.0), strict=True)
        exact = {name: sign for name, sign in sides_of if isinstance(name, str)}
        given, codes = coded(words)
        values = np.array([exact.get(word, known.get(word.lower(), np.nan)) for word in given])[codes]
        alike = np.zeros(len(values), dtype=bool)
        if self.textual:
            number = {item: k for k, item in enumerate(items.tolist())}
            small, of_items = coded([item.lower() for item in items.tolist()])
            lower = {word: k for k, word in enumerate(small)}
            chosen = np.array([number.get(word, -1) for word in given])[codes]
            alike = (np.array([lower.get(w.lower(), -1) for w in given])[codes][:, None] == of_items[sides]).any(axis=1)
            values[alike] = np.nan
            for sign, side in ((-1.0, sides[:, 1]), (1.0, sides[:, 0])):
                values[chosen == side] = sign
        if np.isnan(values).any():
            row = int(np.argmax(np.isnan(values)))
            wrong = "differs from a side in capital letters only" if alike[row] else "is neither side, nor a tie"
            remedy = (
                "A choice is the item or the column's name as they are written, left or right, or a word for a tie."
            )
            message = f"the choice {quoted(words[row])} {wrong}. {remedy}"
            raise row_error(self.table.name, row, message, column=self.preferred, parameter="preferred")
        return values


def _stems(pattern: str, columns: list[str]) -> list[str]:
    """What stands for the star of a pattern; the number in a list."""
    start, _, end = pattern.partition("*")
    return [name.removeprefix(start).removesuffix(end) for name in columns]


def _different_rows(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Different rows in order of appearance, and the number of each."""
    keys = np.ascontiguousarray(X + 0.0).view(np.dtype((np.void, X.shape[1] * X.itemsize))).ravel()  # -0 is 0
    _, first, codes = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), dtype=np.intp)
    number[order] = np.arange(len(order))
    return X[first[order]], number[codes]
