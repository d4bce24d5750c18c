"""Tables with the same columns in every file, and those of delimited text, some bytes at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankrls.io.datasets.dataset import Source, Span
from rankrls.io.datasets.files import File, refuse_packed
from rankrls.io.datasets.index import Outline
from rankrls.io.tables.columns import Columns, Refuse, TableError, Wanted, assign
from rankrls.io.tables.delimited import Delimited
from rankrls.io.tables.parts import Opened, Request, Rows, Stretch

T = TypeVar("T", bound=Opened)


@dataclass(frozen=True, kw_only=True)
class TableFiles(Source):
    """How tables with the same columns are read."""

    columns: Columns

    @classmethod
    def of(cls, format: str, columns: Columns, dtype: type[np.floating]) -> Self:
        """Of files with these columns, among them that of the query ids."""
        return cls(
            format=format,
            feature_names=columns.features,
            n_features=len(columns.features),
            dtype=np.dtype(dtype),
            has_weights=columns.weight is not None,
            qid_name=columns.qid,
            roles=(columns.label, columns.qid or "", columns.id),
            columns=columns,
        )

    @property
    def row_bytes(self) -> int:
        """Bytes of the features of a row."""
        return self.n_features * self.dtype.itemsize

    def request(self, *, features: bool = True, ids: bool = False) -> Request:
        """What is read of a table: all, or what the index looks at."""
        return Request.of(self.columns, self.dtype, features=features, ids=ids, lines=not features)

    def settled(self) -> Self:
        """How the rows are read, after all have been looked at."""
        return self


@dataclass(frozen=True)
class Alike(Generic[T]):
    """A table whose columns are those of the first one, and its file."""

    file: File
    table: T
    columns: Columns


def alike(
    files: Sequence[File], wanted: Wanted, opener: Callable[[File], AbstractContextManager[T]]
) -> Iterator[Alike[T]]:
    """The tables of files, one after another, of which the first says how long lists are.

    Raises
    ------
    InputError
        If a column is not there; query ids have to be. If the columns are not those of the first file, whose order may
        be another.
    """
    first: Alike[T] | None = None
    for file in files:
        with opener(file) as table:
            found = Alike(file, table, _chosen(table, wanted, first.columns if first else None))
            first = first or found
            _check_names(table.refuse, first, found.columns.names)
            yield found


def _chosen(table: Opened, wanted: Wanted, known: Columns | None) -> Columns:
    """The columns of a file; ``known`` are those of another one."""
    named = {wanted.label, wanted.qid, wanted.id, wanted.weight, *wanted.usual_names.values()}
    columns = assign(table.refuse, table.columns, wanted, table.lists(named, known.lists if known else {}))
    if columns.qid is None:
        problem = "there is no column {0!r}:"
        remedy = (
            "Name the column of query ids by {qid}. One ranking of all rows needs one too, with the same id in each."
        )
        name = wanted.usual_names["qid"]
        raise table.refuse(problem, name, remedy=remedy, column=name, parameter="qid")
    return columns


def _check_names(refuse: Refuse, first: Alike[T], found: Sequence[str]) -> None:
    known, remedy = first.columns.names, "All files must have one schema; {features} names the columns that are read."
    for these, others, problem in (
        (known, {*found}, "there is no column {0!r}, which {1} has:"),
        (found, {*known}, "there is a column {0!r}, which {1} does not have:"),
    ):
        for name in these:
            if name not in others:
                raise refuse(problem, name, first.file.name, remedy=remedy, column=name)


@dataclass(frozen=True, kw_only=True)
class DelimitedFiles(TableFiles):
    """How files of delimited text with the same columns are read."""

    def rows(self, file: File, span: Span, *, ids: bool, out: NDArray[Any] | None) -> Iterator[Rows]:
        """The rows of a span."""
        with _opened(file) as table:
            before = 0
            for found in table.parts(self.request(ids=ids), Stretch(span.first, span.last, span.line)):
                here = span.among(before, len(found.X))
                yield found.among(here)
                if (before := before + here.stop) == span.skip + span.rows:
                    return

    def outlines(self, files: Sequence[File]) -> Iterator[Outline]:
        """Query ids, labels and weights of all rows."""
        for number, file in enumerate(files):
            with _opened(file) as table:
                for found in table.parts(self.request(features=False)):
                    assert found.stretch is not None
                    first, last, line = found.stretch
                    unit = Span(number, first, last, 0, len(found.X), line)
                    yield Outline(unit, found.texts["qid"], found.y, found.weight, found.lines)


def open_files(files: Sequence[File], wanted: Wanted) -> DelimitedFiles:
    """Read the lines that name the columns, and check that the files have the same ones.

    Raises
    ------
    InputError
        For columns that are not there or not those of the first file, and for packed text.
    """
    first, *_ = alike(files, wanted, _opened)
    return DelimitedFiles.of("csv", first.columns, np.float64)


@contextmanager
def _opened(file: File) -> Iterator[Delimited]:
    with file.opened() as stream:
        refuse_packed(file, stream)
        yield Delimited(file.name, stream, None, TableError, "auto", None)
