"""Parquet, Arrow files and data frames, a batch of rows at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io.tables.columns import Refuse

_BATCH_CELLS = 1 << 20
_BUFFER = 1 << 16  # of each column
_CALLED = {"parquet": "Parquet file", "arrow": "Arrow file", "frame": "data frame"}


class TypedTable:
    """A table of typed columns whose schema has been read.

    Parameters
    ----------
    name : str
        For errors.
    source : binary file object, or a data frame with ``__arrow_c_stream__``
    format : {"parquet", "arrow", "frame"}
    kind : type
        Of the errors.
    hashed : bool
        Whether the hash of the file's bytes is wanted.
    """

    textual = False

    def __init__(self, name: str, source: Any, format: str, kind: type[InputError], *, hashed: bool = True) -> None:
        self.name, self._format = name, format
        self.refuse: Refuse = partial(kind, file=name)
        self.sha256 = hashlib.file_digest(source, "sha256").hexdigest() if hashed and format != "frame" else ""
        self._what = f"the data of this {_CALLED[format]} are damaged"
        with self._understood(f"this is no {_CALLED[format]}, or a damaged one"):
            self.schema, self._batches, self.metadata = _OPEN[format](source)
            self.columns: Sequence[str] = self.schema.names

    def lists(self, others: set[str | None]) -> dict[str, int]:
        """How many numbers a list has, of the columns that hold lists of numbers: as many as the first with any."""
        from pyarrow import types

        found = {}
        for name, kind in zip(self.schema.names, self.schema.types, strict=True):
            fixed = types.is_fixed_size_list(kind)
            if not (fixed or types.is_list(kind) or types.is_large_list(kind)) or not is_number(kind.value_type):
                continue
            if name not in others and self.schema.names.count(name) == 1:
                found[name] = kind.list_size if fixed else self._first_length(name)
        return {name: size for name, size in found.items() if size}

    def batches(self, names: Sequence[str], groups: range | None = None) -> Iterator[Any]:
        """Some columns, some rows at a time; of Parquet all row groups or some."""
        import pyarrow as pa

        rows = max(_BATCH_CELLS // max(len(names), 1), 1)
        read = 0
        with self._understood(self._what):
            for batch in self._batches(rows, [*names], groups):
                if self._format != "frame":
                    _validate(batch)
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)
                read += batch.num_rows
            if self.metadata is not None and read != sum(self.rows_of(groups)):
                # of a damaged column pyarrow may give fewer rows, and say nothing
                raise pa.ArrowInvalid("not all rows can be read")
        if read == 0:
            raise self.refuse("the table has no rows.")

    def rows_of(self, groups: range | None = None) -> list[int]:
        """How many rows are in each row group of a Parquet file, or in some of them."""
        chosen = range(self.metadata.num_row_groups) if groups is None else groups
        return [self.metadata.row_group(k).num_rows for k in chosen]

    def _first_length(self, column: str) -> int:
        for batch in self.batches([column]):
            found = lengths(batch.column(0))
            if (found > 0).any():
                return int(found[np.argmax(found > 0)])
        return 0

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
            raise self.refuse(f"{what} ({line}).") from None


Opened = tuple[Any, Callable[[int, list[str], range | None], Iterator[Any]], Any]
"""A schema, what gives batches of some columns, and the metadata of Parquet."""


def _open_frame(source: Any) -> Opened:
    import pyarrow as pa

    table = pa.table(source)
    return table.schema, lambda rows, names, groups: iter(table.select(names).to_batches(rows)), None


def _open_arrow(source: Any) -> Opened:
    from pyarrow import ipc

    source.seek(0)
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    schema = (ipc.open_file if is_file else ipc.open_stream)(source).schema

    def batches(rows: int, names: list[str], groups: range | None) -> Iterator[Any]:
        source.seek(0)
        options = ipc.IpcReadOptions(included_fields=[schema.names.index(name) for name in names])
        if is_file:
            held = ipc.open_file(source, options=options)
            found = map(held.get_batch, range(held.num_record_batches))
        else:
            found = iter(ipc.open_stream(source, options=options))
        yield from (batch.select(names) for batch in found)

    return schema, batches, None


def _open_parquet(source: Any) -> Opened:
    import pyarrow as pa
    from pyarrow import parquet

    source.seek(0)
    # as it goes, not whole row groups at once
    file = parquet.ParquetFile(source, pre_buffer=False, buffer_size=_BUFFER)
    every = range(file.metadata.num_row_groups)
    if sum(file.metadata.row_group(k).num_rows for k in every) != file.metadata.num_rows:
        raise pa.ArrowInvalid("the row groups do not add up to the rows")

    def batches(rows: int, names: list[str], groups: range | None) -> Iterator[Any]:
        for group in every if groups is None else groups:  # an iteration over all keeps what it has unpacked
            for batch in file.iter_batches(rows, row_groups=[group], columns=names, use_threads=False):
                yield batch.select(names)

    return file.schema_arrow, batches, file.metadata


_OPEN = {"frame": _open_frame, "arrow": _open_arrow, "parquet": _open_parquet}


def _validate(batch: Any) -> None:
    """Have pyarrow check data of a file: it reads offsets and codes as they are, wherever they point."""
    for column in batch.columns:
        _as_bytes(column).validate(full=True)


def _as_bytes(values: Any) -> Any:
    """Text as bytes, without a copy; what is not UTF-8 is found with its row later."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        ordered = values.type.ordered
        return pa.DictionaryArray.from_arrays(values.indices, _as_bytes(values.dictionary), ordered=ordered, safe=False)
    kinds = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
    return values.view(kinds[values.type]) if values.type in kinds else values


def is_number(kind: Any) -> bool:
    """Whether a type is that of numbers, or of truth values."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def lengths(values: Any) -> NDArray[np.int64]:
    """Of each list; -1 if it is null."""
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.list_value_length(values), -1).to_numpy(zero_copy_only=False), dtype=np.int64)
