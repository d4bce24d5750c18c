"""Tables with named columns of every format: checked and converted to arrays; errors name row and column."""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import DTypeLike

from rankrls._cells import MISSING, cell_number
from rankrls._errors import InputError
from rankrls._typing import AnyArray, Array, Values
from rankrls.io._text import ids_of, is_whole, joined_ids, objects, quoted
from rankrls.io.columns import ColumnRoles, Reader, check_names, find_columns
from rankrls.io.formats import Stored
from rankrls.io.rows import Rows, Schema

_BATCH_CELLS = 1 << 20
_EXACT = 2.0**53
_FIELDS = {"label": "y", "id": "ids", "weight": "sample_weight"}
"""Attributes of Rows whose names differ from their roles."""
_NO_KEY = "__HIVE_DEFAULT_PARTITION__"
_REMEDIES = {
    "event": " Write 1 if the event was observed, and 0 if it was censored.",
    "feature": " Fill it or leave the column out (ignore). A TableEncoder makes features of other cells.",
    "label": " Higher labels are better: write 1 for yes and 0 for no, or 0, 1, 2, ... for grades.",
}


class CellError(InputError):
    """Error about a cell that is not a number.

    Attributes
    ----------
    cells : mapping of str to pyarrow Array
        Unchanged features of some rows, including the cell.
    """

    cells: Mapping[str, Any] = {}


class Table(Reader):
    """A table whose columns are known.

    Parameters
    ----------
    name : str
        Name in errors.
    source : binary file object, or a data frame with ``__arrow_c_stream__``
    stored : type of Stored
        Class that reads its format.

    Attributes
    ----------
    columns : list of str
        Names. A column "emb" of lists of numbers is represented by the columns ``emb[0]``, ``emb[1]``, and so on; their
        number is that of the first list that is not empty.
    types : dict of str to DataType
        Type of each column. Folders called ``column=value`` directly above the file are columns with one value each.
    textual : bool
        Whether all cells are texts.
    group_sizes : list of int
        Number of rows in each row group of a Parquet file.
    """

    def __init__(self, name: str, source: Any, stored: type[Stored]) -> None:
        self.name = name
        self.columns: list[str] = []
        self.types: Values = {}
        self._source = source
        self._format = stored
        self._lists: dict[str, list[str]] = {}  # columns for each stored column of lists
        self._keys: Values = {}  # values of columns that folders name
        with self._understood():
            self._data = stored(source)
            for field in self._data.schema:
                names = [field.name]
                kind = field.type
                if size := self._list_size(field):
                    names = [f"{field.name}[{k}]" for k in range(size)]
                    kind = kind.value_type
                    self._lists[field.name] = names
                self.columns += names
                self.types |= dict.fromkeys(names, kind)
        self.lines = self._data.lines
        self.textual = self._data.textual
        self.group_sizes = self._data.group_sizes
        for key, value in _folder_keys(name, self.textual).items():
            if key not in self.types:
                self._keys[key] = value
                self.columns.append(key)
                self.types[key] = value.type
        check_names(self.columns, name)

    @property
    def sha256(self) -> str:
        """SHA-256 of the file's bytes on disk; empty for a data frame."""
        if not hasattr(self._source, "seek"):
            return ""
        self._source.seek(0)
        return hashlib.file_digest(self._source, "sha256").hexdigest()

    def schema(self, roles: ColumnRoles) -> Schema:
        """Column of each role."""
        return find_columns(self, roles)

    def scan(self, roles: ColumnRoles) -> Schema:
        """Schema with the types of columns: X is float32 if all feature columns are."""
        schema = self.schema(roles)
        single = {str(self.types[name]) for name in schema.features or ()} <= {"float", "halffloat"}
        return replace(
            schema,
            integers=frozenset(role for role, name in schema.texts.items() if _holds_integers(self.types[name])),
            dtype=np.dtype(np.float32 if single else np.float64),
        )

    def read(self, schema: Schema, groups: range | None = None) -> Rows:
        """Rows of all row groups or some; memory is twice that of the arrays."""
        return self._rows(schema, self.read_roles(schema, groups), self.sha256 if groups is None else "")

    def parts(self, schema: Schema) -> Iterator[Rows]:
        """All rows, in parts."""
        return (self._rows(schema, self._converted(schema, batch, row)) for row, batch in self._batches(schema.stored))

    def cells(self, schema: Schema, missing: tuple[str, ...]) -> Rows:
        """All rows with unchanged cells; X also contains the column of query ids."""
        import pyarrow as pa

        batches = [*self._batches(schema.stored)]
        found = self.read_roles(replace(schema, features=()), batches=batches)
        cells = pa.Table.from_batches([batch for _, batch in batches])
        X = {name: self._without(cells[name], missing) for name in schema.features or ()}
        X |= {name: cells[name] for role, name in schema.columns.items() if role == "qid"}
        return self._rows(schema, found | {"X": pa.table(X)}, self.sha256)

    def unchanged(self) -> Any:
        """All columns of all rows."""
        import pyarrow as pa

        return pa.Table.from_batches(self._stored_batches([*self._data.schema.names, *self._keys]))

    def first_cells(self) -> Any:
        """First rows of all columns, as a batch of pyarrow."""
        return next(self._batches(self.columns))[1]

    def read_roles(
        self,
        schema: Schema,
        groups: range | None = None,
        batches: Iterable[tuple[int, Any]] | None = None,
    ) -> dict[str, AnyArray]:
        """Features, as "X", and the other columns by role.

        Parameters
        ----------
        schema : Schema
        groups : range, optional
            Row groups to read; all by default.
        batches : iterable, optional
            Batches that have been read, possibly with further columns.
        """
        batches = self._batches(schema.stored, groups) if batches is None else batches
        parts = [self._converted(schema, batch, row) for row, batch in batches]
        found = {}
        for role in parts[0]:
            join = joined_ids if role in schema.texts else np.concatenate
            found[role] = join([part[role] for part in parts])
        return found

    def _rows(self, schema: Schema, found: dict[str, AnyArray], sha256: str = "") -> Rows:
        """Rows from columns by role."""
        columns: Values = {"y": None, "qid": None} | {_FIELDS.get(role, role): found[role] for role in found}
        return Rows(**columns, path=self.name, sha256=sha256, schema=schema, lines=self.lines)

    def _converted(self, schema: Schema, batch: Any, row: int) -> dict[str, AnyArray]:
        """Features and columns of each role of a batch, whose first row in the table is ``row``."""
        found = {"X": self._features(batch, row, schema)}
        for role, name in schema.columns.items():
            column = batch.column(name)
            may_be_empty = role in schema.may_be_empty
            if role in schema.texts:
                found[role] = self._ids(column, row, name, may_be_empty)
            else:
                found[role] = self._numbers(column, row, name, role, np.float64, may_be_empty)
        return found

    def _features(self, batch: Any, row: int, schema: Schema) -> AnyArray:
        """Features of a batch."""
        import pyarrow as pa

        names = schema.features or ()
        if not names:
            return np.empty((batch.num_rows, 0), schema.dtype)
        try:
            columns = [
                pa.array(self._numbers(batch.column(name), row, name, "feature", schema.dtype)) for name in names
            ]
        except InputError as error:
            refused = CellError(**vars(error))
            refused.cells = {name: self._without(batch.column(name), ()) for name in names}
            raise refused from error
        # pyarrow converts columns to rows several times faster than numpy
        return np.asarray(pa.RecordBatch.from_arrays(columns, names=[*names]).to_tensor())

    def _numbers(
        self, cells: Any, row: int, name: str, what: str, dtype: DTypeLike, may_be_empty: bool = False
    ) -> AnyArray:
        """A column of finite numbers, with nonnegative weights; NaN for missing cells if allowed."""
        remedy = _REMEDIES.get(what, "")
        if not (self.textual or is_number(cells.type)):
            raise self.refuse(f"column {name!r} ({what}) contains {cells.type}, not numbers.{remedy}", column=name)
        found = _parsed(cells) if self.textual else _as_floats(cells)
        with np.errstate(over="ignore"):
            out = found.astype(dtype, copy=False)
        bad = np.isinf(out) if may_be_empty else ~np.isfinite(out)
        if what == "weight":
            bad |= out < 0
        if bad.any():
            k = int(np.argmax(bad))
            cell = cells[k].as_py()
            shown = "has an empty cell" if cell is None or cell == "" else f"holds {quoted(str(cell).strip())}"
            sign = ", not negative" * (what == "weight")
            message = f"column {name!r} ({what}) {shown}: it must contain finite numbers ({out.dtype}){sign}.{remedy}"
            raise self.refuse_row(row + k, message, column=name)
        return out

    def _ids(self, cells: Any, row: int, name: str, may_be_empty: bool) -> AnyArray:
        """A column of ids as whole numbers or texts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            if pa.types.is_floating(cells.type):  # pandas' representation of integers with a missing one
                whole = cells.cast(pa.int64())
                pc.add(pc.abs(whole), 1).cast(cells.type)  # refuses those that may have been rounded
                cells = whole
            if _holds_integers(cells.type) and not cells.null_count:
                return np.asarray(cells.cast(pa.int64()))
            texts = pc.fill_null(cells.cast(pa.string()), "")
        except pa.ArrowException as error:
            raise self.refuse(
                f"the ids in column {name!r} are neither whole numbers nor UTF-8 text ({error}).", column=name
            ) from None
        empty = pc.index(texts, "").as_py()
        if empty >= 0 and not may_be_empty:
            raise self.refuse_row(row + empty, f"column {name!r} is empty: every row needs an id.", column=name)
        words = texts.to_pylist()
        return ids_of(words) if self.textual else objects(words)

    def _without(self, cells: Any, missing: Sequence[str]) -> Any:
        """Text cells with nulls in place of words that mean missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self.textual:
            return cells
        words = pa.array({"", *(word.lower() for word in missing or MISSING)})
        return pc.if_else(pc.is_in(pc.utf8_lower(cells), words), pa.scalar(None, cells.type), cells)

    def _batches(self, names: Sequence[str], groups: range | None = None) -> Iterator[tuple[int, Any]]:
        """Batches of some columns, with those of lists expanded, and the number of their first row."""
        names = [*names] or self.columns[:1]  # one column, to count the rows
        origins = {part: name for name, parts in self._lists.items() for part in parts}
        stored = [*dict.fromkeys(origins.get(name, name) for name in names)]
        first = row = 0 if groups is None else sum(self.group_sizes[: groups.start])
        for batch in self._stored_batches(stored, max(_BATCH_CELLS // len(names), 1), groups):
            yield row, self._expanded(batch, row).select(names)
            row += batch.num_rows
        if row == first:
            raise self.refuse("the table has no rows.")

    def _stored_batches(self, names: list[str], rows: int = _BATCH_CELLS, groups: range | None = None) -> Iterator[Any]:
        """Batches of some stored columns and keys."""
        import pyarrow as pa

        stored = [name for name in names if name not in self._keys] or self._data.schema.names[:1]
        with self._understood():
            for batch in self._data.batches(stored, rows, groups):
                batch.validate(full=True)  # offsets and codes of a file may be out of range
                for key, value in self._keys.items():
                    batch = batch.append_column(key, pa.repeat(value, batch.num_rows))
                yield batch.select(names)

    def _expanded(self, batch: Any, row: int) -> Any:
        """A batch with a column for each position in lists."""
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            parts = self._lists.get(name)
            if parts is None:
                columns[name] = column
                continue
            other = pc.not_equal(pc.fill_null(pc.list_value_length(column), -1), len(parts))
            k = pc.index(other, True).as_py()
            if k >= 0:
                message = f"column {name!r} needs a list of {len(parts)} numbers, as in other rows."
                raise self.refuse_row(row + k, message, column=name)
            columns |= {part: pc.list_element(column, k) for k, part in enumerate(parts)}
        return pa.RecordBatch.from_pydict(columns)

    def _list_size(self, field: Any) -> int | None:
        """Number of columns that represent a column of lists of numbers; None for other columns."""
        import pyarrow as pa
        import pyarrow.compute as pc

        lists = (pa.ListType, pa.LargeListType, pa.FixedSizeListType)
        if not isinstance(field.type, lists) or not is_number(field.type.value_type):
            return None
        for batch in self._data.batches([field.name], 1024, None):
            return next(filter(None, pc.list_value_length(batch.column(0)).to_pylist()), None)
        return None

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """Describe the fault of the file if pyarrow cannot read it."""
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            line = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            raise self.refuse(
                f"this is not {self._format.kind}, or it is damaged ({line}).{self._format.remedy}"
            ) from None


def _folder_keys(path: str, textual: bool) -> Values:
    """Columns in the names of a file's folders, ``column=value``, as Hive and Spark write partitions.

    A value is a whole number if it is written as one, unless all cells are texts.
    """
    import pyarrow as pa

    keys: Values = {}
    if not os.path.isfile(path):
        return keys
    for folder in reversed(os.path.dirname(os.path.abspath(path)).split(os.sep)):
        key, _, value = map(unquote, folder.partition("="))
        if not key or "=" not in folder:
            break
        text = pa.scalar(None if value == _NO_KEY else value, pa.string())
        keys = {key: pa.scalar(int(value)) if is_whole(value) and not textual else text} | keys
    return keys


def is_number(kind: Any) -> bool:
    """Whether a type is that of numbers or truth values, or of entirely missing cells."""
    from pyarrow import types

    known = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(is_kind(kind) for is_kind in known)


def _holds_integers(kind: Any) -> bool:
    """Whether ids of a type are int64, including pandas' type for integers with missing ones, and not texts."""
    import pyarrow as pa

    return bool((pa.types.is_integer(kind) and not pa.types.is_uint64(kind)) or pa.types.is_floating(kind))


def _as_floats(cells: Any) -> AnyArray:
    """Numbers of a column: NaN for missing ones, infinity for whole numbers that are not exact."""
    import pyarrow as pa

    kind = cells.type
    if pa.types.is_decimal(kind):
        cells = cells.cast(pa.string())  # rounds once; the direct cast rounds twice
    if not pa.types.is_floating(kind):
        cells = cells.cast(pa.float64(), safe=False)
    found: AnyArray = cells.to_numpy(zero_copy_only=False)
    return np.where(np.abs(found) >= _EXACT, np.inf, found) if pa.types.is_integer(kind) else found


def _parsed(cells: Any) -> Array:
    """Numbers of texts: NaN for missing ones, infinity for those that are not numbers."""
    import pyarrow as pa

    try:
        found = np.array(cells.cast(pa.float64()))
    except pa.ArrowInvalid:
        found = np.array([*map(cell_number, cells.to_pylist())])
    for k in np.flatnonzero(~np.isfinite(found)).tolist():
        found[k] = np.nan if cells[k].as_py().strip().lower() in MISSING else np.inf
    return found
