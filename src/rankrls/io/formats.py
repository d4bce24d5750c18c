"""Table of formats, and how the tables of each are read and written."""

from __future__ import annotations

import csv
import io
import json
import re
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import IO, Any, NamedTuple

import numpy as np

from rankrls._errors import InputError
from rankrls._records import array_of, table_of
from rankrls._typing import Values
from rankrls.io._text import BLANKS, SAVE_AS_UTF8, Text
from rankrls.io.rows import Lines

_BUFFER = 1 << 16  # bytes per column of Parquet
_TEXT_CELLS = 1 << 14  # cells of delimited text in a batch, which stay in the cache
_TEXT_ROWS = 64  # least number of rows in a batch, unless fewer are requested
_DELIMITERS = ",;\t|"
_IN_QUOTES = re.compile('"(?:[^"]|"")*(?:"|$)')
_QUOTED = re.compile('["\\r\\n,;\\t|]|^\ufeff|^$')
"""Pattern of cells that are written in quotes."""


class Stored(ABC):
    """A stored table.

    Attributes
    ----------
    kind : str
        Name of the format in errors.
    remedy : str
        Advice about files of other formats, for errors.
    schema : pyarrow Schema
    textual : bool
        Whether all cells are texts.
    lines : Lines or None
        Lines of the rows that have been read from text.
    group_sizes : list of int
        Number of rows in each row group of a Parquet file.
    """

    kind: str
    remedy = ""
    schema: Any
    textual = False
    lines: Lines | None = None
    group_sizes: Sequence[int] = ()

    @abstractmethod
    def __init__(self, source: Any) -> None:
        """Read the header of a binary file, or take a data frame."""

    @abstractmethod
    def batches(self, names: list[str], rows: int, groups: range | None) -> Iterator[Any]:
        """Batches of some columns, for all row groups or some."""


class Frame(Stored):
    """A data frame."""

    kind = "a data frame"

    def __init__(self, source: Any) -> None:
        import pyarrow as pa

        try:
            self._table = pa.table(source)
        except pa.ArrowException:
            for name in getattr(source, "columns", ()):
                array_of(name, source[name])
            raise
        self.schema = self._table.schema

    def batches(self, names: list[str], rows: int, groups: range | None) -> Iterator[Any]:
        return iter(self._table.select(names).to_batches(rows))


class ArrowFile(Frame):
    """An Arrow file or stream."""

    kind = "an Arrow file"

    def __init__(self, source: Any) -> None:
        from pyarrow import ipc

        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        opened = ipc.open_file(source) if is_file else ipc.open_stream(source)
        super().__init__(opened.read_all())


class JsonLines(Frame):
    """Text with a JSON object in each line. All lines are needed to know the columns and their types."""

    kind = "lines of JSON"
    lines: Lines

    def __init__(self, source: Any) -> None:
        self._text = Text(source)
        self.lines = Lines()
        numbers = array("q")
        self.lines.append(0, numbers)
        try:
            super().__init__(table_of(self._records(numbers)))
        except InputError as error:
            line = error.line if error.row is None else self.lines.of(error.row)
            raise error.replace(file=self._text.name, line=line) from None
        if not numbers:
            raise InputError("the file has no rows.", file=self._text.name)

    def _records(self, numbers: array[int]) -> Iterator[Values]:
        """Objects of the lines, whose numbers are appended to an array."""
        for number, line in enumerate(self._text.lines(), 1):
            if not line.strip():
                continue
            reason = ""
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                record = None
                reason = f" ({error})"
            if not isinstance(record, dict):
                problem = f"each line needs a JSON object{reason}. For one array, jq -c '.[]' FILE writes such lines."
                raise InputError(problem, line=number)
            numbers.append(number)
            yield record


class Parquet(Stored):
    """A Parquet file."""

    kind = "a Parquet file"
    remedy = " Convert other formats: rankrls convert DATA FOLDER --rows-per-file 1000000."

    def __init__(self, source: Any) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        # incrementally rather than by whole row groups
        self._file = parquet.ParquetFile(source, pre_buffer=False, buffer_size=_BUFFER)
        found = self._file.metadata
        self.schema = self._file.schema_arrow
        self.group_sizes = [found.row_group(k).num_rows for k in range(found.num_row_groups)]
        if sum(self.group_sizes) != found.num_rows:
            raise pa.ArrowInvalid("the row groups do not add up to the rows")

    def batches(self, names: list[str], rows: int, groups: range | None) -> Iterator[Any]:
        import pyarrow as pa

        # an iterator over all groups stores what it has decompressed
        for group in range(len(self.group_sizes)) if groups is None else groups:
            read = 0
            for batch in self._file.iter_batches(rows, row_groups=[group], columns=names, use_threads=False):
                read += batch.num_rows
                yield batch.select(names)
            if read != self.group_sizes[group]:  # a damaged column
                raise pa.ArrowInvalid("not all rows can be read")


class Delimited(Stored):
    """Delimited text, which is read once.

    Blocks of one row per line without faults are split into cells by pyarrow, all others by Python's csv module.
    """

    kind = "delimited text"
    textual = True
    lines: Lines

    def __init__(self, source: Any) -> None:
        import pyarrow as pa

        self._text = Text(source)
        self.lines = Lines()
        self._numbers = array("q")  # line of each row, where it ends
        self.lines.append(0, self._numbers)
        self._line = 0  # number of the last line that has been split
        blocks = self._text.blocks()
        block = next(blocks, b"")
        lines = self._decoded([block])
        first = next(filter(str.strip, lines), "")
        if not first:
            raise InputError("the file is empty.", file=self._text.name)
        bare = _IN_QUOTES.sub("", first)
        tabs = self._text.name.removesuffix(".gz").lower().endswith((".tsv", ".tab"))
        self._delimiter = "\t" if tabs else max(_DELIMITERS, key=bare.count)
        names = next(csv.reader(chain([first], lines), delimiter=self._delimiter, strict=True))
        self.schema = pa.schema([(name.strip(BLANKS), pa.string()) for name in names])
        rest = block.splitlines(keepends=True)[self._line :]
        self._blocks = _of_several_rows(chain([b"".join(rest)], blocks))

    def batches(self, names: list[str], rows: int, groups: range | None) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.compute as pc

        places = {name: k for k, name in enumerate(self.schema.names)}
        numbers = [places[name] for name in names]
        for block in self._blocks:
            for columns in self._columns(block, rows):
                texts = [pc.ascii_trim_whitespace(columns[k]) for k in numbers]
                yield pa.RecordBatch.from_arrays(texts, names=names)

    def _columns(self, block: bytes, rows: int) -> Iterator[Sequence[Any]]:
        """Columns of texts of at most ``rows`` rows; all further blocks are read if a cell in quotes may end in one."""
        import pyarrow as pa

        closed = self._quotes_are_closed(block)
        if closed and (table := self._plain(block)) is not None:
            count = table.num_rows
            self._numbers.extend(range(self._line + 1, self._line + count + 1))
            self._line += count
            yield from (table.slice(start, rows).columns for start in range(0, count, rows))
            return
        step = min(rows, max(_TEXT_CELLS // len(self.schema), _TEXT_ROWS))
        remaining = self._rows([block] if closed else chain([block], self._blocks))
        while found := [*islice(remaining, step)]:
            yield [pa.array(cells, pa.string()) for cells in zip(*found, strict=True)]

    def _plain(self, block: bytes) -> Any:
        """Table of texts; None for a block whose rows are not its lines, or that pyarrow refuses."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        if b"\0" in block:
            return None
        names = [str(k) for k in range(len(self.schema))]
        texts = arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        whole = arrow.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False)
        try:
            table = arrow.read_csv(
                pa.BufferReader(block),
                whole,
                arrow.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
                texts,
            )
        except pa.ArrowInvalid:
            return None
        return table.to_batches()[0] if table.num_rows == block.count(b"\n") else None

    def _quotes_are_closed(self, block: bytes) -> bool:
        """Whether each quote begins or ends a cell, or is one of two inside a cell, and the last cell has ended."""
        text = np.frombuffer(b"\n" + block, dtype=np.uint8)
        quotes = np.flatnonzero(text == ord('"'))
        if len(quotes) % 2 or not len(quotes):
            return not len(quotes)
        first, last = quotes.reshape(-1, 2).T
        doubled = np.append(first[1:] == last[:-1] + 1, False)
        ends = np.isin(text, [*f"\r\n{self._delimiter}".encode()])
        return bool((ends[first - 1] | np.roll(doubled, 1)).all() and (ends[last + 1] | doubled).all())

    def _decoded(self, blocks: Iterable[bytes]) -> Iterator[str]:
        """Lines, with their ends."""
        for block in blocks:
            bad = block.find(b"\0")
            problem = "there is a NUL byte, which text cannot contain: the file is damaged or not text."
            try:
                text = block.decode()
            except UnicodeDecodeError as error:
                bad = error.start
                problem = f"this is not UTF-8 text: {SAVE_AS_UTF8}"
            if bad >= 0:
                raise InputError(problem, file=self._text.name, line=self._line + 1 + block.count(b"\n", 0, bad))
            for line in io.StringIO(text, newline=""):
                self._line += 1
                yield line

    def _rows(self, blocks: Iterable[bytes]) -> Iterator[list[str]]:
        """Cells of each row."""
        size = len(self.schema)
        line = self._line
        try:
            for cells in csv.reader(self._decoded(blocks), delimiter=self._delimiter, strict=True):
                line = self._line
                if len(cells) == size:
                    self._numbers.append(line)
                    yield cells
                elif "".join(cells).strip():
                    have = f"the row has {len(cells)} field{'s' * (len(cells) != 1)}, but the header has {size}."
                    remedy = f"Add or remove fields, or write a field with {self._delimiter!r} inside in double quotes."
                    raise InputError(f"{have} {remedy}", row=len(self._numbers), file=self._text.name, line=line)
        except csv.Error as error:
            problem = f'a cell that begins with a quote (") does not end with one, or a cell is too long ({error}).'
            raise InputError(problem, row=len(self._numbers), file=self._text.name, line=line + 1) from None


def _of_several_rows(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines in blocks of several rows, however long these are: each column of a block takes some time."""
    waiting = []
    rows = 0
    for block in blocks:
        waiting.append(block)
        rows += block.count(b"\n")
        if rows >= _TEXT_ROWS:
            yield b"".join(waiting)
            waiting = []
            rows = 0
    yield b"".join(waiting)


def parquet_writer(file: Any, schema: Any, repeating: Sequence[str] = ()) -> Any:
    """Writer of a Parquet file, with dictionaries of texts, whole numbers and ``repeating`` columns.

    Other numbers rarely repeat: with a dictionary they are larger, and take longer to write.
    """
    from pyarrow import parquet, types

    coded = {*repeating}
    coded |= {field.name for field in schema if not (types.is_floating(field.type) or types.is_nested(field.type))}
    return parquet.ParquetWriter(file, schema, use_dictionary=[*coded], write_statistics=[*coded])


def arrow_writer(file: IO[bytes], schema: Any) -> Any:
    """Writer of an Arrow file."""
    from pyarrow import ipc

    return ipc.new_file(file, schema)


def write_typed(
    open_writer: Callable[[IO[bytes], Any], Any], file: IO[bytes], path: str, tables: Iterable[Any]
) -> None:
    """Write tables of pyarrow one after another."""
    tables = iter(tables)
    first = next(tables)
    with open_writer(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def write_lines(file: IO[bytes], path: str, lines: Iterable[bytes]) -> None:
    """Write lines of text."""
    file.writelines(lines)


def write_json(file: IO[bytes], path: str, tables: Iterable[Any]) -> None:
    """Write tables of pyarrow as lines of JSON."""
    for table in tables:
        file.writelines(f"{json.dumps(row)}\n".encode() for row in table.to_pylist())


def write_delimited(file: IO[bytes], path: str, tables: Iterable[Any]) -> None:
    """Write tables of pyarrow as delimited text in the shortest decimals, with quotes around cells that need them."""
    delimiter = "," if path.lower().removesuffix(".gz").endswith(".csv") else "\t"
    for number, table in enumerate(tables):
        columns = [column.cast("string").to_pylist() for column in table.columns]
        header = [table.column_names] if number == 0 else []
        rows = chain(header, zip(*columns, strict=True))
        file.writelines(f"{delimiter.join(map(_cell, row))}\n".encode() for row in rows)


def _cell(text: str | None) -> str:
    """A text as a cell, in quotes if it would otherwise be read differently; nothing for None."""
    if text is None:
        return ""
    if "\0" in text:
        raise InputError(f"{text!r} contains NUL, which delimited text cannot. Write another format, such as Parquet.")
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


class Format(NamedTuple):
    """A format of files of rows.

    Attributes
    ----------
    endings : tuple of str
        Endings of file names; ``.gz`` may follow those of text.
    start : bytes
        First bytes of the files.
    stored : type of Stored, or None
        Class that reads a table from a binary file; None for LETOR text.
    write : callable
        Function that writes tables of pyarrow, or lines of LETOR text, to a binary file, whose name is the second
        argument.
    is_text : bool
        Whether files may be compressed by gzip.
    """

    endings: tuple[str, ...]
    start: bytes
    stored: type[Stored] | None
    write: Callable[[Any, str, Iterable[Any]], None]
    is_text: bool = False


_LETOR = (".txt", ".letor", ".svm", ".svmlight", ".libsvm", ".dat")
FORMATS = {
    "parquet": Format((".parquet", ".pq"), b"PAR1", Parquet, partial(write_typed, parquet_writer)),
    "arrow": Format((".arrow", ".feather", ".ipc"), b"ARROW1", ArrowFile, partial(write_typed, arrow_writer)),
    "jsonl": Format((".jsonl", ".ndjson"), b"{", JsonLines, write_json, is_text=True),
    "csv": Format((".csv", ".tsv", ".tab"), b"", Delimited, write_delimited, is_text=True),
    "letor": Format(_LETOR, b"", None, write_lines, is_text=True),
}
TABLES = tuple(name for name in FORMATS if name != "letor")
ENDINGS = [ending for name in TABLES for ending in FORMATS[name].endings]
"""Endings of the names of tables."""


def format_of(path: object) -> str:
    """Format of a file by its name; other names are those of LETOR text."""
    return _by_ending(path) or "letor"


def is_table(path: object) -> bool:
    """Whether a file's name has the ending of a table."""
    return format_of(path) in TABLES


def is_data(path: object) -> bool:
    """Whether a file's name has the ending of a format."""
    return _by_ending(path) is not None


def _by_ending(path: object) -> str | None:
    name = str(path).lower().removesuffix(".gz")
    return next((format for format, known in FORMATS.items() if name.endswith(known.endings)), None)
