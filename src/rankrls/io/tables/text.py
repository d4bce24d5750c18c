"""Delimited text, read by pyarrow as text a block at a time; numbers are cast where they are wanted."""

from __future__ import annotations

import hashlib
import io
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cell_text import number
from rankrls._compiled.jit import compiled
from rankrls._errors import InputError
from rankrls.io._rows import BLANKS, SAVE_AS_UTF8
from rankrls.io.tables.columns import Refuse

DELIMITERS = (",", ";", "\t", "|")
Naming = Callable[[list[str]], list[str] | None]
"""Names of the columns, from the first row; None if the first row holds them."""

_BLOCK = 1 << 22
_LONGEST_ROW = 1 << 30
_QUOTE = ord('"')
_QUOTED = re.compile(r'"(?:[^"]|"")*(?:"|$)')  # a cell may go on in the next line
_CELL, _BARE, _INSIDE, _CLOSED = range(4)  # at the start of a cell, in one without quotes, in quotes, behind them


class DelimitedText:
    """A table of text whose first row has been read.

    Parameters
    ----------
    name : str
        For errors.
    stream : binary file object
    kind : type
        Of the errors.
    delimiter : str
        "auto" is the one that the first line uses most.
    naming : callable, optional
    """

    textual = True

    def __init__(self, name: str, stream: Any, kind: type[InputError], delimiter: str, naming: Naming | None) -> None:
        self.name = name
        self.refuse: Refuse = partial(kind, file=name)
        digest = hashlib.file_digest(stream, "sha256")
        self.sha256 = digest.hexdigest()
        stream.seek(0)
        self._stream, self._decoder, self._lines = _unpacked(stream), getincrementaldecoder("utf-8")(), 0
        start = self._read_some(_BLOCK).removeprefix(b"\xef\xbb\xbf")
        self._start = start.lstrip(b" \r\n")
        self._first_line = 1 + start.count(b"\n") - self._start.count(b"\n")
        if not self._start.strip():
            raise self.refuse("the file is empty.")
        self.delimiter = _likely(name, self._start) if delimiter == "auto" else delimiter
        first = self._first_row()
        try:
            names = None if naming is None else naming(first)
        except InputError as error:
            raise error.replace(file=name, line=1) from None
        if naming is None and all(number(cell.encode()) is not None for cell in first):
            raise self.refuse("the first line must name the columns; it holds numbers only.", line=1)
        self.columns: Sequence[str] = first if names is None else names
        self._header_rows = int(names is None)

    def lists(self, others: set[str | None]) -> dict[str, int]:
        """Text holds no lists."""
        return {}

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Some columns as text with the blanks around it, a block of rows at a time; a file is read once."""
        import pyarrow as pa
        from pyarrow import csv

        wrong: list[Any] = []
        called = [*map(str, range(len(self.columns)))]
        places = [called[self.columns.index(name)] for name in names]
        source = _QuotesChecked(self._start, self._first_line, self._read_some, self.delimiter, self.refuse)
        rows = 0

        def refused(row: Any) -> str:
            if not row.text.strip():
                return "skip"
            wrong.append(row)
            return "error"

        try:
            for block in csv.open_csv(
                pa.PythonFile(source, mode="r"),
                csv.ReadOptions(
                    use_threads=False,
                    block_size=max(_BLOCK, 64 * len(called)),
                    column_names=called,
                    skip_rows_after_names=self._header_rows,
                ),
                self._how(refused),
                csv.ConvertOptions(
                    include_columns=places or called[:1],
                    column_types=dict.fromkeys(called, pa.string()),
                    check_utf8=False,  # it has been
                    strings_can_be_null=False,
                ),
            ):
                rows += block.num_rows
                columns = [block.column(place) for place in places]
                yield pa.RecordBatch.from_arrays(columns, names=[*names])
        except pa.ArrowInvalid as error:
            if wrong:
                raise self._ragged(wrong[0]) from None
            raise self.refuse(f"the text cannot be read as a table ({error}).") from None
        if rows == 0:
            raise self.refuse("there is no row below the line that names the columns.")

    def _ragged(self, row: Any) -> InputError:
        at = None if row.number is None else row.number - 1 - self._header_rows
        where = "a row" if at is None else f"row {at}, counted from 0,"
        message = f"{where} has {row.actual_columns} cells, but there are {row.expected_columns} columns."
        comma = self.delimiter == "," and row.actual_columns > row.expected_columns
        return self.refuse(message + " Decimals are written with a point." * comma, row=at)

    def _how(self, handler: Callable[[Any], Any]) -> Any:
        from pyarrow import csv

        return csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=handler)

    def _first_row(self) -> list[str]:
        """The cells of the first row."""
        import pyarrow as pa
        from pyarrow import csv

        source = pa.BufferReader(self._start + b"\n")
        how = csv.ReadOptions(use_threads=False, block_size=len(self._start) + 2)
        try:
            names = csv.open_csv(source, how, self._how(lambda row: "skip")).schema.names
        except pa.ArrowInvalid as error:
            raise self.refuse(f"the first line cannot be read as names of columns ({error}).", line=1) from None
        return [name.strip(BLANKS) for name in names]

    def _read_some(self, size: int) -> bytes:
        """The next bytes of UTF-8; pyarrow could not say where others are."""
        try:
            data: bytes = self._stream.read(size)
            self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            line = self._lines + 1 + error.object.count(b"\n", 0, error.start)
            raise self.refuse(f"this is not UTF-8 text: {SAVE_AS_UTF8}", line=line) from None
        except OSError as error:
            if error.errno is not None:
                raise
            raise self.refuse(f"the gzip data are damaged or end too early ({error}).") from None
        self._lines += data.count(b"\n")
        return data


def _unpacked(stream: Any) -> Any:
    """The stream itself, or what is packed in it."""
    import pyarrow as pa

    packed = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    return pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "gzip") if packed else stream


def _likely(name: str, start: bytes) -> str:
    """The delimiter that the first line uses most, outside quotes."""
    if name.removesuffix(".gz").lower().endswith((".tsv", ".tab")):
        return "\t"
    bare = _QUOTED.sub("", start.partition(b"\n")[0].decode("utf-8", "replace"))
    return max(DELIMITERS, key=lambda d: (bare.count(d), -DELIMITERS.index(d)))


class _QuotesChecked(io.RawIOBase):
    """The text, refused where text stands behind a closing quote or a quote is never closed.

    pyarrow would take all rows up to the next quote for one cell.
    """

    def __init__(self, start: bytes, line: int, read: Callable[[int], bytes], delimiter: str, refuse: Refuse) -> None:
        self._start, self._read, self._refuse = start, read, refuse
        self._delimiter = ord(delimiter)
        self._state, self._line, self._opened = _CELL, line, line

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        data, self._start = self._start[:size], self._start[size:]
        data = data or self._read(size)
        if not data and self._state == _INSIDE:
            raise self._refuse('a cell begins with a quote (") that is never closed.', line=self._opened)
        if b'"' in data or self._state in (_INSIDE, _CLOSED):
            self._state, bad, opened = quote_state(np.frombuffer(data, np.uint8), self._delimiter, self._state)
            if bad >= 0:
                line = self._line + data.count(b"\n", 0, bad)
                raise self._refuse("something stands behind the closing quote of a cell.", line=line)
            self._opened = self._line + data.count(b"\n", 0, opened) if opened >= 0 else self._opened
        elif data:
            self._state = _CELL if data[-1] in (10, 13, self._delimiter) else _BARE
        self._line += data.count(b"\n")
        return data


@compiled
def quote_state(data: NDArray[np.uint8], delimiter: int, state: int) -> tuple[int, int, int]:
    """The state behind some bytes, the first one that may not stand where it does, and the last opening quote."""
    opened = -1
    for k in range(len(data)):
        byte = data[k]
        ends = byte == delimiter or byte == 10 or byte == 13
        if state == 2:  # inside quotes
            if byte == 34:
                state = 3
        elif ends:
            state = 0
        elif byte == 34 and state == 3:
            state = 2
        elif byte == 34 and state == 0:
            state, opened = 2, k
        elif state == 3:
            return state, k, opened
        else:
            state = 1
    return state, -1, opened
