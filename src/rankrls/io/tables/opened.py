"""Tables of any format, opened: their columns, and their rows a batch at a time."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, BinaryIO

from rankrls._cell_text import number
from rankrls._errors import InputError
from rankrls.io._rows import BLANKS, SAVE_AS_UTF8
from rankrls.io._source import foreign

FORMATS = ("csv", "parquet", "arrow")
Source = str | os.PathLike[str] | BinaryIO
"""A path or an open binary file; a data frame passes for one too, as far as types go."""

_ENDINGS = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
}
_CALLED = {"csv": "delimited text", "parquet": "Parquet file", "arrow": "Arrow file", "frame": "data frame"}
_BATCH_CELLS = 1 << 20
_BUFFER = 1 << 16  # of each column of Parquet
_BLOCK = 1 << 22  # of text
_DELIMITERS = (",", ";", "\t", "|")
_QUOTED = re.compile(r'"(?:[^"]|"")*(?:"|$)')
_OPEN_CELL = re.compile(rb'"(?:[^"]++|"")*+"?')
_ROW = re.compile(r"Row #(\d+)")


def table_format(path: object) -> str | None:
    """``"csv"``, ``"parquet"`` or ``"arrow"`` by a file's name; None if the name does not say."""
    name = str(path).lower().removesuffix(".gz")
    return next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)


@contextmanager
def open_table(source: Source, format: str, kind: type[InputError]) -> Iterator[Table]:
    """Open a table and read its header.

    Parameters
    ----------
    source : path, binary file object or data frame
    format : {"auto", "csv", "parquet", "arrow"}
        "auto": by the name, or else by the first bytes.
    kind : type
        Of the errors.
    """
    if hasattr(source, "__arrow_c_stream__"):
        yield Table(f"<{type(source).__name__}>", source, "frame", kind)
        return
    given: Any = source
    name = str(getattr(source, "name", "<stream>")) if hasattr(source, "read") else os.fspath(given)
    with nullcontext(given) if hasattr(source, "read") else open(given, "rb") as file:
        data = file.read() if file is source or not file.seekable() else None
        if isinstance(data, str):
            raise TypeError("The file must be opened in binary mode ('rb'); this one gives text.")
        stream = file if data is None else io.BytesIO(data)
        start = stream.read(8)
        found = {b"PAR1": "parquet", b"ARRO": "arrow"}.get(start[:4], "csv")
        format = (table_format(name) or found) if format == "auto" else format
        what = foreign(start)
        if format == "csv" and what is not None:
            raise kind(f"this is {what}, not delimited text in UTF-8.", file=name, parameter="format")
        yield Table(name, stream, format, kind)


class Table:
    """A table whose columns are known, and whose rows have not been read.

    Parameters
    ----------
    name : str
        For errors.
    source : binary file object, or a data frame with ``__arrow_c_stream__``
    format : {"csv", "parquet", "arrow", "frame"}
    kind : type
        Of the errors.
    hashed : bool
        Whether the hash of the file's bytes is wanted.

    Attributes
    ----------
    textual : bool
        Whether all cells are texts.
    columns : list of str
        Names. A column "emb" of lists of numbers is the columns ``emb[0]``, ``emb[1]``, and so on: as many as the
        first list with any has.
    types : dict of str to DataType
        What each column holds.
    refuse : callable
        Makes an error about the table out of a message and further facts.
    """

    def __init__(self, name: str, source: Any, format: str, kind: type[InputError], *, hashed: bool = True) -> None:
        self.name, self.format, self.textual = name, format, format == "csv"
        self.refuse: Callable[..., InputError] = partial(kind, file=name)
        self.sha256 = ""
        if hashed and format != "frame":
            source.seek(0)
            self.sha256 = hashlib.file_digest(source, "sha256").hexdigest()
        with self._understood():
            self._data: Any = _Text(source, name, self.refuse) if self.textual else _OPEN[format](source)
            self.columns: list[str] = []
            self.types: dict[str, Any] = {}
            self._places: dict[str, tuple[str, int | None, int]] = {}
            for field in self._data.schema:
                size = self._list_size(field)
                places = [None] if size is None else range(size)
                names = [field.name if place is None else f"{field.name}[{place}]" for place in places]
                self.columns += names
                self.types |= dict.fromkeys(names, field.type if size is None else field.type.value_type)
                self._places |= {n: (field.name, place, size or 0) for n, place in zip(names, places, strict=True)}

    def batches(self, names: Sequence[str], groups: range | None = None) -> Iterator[tuple[int, Any]]:
        """Some columns, some rows at a time behind the number of the first; of Parquet all row groups or some."""
        stored = [*dict.fromkeys(self._places[name][0] for name in names or self.columns[:1])]
        step = max(_BATCH_CELLS // max(len(names), 1), 1)
        row = 0 if groups is None else sum(self.group_sizes[: groups.start])
        first = row
        with self._understood():
            for batch in self._data.batches(stored, step, groups):
                if self.format in ("parquet", "arrow"):
                    batch.validate(full=True)  # offsets and codes of a file may point anywhere
                for start in range(0, batch.num_rows, step):
                    part = batch.slice(start, step)
                    yield row, self._flat(part, names, row)
                    row += part.num_rows
        if row == first:
            raise self.refuse("the table has no rows.")

    def whole(self) -> Any:
        """All rows and columns as they are stored."""
        import pyarrow as pa

        with self._understood():
            table = pa.Table.from_batches([*self._data.batches(self._data.schema.names, _BATCH_CELLS, None)])
            table.validate(full=True)
        return table

    @property
    def group_sizes(self) -> list[int]:
        """How many rows are in each row group of a Parquet file."""
        sizes: list[int] = self._data.sizes
        return sizes

    def _list_size(self, field: Any) -> int | None:
        """How many columns a column of lists of numbers is; None if it is another one."""
        import pyarrow.compute as pc
        from pyarrow import types

        kind = field.type
        if types.is_fixed_size_list(kind) and is_number(kind.value_type):
            return int(kind.list_size)
        if not (types.is_list(kind) or types.is_large_list(kind)) or not is_number(kind.value_type):
            return None
        batch = next(iter(self._data.batches([field.name], 1024, None)), None)
        sizes = [] if batch is None else pc.list_value_length(batch.column(0)).to_pylist()
        return next((size for size in sizes if size), None)

    def _flat(self, batch: Any, names: Sequence[str], row: int) -> Any:
        """The columns that are asked for, those of lists one by one."""
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = []
        checked = set()
        for name in names:
            stored, place, size = self._places[name]
            column = batch.column(stored)
            if place is not None and stored not in checked:
                checked.add(stored)
                odd = pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False) != size
                if odd.any():
                    k = row + int(odd.argmax())
                    message = (
                        f"row {k}, counted from 0: column {stored!r} holds no list of {size} numbers, as others do."
                    )
                    raise self.refuse(message, row=k, column=stored)
            columns.append(column if place is None else pc.list_element(column, place))
        return pa.RecordBatch.from_arrays(columns or [batch.column(0)], names=[*names] or [""])

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """Say what is wrong with the file if pyarrow cannot read it."""
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            line = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            remedy = f": {SAVE_AS_UTF8}" if isinstance(error, UnicodeDecodeError) else "."
            found = _ROW.search(line)
            row = int(found[1]) - 2 if self.textual and found else None  # behind the line of names, and from 0
            message = f"this is no {_CALLED[self.format]}, or it is damaged ({line}){remedy}"
            raise self.refuse(message, row=row) from None


def is_number(kind: Any) -> bool:
    """Whether a type is that of numbers, or of truth values."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


class _Frame:
    def __init__(self, source: Any) -> None:
        import pyarrow as pa

        self._table = pa.table(source)
        self.schema = self._table.schema

    def batches(self, names: list[str], rows: int, groups: range | None) -> Iterator[Any]:
        return iter(self._table.select(names).to_batches(rows))


class _Arrow:
    def __init__(self, source: Any) -> None:
        self._source = source
        self.schema = self._reader()[0].schema

    def _reader(self) -> tuple[Any, Iterator[Any]]:
        from pyarrow import ipc

        self._source.seek(0)
        is_file = self._source.read(6) == b"ARROW1"
        self._source.seek(0)
        if not is_file:
            stream = ipc.open_stream(self._source)
            return stream, iter(stream)
        file = ipc.open_file(self._source)
        return file, map(file.get_batch, range(file.num_record_batches))

    def batches(self, names: list[str], rows: int, groups: range | None) -> Iterator[Any]:
        return (batch.select(names) for batch in self._reader()[1])


class _Parquet:
    def __init__(self, source: Any) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        source.seek(0)
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


class _Text:
    """Delimited text, which pyarrow reads as text; quotes are checked on the way."""

    closed = False

    def __init__(self, source: Any, name: str, refuse: Callable[..., InputError]) -> None:
        import pyarrow as pa

        source.seek(0)
        packed = source.read(2) == b"\x1f\x8b"
        source.seek(0)
        self._bytes = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "gzip") if packed else source
        self._refuse = refuse
        start = self._bytes.read(_BLOCK).removeprefix(b"\xef\xbb\xbf")
        self._start = start.lstrip(b" \r\n")
        if not self._start.strip():
            raise refuse("the file is empty.")
        text = self._start.decode("utf-8", "surrogateescape")
        bare = _QUOTED.sub("", text.partition("\n")[0])
        tabs = name.removesuffix(".gz").lower().endswith((".tsv", ".tab"))
        self._delimiter = "\t" if tabs else max(_DELIMITERS, key=lambda d: (bare.count(d), -_DELIMITERS.index(d)))
        header = next(csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter))
        if all(number(cell.encode("utf-8", "surrogateescape")) is not None for cell in header):
            raise refuse("the first line must name the columns; it holds numbers only.", line=1)
        names = [cell.strip(BLANKS).encode("utf-8", "surrogateescape").decode() for cell in header]
        self.schema = pa.schema([(called, pa.string()) for called in names])
        ends = re.escape(f"{self._delimiter}\r\n".encode())
        # stretches without quotes, quotes inside cells that begin with none, and cells in quotes
        pattern = rb'(?:[^"]++|(?<![ENDS])"|"(?:[^"]++|"")*+"(?=[ENDS]))*+'
        self._well_formed = re.compile(pattern.replace(b"ENDS", ends))
        self._decoder = getincrementaldecoder("utf-8")()
        self._unchecked, self._line = b"\n", start.count(b"\n") - self._start.count(b"\n")

    def batches(self, names: list[str], rows: int, groups: range | None) -> Iterator[Any]:
        """Some columns, without the blanks around cells; a file is read once."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv

        called = [*map(str, range(len(self.schema)))]
        blocks = csv.open_csv(
            pa.PythonFile(self, mode="r"),
            csv.ReadOptions(
                use_threads=False,
                block_size=max(_BLOCK, 64 * len(called)),
                column_names=called,
                skip_rows_after_names=1,
            ),
            csv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
                invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
            ),
            csv.ConvertOptions(
                include_columns=[called[self.schema.names.index(name)] for name in names],
                column_types=dict.fromkeys(called, pa.string()),
                check_utf8=False,  # it has been
                strings_can_be_null=False,
            ),
        )
        for block in blocks:
            yield pa.RecordBatch.from_arrays([*map(pc.ascii_trim_whitespace, block.columns)], names=names)

    def read(self, size: int) -> bytes:
        """The next bytes, for pyarrow, which would take all rows up to the next quote for one cell."""
        data, self._start = self._start[:size], self._start[size:]
        data = data or self._bytes.read(size)
        try:
            self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:  # pyarrow would not say where
            line = self._line + self._unchecked.count(b"\n") + error.object.count(b"\n", 0, error.start)
            raise self._refuse(f"this is not UTF-8 text: {SAVE_AS_UTF8}", line=line) from None
        text = self._unchecked + (data or b"\n")
        end = self._well_formed.match(text, 1).end()  # type: ignore[union-attr]
        if end < len(text) and not (data and _OPEN_CELL.fullmatch(text, end)):
            line = self._line + text.count(b"\n", 0, end)
            raise self._refuse('a cell begins with a quote (") but does not end with one.', line=line)
        self._line += text.count(b"\n", 0, end - 1)
        self._unchecked = text[end - 1 :]
        return data


_OPEN: dict[str, Any] = {"frame": _Frame, "arrow": _Arrow, "parquet": _Parquet}
