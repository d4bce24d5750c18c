"""Parquet, Arrow files and data frames, a batch of rows at a time."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io.tables.columns import Refuse
from rankrls.io.tables.parts import Request, Rows
from rankrls.io.tables.values import Values, is_number, is_text, lengths, places

_BATCH_CELLS = 1 << 22
_FIRST_ROWS = 256  # looked at for the length of a column's lists
_BUFFER = 1 << 16  # of each column
_CALLED = {"parquet": "Parquet file", "arrow": "Arrow file", "frame": "data frame"}


class Reader(NamedTuple):
    """What a file or a data frame gives: its schema, all of it as a table, and batches of some rows at a time."""

    schema: Any
    read_all: Callable[[], Any]
    batches: Callable[[int], Iterable[Any]]


@contextmanager
def open_arrow(source: Any, format: str, kind: type[InputError]) -> Iterator[ArrowTable]:
    """Open a Parquet file, an Arrow file or stream (Feather), or a data frame."""
    if format == "frame":
        yield ArrowTable(f"<{type(source).__name__}>", source, format, "", kind)
    elif hasattr(source, "read"):
        data = source.read()
        name = str(getattr(source, "name", "<stream>"))
        yield ArrowTable(name, io.BytesIO(data), format, hashlib.sha256(data).hexdigest(), kind)
    else:
        with open(source, "rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            yield ArrowTable(os.fspath(source), file, format, sha256, kind)


class ArrowTable:
    """A table of typed columns whose schema has been read."""

    textual = False

    def __init__(self, name: str, source: Any, format: str, sha256: str, kind: type[InputError]) -> None:
        self.name, self._source, self._format, self._sha256 = name, source, format, sha256
        self.refuse: Refuse = partial(kind, file=name)
        self._damaged = f"the data of this {_CALLED[format]} are damaged"
        self.metadata: Any = None  # of a Parquet file, which is read once
        with self._understood(f"this is no {_CALLED[format]}, or a damaged one"):
            self.schema = self._reader().schema
            self.columns: Sequence[str] = self.schema.names

    def sha256(self) -> str:
        """Hash of the file's bytes; empty for a data frame."""
        return self._sha256

    def whole(self) -> Any:
        """All of it, as a table of pyarrow."""
        with self._understood(self._damaged):
            table = self._reader().read_all()
            if self._format != "frame":
                validate(table.to_batches())
            return table

    @property
    def row_groups(self) -> list[int]:
        """How many rows are in each row group of a Parquet file."""
        return [self.metadata.row_group(k).num_rows for k in range(self.metadata.num_row_groups)]

    def flow(self, request: Request, groups: range | None = None) -> Flow:
        """What :meth:`parts` reads, of all rows or of some row groups of a Parquet file."""
        columns = places(request)
        texts = [columns[name][0] for name in request.texts.values()]
        step = max(_BATCH_CELLS // max(len(request.numbers) + len(texts), 1), 1)
        start = 0 if groups is None else sum(self.row_groups[: groups.start])
        return Flow(self.batches(step, [*dict.fromkeys(name for name, _ in columns.values())], texts, groups), start)

    def lists(self, others: set[str | None], known: Mapping[str, int] = MappingProxyType({})) -> Mapping[str, int]:
        """How many numbers a list has, of the columns that hold lists of numbers: as many as the first with any."""
        from pyarrow import types

        found = {}
        for name, kind in zip(self.schema.names, self.schema.types, strict=True):
            fixed = types.is_fixed_size_list(kind)
            if name in others or not (fixed or types.is_list(kind) or types.is_large_list(kind)):
                continue
            if not is_number(kind.value_type) or self.schema.names.count(name) > 1:
                continue
            size = kind.list_size if fixed else known.get(name) or self._first_length(name)
            if size:
                found[name] = size
        return found

    def parts(
        self, request: Request, flow: Flow | None = None, rows: range | None = None, out: NDArray[Any] | None = None
    ) -> Iterator[Rows]:
        """All rows, a batch at a time, or some of those that a flow still has; features go into ``out``, if given."""
        self.check_types(request)
        values = Values(request, self.refuse)
        flow = self.flow(request) if flow is None else flow
        row = first = flow.row if rows is None else rows.start
        for batch in flow.take(first, None if rows is None else rows.stop):
            with self._understood(self._damaged):
                into = None if out is None else out[row - first :]
                found = values.rows(batch.num_rows, batch.column, batch.column, row, into)
            yield found
            row += batch.num_rows
        if row == 0:
            raise self.refuse("the table has no rows.")

    def check_types(self, request: Request) -> None:
        """Refuse columns that hold no numbers where numbers are wanted."""
        import pyarrow as pa

        columns = {name: column for name, (column, _) in places(request).items()}
        wanted = {columns[name]: request.otherwise for name in request.numbers if columns[name] not in request.lists}
        wanted |= {columns[name]: "labels are numbers." for name in request.labels}
        if request.weight is not None:
            wanted[columns[request.weight]] = "weights are numbers."
        for column, remedy in wanted.items():
            kind = self.schema.field(column).type
            if not is_number(kind) and not pa.types.is_null(kind):  # if every value is missing, the row is named
                problem = "the column {0!r} holds {1}, no numbers:"
                raise self.refuse(problem, column, kind, remedy=remedy, column=column)

    @contextmanager
    def _understood(self, what: str) -> Iterator[None]:
        """Say what is wrong with the file where pyarrow cannot read it."""
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # names of columns may not be UTF-8
            if isinstance(error, OSError) and error.errno is not None:
                raise
            line = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            raise self.refuse("{0} ({1}).", what, line) from None

    def _reader(
        self, names: Sequence[str] | None = None, ids: Sequence[str] = (), groups: range | None = None
    ) -> Reader:
        """All columns or some, of the three formats."""
        import pyarrow as pa
        from pyarrow import ipc, parquet

        if self._format == "frame":
            table = pa.table(self._source)
            stream = (table if names is None else table.select(names)).to_reader()
            return Reader(stream.schema, stream.read_all, lambda _: stream)
        self._source.seek(0)
        if self._format == "parquet":
            # ids as codes of their different texts, so that a long one is held once
            texts = [] if names is None else [n for n in ids if is_text(self.schema.field(n).type)]
            # as it goes, not whole row groups at once
            how: dict[str, Any] = {"pre_buffer": False, "buffer_size": _BUFFER, "metadata": self.metadata}
            file = parquet.ParquetFile(self._source, read_dictionary=texts, **how)
            self.metadata = file.metadata
            if sum(self.row_groups) != self.metadata.num_rows:
                raise pa.ArrowInvalid("the row groups do not add up to the rows")
            return Reader(file.schema_arrow, file.read, partial(parquet_batches, file, names, groups))
        magic = self._source.read(6)
        self._source.seek(0)
        fields = None if names is None else [self.columns.index(n) for n in names]
        options = ipc.IpcReadOptions(included_fields=fields)
        if magic != b"ARROW1":
            stream = ipc.open_stream(self._source, options=options)
            return Reader(stream.schema, stream.read_all, lambda _: stream)
        held = ipc.open_file(self._source, options=options)
        return Reader(held.schema, held.read_all, lambda _: map(held.get_batch, range(held.num_record_batches)))

    def batches(
        self, rows: int, names: Sequence[str] | None = None, ids: Sequence[str] = (), groups: range | None = None
    ) -> Iterator[Any]:
        """All columns or some, at most so many rows at a time; of Parquet all row groups or some, and ids as codes."""
        with self._understood(self._damaged):
            reader = self._reader(self.columns if names is None else names, ids, groups)
            for batch in reader.batches(rows):
                if self._format != "frame":
                    validate([batch])
                for at in range(0, batch.num_rows, rows):
                    yield batch.slice(at, rows)

    def _first_length(self, column: str) -> int:
        for batch in self.batches(_FIRST_ROWS, [column]):
            long = lengths(batch.column(column))
            if (long > 0).any():
                return int(long[np.argmax(long > 0)])
        return 0


def parquet_batches(file: Any, names: Sequence[str] | None, groups: range | None, rows: int) -> Iterator[Any]:
    """Some columns of a Parquet file, or of some of its row groups."""
    import pyarrow as pa

    # an iteration over all groups keeps what it has unpacked
    for group in range(file.metadata.num_row_groups) if groups is None else groups:
        read, wanted = 0, file.metadata.row_group(group).num_rows
        for batch in file.iter_batches(rows, row_groups=[group], columns=names, use_threads=False):
            read += batch.num_rows
            yield batch
        if read != wanted:  # of a damaged column pyarrow may give fewer, and say nothing
            raise pa.ArrowInvalid(f"{read} rows of {wanted} in row group {group} can be read")
        if groups is None:  # parts that follow each other use the same memory again
            pa.default_memory_pool().release_unused()


class Flow:
    """Rows in their order, of which some are taken now and the next ones later.

    Attributes
    ----------
    row : int
        The first that has not been taken, or passed.
    """

    def __init__(self, batches: Iterator[Any], row: int) -> None:
        self.row, self._batches, self._rest = row, batches, None

    def take(self, start: int, end: int | None) -> Iterator[Any]:
        """Rows from ``start`` on, to ``end`` or to the last; those before are passed."""
        while end is None or self.row < end:
            batch, self._rest = self._rest, None
            if batch is None and (batch := next(self._batches, None)) is None:
                return
            low, high = max(start - self.row, 0), batch.num_rows
            if end is not None and end - self.row < high:
                high = end - self.row
                self._rest = batch.slice(high)
            self.row += high
            if low < high:
                yield batch.slice(low, high - low)


def validate(batches: Sequence[Any]) -> None:
    """Have pyarrow check data of a file: it reads offsets and codes as they are, wherever they point."""
    for batch in batches:
        for column in batch.columns:
            _as_bytes(column).validate(full=True)


def _as_bytes(values: Any) -> Any:
    """Text as bytes, without a copy; what is not UTF-8 is told with its row later."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        return pa.DictionaryArray.from_arrays(
            values.indices, _as_bytes(values.dictionary), ordered=values.type.ordered, safe=False
        )
    kinds = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
    return values.view(kinds[values.type]) if values.type in kinds else values
