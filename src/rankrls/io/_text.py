"""Text of files as blocks of whole lines, its words and ids."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import DTypeLike

from rankrls._errors import InputError
from rankrls._typing import AnyArray, PathLike


class ArrowStream(Protocol):
    """A data frame of pandas, polars, pyarrow or any other library with Arrow's interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


Source = PathLike | BinaryIO
"""A path or an open binary file."""
TableSource = Source | ArrowStream | Sequence[Mapping[str, object]]
"""A file, a data frame, or dicts of rows."""

_BLOCK = 1 << 20


class _Hashed(io.RawIOBase):
    """A binary file that is hashed while it is read."""

    def __init__(self, file: Any) -> None:
        self.digest = hashlib.sha256()
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._file.readinto(buffer) or 0)
        self.digest.update(buffer[:count])
        return count


def source_name(source: Any) -> str:
    """Name of a path or an open binary file in errors.

    Raises
    ------
    InputError
        If the source is anything else.
    """
    if isinstance(source, str | bytes | os.PathLike):
        return os.fsdecode(source)
    if not hasattr(source, "readinto"):
        problem = "path must be a path, a file opened in binary mode ('rb') or a data frame; got"
        raise InputError(f"{problem} {type(source).__name__}.", parameter="path")
    return str(getattr(source, "name", "<stream>"))


class Text:
    """A text file, plain or gzip, that is read once.

    Parameters
    ----------
    path : path or binary file object

    Attributes
    ----------
    name : str
        Name in errors.
    sha256 : str
        SHA-256 of the bytes on disk, available when all blocks have been read.
    """

    def __init__(self, path: Source) -> None:
        self._path = path
        self.sha256 = ""
        self.name = source_name(path)

    def blocks(self) -> Iterator[bytes]:
        """Whole lines, in blocks of about a megabyte, without a byte order mark; the last line always has an end.

        Raises
        ------
        InputError
            If gzip data are damaged.
        OSError
            If the file cannot be read.
        """
        with ExitStack() as opened:
            given: Any = self._path
            raw = _Hashed(given if hasattr(given, "read") else opened.enter_context(open(given, "rb", buffering=0)))
            text: Any = io.BufferedReader(raw)
            if text.peek(2).startswith(b"\x1f\x8b"):
                text = gzip.GzipFile(fileobj=text)
            try:
                mark = b"\xef\xbb\xbf"
                while block := text.read(_BLOCK):
                    block += text.readline()
                    yield block.removeprefix(mark) if block.endswith(b"\n") else block.removeprefix(mark) + b"\n"
                    mark = b""
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise InputError(f"the gzip data are damaged or truncated ({error}).", file=self.name) from None
            self.sha256 = raw.digest.hexdigest()

    def lines(self) -> Iterator[bytes]:
        """Lines, without their ends."""
        return (line for block in self.blocks() for line in block.split(b"\n")[:-1])


SAVE_AS_UTF8 = "save the file as UTF-8 (of Latin-1: iconv -f latin1 -t utf-8 FILE)."
"""Advice about a name or an id that cannot be decoded."""

LARGEST_SINGLE = float(2**128 - 2**103)
"""Smallest number that is infinite in float32."""

BLANKS = " \t\n\r\v\f"
"""Characters that are stripped from both ends of a cell of text."""

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INT64 = np.iinfo(np.int64)
_SHOWN = 40


def is_utf8(text: bytes) -> bool:
    """Whether bytes can be decoded."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_whole(text: str) -> bool:
    """Whether a text is a whole number in the form of ``str(int)`` that fits int64."""
    return _WHOLE.fullmatch(text) is not None and _INT64.min <= int(text) <= _INT64.max


def quoted(raw: bytes | str) -> str:
    """A word of a file for errors: shortened, and escaped if it cannot be decoded."""
    text = raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw
    short = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
    return repr(short).replace("\\\\", "\\")


def few(names: Sequence[str], most: int = 6) -> str:
    """The first of some names, and the number of the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def float_type(dtype: DTypeLike) -> np.dtype[Any]:
    """float64 or float32; InputError for other types."""
    out = np.dtype(dtype)
    if out not in (np.float64, np.float32):
        raise InputError(f"dtype must be float64 or float32; got {out}.", parameter="dtype")
    return out


def objects(texts: Iterable[str]) -> AnyArray:
    """Strings as an array of references, whose size does not depend on the longest string."""
    return np.array([*texts], dtype=object)


def ids_of(texts: Sequence[str]) -> AnyArray:
    """int64 if every text is a whole number in the form of ``str(int)`` and fits, else the texts."""
    return np.array([*map(int, texts)], dtype=np.int64) if all(map(is_whole, texts)) else objects(texts)


def joined_ids(parts: Sequence[AnyArray]) -> AnyArray:
    """Ids of consecutive rows: int64 if all of them are, else texts, with each different one stored once."""
    if all(part.dtype == np.int64 for part in parts):
        return np.concatenate(parts)
    known: dict[str, str] = {}
    return objects(known.setdefault(text, text) for part in parts for text in map(str, part.tolist()))
