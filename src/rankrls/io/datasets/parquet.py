"""Parquet files of flat columns, some row groups at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io.datasets.dataset import Rows, Span
from rankrls.io.datasets.files import File
from rankrls.io.datasets.index import Outline, Unit
from rankrls.io.datasets.roles import Columns, TableFiles, chosen_columns, same_names
from rankrls.io.tables.arrow import ArrowTable
from rankrls.io.tables.batches import Flow
from rankrls.io.tables.columns import TableError, Wanted
from rankrls.io.tables.parts import Request

__all__ = ["ParquetFiles", "open_parquet"]

_NARROW = ("float", "halffloat", "bool", "int8", "uint8", "int16", "uint16")
"""Types whose every value is a float32."""
_LISTS = "lists of "


@dataclass(frozen=True)
class ParquetFiles(TableFiles):
    """How Parquet files of one schema are read.

    Attributes
    ----------
    single : bool
        Whether X is float32: if every column is no wider, and one of them is float32.
    """

    single: bool = False
    format: str = "parquet"
    _stopped: _Stopped = field(default_factory=lambda: _Stopped(), compare=False, repr=False)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of X."""
        return np.dtype(np.float32 if self.single else np.float64)

    def rows(self, file: File, span: Span, *, ids: bool, out: NDArray[Any] | None) -> Iterator[Rows]:
        """The rows of a span, the features written into ``out``.

        Where a thread has read part of a row group, it goes on from there.
        """
        groups = range(span.first, span.last)
        reading, self._stopped.reading = self._stopped.reading, None
        with ExitStack() as held:
            if reading is None or not reading.leads_to(file, span, ids):
                reading = held.enter_context(_Reading.of(file, self.columns, self.dtype, groups, ids))
            else:
                held.enter_context(reading)
            table = reading.table.within(groups, span.skip, span.rows, out, reading.flow)
            for part in table.parts(reading.request):
                yield self.columns.rows(part)
            if span.skip + span.rows < sum(table.row_groups[span.first : span.last]):
                held.pop_all()
                self._stopped.reading = reading

    def outlines(self, files: Sequence[File]) -> Iterator[Outline]:
        """Query ids, labels and weights of all rows."""
        for number, file in enumerate(files):
            with _opened(file) as stream:
                table = _table(file, stream).holding(self.columns.lists)
                request = self.columns.request(table.columns, self.dtype, features=False)
                for group, rows in enumerate(table.row_groups):
                    unit = Unit(number, group, group + 1, rows)
                    for part in table.within(range(group, group + 1), 0, rows).parts(request) if rows else ():
                        found = self.columns.rows(part)
                        yield Outline(unit, found.qid, found.y, found.weight)


@dataclass(eq=False)
class _Reading(AbstractContextManager["_Reading"]):
    """A file that is being read from a row group on."""

    file: File
    ids: bool
    stream: ExitStack
    table: ArrowTable
    request: Request
    flow: Flow

    @staticmethod
    def of(file: File, columns: Columns, dtype: np.dtype[Any], groups: range, ids: bool) -> _Reading:
        """Begin with the first of some row groups."""
        with ExitStack() as held:
            table = _table(file, held.enter_context(_opened(file))).holding(columns.lists)
            request = columns.request(table.columns, dtype, ids=ids)
            flow = table.flow(request, range(groups.start, len(table.row_groups)))
            return _Reading(file, ids, held.pop_all(), table, request, flow)

    def leads_to(self, file: File, span: Span, ids: bool) -> bool:
        """Whether a span comes next, so that less has to be passed than from the beginning of its row group on."""
        if (self.file, self.ids) != (file, ids):
            return False
        begin = sum(self.table.row_groups[: span.first])
        file.check_status(os.stat(file.path))
        return begin < self.flow.row <= begin + span.skip

    def __exit__(self, *raised: object) -> None:
        self.stream.close()


class _Stopped(threading.local):
    """Where a thread's last part ended, if that is inside a row group. A process that reads too begins anew."""

    reading: _Reading | None = None

    def __reduce__(self) -> Any:
        return _Stopped, ()


def open_parquet(files: Sequence[File], wanted: Wanted) -> ParquetFiles:
    """Read the footers of files, and check that they have one schema.

    Raises
    ------
    InputError
        For columns that are not there or no numbers, a schema that is not that of the first file, and features with
        missing values, as far as the footers know of them.
    """
    first: tuple[File, Columns, dict[str, str]] | None = None
    for file in files:
        with _opened(file) as stream:
            table = _table(file, stream)
            columns = chosen_columns(table, wanted, None if first is None else first[1])
            table = table.holding(columns.lists)
            request = columns.request(table.columns, np.dtype(np.float64))
            table.check_types(request)
            types = {name: _type(table.schema.field(name).type) for name in columns.stored}
            if first is None:
                first = file, columns, types
            else:
                same_names(table.refuse, first[0], first[1], columns)
                _check_types(file, first, types)
            _check_complete(table, columns, request)
    assert first is not None  # there is a file
    others = first[1].others
    kinds = {kind.removeprefix(_LISTS) for name, kind in first[2].items() if name not in others}
    return ParquetFiles(first[1], kinds <= {*_NARROW} and "float" in kinds)


def _opened(file: File) -> AbstractContextManager[BinaryIO]:
    """The file as pyarrow opens it: it reads without Python's lock, which a file of Python's has to take."""
    from pyarrow import OSFile

    return file.opened(OSFile)


def _table(file: File, stream: BinaryIO) -> ArrowTable:
    return ArrowTable(file.name, stream, "parquet", "", TableError)


def _type(kind: Any) -> str:
    """A column's type; the types of text are one."""
    from pyarrow import types

    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return f"{_LISTS}{kind.value_type}"
    if types.is_dictionary(kind):
        kind = kind.value_type
    return "string" if types.is_large_string(kind) or types.is_string_view(kind) else str(kind)


def _check_types(file: File, first: tuple[File, Columns, dict[str, str]], types: dict[str, str]) -> None:
    for name, kind in types.items():
        other = first[2][name]
        if kind != other:
            problem = "the column {0!r} holds {1}, but in {2} it holds {3}:"
            remedy = "all files must have one schema (rankrls convert writes such files)."
            raise InputError(problem, name, kind, first[0].name, other, remedy=remedy, file=file.name, column=name)


def _check_complete(table: ArrowTable, columns: Columns, request: Request) -> None:
    """Refuse missing features that the footer knows of, by reading the row groups that have them."""
    for group in _with_nulls(table.metadata, columns):
        for _ in table.within(range(group, group + 1), 0, table.row_groups[group]).parts(request):
            pass


def _with_nulls(metadata: Any, columns: Columns) -> Iterator[int]:
    """The row groups in which the footer counts missing values of features."""
    flat, lists = {*columns.features}, tuple(f"{name}." for name in columns.lists)
    for k in range(metadata.num_row_groups):
        group = metadata.row_group(k)
        for column in map(group.column, range(group.num_columns)):
            name = column.path_in_schema
            wanted = name in flat or (lists and name.startswith(lists))
            if wanted and column.is_stats_set and column.statistics.null_count:
                yield k
                break
