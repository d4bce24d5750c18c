"""Records, such as dicts and lines of JSON, as tables of pyarrow."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scipy.sparse import issparse

from rankrls._errors import InputError
from rankrls._typing import Params

_LOG = "_ltrlog"
"""Field of the logged features of a hit in Elasticsearch and OpenSearch."""


def unrecorded(values: Any, name: str) -> Any:
    """One record or a list of records as a table of pyarrow; other values are returned unchanged.

    Raises
    ------
    InputError
        If values are a lazy polars frame, which has not been computed, or records that form no table.
    """
    if type(values).__name__ == "LazyFrame":
        raise InputError(
            f"{name} is a lazy frame, which has not been computed. Pass the result of its collect().", parameter=name
        )
    if isinstance(values, Mapping) and not issparse(values):  # a sparse matrix by keys is a mapping too
        columns = (value for value in values.values() if not isinstance(value, str | Mapping))
        if not any(hasattr(value, "__len__") for value in columns):  # a mapping of names to single values
            values = [values]
    if isinstance(values, list | tuple) and values and all(isinstance(value, Mapping) for value in values):
        return table_of(values)
    return values


def table_of(records: Iterable[Params]) -> Any:
    """Records as a table of pyarrow, with null for values that a record lacks.

    Nested objects are columns called ``outer.inner``, lists of numbers stay lists, and other lists are JSON text. The
    names and values of ``_ltrlog`` are columns; a feature without a value did not match, and is 0.

    Raises
    ------
    InputError
        If a record has a column twice or cannot be interpreted, with its row, or a column has values of several types.
    """
    import pyarrow as pa

    columns: dict[str, list[Any]] = {}
    n_rows = 0
    for row, record in enumerate(records):
        try:
            cells = [*_cells(record)]
        except (AttributeError, KeyError, TypeError, RecursionError):
            problem = f"{_LOG} must contain lists of names and values; other fields must not be nested too deeply."
            raise InputError(problem, row=row, column=_LOG) from None
        for name, value in cells:
            column = columns.setdefault(name, [])
            if len(column) > row:
                raise InputError(f"the record has {name!r} twice.", row=row, column=name)
            column += [None] * (row - len(column))
            column.append(value)
        n_rows = row + 1
    return pa.table(
        {name: array_of(name, column + [None] * (n_rows - len(column))) for name, column in columns.items()}
    )


def array_of(name: str, values: Any) -> Any:
    """Values of a column, such as a list or a series of pandas, as an array of pyarrow.

    Raises
    ------
    InputError
        If values are of several types, or text cannot be encoded, with the first row that does not suit those before.
    """
    import pyarrow as pa

    def suit(n_rows: int) -> bool:
        try:
            pa.array(cells[:n_rows], from_pandas=True)
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):
            return False
        return True

    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        cells = [*values]
        row = bisect_left(range(1, len(cells) + 1), True, key=lambda n_rows: not suit(n_rows))
        kinds = ", ".join(sorted({type(value).__name__ for value in cells}))
        problem = f"column {name!r} contains values of several types, numbers beyond 64 bits, or broken text"
        found = f"({kinds}), first at {next(iter(cells[row:]), None)!r:.60}"
        remedy = "Convert it to one type, for instance to text."
        raise InputError(f"{problem} {found}. {remedy}", row=row, column=name) from None


def _cells(record: Params, outer: str = "") -> Iterator[tuple[str, Any]]:
    """Columns of a record with their values."""
    for key, value in record.items():
        name = f"{outer}{key}"
        if key == _LOG:
            logged = (feature for entry in value for features in entry.values() for feature in features)
            yield from ((feature["name"], feature.get("value", 0.0)) for feature in logged)
        elif isinstance(value, Mapping):
            yield from _cells(value, f"{name}.")
        elif isinstance(value, list) and not all(isinstance(each, int | float) for each in value):
            yield name, json.dumps(value, default=str)
        else:
            yield name, value
