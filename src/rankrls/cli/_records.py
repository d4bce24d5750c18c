"""Rows of a file as they are, for commands that pass them on: nothing in them is lost or written otherwise."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from rankrls.cli._columns import Columns
from rankrls.cli._data import check_kind
from rankrls.io import TableError, atomic_write, load_letor
from rankrls.io._columns import Wanted, assign
from rankrls.io._delimited import header_of
from rankrls.io._source import foreign, open_bytes
from rankrls.io._writer import packed

__all__ = ["Records", "read_records"]


class Records(Protocol):
    """Rows of a file.

    Attributes
    ----------
    qid : list
        Query id of each row; None where the file has none.
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
        Where it cannot be read.
    """
    check_kind(path)
    kind = columns.format_of(path)
    packed_name = ".gz" if path.name.lower().endswith(".gz") else ""
    ending = Path(path.name.removesuffix(packed_name) if packed_name else path.name).suffix + packed_name
    if kind == "parquet":
        try:
            return _Parquet(path, columns, ending)
        except ImportError as error:
            raise ValueError(str(error)) from None
    name, data = _content(path)
    return _Letor(name, data, ending) if kind == "letor" else _Delimited(name, data, columns, ending)


def _content(path: Path) -> tuple[str, bytes]:
    with open_bytes(path) as (name, start, source, _):
        what = foreign(start)
        if what is not None:
            raise TableError(f"{name}: this is {what}; plain text and gzip are read.")
        parts, piece = [], bytearray(1 << 20)
        while count := source.readinto(memoryview(piece)):
            parts.append(bytes(piece[:count]))
        return name, b"".join(parts)


def _wanted(columns: Columns) -> Wanted:
    return Wanted(None, columns.qid, None, ("*",), (), "optional")


@contextmanager
def _sink(path: Path) -> Iterator[Any]:
    with atomic_write(path) as file, packed(file, str(path)) as sink:
        yield sink


class _Letor:
    qid: Sequence[Any] | None

    def __init__(self, name: str, data: bytes, ending: str) -> None:
        stream = io.BytesIO(data)
        stream.name = name
        table = load_letor(stream)
        self.qid = None if table.qid is None else table.qid.tolist()
        lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        bare = [line.strip(b" \t\r\v\f") for line in lines]
        self.lines = [line for line, text in zip(lines, bare, strict=True) if text and not text.startswith(b"#")]
        assert len(self.lines) == table.n_rows
        self.ending = ending or ".txt"

    def write(self, path: Path, rows: Sequence[int]) -> None:
        with _sink(path) as sink:
            sink.writelines(self.lines[row] + b"\n" for row in rows)


class _Delimited:
    qid: Sequence[Any] | None

    def __init__(self, name: str, data: bytes, columns: Columns, ending: str) -> None:
        header = header_of(name, data, "auto")
        at = assign(f"{name}:{header.line}", header.names, _wanted(columns)).qid
        self.header, self.delimiter, self.ending = header.names, header.delimiter, ending or ".csv"
        text = data[header.stop :].decode("utf-8", "surrogateescape")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=header.delimiter, strict=True)
        self.rows: list[list[str]] = []
        qid: list[str] = []
        try:
            for row in reader:
                if not row or (len(row) == 1 and not row[0].strip()):
                    continue
                where = f"{name}:{header.lines + reader.line_num}"
                if len(row) != len(header.names):
                    raise TableError(
                        f"{where}: {len(row)} cells, but line {header.line} names {len(header.names)} columns."
                    )
                if at is not None:
                    qid.append(row[at].strip())
                    if not qid[-1]:
                        raise TableError(f"{where}: the cell of column {header.names[at]!r} is empty.")
                self.rows.append(row)
        except csv.Error as error:
            raise TableError(f"{name}:{header.lines + reader.line_num}: this is no row of a table: {error}.") from None
        self.qid = None if at is None else qid

    def write(self, path: Path, rows: Sequence[int]) -> None:
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=self.delimiter, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(self.rows[row] for row in rows)
        with _sink(path) as sink:
            sink.write(text.getvalue().encode("utf-8", "surrogateescape"))


class _Parquet:
    qid: Sequence[Any] | None

    def __init__(self, path: Path, columns: Columns, ending: str) -> None:
        from rankrls.io._parquet import import_pyarrow

        pa = import_pyarrow(f"{path}: reading Parquet")
        with path.open("rb") as file:
            try:
                self.table = pa.parquet.read_table(file)
            except (pa.ArrowException, OSError) as error:
                raise TableError(f"{path}: this is no Parquet file, or a damaged one ({error}).") from None
        header = self.table.schema.names
        at = assign(str(path), header, _wanted(columns)).qid
        self.qid = None if at is None else self.table.column(at).to_pylist()
        if self.qid is not None and any(q is None for q in self.qid):
            raise TableError(f"{path}: row {self.qid.index(None)}, counted from 0: column {header[at]!r} is missing.")
        self.ending, self._pa = ending or ".parquet", pa

    def write(self, path: Path, rows: Sequence[int]) -> None:
        with atomic_write(path) as file:
            self._pa.parquet.write_table(self.table.take(list(rows)), file)
