"""What an experiment found, as a table beside the paper's."""

from __future__ import annotations

import textwrap
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

Figures = dict[str, dict[str, float]]
"""Figures by row, then by column."""
_FOLDER = Path(__file__).parent


class MissingDataError(Exception):
    """The data of an experiment are not there."""


@dataclass(frozen=True)
class Table:
    """Our figures and the paper's, by row and column; columns that the paper lacks have ours alone."""

    title: str
    ours: Figures
    paper: Figures = field(default_factory=dict)
    digits: int = 3
    notes: tuple[str, ...] = ()
    after: str = ""

    def __str__(self) -> str:
        published = {column for row in self.paper.values() for column in row}
        columns = list(dict.fromkeys(column for row in self.ours.values() for column in row))
        head = [""]
        for column in columns:
            head += [column, "paper", "diff"] if column in published else [column]
        rows = [head]
        for name, row in self.ours.items():
            rows.append([name])
            for column in columns:
                ours, paper = row[column], self.paper.get(name, {}).get(column)
                rows[-1].append(f"{ours:.{self.digits}f}")
                if column in published:
                    known = paper is not None
                    rows[-1] += [f"{paper:.{self.digits}f}", f"{ours - paper:+.{self.digits}f}"] if known else ["", ""]
        return "\n".join([headed(self.title), aligned(rows), *map(wrapped, self.notes), self.after, ""])


def paper_figures(*names: str) -> Figures:
    """A table of ``paper_figures.toml``; empty where the paper has none."""
    found = tomllib.loads((_FOLDER / "paper_figures.toml").read_text())
    for name in names:
        found = found.get(name, {})
    columns = found.pop("columns", [])
    return {row: dict(zip(columns, values, strict=True)) for row, values in found.items()}


def aligned(rows: list[list[str]]) -> str:
    """Columns of equal width: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"{first.ljust(widths[0])}  {'  '.join(map(str.rjust, others, widths[1:]))}".rstrip() for first, *others in rows
    )


def headed(title: str) -> str:
    return f"{title}\n{'-' * len(title)}"


def wrapped(note: str) -> str:
    return textwrap.fill(note, 118, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def p_text(p_value: float) -> str:
    return f"p = {p_value:.3f}" if p_value >= 0.001 else "p < 0.001"
