"""Tables of any format, opened: their columns, and their rows a batch at a time."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from rankrls._cells import cell_number
from rankrls._compiled import n_threads, stream_threads
from rankrls._errors import InputError
from rankrls.io._rows import BLANKS, SAVE_AS_UTF8, Text, source_name

_BATCH_CELLS = 1 << 20
_BUFFER = 1 << 16  # of each column of Parquet
_BLOCK = 1 << 22  # of text
_THREADS = 2  # that cut text into cells: the numbers in them take longer
_DELIMITERS = (b",", b";", b"\t", b"|")
_QUOTED = re.compile(rb'"(?:[^"]|"")*(?:"|$)')
_OPEN_CELL = re.compile(rb'"(?:[^"]++|"")*+"?')


class Format(NamedTuple):
    """A kind of table: what errors call it, how names of its files end, their first bytes, and what opens one.

    ``open`` takes a binary file. What it returns has a ``schema`` of pyarrow and
    ``batches(names, rows, groups)``.
    """

    called: str
    endings: tuple[str, ...]
    start: bytes
    open: Callable[[Any], Any]


def table_format(path: object) -> str | None:
    """``"csv"``, ``"parquet"`` or ``"arrow"`` by a file's name; None if the name does not say."""
    name = str(path).lower().removesuffix(".gz")
    return next((format for format, known in FORMATS.items() if name.endswith(known.endings)), None)


@contextmanager
def open_table(source: Any, format: str = "auto") -> Iterator[Table]:
    """Open a table and read its header.

    Parameters
    ----------
    source : path, binary file object or data frame
    format : {"auto", "csv", "parquet", "arrow"}
        "auto": by the name, or else by the first bytes.
    """
    if hasattr(source, "__arrow_c_stream__"):
        yield Table(f"<{type(source).__name__}>", source, _FRAME)
        return
    name = source_name(source)
    is_open = hasattr(source, "read")
    with nullcontext(source) if is_open else open(source, "rb") as file:
        if is_open or not file.seekable():
            file = io.BytesIO(file.read())
            file.name = name
        if format == "auto":
            start = file.read(8)
            file.seek(0)
            format = table_format(name) or next(k for k, known in FORMATS.items() if start.startswith(known.start))
        yield Table(name, file, FORMATS[format])


class Table:
    """A table whose columns are known, and whose rows have not been read.

    Parameters
    ----------
    name : str
        For errors.
    source : binary file object, or a data frame with ``__arrow_c_stream__``
    format : Format

    Attributes
    ----------
    textual : bool
        Whether all cells are texts.
    columns : list of str
        Names. A column "emb" of lists of numbers is the columns ``emb[0]``, ``emb[1]``, and so on: as many as the
        first list with any has.
    types : dict of str to DataType
        What each column holds.
    group_sizes : list of int
        How many rows are in each row group of a Parquet file.
    lines : Lines or None
        Lines of the rows that have been read, of text.
    refuse : callable
        Makes an error about the table out of a message and further facts.
    """

    def __init__(self, name: str, source: Any, format: Format) -> None:
        self.name = name
        self._format = format
        self.textual = format.open is _Text
        self.refuse: Callable[..., InputError] = partial(InputError, file=name)
        self._source = source
        self.columns: list[str] = []
        self.types: dict[str, Any] = {}
        self._places: dict[str, tuple[str, int | None]] = {}
        self._sizes: dict[str, int] = {}  # of the lists
        with self._understood():
            self._data: Any = format.open(source)
            for field in self._data.schema:
                size = self._list_size(field)
                places = {field.name: None} if size is None else {f"{field.name}[{k}]": k for k in range(size)}
                self.columns += places
                self.types |= dict.fromkeys(places, field.type if size is None else field.type.value_type)
                self._places |= {name: (field.name, place) for name, place in places.items()}
                self._sizes |= {} if size is None else {field.name: size}
        self.group_sizes: list[int] = getattr(self._data, "sizes", [])
        self.lines: Lines | None = self._data.lines if self.textual else None
        twice = next((name for name, count in Counter(self.columns).items() if count > 1), None)
        if twice is not None:
            problem = f"two columns are called {twice!r}; names must differ."
            if not twice:
                problem = "two columns are without a name. The first line must name every column."
            raise self.refuse(problem, column=twice)

    @property
    def sha256(self) -> str:
        """Of the file's bytes as they lie on disk, when it has been read; empty for a data frame."""
        if self._format is _FRAME:
            return ""
        if self.textual:
            return str(self._data.text.sha256)
        self._source.seek(0)
        return hashlib.file_digest(self._source, "sha256").hexdigest()

    def line_of(self, row: int) -> int | None:
        """The line of a row, from 0, of text; None of other formats, or if it cannot be found."""
        return None if self.lines is None else self.lines.of(row)

    def refuse_row(self, row: int, message: str, **facts: Any) -> InputError:
        """An error about a row, from 0, that names its line in text."""
        line = self.line_of(row)
        return self.refuse(f"{'' if line else f'row {row}, counted from 0: '}{message}", row=row, line=line, **facts)

    def stored(self, names: Sequence[str] = (), step: int = _BATCH_CELLS, groups: range | None = None) -> Iterator[Any]:
        """Rows as they are stored, some at a time: of some columns or all, and of all row groups of Parquet or some."""
        with self._understood():
            for batch in self._data.batches([*names] or self._data.schema.names, step, groups):
                if not self.textual:
                    batch.validate(full=True)  # offsets and codes of a file may point anywhere
                yield batch

    def batches(self, names: Sequence[str], groups: range | None = None) -> Iterator[tuple[int, Any]]:
        """Some columns, those of lists one by one, some rows at a time behind the number of the first."""
        names = names or self.columns[:1]  # which counts the rows
        stored = dict.fromkeys(self._places[name][0] for name in names)
        step = max(_BATCH_CELLS // len(names), 1)
        first = row = 0 if groups is None else sum(self.group_sizes[: groups.start])
        for batch in self.stored([*stored], step, groups):
            yield row, self._flat(batch, names, row)
            row += batch.num_rows
        if row == first:
            raise self.refuse("the table has no rows.")

    def _list_size(self, field: Any) -> int | None:
        """How many columns a column of lists of numbers is; None if it is another one."""
        import pyarrow.compute as pc
        from pyarrow import types

        lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
        if not any(is_lists(field.type) for is_lists in lists) or not is_number(field.type.value_type):
            return None
        first = islice(self._data.batches([field.name], 1024, None), 1)
        sizes = (size for batch in first for size in pc.list_value_length(batch.column(0)).to_pylist())
        return next(filter(None, sizes), None)

    def _flat(self, batch: Any, names: Sequence[str], row: int) -> Any:
        """The columns that are asked for, those of lists one by one."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for stored in filter(self._sizes.get, batch.schema.names):
            size = self._sizes[stored]
            lengths = pc.fill_null(pc.list_value_length(batch.column(stored)), -1)
            k = pc.index(pc.equal(lengths, size), False).as_py()
            if k >= 0:
                message = f"column {stored!r} needs a list of {size} numbers, as in other rows."
                raise self.refuse_row(row + k, message, column=stored)
        places = [(batch.column(stored), place) for stored, place in map(self._places.__getitem__, names)]
        columns = [column if place is None else pc.list_element(column, place) for column, place in places]
        return pa.RecordBatch.from_arrays(columns, names=[*names])

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """Say what is wrong with the file if pyarrow cannot read it."""
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            line = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            remedy = f": {SAVE_AS_UTF8}" if isinstance(error, UnicodeDecodeError) else "."
            raise self.refuse(f"this is not {self._format.called}, or it is damaged ({line}){remedy}") from None


def is_number(kind: Any) -> bool:
    """Whether a type is that of numbers or truth values, or of cells that are all missing."""
    from pyarrow import types

    known = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(is_kind(kind) for is_kind in known)


class _Frame:
    """A data frame, or the rows of an Arrow file."""

    def __init__(self, source: Any) -> None:
        import pyarrow as pa

        try:
            self._table = pa.table(source)
        except pa.ArrowException:
            _check_types(source)
            raise
        self.schema = self._table.schema

    def batches(self, names: list[str], rows: int, groups: range | None) -> Iterator[Any]:
        return iter(self._table.select(names).to_batches(rows))


def _check_types(frame: Any) -> None:
    """Refuse a column of a data frame of pandas with values of several types."""
    import pyarrow as pa

    for name in getattr(frame, "columns", ()):
        try:
            pa.array(frame[name], from_pandas=True)
        except pa.ArrowException:
            kinds = sorted({type(value).__name__ for value in frame[name]})
            problem = f"column {name!r} holds values of several types ({', '.join(kinds)})."
            remedy = "Convert it to one, for instance by astype(str)."
            raise InputError(f"{problem} {remedy}", column=name, file=f"<{type(frame).__name__}>") from None


def _arrow(source: Any) -> _Frame:
    from pyarrow import ipc

    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    return _Frame((ipc.open_file if is_file else ipc.open_stream)(source).read_all())


class _Parquet:
    def __init__(self, source: Any) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        # as it goes, not whole row groups at once
        self._file = parquet.ParquetFile(source, pre_buffer=False, buffer_size=_BUFFER)
        found = self._file.metadata
        self.schema = self._file.schema_arrow
        self.sizes = [found.row_group(k).num_rows for k in range(found.num_row_groups)]
        if sum(self.sizes) != found.num_rows:
            raise pa.ArrowInvalid("the row groups do not add up to the rows")

    def batches(self, names: list[str], rows: int, groups: range | None) -> Iterator[Any]:
        import pyarrow as pa

        for group in range(len(self.sizes)) if groups is None else groups:  # one over all keeps what it has unpacked
            read = 0
            for batch in self._file.iter_batches(rows, row_groups=[group], columns=names, use_threads=False):
                read += batch.num_rows
                yield batch.select(names)
            if read != self.sizes[group]:  # of a damaged column
                raise pa.ArrowInvalid("not all rows can be read")


class Lines:
    """The line on which each row of a text file ends, from 1; rows are counted from 0."""

    def __init__(self) -> None:
        self._first_rows: list[int] = []
        self._blocks: list[Sequence[int]] = []

    def append(self, first_row: int, lines: Sequence[int]) -> None:
        """Add the lines of the next rows."""
        self._first_rows.append(first_row)
        self._blocks.append(lines)

    def of(self, row: int) -> int | None:
        """The line of a row; None if it is not known."""
        block = bisect_right(self._first_rows, row) - 1
        if block < 0:
            return None
        lines = self._blocks[block]
        place = row - self._first_rows[block]
        return lines[place] if place < len(lines) else None


class _RowBlock(NamedTuple):
    """Whole rows of text, and the number of lines before them."""

    text: bytes
    before: int


class _Text:
    """Delimited text, which pyarrow reads as text, a block of whole rows at a time.

    Attributes
    ----------
    lines : Lines
        Lines of the rows that have been read.
    """

    def __init__(self, source: Any) -> None:
        import pyarrow as pa

        self.text = Text(source)
        self.lines = Lines()
        self._refuse = partial(InputError, file=self.text.name)
        blocks = self.text.blocks()
        first = next(blocks, b"")
        start = first.lstrip(b" \r\n")
        if not start:
            raise self._refuse("the file is empty.")
        bare = _QUOTED.sub(b"", start.partition(b"\n")[0])
        tabs = self.text.name.removesuffix(".gz").lower().endswith((".tsv", ".tab"))
        self._delimiter = "\t" if tabs else max(_DELIMITERS, key=bare.count).decode()
        self._blocks = self._checked(chain([start], blocks), first.count(b"\n") - start.count(b"\n"))
        self._first = next(self._blocks)
        header = next(csv.reader(io.StringIO(self._first.text.decode(), newline=""), delimiter=self._delimiter))
        if all(math.isfinite(cell_number(cell)) for cell in header):
            raise self._refuse("the first line must name the columns; it holds numbers only.", line=1)
        self.schema = pa.schema([(name.strip(BLANKS), pa.string()) for name in header])

    def _checked(self, blocks: Iterable[bytes], line: int) -> Iterator[_RowBlock]:
        """Rows in UTF-8 whose quotes match: pyarrow takes all rows up to the next quote for one cell."""
        ends = re.escape(f"{self._delimiter}\r\n".encode())
        # stretches without quotes, quotes inside cells that begin with none, and cells in quotes
        pattern = rb'(?:[^"]++|(?<![ENDS])"|"(?:[^"]++|"")*+"(?=[ENDS]))*+'
        well_formed = re.compile(pattern.replace(b"ENDS", ends))
        before = line
        rows = cell = b""
        for block in chain(blocks, [b""]):
            bad = block.find(b"\0")  # of which pyarrow may lose rows
            try:
                block.decode()
            except UnicodeDecodeError as error:
                bad = error.start
            if bad >= 0:
                line += 1 + (cell + block).count(b"\n", 0, len(cell) + bad)
                problem = f"this is not UTF-8 text: {SAVE_AS_UTF8}"
                if block[bad] == 0:
                    problem = "there is a NUL byte, which text cannot hold: the file is damaged, or of another format."
                raise self._refuse(problem, line=line)
            text = b"\n" + cell + block
            end = well_formed.match(text, 1).end()  # type: ignore[union-attr]
            line = line + text.count(b"\n", 1, end)
            cell = text[end:]
            if cell and not (block and _OPEN_CELL.fullmatch(cell)):
                raise self._refuse('a cell begins with a quote (") but does not end with one.', line=line + 1)
            rows += block
            if rows and not cell and (len(rows) >= _BLOCK or not block):
                yield _RowBlock(rows, before)
                before = line
                rows = b""

    def batches(self, names: list[str], rows: int, groups: range | None) -> Iterator[Any]:
        """Some columns, without the blanks around cells; a file is read once."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv

        called = [*map(str, range(len(self.schema)))]
        numbers = dict(zip(self.schema.names, called, strict=True))
        keeping = csv.ConvertOptions(
            check_utf8=False,  # it has been
            column_types=dict.fromkeys(called, pa.string()),
            include_columns=[numbers[name] for name in names],
            strings_can_be_null=False,
        )

        def parse(block: _RowBlock) -> tuple[_RowBlock, Any, list[int]]:
            """The cells of a block, and the numbers of fields of rows that do not fit the names."""
            odd: list[int] = []

            def skip(row: Any) -> str:
                if row.text.strip():
                    odd.append(row.actual_columns)
                return "skip"

            cutting = csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=skip)
            reading = csv.ReadOptions(
                use_threads=False,
                block_size=len(block.text) + 1,
                column_names=called,
                skip_rows_after_names=int(block is self._first),
            )
            return block, csv.read_csv(pa.BufferReader(block.text), reading, cutting, keeping), odd

        first_row = -1  # that of the names
        blocks = chain([self._first], self._blocks)
        for block, found, odd in stream_threads(parse, blocks, threads=min(n_threads(), _THREADS)):
            if odd:
                raise self._uneven(block, first_row, odd[0])
            n_rows = found.num_rows + int(block is self._first)
            self.lines.append(first_row, self._row_lines(block, n_rows))
            first_row += n_rows
            for batch in found.combine_chunks().to_batches():
                yield pa.RecordBatch.from_arrays([*map(pc.ascii_trim_whitespace, batch.columns)], names=names)

    def _uneven(self, block: _RowBlock, first_row: int, n_fields: int) -> InputError:
        """An error about the first row of a block whose fields do not fit the names."""
        n = len(self.schema)
        filled = [(line, cells) for line, cells in self._cells(block) if len(cells) == n or "".join(cells).strip()]
        place = next((k for k, (_, cells) in enumerate(filled) if len(cells) != n), None)
        have = f"the row has {n_fields} field{'s' * (n_fields != 1)}, but the header has {n}."
        remedy = f"Add or remove fields, or write a field with {self._delimiter!r} inside in double quotes."
        row = None if place is None else first_row + place
        line = None if place is None else filled[place][0]
        return self._refuse(f"{have} {remedy}", row=row, line=line)

    def _row_lines(self, block: _RowBlock, n_rows: int) -> Sequence[int]:
        """The lines of a block's rows, with that of the names."""
        if block.text.count(b"\n") == n_rows:
            return range(block.before + 1, block.before + 1 + n_rows)
        return [line for line, cells in self._cells(block) if len(cells) == len(self.schema)]

    def _cells(self, block: _RowBlock) -> Iterator[tuple[int, list[str]]]:
        """The rows of a block by the csv module: the line on which each ends, and its cells."""
        rows = csv.reader(io.StringIO(block.text.decode(), newline=""), delimiter=self._delimiter)
        with suppress(csv.Error):  # of a field that Python finds too long
            yield from ((block.before + rows.line_num, cells) for cells in rows)


_FRAME = Format("a data frame", (), b"", _Frame)
FORMATS = {
    "parquet": Format("a Parquet file", (".parquet", ".pq"), b"PAR1", _Parquet),
    "arrow": Format("an Arrow file", (".arrow", ".feather", ".ipc"), b"ARROW1", _arrow),
    "csv": Format("delimited text", (".csv", ".tsv", ".tab"), b"", _Text),  # the last: other files may be text
}
ENDINGS = [ending for format in FORMATS.values() for ending in format.endings]
