"""Parquet files of flat columns, some row groups at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io.datasets.dataset import Rows, Span
from rankrls.io.datasets.files import File
from rankrls.io.datasets.index import Outline, Unit
from rankrls.io.datasets.roles import Columns, TableFiles, chosen_columns, same_names
from rankrls.io.tables.arrow import ArrowTable
from rankrls.io.tables.columns import TableError, Wanted
from rankrls.io.tables.parts import Request

__all__ = ["ParquetFiles", "open_parquet"]

_NARROW = ("float", "halffloat", "bool", "int8", "uint8", "int16", "uint16")
"""Types whose every value is a float32."""


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

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of X."""
        return np.dtype(np.float32 if self.single else np.float64)

    def rows(self, file: File, span: Span, *, ids: bool, out: NDArray[Any] | None) -> Iterator[Rows]:
        """The rows of a span, the features written into ``out``."""
        with _opened(file) as stream:
            table = _table(file, stream)
            request = self.columns.request(table.columns, self.dtype, ids=ids)
            for part in table.within(range(span.first, span.last), span.skip, span.rows, out).parts(request):
                yield self.columns.rows(part)

    def outlines(self, files: Sequence[File]) -> Iterator[Outline]:
        """Query ids, labels and weights of all rows."""
        for number, file in enumerate(files):
            with _opened(file) as stream:
                table = _table(file, stream)
                request = self.columns.request(table.columns, self.dtype, features=False)
                for group, rows in enumerate(table.row_groups):
                    unit = Unit(number, group, group + 1, rows)
                    for part in table.within(range(group, group + 1), 0, rows).parts(request) if rows else ():
                        found = self.columns.rows(part)
                        yield Outline(unit, found.qid, found.y, found.weight)


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
            columns = chosen_columns(table, wanted)
            request = columns.request(table.columns, np.dtype(np.float64))
            table.check_types(request)
            types = {name: _type(table.schema.field(name).type) for name in columns.names}
            if first is None:
                first = file, columns, types
            else:
                same_names(table.refuse, first[0], first[1], columns)
                _check_types(file, first, types)
            _check_complete(table, columns, request)
    assert first is not None  # there is a file
    kinds = {first[2][name] for name in first[1].features}
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
    for group in table.groups_with_nulls(columns.features):
        for _ in table.within(range(group, group + 1), 0, table.row_groups[group]).parts(request):
            pass
