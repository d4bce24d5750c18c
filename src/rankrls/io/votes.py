"""Votes between two sides of a row: what stood on each, and which was preferred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from os.path import commonprefix
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import check_word
from rankrls._errors import InputError
from rankrls.io._rows import coded, few, objects, quoted
from rankrls.io.preferences import PairsError, PairTable, check_weights, row_error, strings
from rankrls.io.tables.columns import expanded, matching
from rankrls.io.tables.formats import Source, open_table
from rankrls.io.tables.parts import Opened, Request, gather

Names = str | Sequence[str]
_SIDES = {"left": ("left", "a", "l", "first"), "right": ("right", "b", "r", "second")}
_APART = "_-. "
_TIES = ("tie", "tied", "draw", "both", "neither", "equal", "same", "none")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class VoteTable(PairTable):
    """Votes of a file between the items that it names, or describes.

    Attributes
    ----------
    items : object ndarray of shape (m,) of str, or ndarray of shape (m, n), float64
        Each different item once, in the order in which they appear: its text, or its features.
    feature_names : tuple of str, or None
        Names of the features: what both sides call them, without what tells the sides apart.
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
        The column of choices between left and right. A choice is left, a, l or first (right, b, r or second), the name
        of the side's column, or the item's text; or tie, draw, both, neither, equal, same or none, whatever follows
        such a word. Capitals do not matter.
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
    if any(value is not None for value in by_outcome.values()):
        wrong = next((n for n, v in {**by_place, "preferred": preferred}.items() if v is not None), None)
        if wrong is not None:
            raise InputError(f"Give {{winner}} and {{loser}}, or {{{wrong}}}, not both.", parameter=wrong)
        sides = by_outcome
    else:
        sides = by_place
    for name, value in sides.items():
        if value is None:
            problem = f"{{{name}}} is missing: votes have {{winner}} and {{loser}}, or {{left}} and {{right}}."
            raise InputError(problem, parameter=name)
    if sides is by_place and preferred is None:
        raise InputError("{preferred} is missing: which column says whether left or right won?", parameter="preferred")
    return sides


class _Reading:
    """Which columns are what, and the votes of the rows."""

    def __init__(
        self, table: Opened, sides: dict[str, Any], preferred: str | None, numbers: dict[str, Any], group: str | None
    ) -> None:
        self.table, self.sides, self.preferred = table, sides, preferred
        lists = table.lists({preferred, group, *numbers.values()})
        self.lists = lists
        self.header = [name for column in table.columns for name in expanded(column, lists)]
        self.columns = {role: self._columns(role, given) for role, given in sides.items()}
        self.textual = all(
            columns == [given] for columns, given in zip(self.columns.values(), sides.values(), strict=True)
        )
        self.numbers = {role: name for role, name in numbers.items() if name is not None}
        self.texts = {role: name for role, name in (("preferred", preferred), ("group", group)) if name is not None}
        for role, name in {**self.numbers, **self.texts}.items():
            if name not in self.header:
                raise self._no_column(role, name)

    def _columns(self, role: str, given: Names) -> list[str]:
        words = [given] if isinstance(given, str) else [*given]
        found = {word: matching(word, self.header) for word in words}
        for word, names in found.items():
            if not names:
                raise self._no_column(role, word)
        return [name for names in found.values() for name in names]

    def _no_column(self, role: str, name: str) -> InputError:
        listed = few([*map(repr, self.table.columns)], 8)
        problem = f"there is no column {{0!r}} ({{{role}}}); there are {{1}}."
        return self.table.refuse(problem, name, listed, column=name, parameter=role)

    def votes(self, keep_ties: bool) -> VoteTable:
        first, second = self.columns.values()
        feature_names = None if self.textual else self._feature_names(first, second)
        features = [] if self.textual else [*first, *second]
        numbers, texts = (*features, *self.numbers.values()), {**self.texts}
        if self.textual:
            texts |= {f"side {role}": columns[0] for role, columns in self.columns.items()}
        called = "feature, strength or weight"
        request = Request(numbers, np.dtype(np.float64), texts, lines=True, called=called, lists=self.lists)
        found = gather(self.table, request)
        self.lines, words = found.lines, {role: strings(values) for role, values in found.texts.items()}
        values = {role: found.X[:, len(features) + k] for k, role in enumerate(self.numbers)}
        if self.textual:
            names, codes = coded(np.stack([words[f"side {role}"] for role in self.columns], axis=1).flat)
            items = objects(names)
        else:
            items, codes = _different_rows(found.X[:, : len(features)].reshape(2 * len(found.X), -1))
        i, j = codes.reshape(-1, 2).T
        choice = np.ones(len(i)) if self.preferred is None else self._choices(words, len(i))
        strength = values.get("strength", np.ones(len(i))) * np.abs(choice)
        kept = (i != j) & (keep_ties | (strength != 0.0))
        self._check(values.get("weight"), strength[kept])
        swap = choice < 0
        winners, losers = np.where(swap, j, i)[kept], np.where(swap, i, j)[kept]
        used, again = np.unique(np.concatenate((winners, losers)), return_inverse=True)
        winners, losers = again.reshape(2, -1)
        strength = strength[kept]
        groups = words.get("group")
        return VoteTable(
            items=items[used],
            feature_names=feature_names,
            winners=winners.astype(np.intp),
            losers=losers.astype(np.intp),
            strength=strength if "strength" in values or (strength == 0.0).any() else None,
            weight=np.ascontiguousarray(values["weight"][kept]) if "weight" in values else None,
            groups=None if groups is None else groups[kept],
            n_ties=int((strength == 0.0).sum()),
            n_left_out=int((~kept).sum()),
            path=self.table.name,
            sha256=self.table.sha256(),
        )

    def _feature_names(self, first: list[str], second: list[str]) -> tuple[str, ...]:
        """What both sides call their features, without what tells the sides apart."""
        stems = [_stems(given, columns) for given, columns in zip(self.sides.values(), (first, second), strict=True)]
        one, other = self.columns
        if len(first) != len(second):
            problem = f"{{{one}}} has {{0}} columns but {{{other}}} has {{1}}: both sides need the same features."
            raise self.table.refuse(problem, len(first), len(second), parameter=other)
        if {*stems[0]} == {*stems[1]}:
            self.columns[other] = second[:] = [second[stems[1].index(stem)] for stem in stems[0]]
            return tuple(stems[0])
        if all("*" in str(given) for given in self.sides.values()):
            stem = next(stem for stem in stems[0] if stem not in stems[1])
            problem = f"{{{one}}} has a feature {{0!r}} that {{{other}}} lacks."
            raise self.table.refuse(problem, stem, parameter=other)
        return tuple(first)

    def _choices(self, words: dict[str, NDArray[Any]], n: int) -> NDArray[np.float64]:
        """1 for left, -1 for right, 0 for a tie."""
        known: dict[str, float] = {}
        for side, sign in (("left", 1.0), ("right", -1.0)):
            own = [self.sides[side]] if isinstance(self.sides[side], str) else []
            known |= dict.fromkeys((word.lower() for word in (*_SIDES[side], *own)), sign)
        given, codes = coded(words["preferred"])
        values = np.array([known.get(w, 0.0 if w.startswith(_TIES) else np.nan) for w in map(str.lower, given)])[codes]
        if self.textual:  # the item itself, before a word that it may be
            for side, sign in (("left", 1.0), ("right", -1.0)):
                values = np.where(words["preferred"] == words[f"side {side}"], sign, values)
        if np.isnan(values).any():
            row = int(np.argmax(np.isnan(values)))
            problem = "the choice {0} is neither side, nor a tie;"
            remedy = "it is left or right, the name of a side's column, or what stands on that side."
            facts = {"remedy": remedy, "column": self.preferred, "parameter": "preferred"}
            raise row_error(self.table.name, self.lines, row, problem, quoted(words["preferred"][row]), **facts)
        return values

    def _check(self, weight: NDArray[np.float64] | None, strength: NDArray[np.float64]) -> None:
        check_weights(self.table.name, self.lines, weight, self.numbers.get("weight"))
        if not strength.any():
            raise PairsError("no vote prefers one of two different items.", file=self.table.name)


def _stems(given: Names, columns: list[str]) -> list[str]:
    """What stands for the star of a pattern; the number in a list."""
    if isinstance(given, str) and given.count("*") == 1:
        start, end = given.split("*")
        return [name[len(start) : len(name) - len(end)] for name in columns]
    if isinstance(given, str):
        return [name.removeprefix(given) for name in columns]
    before, behind = _side_words(columns)
    return [name[before : len(name) - behind] for name in columns]


def _side_words(columns: list[str]) -> tuple[int, int]:
    """How many signs all columns of a side begin and end with, up to a sign that sets words apart."""
    start, end = (commonprefix([name[::step] for name in columns]) for step in (1, -1))  # noqa: RUF071
    cut = lambda text: max(text.rfind(sign) for sign in _APART) + 1
    return cut(start), cut(end)


def _different_rows(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Different rows in order of appearance, and the number of each."""
    keys = np.ascontiguousarray(X + 0.0).view(np.dtype((np.void, X.shape[1] * X.itemsize))).ravel()  # -0 is 0
    _, first, codes = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), dtype=np.intp)
    number[order] = np.arange(len(order))
    return X[first[order]], number[codes]
