"""Formats of tables: by the file's name, by its bytes, and how a file of each is opened."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, BinaryIO

from rankrls._errors import InputError
from rankrls.io.tables.delimited import Naming, open_delimited
from rankrls.io.tables.parts import Opening

FORMATS = ("csv", "parquet", "arrow")
Source = str | os.PathLike[str] | BinaryIO
"""A path or an open binary file; a data frame passes for one too, as far as types go."""

_ENDINGS = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
}
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}


def table_format(path: object) -> str | None:
    """``"csv"``, ``"parquet"`` or ``"arrow"`` by a file's name; None if the name does not say."""
    name = str(path).lower().removesuffix(".gz")
    return next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)


def format_of(source: Any) -> str:
    """The format of a file by its name, or else by how it begins and ends; ``"frame"`` for a data frame."""
    if hasattr(source, "__arrow_c_stream__"):
        return "frame"
    named = table_format(getattr(source, "name", source))
    if named is not None:
        return named
    if hasattr(source, "read"):
        return _by_bytes(source) if source.seekable() else "csv"
    if not os.path.isfile(source):  # what is not there is told by whoever opens it
        return "csv"
    with open(source, "rb") as file:
        return _by_bytes(file)


def _by_bytes(file: Any) -> str:
    """A text may begin with such a word, so both ends are looked at."""
    here = file.tell()
    start = file.read(8)
    end = b""
    with suppress(OSError, ValueError):
        file.seek(-8, os.SEEK_END)
        end = file.read(8)
    file.seek(here)
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic) and end.endswith(magic)), "csv")


def open_table(
    source: Source, format: str, kind: type[InputError], *, delimiter: str = "auto", naming: Naming | None = None
) -> Opening:
    """Open a table and read its header.

    Parameters
    ----------
    source : path, binary file object or data frame
    format : {"auto", "csv", "parquet", "arrow"}
    kind : type
        Of the errors.
    delimiter : str
        Of text.
    naming : callable, optional
        Of text that may have no line of names: names of the columns, or None if its first row holds them.
    """
    if format == "auto" or hasattr(source, "__arrow_c_stream__"):
        format = format_of(source)
    if format == "csv":
        return open_delimited(source, kind, delimiter, naming)
    from rankrls.io.tables.arrow import open_arrow

    return open_arrow(source, format, kind)
