"""Rows of a file as they are, to be passed on: nothing in them is lost or written otherwise."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankrls.io._atomic import atomic_write
from rankrls.io._reader import load_letor
from rankrls.io._source import open_bytes
from rankrls.io._table import LetorError
from rankrls.io._writer import packed
from rankrls.io.data import Reading, check_file
from rankrls.io.tables.arrow import ArrowTable, open_arrow
from rankrls.io.tables.columns import TableError, Wanted, assign
from rankrls.io.tables.delimited import Delimited, open_delimited
from rankrls.io.tables.writing import write_arrow

__all__ = ["Records", "read_records"]


@dataclass(frozen=True)
class Records:
    """Rows of a file.

    Attributes
    ----------
    qid : list
        Query id of each row; None if the file has none.
    ending : str
        What the names of such files end in.
    write : callable
        ``write(path, rows)`` writes some of them as a file of the same kind.
    """

    qid: Sequence[Any] | None
    ending: str
    write: Callable[[Path, Sequence[int]], None]


def read_records(path: Path, reading: Reading) -> Records:
    """Read a file's rows as they are.

    Raises
    ------
    InputError
        For a file that is no such format, with the line.
    OSError
        If it cannot be read.
    """
    check_file(path)
    kind = reading.format_of(path)
    gzip = ".gz" if path.name.lower().endswith(".gz") else ""
    ending = Path(path.name[: len(path.name) - len(gzip)]).suffix + gzip or {"letor": ".txt"}.get(kind, f".{kind}")
    make = {"letor": _letor, "csv": _delimited}.get(kind)
    if make is None:
        return _typed(path, reading, kind, ending)
    header, lines, qid = make(path, reading)

    def write(target: Path, rows: Sequence[int]) -> None:
        with atomic_write(target) as file, packed(file, str(target)) as sink:
            sink.write(header)
            sink.writelines(lines[row] for row in rows)

    return Records(qid, ending, write)


def _delimited(path: Path, reading: Reading) -> tuple[bytes, list[bytes], list[str] | None]:
    with open_delimited(path, TableError, "auto") as text:
        at = _place_of_qid(text, reading)
        found = [(None if at is None else text.text(record, at, "qid"), row) for record, row in text.records()]
        return text.header, [row for _, row in found], None if at is None else [str(qid) for qid, _ in found]


def _letor(path: Path, reading: Reading) -> tuple[bytes, list[bytes], list[Any] | None]:
    with open_bytes(path, LetorError) as (name, _, source, _):
        parts, piece = [], bytearray(1 << 20)
        while count := source.readinto(memoryview(piece)):
            parts.append(bytes(piece[:count]))
    data = b"".join(parts)
    stream = io.BytesIO(data)
    stream.name = name
    table = load_letor(stream)
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    bare = [line.strip(b" \t\r\v\f") for line in lines]
    rows = [line + b"\n" for line, text in zip(lines, bare, strict=True) if text and not text.startswith(b"#")]
    assert len(rows) == table.n_rows
    return b"", rows, None if table.qid is None else table.qid.tolist()


def _typed(path: Path, reading: Reading, kind: str, ending: str) -> Records:
    with open_arrow(path, kind, TableError) as table:
        at, rows = _place_of_qid(table, reading), table.whole()
        qid = None if at is None else rows.column(at).to_pylist()
        if qid is not None and None in qid:
            row, called = qid.index(None), table.columns[at or 0]
            problem, remedy = "row {0}, counted from 0: column {1!r} is missing:", "every row needs a query id."
            raise table.refuse(problem, row, called, remedy=remedy, row=row, column=called)
    return Records(qid, ending, lambda target, chosen: write_arrow(target, rows.take([*chosen]), kind))


def _place_of_qid(table: Delimited | ArrowTable, reading: Reading) -> int | None:
    return assign(table.refuse, table.columns, Wanted(qid=reading.qid, features=("*",), labels="optional")).qid
