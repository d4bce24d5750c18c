"""Preferences from files: their winners and losers, or votes between the two sides of a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls._typing import AnyArray, Array, Index, Mask, Values
from rankrls.io._text import Source, TableSource, is_whole, objects, quoted
from rankrls.io.columns import check_columns
from rankrls.io.reading import open_table
from rankrls.io.rows import Rows, Schema
from rankrls.io.tables import Table

_COLUMNS = ("winner", "loser", "strength", "weight", "group")
_BOTH = tuple(f"both{apart}{how}" for how in ("bad", "good") for apart in ("", " ", "_"))
_CHOICES = {
    **dict.fromkeys(("left", "a", "l", "first"), 1.0),
    **dict.fromkeys(("right", "b", "r", "second"), -1.0),
    **dict.fromkeys(("tie", "tied", "draw", "both", "neither", "equal", "same", "none", *_BOTH), 0.0),
    **dict.fromkeys((f"tie ({both})" for both in _BOTH), 0.0),
}
"""Meaning of words that are not items: 1 for the left one, -1 for the right one, 0 for a tie."""


@dataclass(frozen=True, eq=False)
class PairTable:
    """Preferences of a file, in file order.

    Attributes
    ----------
    winners, losers : ndarray of shape (p,), intp
        Numbers of the items, from 0. In a tie, the left item counts as the winner, with strength 0.
    strength, weight : ndarray of shape (p,), float64, or None
        Column of the file, or None. Votes with ties always have strengths.
    groups : object ndarray of shape (p,) of str, or None
        Cells of the column "group", such as annotators or prompts.
    path : str
        File name in errors.
    sha256 : str
        SHA-256 of the bytes of the file; empty for a data frame.
    items : object ndarray of shape (m,) of str, or None
        Different items of votes, in order of first appearance.
    n_left_out : int
        Number of votes between equal items, which were left out.
    ignored : tuple of str
        Names of the file's other columns, which were not read.
    """

    winners: Index
    losers: Index
    strength: Array | None
    weight: Array | None
    groups: AnyArray | None
    path: str
    sha256: str
    items: Any = None
    n_left_out: int = 0
    ignored: tuple[str, ...] = ()

    @property
    def n_pairs(self) -> int:
        """Number of preferences."""
        return len(self.winners)

    def summary(self) -> Values:
        """Source and sizes, as plain values."""
        return {
            "path": self.path,
            "sha256": self.sha256,
            "preferences": self.n_pairs,
            "ties": 0 if self.strength is None else int((self.strength == 0.0).sum()),
            "items": len(np.unique(np.concatenate((self.winners, self.losers)))),
            "groups": None if self.groups is None else len(np.unique(self.groups)),
        }

    def __repr__(self) -> str:
        return f"<PairTable {self.path}: {self.n_pairs} preferences>"


def load_pairs(path: TableSource, *, ids: Sequence[Any] | None = None) -> PairTable:
    r"""Read preferences: a table with a winner and a loser in each row, as text, Parquet, Arrow or a data frame.

    The columns are ``winner``, ``loser``, and optionally ``strength`` (the target difference; 0 is a tie), ``weight``
    (the weight of the preference) and ``group`` (preferences to hold out together), in any order. Other columns are
    ignored, and listed as ``ignored`` in the result. Instead of winner and loser, there can be ``left``, ``right`` and
    ``choice``, as in :func:`load_votes`.

    Parameters
    ----------
    path : path, binary file object, data frame or list of dicts
        Table, as for :func:`load_table`.
    ids : sequence of length m, optional
        Id of each item. Winners and losers are then ids, compared as text; otherwise they are row numbers, from 0.
        With ``range(m)``, they are row numbers below m.

    Returns
    -------
    PairTable

    Raises
    ------
    InputError
        With the row, counted from 0, if an item is unknown, an id is that of several rows, an item is compared with
        itself, a strength or weight is not finite (or negative), or a cell is missing.
    OSError
        If the file cannot be read.

    See Also
    --------
    load_votes : Votes between the two sides of a row, by names of columns.
    rankrls.fit_pairs : Fit the preferences.

    Notes
    -----
    O(bytes), about a second per million. Repeated and contradictory preferences are accepted; blank lines are skipped.

    Examples
    --------
    >>> import io
    >>> from rankrls.io import load_pairs
    >>> text = b"winner,loser,strength\ntea,water,2\ncoffee,tea,1\n"
    >>> table = load_pairs(io.BytesIO(text), ids=["water", "tea", "coffee"])
    >>> table.winners, table.losers, table.strength
    (array([1, 2]), array([0, 1]), array([2., 1.]))
    """
    with open_table(path) as table:
        sides = pair_columns(table)
        given = sides | {role: role for role in _COLUMNS[2:] if role in table.columns}
        if "left" in sides:
            given["preferred"] = "choice"
        votes, kept = _votes(table, given)
        ignored = tuple(name for name in table.columns if name not in given.values())
        if not kept.all():
            raise table.refuse_row(int(np.argmin(kept)), "the item is compared with itself.", column=next(iter(sides)))
        row_of = {item: int(item) for item in votes.items if is_whole(item)} if ids is None else rows_by_id(ids)
        rows = np.array([row_of.get(item, -1) for item in votes.items], dtype=np.intp)
        for what, items in (("winner", votes.winners), ("loser", votes.losers)):
            unknown = rows[items] < 0
            if unknown.any():
                k = int(np.argmax(unknown))
                known = f"the id of one item, such as {next(iter(row_of), None)!r}"
                if ids is None:
                    known = "a row number, from 0"
                message = f"the {what} {quoted(votes.items[items[k]])} is not {known}."
                raise table.refuse_row(k, message, column=what if what in sides else None)
    return replace(votes, winners=rows[votes.winners], losers=rows[votes.losers], items=None, ignored=ignored)


def read_pairs(path: Source, table: Rows, note: Callable[[str], Any]) -> PairTable:
    """Preferences in a file between the rows of a table, named by their ids, or by row numbers without ids.

    ``note`` is called with the ignored columns.
    """
    pairs = load_pairs(path, ids=range(table.n_rows) if table.docids is None else table.docids.tolist())
    if pairs.ignored:
        known = "winner, loser, strength, weight and group"
        note(f"{path}: unused columns: {', '.join(map(repr, pairs.ignored))}. Known columns are {known}.")
    return pairs


def rows_by_id(ids: Iterable[Any]) -> dict[str, int]:
    """Row of each id, as text, if the id is unique."""
    texts = [*map(str, ids)]
    counts = Counter(texts)
    return {text: row for row, text in enumerate(texts) if counts[text] == 1}


def pair_columns(table: Table) -> dict[str, str]:
    """Columns of the two items of each pair: winner and loser, or left and right."""
    found = next((two for two in (("winner", "loser"), ("left", "right")) if {*two} <= {*table.columns}), None)
    return {role: role for role in found or ("winner", "loser")}


def load_sides(path: Source, left: str | None = None, right: str | None = None) -> AnyArray:
    """Items of each row of a table, (2, m) texts, from the named columns or those of :func:`load_pairs`."""
    with open_table(path) as table:
        sides = pair_columns(table) if left is None or right is None else {"left": left, "right": right}
        for role, name in sides.items():
            check_columns(table, [name], role)
        found = table.read_roles(Schema(columns=sides))
    return np.array([[*map(str, found[role].tolist())] for role in sides], dtype=object)


def load_votes(
    path: TableSource,
    *,
    winner: str | None = None,
    loser: str | None = None,
    left: str | None = None,
    right: str | None = None,
    preferred: str | None = None,
    group: str | None = None,
    strength: str | None = None,
    weight: str | None = None,
) -> PairTable:
    r"""Read votes from a table with both sides of each: a file, a data frame, or dicts of rows.

    A side is a column with the item's name or text. The sides are either winner and loser, or left and right with a
    column ``preferred`` that contains the preferred one.

    Parameters
    ----------
    path : path, binary file object, data frame or list of dicts
        Table, as for :func:`load_table`.
    winner, loser, left, right : str
        Columns of the sides: ``winner`` and ``loser``, or ``left`` and ``right``.
    preferred : str
        Column of choices between left and right. A choice is the item's text or the name of the side's column, as
        written; or one of these words, in lower or upper case: left, a, l or first; right, b, r or second; or for a tie
        tie, tied, draw, both, neither, equal, same, none, both_bad or both_good (also ``both bad`` and ``bothbad``), or
        one of the last ones after ``tie``, as in ``tie (bothbad)``. The item's text takes precedence over these words.
        Anything else is an error.
    group : str, optional
        Column of groups of votes to hold out together, such as the prompt or the voter.
    strength, weight : str, optional
        Columns of numbers: the target difference, and the weight of a vote. Ties have strength 0.

    Returns
    -------
    PairTable

    Raises
    ------
    InputError
        With the row, counted from 0, if a choice is missing or neither side, a column is unknown, a number is not
        finite, or a weight is negative; and if no vote prefers one item.
    OSError
        If the file cannot be read.

    See Also
    --------
    load_pairs : Preferences between the rows of a file of items.
    rankrls.inspection.leaderboard : Ratings of the items.

    Notes
    -----
    O(bytes). Votes between two equal items are left out. An empty cell on a side is the empty text.

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
    sides = {"left": left, "right": right, "preferred": preferred, "winner": winner, "loser": loser}
    given = {role: name for role, name in sides.items() if name is not None}
    if {*given} not in ({"left", "right", "preferred"}, {"winner", "loser"}):
        message = "votes need the columns left, right and preferred, or the columns winner and loser, and no others"
        raise InputError(f"{message}; got {', '.join(given) or 'none'}.", parameter="preferred")
    others = {"group": group, "strength": strength, "weight": weight}
    with open_table(path) as table:
        return _votes(table, given | {role: name for role, name in others.items() if name is not None})[0]


def _votes(table: Table, given: dict[str, str]) -> tuple[PairTable, Mask]:
    """Votes of a table from the column of each role, and a mask of their rows."""
    import pyarrow as pa

    for role, name in given.items():
        check_columns(table, [name], role)
    sides = [role for role in ("winner", "loser", "left", "right") if role in given]
    schema = Schema(columns=given, may_be_empty=("group", *sides))
    found = table.read_roles(schema)
    words = {role: objects(map(str, found[role].tolist())) for role in schema.texts}
    pairs = np.stack([words[role] for role in sides], axis=1)
    choice = _choices(table, words, given) if "preferred" in given else np.ones(len(pairs))
    lead = np.abs(choice) * found.get("strength", 1.0)
    kept = pairs[:, 0] != pairs[:, 1]
    lead = lead[kept]
    if not lead.any():
        raise table.refuse("no vote prefers one item to another. Check the choices.")
    coded = pa.array(pairs[kept].ravel(), pa.large_string()).dictionary_encode()
    codes = coded.indices.to_numpy().reshape(-1, 2)
    winners, losers = np.where((choice[kept] < 0)[:, None], codes[:, ::-1], codes).T.astype(np.intp)
    votes = PairTable(
        winners,
        losers,
        strength=lead if "strength" in given or not lead.all() else None,
        weight=found["weight"][kept] if "weight" in given else None,
        groups=words["group"][kept] if "group" in given else None,
        path=table.name,
        sha256=table.sha256,
        items=objects(coded.dictionary.to_pylist()),
        n_left_out=int((~kept).sum()),
    )
    return votes, kept


def _choices(table: Table, words: dict[str, AnyArray], given: dict[str, str]) -> Array:
    """1 for left, -1 for right, 0 for a tie; items take precedence over column names, and these over words."""
    columns = {given["left"]: 1.0, given["right"]: -1.0}

    def sign(word: str, first: str, second: str) -> float:
        if word in (first, second):
            return 1.0 if word == first else -1.0
        small = word.lower()
        if small in (first.lower(), second.lower()):  # an item in another case
            return np.nan
        return columns.get(word, _CHOICES.get(small, np.nan))

    signs = np.array([*map(sign, *(words[role] for role in ("preferred", "left", "right")))])
    if np.isnan(signs).any():
        row = int(np.argmax(np.isnan(signs)))
        problem = f"the choice {quoted(words['preferred'][row])} is neither a side nor a tie."
        remedy = "A choice is the item or the column name, left, right or tie."
        raise table.refuse_row(row, f"{problem} {remedy}", column=given["preferred"], parameter="preferred")
    return signs
