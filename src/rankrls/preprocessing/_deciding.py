"""What each column of a table is used as: by what was said of it, or by its cells."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankrls._errors import InputError, Parameter
from rankrls.preprocessing._cells import Column, day_of

KINDS = ("number", "list", "category", "date", "text", "query text", "unused")
_ID = re.compile(r"(?:^|[\W_])(?:id|ids|sku|ean|gtin|asin|isbn|uuid|guid|key|url|uri|link)$", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z]I[dD]$")
_MANY = 50  # different texts, from which on a column is no plain category if they also are a large share of the rows
_LARGE_SHARE = 0.2
_FEW_FOR_AN_ID = 20
_FIRST_WORDS = 200
_BY_FORMAT = "dates if date_format is "
_SLASHED = re.compile(r"\d{1,2}/\d{1,2}/\d{2,4}(?: .*)?")


@dataclass(frozen=True)
class ColumnUse:
    """What a column is used as, and why.

    Attributes
    ----------
    name : str
    kind : {"number", "list", "category", "date", "text", "query text", "unused"}
    reason : str
        Why, in a few words; "as said" if a parameter names the column.
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


@dataclass(frozen=True)
class Rules:
    """What was said of the columns, and how the others are decided.

    Attributes
    ----------
    said : mapping of str to str
        The kinds of columns that were named.
    guesses : bool
        Whether columns that were not named may be anything; otherwise they have to be numbers.
    floor : int
        How many rows a category needs to be one of its own.
    formats : sequence of str
        Formats of dates.
    fills : callable
        Whether missing numbers of a column are filled.
    """

    said: Mapping[str, str]
    guesses: bool
    floor: int
    formats: Sequence[str]
    fills: Any


def names_of(parameter: str, value: Any) -> tuple[str, ...]:
    """Names of columns, from one or several."""
    names = (value,) if isinstance(value, str) else tuple(() if value is None else value)
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{{{parameter}}} must hold names of columns; got {{0!r}}.", value)
    return names


def decided(columns: Mapping[str, Column], rules: Rules) -> list[ColumnUse]:
    """The use of each column, in the table's order.

    Raises
    ------
    InputError
        One for all columns that cannot be used, with two cells of each and what to say of them.
    """
    uses: list[ColumnUse] = []
    refused: list[ColumnUse] = []
    errors: list[InputError] = []
    for name, column in columns.items():
        said = rules.said.get(name)
        try:
            known = _unusable(column, said)
            kind, reason = known or (_guess(column, rules) if said is None else _as_said(column, said, rules))
        except InputError as error:
            errors.append(error)
            continue
        use = ColumnUse(name, kind, reason, int(column.missing.sum()), _distinct(column), _examples(column))
        uses.append(use)
        if said is None and not rules.guesses and (kind not in _NUMBERS or (use.n_missing and not rules.fills(name))):
            refused.append(use)
    if refused:
        errors.append(_refusal(refused))
    if errors:
        raise errors[0].joined(errors[1:])
    return uses


_NUMBERS = ("number", "list")
_SAYABLE = {"category": ("categorical", "categories"), "date": ("dates", "dates"), "text": ("text", "text")}
"""The parameter that names columns of a kind, and what their cells are called."""


def _refusal(refused: list[ColumnUse]) -> InputError:
    """One error for all columns that were to be numbers and are none."""
    shown = []
    said: dict[str, list[str]] = {}
    formats: dict[str, None] = {}
    for use in refused:
        option, what = _SAYABLE.get(use.kind, ("ignore", use.reason))
        if use.kind in _NUMBERS:
            option, what = "impute", f"{use.reason}, {use.n_missing} missing"
        elif what.startswith(_BY_FORMAT):
            option = "dates"
            formats.setdefault(what.removeprefix(_BY_FORMAT))
        said.setdefault(option, []).append(use.name)
        cells = ", ".join(repr(cell if len(cell) <= 40 else cell[:37] + "...") for cell in use.examples)
        shown.append(f"{use.name!r} ({what}{': ' if cells else ''}{cells})")
    spelt = lambda option: "impute='median'" if option == "impute" else f"{option}={said[option]!r}"
    options = [spelt(option) for option in sorted(said)]
    options += [f"date_format={form!r}" for form in formats]
    places = " ".join(f"{{{k + 2}}}" for k in range(len(options)))
    return InputError(
        "{0} cannot be used as it stands: {1}." if len(refused) == 1 else "{0} cannot be used as they stand: {1}.",
        f"{len(refused)} columns" if len(refused) > 1 else "A column",
        "; ".join(shown),
        *map(Parameter, options),
        remedy=f"Give {places}; or let {{columns='auto'}} decide.",
        parameter=min(said),
        column=refused[0].name,
    )


def _unusable(column: Column, said: str | None) -> tuple[str, str] | None:
    """What holds whatever was said."""
    if said in ("unused", "query text"):
        return None
    if column.missing.all():
        return "unused", "every cell is missing"
    if said is not None and column.holds in ("others", "lists"):
        problem, remedy = "Column {0!r} holds {1}, and cannot be used as said.", "Leave it out ({ignore})."
        place: dict[str, Any] = {"parameter": "ignore", "column": column.name}
        raise InputError(problem, column.name, column.shown, remedy=remedy, **place)
    if column.holds == "others":
        return "unused", f"holds {column.shown}"
    if not column.missing.any() and _distinct(column) == 1:
        return "unused", "constant"
    return None


def _as_said(column: Column, said: str, rules: Rules) -> tuple[str, str]:
    """The kind that was asked for, or a reason that begins with "!"."""
    if said == "date":
        _, bad = column.as_days(rules.formats)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                "The cell {0!r} of column {1!r}, row {2}, is no date{3}.",
                *(column.cell(row), column.name, row, _ambiguous(column.cell(row))),
                remedy="Correct or empty it, or give {date_format}.",
                parameter="dates",
                column=column.name,
                row=row,
            )
    if said == "category":
        words, codes = column.as_texts()
        counts = np.bincount(codes[~column.missing], minlength=len(words))
        if counts.max() < rules.floor:
            raise InputError(
                "None of the {0} values of column {1!r} is in {2} rows or more, so there would be no category.",
                *(_distinct(column), column.name, rules.floor),
                remedy="Leave the column out ({ignore}), or lower {min_frequency}.",
                parameter="categorical",
                column=column.name,
            )
    return said, "as said"


def _guess(column: Column, rules: Rules) -> tuple[str, str]:
    """The kind by the cells."""
    distinct, present = _distinct(column), int((~column.missing).sum())
    if column.declared:
        return "category", "categories by the table's type"
    if column.holds == "days":
        return "date", "dates by the table's type"
    if column.holds == "lists":
        return _guess_lists(column)
    values, bad = column.as_numbers()
    if not bad.any():
        whole = values[~np.isnan(values)]
        if _is_id(column.name, whole, distinct, present):
            return "unused", "like an id"
        return "number", "numbers"
    share = 1.0 - bad.sum() / present
    if column.holds == "texts" and share >= 0.9:
        row = int(np.argmax(bad))
        return "unused", f"numbers but for {int(bad.sum())} cells, the first {column.cell(row)!r} in row {row}"
    some = column.words[:_FIRST_WORDS]  # a date is slow to refuse, and ids may be a million
    if sum(day_of(word, rules.formats) is not None for word in some) > 0.5 * len(some):
        _, no_date = column.as_days(rules.formats)
        row = int(np.argmax(no_date))
        if not no_date.any():
            return "date", "dates"
        if 1.0 - no_date.sum() / present >= 0.9:
            return "unused", f"dates but for {int(no_date.sum())} cells, the first {column.cell(row)!r} in row {row}"
    return _guess_texts(column, rules, distinct, present)


def _guess_lists(column: Column) -> tuple[str, str]:
    size = column.list_size
    _, bad = column.as_lists(size)
    if not size or bad.any():
        row = int(np.argmax(bad))
        return "unused", f"lists of {size} numbers but for {int(bad.sum())} cells, the first in row {row}"
    return "list", f"lists of {size} numbers"


def _guess_texts(column: Column, rules: Rules, distinct: int, present: int) -> tuple[str, str]:
    words, codes = column.as_texts()
    if all(_SLASHED.fullmatch(word) for word in words if word):
        form = _only_reading([word for word in words if word])
        return "unused", f"{_BY_FORMAT}{form}" if form else "dates of two readings: date_format says which"
    counts = np.bincount(codes[~column.missing], minlength=len(words))
    tokens = np.array([len(word.split()) for word in words])
    mean = float(tokens @ counts) / present
    many = distinct > max(_MANY, _LARGE_SHARE * present)
    frequent = int((counts >= rules.floor).sum())
    prose = mean >= 3 and distinct > min(_MANY, _LARGE_SHARE * present)
    if (_called_like_an_id(column.name) and distinct > _LARGE_SHARE * present) or (many and mean < 2):
        return "unused", f"like an id: {distinct} different values"
    if prose or many or not frequent:
        return ("text", f"{mean:.1f} words a cell") if mean >= 2 else ("unused", f"no value is in {rules.floor} rows")
    return "category", f"{distinct} different values"


def _only_reading(words: Sequence[str]) -> str:
    """The format of dates such as 3/14/2024 if one of them has no other; nothing if none or several would do."""
    forms = ("%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y")
    found = [form for form in forms if all(day_of(word, (form,)) is not None for word in words)]
    return found[0] if len(found) == 1 else ""


def _is_id(name: str, values: Any, distinct: int, present: int) -> bool:
    """Whether whole numbers count the rows, or are called as ids are."""
    if distinct < _FEW_FOR_AN_ID or (values != np.floor(values)).any():
        return False
    counted = distinct == present and float(values.max() - values.min()) == present - 1
    return counted or (_called_like_an_id(name) and distinct > _LARGE_SHARE * present)


def _called_like_an_id(name: str) -> bool:
    return _ID.search(name) is not None or _CAMEL_ID.search(name) is not None


def _distinct(column: Column) -> int:
    if column.holds == "texts":
        return len(np.unique(column.codes[column.codes >= 0]))
    if column.holds == "lists":
        ends = np.cumsum(column.values[~column.missing], dtype=np.intp)
        return len({part.tobytes() for part in np.split(column.flat, ends[:-1])})
    return len(np.unique(column.values[~column.missing]))


def _examples(column: Column) -> tuple[str, ...]:
    rows = np.flatnonzero(~column.missing)
    if not len(rows) or column.holds == "others":
        return ()
    values = (column.codes if column.holds == "texts" else column.values)[rows]
    others = np.flatnonzero(values != values[0])[:1]
    return tuple(column.cell(int(row)) for row in (rows[0], *rows[others]))


def _ambiguous(cell: str) -> str:
    return ", or one of two readings" if _SLASHED.fullmatch(cell) else ""
