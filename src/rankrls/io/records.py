"""Rows of a file as they are, to be passed on: nothing in them is lost or written otherwise."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankrls._queries import group_to_qid
from rankrls.io._atomic import atomic_write
from rankrls.io._reader import load_letor
from rankrls.io._source import open_bytes, pieces
from rankrls.io._table import LetorError
from rankrls.io._writer import packed
from rankrls.io.data import Reading, check_file
from rankrls.io.sizes import sizes_beside
from rankrls.io.tables.arrow import ArrowTable, open_arrow
from rankrls.io.tables.columns import TableError, Wanted, assign
from rankrls.io.tables.delimited import Delimited, open_delimited
from rankrls.io.tables.writing import write_arrow

_PARTS = (".train", ".vali", ".valid", ".test")
"""What LightGBM's files end in: it says which part they are, and not which format."""


@dataclass(frozen=True)
class Records:
    """Rows of a file.

    Attributes
    ----------
    qid : sequence
        Query id of each row; None if the file has none.
    ending : str
        What the names of such files end in.
    write : callable
        ``write(path, rows)`` writes some of them as a file of the same kind.
    sizes : str
        If a file beside the rows says how many each query has: what its name has behind theirs. The queries of some
        rows are then written by ``write_sizes``.
    """

    qid: Sequence[Any] | None
    ending: str
    write: Callable[[Path, Sequence[int]], None]
    sizes: str = ""

    def write_sizes(self, path: Path, rows: Sequence[int]) -> None:
        """Write how many of some rows, which are in the file's order, each query has."""
        assert self.qid is not None
        counts = Counter(self.qid[row] for row in rows)
        with atomic_write(path, "w") as file:
            file.writelines(f"{count}\n" for count in counts.values())


def read_records(path: Path, reading: Reading, note: Callable[[str], object]) -> Records:
    """Read a file's rows as they are; ``note`` is told where their queries come from, if that is another file.

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
    suffix = Path(path.name[: len(path.name) - len(gzip)]).suffix
    if suffix.lower() in _PARTS or not suffix + gzip:
        suffix = {"letor": ".txt"}.get(kind, f".{kind}")
    ending = suffix + gzip
    make = {"letor": _letor, "csv": _delimited}.get(kind)
    if make is None:
        n_rows, qid, write = _typed(path, reading, kind)
    else:
        header, lines, qid = make(path, reading)
        n_rows = len(lines)

        def write(target: Path, rows: Sequence[int]) -> None:
            with atomic_write(target) as file, packed(file, str(target)) as sink:
                sink.write(header)
                sink.writelines(lines[row] for row in rows)

    sizes = sizes_beside(path, reading.sizes, str(path), n_rows, qid is not None, note)
    if sizes is None:
        return Records(qid, ending, write)
    return Records(group_to_qid(sizes.counts).tolist(), ending, write, sizes.end)


def _delimited(path: Path, reading: Reading) -> tuple[bytes, list[bytes], list[str] | None]:
    with open_delimited(path, TableError, "auto") as text:
        qid = _column_of_qid(text, reading)
        found = [(None if qid is None else text.text(record, qid, "qid"), row) for record, row in text.records()]
        return text.header, [row for _, row in found], None if qid is None else [str(name) for name, _ in found]


def _letor(path: Path, reading: Reading) -> tuple[bytes, list[bytes], list[Any] | None]:
    with open_bytes(path, LetorError) as (name, _, source, _):
        data = b"".join(map(bytes, pieces(source)))
    stream = io.BytesIO(data)
    stream.name = name
    table = load_letor(stream)
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    bare = [line.strip(b" \t\r\v\f") for line in lines]
    rows = [line + b"\n" for line, text in zip(lines, bare, strict=True) if text and not text.startswith(b"#")]
    assert len(rows) == table.n_rows
    return b"", rows, None if table.qid is None else table.qid.tolist()


def _typed(
    path: Path, reading: Reading, kind: str
) -> tuple[int, list[Any] | None, Callable[[Path, Sequence[int]], None]]:
    with open_arrow(path, kind, TableError) as table:
        called, rows = _column_of_qid(table, reading), table.whole()
        qid = None if called is None else rows.column(called).to_pylist()
        if qid is not None and None in qid:
            row = qid.index(None)
            problem, remedy = "row {0}, counted from 0: column {1!r} is missing:", "every row needs a query id."
            raise table.refuse(problem, row, called, remedy=remedy, row=row, column=called)
    return rows.num_rows, qid, lambda target, chosen: write_arrow(target, rows.take([*chosen]), kind)


def _column_of_qid(table: Delimited | ArrowTable, reading: Reading) -> str | None:
    return assign(table.refuse, table.columns, Wanted(qid=reading.qid, features=("*",), labels="optional")).qid
