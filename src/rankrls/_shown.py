"""Results as people read them: in a terminal, in a notebook, and by ``repr`` alike."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

_WIDTH = 110  # where there is no terminal
_MOST = 10


class Shown(ABC):
    """A result whose ``repr`` is its printed text; a notebook shows the same."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre style="overflow-x: auto">{escape(str(self))}</pre>'

    @abstractmethod
    def __str__(self) -> str:
        """The result in words and tables."""


def table_text(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    width: int | None = None,
    *,
    left: int = 1,
    rule: str = "",
) -> str:
    """A table as text: the first columns are set to the left and the others to the right.

    One block a row if it is wider than the terminal, whose width the variable COLUMNS says first. ``rule`` is a
    character of the line below the names of the columns, if there is one.
    """
    lines = [*rows]
    widths = [max(len(row[k]) for row in (columns, *lines)) for k in range(len(columns))]
    room = shutil.get_terminal_size((_WIDTH, 24)).columns if width is None else width
    gap = " " * (3 if rule else 2)
    total = sum(widths) + len(gap) * (len(widths) - 1)
    if total > room and left < len(columns):
        return "\n".join(_blocks(columns, lines, left))
    spec = gap.join(f"{{:{'<' if k < left else '>'}{w}}}" for k, w in enumerate(widths))
    head = [spec.format(*columns), *([rule * total] if rule else [])] if any(columns) else []
    return "\n".join(line.rstrip() for line in (*head, *(spec.format(*row) for row in lines)))


def _blocks(columns: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> list[str]:
    """Lines of a table that is too wide: the first cells of each row, and below them each other cell with its name."""
    names = [name.strip() for name in columns]
    wide = max(len(name) for name in names[left:])
    out = []
    for row in rows:
        out.append("  ".join(f"{name} {cell}".strip() for name, cell in zip(names, row[:left], strict=False) if cell))
        cells = zip(names[left:], row[left:], strict=True)
        out += [f"  {name:<{wide}}  {cell}".rstrip() for name, cell in cells if cell]
    return out


def records(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A table by columns as a dictionary for each row."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def head_rows(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """The first rows, and dots if there are more."""
    return [*rows[:_MOST], ["..."] + [""] * (len(rows[0]) - 1)] if len(rows) > _MOST else [*rows]


def p_text(value: float) -> str:
    """A p value; the smallest are not written as 0."""
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"
