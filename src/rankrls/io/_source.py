"""Text of a file as blocks of whole lines, unpacked and hashed on the way."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO

from rankrls._errors import InputError

Source = str | os.PathLike[str] | BinaryIO
"""A path or an open binary file; a data frame passes for one too, as far as types go."""

_BLOCK = 1 << 20
_FOREIGN = {
    (b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"): "a zip, bzip2, xz or zstandard archive",
    (b"\xff\xfe", b"\xfe\xff"): "UTF-16 text",
    (b"PAR1", b"ARROW1"): "a Parquet or Arrow file",
}


class _Hashed(io.RawIOBase):
    """A binary file that is hashed as it is read."""

    def __init__(self, file: Any) -> None:
        self.digest, self._file = hashlib.sha256(), file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._file.readinto(buffer) or 0)
        self.digest.update(buffer[:count])
        return count


class Text:
    """A file of text, plain or gzip, that is read once.

    Parameters
    ----------
    path : path or binary file object
    kind : type
        Of the errors.

    Attributes
    ----------
    name : str
        For errors.
    sha256 : str
        Of the bytes as they lie on disk, when all blocks have been read.
    """

    def __init__(self, path: Source, kind: type[InputError]) -> None:
        self._path, self._kind, self.sha256 = path, kind, ""
        self.name = str(getattr(path, "name", "<stream>")) if hasattr(path, "read") else os.fspath(path)

    def blocks(self) -> Iterator[bytes]:
        """Whole lines, about a megabyte at a time, without a byte order mark; the last line has an end, too.

        Raises
        ------
        InputError
            For another kind of file, and for gzip data that are damaged.
        OSError
            If the file cannot be read.
        """
        if hasattr(self._path, "read") and not hasattr(self._path, "readinto"):
            raise TypeError("The file must be opened in binary mode ('rb').")
        with ExitStack() as opened:
            given: Any = self._path
            raw = _Hashed(given if hasattr(given, "read") else opened.enter_context(open(given, "rb", buffering=0)))
            text: Any = io.BufferedReader(raw)
            start = text.peek(8)[:8]
            if what := next((what for starts, what in _FOREIGN.items() if start.startswith(starts)), None):
                problem = f"this is {what}, not text; plain text and gzip are read."
                raise self._kind(problem, file=self.name, parameter="format")
            if start.startswith(b"\x1f\x8b"):
                text = gzip.GzipFile(fileobj=text)
            try:
                mark = b"\xef\xbb\xbf"
                while block := text.read(_BLOCK):
                    block += text.readline()
                    yield block.removeprefix(mark) if block.endswith(b"\n") else block.removeprefix(mark) + b"\n"
                    mark = b""
            except EOFError:
                raise self._kind("the gzip data end too early; the file is truncated.", file=self.name) from None
            except (gzip.BadGzipFile, zlib.error) as error:
                raise self._kind(f"the gzip data are damaged ({error}).", file=self.name) from None
            self.sha256 = raw.digest.hexdigest()
