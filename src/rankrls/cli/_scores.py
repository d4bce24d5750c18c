"""Scores from files, and the rows they are of."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankrls.cli._columns import Columns
from rankrls.cli._data import Labels, Queries, read
from rankrls.cli._judging import document_ids
from rankrls.cli._report import Report

if TYPE_CHECKING:
    from rankrls.io import ColumnTable, LetorTable

__all__ = ["Scores", "read_for_scores", "read_scores"]

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

    def for_columns(self, columns: Columns) -> Columns:
        """The same columns; what the scores call the query ids and the items' ids holds where nothing else does."""
        given = {"qid": self.qid_name, "id": self.id_name}
        return columns.like({k: v for k, v in given.items() if v is not None and k not in dict(columns.usual)})

    def of_rows(self, table: LetorTable | ColumnTable, report: Report) -> NDArray[np.float64]:
        """A score for each row of the data.

        Where both have ids they are matched by query id and id, whatever their order; otherwise they are taken in
        their order, and query ids that both have must be the same.

        Raises
        ------
        ValueError
            Where an item has no score, or a score no item; where two rows have the same ids and these do not agree row
            by row; and where rows taken in their order are not as many, or of other queries.
        """
        ids, its_ids = self.ids, document_ids(table)
        called = getattr(table, "id_name", None) or _ID
        if ids is not None and its_ids is not None and self.id_name != called:
            report.note(
                f"rows of {self.path} are taken in their order: its ids are in column {self.id_name!r}, the data's in "
                f"{called!r}."
            )
            ids = None
        if ids is None or its_ids is None:
            return self._in_order(table)
        here, there = [ids], [its_ids]
        if self.qid is not None and table.qid is not None:
            here.insert(0, self.qid)
            there.insert(0, table.qid)
        keys, wanted = (list(zip(*(_words(part) for part in parts), strict=True)) for parts in (here, there))
        if keys == wanted:
            return self.values
        place = self._unique(keys, self.path)
        known = self._unique(wanted, table.path)
        for row, key in enumerate(wanted):
            if key not in place:
                self._fail(f"there is no score for {_item(key)} (row {row}, counted from 0, of {table.path}).")
        for row, key in enumerate(keys):
            if key not in known:
                self._fail(f"row {row}, counted from 0, is {_item(key)}, which {table.path} does not have.")
        return self.values[[place[key] for key in wanted]]

    def _unique(self, keys: list[tuple[str, ...]], whose: str) -> dict[tuple[str, ...], int]:
        place: dict[tuple[str, ...], int] = {}
        for row, key in enumerate(keys):
            first = place.setdefault(key, row)
            if first != row:
                self._fail(
                    f"its ids are not those of the data row by row, and cannot be matched: rows {first} and {row}, "
                    f"counted from 0, of {whose} are both {_item(key)}."
                )
        return place

    def _in_order(self, table: LetorTable | ColumnTable) -> NDArray[np.float64]:
        if len(self.values) != table.n_rows:
            raise ValueError(f"{self.path} has {len(self.values)} scores, but {table.path} has {table.n_rows} rows.")
        if self.qid is not None and table.qid is not None:
            here, there = _words(self.qid), _words(table.qid)
            row = next((k for k, (a, b) in enumerate(zip(here, there, strict=True)) if a != b), None)
            if row is not None:
                self._fail(
                    f"row {row}, counted from 0, is of query {here[row]!r}, but that of {table.path} is of query "
                    f"{there[row]!r}: the rows are in another order. Ids in both files would match them (--id)."
                )
        return self.values

    def _fail(self, text: str) -> NoReturn:
        raise ValueError(f"{self.path}: {text}")


def _words(values: NDArray[Any]) -> list[str]:
    return [str(value) for value in values.tolist()]


def _item(key: tuple[str, ...]) -> str:
    return f"item {key[-1]!r}" + (f" of query {key[0]!r}" if len(key) > 1 else "")


def read_for_scores(
    path: Path, report: Report, *, queries: Queries, columns: Columns, labels: Labels
) -> LetorTable | ColumnTable:
    """Read what judging scores needs: of a table labels and ids, and no features."""
    names = None if columns.format_of(path) == "letor" else ()
    return read(path, report, queries=queries, columns=columns, labels=labels, names=names)


def read_scores(path: Path, columns: Columns) -> Scores:
    """Read a file of scores: one a line, or a table as predict writes it.

    Parameters
    ----------
    path : path
        "-" is standard input.
    columns : Columns
        What the data call the query ids and the items' ids. Where the table has no column of that name, its only other
        one holds them, as predict writes them: the query ids before the items' ids.

    Raises
    ------
    ValueError
        With the line, for what is no score.
    """
    from rankrls.io.tables.formats import table_format

    if str(path) != "-" and table_format(path) is not None and not _begins_with_a_number(path):
        return _of_table(path, str(table_format(path)), columns)
    if str(path) == "-":
        text = sys.stdin.read().removeprefix("\ufeff")
    else:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    lines = text.rstrip().splitlines()
    if not lines:
        raise ValueError(f"{path}: the file holds no scores.")
    try:
        values = np.array(lines, dtype=np.float64)
    except ValueError:
        values = np.array([_number(line) for line in lines])
    bad = ~np.isfinite(values)
    if bad.any():
        line = int(np.argmax(bad))
        raise ValueError(f"{path}:{line + 1}: a score must be one finite number; got {lines[line][:40]!r}.")
    return Scores(str(path), values)


def _of_table(path: Path, format: str, columns: Columns) -> Scores:
    from rankrls.io import TableError
    from rankrls.io.tables.columns import Wanted
    from rankrls.io.tables.formats import open_table
    from rankrls.io.tables.reading import read_table

    with open_table(path, format, TableError) as table_of_scores:
        header = tuple(table_of_scores.columns)
    usual = dict(columns.usual)
    qid = _first(header, columns.qid, usual.get("qid"), _QID)
    item = _first(header, columns.id, usual.get("id"), _ID)
    others = [name for name in header if name not in (_SCORE, qid, item)]
    if item is None and len(others) in ((1, 2) if qid is None else (1,)):
        item = others.pop()
    if qid is None and len(others) == 1:
        qid = others[0]
    names = {"label": "", "qid": qid or "", "id": item or ""}  # "": no such column
    wanted = Wanted(None, qid, item, (_SCORE,), (), "ignored", tuple(names.items()))
    table = read_table(path, wanted, format, "auto", np.float64)
    return Scores(str(path), table.X[:, 0], table.qid, table.ids, table.qid_name, table.id_name)


def _first(header: tuple[str, ...], *names: str | None) -> str | None:
    return next((name for name in names if name in header), None)


def _begins_with_a_number(path: Path) -> bool:
    """Whether a file is one score a line, whatever its name says."""
    with path.open("rb") as file:
        return math.isfinite(_number(file.readline(100).decode("utf-8-sig", "replace")))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
