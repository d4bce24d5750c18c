"""A regular file as blocks of whole lines, each read by whoever works on it."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.threads import map_threads

T = TypeVar("T")

__all__ = ["Block", "read_regions", "whole_lines"]

_LEAST_REGION, _LARGEST_REGION = 1 << 16, 1 << 23
_STEP = 1 << 16
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Block:
    """Whole lines: ``text[first:last]``, the last byte a line end. The file's own bytes are ``text[start:stop]``."""

    text: NDArray[np.uint8]
    first: int
    last: int
    start: int
    stop: int


def whole_lines(area: mmap.mmap, start: int, stop: int, *, at_start: bool) -> Block:
    """Lines as a block; a byte order mark at the file's start is left out, a missing last line end is added."""
    last = stop
    if stop > start and area[stop - 1] != 10:
        area[stop] = 10
        last += 1
    first = start + len(_MARK) if at_start and area[start : start + len(_MARK)] == _MARK else start
    return Block(np.frombuffer(area, dtype=np.uint8), first, last, start, stop)


def read_regions(handle: int, ask: Callable[[Block], T], threads: int) -> list[tuple[Block, T]]:
    """Cut a file into regions, and read the lines that start in each and ask about them, on several threads.

    Parameters
    ----------
    handle : int
        Of an open regular file.
    ask : callable
        Called with each block, by the thread that has just read it.
    threads : int
        How many.

    Returns
    -------
    list of (block, answer)
        In the file's order.
    """
    size = os.fstat(handle).st_size
    step = min(max(size // (4 * threads), _LEAST_REGION), _LARGEST_REGION)

    def work(begin: int) -> tuple[Block, T]:
        block = _region(handle, begin, begin + step)
        return block, ask(block)

    return map_threads(work, range(0, size, step), threads=threads)


def _region(handle: int, begin: int, end: int) -> Block:
    """The lines that start at one of the bytes ``begin`` to ``end - 1``."""
    before = begin - 1 if begin else 0  # the byte before tells whether a line starts at `begin`
    area = mmap.mmap(-1, end - before + _STEP + 1)
    filled = _read(handle, area, 0, end - before, before)
    start = area.find(b"\n", 0, filled) + 1 if begin else 0
    if filled == 0 or (begin and start == 0):  # no line starts here: the region lies inside a long one
        return whole_lines(area, 0, 0, at_start=False)
    stop = filled
    while area[stop - 1] != 10:  # the last line goes on behind the region
        if stop + _STEP >= len(area):
            larger = mmap.mmap(-1, 2 * len(area))
            larger[:stop] = area[:stop]
            area = larger
        count = _read(handle, area, stop, _STEP, before + stop)
        if count == 0:
            break
        line_end = area.find(b"\n", stop, stop + count)
        if line_end >= 0:
            stop = line_end + 1
            break
        stop += count
    return whole_lines(area, start, stop, at_start=begin == 0)


def _read(handle: int, area: mmap.mmap, at: int, count: int, offset: int) -> int:
    """Read up to ``count`` bytes from the file's ``offset`` on to ``area[at]``; fewer only at the file's end."""
    done = 0
    with memoryview(area) as view:
        while done < count:
            with view[at + done : at + count] as rest:
                got = os.preadv(handle, [rest], offset + done)
            if got == 0:
                break
            done += got
    return done
