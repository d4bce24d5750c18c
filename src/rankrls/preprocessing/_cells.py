"""The columns of a table of any kind, and what their cells are as numbers, days and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import MISSING
from rankrls._checks import number as number_of
from rankrls._errors import InputError, did_you_mean

_SECONDS = 86_400.0
_EPOCH = datetime(1970, 1, 1)
_FORMATS = ("%Y/%m/%d", "%Y-%m-%d", "%d.%m.%Y")
_WHOLE = 2.0**53


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of a column: different texts and their codes, or numbers, or lists of numbers.

    Attributes
    ----------
    name : str
    holds : {"texts", "numbers", "lists", "others"}
        What the table says it holds; dates are texts. Texts may be numbers or dates all the same.
    values : ndarray of float64, shape (m,), or (m, size) for lists
        Numbers; NaN is a missing cell, infinity one that is neither that nor a number or list as the first one. For
        texts the number of each row's text in ``words``; -1 is a missing cell.
    words : list of str
        The different texts, without blanks around them.
    declared : bool
        Whether the table's type says that these are categories.
    shown : str
        The type, for people.
    """

    name: str
    holds: str
    values: NDArray[Any]
    words: Sequence[str] = ()
    declared: bool = False
    shown: str = ""

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        values = self.values[:, 0] if self.values.ndim > 1 else self.values
        return values < 0 if self.holds == "texts" else np.isnan(values)

    def read(
        self, kind: str, formats: Sequence[str] = (), size: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Numbers, days of dates since 1970, or lists of so many numbers; NaN for missing cells.

        Returns
        -------
        values : ndarray of shape (m,), or (m, size) for kind "list"
        bad : ndarray of shape (m,)
            Which cells are neither missing nor finite numbers, dates or such lists.
        """
        values, missing = self.values, self.missing
        if self.holds == "texts" and kind != "list":
            found = [_number(word) if kind == "number" else day_of(word, formats) for word in self.words]
            values = np.array([*found, np.nan])[self.values]
        elif self.holds != kind + "s" or (kind == "list" and values.shape[1] != size):
            values = np.full((len(missing), size) if kind == "list" else len(missing), np.nan)
        bad = ~np.isfinite(values) & ~(missing[:, None] if values.ndim > 1 else missing)
        return values, bad.any(axis=1) if bad.ndim > 1 else bad

    def as_texts(self) -> tuple[list[str], NDArray[np.intp]]:
        """The different texts, and the number of each row's; "" is a missing cell."""
        if self.holds == "texts":
            return [*self.words, ""], np.where(self.values < 0, len(self.words), self.values)
        different, codes = np.unique(self.values, return_inverse=True)
        return ["" if np.isnan(v) else _spelled(v) for v in different.tolist()], codes.astype(np.intp)

    def counts(self) -> tuple[list[str], NDArray[np.intp]]:
        """The different texts of cells that are not missing, and in how many rows each is."""
        words, codes = self.as_texts()
        counts = np.bincount(codes[~self.missing], minlength=len(words))
        return [word for word, n in zip(words, counts, strict=True) if n], counts[counts > 0]

    def distinct(self) -> int:
        """How many different values there are."""
        return len(np.unique(self.values[~self.missing], axis=0))

    def cell(self, row: int) -> str:
        """The text of a cell that is not missing."""
        value = self.values[row]
        if self.holds == "texts":
            return self.words[value]
        if self.values.ndim > 1:
            return f"[{', '.join(f'{v:g}' for v in value[:3])}{', ...' * (len(value) > 3)}]"
        return _spelled(float(value))


def columns_of(X: Any, names: Sequence[str] | None = None) -> dict[str, Column]:
    """The columns of a data frame, a table of pyarrow, or a mapping of names to values; those of ``names`` alone.

    Raises
    ------
    InputError
        For what has no named columns, for columns of different lengths, and names that are no texts or not there.
    """
    import pyarrow as pa

    if hasattr(X, "items"):  # a mapping, or a data frame of pandas
        pairs = [*X.items()]
    elif hasattr(X, "__arrow_c_stream__"):
        table = pa.table(X)
        pairs = [*zip(table.column_names, table.columns, strict=True)]
    else:
        problem = f"X must be a table with named columns; got {type(X).__name__}."
        remedy = "Pass a data frame of pandas or polars, a table of pyarrow, or a dict of columns."
        raise InputError(f"{problem} {remedy}", parameter="X")
    columns = dict(pairs)
    if len(columns) < len(pairs) or not all(isinstance(name, str) for name in columns):
        raise InputError(f"Columns need names that are different texts; got {[*columns]!r}.", parameter="X")
    if names is not None:
        if missing := [name for name in names if name not in columns]:
            raise not_there(missing, columns)
        columns = {name: columns[name] for name in names}
    lengths = {len(values) for values in columns.values()}
    if len(lengths) != 1 or 0 in lengths:
        problem = f"X needs rows, and columns of one length; theirs are {sorted(lengths)}."
        raise InputError(problem, parameter="X")
    return {name: _column(name, _array(values)) for name, values in columns.items()}


def not_there(names: Sequence[str], columns: Mapping[str, Any]) -> InputError:
    """The error of columns that a table does not have."""
    listed = ", ".join(map(repr, names))
    known = ", ".join([*columns][:8]) + (", ..." if len(columns) > 8 else "")
    text = f"The table has no column{'s' * (len(names) > 1)} {listed} (it has {known})."
    return InputError(text + "".join(did_you_mean(name, columns) for name in names), parameter="X", column=names[0])


def day_of(text: str, formats: Sequence[str] = ()) -> float:
    """Days since 1970 of a date; NaN for a text that is none.

    ISO 8601, with or without a time; without formats also 2024/3/1 and 1.3.2024. Dates such as 3/1/2024 have two
    readings and are none. Times with an offset are taken at UTC, those without as they stand.
    """
    for form in (*formats, None) if formats else (None, *_FORMATS):
        try:
            found = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        except ValueError:
            continue
        return (found - _EPOCH.replace(tzinfo=found.tzinfo and UTC)).total_seconds() / _SECONDS
    return float("nan")


def _number(word: str) -> float:
    """A number, or infinity; NaN for a text that is neither."""
    found = number_of(word.encode())
    if found is not None:
        return found
    try:
        value = float(word)
    except ValueError:
        return float("nan")
    return value if np.isinf(value) else float("nan")


def _array(values: Any) -> Any:
    """A column for pyarrow; of mixed types as texts."""
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.kind in "iuf":
        return pa.FixedSizeListArray.from_arrays(values.ravel(), values.shape[1])
    try:
        return pa.array(values, from_pandas=True)
    except pa.ArrowException:
        words = map(_spelled, values)
        return pa.array([None if word in ("<NA>", "NaT") else word for word in words], pa.string())


def _spelled(value: Any) -> str:
    """A value as a text: whole numbers without a point, as they would stand in a file."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if abs(number) < 2.0**64 and number.is_integer() else repr(number)
    return str(value)


def _column(name: str, values: Any) -> Column:
    import pyarrow as pa

    types, declared = pa.types, False
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    kind = values.type
    if types.is_dictionary(kind):
        known = values.dictionary  # views of strings, which polars has, cannot be taken by number
        known = known.cast(pa.large_string()) if types.is_string_view(known.type) else known
        declared, values, kind = True, known.take(values.indices), known.type
    if types.is_timestamp(kind):  # at UTC
        values = values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()).cast(pa.timestamp("us"))
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        # float64 cannot tell large whole numbers from their neighbours, and ids of 64 bits are such
        if types.is_floating(kind) or not (np.abs(numbers) >= _WHOLE).any():
            return Column(name, "numbers", numbers, declared=declared, shown=str(kind))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        found = _lists(values)
        if found is not None:
            return Column(name, "lists", found, shown=str(kind))
    else:
        with suppress(pa.ArrowException):
            return _texts(name, values.cast(pa.large_string()), declared)
    nothing = np.where(values.is_null().to_numpy(zero_copy_only=False), np.nan, np.inf)
    return Column(name, "others", nothing, shown=str(values.type))


def _lists(values: Any) -> NDArray[np.float64] | None:
    """Lists of numbers as long as the first one, (m, size): NaN where one is missing, infinity where it is another."""
    import pyarrow as pa
    import pyarrow.compute as pc

    inside = values.type.value_type
    lengths = pc.list_value_length(values).cast(pa.float64()).to_numpy(zero_copy_only=False)
    there = ~np.isnan(lengths)
    size = int(lengths[there][0]) if there.any() else 0
    if not size or not (pa.types.is_integer(inside) or pa.types.is_floating(inside)):
        return None
    flat = values.flatten().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    out, right = np.where(there, np.inf, np.nan)[:, None].repeat(size, axis=1), lengths == size
    ends = np.cumsum(np.nan_to_num(lengths), dtype=np.intp)[right]
    found = flat[ends[:, None] + np.arange(-size, 0)]
    out[right] = np.where(np.isnan(found), np.inf, found)
    return out


def _texts(name: str, values: Any, declared: bool) -> Column:
    """A column of texts, each different one held once; words such as n/a are missing cells."""
    import pyarrow.compute as pc

    coded = values.dictionary_encode()
    places: dict[str, int] = {}
    place_of = []
    for text in coded.dictionary.to_pylist():
        word = text.strip()
        place_of.append(-1 if word.lower() in MISSING else places.setdefault(word, len(places)))
    codes = pc.fill_null(coded.indices, len(place_of)).to_numpy(zero_copy_only=False)
    return Column(name, "texts", np.array([*place_of, -1], dtype=np.intp)[codes], [*places], declared, "text")
