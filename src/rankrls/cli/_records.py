"""Rows of a file as they are, for commands that pass them on: nothing in them is lost or written otherwise."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from rankrls.cli._columns import Columns
from rankrls.cli._data import check_kind
from rankrls.io import LetorError, TableError, atomic_write, load_letor
from rankrls.io._source import open_bytes
from rankrls.io._writer import packed
from rankrls.io.tables.arrow import ArrowTable, open_arrow
from rankrls.io.tables.columns import Wanted, assign
from rankrls.io.tables.delimited import Delimited, open_delimited
from rankrls.io.tables.writing import write_arrow

__all__ = ["Records", "read_records"]


class Records(Protocol):
    """Rows of a file.

    Attributes
    ----------
    qid : list
        Query id of each row; None if the file has none.
    ending : str
        What the names of such files end in.
    """

    qid: Sequence[Any] | None
    ending: str

    def write(self, path: Path, rows: Sequence[int]) -> None:
        """Write some of them as a file of the same kind."""
        ...


def read_records(path: Path, columns: Columns) -> Records:
    """Read a file's rows as they are.

    Raises
    ------
    ValueError
        For a file that is no such format, with the line.
    OSError
        If it cannot be read.
    """
    check_kind(path)
    kind = columns.format_of(path)
    packed_name = ".gz" if path.name.lower().endswith(".gz") else ""
    ending = Path(path.name.removesuffix(packed_name) if packed_name else path.name).suffix + packed_name
    if kind == "letor":
        return _Letor(path, ending or ".txt")
    if kind == "csv":
        with open_delimited(path, TableError, "auto") as text:
            return _Lines(text, columns, ending or ".csv")
    with open_arrow(path, kind, TableError) as table:
        return _Typed(table, columns, kind, ending or f".{kind}")


def _place_of_qid(table: Delimited | ArrowTable, columns: Columns) -> int | None:
    return assign(table.refuse, table.columns, Wanted(None, columns.qid, None, ("*",), (), "optional")).qid


class _Lines:
    """Rows of text, byte for byte."""

    qid: Sequence[Any] | None

    def __init__(self, text: Delimited, columns: Columns, ending: str) -> None:
        at = _place_of_qid(text, columns)
        self.ending, self._header = ending, text.header
        self._rows: list[bytes] = []
        qid: list[str] = []
        for record, row in text.records():
            if at is not None:
                qid.append(text.text(record, at, "qid"))
            self._rows.append(row)
        self.qid = None if at is None else qid

    def write(self, path: Path, rows: Sequence[int]) -> None:
        with atomic_write(path) as file, packed(file, str(path)) as sink:
            sink.write(self._header)
            sink.writelines(self._rows[row] for row in rows)


class _Letor:
    qid: Sequence[Any] | None

    def __init__(self, path: Path, ending: str) -> None:
        with open_bytes(path, LetorError) as (name, _, source, _):
            parts, piece = [], bytearray(1 << 20)
            while count := source.readinto(memoryview(piece)):
                parts.append(bytes(piece[:count]))
            data = b"".join(parts)
        stream = io.BytesIO(data)
        stream.name = name
        table = load_letor(stream)
        self.qid = None if table.qid is None else table.qid.tolist()
        lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        bare = [line.strip(b" \t\r\v\f") for line in lines]
        self._rows = [line for line, text in zip(lines, bare, strict=True) if text and not text.startswith(b"#")]
        assert len(self._rows) == table.n_rows
        self.ending = ending

    def write(self, path: Path, rows: Sequence[int]) -> None:
        with atomic_write(path) as file, packed(file, str(path)) as sink:
            sink.writelines(self._rows[row] + b"\n" for row in rows)


class _Typed:
    """Rows of a table of pyarrow, of any types."""

    qid: Sequence[Any] | None

    def __init__(self, table: ArrowTable, columns: Columns, kind: str, ending: str) -> None:
        at = _place_of_qid(table, columns)
        self._table, self._kind, self.ending = table.whole(), kind, ending
        self.qid = None if at is None else self._table.column(at).to_pylist()
        if self.qid is not None and any(q is None for q in self.qid):
            row, called = self.qid.index(None), table.columns[at or 0]
            problem = "row {0}, counted from 0: column {1!r} is missing:"
            remedy = "every row needs a query id."
            raise table.refuse(problem, row, called, remedy=remedy, row=row, column=called)

    def write(self, path: Path, rows: Sequence[int]) -> None:
        write_arrow(path, self._table.take(list(rows)), self._kind)
