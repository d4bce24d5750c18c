"""Preferences from a file: winner, loser, and what else is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io._rows import coded, quoted
from rankrls.io.tables.arrays import read_arrays
from rankrls.io.tables.columns import ReadPlan, TableError
from rankrls.io.tables.formats import Source, open_table

_ITEMS, _NUMBERS = ("winner", "loser"), ("strength", "weight")
_COLUMNS = (*_ITEMS, *_NUMBERS, "group")
_WHOLE = np.iinfo(np.int64)


class PairsError(TableError):
    """A file of preferences holds something that cannot be one: ``file:line: what is wrong``, and its facts."""

    __module__ = "rankrls.io"


@dataclass(frozen=True, eq=False)
class PairTable:
    """Preferences of a file, in its order.

    Attributes
    ----------
    winners, losers : ndarray of shape (p,), intp
        Row numbers of the items, from 0.
    strength, weight : ndarray of shape (p,), float64, or None
        None if the file has no such column.
    groups : object ndarray of shape (p,) of str, or None
        Whatever stands in the column "group": the annotator, the prompt.
    path : str
        Where they came from, as errors name it.
    sha256 : str
        Of the file's bytes as they lie on disk; empty for a data frame.
    ignored : tuple of str
        Names of the file's other columns, of which nothing was made.
    """

    winners: NDArray[np.intp]
    losers: NDArray[np.intp]
    strength: NDArray[np.float64] | None
    weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None
    path: str
    sha256: str
    ignored: tuple[str, ...] = ()

    @property
    def n_pairs(self) -> int:
        """Number of preferences."""
        return len(self.winners)

    def summary(self) -> dict[str, Any]:
        """What is in it, as plain values: where it came from, and how much of what there is."""
        return {
            "path": self.path,
            "sha256": self.sha256,
            "preferences": self.n_pairs,
            "ties": 0 if self.strength is None else int((self.strength == 0.0).sum()),
            "items": len(np.unique(np.concatenate((self.winners, self.losers)))),
            "groups": None if self.groups is None else len(np.unique(self.groups)),
        }

    def __repr__(self) -> str:
        extra = [name for name in ("strength", "weight", "groups") if getattr(self, name) is not None]
        return f"<PairTable {self.path}: {self.n_pairs} preferences{', with ' * bool(extra)}{', '.join(extra)}>"


def load_pairs(path: Source, *, n_items: int | None = None, ids: Sequence[Any] | None = None) -> PairTable:
    r"""Read preferences: a table with a winner and a loser in each row, as text, Parquet, Arrow or a data frame.

    A first line that names the columns may give them in any order: ``winner``, ``loser``, and where wanted ``strength``
    (by how much the winner should lead; 0 is a tie), ``weight`` (how much the preference counts) and ``group`` (what is
    held out together); of others nothing is made, and the result names them as ``ignored``. Text
    without such a line has the columns winner, loser, strength, weight.

    Parameters
    ----------
    path : path, binary file object or data frame
        As for :func:`load_table`, which tells the formats apart in the same way.
    n_items : int, optional
        Number of items; a row number beyond is an error.
    ids : sequence of length m, optional
        An id for each item. Winners and losers are then ids, compared as text; otherwise they are row numbers, from 0.

    Returns
    -------
    PairTable

    Raises
    ------
    PairsError
        A :class:`TableError`, with the row, counted from 0: an item that is not there, an id
        that several rows have, an item against itself, a strength or weight that is no finite number (or negative), a
        missing cell; and for a file without a preference of positive weight.
    OSError
        If the file cannot be read.

    Notes
    -----
    O(bytes); about a second a million. Repeated and contradictory preferences are kept; blank lines are skipped.

    Examples
    --------
    >>> import io
    >>> from rankrls.io import load_pairs
    >>> text = b"winner,loser,strength\ntea,water,2\ncoffee,tea,1\n"
    >>> table = load_pairs(io.BytesIO(text), ids=["water", "tea", "coffee"])
    >>> table.winners, table.losers, table.strength
    (array([1, 2]), array([0, 1]), array([2., 1.]))
    """
    return read_pair_text(path).table(n_items, ids)


@dataclass(frozen=True, eq=False)
class PairText:
    """A file of preferences that has been read, while it is still open what its items are called.

    Attributes
    ----------
    name, sha256 : str
        The file, and the hash of its bytes.
    items : object ndarray of shape (2, p) of str
        What the file calls the winners, and the losers.
    numbers : dict of str to ndarray
        Strength and weight, as far as the file has them.
    groups : ndarray of shape (p,) or None
    ignored : tuple of str
        Names of the other columns.
    """

    name: str
    sha256: str
    items: NDArray[Any]
    numbers: dict[str, NDArray[np.float64]]
    groups: NDArray[Any] | None
    ignored: tuple[str, ...]

    def table(self, n_items: int | None = None, ids: Sequence[Any] | None = None) -> PairTable:
        """The preferences between rows, as :func:`load_pairs` gives them."""
        if n_items is not None and ids is not None and len(ids) != n_items:
            raise InputError(f"ids has {len(ids)} entries for {n_items} items; it needs one for each.", parameter="ids")
        rows = self._by_number(n_items) if ids is None else self._by_id(ids)
        same = rows[0] == rows[1]
        if same.any():
            raise self._wrong(same, "winner", "the item {} is compared with itself.")
        weight = self.numbers.get("weight")
        check_weights(self.name, weight, "weight")
        if weight is not None and not weight.any():
            raise PairsError("every preference has weight 0.", file=self.name, column="weight")
        strength = self.numbers.get("strength")
        return PairTable(rows[0], rows[1], strength, weight, self.groups, self.name, self.sha256, self.ignored)

    def _by_number(self, n_items: int | None) -> NDArray[np.intp]:
        """Rows of winners and losers that are called by their numbers."""
        texts, codes = self._coded()
        most = _WHOLE.max if n_items is None else n_items - 1
        found = np.array([_whole(text) for text in texts], dtype=np.int64)[codes]
        outside = (found < 0) | (found > most)
        for what, wrong in zip(_ITEMS, outside, strict=True):
            if wrong.any():
                numbered = f"rows are numbered {'from 0' if n_items is None else f'0 to {most}'}."
                raise self._wrong(wrong, what, f"the {what} {{}} is no row number; {numbered}")
        return found.astype(np.intp)

    def _by_id(self, ids: Sequence[Any]) -> NDArray[np.intp]:
        """Rows of winners and losers that are called by their ids."""
        row_of: dict[str, int] = {}
        several: dict[str, int] = {}
        for row, item in enumerate(ids):
            first = row_of.setdefault(str(item), row)
            if first != row:
                several.setdefault(str(item), row)
        texts, codes = self._coded()
        found = np.array([row_of.get(text, -1) for text in texts], dtype=np.intp)[codes]
        twice = np.array([text in several for text in texts], dtype=bool)[codes]
        for what, unknown, double in zip(_ITEMS, found < 0, twice, strict=True):
            if unknown.any():
                raise self._wrong(unknown, what, f"no item has the id {{}} of the {what}.")
            if double.any():
                text = self.items[_ITEMS.index(what), np.argmax(double)]
                rows = f"rows {row_of[text]} and {several[text]}"
                raise self._wrong(double, what, f"the {what} {{}} is the id of several items: {rows}.")
        return found

    def _coded(self) -> tuple[list[str], NDArray[np.int64]]:
        """What items are called, each once, and the number of each winner and loser."""
        texts, codes = coded(self.items.flat)
        return texts, codes.reshape(self.items.shape)

    def _wrong(self, wrong: NDArray[np.bool_], what: str, message: str) -> PairsError:
        e = int(np.argmax(wrong))
        return row_error(self.name, e, message.format(quoted(self.items[_ITEMS.index(what), e])), column=what)


def read_pair_text(source: Source) -> PairText:
    """Read a file of preferences, and look up no item yet."""
    with open_table(source, "auto", PairsError, naming=_naming) as table:
        words = [column.strip().lower() for column in table.columns]
        for word in _ITEMS:
            if word not in words:
                raise table.refuse(f"there is no column {word!r}.", column=word)
        twice = [word for word in _COLUMNS if words.count(word) > 1]
        if twice:
            raise table.refuse(f"there are two columns {twice[0]!r}.", column=twice[0])
        column_of = dict(zip(words, table.columns, strict=True))
        numbers = [word for word in _NUMBERS if word in words]
        texts = {word: column_of[word] for word in (*_ITEMS, "group") if word in words}
        wanted = tuple(column_of[word] for word in numbers)
        found = read_arrays(table, ReadPlan(wanted, texts=texts, may_be_empty=("group",)))
        items = np.array([strings(found.texts[word]) for word in _ITEMS], dtype=object)
        groups = strings(found.texts["group"]) if "group" in texts else None
        values = {word: np.ascontiguousarray(found.X[:, k]) for k, word in enumerate(numbers)}
        ignored = tuple(dict.fromkeys(word for word in words if word not in _COLUMNS))
        return PairText(table.name, table.sha256, items, values, groups, ignored)


def _naming(first: list[str]) -> list[str] | None:
    """Names of the columns of a text whose first row is a preference; None if it names them itself."""
    if {word.strip().lower() for word in first} & {*_ITEMS}:
        return None
    if len(first) > 4:
        raise PairsError("without a line that names them there are at most winner, loser, strength, weight.")
    return [*_COLUMNS[: max(len(first), 2)]]


def row_error(name: str, row: int, message: str, **facts: Any) -> PairsError:
    """An error about a row of a file."""
    return PairsError(f"row {row}, counted from 0: {message}", file=name, row=row, **facts)


def check_weights(name: str, weight: NDArray[np.float64] | None, column: str | None) -> None:
    """Refuse negative weights."""
    if weight is not None and (weight < 0.0).any():
        row = int(np.argmax(weight < 0.0))
        raise row_error(name, row, f"the weight {weight[row]:g} is negative.", column=column)


def strings(values: NDArray[Any]) -> NDArray[Any]:
    """A column of ids as texts, whole numbers too."""
    return values if values.dtype == object else np.array([str(v) for v in values.tolist()], dtype=object)


def _whole(text: str) -> int:
    """A row number; -1 for what is none, and the largest of all for what is larger."""
    try:
        return min(int(text), _WHOLE.max) if text.isascii() and "_" not in text else -1
    except ValueError:
        return -1
