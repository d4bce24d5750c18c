"""Parquet and Arrow files as batches of rows, taken in order, and checked before anybody looks into them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["Flow", "Reader", "parquet_batches", "validate"]


class Reader(NamedTuple):
    """What a file or a data frame gives: its schema, all of it as a table, and batches of some rows at a time."""

    schema: Any
    read_all: Callable[[], Any]
    batches: Callable[[int], Iterable[Any]]


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
