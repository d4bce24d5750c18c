"""What each column of a table is used as: by what a parameter says of it, or by its cells."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls.preprocessing._cells import Column, day_of

_ID = re.compile(r"(?:^|[\W_])(?:id|ids|sku|ean|gtin|asin|isbn|uuid|guid|key|url|uri|link)$", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z]I[dD]$")
_MANY = 50  # different texts, from which on a column is no plain category if they also are a large share of the rows
_LARGE_SHARE = 0.2
_FEW_FOR_AN_ID = 20
_FIRST_WORDS = 200
WORDS_OF_TEXT = 1.5
"""Words without digits that query ids have on the average if they are the texts of the queries."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_SLASHED = re.compile(r"\d{1,2}/\d{1,2}/\d{2,4}(?: .*)?")


@dataclass(frozen=True)
class ColumnUse:
    """What a column is used as, and why.

    Attributes
    ----------
    name : str
    kind : {"number", "list", "category", "date", "text", "query text", "unused"}
    reason : str
        Why, in a few words; "as configured" if a parameter names the column.
    n_missing : int
        Missing cells among the training rows.
    n_distinct : int
        Different values among them.
    examples : tuple of str
        The first two different cells.
    n_features : int
        How many features it becomes.
    """

    name: str
    kind: str
    reason: str
    n_missing: int
    n_distinct: int
    examples: tuple[str, ...]
    n_features: int = 0


def names_of(parameter: str, value: Any) -> tuple[str, ...]:
    """Names of columns, from one or several."""
    names = (value,) if isinstance(value, str) else tuple(() if value is None else value)
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{parameter} must hold names of columns; got {value!r}.", parameter=parameter)
    return names


def words_of_ids(qid: Any) -> float:
    """How many words, of letters alone, a query id has on the average over the queries; 0 if ids are no texts."""
    ids = {value for value in np.unique(qid).tolist() if isinstance(value, str)} if qid is not None else set()
    lengths = [sum(_WORD.fullmatch(part) is not None for part in value.split()) for value in ids]
    return float(np.mean(lengths)) if lengths else 0.0


def decided(
    columns: Mapping[str, Column],
    named: Mapping[str, str],
    fills: Mapping[str, Any],
    *,
    guesses: bool,
    floor: int,
    formats: Sequence[str],
) -> list[ColumnUse]:
    """The use of each column, in the table's order.

    Parameters
    ----------
    columns : mapping of str to Column
    named : mapping of str to str
        The kinds of columns that a parameter names.
    fills : mapping of str to object
        What missing numbers of a column count as; None if they may not be missing.
    guesses : bool
        Whether columns that are not named may be anything; otherwise they have to be numbers.
    floor : int
        How many rows a category needs to be one of its own.
    formats : sequence of str
        Formats of dates.

    Raises
    ------
    InputError
        One for all columns that cannot be used, with two cells of each and what to say of them.
    """
    uses: list[ColumnUse] = []
    refused: list[ColumnUse] = []
    errors: list[InputError] = []
    for name, column in columns.items():
        try:
            kind, reason = _kind(column, named.get(name), floor, formats)
        except InputError as error:
            errors.append(error)
            continue
        use = ColumnUse(name, kind, reason, int(column.missing.sum()), column.distinct(), _examples(column))
        uses.append(use)
        usable = kind in _NUMBERS and not (use.n_missing and fills.get(name) is None)
        if not (guesses or name in named or usable):
            refused.append(use)
    if refused:
        errors.append(_refusal(refused))
    if errors:
        raise in_one(errors)
    return uses


def in_one(errors: Sequence[InputError]) -> InputError:
    """One error that says what several say, with the facts of the first."""
    return errors[0].replace(message=" ".join(error.message for error in errors))


_NUMBERS = ("number", "list")
_OPTIONS = {
    **dict.fromkeys(_NUMBERS, ("impute", "")),
    **{"category": ("categorical", "categories"), "date": ("dates", "dates"), "text": ("text", "text")},
}
"""The parameter that makes columns of a kind usable, and what their cells are called."""


def _refusal(refused: list[ColumnUse]) -> InputError:
    """One error for all columns that were to be numbers and are none."""
    shown = []
    options: dict[str, list[str]] = {}
    for use in refused:
        option, what = _OPTIONS.get(use.kind, ("ignore", use.reason))
        what = what or f"{use.reason}, {use.n_missing} missing"
        options.setdefault(option, []).append(use.name)
        cells = ", ".join(repr(cell if len(cell) <= 40 else cell[:37] + "...") for cell in use.examples)
        shown.append(f"{use.name!r} ({what}{': ' if cells else ''}{cells})")
    given = [f"{o}={options[o]!r}" if o != "impute" else "impute='median'" for o in sorted(options)]
    text = f"Columns that cannot be used as they are: {'; '.join(shown)}."
    remedy = f"Give {' '.join(given)}; or let columns='auto' decide."
    return InputError(f"{text} {remedy}", parameter=min(options), column=refused[0].name)


def _kind(column: Column, named: str | None, floor: int, formats: Sequence[str]) -> tuple[str, str]:
    """The kind of a column and why; an error if its cells cannot be what a parameter says."""
    if named in ("unused", "query text"):
        return named, "as configured"
    if column.missing.all():
        return "unused", "every cell is missing"
    if named is not None and column.holds in ("others", "lists"):
        text = f"Column {column.name!r} holds {column.shown}, and cannot be used as configured. Leave it out (ignore)."
        raise InputError(text, parameter="ignore", column=column.name)
    if column.holds == "others":
        return "unused", f"holds {column.shown}"
    if not column.missing.any() and column.distinct() == 1:
        return "unused", "constant"
    if named is None:
        return _guess(column, floor, formats)
    if named == "date":
        _, bad = column.read("date", formats)
        if bad.any():
            row = int(np.argmax(bad))
            cell = column.cell(row)
            also = ", or one of two readings" if _SLASHED.fullmatch(cell) else ""
            text = f"The cell {cell!r} of column {column.name!r}, row {row}, is no date{also}."
            remedy = "Correct or empty it, or give date_format."
            raise InputError(f"{text} {remedy}", parameter="dates", column=column.name, row=row)
    if named == "category" and column.counts()[1].max() < floor:
        text = f"No value of column {column.name!r} is in {floor} rows or more."
        remedy = "Leave the column out (ignore), or lower min_frequency."
        raise InputError(f"{text} {remedy}", parameter="categorical", column=column.name)
    return named, "as configured"


def _guess(column: Column, floor: int, formats: Sequence[str]) -> tuple[str, str]:
    """The kind by the cells."""
    if column.declared:
        return "category", "categories by the table's type"
    if column.holds == "lists":
        size = column.values.shape[1]
        return _or_unused(column, "list", f"lists of {size} numbers", column.read("list", size=size)[1])
    present = int((~column.missing).sum())
    values, bad = column.read("number")
    if not bad.any():
        return ("unused", "like an id") if _is_id(column, values[~column.missing]) else ("number", "numbers")
    infinite = np.isinf(values)
    if infinite.sum() == bad.sum() < present:
        row = int(np.argmax(infinite))
        text = f"The cell {column.cell(row)!r} of column {column.name!r}, row {row}, is no finite number."
        remedy = "Correct the cell or empty it, or leave the column out (ignore)."
        raise InputError(f"{text} {remedy}", parameter="X", column=column.name, row=row)
    if bad.sum() <= 0.1 * present:
        return _or_unused(column, "number", "numbers", bad)
    some = column.words[:_FIRST_WORDS]  # a date is slow to refuse, and ids may be a million
    if sum(np.isfinite(day_of(word, formats)) for word in some) > 0.5 * len(some):
        _, bad = column.read("date", formats)
        if bad.sum() <= 0.1 * present:
            return _or_unused(column, "date", "dates", bad)
    return _guess_texts(column, floor, present)


def _or_unused(column: Column, kind: str, what: str, bad: Any) -> tuple[str, str]:
    """A kind, or that the column is unused because of some cells."""
    if not bad.any():
        return kind, what
    row = int(np.argmax(bad))
    return "unused", f"{what} but for {int(bad.sum())} cells, the first {column.cell(row)!r} in row {row}"


def _guess_texts(column: Column, floor: int, present: int) -> tuple[str, str]:
    words, counts = column.counts()
    if all(_SLASHED.fullmatch(word) for word in words):
        return "unused", "dates of two readings: date_format says which"
    distinct, share = len(words), _LARGE_SHARE * present
    mean = float(np.array([len(word.split()) for word in words]) @ counts) / present
    many, prose = distinct > max(_MANY, share), mean >= 3 and distinct > min(_MANY, share)
    if (_called_like_an_id(column.name) and distinct > share) or (many and mean < 2):
        return "unused", f"like an id: {distinct} different values"
    if prose or many or counts.max() < floor:
        return ("text", f"{mean:.1f} words a cell") if mean >= 2 else ("unused", f"no value is in {floor} rows")
    return "category", f"{distinct} different values"


def _is_id(column: Column, values: Any) -> bool:
    """Whether whole numbers count the rows, or are called as ids are."""
    distinct, present = column.distinct(), len(values)
    if distinct < _FEW_FOR_AN_ID or (values != np.floor(values)).any():
        return False
    counted = distinct == present and float(values.max() - values.min()) == present - 1
    return counted or (_called_like_an_id(column.name) and distinct > _LARGE_SHARE * present)


def _called_like_an_id(name: str) -> bool:
    return _ID.search(name) is not None or _CAMEL_ID.search(name) is not None


def _examples(column: Column) -> tuple[str, ...]:
    rows = np.flatnonzero(~column.missing)
    if not len(rows) or column.holds in ("others", "lists"):
        return ()
    values = column.values[rows]
    return tuple(column.cell(int(row)) for row in (rows[0], *rows[values != values[0]][:1]))
