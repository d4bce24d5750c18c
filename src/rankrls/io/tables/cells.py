"""Delimited text cell by cell: slower than pyarrow, but exact, and able to say where something is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from rankrls._cell_text import MISSING
from rankrls._errors import InputError
from rankrls.io._rows import quoted

_BLANKS = b" \r\n"
_BLANK_LINES = re.compile(rb"(?:\n++| *+\r*+\n)++")
_CURRENCY = r"[$€£¥₹%]|[A-Z]{3}(?= )|(?<= )[A-Z]{3}"
_DRESSED = re.compile(
    rf"(?P<sign>[+-]?)(?P<before>{_CURRENCY})?\s*(?P<number>(?:[0-9]+|[0-9]{{1,3}}(?:,[0-9]{{3}})+)(?:\.[0-9]*)?)"
    rf"\s*(?P<after>{_CURRENCY})?"
)
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_WITHOUT = "without signs of currency or percent and without separators of thousands."


class Record(NamedTuple):
    """A row of text: the line in which it begins, its cells, and where its bytes lie."""

    line: int
    cells: list[bytes]
    start: int
    end: int


class Unreadable(Exception):  # noqa: N818
    """Text that is not made of rows, from a record on.

    Attributes
    ----------
    line, cell : int
        Where, both counted from 1.
    start : int
        First byte of the record.
    open : bool
        The text ends inside the cell, so that more text might complete it.
    """

    def __init__(self, line: int, cell: int, start: int, open: bool) -> None:
        super().__init__()
        self.line, self.cell, self.start, self.open = line, cell, start, open

    @property
    def problem(self) -> str:
        """What is wrong with the cell, as a template without values."""
        if self.open:
            return f'cell {self.cell} begins with a quote (") that is never closed.'
        return f"something stands behind the closing quote of cell {self.cell}, or a line end is broken."


def _patterns(delimiter: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """A cell with what ends it, and a cell that the end of the text cuts off."""
    d = re.escape(delimiter)
    inside = rb'[^"]*+(?:""[^"]*+)*+'
    cell = rb' *+(?:"(' + inside + rb')" *+|([^" \r\n' + d + rb"][^\r\n" + d + rb"]*+)?)(" + d + rb"|\r*+\n)"
    cut = rb' *+(?:"' + inside + rb'"?[ \r]*+|[^\r\n' + d + rb"]*+\r*+)\Z"
    return re.compile(cell), re.compile(cut)


def records(text: bytes | bytearray, delimiter: bytes, line: int = 1) -> Iterator[Record]:
    """Rows of text that are not blank.

    Cells stand between delimiters. One that begins with a quote goes on to the closing quote, holds line ends and
    delimiters as they are, and a quote as two; blanks around it do not count. Blanks around other cells are no part of
    them.

    Raises
    ------
    Unreadable
        At the first record that is none, or that the text does not complete.
    """
    cell, cut = _patterns(delimiter)
    data, start = bytes(text), 0
    while start < len(data):
        end = data.find(b"\n", start) + 1
        row = data[start : end - 1].rstrip(b"\r") if end else b'"'
        if b'"' not in row and b"\r" not in row:
            if row.strip(_BLANKS):
                yield Record(line, [part.strip() for part in row.split(delimiter)], start, end)
            elif blank := _BLANK_LINES.match(data, end):
                end = blank.end()
            line, start = line + data.count(b"\n", start, end), end
            continue
        cells: list[bytes] = []
        at, stop = start, delimiter
        while stop == delimiter:
            found = cell.match(data, at)
            if found is None:
                raise Unreadable(line, len(cells) + 1, start, cut.match(data, at) is not None)
            inside, bare, stop = found.groups()
            cells.append((bare or b"").strip() if inside is None else inside.replace(b'""', b'"'))
            at = found.end()
        yield Record(line, cells, start, at)
        line += data.count(b"\n", start, at)
        start = at


def split_words(text: str, parameter: str) -> list[str]:
    """Words between commas, as in a line of CSV: one that holds a comma stands in quotes.

    Raises
    ------
    InputError
        If a quote is not closed, or something stands behind a closing one.
    """
    try:
        return [cell.decode() for row in records(text.encode() + b"\n", b",") for cell in row.cells]
    except Unreadable as broken:
        problem = f"{{{parameter}}} is read like a line of CSV; {broken.problem} It is {{0!r}}."
        remedy = 'A word with a comma stands in quotes: "a,b".'
        raise InputError(problem, text, remedy=remedy, parameter=parameter) from None


def why_no_number(raw: bytes, is_label: bool, otherwise: str) -> tuple[str, str]:
    """What is wrong with a cell, and what to do or ``otherwise``: templates of its text {0} and its column {1!r}."""
    text = raw.decode("utf-8", "replace").strip()
    if not text:
        problem = "the cell of column {1!r} is empty:"
        return problem, "every row needs a label." if is_label else "fill it, or leave the column or the row out."
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if math.isinf(value) and any(c.isdigit() for c in text):
        return "the value {0} of column {1!r} is too large for a float64.", ""
    if not math.isfinite(value) or text.lower() in MISSING:
        problem = "the value {0} of column {1!r} is missing or not finite:"
        return problem, "a label is a number." if is_label else "every row needs a number."
    if b"\0" in raw:
        problem = "the value {0} of column {1!r} holds a NUL byte:"
        return problem, "the file is damaged, or no UTF-8 text."
    problem = "the value {0} of column {1!r} is not a number:"
    bare = _without_signs(text)
    if _DECIMAL_COMMA.fullmatch(text):
        other = f" (or, of thousands, {text.replace(',', '')})" if bare else ""
        return problem, f"write decimals with a point, {text.replace(',', '.')}{other}."
    if bare is not None:
        return problem, f"write {bare}, {_WITHOUT}"
    return problem, "labels are numbers." if is_label else otherwise


def shown(raw: bytes) -> str:
    """A cell as an error shows it."""
    return quoted(raw.decode("utf-8", "replace").strip())


def _without_signs(text: str) -> str | None:
    """The number that is left without a sign of currency or percent and separators of thousands; None if none is."""
    found = _DRESSED.fullmatch(text)
    if found is None:
        return None
    return (found["sign"] or "") + found["number"].replace(",", "")
