"""Results as people read them: in a terminal, in a notebook, and by ``repr`` alike."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_WIDTH = 110  # where there is no terminal


class Shown(ABC):
    """A result whose ``repr`` is its printed text; a notebook shows the same."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre style="overflow-x: auto">{escape(str(self))}</pre>'

    @abstractmethod
    def __str__(self) -> str:
        """The result in words and tables."""


def table_text(columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """A table as text: the first columns are set to the left and the others to the right.

    If it is wider than the terminal, each cell has the name of its column beside it.
    """
    lines = [columns, *rows] if any(columns) else rows
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    if sum(widths) + 2 * len(widths) - 2 > shutil.get_terminal_size((_WIDTH, 24)).columns and any(columns):
        named = [[f"{name} {cell}".strip() for name, cell in zip(columns, row, strict=True) if cell] for row in rows]
        return "\n".join(map("  ".join, named))
    spec = "  ".join(f"{{:{'<' if k < left else '>'}{width}}}" for k, width in enumerate(widths))
    return "\n".join(spec.format(*line).rstrip() for line in lines)


def records(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A table by columns as a dictionary for each row."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def p_text(value: float) -> str:
    """A p value; the smallest are not written as 0."""
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"
