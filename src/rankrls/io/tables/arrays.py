"""Batches of columns to arrays: the same for every format, checked, and refused by row and column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankrls._checks import MISSING, number
from rankrls.io._rows import Growing, Ids, quoted
from rankrls.io.tables.columns import ReadPlan
from rankrls.io.tables.opened import Table, is_number

_EXACT = 2.0**53


@dataclass(frozen=True, eq=False)
class Arrays:
    """The columns of a plan: features, labels, and further numbers and ids by what they are.

    ``texts`` of some rows are the different texts and each row's number among them, or None and whole numbers; of all
    rows they are arrays.
    """

    X: NDArray[Any]
    y: NDArray[np.float64] | None
    numbers: dict[str, NDArray[np.float64]]
    texts: dict[str, Any]


def read_arrays(
    table: Table,
    plan: ReadPlan,
    dtype: DTypeLike = np.float64,
    batches: Iterable[tuple[int, Any]] | None = None,
) -> Arrays:
    """Read the columns of a table, or of some of its rows; memory is that of the arrays and of a few batches.

    Parameters
    ----------
    table : Table
    plan : ReadPlan
    dtype : dtype
        Of the features.
    batches : iterable, optional
        Some of its batches, perhaps with further columns.
    """
    held: dict[str, Growing] = {}
    ids = {role: Ids() for role in plan.texts}
    for part in converted(table, plan, dtype, batches):
        for name, values in {"X": part.X, "y": part.y, **part.numbers}.items():
            if values is not None:
                held.setdefault(name, Growing(values.shape[1:], values.dtype)).append(values)
        for role, (different, codes) in part.texts.items():
            ids[role].append(different, codes)
    texts = {role: column.finish(numbers=table.textual) for role, column in ids.items()}
    numbers: dict[str, Any] = {name: column.finish() for name, column in held.items()}
    return Arrays(numbers.pop("X"), numbers.pop("y", None), numbers, texts)


def converted(
    table: Table, plan: ReadPlan, dtype: DTypeLike, batches: Iterable[tuple[int, Any]] | None = None
) -> Iterator[Arrays]:
    """Some rows after others, as :func:`read_arrays` reads all."""
    for row, batch in table.batches(plan.stored) if batches is None else batches:
        part = _Batch(table, batch, row)
        yield Arrays(
            X=part.features(plan.features, np.dtype(dtype)),
            y=None if plan.label is None else part.numbers(plan.label, "label", may_miss=plan.may_miss),
            numbers={what: part.numbers(name, what) for what, name in plan.numbers.items()},
            texts={role: part.ids(name, may_be_empty=role in plan.may_be_empty) for role, name in plan.texts.items()},
        )


def feature_type(table: Table, plan: ReadPlan) -> np.dtype[Any]:
    """float32 if all columns of features are single precision, else float64."""
    kinds = {str(table.types[name]) for name in plan.features}
    return np.dtype(np.float32 if kinds <= {"float", "halffloat"} else np.float64)


@dataclass(frozen=True)
class _Batch:
    """Columns of some rows, the first of which is row ``start`` of the table."""

    table: Table
    batch: Any
    start: int

    def features(self, names: tuple[str, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        import pyarrow as pa

        if not names:
            return np.empty((self.batch.num_rows, 0), dtype)
        # pyarrow turns columns into rows several times faster than numpy
        columns = [pa.array(self.numbers(name, "feature", dtype)) for name in names]
        rows: NDArray[Any] = pa.RecordBatch.from_arrays(columns, names=[*names]).to_tensor().to_numpy()
        return rows

    def numbers(self, name: str, what: str, dtype: DTypeLike = np.float64, *, may_miss: bool = False) -> NDArray[Any]:
        """A column of finite numbers, weights not negative; NaN for a label that may be missing."""
        import pyarrow as pa

        column = self.batch.column(name)
        kind = column.type
        remedy = " Fill it, or leave the column out (ignore)." if what == "feature" else ""
        if self.table.textual:
            found = _parsed(column)
        elif not is_number(kind) and not pa.types.is_null(kind):
            message = f"the column {name!r} holds {kind}, but {what}s are numbers.{remedy}"
            raise self.table.refuse(message, column=name)
        else:
            if pa.types.is_decimal(kind):
                column = column.cast(pa.string())  # rounds once; the direct cast rounds twice
            if not pa.types.is_floating(kind):
                column = column.cast(pa.float64(), safe=False)
            found = column.to_numpy(zero_copy_only=False)
            if pa.types.is_integer(kind):
                found = np.where(np.abs(found) >= _EXACT, np.inf, found)
        with np.errstate(over="ignore"):
            out: NDArray[Any] = found.astype(dtype, copy=False)
        bad = np.isinf(out) if may_miss else ~np.isfinite(out)
        if what == "weight":
            bad |= out < 0
        if bad.any():
            k = int(np.argmax(bad))
            cell = self.batch.column(name)[k].as_py()
            shown = "nothing" if cell is None or cell == "" else quoted(str(cell).strip())
            sign = ", not negative" * (what == "weight")
            many = what.removesuffix("s") + "s"
            message = f"column {name!r} holds {shown}, but {many} are finite numbers that {out.dtype} can hold{sign}."
            raise self._refused(k, name, message + remedy)
        return out

    def ids(self, name: str, *, may_be_empty: bool) -> tuple[list[str] | None, NDArray[Any]]:
        """Ids as different texts and their numbers, or as whole numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.batch.column(name)
        try:
            if pa.types.is_floating(column.type):  # how pandas stores whole numbers beside a missing one
                column = column.cast(pa.int64())
                pc.add(pc.abs(column), 1).cast(self.batch.column(name).type)  # refuses those that may be rounded
            whole = pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type)
            if whole and not column.null_count:
                return None, column.cast(pa.int64()).to_numpy()
            coded = column.dictionary_encode()
            different = pc.fill_null(coded.dictionary.cast(pa.string()), "").to_pylist()
        except pa.ArrowException as error:
            message = f"the ids in column {name!r} are neither whole numbers nor UTF-8 text ({error})."
            raise self.table.refuse(message, column=name) from None
        codes = pc.fill_null(coded.indices, len(different)).to_numpy(zero_copy_only=False)
        different += [""] * bool(coded.indices.null_count)
        empty = np.isin(codes, [code for code, text in enumerate(different) if not text])
        if empty.any() and not may_be_empty:
            raise self._refused(int(np.argmax(empty)), name, f"column {name!r} is empty: every row needs an id.")
        return different, codes

    def _refused(self, k: int, name: str, message: str) -> Exception:
        row = self.start + k
        return self.table.refuse(f"row {row}, counted from 0: {message}", row=row, column=name)


def _parsed(cells: Any) -> NDArray[np.float64]:
    """Numbers of cells: NaN where nothing stands, infinity for what is no number."""
    import pyarrow as pa

    try:
        found: NDArray[np.float64] = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
        if np.isfinite(found).all():
            return found
    except pa.ArrowInvalid:
        pass
    coded = cells.dictionary_encode()
    values = []
    for text in coded.dictionary.to_pylist():
        value = number(text.encode())
        values.append(value if value is not None else np.nan if text.strip().lower() in MISSING else np.inf)
    return np.array(values)[coded.indices.to_numpy()]
