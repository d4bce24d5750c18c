"""Blocks of rows: how they are named and cut."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

BLOCK_ROWS = 1024
"""Rows of a block: with a hundred columns it stays in the second-level cache."""

ENTRIES_A_THREAD = 1 << 19
"""Entries of features that a thread is worth where each is read once."""

_PANEL = 128

Rows = NDArray[np.intp] | slice


def row_slices(lo: int, hi: int, step: int = BLOCK_ROWS) -> Iterator[slice]:
    """``slice(lo, hi)`` cut into pieces of at most ``step`` rows."""
    for start in range(lo, hi, step):
        yield slice(start, min(start + step, hi))


def row_numbers(rows: Rows) -> NDArray[np.intp]:
    """Row numbers of a block that is named by them or by a slice."""
    return np.arange(rows.start, rows.stop, dtype=np.intp) if isinstance(rows, slice) else rows


def mirror(block: NDArray[np.float64]) -> None:
    """Copy what is below the diagonal above it, by panels."""
    for panel in row_slices(0, len(block), _PANEL):
        block[: panel.start, panel] = block[panel, : panel.start].T
        corner = np.tril(block[panel, panel])
        block[panel, panel] = corner + np.tril(corner, -1).T
