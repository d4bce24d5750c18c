"""Plain files of delimited text, some bytes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankrls.io.datasets.dataset import Rows, Span
from rankrls.io.datasets.files import File, refuse_packed
from rankrls.io.datasets.index import Outline, Unit
from rankrls.io.datasets.roles import Columns, TableFiles, chosen_columns, same_names
from rankrls.io.tables.columns import TableError, Wanted
from rankrls.io.tables.delimited import Delimited
from rankrls.io.tables.parts import Stretch

__all__ = ["DelimitedFiles", "open_delimited_files"]


@dataclass(frozen=True)
class DelimitedFiles(TableFiles):
    """How files of delimited text with the same columns are read."""

    format: str = "csv"

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of X."""
        return np.dtype(np.float64)

    def rows(self, file: File, span: Span, *, ids: bool, out: NDArray[Any] | None) -> Iterator[Rows]:
        """The rows of a span, the features written into ``out``."""
        assert out is not None
        with file.opened() as stream:
            table = _table(file, stream)
            request = self.columns.request(table.columns, self.dtype, ids=ids)
            place, skip, done = Stretch(span.first, span.last, span.line), span.skip, 0
            for part in table.within(stream, place).parts(request):
                here = slice(min(skip, len(part.X)), min(skip + span.rows - done, len(part.X)))
                skip -= here.start
                found = self.columns.rows(part).among(here)
                out[done : (done := done + len(found.X))] = found.X
                yield found
                if done == span.rows:
                    return

    def outlines(self, files: Sequence[File]) -> Iterator[Outline]:
        """Query ids, labels and weights of all rows."""
        for number, file in enumerate(files):
            with file.opened() as stream:
                table = _table(file, stream)
                for part in table.parts(self.columns.request(table.columns, self.dtype, features=False)):
                    assert part.stretch is not None
                    found = self.columns.rows(part)
                    unit = Unit(number, part.stretch.first, part.stretch.last, len(part.X), part.stretch.line)
                    yield Outline(unit, found.qid, found.y, found.weight, part.lines)


def open_delimited_files(files: Sequence[File], wanted: Wanted) -> DelimitedFiles:
    """Read the lines that name the columns, and check that the files have the same ones.

    Raises
    ------
    InputError
        For columns that are not there or not those of the first file, and for packed text.
    """
    first: tuple[File, Columns] | None = None
    for file in files:
        with file.opened() as stream:
            refuse_packed(file, stream)
            table = _table(file, stream)
            columns = chosen_columns(table, wanted)
            if first is None:
                first = file, columns
            else:
                same_names(table.refuse, first[0], first[1], columns)
    assert first is not None  # there is a file
    return DelimitedFiles(first[1])


def _table(file: File, stream: BinaryIO) -> Delimited:
    return Delimited(file.name, stream, None, TableError, "auto", None)
