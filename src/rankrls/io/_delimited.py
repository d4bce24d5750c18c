"""Comma-, semicolon- and tab-separated text to arrays, a block at a time."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankrls.io._columns import ColumnTable, Roles, TableError, Wanted, assign
from rankrls.io._rows import NOT_UTF8, Growing, Names, is_utf8, quoted
from rankrls.io._source import foreign, open_bytes
from rankrls.io._table import LetorError

__all__ = ["DELIMITERS", "header_of", "read_delimited"]

DELIMITERS = (",", ";", "\t", "|")
_BUFFER = 1 << 23
_MARK = b"\xef\xbb\xbf"
_SHOWN = 40
_HEADER_LINES = 1000  # blank ones, and those inside quoted names
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_CURRENCY = r"[$€£¥₹%]|[A-Z]{3}(?= )|(?<= )[A-Z]{3}"
_DRESSED = re.compile(
    rf"(?P<sign>[+-]?)(?P<before>{_CURRENCY})?\s*(?P<number>(?:[0-9]+|[0-9]{{1,3}}(?:,[0-9]{{3}})+)(?:\.[0-9]*)?)"
    rf"\s*(?P<after>{_CURRENCY})?"
)
_WITHOUT = "without signs of currency or percent and without separators of thousands"
_MISSING = ("", "na", "n/a", "nan", "null", "none", "-", "?")
_WORDS = {"true": 1.0, "false": 0.0}
_SEPARATED = "columns are separated by a comma, a semicolon, a tab or |."
_LARGEST_SINGLE = float(2**128 - 2**103)  # from here on float32 is infinite


@dataclass(frozen=True)
class _Header:
    names: tuple[str, ...]
    delimiter: str
    line: int
    stop: int  # where the rows begin
    lines: int  # how many lines come before them


def read_delimited(
    path: str | os.PathLike[str] | BinaryIO, wanted: Wanted, delimiter: str, dtype: DTypeLike
) -> ColumnTable:
    """Read a table whose first line names the columns; see :func:`rankrls.io.load_table`."""
    try:
        with open_bytes(path) as (name, start, source, digest):
            what = foreign(start)
            if what is not None:
                raise TableError(f"{name}: this is {what}, not delimited text; plain text and gzip are read.")
            reader = _Reader(name, source, delimiter, wanted, np.dtype(dtype))
            reader.read()
            return reader.table(digest.hexdigest())
    except LetorError as error:  # of unpacking, which both formats share
        raise TableError(str(error)) from None


class _Reader:
    """One file being read: a buffer that moves over the text, and the columns that grow."""

    def __init__(self, name: str, source: Any, delimiter: str, wanted: Wanted, dtype: np.dtype[Any]) -> None:
        self.name, self.source, self.wanted, self.dtype = name, source, wanted, dtype
        self.delimiter = delimiter
        self.buffer = bytearray(_BUFFER + 1)
        self.filled = 0
        self.at_end = False
        self.line = 0  # lines before the buffer's rows

    def read(self) -> None:
        """Read to the end."""
        self._fill()
        data = bytes(memoryview(self.buffer)[: self.filled])
        self.header = header_of(self.name, data, self.delimiter)
        names = self.header.names
        try:
            self.roles = assign(f"{self.name}:{self.header.line}", names, self.wanted)
        except TableError as error:
            if len(names) > 1:
                raise
            raise TableError(f"{error} The line is one name: {_SEPARATED}") from None
        self._plan(self.roles)
        self.line = self.header.lines
        self._shift(self.header.stop)
        while self.filled:
            self._rows()
            if self.at_end and not self.filled:
                break
            self._fill()
        if self.rows == 0:
            raise TableError(f"{self.name}: there is no row below the line that names the columns.")

    def table(self, sha256: str) -> ColumnTable:
        """What was read."""
        names, roles = self.header.names, self.roles
        texts = {role: column.finish() for role, column in self.texts.items()}
        return ColumnTable(
            X=self.X.finish(),
            y=None if self.y is None else self.y.finish(),
            qid=texts.get("qid"),
            ids=texts.get("id"),
            feature_names=tuple(names[k] for k in roles.features),
            label=None if roles.label is None else names[roles.label],
            qid_name=None if roles.qid is None else names[roles.qid],
            id_name=None if roles.id is None else names[roles.id],
            path=self.name,
            sha256=sha256,
        )

    def _plan(self, roles: Roles) -> None:
        from rankrls.io._cells import SKIP, TEXT

        self.kinds = np.full(len(self.header.names), SKIP, dtype=np.int64)
        for k, column in enumerate(roles.features):
            self.kinds[column] = k
        self.n = len(roles.features)
        if roles.label is not None:
            self.kinds[roles.label] = self.n
        self.texts: dict[str, Names] = {}
        for role in ("qid", "id"):
            column = getattr(roles, role)
            if column is not None:
                self.kinds[column] = TEXT - len(self.texts)
                self.texts[role] = Names()
        self.X = Growing((self.n,), self.dtype)
        self.y = None if roles.label is None else Growing((), np.float64)
        self.rows = 0

    def _fill(self) -> None:
        """Read until the buffer is full or the file is at its end; a missing last line end is added."""
        limit = len(self.buffer) - 1
        if self.filled >= limit:  # a row longer than the buffer
            self.buffer.extend(bytes(limit))
            limit = len(self.buffer) - 1
        with memoryview(self.buffer) as view:
            while not self.at_end and self.filled < limit:
                with view[self.filled : limit] as rest:
                    count = self.source.readinto(rest)
                self.at_end = count == 0
                self.filled += count
        if self.at_end and self.filled and self.buffer[self.filled - 1] != 10:
            self.buffer[self.filled] = 10
            self.filled += 1

    def _shift(self, stop: int) -> None:
        """Let go of what was read."""
        rest = self.buffer[stop : self.filled]
        self.buffer[: len(rest)] = rest
        self.filled = len(rest)

    def _rows(self) -> None:
        """Take the whole rows that the buffer holds."""
        from rankrls.io import _cells

        size = self.buffer.rfind(b"\n", 0, self.filled) + 1
        most = self.buffer.count(b"\n", 0, size)
        if most == 0:
            return
        n_numbers = self.n + (self.y is not None)
        values = np.empty((most, n_numbers))
        spans = np.empty((most, len(self.texts), 2), dtype=np.int64)
        odd = np.empty((most * n_numbers, 4), dtype=np.int64)  # costs nothing while nothing is odd: untouched pages
        lines = np.empty(most, dtype=np.int64)
        text = np.frombuffer(self.buffer, dtype=np.uint8)
        status, rows, n_odd, stop, line, cells = _cells.parse_rows(
            text, 0, size, ord(self.header.delimiter), self.kinds, values, spans, odd, lines
        )
        del text  # it keeps the buffer from growing
        self._settle(values, odd[:n_odd][odd[:n_odd, 0] < rows], lines)
        if self.dtype == np.float32:
            self._check_single(values[:rows, : self.n], lines)
        for k, (role, column) in enumerate(self.texts.items()):
            column.append([*self._cells_of(role, spans[:rows, k].tolist(), lines)])
        self.X.append(values[:rows, : self.n])
        if self.y is not None:
            self.y.append(values[:rows, self.n])
        self.rows += rows
        at = self.line + line + 1
        if status == _cells.RAGGED:
            wanted = len(self.header.names)
            comma = " (Decimals are written with a point.)" if cells > wanted and self.header.delimiter == "," else ""
            self._fail(at, f"{cells} cells, but line {self.header.line} names {wanted} columns.{comma}")
        if status == _cells.CLOSING:
            self._fail(at, f"something stands behind the closing quote of cell {cells + 1}, or a line end is broken.")
        if status == _cells.UNFINISHED and self.at_end:
            self._fail(at, f'cell {cells + 1} begins with a quote (") that is never closed.')
        self.line += line
        self._shift(stop)

    def _settle(self, values: NDArray[np.float64], odd: NDArray[np.int64], lines: NDArray[np.int64]) -> None:
        """Cells that are no plain decimals: long ones, true and false, missing labels; anything else is refused."""
        for row, column, first, end in odd.tolist():
            raw = bytes(self.buffer[first:end]).strip()
            value = _number(raw)
            if value is None and column == self.roles.label and self.wanted.labels == "optional":
                value = math.nan if raw.decode("utf-8", "replace").lower() in _MISSING else None
            if value is None:
                self._refuse(self._line(lines, row), column, raw)
            values[row, self.kinds[column]] = value

    def _check_single(self, values: NDArray[np.float64], lines: NDArray[np.int64]) -> None:
        large = np.abs(values) >= _LARGEST_SINGLE
        if large.any():
            row, k = (int(v) for v in np.argwhere(large)[0])
            what = f"the value {float(values[row, k])!r} of column {self._called(self.roles.features[k])}"
            self._fail(self._line(lines, row), f"{what} is too large for float32.")

    def _cells_of(self, role: str, spans: Sequence[tuple[int, int]], lines: NDArray[np.int64]) -> Iterator[bytes]:
        data = bytes(memoryview(self.buffer)[: self.filled])
        for row, (first, end) in enumerate(spans):
            cell = data[first:end].strip()
            if first and data[first - 1] == 34 and b'""' in cell:
                cell = cell.replace(b'""', b'"')
            if not cell:
                column = getattr(self.roles, role)
                why = "every row needs a query id" if role == "qid" else "every row needs an id"
                self._fail(self._line(lines, row), f"the cell of column {self._called(column)} is empty: {why}.")
            if not cell.isascii() and not is_utf8(cell):
                column = self._called(getattr(self.roles, role))
                self._fail(self._line(lines, row), f"the cell {quoted(cell)} of column {column} is {NOT_UTF8}")
            yield cell

    def _refuse(self, line: int, column: int, raw: bytes) -> NoReturn:
        text = raw.decode("utf-8", "replace")
        name, shown = self._called(column), repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")
        is_label = column == self.roles.label
        if not text:
            why = "every row needs a label" if is_label else "fill it, or leave the column or the row out"
            self._fail(line, f"the cell of column {name} is empty: {why}.")
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if math.isinf(value) and any(c.isdigit() for c in text):
            self._fail(line, f"the value {shown} of column {name} is too large for a float64.")
        if not math.isfinite(value) or text.lower() in _MISSING:
            what = "a label is a number" if is_label else "every row needs a number"
            self._fail(line, f"the value {shown} of column {name} is missing or not finite: {what}.")
        if _DECIMAL_COMMA.fullmatch(text):
            point = text.replace(",", ".")
            other = f" (or, of thousands, {text.replace(',', '')})" if _without_signs(text) else ""
            what = f"write decimals with a point, {point}{other}"
            self._fail(line, f"the value {shown} of column {name} is no number: {what}.")
        bare = _without_signs(text)
        if bare is not None:
            self._fail(line, f"the value {shown} of column {name} is no number: write {bare}, {_WITHOUT}.")
        if "\0" in text:
            self._fail(
                line, f"the value {shown} of column {name} holds a NUL byte: the file is damaged, or no UTF-8 text."
            )
        what = "labels are numbers" if is_label else "leave the column out, or name the features"
        self._fail(line, f"the value {shown} of column {name} is no number: {what}.")

    def _called(self, column: int) -> str:
        return repr(self.header.names[column])

    def _line(self, lines: NDArray[np.int64], row: int) -> int:
        return self.line + int(lines[row]) + 1

    def _fail(self, line: int, message: str) -> NoReturn:
        raise TableError(f"{self.name}:{line}: {message}")


def _without_signs(text: str) -> str | None:
    """The number that is left without a sign of currency or percent and separators of thousands; None if none is."""
    found = _DRESSED.fullmatch(text)
    if found is None:
        return None
    return (found["sign"] or "") + found["number"].replace(",", "")


def _number(raw: bytes) -> float | None:
    """A finite number as Python reads it, but without underscores; true and false; or None."""
    text = raw.decode("ascii", "replace")
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def header_of(name: str, data: bytes, delimiter: str) -> _Header:
    """The line that names the columns."""
    offset = len(_MARK) if data.startswith(_MARK) else 0
    lines = data[offset:].split(b"\n", _HEADER_LINES)[:_HEADER_LINES]
    lines = [line + b"\n" for line in lines]
    blank = 0
    while blank < len(lines) and not lines[blank].strip():
        blank += 1
    if blank == len(lines):
        raise TableError(f"{name}: the file is empty.")
    if delimiter == "auto":
        delimiter = _likely(name, lines[blank])
    used = blank

    def decoded() -> Iterator[str]:
        nonlocal used
        for line in lines[blank:]:
            used += 1
            try:
                yield line.decode()
            except UnicodeDecodeError:
                raise TableError(f"{name}:{used}: this is {NOT_UTF8}") from None

    try:
        names = tuple(cell.strip() for cell in next(csv.reader(decoded(), delimiter=delimiter, strict=True)))
    except csv.Error as error:
        raise TableError(f"{name}:{blank + 1}: this is no line of column names: {error}.") from None
    if all(_number(cell.encode()) is not None for cell in names):
        raise TableError(f"{name}:{blank + 1}: the first line must name the columns; it holds numbers only.")
    stop = min(offset + sum(map(len, lines[:used])), len(data))
    return _Header(names, delimiter, blank + 1, stop, used)


def _likely(name: str, line: bytes) -> str:
    """The delimiter that a header uses most, outside quotes."""
    if name.removesuffix(".gz").lower().endswith((".tsv", ".tab")):
        return "\t"
    bare = _QUOTED.sub("", line.decode("utf-8", "replace"))
    return max(DELIMITERS, key=lambda d: (bare.count(d), -DELIMITERS.index(d)))
