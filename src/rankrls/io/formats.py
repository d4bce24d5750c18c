"""Table of formats: recognition, opening and writing of files of rows."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from rankrls._records import unrecorded
from rankrls.io._letor import LetorText
from rankrls.io._stored import (
    ArrowFile,
    Delimited,
    Frame,
    JsonLines,
    Parquet,
    Stored,
    write_arrow,
    write_delimited,
    write_json,
    write_lines,
    write_parquet,
)
from rankrls.io._text import source_name
from rankrls.io.columns import Reader
from rankrls.io.tables import Table


class Format(NamedTuple):
    """A format of files of rows.

    Attributes
    ----------
    endings : tuple of str
        Endings of file names; ``.gz`` may follow those of text.
    start : bytes
        First bytes of the files.
    stored : type of Stored, or None
        Class that reads a table from a binary file; None for LETOR text.
    write : callable
        Function that writes tables of pyarrow, or lines of LETOR text, to a binary file, whose name is the second
        argument.
    is_text : bool
        Whether files may be compressed by gzip.
    """

    endings: tuple[str, ...]
    start: bytes
    stored: type[Stored] | None
    write: Callable[[Any, str, Iterable[Any]], None]
    is_text: bool = False


_LETOR = (".txt", ".letor", ".svm", ".svmlight", ".libsvm", ".dat")
FORMATS = {
    "parquet": Format((".parquet", ".pq"), b"PAR1", Parquet, write_parquet),
    "arrow": Format((".arrow", ".feather", ".ipc"), b"ARROW1", ArrowFile, write_arrow),
    "jsonl": Format((".jsonl", ".ndjson"), b"{", JsonLines, write_json, is_text=True),
    "csv": Format((".csv", ".tsv", ".tab"), b"", Delimited, write_delimited, is_text=True),
    "letor": Format(_LETOR, b"", None, write_lines, is_text=True),
}
TABLES = tuple(name for name in FORMATS if name != "letor")
ENDINGS = [ending for name in TABLES for ending in FORMATS[name].endings]
"""Endings of the names of tables."""


def format_of(path: object) -> str:
    """Format of a file by its name; other names are those of LETOR text."""
    return _by_ending(path) or "letor"


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
