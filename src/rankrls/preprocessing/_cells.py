"""The columns of a table of any kind, and what their cells are as numbers, days and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
_US_PER_DAY = 86_400_000_000
_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of a column: different texts and their codes, or numbers, or days, or lists of numbers.

    Attributes
    ----------
    name : str
    holds : {"texts", "numbers", "days", "lists", "others"}
        What the table says it holds. Texts may be numbers or dates all the same.
    codes : ndarray of intp, shape (m,)
        Of texts: the number of each row's text in ``words``; -1 is a missing cell.
    words : list of str
        The different texts, without blanks around them.
    values : ndarray of float64, shape (m,)
        Numbers, or days since 1970, or the lengths of lists; NaN is a missing cell. Empty for texts.
    declared : bool
        Whether the table's type says that these are categories.
    shown : str
        The type, for people.
    flat : ndarray of float64
        Of lists: the numbers of all that are there, one list behind the other.
    """

    name: str
    holds: str
    codes: NDArray[np.intp]
    words: list[str]
    values: NDArray[np.float64]
    declared: bool = False
    shown: str = ""
    flat: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        return self.codes < 0 if self.holds == "texts" else np.isnan(self.values)

    def as_numbers(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Numbers, NaN for missing cells; and which cells are neither a finite number nor missing."""
        if self.holds != "texts":
            bad = np.isinf(self.values) if self.holds == "numbers" else np.ones(len(self.values), dtype=bool)
            return self.values, bad
        return self._read([number_of(word.encode()) for word in self.words])

    def as_days(self, formats: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Days since 1970, NaN for missing cells; and which cells are neither a date nor missing."""
        if self.holds != "texts":
            bad = np.zeros(len(self.values), dtype=bool) if self.holds == "days" else ~self.missing
            return self.values, bad
        return self._read([day_of(word, formats) for word in self.words])

    @property
    def list_size(self) -> int:
        """How many numbers the first list has."""
        return int(self.values[~self.missing][0])

    def as_lists(self, size: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Lists as rows of so many numbers, NaN where they are missing; and which cells are no such list."""
        there, out = np.flatnonzero(~self.missing), np.full((len(self.missing), size), np.nan)
        if self.holds != "lists":
            return out, ~self.missing
        right, ends = self.values[there] == size, np.cumsum(self.values[there], dtype=np.intp)
        out[there[right]] = self.flat[ends[right][:, None] + np.arange(-size, 0)]
        return out, ~self.missing & ~np.isfinite(out).all(axis=1)

    def as_texts(self) -> tuple[list[str], NDArray[np.intp]]:
        """The different texts, and the number of each row's; "" is a missing cell."""
        if self.holds == "texts":
            return [*self.words, ""], np.where(self.codes < 0, len(self.words), self.codes)
        different, codes = np.unique(self.values, return_inverse=True)
        return ["" if np.isnan(v) else self._spell(v) for v in different.tolist()], codes.astype(np.intp)

    def _spell(self, value: float) -> str:
        return _spelled_day(value) if self.holds == "days" else _spelled(value)

    def cell(self, row: int) -> str:
        """The text of a cell."""
        if self.holds == "texts":
            return self.words[self.codes[row]] if self.codes[row] >= 0 else ""
        value = float(self.values[row])
        if self.holds == "lists" and value > 0:
            end = int(np.nansum(self.values[: row + 1]))
            shown = ", ".join(f"{v:g}" for v in self.flat[end - int(value) :][: min(int(value), _SHOWN)])
            return f"[{shown}{', ...' if value > _SHOWN else ''}]"
        return "" if np.isnan(value) else self._spell(value)

    def _read(self, found: list[float | None]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        values = np.array([np.nan if value is None else value for value in found] + [np.nan])
        wrong = np.array([value is None for value in found] + [False])
        return values[self.codes], wrong[self.codes]


def columns_of(X: Any) -> dict[str, Column]:
    """The columns of a data frame, a table of pyarrow, or a mapping of names to values.

    Raises
    ------
    InputError
        For what has no named columns, for columns of different lengths, and names that are no texts.
    """
    import pyarrow as pa

    if isinstance(X, Mapping):
        pairs = [(name, _array(values)) for name, values in X.items()]
    elif isinstance(X, pa.Table | pa.RecordBatch):
        pairs = [*zip(X.schema.names, X.columns, strict=True)]
    elif hasattr(X, "__arrow_c_stream__") and not hasattr(X, "iloc"):
        return columns_of(pa.table(X))
    elif hasattr(X, "iloc") and hasattr(X, "columns"):
        pairs = [(name, _array(X.iloc[:, k])) for k, name in enumerate(X.columns)]
    else:
        raise InputError(
            "{X} must be a table with named columns; got {0}.",
            type(X).__name__,
            remedy="Pass a data frame of pandas or polars, a table of pyarrow, or a dict of columns.",
        )
    columns = dict(pairs)
    for k, (name, _) in enumerate(pairs):
        if not isinstance(name, str):
            remedy = "Rename the columns: X.columns = X.columns.astype(str)."
            raise InputError("A column is called {0!r}, which is no text.", name, remedy=remedy, parameter="X")
        if name in [other for other, _ in pairs[:k]]:
            raise InputError(
                "Two columns are called {0!r}.", name, remedy="Names must differ.", parameter="X", column=name
            )
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise InputError("The columns of {X} are of different lengths: {0}.", sorted(lengths))
    if not lengths or lengths == {0}:
        raise InputError("{X} is empty: there is nothing to encode.")
    return {name: _column(name, values) for name, values in columns.items()}


def texts_of(columns: Mapping[str, Column], names: Sequence[str]) -> NDArray[Any]:
    """The cells of some columns as an array of texts, "" where they are missing."""
    out = np.empty((len(columns[names[0]].missing), len(names)), dtype=object)
    for k, name in enumerate(names):
        words, codes = columns[name].as_texts()
        out[:, k] = np.array(words, dtype=object)[codes]
    return out


def not_there(names: Sequence[str], columns: Mapping[str, Column]) -> InputError:
    """The error of columns that a table does not have."""
    listed = ", ".join(map(repr, names))
    known = ", ".join([*columns][:8]) + (", ..." if len(columns) > 8 else "")
    problem = f"The table has no column{'s' * (len(names) > 1)} {{0}} (it has {{1}})."
    near = dict.fromkeys(other for name in names for other in get_close_matches(name, columns, n=1, cutoff=0.7))
    meant = " and ".join(map(repr, near)).replace("{", "{{").replace("}", "}}")
    remedy = f"Did you mean {meant}?" if near else ""
    return InputError(problem, listed, known, remedy=remedy, parameter="X", column=names[0])


def day_of(text: str, formats: Sequence[str] = ()) -> float | None:
    """Days since 1970 of a date; None for a text that is none.

    Without formats: ISO 8601, with or without a time, 2024/3/1, and 1.3.2024. Dates such as 3/1/2024 have two readings
    and are none. Times with an offset are taken at UTC, those without as they stand.
    """
    for reads in [_by_format(form) for form in formats] or [datetime.fromisoformat, _by_parts]:
        try:
            found = reads(text)
        except ValueError:
            continue
        if found.tzinfo is not None:
            found = found.astimezone(UTC).replace(tzinfo=None)
        return (found - _EPOCH).total_seconds() / _SECONDS
    return None


def _by_format(form: str) -> Any:
    return lambda text: datetime.strptime(text, form)


def _by_parts(text: str) -> datetime:
    """2024/3/1, 2024-3-1 and 1.3.2024."""
    for sign, order in (("/", (0, 1, 2)), ("-", (0, 1, 2)), (".", (2, 1, 0))):
        parts = text.split(sign)
        if len(parts) == 3 and all(part.isascii() and part.isdigit() for part in parts) and len(parts[order[0]]) == 4:
            year, month, day = (int(parts[k]) for k in order)
            return datetime(year, month, day)
    raise ValueError


def _array(values: Any) -> Any:
    """A column for pyarrow; of mixed types as texts."""
    import pyarrow as pa

    if isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.kind in "iuf":
        return pa.FixedSizeListArray.from_arrays(values.ravel(), values.shape[1])
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.array([None if _is_nothing(v) else _spelled(v) for v in values], pa.string())


def _is_nothing(value: Any) -> bool:
    return (
        value is None or (isinstance(value, float) and np.isnan(value)) or type(value).__name__ in ("NAType", "NaTType")
    )


def _spelled(value: Any) -> str:
    """A value as a text: whole numbers without a point, as they would stand in a file."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if abs(number) < 2.0**53 and number.is_integer() else repr(number)
    return str(value)


def _spelled_day(value: float) -> str:
    found = np.datetime64(round(value * _SECONDS), "s").item()
    return (found.date() if found.time() == datetime.min.time() else found).isoformat()


def _column(name: str, values: Any) -> Column:
    import pyarrow as pa

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
    none = np.empty(0, dtype=np.intp)
    found = lambda holds, numbers: Column(name, holds, none, [], numbers, declared, str(kind))
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return found("numbers", values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    if types.is_date(kind) or types.is_timestamp(kind):
        stamps = values.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False).cast(pa.int64())
        return found("days", stamps.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) / _US_PER_DAY)
    if types.is_null(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return _texts(name, values.cast(pa.large_string()), declared)
    if (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)) and (
        types.is_integer(kind.value_type) or types.is_floating(kind.value_type)
    ):
        import pyarrow.compute as pc

        flat = values.flatten().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        lengths = pc.list_value_length(values).cast(pa.float64()).to_numpy(zero_copy_only=False)
        return Column(name, "lists", none, [], lengths, False, str(kind), flat)
    return found("others", np.where(values.is_null().to_numpy(zero_copy_only=False), np.nan, 0.0))


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
    return Column(
        name, "texts", np.array([*place_of, -1], dtype=np.intp)[codes], [*places], np.empty(0), declared, "text"
    )
