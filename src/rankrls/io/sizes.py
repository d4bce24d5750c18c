"""Files with the number of rows of each query, as LightGBM and XGBoost keep them."""

from __future__ import annotations

from pathlib import Path

from rankrls._errors import InputError
from rankrls.io._rows import quoted

__all__ = ["read_sizes"]

_DIGITS = 13  # of a number of rows, and one more


def read_sizes(path: Path) -> list[int]:
    """Numbers of rows from a file, one a line."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        lines = ["?"]
    out = []
    for number, line in enumerate(lines, 1):
        word = line.strip()
        if word and not (word.isascii() and word.isdigit() and len(word) < _DIGITS):
            problem = "{0} is not a number of rows;"
            remedy = "it needs the size of each query, one a line."
            raise InputError(problem, quoted(word), remedy=remedy, file=str(path), line=number, parameter="group")
        out += [int(word)] if word else []
    return out
