"""Tables and notes as plain text."""

from __future__ import annotations

import textwrap

__all__ = ["aligned", "headed", "p_text", "wrapped"]


def aligned(rows: list[list[str]]) -> str:
    """Columns of equal width: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def headed(title: str, line: str = "-") -> str:
    return f"{title}\n{line * len(title)}"


def wrapped(note: str) -> str:
    return textwrap.fill(note, 118, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def p_text(p_value: float) -> str:
    return f"{p_value:.3f}" if p_value >= 0.001 else "< 0.001"
