"""Formats of tables: by the file's name, by its bytes, and how a file of each is opened."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from rankrls._errors import InputError
from rankrls.io.tables.arrays import Opened
from rankrls.io.tables.text import DelimitedText, Naming
from rankrls.io.tables.typed import TypedTable

FORMATS = ("csv", "parquet", "arrow")
Source = str | os.PathLike[str] | BinaryIO
"""A path or an open binary file; a data frame passes for one too, as far as types go."""

_ENDINGS = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
}
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_FOREIGN = {
    b"\xfd7zXZ": "xz data",
    b"\x28\xb5\x2f\xfd": "zstandard data",
    b"PK\x03\x04": "a zip archive or a workbook of a spreadsheet",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


def table_format(path: object) -> str | None:
    """``"csv"``, ``"parquet"`` or ``"arrow"`` by a file's name; None if the name does not say."""
    name = str(path).lower().removesuffix(".gz")
    return next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)


@contextmanager
def open_table(
    source: Source, format: str, kind: type[InputError], *, delimiter: str = "auto", naming: Naming | None = None
) -> Iterator[Opened]:
    """Open a table and read its header.

    Parameters
    ----------
    source : path, binary file object or data frame
    format : {"auto", "csv", "parquet", "arrow"}
        "auto": by the name, or else by how the file begins and ends.
    kind : type
        Of the errors.
    delimiter : str
        Of text.
    naming : callable, optional
        Of text that may have no line of names: names of the columns, or None if its first row holds them.
    """
    if hasattr(source, "__arrow_c_stream__"):
        yield TypedTable(f"<{type(source).__name__}>", source, "frame", kind)
        return
    with _opened(source) as stream:
        name = str(getattr(source, "name", "<stream>")) if hasattr(source, "read") else os.fspath(source)
        found = (table_format(name) or _by_bytes(stream)) if format == "auto" else format
        if found == "csv":
            start = stream.read(8)
            stream.seek(0)
            what = next((what for magic, what in _FOREIGN.items() if start.startswith(magic)), None)
            if what is not None or _by_bytes(stream) != "csv":
                message = f"this is {what or _by_bytes(stream)}, not delimited text in UTF-8."
                raise kind(message, file=name, parameter="format")
            yield DelimitedText(name, stream, kind, delimiter, naming)
        else:
            yield TypedTable(name, stream, found, kind)


@contextmanager
def _opened(source: Any) -> Iterator[BinaryIO]:
    """A file that can be read twice."""
    if not hasattr(source, "read"):
        with open(source, "rb") as file:
            if file.seekable():
                yield file
                return
            source = file
            yield io.BytesIO(source.read())
        return
    data = source.read()
    if isinstance(data, str):
        raise TypeError("The file must be opened in binary mode ('rb'); this one gives text.")
    yield io.BytesIO(data)


def _by_bytes(file: BinaryIO) -> str:
    """A text may begin with such a word, so both ends are looked at."""
    start = file.read(8)
    end = b""
    with suppress(OSError):
        file.seek(-8, os.SEEK_END)
        end = file.read(8)
    file.seek(0)
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic) and end.endswith(magic)), "csv")
