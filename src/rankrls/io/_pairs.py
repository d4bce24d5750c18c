"""Preferences from a file: winner, loser, and what else is known of each."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankrls.io._rows import NOT_UTF8
from rankrls.io._tables import table_format

__all__ = ["PairTable", "PairText", "PairsError", "load_pairs", "read_pair_text"]

_COLUMNS = ("winner", "loser", "strength", "weight", "group")
_PARQUET = b"PAR1"
_SHOWN = 40

Where = Callable[[int], str]
"""How errors name the place of a preference."""


class PairsError(ValueError):
    """A file of preferences holds something that cannot be one: ``file:line: what is wrong``."""


@dataclass(frozen=True, eq=False)
class PairTable:
    """Preferences of a file, in its order.

    Attributes
    ----------
    winners, losers : ndarray of shape (p,), intp
        Row numbers of the items, from 0.
    strength, weight : ndarray of shape (p,), float64, or None
        None where the file has no such column.
    groups : ndarray of shape (p,) of str, or None
        Whatever stands in the column "group": the annotator, the prompt.
    path : str
        Where they came from, as errors name it.
    sha256 : str
        Of the file's bytes as they lie on disk.
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

    def __repr__(self) -> str:
        extra = [name for name in ("strength", "weight", "groups") if getattr(self, name) is not None]
        return f"<PairTable {self.path}: {self.n_pairs} preferences{', with ' * bool(extra)}{', '.join(extra)}>"


def load_pairs(
    path: str | os.PathLike[str] | BinaryIO, *, n_items: int | None = None, ids: Sequence[Any] | None = None
) -> PairTable:
    r"""Read preferences: comma-, semicolon- or tab-separated text, or Parquet, with a winner and a loser in each line.

    A first line that names the columns may give them in any order: ``winner``, ``loser``, and where wanted ``strength``
    (by how much the winner should lead; 0 is a tie), ``weight`` (how much the preference counts) and ``group`` (what is
    held out together); of others nothing is made, and the result names them as ``ignored``. Without such a line the
    columns are winner, loser, strength, weight. Parquet always names its columns.

    Parameters
    ----------
    path : path or binary file object
        UTF-8 text, plain or gzip (known by its first bytes), or Parquet (by its name or its bytes).
    n_items : int, optional
        Number of items; a row number beyond is an error.
    ids : sequence of length m, optional
        An id for each item. Winners and losers are then ids; otherwise they are row numbers, from 0. Compared as text,
        without the blanks around them.

    Returns
    -------
    PairTable

    Raises
    ------
    PairsError
        A ValueError, ``path:line: what is wrong`` (for Parquet with the row): an item that is not there, an id that
        several rows have, an item against itself, a strength or weight that is no finite number (or negative), a
        missing cell; and for a file without a preference of positive weight.
    OSError
        Where the file cannot be read.
    ImportError
        For Parquet without pyarrow, which ``rankrls[parquet]`` brings.

    Notes
    -----
    O(bytes); about three seconds a million. Repeated and contradictory preferences are kept; blank lines are skipped.

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
    at : callable
        How errors name the place of a preference.
    cells : dict of str to list of str
        The columns that mean something.
    ignored : tuple of str
        Names of the others.
    """

    name: str
    sha256: str
    at: Where
    cells: dict[str, list[str]]
    ignored: tuple[str, ...]

    @property
    def items(self) -> list[str]:
        """What the file calls the items: all winners, then all losers."""
        return self.cells["winner"] + self.cells["loser"]

    def near(self, ignored: str) -> str | None:
        """The column that a name was perhaps meant to be."""
        found = get_close_matches(ignored, _COLUMNS, n=1, cutoff=0.75)
        return found[0] if found and found[0] not in self.cells else None

    def table(self, n_items: int | None = None, ids: Sequence[Any] | None = None) -> PairTable:
        """The preferences between rows, as :func:`load_pairs` gives them."""
        if n_items is not None and ids is not None and len(ids) != n_items:
            raise ValueError(f"ids has {len(ids)} entries for {n_items} items; it needs one for each.")
        at, cells = self.at, self.cells
        n = len(ids) if ids is not None else n_items
        find = _row_numbers if ids is None else _Ids(ids)
        winners, losers = (find(at, what, cells[what], n) for what in ("winner", "loser"))
        same = winners == losers
        if same.any():
            e = int(np.argmax(same))
            _fail(at(e), f"the item {_quote(cells['winner'][e])} is compared with itself.")
        strength, weight = (_numbers(at, what, cells.get(what)) for what in ("strength", "weight"))
        if weight is not None:
            if (weight < 0.0).any():
                e = int(np.argmax(weight < 0.0))
                _fail(at(e), f"the weight {cells['weight'][e]} is negative.")
            if not weight.any():
                raise PairsError(f"{self.name}: every preference has weight 0.")
        groups = None if "group" not in cells else np.array([cell.strip() for cell in cells["group"]])
        return PairTable(winners, losers, strength, weight, groups, self.name, self.sha256, self.ignored)


def read_pair_text(path: str | os.PathLike[str] | BinaryIO) -> PairText:
    """Read a file of preferences, and look up no item yet."""
    name, data = _content(path)
    at, cells, words = _of_parquet(name, data) if _is_parquet(name, data) else _of_text(name, _text(name, data))
    ignored = tuple(dict.fromkeys(word for word in words if word not in _COLUMNS))
    return PairText(name, hashlib.sha256(data).hexdigest(), at, cells, ignored)


def _content(path: str | os.PathLike[str] | BinaryIO) -> tuple[str, bytes]:
    if not isinstance(path, str | os.PathLike):
        return str(getattr(path, "name", "<stream>")), path.read()
    with open(path, "rb") as file:
        return os.fspath(path), file.read()


def _is_parquet(name: str, data: bytes) -> bool:
    """By its name or its bytes; an item of a table of text may be called PAR1, so both ends are looked at."""
    return table_format(name) == "parquet" or (data.startswith(_PARQUET) and data.endswith(_PARQUET))


def _text(name: str, data: bytes) -> str:
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise PairsError(f"{name}: the gzip data are damaged or cut off ({error}).") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PairsError(f"{name}:{line}: this is {NOT_UTF8}") from None


def _of_text(name: str, text: str) -> tuple[Where, dict[str, list[str]], list[str]]:
    """Where each preference stands, the columns that mean something, and the names of all."""
    first = text.lstrip().partition("\n")[0]
    delimiter = next((sign for sign in ",\t;|" if sign in first), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines = array("q")
    columns: list[str] | None = None
    rows: list[list[str]] = []
    for line, row in _numbered(name, reader):
        where = f"{name}:{line}"
        if columns is None:
            words = [cell.strip().lower() for cell in row]
            if "winner" in words or "loser" in words:
                columns = _header(where, words, "the line names columns, but ")
                continue
            columns = list(_COLUMNS[: min(max(len(row), 2), 4)])
            if len(row) > 4:
                _fail(where, "without a line that names them there are at most winner, loser, strength, weight.")
        if len(row) != len(columns):
            _fail(where, f"{len(columns)} cells are needed ({', '.join(columns)}); there are {len(row)}.")
        lines.append(line)
        rows.append(row)
    if not rows or columns is None:
        raise PairsError(f"{name}: there are no preferences in the file.")
    cells = {word: [*column] for word, column in zip(columns, zip(*rows, strict=True), strict=True) if word in _COLUMNS}
    return lambda e: f"{name}:{lines[e]}", cells, columns


def _of_parquet(name: str, data: bytes) -> tuple[Where, dict[str, list[str]], list[str]]:
    """The same of Parquet; its cells as text, which a float64 is written as and read from without loss."""
    from rankrls.io._parquet import first_line, import_pyarrow

    pa = import_pyarrow(f"{name}: reading Parquet")
    try:
        file = pa.parquet.ParquetFile(pa.BufferReader(data))
        words = _header(name, [column.strip().lower() for column in file.schema_arrow.names])
        used = {word: column for word, column in zip(words, file.schema_arrow.names, strict=True) if word in _COLUMNS}
        table = file.read(columns=[*used.values()])
    except (pa.ArrowException, OSError) as error:
        raise PairsError(f"{name}: this is no Parquet file, or a damaged one ({first_line(error)}).") from None
    if not table.num_rows:
        raise PairsError(f"{name}: there are no preferences in the file.")
    cells = {word: [_as_text(value) for value in table.column(column).to_pylist()] for word, column in used.items()}
    return lambda e: f"{name}: row {e}, counted from 0", cells, words


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53:
        return str(int(value))  # how pandas stores whole numbers beside a missing one
    return str(value)


def _numbered(name: str, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the number of its last line."""
    try:
        for row in reader:
            if row and (len(row) > 1 or row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        _fail(f"{name}:{reader.line_num}", f"this is no row of a table: {error}.")


def _header(where: str, words: list[str], start: str = "") -> list[str]:
    for word in ("winner", "loser"):
        if word not in words:
            _fail(where, f"{start}there is no column {word!r}.")
    twice = [word for word in _COLUMNS if words.count(word) > 1]
    if twice:
        _fail(where, f"there are two columns {twice[0]!r}.")
    return words


def _row_numbers(at: Where, what: str, cells: list[str], n_items: int | None) -> NDArray[np.intp]:
    try:
        numbers = np.array(cells, dtype=np.int64)
    except (ValueError, OverflowError):
        numbers = np.array([_whole(cell) for cell in cells])
    outside = (numbers < 0) if n_items is None else (numbers < 0) | (numbers >= n_items)
    if outside.any():
        e = int(np.argmax(outside))
        rows = "from 0" if n_items is None else f"0 to {n_items - 1}"
        _fail(at(e), f"the {what} {_quote(cells[e])} is no row number; rows are numbered {rows}.")
    return numbers.astype(np.intp)


def _whole(cell: str) -> int:
    """A row number; -1 for what is none, or is larger than any."""
    try:
        return min(int(cell), np.iinfo(np.int64).max) if cell.isascii() and "_" not in cell else -1
    except ValueError:
        return -1


class _Ids:
    """Rows by their id."""

    def __init__(self, ids: Sequence[Any]) -> None:
        self.rows: dict[str, int] = {}
        self.several: dict[str, tuple[int, int]] = {}
        for row, item in enumerate(ids):
            key = str(item).strip()
            first = self.rows.setdefault(key, row)
            if first != row:
                self.several.setdefault(key, (first, row))

    def __call__(self, at: Where, what: str, cells: list[str], n_items: int | None) -> NDArray[np.intp]:
        keys = [cell.strip() for cell in cells]
        rows = np.array([self.rows.get(key, -1) for key in keys], dtype=np.intp)
        unknown = (rows < 0) | np.array([not key for key in keys])
        if unknown.any():
            e = int(np.argmax(unknown))
            _fail(at(e), f"no item has the id {_quote(keys[e])} of the {what}.")
        if self.several:
            for e, key in enumerate(keys):
                if key in self.several:
                    a, b = self.several[key]
                    _fail(at(e), f"the {what} {_quote(key)} is the id of several items: rows {a} and {b}.")
        return rows


def _numbers(at: Where, what: str, cells: list[str] | None) -> NDArray[np.float64] | None:
    if cells is None:
        return None
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError:
        values = np.array([_number(cell) for cell in cells])
    bad = ~np.isfinite(values)
    if bad.any():
        e = int(np.argmax(bad))
        _fail(at(e), f"the {what} must be a finite number; got {_quote(cells[e])}.")
    return values


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _quote(cell: str) -> str:
    return repr(cell if len(cell) <= _SHOWN else cell[: _SHOWN - 3] + "...")


def _fail(where: str, message: str) -> NoReturn:
    raise PairsError(f"{where}: {message}")
