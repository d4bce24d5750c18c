"""Comma-, semicolon- and tab-separated text: blocks of whole rows, read by pyarrow, or cell by cell where it cannot."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankrls._cell_text import number
from rankrls._errors import InputError
from rankrls.io._rows import LARGEST_SINGLE, SAVE_AS_UTF8, is_utf8, quoted
from rankrls.io._source import Limited, foreign, open_bytes
from rankrls.io.tables.cells import MISSING, Record, Unreadable, records, shown, why_no_number
from rankrls.io.tables.columns import Refuse
from rankrls.io.tables.parts import Request, Rows, Stretch, may_be_empty, needed
from rankrls.io.tables.values import Values

DELIMITERS = (",", ";", "\t", "|")
Naming = Callable[[list[str]], list[str] | None]
"""Names of the columns, made from the first row of a file that may have no line of names; None if it is that line."""

_BLOCK = 1 << 21
_BYTES_PER_COLUMN = 1 << 12  # so that a block of a wide table holds some rows
_MARK = b"\xef\xbb\xbf"
_QUOTED = re.compile(r'"(?:[^"]|"")*(?:"|$)')  # a cell may go on in the next line
_SEPARATED = "The line is one name: columns are separated by a comma, a semicolon, a tab or |."
_MISSING_AS = sorted({form for word in MISSING for form in (word, word.upper(), word.title())} | {"NaN"})
_TRUE, _FALSE = ["true", "True", "TRUE", "1"], ["false", "False", "FALSE", "0"]


class _Irregular(InputError):  # noqa: N818
    """A block holds what pyarrow would read otherwise than is promised."""


@contextmanager
def open_delimited(
    path: str | os.PathLike[str] | BinaryIO, kind: type[InputError], delimiter: str, naming: Naming | None = None
) -> Iterator[Delimited]:
    """Open text whose first row names the columns, unless ``naming`` says that it need not."""
    with open_bytes(path, kind) as (name, start, source, digest):
        what = foreign(start)
        if what is not None and (naming is None or not start[:3].isalnum()):  # an id may begin with "BZh"
            raise kind("this is {0}, not delimited text;", what, remedy="plain text and gzip are read.", file=name)
        yield Delimited(name, source, digest, kind, delimiter, naming)


class Delimited:
    """Delimited text whose header has been read.

    Attributes
    ----------
    columns : list of str
        Names of the columns.
    header : bytes
        The line that names them, as it stands in the file; empty if there is none.
    delimiter : bytes
    place : dict of str to int
        Where the column of a name stands; the first, if there are several.
    """

    textual = True

    def __init__(
        self, name: str, source: Any, digest: Any, kind: type[InputError], delimiter: str, naming: Naming | None
    ) -> None:
        self.name, self._source, self._digest, self._kind = name, source, digest, kind
        self._at_end = False
        start = self._take(b"", _BLOCK)
        self._rest = start.removeprefix(_MARK)
        self._at = len(start) - len(self._rest)  # the byte of the file with which the rest begins
        first = self._first_record(delimiter)
        self.columns = [self._decoded(cell, first.line) for cell in first.cells]
        try:
            names = None if naming is None else naming(self.columns)
        except InputError as error:
            raise error.located(file=name, line=first.line) from None
        if naming is None and all(number(cell) is not None for cell in first.cells):
            raise self._fail(first.line, "the first line must name the columns; it holds numbers only.")
        self._header_line, self._line = first.line, first.line
        self.refuse: Refuse = partial(self._refuse_header, _SEPARATED if len(first.cells) == 1 else "")
        self.header = b"" if names is not None else bytes(self._rest[first.start : first.end])
        self.columns = self.columns if names is None else names
        self.place = {name: k for k, name in [*enumerate(self.columns)][::-1]}
        self._line += self.header.count(b"\n")
        self._rest = self._rest[first.start + len(self.header) :]
        self._at += first.start + len(self.header)

    def lists(self, others: set[str | None], known: Mapping[str, int] | None = None) -> Mapping[str, int]:
        """Text holds no lists."""
        return {}

    def sha256(self) -> str:
        """Hash of the file's bytes, when they have all been read."""
        return str(self._digest.hexdigest())

    def parts(self, request: Request, place: Stretch | None = None) -> Iterator[Rows]:
        """All rows, or those of one stretch of a plain file, read by several threads at once."""
        from rankrls._compiled.threads import stream_threads

        if place is not None:
            self._source.seek(place.first)
            self._source, self._rest, self._at_end = Limited(self._source, place.last - place.first), bytearray(), False
            self._at, self._line = place.first, place.line
        rows = 0
        for part in stream_threads(_Reading(self, request), self._blocks()):
            if isinstance(part, InputError):  # not raised by the threads: the first of the file is the one to tell
                raise part
            rows += len(part.X)
            yield part
        if rows == 0:
            raise self._fail(None, "there is no row below the line that names the columns.")

    def records(self) -> Iterator[tuple[Record, bytes]]:
        """All rows cell by cell, each with its bytes as they stand in the file."""
        for block, place in self._blocks():
            for record in self.records_of(block, place.line):
                yield record, bytes(block[record.start : record.end])

    def records_of(self, block: bytes | bytearray, line: int) -> Iterator[Record]:
        """Rows of a block that begins in a line, each with as many cells as there are columns."""
        wanted = len(self.columns)
        try:
            for record in records(block, self.delimiter, line):
                found = len(record.cells)
                if found != wanted:
                    comma = found > wanted and self.delimiter == b"," and self.header
                    remedy = "(Decimals are written with a point.)" if comma else ""
                    names = f"line {self._header_line} names {wanted} columns"
                    needed_here = names if self.header else f"{wanted} are needed ({', '.join(self.columns)})"
                    cells = f"{found} cell{'s' * (found != 1)}"
                    raise self._fail(record.line, "{0}, but {1}.", cells, needed_here, remedy=remedy)
                yield record
        except Unreadable as broken:
            raise self._fail(broken.line, broken.problem) from None

    def text(self, record: Record, column: str, role: str) -> str:
        """An id."""
        cell = record.cells[self.place[column]]
        if not cell and not may_be_empty(role):
            problem, remedy = "the cell of column {1!r} is empty:", f"every row needs {needed(role)}."
        elif b"\0" in cell:
            problem, remedy = "the cell {0} of column {1!r} holds a NUL byte:", "the file is damaged, or no UTF-8 text."
        elif not is_utf8(cell):
            problem, remedy = "the cell {0} of column {1!r} is not UTF-8 text:", SAVE_AS_UTF8
        else:
            return cell.decode()
        raise self._fail(record.line, problem, quoted(cell), column, remedy=remedy, column=column)

    def number(self, record: Record, column: str, request: Request) -> float:
        """A finite number, or NaN for a label that may be missing."""
        cell = record.cells[self.place[column]]
        is_label = column in request.labels
        value = number(cell)
        if value is None and is_label and request.may_miss and cell.strip().decode("latin-1").lower() in MISSING:
            return math.nan
        if value is None:
            problem, remedy = why_no_number(cell, is_label, request.otherwise)
        elif request.dtype == np.float32 and not is_label and abs(value) >= LARGEST_SINGLE:
            problem, remedy = "the value {0} of column {1!r} is too large for float32.", ""
        elif column == request.weight and value < 0:
            problem, remedy = "the value {0} of column {1!r} is negative:", "a weight is not."
        else:
            return value
        raise self._fail(record.line, problem, shown(cell), column, remedy=remedy, column=column)

    def _first_record(self, delimiter: str) -> Record:
        """The first row, for which as much is read as it needs; sets the delimiter."""
        while True:
            body = self._rest.lstrip(b" \r\n")
            first_line, line_end, _ = body.partition(b"\n")
            if line_end:
                skipped = len(self._rest) - len(body)
                self.delimiter = (_likely(self.name, bytes(first_line)) if delimiter == "auto" else delimiter).encode()
                try:
                    found = next(records(body, self.delimiter, self._rest.count(b"\n", 0, skipped) + 1))
                    return found._replace(start=found.start + skipped, end=found.end + skipped)
                except Unreadable as broken:
                    if not broken.open or self._at_end:
                        raise self._fail(broken.line, "this is no line of column names: " + broken.problem) from None
            elif self._at_end:
                raise self._fail(None, "the file is empty.")
            self._rest = self._take(self._rest, 2 * len(self._rest))

    def _take(self, rest: bytes | bytearray, size: int) -> bytearray:
        """The rest of what was read, and more; less than ``size`` only at the file's end, where a line end is added."""
        filled = len(rest)
        buffer = bytearray(max(filled + 1, size))
        buffer[:filled] = rest
        with memoryview(buffer) as view:
            while filled < len(buffer) and not self._at_end:
                with view[filled:] as space:
                    count = self._source.readinto(space)
                self._at_end = count == 0
                filled += count
        del buffer[filled:]
        if self._at_end and not buffer.endswith(b"\n"):
            buffer += b"\n"
        return buffer

    def _blocks(self) -> Iterator[tuple[bytearray, Stretch]]:
        """Whole rows, and where each block stands; the last byte of a block is a line end."""
        size = max(_BLOCK, len(self.columns) * _BYTES_PER_COLUMN)
        rest, self._rest = self._rest, bytearray()
        line, at = self._line, self._at
        while rest or not self._at_end:
            block = rest if self._at_end else self._take(rest, size)
            stop = len(block) if self._at_end else _last_end(block, self.delimiter)
            rest = block[stop:]
            if stop:
                del block[stop:]
                place = Stretch(at, at + stop, line)
                line, at = line + block.count(b"\n"), at + stop
                yield block, place
            else:  # a row is longer than a block
                size = 2 * len(rest)

    def _decoded(self, cell: bytes, line: int) -> str:
        if not is_utf8(cell):
            raise self._fail(line, "this is not UTF-8 text:", remedy=SAVE_AS_UTF8)
        return cell.decode()

    def _fail(self, line: int | None, problem: str, *values: Any, **facts: Any) -> InputError:
        return self._kind(problem, *values, file=self.name, line=line, **facts)

    def _refuse_header(self, hint: str, problem: str, *values: Any, remedy: str = "", **facts: Any) -> InputError:
        remedy = f"{remedy} {hint}".strip()
        return self._fail(self._header_line if self.header else None, problem, *values, remedy=remedy, **facts)


class _Reading:
    """How the blocks of a file are read."""

    def __init__(self, table: Delimited, request: Request) -> None:
        self.table, self.request = table, request
        self.numbers = [*request.numbers, *request.alone]

    def __call__(self, block: tuple[bytearray, Stretch]) -> Rows | InputError:
        """A block as arrays, or what is wrong with it."""
        from pyarrow import ArrowException

        data, place = block
        try:
            try:
                found = self._by_arrow(data, place.line)
            except (_Irregular, ArrowException):
                found = self._by_cells(data, place.line)
            return found._replace(lines=self._lines(data, place.line, len(found.X)), stretch=place)
        except InputError as error:
            return error

    def _by_arrow(self, data: bytearray, line: int) -> Rows:
        import pyarrow as pa
        from pyarrow import csv

        place, request = self.table.place, self.request
        if not (self.numbers or request.texts) or data.isspace():
            raise _Irregular("there is nothing to read.")
        _check_quotes(data, self.table.delimiter)
        first = next(self.table.records_of(data, line)).cells
        truth = lambda name: first[place[name]].lower() in (b"true", b"false")
        types = {str(place[name]): pa.bool_() if truth(name) else pa.float64() for name in self.numbers}
        types |= {str(place[name]): pa.dictionary(pa.int32(), pa.string()) for name in request.texts.values()}
        batch, *more = csv.read_csv(
            pa.BufferReader(data),
            csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=[*map(str, range(len(first)))]),
            csv.ParseOptions(delimiter=self.table.delimiter.decode(), newlines_in_values=True),
            csv.ConvertOptions(
                include_columns=[*types],
                column_types=types,
                null_values=_MISSING_AS if request.may_miss else [],
                true_values=_TRUE,
                false_values=_FALSE,
            ),
        ).to_batches()
        column = lambda name: batch.column(str(place[name]))
        rows = Values(request, _Irregular).rows(batch.num_rows, column, column)
        missing = sum(column(name).null_count for name in request.labels)
        if more or (rows.y is not None and int(np.isnan(rows.y).sum()) != missing):
            raise _Irregular("a label is no number, and not missing either.")
        if any(text.strip(" \t\n\r\v\f") != text for texts, _ in rows.texts.values() for text in texts or ()):
            raise _Irregular("an id begins or ends with a blank.")
        return rows

    def _by_cells(self, data: bytearray, line: int) -> Rows:
        import pyarrow as pa

        table, request = self.table, self.request
        numbers: dict[str, list[float]] = {name: [] for name in self.numbers}
        texts: dict[str, list[str]] = {role: [] for role in request.texts}
        rows = 0
        for record in table.records_of(data, line):
            rows += 1
            for name, values in numbers.items():
                values.append(table.number(record, name, request))
            for role, cells in texts.items():
                cells.append(table.text(record, request.texts[role], role))
        by_name = {request.texts[role]: cells for role, cells in texts.items()}
        number = lambda name: pa.array(numbers[name], pa.float64())
        text = lambda name: pa.array(by_name[name], pa.large_string())
        return Values(request, table.refuse).rows(rows, number, text)

    def _lines(self, data: bytearray, line: int, rows: int) -> NDArray[np.int64] | None:
        if not self.request.lines:
            return None
        if data.count(b"\n") == rows:
            return np.arange(line, line + rows, dtype=np.int64)
        return np.array([record.line for record in self.table.records_of(data, line)], dtype=np.int64)


def _check_quotes(data: bytearray, delimiter: bytes) -> None:
    """Refuse quotes inside cells, text beside closing quotes, and carriage returns that end no line.

    Also a byte order mark, which pyarrow takes from the start of every block: it is one at the start of a file only.
    """
    if data.startswith(_MARK):
        raise _Irregular("a byte order mark inside the file.")
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        raise _Irregular("a carriage return that ends no line.")
    if b'"' not in data:
        return
    text = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(text == 34)
    if len(quotes) % 2 or not _are_regular(text, quotes, delimiter):
        raise _Irregular("a quote inside a cell.")


def _are_regular(text: NDArray[np.uint8], quotes: NDArray[np.intp], delimiter: bytes) -> bool:
    """Whether every other quote opens a cell, the others close one, and two in a row stand for one."""
    around = np.zeros(256, dtype=bool)
    around[[34, 10, delimiter[0]]] = True
    opening, closing = quotes[0::2], quotes[1::2]
    before = text[np.maximum(opening, 1) - 1]
    starts = around[before]
    if len(opening) and opening[0] == 0:
        starts[0] = True
    around[13] = True
    behind = text[np.minimum(closing + 1, len(text) - 1)]
    return bool(starts.all() and around[behind].all())


def _last_end(data: bytearray, delimiter: bytes) -> int:
    """Where the last whole row of some text ends that is cut off anywhere; 0 if there is none."""
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    text = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(text == 34)
    if _are_regular(text, quotes, delimiter):
        ends = np.flatnonzero(text == 10)
        outside = ends[np.searchsorted(quotes, ends) % 2 == 0]
        return int(outside[-1]) + 1 if len(outside) else 0
    stop = 0
    try:
        for record in records(data, delimiter):
            stop = record.end
    except Unreadable as broken:
        return broken.start if broken.open else len(data)  # what is broken is told by whoever reads the block
    return stop


def _likely(name: str, line: bytes) -> str:
    """The delimiter that a line uses most, outside quotes."""
    if name.removesuffix(".gz").lower().endswith((".tsv", ".tab")):
        return "\t"
    bare = _QUOTED.sub("", line.decode("utf-8", "replace"))
    return max(DELIMITERS, key=lambda d: (bare.count(d), -DELIMITERS.index(d)))
