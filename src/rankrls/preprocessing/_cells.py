"""The columns of a table of any kind, and what their cells are as numbers, days and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cell_text import MISSING
from rankrls._cell_text import number as number_of
from rankrls._errors import InputError

_SECONDS = 86_400.0
_EPOCH = datetime(1970, 1, 1)
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

    if isinstance(X, Mapping):
        pairs = [*X.items()]
    elif isinstance(X, pa.Table | pa.RecordBatch):
        pairs = [*zip(X.schema.names, X.columns, strict=True)]
    elif hasattr(X, "__arrow_c_stream__") and not hasattr(X, "iloc"):
        return columns_of(pa.table(X), names)
    elif hasattr(X, "iloc") and hasattr(X, "columns"):
        pairs = [(name, X.iloc[:, k]) for k, name in enumerate(X.columns)]
    else:
        text = f"X must be a table with named columns; got {type(X).__name__}."
        raise InputError(
            f"{text} Pass a data frame of pandas or polars, a table of pyarrow, or a dict of columns.", parameter="X"
        )
    columns = dict(pairs)
    if len(columns) < len(pairs):
        twice = next(name for k, (name, _) in enumerate(pairs) if name in [other for other, _ in pairs[:k]])
        raise InputError(f"Two columns are called {twice!r}. Names must differ.", parameter="X", column=twice)
    odd = next((name for name in columns if not isinstance(name, str)), None)
    if odd is not None:
        text = f"A column is called {odd!r}, which is no text. Rename the columns: X.columns = X.columns.astype(str)."
        raise InputError(text, parameter="X")
    if names is not None:
        if missing := [name for name in names if name not in columns]:
            raise not_there(missing, columns)
        columns = {name: columns[name] for name in names}
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise InputError(f"The columns of X are of different lengths: {sorted(lengths)}.", parameter="X")
    if not lengths or lengths == {0}:
        raise InputError("X is empty: there is nothing to encode.", parameter="X")
    return {name: _column(name, _array(values)) for name, values in columns.items()}


def not_there(names: Sequence[str], columns: Mapping[str, Any]) -> InputError:
    """The error of columns that a table does not have."""
    listed = ", ".join(map(repr, names))
    known = ", ".join([*columns][:8]) + (", ..." if len(columns) > 8 else "")
    text = f"The table has no column{'s' * (len(names) > 1)} {listed} (it has {known})."
    near = dict.fromkeys(other for name in names for other in get_close_matches(name, columns, n=1, cutoff=0.7))
    if near:
        text += f" Did you mean {' and '.join(map(repr, near))}?"
    return InputError(text, parameter="X", column=names[0])


def day_of(text: str, formats: Sequence[str] = ()) -> float:
    """Days since 1970 of a date; NaN for a text that is none.

    ISO 8601, with or without a time; without formats also 2024/3/1 and 1.3.2024. Dates such as 3/1/2024 have two
    readings and are none. Times with an offset are taken at UTC, those without as they stand.
    """
    for form in (*formats, None):
        try:
            found = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        except ValueError:
            continue
        if found.tzinfo is not None:
            found = found.astimezone(UTC).replace(tzinfo=None)
        return (found - _EPOCH).total_seconds() / _SECONDS
    for sign, order in (("/", 1), ("-", 1), (".", -1)) if not formats else ():
        parts = text.split(sign)[::order]
        if len(parts) == 3 and all(part.isascii() and part.isdigit() for part in parts) and len(parts[0]) == 4:
            try:
                return float((datetime(*map(int, parts)) - _EPOCH).days)  # type: ignore[arg-type]
            except ValueError:
                continue
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
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.array([None if _is_nothing(v) else _spelled(v) for v in values], pa.string())


def _is_nothing(value: Any) -> bool:
    nan = isinstance(value, float) and np.isnan(value)
    return value is None or nan or type(value).__name__ in ("NAType", "NaTType")


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
    import pyarrow.compute as pc

    types, declared = pa.types, False
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ChunkedArray):  # of no rows, or of several dictionaries
        values = pa.concat_arrays(values.chunks)
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
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        lengths = pc.list_value_length(values).cast(pa.float64()).to_numpy(zero_copy_only=False)
        size = int(lengths[~np.isnan(lengths)][0]) if not np.isnan(lengths).all() else 0
        if size and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)):
            flat = values.flatten().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            lists = np.full((len(lengths), size), np.nan)
            lists[~np.isnan(lengths)] = np.inf
            right = lengths == size
            ends = np.cumsum(np.nan_to_num(lengths), dtype=np.intp)[right]
            found = flat[ends[:, None] + np.arange(-size, 0)]
            lists[right] = np.where(np.isnan(found), np.inf, found)
            return Column(name, "lists", lists, shown=str(kind))
        return _other(name, values)
    elif not (types.is_null(kind) or types.is_temporal(kind) or "string" in str(kind)):
        return _other(name, values)
    try:
        return _texts(name, values.cast(pa.large_string()), declared)
    except pa.ArrowNotImplementedError:
        return _other(name, values)


def _other(name: str, values: Any) -> Column:
    nothing = np.where(values.is_null().to_numpy(zero_copy_only=False), np.nan, np.inf)
    return Column(name, "others", nothing, shown=str(values.type))


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
