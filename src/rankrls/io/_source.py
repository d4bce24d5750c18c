"""A file as blocks of whole lines, unpacked and hashed on the way."""

from __future__ import annotations

import hashlib
import mmap
import os
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from rankrls.io._table import LetorError

__all__ = ["Block", "Text", "read_text"]

_PIECE = 1 << 20
_LEAST_BLOCK, _LARGEST_BLOCK = 1 << 16, 1 << 23
_FOREIGN = {
    b"BZh": "bzip2 data",
    b"\xfd7zXZ": "xz data",
    b"\x28\xb5\x2f\xfd": "zstandard data",
    b"PK\x03\x04": "a zip archive",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


@dataclass(frozen=True)
class Block:
    """Whole lines: ``text[start:stop]``, the last byte a line end. The first ``size`` bytes are the file's own."""

    text: NDArray[np.uint8]
    start: int
    stop: int
    size: int


@dataclass
class Text:
    """A file's text. A block that is not needed any more is replaced by None, which gives its memory back."""

    name: str
    blocks: list[Block | None]
    sha256: Callable[[], str]


class _Source(Protocol):
    def readinto(self, buffer: memoryview) -> int: ...


class _Plain:
    """Bytes as they are, the first of them already taken from the stream."""

    def __init__(self, stream: Any, head: bytes) -> None:
        self._stream, self._head = stream, head

    def readinto(self, buffer: memoryview) -> int:
        if self._head:
            taken = min(len(self._head), len(buffer))
            buffer[:taken] = self._head[:taken]
            self._head = self._head[taken:]
            return taken
        return _read_some(self._stream, buffer)


class _Gunzip:
    """Bytes unpacked from one or several gzip members, each with its checksum verified."""

    def __init__(self, raw: _Source, name: str, digest: Any) -> None:
        self._raw, self._name, self._digest = raw, name, digest
        self._piece = bytearray(_PIECE)
        self._waiting = b""
        self._unpack = zlib.decompressobj(wbits=31)
        self._inside = False  # a member has begun and not ended

    def readinto(self, buffer: memoryview) -> int:
        while True:
            if not self._waiting and not self._refill():
                return 0
            if self._unpack.eof:
                self._waiting = self._waiting.lstrip(b"\0")  # members may be padded with zeros
                if not self._waiting:
                    continue
                self._unpack = zlib.decompressobj(wbits=31)
            self._inside = True
            try:
                data = self._unpack.decompress(self._waiting, len(buffer))
            except zlib.error as error:
                raise LetorError(f"{self._name}: the gzip data are damaged ({error}).") from None
            self._waiting = self._unpack.unused_data if self._unpack.eof else self._unpack.unconsumed_tail
            self._inside = not self._unpack.eof
            if data:
                buffer[: len(data)] = data
                return len(data)

    def _refill(self) -> bool:
        count = self._raw.readinto(memoryview(self._piece))
        if count == 0:
            if self._inside:
                raise LetorError(f"{self._name}: the gzip data end too early; the file is truncated.")
            return False
        self._waiting = bytes(memoryview(self._piece)[:count])
        self._digest.update(self._waiting)
        return True


def _read_some(stream: Any, buffer: memoryview) -> int:
    if hasattr(stream, "readinto"):
        return int(stream.readinto(buffer) or 0)
    data = stream.read(len(buffer))
    if isinstance(data, str):
        raise TypeError("load_letor needs a file that was opened in binary mode ('rb'); this one gives text.")
    buffer[: len(data)] = data
    return len(data)


def read_text(path: str | os.PathLike[str] | BinaryIO, threads: int) -> Text:
    """Read a file, plain or gzip (known by its first bytes), as blocks of whole lines.

    The file is read, not mapped: nothing happens to the rows when somebody changes it later. A byte order mark is
    skipped, a missing line end at the end of the file is added.

    Parameters
    ----------
    path : path or binary file object
        Read to its end.
    threads : int
        How many threads will share the blocks: small files are cut into smaller blocks.

    Raises
    ------
    OSError
        Where the file cannot be opened or read.
    LetorError
        Where it is packed in a way that is not understood, or damaged.
    """
    with ExitStack() as opened:
        if hasattr(path, "read"):
            stream: Any = path
            name = str(getattr(path, "name", "<stream>"))
            size = 0
        else:
            name = os.fspath(path)
            stream = opened.enter_context(open(path, "rb", buffering=0))
            size = os.fstat(stream.fileno()).st_size
        head = bytearray(_PIECE)
        count = _read_some(stream, memoryview(head))
        while 0 < count < 8:  # a pipe may give less than the first bytes that tell the format
            more = _read_some(stream, memoryview(head)[count:])
            if more == 0:
                break
            count += more
        start = bytes(head[:count])
        for magic, what in _FOREIGN.items():
            if start.startswith(magic):
                raise LetorError(f"{name}: this is {what}, not LETOR text; plain text and gzip are read.")
        raw = _Plain(stream, start)
        if start.startswith(b"\x1f\x8b"):
            digest = hashlib.sha256()
            blocks = _blocks(_Gunzip(raw, name, digest), _LARGEST_BLOCK)
            return Text(name, blocks, digest.hexdigest)
        size = min(max(size // (4 * threads), _LEAST_BLOCK), _LARGEST_BLOCK) if size else _LARGEST_BLOCK
        blocks = _blocks(raw, size)
        return Text(name, blocks, lambda: _hash(blocks))


def _hash(blocks: list[Block | None]) -> str:
    digest = hashlib.sha256()
    for block in blocks:
        if block is not None:
            digest.update(block.text[: block.size].data)
    return digest.hexdigest()


def _blocks(source: _Source, size: int) -> list[Block | None]:
    """Cut a source into blocks that end with a line end.

    Anonymous maps rather than arrays: each goes back to the system when its block is dropped, whatever the allocator
    thinks of it.
    """
    blocks: list[Block | None] = []
    carried = b""
    while True:
        capacity = size
        while capacity <= 2 * len(carried):  # a line longer than a block
            capacity *= 2
        area = mmap.mmap(-1, capacity + 1)
        area[: len(carried)] = carried
        filled = _fill(source, area, len(carried), capacity)
        if filled == 0:
            return blocks
        at_end = filled < capacity
        size_here = filled if at_end else area.rfind(b"\n", 0, filled) + 1
        carried = area[size_here:filled]
        if size_here:
            stop = size_here
            if area[stop - 1] != 10:
                area[stop] = 10
                stop += 1
            first = 3 if not blocks and area[:3] == b"\xef\xbb\xbf" else 0
            blocks.append(Block(np.frombuffer(area, dtype=np.uint8), first, stop, size_here))
        if at_end:
            return blocks


def _fill(source: _Source, area: mmap.mmap, filled: int, capacity: int) -> int:
    with memoryview(area) as view:
        while filled < capacity:
            with view[filled:capacity] as rest:
                count = source.readinto(rest)
            if count == 0:
                break
            filled += count
    return filled
