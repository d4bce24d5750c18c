"""Typed tables as read by pyarrow: data frames, Arrow files, Parquet files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from rankrls._records import array_of
from rankrls.io._text import Text
from rankrls.io.rows import Lines

_BUFFER = 1 << 16  # bytes per column of Parquet


class Stored(ABC):
    """A stored table.

    Attributes
    ----------
    schema : pyarrow Schema
    textual : bool
        Whether all cells are texts.
    text : Text or None
        Text that the table is read from.
    lines : Lines or None
        Lines of the rows that have been read from text.
    group_sizes : list of int
        Number of rows in each row group of a Parquet file.
    """

    schema: Any
    textual = False
    text: Text | None = None
    lines: Lines | None = None
    group_sizes: Sequence[int] = ()

    def as_lines(self) -> Iterator[bytes] | None:
        """Lines, for text with one row per line."""
        return None

    @abstractmethod
    def batches(self, names: list[str], rows: int, groups: range | None) -> Iterator[Any]:
        """Batches of some columns, for all row groups or some."""


class Frame(Stored):
    """A data frame, or the rows of an Arrow file."""

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


def arrow_file(source: Any) -> Frame:
    """Rows of an Arrow file or stream."""
    from pyarrow import ipc

    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    return Frame((ipc.open_file if is_file else ipc.open_stream)(source).read_all())


class Parquet(Stored):
    """A Parquet file."""

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
