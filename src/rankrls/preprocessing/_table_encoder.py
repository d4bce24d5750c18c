"""Tables with categories, gaps, dates and texts as numbers: their columns, the use of each, and its encoding."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from rankrls._cached import cached_property
from rankrls._cells import cell_number, is_missing
from rankrls._checks import check_count, check_number, check_word
from rankrls._errors import InputError, InputWarning, did_you_mean, format_setting, warn_user
from rankrls._queries import QueryLayout, label_varies, query_layout
from rankrls._records import unrecorded
from rankrls._typing import AnyArray, Array, IdsLike, Index, ItemsLike, Mask, Matrix, Names, Params, Values

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
_UNREADABLE = {
    "numbers with commas instead of points": re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?"),
    "ambiguous dates: set date_format": re.compile(r"\d{1,2}/\d{1,2}/\d{2,4}(?: .*)?"),
}


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
    odd : str
        Name of the type if cells are neither texts nor numbers.
    """

    name: str
    values: AnyArray
    words: Sequence[str] | None = None
    declared: bool = False
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
        words = [None if is_missing(value) else spelled_cell(value) for value in different.tolist()]
        return words, codes.astype(np.intp)

    def counts(self) -> dict[str, int]:
        """Different texts of cells that are not missing, and the number of rows of each."""
        words, codes = self.as_texts()
        counts = np.bincount(codes, minlength=len(words)).tolist()
        return {word: n for word, n in zip(words, counts, strict=True) if n and word is not None}


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
        raise InputError(
            f"X needs rows, and columns of the same length; the lengths are {sorted(lengths)}.", parameter="X"
        )
    words = frozenset(word.lower() for word in missing)
    return {name: _column(name, values, words) for name, values in columns.items()}


def check_there(names: Sequence[str], columns: Params) -> None:
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


def spelled_cell(value: Any) -> str:
    """Text of a value: whole numbers without a point, true and false in lower case."""
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float | np.floating) and value.is_integer() and abs(float(value)) < 2.0**64:
        return str(int(value))
    return str(value)


def _column(name: str, values: Any, missing: frozenset[str]) -> Column:
    import pyarrow as pa

    types = pa.types
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        try:
            values = pa.array(values, from_pandas=True)
        except pa.ArrowException:  # cells of several types are texts
            values = pa.array([None if is_missing(cell) else spelled_cell(cell) for cell in values], pa.string())
    if isinstance(values, pa.ChunkedArray):  # also from pandas
        values = values.combine_chunks()
    declared = types.is_dictionary(values.type)
    if declared:
        known = values.dictionary  # string views, as in polars, cannot be taken by number
        known = known.cast(pa.large_string()) if types.is_string_view(known.type) else known
        values = known.take(values.indices)
    kind = values.type
    if types.is_timestamp(kind):  # at UTC
        values = values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()).cast(pa.timestamp("us"))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        # float64 cannot distinguish large whole numbers from their neighbours, such as ids of 64 bits
        if types.is_floating(kind) or not (np.abs(numbers) >= _WHOLE).any():
            return Column(name, numbers, declared=declared)
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


def column_uses(columns: Mapping[str, Column], encoder: TableEncoder, layout: QueryLayout | None) -> list[ColumnUse]:
    """Uses of the columns, in the order of the table.

    Parameters
    ----------
    columns : mapping of str to Column
    encoder : TableEncoder
    layout : QueryLayout or None
        Queries of the rows, if known.

    Raises
    ------
    InputError
        If columns are not numbers but must be: one error for all, with the parameters to set.
    """
    named = encoder.columns_named()
    formats = names_of("date_format", encoder.date_format)
    uses = list[ColumnUse]()
    shown = []
    options: dict[str, list[str]] = {}
    for name, column in columns.items():
        distinct = len(np.unique(column.values[~column.missing]))
        n_missing = int(column.missing.sum())
        kind, reason = _kind(column, named.get(name), distinct, encoder, formats)
        if layout is not None and name not in named and kind != "unused":
            cells = np.nan_to_num(column.values, nan=-np.inf)  # missing cells are equal
            if not label_varies(cells, layout).any():
                kind = "unused"
                reason = "constant within every query, so it cannot change the ranking"
        uses.append(ColumnUse(name, kind, reason, n_missing, distinct))
        usable = kind == "number" and not (n_missing and encoder.impute is None)
        if encoder.columns == "named" and name not in named and not usable:
            options.setdefault(_OPTIONS.get(kind, "ignore"), []).append(name)
            what = reason + ", some missing" * (kind == "number")  # the rows may be some of the table's
            shown.append(f"{name!r}: {what}")
    if options:
        given: Values = {
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


def _kind(
    column: Column, named: str | None, distinct: int, encoder: TableEncoder, formats: Sequence[str]
) -> tuple[str, str]:
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


def _guess(column: Column, distinct: int, encoder: TableEncoder, formats: Sequence[str]) -> tuple[str, str]:
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
    for reason, shape in _UNREADABLE.items():
        if all(map(shape.fullmatch, counts)):
            return "unused", reason
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


TEXT_FEATURES = ("matches", "similarity", "word", "tfidf")
NEED_QUERY = ("matches", "similarity")
STRATEGIES: dict[str, Callable[..., Any]] = {"median": np.nanmedian, "mean": np.nanmean}
"""Replacements of missing numbers."""
PERIODS = {"year": 365.25, "week": 7.0}
"""Periods of dates that are encoded as positions on a circle, and their lengths in days."""
_WORD = re.compile(r"\b\w+\b")

_NAMES = {
    "number": "{column}",
    "missing": "{column} (missing)",
    "age": "{column} (age in days)",
    "sine": "{column} (time of {value}, sine)",
    "cosine": "{column} (time of {value}, cosine)",
    "category": "{column}={value}",
    "other": "{column}=(other)",
    "none": "{column}=(missing)",
    "matches": "{column} (words of the query)",
    "similarity": "{column} (TF-IDF cosine with the query)",
    "word": "{column}: {value}",
    "tfidf": "{column}: {value} (TF-IDF)",
}


@dataclass(frozen=True)
class EncodedFeature:
    """A feature of an encoded table.

    Attributes
    ----------
    column : str
        Name of its column.
    kind : str
        Kind of feature. ``number``; ``missing`` (1 if the cell is missing); ``age`` in days; ``sine`` and ``cosine`` of
        a date in a period; ``category``, ``other`` (rare and unseen ones) and ``none`` (a missing cell) are 1 or 0;
        ``matches`` (number of words of the query in the text), ``similarity``; ``word`` (1 if in the text), ``tfidf``.
    value : str
        Category, word or period.
    fill : float
        Replacement of a missing cell.
    origin : float
        Day of age 0 for dates, counted from 1970.
    days : float
        Length of the period.
    """

    column: str
    kind: str
    value: str = ""
    fill: float = 0.0
    origin: float = 0.0
    days: float = 0.0

    @property
    def name(self) -> str:
        """Name for users, from the names of the column and the category."""
        return _NAMES[self.kind].format(column=self.column, value=self.value)


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of numbers, or of dates as ages in days.

    Attributes
    ----------
    column : str
    kind : {"number", "date"}
    gaps : bool
        Whether training rows had missing cells.
    fill : float, or None
        Replacement of a missing cell; None if cells may not be missing.
    origin : float
        Latest training day, for dates.
    periods : list of str
    formats : tuple of str
    """

    column: str
    kind: str
    gaps: bool
    fill: float | None
    origin: float = 0.0
    periods: Sequence[str] = ()
    formats: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not np.isfinite(self.fill or 0.0):
            raise ValueError("a finite fill")

    @classmethod
    def fitted(cls, column: Column, kind: str, impute: float | str | None, formats: Sequence[str]) -> Numbers:
        """Encoding of a training column."""
        values = _numbers(column, kind, formats, impute is not None)
        origin = 0.0
        periods = []
        if kind == "date":
            origin = float(np.nanmax(values))
            span = float(np.nanmax(values) - np.nanmin(values))
            periods = [period for period, length in PERIODS.items() if span >= 2 * length]
            values = origin - values
        fill = STRATEGIES[impute](values) if isinstance(impute, str) else impute
        gaps = bool(column.missing.any())
        return cls(column.name, kind, gaps, None if fill is None else float(fill), origin, periods, formats)

    def features(self) -> Iterator[EncodedFeature]:
        """Features, in order."""
        kind = "age" if self.kind == "date" else "number"
        yield EncodedFeature(self.column, kind, fill=self.fill or 0.0, origin=self.origin)
        if self.gaps and self.fill is not None:
            yield EncodedFeature(self.column, "missing")
        for period in self.periods:
            for wave in ("sine", "cosine"):
                yield EncodedFeature(self.column, wave, period, origin=self.origin, days=PERIODS[period])

    def transform(self, column: Column, query: Column | None) -> Array:
        """Values of the features, (rows, features)."""
        values = _numbers(column, self.kind, self.formats, self.fill is not None)
        missing = column.missing
        values = self.origin - values if self.kind == "date" else values
        parts = [values if self.fill is None else np.where(missing, self.fill, values)]
        if self.gaps and self.fill is not None:
            parts.append(missing)
        for period in self.periods:
            angle = 2.0 * np.pi / PERIODS[period] * values
            parts += [np.where(missing, 0.0, np.sin(angle)), np.where(missing, 0.0, np.cos(angle))]
        return np.column_stack(parts)


def _numbers(column: Column, kind: str, formats: Sequence[str], fills: bool) -> Array:
    """Numbers, or days since 1970; any other cell is an error."""
    found, bad = column.read(kind, formats)
    if bad.any():
        row = int(np.argmax(bad))
        wanted = "a finite number" if kind == "number" else "a date (3/1/2024 is ambiguous without date_format)"
        words, codes = column.as_texts()
        cell = column.odd or repr(words[codes[row]])
        problem = f"The cell {cell} of column {column.name!r}, row {row}, is not {wanted}."
        problem += " Correct it, or empty it if unknown."
        raise InputError(problem, parameter="X", column=column.name, row=row)
    if not fills and column.missing.any():
        row = int(np.argmax(column.missing))
        problem = f"Column {column.name!r} has no value in row {row}. Set impute='median'."
        settings = {"impute": "median"}
        raise InputError(problem, parameter="impute", column=column.name, row=row, settings=settings)
    return found


@dataclass(frozen=True, eq=False)
class Categories:
    """A column of categories: one feature for each frequent one, and one for all others. None is a missing cell.

    A category is the text of its cells: ``str(int)`` or ``repr(float)`` for numbers, "true" or "false" for truth
    values. If all training categories are such texts, other cells match them by value, whatever their type: 1, 1.0 and
    "1" are the same category, and so are True, "True" and 1.

    Attributes
    ----------
    column : str
    known : list of str or None
        Categories with their own feature, in alphabetical order.
    rare : list of str or None
        Other training categories.
    """

    column: str
    known: list[str | None]
    rare: list[str | None]

    @classmethod
    def fitted(cls, column: Column, least: int, most: int) -> Categories:
        """Categories with at least ``least`` rows; including one for all others, there are at most ``most``."""
        totals = Counter[str | None]()
        counts = column.counts()
        boolean = all(word.lower() in ("true", "false") for word in counts)
        for word, count in counts.items():
            totals[word.lower() if boolean else word] += count
        if column.missing.any():
            totals[None] = int(column.missing.sum())
        frequent = [word for word in totals if totals[word] >= least]
        frequent.sort(key=lambda word: (-totals[word], word or ""))
        if not frequent:
            text = f"No value of column {column.name!r} occurs in {least} or more rows."
            remedy = "Leave the column out (ignore), or lower min_frequency."
            raise InputError(f"{text} {remedy}", parameter="categorical", column=column.name)
        if len(frequent) + (len(frequent) < len(totals)) > most:
            frequent = frequent[: most - 1]
        known = sorted(frequent, key=_missing_first)
        rare = sorted(totals.keys() - {*frequent}, key=_missing_first)
        return cls(column.name, known, rare)

    def features(self) -> Iterator[EncodedFeature]:
        """Features, in order."""
        for word in self.known:
            yield EncodedFeature(self.column, "none" if word is None else "category", word or "")
        if self.rare:
            yield EncodedFeature(self.column, "other")

    @cached_property
    def by_value(self) -> bool:
        """Whether categories are compared by value: all are numbers or truth values, and their values differ."""
        words = {*self.known, *self.rare} - {None}
        values = {_value(word or "") for word in words}
        return None not in values and len(values) == len(words)

    @cached_property
    def places(self) -> dict[str | float | None, int]:
        """Feature number of each training category; the last one for rare categories."""
        places = {word: place for place, word in enumerate(self.known)} | dict.fromkeys(self.rare, len(self.known))
        return {self._key(word): place for word, place in places.items()}

    def _key(self, word: str | None) -> str | float | None:
        """Key shared by the cells of a category."""
        value = _value(word) if word is not None and self.by_value else None
        return word if value is None else value

    def transform(self, column: Column, query: Column | None) -> Matrix:
        """0 and 1, a CSR array of shape (rows, features)."""
        words, codes = column.as_texts()
        width = len(self.known) + bool(self.rare)
        found = [self.places.get(self._key(word), len(self.known)) for word in words]
        places = np.array(found, dtype=np.intp)[codes]
        rows = np.flatnonzero(places < width)
        return sparse.csr_array((np.ones(len(rows)), (rows, places[rows])), shape=(len(codes), width))

    def unseen(self, column: Column) -> int:
        """Number of cells whose category is not among the training rows."""
        return sum(n for word, n in column.counts().items() if self._key(word) not in self.places)


def _missing_first(word: str | None) -> tuple[bool, str]:
    """Sort key of a category; None is the category of missing cells."""
    return word is not None, word or ""


def _value(word: str) -> float | None:
    """Value of a number in the form of :func:`spelled_cell` or ``repr``, or of a truth value; None for other texts."""
    value = cell_number(word)
    known = word.lower() in ("true", "false") or word in (spelled_cell(value), repr(value))
    return value if known and np.isfinite(value) else None


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words of training texts, and their inverse document frequencies.

    Attributes
    ----------
    words : list of str
        Words in alphabetical order.
    idf : ndarray of float64, shape (n_words,)
        ``ln((1 + texts) / (1 + texts with the word)) + 1``, as in scikit-learn's TfidfVectorizer.
    """

    words: list[str]
    idf: Array

    @classmethod
    def of(cls, texts: Sequence[str], most: int | None = None, least: int = 1) -> Vocabulary:
        """The ``most`` words that occur in most texts, among those that occur in at least ``least`` texts."""
        having = Counter(word for text in texts for word in set(_words(text)))
        frequent = sorted((word for word in having if having[word] >= least), key=lambda word: (-having[word], word))
        words = sorted(frequent[:most])
        found = np.array([having[word] for word in words], dtype=np.float64)
        return cls(words, np.log((1.0 + len(texts)) / (1.0 + found)) + 1.0)

    def __post_init__(self) -> None:
        if self.idf.shape != (len(self.words),) or not ((self.idf >= 0.0) & (self.idf < 1e3)).all():
            raise ValueError("one frequency a word")

    def counts(self, texts: Sequence[str]) -> Matrix:
        """Counts of the words in each text, a CSR array of shape (texts, words)."""
        if not self.words:  # which CountVectorizer refuses
            return sparse.csr_array((len(texts), 0))
        counter = CountVectorizer(vocabulary=self.words, token_pattern=_WORD.pattern, dtype=np.float64)
        return sparse.csr_array(counter.transform(texts))

    def present(self, texts: Sequence[str]) -> Matrix:
        """1 for each word of a text, otherwise 0, a CSR array of shape (texts, words)."""
        return (self.counts(texts) > 0.0).astype(np.float64)

    def tfidf(self, texts: Sequence[str]) -> Matrix:
        """Counts times inverse document frequencies, normalized to Euclidean norm 1 for each text."""
        out = self.counts(texts)
        out.data *= self.idf[out.indices]
        return normalize(out, copy=False)


def _words(text: str) -> list[str]:
    """Words of a text in lower case: runs of letters, digits and underscores."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts: features of several kinds, see ``text_features`` of TableEncoder.

    Attributes
    ----------
    column : str
    vocabularies : dict of str to Vocabulary or None
        Words of training texts for each kind; None for "matches".
    """

    column: str
    vocabularies: Params

    @classmethod
    def fitted(cls, column: Column, kinds: Sequence[str], max_words: int) -> Texts:
        """Vocabularies of the different texts of a training column."""
        texts = [*column.counts()]
        found: Values = {}
        for kind in kinds:
            limits = () if kind == "similarity" else (max_words, min(2, len(texts)))
            vocabulary = None if kind == "matches" else Vocabulary.of(texts, *limits)
            if vocabulary is not None and not vocabulary.words:
                problem = f"No word occurs in two texts of column {column.name!r}. Leave the column out (ignore)."
                raise InputError(problem, parameter="text", column=column.name)
            found[kind] = vocabulary
        return cls(column.name, found)

    def features(self) -> Iterator[EncodedFeature]:
        """Features, in order."""
        for kind, vocabulary in self.vocabularies.items():
            words = [""] if kind in NEED_QUERY else vocabulary.words
            yield from (EncodedFeature(self.column, kind, word) for word in words)

    def transform(self, column: Column, query: Column | None) -> Matrix:
        """Values of the features, (rows, features)."""
        texts, codes = _texts_of(column)
        parts: list[Any] = []
        for kind, vocabulary in self.vocabularies.items():
            if kind in NEED_QUERY:
                assert query is not None
                asked, queries = _texts_of(query)
                weights = vocabulary.tfidf if kind == "similarity" else Vocabulary.of(asked).present
                shared = weights(texts)[codes].multiply(weights(asked)[queries]).sum(axis=1)
                parts.append(sparse.csr_array(shared[:, None]))
            else:
                weights = vocabulary.tfidf if kind == "tfidf" else vocabulary.present
                parts.append(weights(texts)[codes])
        return sparse.csr_array(sparse.hstack(parts))


def _texts_of(column: Column) -> tuple[list[str], Index]:
    """Different texts of a column, and the number of each row's text; a missing cell is an empty text."""
    words, codes = column.as_texts()
    return [word or "" for word in words], codes


Encoding = Numbers | Categories | Texts


_MANY_INDICATORS = 500


@dataclass(eq=False, repr=False, kw_only=True)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode numbers, categories, dates and texts of a table as features, without labels.

    ============  =====================================================================================================
    numbers       unchanged; a missing one is replaced, and a further feature indicates that it was missing
    categories    one feature (0 or 1) for each category with at least ``min_frequency`` rows; one for all rarer and
                  unseen ones; one for missing cells, if they are frequent
    dates         the age in days, and the time of year and of week on a circle, if the dates span two of them
    texts         the number of words of the query in the text, and their TF-IDF cosine; without query text, TF-IDF
                  words
    ============  =====================================================================================================

    Parameters
    ----------
    columns : {"auto", "named"}, default="auto"
        Use of columns that no other parameter names. "auto": according to their cells; empty columns, columns that
        look like ids, and columns that are constant (within every query, if ``fit`` has ``qid``) are left out, see
        ``columns_``. "named": they must be numbers; one error lists all columns that are not.
    categorical, dates, text, ignore : str or sequence of str
        Columns of each kind, and columns that are not features. Whole numbers can be categories too.
    query_text : str, optional
        Column with the text of the query, to compare texts with. It is not a feature itself.
    impute : {"median", "mean"}, number or None, default="median"
        Replacement of missing numbers and ages. With None, a missing number is an error.
    min_frequency : int, default=5
        Minimum number of rows for a category to get its own feature.
    max_categories : int, default=1000
        Maximum number of categories of a column; the rarest are combined with the other rare ones.
    missing : str or sequence of str, optional
        Cell texts that mean missing, in upper or lower case, in addition to None, NaN, NaT and ``pandas.NA``. By
        default none: "NA" may be Namibia. The command line reads text files with na, n/a, nan, null, none, - and ?
        instead; empty cells of text files are always missing.
    date_format : str or sequence of str, optional
        Formats of ``datetime.strptime``. By default ISO 8601 (2024-03-01, with or without a time), 2024/3/1 and
        1.3.2024; dates such as 3/1/2024 are ambiguous and need a format.
    text_features : sequence of {"matches", "similarity", "word", "tfidf"}, optional
        Features of texts: the number of matching words of the query, the TF-IDF cosine with the query, the text's own
        words as 0 or 1, or their TF-IDF. By default the first two with ``query_text``, else the last.
    max_words : int, default=1000
        Maximum number of words of each text column that become features; the most frequent are used.
    sparse_output : {"auto", True, False}, default="auto"
        Whether the result is sparse; "auto" if more than 500 features are those of categories and texts.

    Attributes
    ----------
    columns_ : list of ColumnUse
        ``name``, ``kind``, ``reason``, ``n_missing``, ``n_distinct`` and ``n_features`` of each column.
    encodings_ : list
        Encoding of each used column, in column order.
    features_ : tuple of EncodedFeature
        ``name``, ``column``, ``kind`` and ``value`` of each feature.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Names of the columns.

    Raises
    ------
    InputError
        In ``fit``, if columns do not exist or cannot be used as configured; one error lists all of them. In
        ``transform``, if columns are missing, or cells of number or date columns are neither.

    Notes
    -----
    O(cells). Columns that ``fit`` did not use are ignored. Blanks around a cell are ignored. Categories are compared as
    texts, so "00100" is not "100". If all of a column are numbers or truth values, they are compared by value with
    cells of any type: 1, 1.0 and "1" are one category, and so are True, "True" and 1.

    If ``transform`` finds no known category in a column with several rows, it issues an ``InputWarning``.

    Examples
    --------
    >>> from rankrls.preprocessing import TableEncoder
    >>> shop = {
    ...     "brand": ["H&M", "Acme", "H&M", None],
    ...     "price": [9.5, None, 20.0, 12.0],
    ...     "added": ["2024-03-01", "2024-02-25", "28.2.2024", "2024-03-02"],
    ... }
    >>> encoder = TableEncoder(min_frequency=2).fit(shop)
    >>> for column in encoder.columns_:
    ...     print(column.name, column.kind, column.reason)
    brand category 2 different values
    price number numbers
    added date dates
    >>> encoder.get_feature_names_out().tolist()
    ['brand=H&M', 'brand=(other)', 'price', 'price (missing)', 'added (age in days)']
    >>> encoder.transform({"brand": ["H&M", "New"], "price": [None, 7.0], "added": ["2024-03-02", "2024-03-02"]})
    array([[ 1.,  0., 12.,  1.,  0.],
           [ 0.,  1.,  7.,  0.,  0.]])
    """

    columns: str = "auto"
    categorical: Names = ()
    dates: Names = ()
    text: Names = ()
    ignore: Names = ()
    query_text: str | None = None
    impute: float | str | None = "median"
    min_frequency: int = 5
    max_categories: int = 1000
    missing: Names = ()
    date_format: Names | None = None
    text_features: Sequence[str] | None = None
    max_words: int = 1000
    sparse_output: bool | str = "auto"

    __metadata_request__fit = {"qid": True}  # noqa: RUF012

    def fit(self, X: ItemsLike, y: Any = None, *, qid: IdsLike | None = None) -> Self:
        """Decide the use of each column, and determine its categories, words and replacements of missing cells.

        Parameters
        ----------
        X : data frame of pandas or polars, table of pyarrow, or dict of columns, with m rows
        y : ignored
            Not used; for compatibility with scikit-learn.
        qid : array-like of shape (m,), optional
            Query of each row. A column that is constant within every query cannot change the ranking by itself, so it
            is left out unless a parameter names it.

        Returns
        -------
        self
        """
        columns = columns_of(X, missing=self.missing_words())
        check_there([*self.columns_named()], columns)
        texts = self._checked()
        formats = names_of("date_format", self.date_format)
        layout = None if qid is None else query_layout(qid, len(next(iter(columns.values())).values))
        uses = column_uses(columns, self, layout)

        def encoding(use: ColumnUse) -> Encoding:
            column = columns[use.name]
            if use.kind == "category":
                return Categories.fitted(column, self.min_frequency, self.max_categories)
            if use.kind == "text":
                return Texts.fitted(column, texts, self.max_words)
            return Numbers.fitted(column, use.kind, self.impute, formats)

        found = _all_or_one_error(encoding, [use for use in uses if use.kind not in ("unused", "query text")])
        if not found:
            shown = "; ".join(f"{use.name!r} ({use.reason})" for use in uses)
            text = f"No column of the table is a feature: {shown}. Name columns in categorical, dates or text."
            raise InputError(text, parameter="X")
        self.feature_names_in_ = np.array([*columns], dtype=object)
        self.n_features_in_ = len(columns)
        self.encodings_: list[Encoding] = found
        counts = {encoding.column: len([*encoding.features()]) for encoding in found}
        self.columns_ = [replace(use, n_features=counts.get(use.name, 0)) for use in uses]
        n_indicators = sum(counts[encoding.column] for encoding in found if not isinstance(encoding, Numbers))
        auto = self.sparse_output == "auto"
        self.sparse_output_ = n_indicators > _MANY_INDICATORS if auto else bool(self.sparse_output)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # a table has named columns
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    def _checked(self) -> Sequence[str]:
        """Kinds of text features; refuses invalid parameters other than names of columns."""
        check_word("columns", self.columns, ("auto", "named"))
        check_count("min_frequency", self.min_frequency)
        check_count("max_categories", self.max_categories, least=2)
        check_count("max_words", self.max_words)
        if self.sparse_output not in ("auto", True, False):
            raise InputError(
                f"sparse_output must be 'auto', True or False; got {self.sparse_output!r}.", parameter="sparse_output"
            )
        if isinstance(self.impute, str):
            check_word("impute", self.impute, STRATEGIES, otherwise="a number")
        elif self.impute is not None:
            check_number("impute", self.impute)
        asked = names_of("text_features", self.text_features)
        for name in asked:
            check_word("text_features", name, TEXT_FEATURES)
            if name in NEED_QUERY and self.query_text is None:
                text = f"text_features has {name!r}, which needs a column with the query's text (query_text)."
                raise InputError(text, parameter="text_features")
        return asked or (NEED_QUERY if self.query_text is not None else ("tfidf",))

    def columns_named(self) -> dict[str, str]:
        """Columns that are named in parameters, and their kinds according to these."""
        kinds = {"categorical": "category", "dates": "date", "text": "text", "query_text": "query text"}
        named: dict[str, str] = {}
        for parameter, kind in (kinds | {"ignore": "unused"}).items():
            for name in names_of(parameter, vars(self)[parameter]):
                if named.setdefault(name, kind) != kind:
                    text = f"{parameter} names the column {name!r}, which another parameter makes a {named[name]}."
                    raise InputError(text, parameter=parameter, column=name)
        return named

    def missing_words(self) -> tuple[str, ...]:
        """Cell texts that mean missing."""
        return names_of("missing", self.missing)

    def transform(self, X: ItemsLike) -> Matrix:
        """Return the features of the rows of a table.

        Parameters
        ----------
        X : data frame of pandas or polars, table of pyarrow, or dict of columns, with m rows
            Table with the columns that ``fit`` used; others are ignored.

        Returns
        -------
        ndarray or csr_array of shape (m, n), float64
        """
        columns = self._columns_needed(X)
        unseen = []
        for name, counts in self._unusual(columns).items():
            if counts.get("unseen", 0) > 1 and sum(counts.values()) == len(columns[name].values):
                unseen.append(name)
        if unseen:
            shown = ", ".join(f"{name!r} ({', '.join(map(repr, [*columns[name].counts()][:2]))})" for name in unseen)
            text = f"Training rows have no category of any row in {shown}. Check how the cells are written."
            warn_user(InputWarning(text, parameter="X"))
        query = columns.get(str(self.query_text))
        parts = _all_or_one_error(lambda encoding: encoding.transform(columns[encoding.column], query), self.encodings_)
        if self.sparse_output_:
            return sparse.csr_array(sparse.hstack([sparse.csr_array(part) for part in parts]))
        return np.hstack([part.toarray() if sparse.issparse(part) else part for part in parts])

    def _columns_needed(self, X: ItemsLike) -> dict[str, Column]:
        check_is_fitted(self, "columns_")
        return columns_of(X, self.columns_needed_, self.missing_words())

    def count_unusual(self, X: ItemsLike) -> dict[str, dict[str, int]]:
        """Count the cells of each column that are missing, or categories that ``fit`` has not seen.

        Parameters
        ----------
        X : as for ``transform``

        Returns
        -------
        dict of str to dict of str to int
            "missing" and "unseen" of each column that has such cells.
        """
        return self._unusual(self._columns_needed(X))

    def _unusual(self, columns: Mapping[str, Column]) -> dict[str, dict[str, int]]:
        out: dict[str, dict[str, int]] = {}
        for encoding in self.encodings_:
            column = columns[encoding.column]
            found = {"missing": int(column.missing.sum())}
            if isinstance(encoding, Categories):
                found["unseen"] = encoding.unseen(column)
            if any(found.values()):
                out[encoding.column] = {what: n for what, n in found.items() if n}
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> AnyArray:
        """Names of the features, from the names of columns and categories.

        Parameters
        ----------
        input_features : ignored
            For scikit-learn.

        Returns
        -------
        ndarray of str objects, shape (n,)
        """
        return np.array([feature.name for feature in self.features_], dtype=object)

    @property
    def features_(self) -> tuple[EncodedFeature, ...]:
        """Descriptions of the features, in order."""
        check_is_fitted(self, "columns_")
        return tuple(feature for encoding in self.encodings_ for feature in encoding.features())

    @property
    def columns_needed_(self) -> list[str]:
        """Columns that ``transform`` needs."""
        texts = any(use.kind == "text" for use in self.columns_)
        return [use.name for use in self.columns_ if use.kind != "unused" and (use.kind != "query text" or texts)]

    def example(self) -> Values:
        """A table of two rows for ``transform``: zeros and empty texts."""
        cells = {"number": "0", "date": "2000-01-01"}
        kinds = {use.name: use.kind for use in self.columns_}
        return {name: [cells.get(kinds[name], "")] * 2 for name in self.columns_needed_}


def _all_or_one_error(make: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
    """Results for all parts; one error for all parts that raise one."""
    found = []
    errors = []
    for part in parts:
        try:
            found.append(make(part))
        except InputError as error:
            errors.append(error)
    if errors:
        raise errors[0].replace(message=" ".join(error.message for error in errors))
    return found
