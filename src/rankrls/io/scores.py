"""Scores from files, and the rows they are of."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io._rows import quoted
from rankrls.io.data import ReadOptions, Rows
from rankrls.io.tables.columns import ColumnRoles, TableError
from rankrls.io.tables.formats import open_table, table_format
from rankrls.io.tables.reading import read_table

_MARK = b"\xef\xbb\xbf"
_SCORE, _QID, _ID = "score", "qid", "docid"  # as predict calls them where the data have no names


@dataclass(frozen=True, eq=False)
class Scores:
    """A file of scores.

    Attributes
    ----------
    path : str
    values : ndarray of shape (m,)
    qid, ids : ndarray of shape (m,) of str, or None
        What stands beside them in a table.
    qid_name, id_name : str or None
        What the table calls these columns.
    """

    path: str
    values: NDArray[np.float64]
    qid: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None
    qid_name: str | None = None
    id_name: str | None = None

    def data(self, options: ReadOptions) -> ReadOptions:
        """How their rows are read: no features, and ids from columns called as here unless something else is said."""
        called = {"qid": self.qid_name, "id": self.id_name}
        return replace(options.called({k: v for k, v in called.items() if k not in options.usual}), names=())

    def of_rows(self, table: Rows, note: Callable[[str], object]) -> NDArray[np.float64]:
        """A score for each row of the data.

        If both have ids, scores are matched by query id and id, whatever their order. Otherwise they are taken in their
        order, and query ids that both have must be the same.

        Raises
        ------
        InputError
            If an item has no score, or a score no item; if two rows have the same ids and these do not agree row by
            row; and if rows taken in their order are not as many, or of other queries.
        """
        ids, its_ids, called = self.ids, table.docids, table.id_name or _ID
        if ids is not None and its_ids is not None and self.id_name != called:
            columns = f"its ids are in column {self.id_name!r}, the data's in {called!r}"
            note(f"rows of {self.path} are taken in their order: {columns}.")
            ids = None
        both = [] if self.qid is None or table.qid is None else [(self.qid, table.qid)]
        if ids is None or its_ids is None:
            if len(self.values) != table.n_rows:
                raise self._wrong(f"there are {len(self.values)} scores, but {table.path} has {table.n_rows} rows.")
            for here, there in both:
                k = next((k for k, (a, b) in enumerate(zip(here, there, strict=True)) if str(a) != str(b)), None)
                if k is not None:
                    queries = (
                        f"row {k}, counted from 0, is of query {here[k]!r}, but that of {table.path} of {there[k]!r}"
                    )
                    raise self._wrong(f"{queries}: the rows are in another order. Ids in both files match them (id).")
            return self.values
        mine, theirs = zip(*both, (ids, its_ids), strict=True)
        keys, wanted = ([*zip(*(map(str, part.tolist()) for part in parts), strict=True)] for parts in (mine, theirs))
        if keys == wanted:
            return self.values
        place, known = self._unique(keys, self.path), self._unique(wanted, table.path)
        odd = next((key for key in (*known, *place) if key not in place or key not in known), None)
        if odd is not None:
            has, lacks = (table.path, self.path) if odd in known else (self.path, table.path)
            raise self._wrong(f"{_item(odd)} is in {has}, row {known.get(odd, place.get(odd))}, and not in {lacks}.")
        return self.values[[place[key] for key in wanted]]

    def _unique(self, keys: list[tuple[str, ...]], whose: str) -> dict[tuple[str, ...], int]:
        place: dict[tuple[str, ...], int] = {}
        for row, key in enumerate(keys):
            first = place.setdefault(key, row)
            if first != row:
                rows = f"rows {first} and {row}, counted from 0, of {whose} are both {_item(key)}"
                raise self._wrong(f"its ids are not those of the data row by row, and cannot be matched: {rows}.")
        return place

    def _wrong(self, message: str) -> InputError:
        return InputError(message, file=self.path)


def _item(key: tuple[str, ...]) -> str:
    return f"item {key[-1]!r}" + (f" of query {key[0]!r}" if len(key) > 1 else "")


def read_scores(path: Path, options: ReadOptions) -> Scores:
    """Read a file of scores: one a line, or a table as predict writes it.

    Parameters
    ----------
    path : path
        "-" is standard input.
    options : ReadOptions
        What the data call the query ids and the items' ids. If the table has no column of that name, its only other
        one holds them, as predict writes them: the query ids before the items' ids.

    Raises
    ------
    InputError
        With the line, for what is no score.
    """
    kind = table_format(path)
    if str(path) == "-":
        raw = sys.stdin.buffer.read()
    elif kind is not None and not _begins_with_a_number(path):
        return _of_table(path, kind, options)
    else:
        raw = path.read_bytes()
    lines = raw.removeprefix(_MARK).rstrip().split(b"\n")
    if lines == [b""]:
        raise InputError("the file holds no scores.", file=str(path))
    values = np.fromiter(map(_number, lines), dtype=np.float64, count=len(lines))
    bad = ~np.isfinite(values)
    if bad.any():
        k = int(np.argmax(bad))
        raise InputError(
            f"a score must be one finite number; got {quoted(lines[k].strip())}.", file=str(path), line=k + 1
        )
    return Scores(str(path), values)


def _of_table(path: Path, kind: str, options: ReadOptions) -> Scores:
    with open_table(path, kind, TableError) as opened:
        header = tuple(opened.columns)
    called = lambda *names: next((name for name in names if name in header), None)
    qid = called(options.qid, options.usual.get("qid"), _QID)
    item = called(options.id, options.usual.get("id"), _ID)
    others = [name for name in header if name not in (_SCORE, qid, item)]
    if item is None and len(others) in ((1, 2) if qid is None else (1,)):
        item = others.pop()
    if qid is None and len(others) == 1:
        qid = others[0]
    usual = {"label": "", "qid": qid or "", "id": item or ""}  # "": no such column
    roles = ColumnRoles(qid=qid, id=item, features=(_SCORE,), labels="ignored", usual=usual)
    table = read_table(path, roles, kind, "auto", np.float64)
    return Scores(str(path), table.X[:, 0], table.qid, table.ids, table.qid_name, table.id_name)


def _begins_with_a_number(path: Path) -> bool:
    """Whether a file is one score a line, whatever its name says."""
    with path.open("rb") as file:
        return math.isfinite(_number(file.readline(100).removeprefix(_MARK)))


def _number(line: bytes) -> float:
    """A score; NaN for what is none. Python's ``float`` takes underscores, and of text any script's digits."""
    try:
        return math.nan if b"_" in line else float(line)
    except ValueError:
        return math.nan
