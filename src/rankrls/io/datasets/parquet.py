"""Parquet files of flat columns, some row groups at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io.datasets.dataset import Span
from rankrls.io.datasets.files import File
from rankrls.io.datasets.index import Outline
from rankrls.io.datasets.tables import Alike, TableFiles, alike
from rankrls.io.tables.arrow import ArrowTable, Flow
from rankrls.io.tables.columns import Columns, TableError, Wanted
from rankrls.io.tables.parts import Request, Rows

_NARROW = ("float", "halffloat", "bool", "int8", "uint8", "int16", "uint16")
"""Types whose every value is a float32."""
_LISTS = "lists of "


@dataclass(frozen=True, kw_only=True)
class ParquetFiles(TableFiles):
    """How Parquet files of one schema are read."""

    _stopped: _Stopped = field(default_factory=lambda: _Stopped(), compare=False, repr=False)

    def rows(self, file: File, span: Span, *, ids: bool, out: NDArray[Any] | None) -> Iterator[Rows]:
        """The rows of a span, the features written into ``out``.

        Where a thread has read part of a row group, it goes on from there.
        """
        request = self.request(ids=ids)
        reading, self._stopped.reading = self._stopped.reading, None
        with ExitStack() as held:
            if reading is None or not reading.leads_to(file, span, ids):
                reading = held.enter_context(_Reading.of(file, request, span.first, ids))
            else:
                held.enter_context(reading)
            table = reading.table
            start = sum(table.row_groups[: span.first]) + span.skip
            yield from table.parts(request, reading.flow, range(start, start + span.rows), out)
            if start + span.rows < sum(table.row_groups[: span.last]):
                held.pop_all()
                self._stopped.reading = reading

    def outlines(self, files: Sequence[File]) -> Iterator[Outline]:
        """Query ids, labels and weights of all rows."""
        request = self.request(features=False)
        for number, file in enumerate(files):
            with _opened(file) as table:
                for group, rows in enumerate(table.row_groups):
                    unit = Span(number, group, group + 1, 0, rows, 1)
                    for found in table.parts(request, table.flow(request, range(group, group + 1))) if rows else ():
                        yield Outline(unit, found.texts["qid"], found.y, found.weight)


@dataclass(eq=False)
class _Reading(AbstractContextManager["_Reading"]):
    """A file that is being read from a row group on."""

    file: File
    ids: bool
    stream: ExitStack
    table: ArrowTable
    flow: Flow

    @staticmethod
    def of(file: File, request: Request, group: int, ids: bool) -> _Reading:
        """Begin with a row group."""
        with ExitStack() as held:
            table = held.enter_context(_opened(file))
            flow = table.flow(request, range(group, len(table.row_groups)))
            return _Reading(file, ids, held.pop_all(), table, flow)

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


def open_files(files: Sequence[File], wanted: Wanted) -> ParquetFiles:
    """Read the footers of files, and check that they have one schema.

    Raises
    ------
    InputError
        For columns that are not there or no numbers, a schema that is not that of the first file, and features with
        missing values, as far as the footers know of them.
    """
    first: tuple[Alike[ArrowTable], dict[str, str]] | None = None
    for found in alike(files, wanted, _opened):
        table = found.table
        request = Request.of(found.columns, np.dtype(np.float64), ids=False)
        table.check_types(request)
        types = {name: _type(table.schema.field(name).type) for name in found.columns.stored}
        first = first or (found, types)
        _check_types(found.file, types, first[0].file, first[1])
        for group in _with_nulls(table.metadata, found.columns):  # as far as the footer knows of missing features
            for _ in table.parts(request, table.flow(request, range(group, group + 1))):
                pass
    assert first is not None  # there is a file
    columns = first[0].columns
    kinds = {kind.removeprefix(_LISTS) for name, kind in first[1].items() if name not in columns.others}
    single = kinds <= {*_NARROW} and "float" in kinds
    return ParquetFiles.of("parquet", columns, np.float32 if single else np.float64)


@contextmanager
def _opened(file: File) -> Iterator[ArrowTable]:
    """The file as pyarrow opens it: it reads without Python's lock, which a file of Python's has to take."""
    from pyarrow import OSFile

    with file.opened(OSFile) as stream:
        yield ArrowTable(file.name, stream, "parquet", "", TableError)


def _type(kind: Any) -> str:
    """A column's type; the types of text are one."""
    from pyarrow import types

    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return f"{_LISTS}{kind.value_type}"
    if types.is_dictionary(kind):
        kind = kind.value_type
    return "string" if types.is_large_string(kind) or types.is_string_view(kind) else str(kind)


def _check_types(file: File, types: dict[str, str], first: File, of_first: dict[str, str]) -> None:
    for name, kind in types.items():
        other = of_first[name]
        if kind != other:
            problem = "the column {0!r} holds {1}, but in {2} it holds {3}:"
            remedy = "all files must have one schema (rankrls convert writes such files)."
            raise InputError(problem, name, kind, first.name, other, remedy=remedy, file=file.name, column=name)


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
