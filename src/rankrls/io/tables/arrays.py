"""Batches of columns to arrays: the same for every format, checked, and refused by row and column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankrls._cell_text import MISSING, number
from rankrls.io._rows import SAVE_AS_UTF8, Growing, Ids, is_utf8, quoted
from rankrls.io.tables.columns import ReadPlan, Refuse, expanded
from rankrls.io.tables.typed import is_number, lengths

_EXACT = 1 << 53
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_OTHERWISE = "leave the column out (ignore), or name the features (features)."


class Opened(Protocol):
    """A table whose columns are known, and whose rows have not been read."""

    name: str
    sha256: str
    refuse: Refuse
    textual: bool
    columns: Sequence[str]

    def lists(self, others: set[str | None]) -> Mapping[str, int]:
        """How many numbers are in a list, of the columns that hold lists; others are not looked at."""
        ...

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Some columns, some rows at a time; those of text as text."""
        ...


class Held:
    """A table whose batches have been read, or are only some of its rows."""

    def __init__(self, table: Opened, batches: Iterable[Any]) -> None:
        self.name, self.sha256, self.refuse, self.textual = table.name, table.sha256, table.refuse, table.textual
        self.columns, self.lists, self._batches = table.columns, table.lists, batches

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Those that are held, with further columns perhaps."""
        return iter(self._batches)


@dataclass(frozen=True, eq=False)
class Arrays:
    """The columns of a plan: features, labels, weights and events as numbers, and ids by what they are."""

    X: NDArray[Any]
    y: NDArray[np.float64] | None
    weight: NDArray[np.float64] | None
    event: NDArray[np.float64] | None
    texts: dict[str, NDArray[Any]]


def read_arrays(table: Opened, plan: ReadPlan, dtype: DTypeLike = np.float64, *, start: int = 0) -> Arrays:
    """Read the columns of a table; memory is that of the arrays and of a few batches."""
    X, y = Growing((len(plan.features),), dtype), Growing((len(plan.labels),), np.float64)
    alone = {name: Growing((), np.float64) for name in (plan.weight, plan.event) if name is not None}
    ids = {role: Ids() for role in plan.texts}
    for batch in converted(table, table.batches(plan.stored or table.columns[:1]), plan, dtype, start):
        X.append(batch.X)
        y.append(batch.labels)
        for name, column in alone.items():
            column.append(batch.alone[name])
        for role, (different, codes) in batch.texts.items():
            ids[role].append(different, codes)
    values = {name: column.finish() for name, column in alone.items()}
    labels = y.finish()
    return Arrays(
        X=X.finish(),
        y=None if not plan.labels else labels if len(plan.labels) > 1 else labels[:, 0].copy(),
        weight=values.get(plan.weight or ""),
        event=values.get(plan.event or ""),
        texts={role: column.finish(numbers=table.textual) for role, column in ids.items()},
    )


@dataclass(frozen=True, eq=False)
class Converted:
    """Some rows of a plan; ids as different texts and each row's number among them, or as whole numbers."""

    X: NDArray[Any]
    labels: NDArray[np.float64]
    alone: dict[str, NDArray[np.float64]]
    texts: dict[str, tuple[list[str] | None, NDArray[Any]]]


def converted(
    table: Opened, batches: Iterator[Any], plan: ReadPlan, dtype: DTypeLike, row: int = 0
) -> Iterator[Converted]:
    """Batches of a table as arrays; errors count rows from ``row``."""
    for batch in batches:
        yield _Batch(table, batch, row).converted(plan, np.dtype(dtype))
        row += batch.num_rows


class _Batch:
    """Columns of some rows, the first of which is row ``start`` of the table."""

    def __init__(self, table: Opened, batch: Any, start: int) -> None:
        self.table, self.batch, self.start = table, batch, start

    def converted(self, plan: ReadPlan, dtype: np.dtype[Any]) -> Converted:
        """All columns of a plan."""
        alone = {}
        for name, what in ((plan.weight, "weight"), (plan.event, "event")):
            if name is not None:
                alone[name] = self._numbers(name, np.float64, what)
        if plan.weight is not None and (alone[plan.weight] < 0).any():
            k = int(np.argmax(alone[plan.weight] < 0))
            self._fail(k, plan.weight, f"is {alone[plan.weight][k]:g}: a weight is not negative.")
        labels = np.empty((self.batch.num_rows, len(plan.labels)))
        for k, name in enumerate(plan.labels):
            labels[:, k] = self._numbers(name, np.float64, "label", may_miss=plan.may_miss)
        texts = {role: self._ids(name, may_be_empty=role in plan.may_be_empty) for role, name in plan.texts.items()}
        return Converted(self._features(plan, dtype), labels, alone, texts)

    def _features(self, plan: ReadPlan, dtype: np.dtype[Any]) -> NDArray[Any]:
        import pyarrow as pa

        if not plan.features:
            return np.empty((self.batch.num_rows, 0), dtype)
        columns: dict[str, NDArray[Any]] = {}
        for column in plan.lists:
            lists = self._list_column(column, plan.lists[column], dtype)
            columns |= zip(expanded(column, plan.lists), lists.T, strict=True)
        found = [columns[name] if name in columns else self._numbers(name, dtype, "feature") for name in plan.features]
        # pyarrow turns columns into rows several times faster than numpy
        arrays = [pa.array(np.ascontiguousarray(values)) for values in found]
        named = pa.RecordBatch.from_arrays(arrays, names=[*map(str, range(len(arrays)))])
        rows: NDArray[Any] = named.to_tensor().to_numpy()
        return rows

    def _list_column(self, name: str, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """A column of lists as an array with a row for each."""
        import pyarrow as pa

        values = self.batch.column(name)
        found = lengths(values)
        if (found != size).any():
            k = int(np.argmax(found != size))
            if found[k] < 0:
                self._fail(k, name, f"is missing: a list of {size} numbers is wanted.")
            self._fail(k, name, f"holds a list of {found[k]}, and others hold {size}: all must be of one length.")
        flat = _Batch(self.table, pa.RecordBatch.from_arrays([values.flatten()], [name]), self.start)
        return flat._numbers(name, dtype, "feature", size=size).reshape(-1, size)

    def _numbers(
        self, name: str, dtype: DTypeLike, what: str, *, may_miss: bool = False, size: int | None = None
    ) -> NDArray[Any]:
        """A column of finite numbers; NaN for a label that may be missing."""
        values = self.batch.column(name)
        self._size = size
        found = self._from_text(values, name, what, may_miss) if self.table.textual else None
        found = self._from_typed(values, name, what, may_miss) if found is None else found
        with np.errstate(over="ignore"):
            out: NDArray[Any] = found.astype(dtype, copy=False)
        bad = np.isinf(out) if may_miss else ~np.isfinite(out)
        if bad.any():
            k = int(np.argmax(bad))
            too_large = np.isfinite(found[k])
            why = f"is too large for {out.dtype}." if too_large else f"is not finite: a {what} is a finite number."
            self._fail(k, name, why, f"the value {float(found[k])!r} of ")
        return out

    def _from_text(self, cells: Any, name: str, what: str, may_miss: bool) -> NDArray[np.float64]:
        import pyarrow as pa

        try:
            found: NDArray[np.float64] = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
            if np.isfinite(found).all():
                return found
        except pa.ArrowInvalid:
            pass
        coded = cells.dictionary_encode()  # what is unusual, and what is wrong, is found in the different cells
        raw = coded.dictionary.cast(pa.large_binary(), safe=False).to_pylist()
        values = [number(cell) for cell in raw]
        codes = coded.indices.to_numpy()
        missing = [may_miss and _is_missing(cell) for cell in raw]
        bad = np.array([v is None and not gone for v, gone in zip(values, missing, strict=True)])[codes]
        if bad.any():
            k = int(np.argmax(bad))
            self._fail(k, name, *_why_no_number(raw[codes[k]], what))
        return np.array([np.nan if v is None else v for v in values])[codes]

    def _from_typed(self, values: Any, name: str, what: str, may_miss: bool) -> NDArray[Any]:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not is_number(values.type) and not pa.types.is_null(values.type):
            remedy = _OTHERWISE if what == "feature" else f"a {what} is a number."
            message = f"the column {name!r} holds {values.type}, no numbers: {remedy}"
            raise self.table.refuse(message, column=name)
        if values.null_count and not may_miss:
            k = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            self._fail(k, name, f"is missing: a {what} is a number.")
        if pa.types.is_integer(values.type):
            whole = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
            for k in np.flatnonzero((whole > _EXACT) | (whole < -_EXACT)).tolist():
                if int(float(whole[k])) != int(whole[k]):
                    why = "is a whole number that no float64 is: store the column as floats, or leave it out (ignore)."
                    self._fail(k, name, why, f"the value {whole[k]} of ")
            values = values.cast(pa.float64(), safe=False)
        elif pa.types.is_decimal(values.type):
            values = values.cast(pa.string()).cast(pa.float64())  # rounds once; the direct cast rounds twice
        elif not pa.types.is_floating(values.type):
            values = values.cast(pa.float64())
        found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return found

    def _ids(self, name: str, *, may_be_empty: bool) -> tuple[list[str] | None, NDArray[Any]]:
        """Ids as different texts and their numbers, or as whole numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self.batch.column(name)
        if pa.types.is_dictionary(values.type) and values.dictionary.null_count:
            values = values.dictionary_decode()
        if values.null_count:
            if not may_be_empty:
                k = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
                self._fail(k, name, "is missing: every row needs an id.")
            values = pc.fill_null(values.cast(pa.string()), "")
        if pa.types.is_integer(values.type) and not pa.types.is_uint64(values.type):
            return None, values.cast(pa.int64()).to_numpy()
        if pa.types.is_floating(values.type):  # how pandas stores whole numbers beside a missing one
            found = np.asarray(values, dtype=np.float64)
            whole = (np.abs(found) < _EXACT) & (found == np.floor(found))
            if not whole.all():
                k = int(np.argmin(whole))
                self._fail(k, name, f"is {found[k]}: an id is a whole number or a text.")
            return None, found.astype(np.int64)
        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        codes = values.indices.to_numpy()
        return self._different(values.dictionary, codes, name, may_be_empty), codes

    def _different(self, values: Any, codes: NDArray[Any], name: str, may_be_empty: bool) -> list[str]:
        import pyarrow as pa

        text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
        if not any(check(values.type) for check in text):
            return [str(value) for value in values.to_pylist()]
        raw = values.view(pa.binary()) if pa.types.is_string(values.type) else values.cast(pa.large_binary())
        cells = [cell.strip() for cell in raw.to_pylist()] if self.table.textual else raw.to_pylist()
        joined = b"".join(cells)
        if is_utf8(joined) and b"\0" not in joined and (may_be_empty or b"" not in cells):
            return [cell.decode() for cell in cells]
        for code, cell in enumerate(cells):
            why = ""
            if not cell and not may_be_empty:
                why = "is empty: every row needs an id."
            elif not is_utf8(cell):
                why = f"is not UTF-8 text: {SAVE_AS_UTF8}"
            elif b"\0" in cell:
                why = "holds a NUL byte: the file is damaged, or no UTF-8 text."
            if why and (codes == code).any():
                self._fail(int(np.argmax(codes == code)), name, why, f"the cell {quoted(cell)} of ")
        return [cell.decode("utf-8", "replace") for cell in cells]  # those that are wrong are in no row

    def _fail(self, k: int, name: str, why: str, before: str = "") -> NoReturn:
        size = getattr(self, "_size", None)
        row = self.start + (k if size is None else k // size)
        name = name if size is None else f"{name}[{k % size}]"
        message = f"row {row}, counted from 0: {before}column {name!r} {why}"
        raise self.table.refuse(message, row=row, column=name)


def _is_missing(raw: bytes) -> bool:
    return raw.strip().decode("latin-1").lower() in MISSING


def _why_no_number(raw: bytes, what: str) -> tuple[str, str]:
    """What is wrong with a cell, and what stands before the name of its column."""
    text = raw.decode("utf-8", "replace").strip()
    before = f"the value {quoted(text)} of "
    if not text:
        remedy = "every row needs one" if what != "feature" else f"fill it, or {_OTHERWISE.rstrip('.')}"
        return f"is empty: {remedy}.", "the cell of "
    if _is_missing(raw):
        return "is missing: every row needs a number.", before
    if _DECIMAL_COMMA.fullmatch(text):
        return "is not a number: write decimals with a point, and thousands without a sign.", before
    return f"is not a finite number: {_OTHERWISE if what == 'feature' else f'a {what} is one.'}", before
