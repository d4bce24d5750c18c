"""Columns of any kind of table: cells as numbers, days and texts, and the use of each column."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from rankrls._cells import cell_number
from rankrls._errors import InputError, did_you_mean, format_setting
from rankrls._missing import is_missing
from rankrls._queries import QueryLayout
from rankrls._records import unrecorded
from rankrls._typing import AnyArray, Array, Index, Mask

_SECONDS = 86_400.0
_EPOCH = datetime(1970, 1, 1)
_FORMATS = ("%Y/%m/%d", "%Y-%m-%d", "%d.%m.%Y")
_WHOLE = 2.0**53
_ID = re.compile(r"(?i:(?:^|[\W_])(?:id|sku|ean|gtin|isbn|key|uuid)s?)$|[a-z]I[dD]$")
_MANY = 50
_LARGE_SHARE = 0.2  # a column of categories has at most _MANY values, or this share of the rows
_COVERED = 0.5  # smallest share of the rows that the most frequent categories cover
_FEW_FOR_AN_ID = 20
_FIRST_WORDS = 200  # refusing a date is slow, and there may be a million ids
_LONG = re.compile(r"\d{16,}")  # more digits than float64 represents
_PADDED = re.compile(r"0\d+")  # a code such as 00100
_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_SLASHED = re.compile(r"\d{1,2}/\d{1,2}/\d{2,4}(?: .*)?")


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of a column: different texts and their codes, or numbers.

    Attributes
    ----------
    name : str
    values : ndarray of shape (m,)
        Numbers, float64; NaN for a missing cell, infinity for a cell that is not a number. For texts, the number of
        each row's text in ``words``; -1 for a missing cell.
    words : list of str, or None
        Different texts, without surrounding blanks; they may represent numbers or dates.
    declared : bool
        Whether the table's type declares categories.
    boolean : bool
        Whether the table's type declares true and false.
    odd : str
        Name of the type if cells are neither texts nor numbers.
    """

    name: str
    values: AnyArray
    words: Sequence[str] | None = None
    declared: bool = False
    boolean: bool = False
    odd: str = ""

    @property
    def missing(self) -> Mask:
        """Mask of the missing cells."""
        return np.isnan(self.values) if self.words is None else self.values < 0

    def read(self, kind: str, formats: Sequence[str] = ()) -> tuple[Array, Mask]:
        """Numbers, or days since 1970 of dates, with NaN for missing cells; and a mask of invalid cells."""
        values = self.values
        if self.words is not None:
            found = [cell_number(word) if kind == "number" else day_of(word, formats) for word in self.words]
            values = np.array([*found, np.nan])[values]
        elif kind == "date":
            values = np.full(len(values), np.nan)
        return values, ~np.isfinite(values) & ~self.missing

    def as_texts(self) -> tuple[list[str | None], Index]:
        """Different texts, and the number of each row's text; None is a missing cell."""
        if self.words is not None:
            return [*self.words, None], np.where(self.values < 0, len(self.words), self.values)
        different, codes = np.unique(self.values, return_inverse=True)
        typed = bool if self.boolean else float
        words = [None if is_missing(value) else spelled_cell(typed(value)) for value in different.tolist()]
        return words, codes.astype(np.intp)

    def counts(self) -> dict[str, int]:
        """Different texts of cells that are not missing, and the number of rows of each."""
        words, codes = self.as_texts()
        counts = np.bincount(codes, minlength=len(words)).tolist()
        return {word: n for word, n in zip(words, counts, strict=True) if n and word is not None}

    def distinct(self) -> int:
        """Number of different values."""
        return len(np.unique(self.values[~self.missing]))

    def varies(self, layout: QueryLayout) -> bool:
        """Whether two rows of a query differ."""
        values = self.values[layout.order]
        missing = self.missing[layout.order]
        differ = (values[1:] != values[:-1]) & ~(missing[1:] & missing[:-1])
        return not np.isin(np.flatnonzero(differ) + 1, layout.starts).all()


def columns_of(X: Any, names: Sequence[str] | None = None, missing: Sequence[str] = ()) -> dict[str, Column]:
    """Columns of a data frame, a table of pyarrow, rows as dicts, or a dict of columns; only ``names`` if given.

    Cells with the texts ``missing``, in any case, are also missing.

    Raises
    ------
    InputError
        If columns have no names or different lengths, or names are not texts or do not exist.
    """
    import pyarrow as pa

    X = unrecorded(X, "X")
    if hasattr(X, "items"):  # a mapping, or a data frame of pandas
        pairs = [*X.items()]
    elif hasattr(X, "__arrow_c_stream__"):
        table = pa.table(X)
        pairs = [*zip(table.column_names, table.columns, strict=True)]
    else:
        problem = f"X must be a table with named columns; got {type(X).__name__}."
        remedy = "Pass a data frame of pandas or polars, a table of pyarrow, dicts of rows, or a dict of columns."
        raise InputError(f"{problem} {remedy}", parameter="X")
    columns = dict(pairs)
    if len(columns) < len(pairs) or not all(isinstance(name, str) for name in columns):
        raise InputError(f"Column names must be different strings; got {[*columns]!r}.", parameter="X")
    if names is not None:
        check_there(names, columns)
        columns = {name: columns[name] for name in names}
    lengths = {len(values) for values in columns.values()}
    if len(lengths) != 1 or 0 in lengths:
        problem = f"X needs rows, and columns of the same length; the lengths are {sorted(lengths)}."
        raise InputError(problem, parameter="X")
    words = frozenset(word.lower() for word in missing)
    return {name: _column(name, _array(values), words) for name, values in columns.items()}


def check_there(names: Sequence[str], columns: Mapping[str, Any]) -> None:
    """Refuse names of columns that a table lacks."""
    if missing := [name for name in names if name not in columns]:
        text = f"The table has no column {', '.join(map(repr, missing))}; it has {', '.join([*columns][:8])}."
        near = "".join(did_you_mean(name, columns) for name in missing)
        raise InputError(text + near, parameter="X", column=missing[0])


def names_of(parameter: str, value: Any) -> tuple[str, ...]:
    """Texts of a parameter that accepts one or several."""
    names = (value,) if isinstance(value, str) or not np.iterable(value) else tuple(value)
    names = () if value is None else names
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{parameter} must be one or several strings; got {value!r}.", parameter=parameter)
    return names


def day_of(text: str, formats: Sequence[str] = ()) -> float:
    """Days of a date since 1970; NaN for any other text.

    Dates are in ISO 8601, with or without a time; without formats, also 2024/3/1 and 1.3.2024. Dates such as 3/1/2024
    are ambiguous and not read. Times with an offset are converted to UTC; others are unchanged.
    """
    for form in (*formats, None) if formats else (None, *_FORMATS):
        with suppress(ValueError):
            found = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
            return (found - _EPOCH.replace(tzinfo=found.tzinfo and UTC)).total_seconds() / _SECONDS
    return float("nan")


def _array(values: Any) -> Any:
    """A column for pyarrow, as texts if its types are mixed."""
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        return pa.array(values, from_pandas=True)
    except pa.ArrowException:
        return pa.array([None if is_missing(value) else spelled_cell(value) for value in values], pa.string())


def spelled_cell(value: Any) -> str:
    """Text of a value: whole numbers without a point, true and false in lower case."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if abs(number) < 2.0**64 and number.is_integer() else repr(number)
    return str(value)


def _column(name: str, values: Any, missing: frozenset[str]) -> Column:
    import pyarrow as pa

    types = pa.types
    declared = False
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    kind = values.type
    if types.is_dictionary(kind):
        known = values.dictionary  # string views, as in polars, cannot be taken by number
        known = known.cast(pa.large_string()) if types.is_string_view(known.type) else known
        declared = True
        values = known.take(values.indices)
        kind = known.type
    if types.is_timestamp(kind):  # at UTC
        values = values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()).cast(pa.timestamp("us"))
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        # float64 cannot distinguish large whole numbers from their neighbours, such as ids of 64 bits
        if types.is_floating(kind) or not (np.abs(numbers) >= _WHOLE).any():
            return Column(name, numbers, declared=declared, boolean=types.is_boolean(kind))
    if not types.is_nested(kind):
        with suppress(pa.ArrowException):
            return _texts(name, values.cast(pa.large_string()), declared, missing)
    nothing = np.where(values.is_null().to_numpy(zero_copy_only=False), np.nan, np.inf)
    return Column(name, nothing, odd=str(kind))


def _texts(name: str, values: Any, declared: bool, missing: frozenset[str]) -> Column:
    """A column of texts, with each different text stored once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = values.dictionary_encode()
    trimmed = pc.utf8_trim_whitespace(coded.dictionary)
    gone = pc.is_in(pc.utf8_lower(trimmed), value_set=pa.array(sorted(missing), trimmed.type))
    words = pc.if_else(gone, None, trimmed).dictionary_encode()
    place_of = np.append(pc.fill_null(words.indices, -1), -1).astype(np.intp)
    codes = pc.fill_null(coded.indices, len(trimmed)).to_numpy(zero_copy_only=False)
    return Column(name, place_of[codes], words.dictionary.to_pylist(), declared)


@dataclass(frozen=True)
class ColumnUse:
    """Use of a column, and the reason.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "date", "text", "query text", "unused"}
    reason : str
        Reason for the use; "as configured" if a parameter names the column.
    n_missing : int
        Number of missing cells among the training rows.
    n_distinct : int
        Number of different values among the training rows.
    n_features : int
        Number of features of the column.
    """

    name: str
    kind: str
    reason: str
    n_missing: int
    n_distinct: int
    n_features: int = 0


def column_uses(
    columns: Mapping[str, Column], encoder: Any, fills: Mapping[str, Any], layout: QueryLayout | None
) -> list[ColumnUse]:
    """Uses of the columns, in the order of the table.

    Parameters
    ----------
    columns : mapping of str to Column
    encoder : TableEncoder
    fills : mapping of str to object
        Replacements of missing numbers, by column; None if cells may not be missing.
    layout : QueryLayout or None
        Queries of the rows, if known.

    Raises
    ------
    InputError
        If columns are not numbers but must be: one error for all, with two cells of each and the parameters to set.
    """
    named = encoder.columns_named()
    formats = names_of("date_format", encoder.date_format)
    uses = list[ColumnUse]()
    shown = []
    options: dict[str, list[str]] = {}
    for name, column in columns.items():
        distinct = column.distinct()
        n_missing = int(column.missing.sum())
        kind, reason = _kind(column, named.get(name), distinct, encoder, formats)
        if name not in named and kind != "unused" and layout is not None and not column.varies(layout):
            kind = "unused"
            reason = "constant within every query, so it cannot change the ranking"
        uses.append(ColumnUse(name, kind, reason, n_missing, distinct))
        usable = kind == "number" and not (n_missing and fills.get(name) is None)
        if encoder.columns == "named" and name not in named and not usable:
            options.setdefault(_OPTIONS.get(kind, "ignore"), []).append(name)
            what = reason + ", some missing" * (kind == "number")  # the rows may be some of the table's
            cells = [] if column.odd else [cell[:40] for cell in [*column.counts()][:2]]
            shown.append(f"{name!r} ({what}{': ' * bool(cells)}{', '.join(map(repr, cells))})")
    if options:
        given: dict[str, Any] = {
            option: "median" if option == "impute" else [*names_of(option, vars(encoder)[option]), *names]
            for option, names in sorted(options.items())
        }
        text = f"Columns that cannot be used as they are: {'; '.join(shown)}."
        wanted = " ".join(map(format_setting, given, given.values()))
        remedy = f"Use {wanted}, or let {format_setting('columns', 'auto')} decide."
        first = next(iter(options.values()))[0]
        settings = given | {"columns": "auto"}
        raise InputError(f"{text} {remedy}", parameter=min(options), column=first, settings=settings)
    return uses


_OPTIONS = {"number": "impute", "category": "categorical", "date": "dates", "text": "text"}
"""The parameter that makes columns of a kind usable."""


def _kind(column: Column, named: str | None, distinct: int, encoder: Any, formats: Sequence[str]) -> tuple[str, str]:
    """Kind of a column and the reason: from a parameter, or else from its cells."""
    if named in ("unused", "query text"):
        return named, "as configured"
    if column.missing.all():
        return "unused", "every cell is missing"
    if column.odd and named is not None:
        text = f"Column {column.name!r} contains {column.odd}, and cannot be used as configured. Leave it out (ignore)."
        raise InputError(text, parameter="ignore", column=column.name)
    if column.odd:
        return "unused", f"contains {column.odd}"
    if distinct == 1 and not column.missing.any():
        return "unused", "constant"
    if named is not None:
        return named, "as configured"
    return _guess(column, distinct, encoder, formats)


def _guess(column: Column, distinct: int, encoder: Any, formats: Sequence[str]) -> tuple[str, str]:
    """Kind of a column from its cells, and the reason."""
    if column.declared and max(column.counts().values()) >= encoder.min_frequency:
        return "category", "categories by the table's type"
    present = int((~column.missing).sum())
    first = (column.words or ())[:_FIRST_WORDS]
    codes = encoder.columns == "auto" and any(map(_PADDED.fullmatch, column.words or ()))
    if not codes:
        values, bad = column.read("number")
        long = bool(first) and all(map(_LONG.fullmatch, first))
        if not bad.any() and (long or like_ids(column.name, values[~column.missing])):
            return "unused", "like an id"
        if _few_bad(values, bad, present):
            return "number", "numbers"
    if sum(np.isfinite(day_of(word, formats)) for word in first) > 0.5 * len(first):
        values, bad = column.read("date", formats)
        if _few_bad(values, bad, present):
            return "date", "dates"
    counts = column.counts()
    if all(map(_COMMA.fullmatch, counts)):
        return "unused", "numbers with commas instead of points"
    if all(map(_SLASHED.fullmatch, counts)):
        return "unused", "ambiguous dates: set date_format"
    words = sum(len(word.split()) * n for word, n in counts.items()) / present
    share = _LARGE_SHARE * present
    covered = sum(sorted(counts.values())[-encoder.max_categories :])
    many = max(counts.values()) < encoder.min_frequency or covered < _COVERED * present or distinct > max(_MANY, share)
    if words >= 2 and (many or (words >= 3 and distinct > min(_MANY, share))):
        return "text", f"{words:.1f} words per cell"
    found = f"{distinct} different values"
    return ("unused", f"like an id: {found}") if many else ("category", found)


def _few_bad(values: Array, bad: Mask, present: int) -> bool:
    """Whether so few cells are bad that they are errors in encoding, or all bad ones are infinite."""
    return bool(bad.sum() <= 0.1 * present or (np.isinf(values[bad]).all() and bad.sum() < present))


def like_ids(name: str, values: Array) -> bool:
    """Whether whole numbers count the rows, or are named like ids and rarely repeat."""
    if (values != np.floor(values)).any() or (distinct := len(np.unique(values))) < _FEW_FOR_AN_ID:
        return False
    counted = distinct == len(values) and float(values.max() - values.min()) == len(values) - 1
    return counted or (_ID.search(name) is not None and distinct > _LARGE_SHARE * len(values))
