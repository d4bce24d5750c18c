"""A file as blocks of whole lines, unpacked and hashed on the way."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from rankrls.io._table import LetorError

_PIECE = 1 << 20
_LEAST_BLOCK, _LARGEST_BLOCK = 1 << 16, 1 << 21
_MARK = b"\xef\xbb\xbf"
_FOREIGN = {
    b"BZh": "bzip2 data",
    b"\xfd7zXZ": "xz data",
    b"\x28\xb5\x2f\xfd": "zstandard data",
    b"PK\x03\x04": "a zip archive",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
}


@dataclass(frozen=True)
class Block:
    """Whole lines: ``text[first:last]``, the last byte a line end; ``area`` is the memory that they are in."""

    text: NDArray[np.uint8]
    first: int
    last: int
    area: bytearray


class _Source(Protocol):
    def readinto(self, buffer: memoryview) -> int: ...


class _Raw(io.RawIOBase):
    """Bytes as they are, hashed on the way; ``start`` has the first of them."""

    def __init__(self, stream: Any) -> None:
        self.digest = hashlib.sha256()
        self.start = self._waiting = _first_bytes(stream)
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._waiting:
            count = min(len(self._waiting), len(buffer))
            buffer[:count], self._waiting = self._waiting[:count], self._waiting[count:]
        else:
            count = _read_some(self._stream, buffer)
        self.digest.update(buffer[:count])
        return count


class _Gunzip:
    """Bytes unpacked from one or several gzip members, each with its checksum verified."""

    def __init__(self, raw: _Raw, name: str) -> None:
        self._refuse = partial(LetorError, file=name)
        self._file = gzip.GzipFile(fileobj=io.BufferedReader(raw, _PIECE), mode="rb")
        if len(raw.start) > 3 and raw.start[3] & 0xE0:  # Python ignores what no reader may (RFC 1952, 2.3.1.2)
            raise self._refuse("the gzip data are damaged (unknown flags of their header).")

    def readinto(self, buffer: memoryview) -> int:
        try:
            return self._file.readinto(buffer)
        except EOFError:
            raise self._refuse("the gzip data end too early; the file is truncated.") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise self._refuse(f"the gzip data are damaged ({error}).") from None


def _read_some(stream: Any, buffer: memoryview) -> int:
    if hasattr(stream, "readinto"):
        return int(stream.readinto(buffer) or 0)
    data = stream.read(len(buffer))
    if isinstance(data, str):
        raise TypeError("The file must be opened in binary mode ('rb'); this one gives text.")
    buffer[: len(data)] = data
    return len(data)


def block_size(size: int | None, threads: int) -> int:
    """Bytes of a block of a file, of which the threads shall have some each; the largest if its size is not known."""
    return _LARGEST_BLOCK if size is None else min(max(size // (4 * threads), _LEAST_BLOCK), _LARGEST_BLOCK)


def foreign(start: bytes) -> str | None:
    """What a file is that starts so, where it is neither text nor gzip."""
    return next((what for magic, what in _FOREIGN.items() if start.startswith(magic)), None)


@contextmanager
def open_bytes(path: str | os.PathLike[str] | BinaryIO) -> Iterator[tuple[str, bytes, _Source, Any]]:
    """A file to be read once from end to end, plain or gzip: its name, its first bytes, its bytes, and a running hash.

    The hash is of the bytes as they lie on disk, and whole when everything has been read.
    """
    with ExitStack() as opened:
        if hasattr(path, "read"):
            stream: Any = path
            name = str(getattr(path, "name", "<stream>"))
        else:
            name = os.fspath(path)
            stream = opened.enter_context(open(path, "rb", buffering=0))
        raw = _Raw(stream)
        packed = raw.start.startswith(b"\x1f\x8b")
        yield name, raw.start, _Gunzip(raw, name) if packed else raw, raw.digest


def _first_bytes(stream: Any) -> bytes:
    head = bytearray(64)
    count = 0
    while count < 8:  # a pipe may give less than what tells the format
        more = _read_some(stream, memoryview(head)[count:])
        if more == 0:
            break
        count += more
    return bytes(head[:count])


def blocks(
    source: _Source, size: int = _LARGEST_BLOCK, *, at_start: bool = True, spare: list[bytearray] | None = None
) -> Iterator[Block]:
    """Cut a source into blocks that end with a line end; a byte order mark at the start of a file is left out.

    Whoever needs a block no more may put its area into ``spare``, for one of the next.
    """
    carried, first = b"", at_start
    while True:
        capacity = size
        while capacity <= 2 * len(carried):  # a line longer than a block
            capacity *= 2
        area = spare.pop() if spare and capacity == size else bytearray(capacity + 1)
        area[: len(carried)] = carried
        filled = _fill(source, area, len(carried), capacity)
        if filled == 0:
            return
        at_end = filled < capacity
        stop = filled if at_end else area.rfind(b"\n", 0, filled) + 1
        carried = bytes(area[stop:filled])
        if stop:
            yield _whole_lines(area, stop, at_start=first)
            first = False
        if at_end:
            return


def _whole_lines(area: bytearray, stop: int, *, at_start: bool) -> Block:
    """Lines as a block; a byte order mark at the file's start is left out, a missing last line end is added."""
    last = stop
    if area[stop - 1] != 10:
        area[stop] = 10
        last += 1
    first = len(_MARK) if at_start and area[: len(_MARK)] == _MARK else 0
    return Block(np.frombuffer(area, dtype=np.uint8), first, last, area)


def _fill(source: _Source, area: bytearray, filled: int, capacity: int) -> int:
    with memoryview(area) as view:
        while filled < capacity:
            with view[filled:capacity] as rest:
                count = source.readinto(rest)
            if count == 0:
                break
            filled += count
    return filled
