"""Plain files of delimited text, some bytes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls.io.datasets.dataset import Span
from rankrls.io.datasets.files import File, refuse_packed
from rankrls.io.datasets.index import Outline
from rankrls.io.datasets.roles import TableFiles, alike
from rankrls.io.tables.columns import TableError, Wanted
from rankrls.io.tables.delimited import Delimited
from rankrls.io.tables.parts import Rows, Stretch

__all__ = ["DelimitedFiles", "open_delimited_files"]


@dataclass(frozen=True)
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


def open_delimited_files(files: Sequence[File], wanted: Wanted) -> DelimitedFiles:
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
