"""Numbers, days and lists of numbers that have to be there, and what stands for those that are missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.preprocessing._cells import Column

if TYPE_CHECKING:
    from sklearn.impute import SimpleImputer

_STRATEGIES = ("median", "mean", "most_frequent")


def checked_fills(impute: Any) -> Mapping[str, Any]:
    """What ``impute`` says column by column; nothing if it says one thing of all."""
    filled = impute if isinstance(impute, Mapping) else {}
    for value in filled.values() if filled else () if impute is None else (impute,):
        right = isinstance(value, int | float | np.number) and not isinstance(value, bool) and np.isfinite(value)
        if not right and value not in _STRATEGIES:
            problem = "{impute} must be one of {0}, or a finite number; got {1!r}."
            raise InputError(problem, ", ".join(map(repr, _STRATEGIES)), value)
    return filled


def imputer_for(fill: Any, *, indicator: bool) -> SimpleImputer:
    """What fills in a number, or what a strategy says; nothing is missing where there is neither."""
    from sklearn.impute import SimpleImputer

    constant = not isinstance(fill, str)
    return SimpleImputer(
        strategy="constant" if constant else fill,
        fill_value=float(fill or 0.0) if constant else None,
        add_indicator=indicator and fill is not None,
    )


def values_of(
    column: Column, kind: str, *, size: int = 0, formats: Sequence[str] = (), fills: bool = False
) -> NDArray[np.float64]:
    """Numbers, the days of dates, or lists as rows of ``size`` numbers; NaN where they are missing.

    Raises
    ------
    InputError
        For the first cell that holds something else. It may be emptied if missing cells are filled.
    """
    if kind == "list":
        found, bad = column.as_lists(size)
    else:
        found, bad = column.as_days(formats) if kind == "date" else column.as_numbers()
    if bad.any():
        row = int(np.argmax(bad))
        wanted = {"date": "date", "number": "finite number", "list": f"list of {size} finite numbers"}[kind]
        raise InputError(
            "The cell {0!r} of column {1!r}, row {2}, is no {3}.",
            *(column.cell(row), column.name, row, wanted),
            remedy="Correct the cell, or empty it." if fills else "Correct the cell.",
            parameter="X",
            column=column.name,
            row=row,
        )
    return found


def check_filled(columns: Iterable[Column]) -> None:
    """Refuse missing cells of columns that have nothing to fill them with; all of them in one error."""
    errors = []
    for column in columns:
        if column.missing.any():
            row = int(np.argmax(column.missing))
            place: dict[str, Any] = {"parameter": "impute", "column": column.name, "row": row}
            remedy = "Give {impute='median'}."
            errors.append(InputError("Column {0!r} has no value in row {1}.", column.name, row, remedy=remedy, **place))
    if errors:
        raise errors[0].joined(errors[1:])
