"""Recognition and opening of files of rows, of any format."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from rankrls._records import unrecorded
from rankrls.io._letor import LetorText
from rankrls.io._stored import FORMATS, TABLES, Frame
from rankrls.io._text import source_name
from rankrls.io.columns import Reader
from rankrls.io.tables import Table


def format_of(path: object) -> str:
    """Format of a file by its name; other names are those of LETOR text."""
    return _by_ending(path) or "letor"


def is_table(path: object) -> bool:
    """Whether a file's name has the ending of a table."""
    return format_of(path) in TABLES


def is_data(path: object) -> bool:
    """Whether a file's name has the ending of a format."""
    return _by_ending(path) is not None


def _by_ending(path: object) -> str | None:
    name = str(path).lower().removesuffix(".gz")
    return next((format for format, known in FORMATS.items() if name.endswith(known.endings)), None)


@contextmanager
def open_rows(source: Any, format: str) -> Iterator[Reader]:
    """Open a path or a binary file in the given format."""
    name = source_name(source)
    is_open = hasattr(source, "read")
    with nullcontext(source) if is_open else open(source, "rb") as file:
        if format != "letor" and (is_open or not file.seekable()):
            file = io.BytesIO(file.read())
        if format == "auto":
            start = file.read(8)
            file.seek(0)
            format = next(known for known in TABLES if start.startswith(FORMATS[known].start))
        stored = FORMATS[format].stored
        yield LetorText(name, file) if stored is None else Table(name, file, stored)


@contextmanager
def open_table(source: Any, format: str = "auto") -> Iterator[Table]:
    """Open a table and read its header.

    Parameters
    ----------
    source : path, binary file object, data frame or dicts of rows
    format : str, default="auto"
        A format of tables; "auto" selects by the name, or else by the first bytes.
    """
    name = f"<{type(source).__name__}>"
    source = unrecorded(source, "path")
    if hasattr(source, "__arrow_c_stream__"):
        yield Table(name, source, Frame)
        return
    by_name = format_of(source_name(source))
    if format == "auto" and by_name in TABLES:
        format = by_name
    with open_rows(source, format) as table:
        assert isinstance(table, Table)
        yield table
