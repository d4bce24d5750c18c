"""Blocks of rows: how they are named and cut."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK_ROWS", "ENTRIES_A_THREAD", "Rows", "row_numbers", "row_slices", "slices_of"]

BLOCK_ROWS = 1024
"""Rows of a block: with a hundred columns it stays in the second-level cache."""

ENTRIES_A_THREAD = 1 << 19
"""Entries of features that a thread is worth where each is read once."""

Rows = NDArray[np.intp] | slice


def row_slices(lo: int, hi: int, step: int = BLOCK_ROWS) -> Iterator[slice]:
    """``slice(lo, hi)`` cut into pieces of at most ``step`` rows."""
    for start in range(lo, hi, step):
        yield slice(start, min(start + step, hi))


def slices_of(which: Rows, step: int = BLOCK_ROWS) -> list[Rows]:
    """Rows, named by a slice or by their numbers, cut into pieces of at most ``step``."""
    if isinstance(which, slice):
        return list(row_slices(which.start, which.stop, step))
    return [which[piece] for piece in row_slices(0, len(which), step)]


def row_numbers(rows: Rows) -> NDArray[np.intp]:
    """Row numbers of a block that is named by them or by a slice."""
    return np.arange(rows.start, rows.stop, dtype=np.intp) if isinstance(rows, slice) else rows
