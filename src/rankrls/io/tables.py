"""Tables with named columns of every format: checked and converted to arrays; errors name row and column."""

from __future__ import annotations

import csv
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import compress, islice, takewhile
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import DTypeLike

from rankrls._cells import MISSING, cell_number
from rankrls._errors import InputError
from rankrls._typing import AnyArray, Array, Mask
from rankrls.io._stored import Stored
from rankrls.io._text import Growing, ids_of, is_whole, joined_ids, objects, quoted
from rankrls.io.columns import ColumnRoles, find_columns
from rankrls.io.reader import Reader
from rankrls.io.rows import Rows, Schema

_BATCH_CELLS = 1 << 20
_EXACT = 2.0**53
_FIELDS = {"label": "y", "id": "ids", "weight": "sample_weight"}
"""Attributes of Rows whose names differ from their roles."""
_NO_KEY = "__HIVE_DEFAULT_PARTITION__"


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
    kind : str
        Name of the format in errors.
    open : callable
        Function that opens the source.

    Attributes
    ----------
    columns : list of str
        Names. A column "emb" of lists of numbers is represented by the columns ``emb[0]``, ``emb[1]``, and so on; their
        number is that of the first list that is not empty.
    types : dict of str to DataType
        Type of each column.

    Notes
    -----
    Folders called ``column=value`` directly above a file are columns with one value each.
    """

    def __init__(self, name: str, source: Any, kind: str, open: Callable[[Any], Stored]) -> None:
        self.name = name
        self.columns: list[str] = []
        self.types: dict[str, Any] = {}
        self._kind = kind
        self._source = source
        self._places: dict[
            str, tuple[str | None, Any]
        ] = {}  # a stored column and a position in its lists; or the value of a key
        self._sizes: dict[str, int] = {}  # sizes of the lists
        with self._understood():
            self._data = open(source)
            for field in self._data.schema:
                size = self._list_size(field)
                places = {field.name: None} if size is None else {f"{field.name}[{k}]": k for k in range(size)}
                self.columns += places
                self.types |= dict.fromkeys(places, field.type if size is None else field.type.value_type)
                self._places |= {name: (field.name, place) for name, place in places.items()}
                self._sizes |= {} if size is None else {field.name: size}
        for key, value in (partition_keys(os.path.abspath(name)) if os.path.isfile(name) else {}).items():
            if key not in self.columns:
                self._places[key] = (None, self._key(value))
                self.columns.append(key)
                self.types[key] = self._places[key][1].type
        self.lines = self._data.lines
        self.group_sizes = self._data.group_sizes
        twice = next((name for name, count in Counter(self.columns).items() if count > 1), None)
        if twice is not None:
            problem = f"two columns are called {twice!r}. Use a different name for each, in text on the first line."
            raise self.refuse(problem, column=twice)

    @property
    def textual(self) -> bool:
        """Whether all cells are texts."""
        return self._data.textual

    @property
    def sha256(self) -> str:
        """SHA-256 of the file's bytes on disk, when it has been read; empty for a data frame."""
        if self._data.text is not None:
            return self._data.text.sha256
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
        """Rows of all row groups or some; memory is that of the arrays and of a few batches."""
        return self._rows(schema, self.read_roles(schema, groups), self.sha256 if groups is None else "")

    def parts(self, schema: Schema) -> Iterator[Rows]:
        """All rows, in parts."""
        return (self._rows(schema, self._converted(schema, batch, row)) for row, batch in self._batches(schema.stored))

    def cells(self, schema: Schema, missing: tuple[str, ...]) -> Rows:
        """All rows with unchanged cells; X also contains the column of query ids."""
        import pyarrow as pa

        batches = [*self._batches(schema.stored)]
        found = self.read_roles(replace(schema, features=()), batches=batches)
        query_text = [name for role, name in schema.texts.items() if role == "qid"]
        held = [*dict.fromkeys([*(schema.features or ()), *query_text])]
        X = pa.Table.from_batches([batch for _, batch in batches]).select(held)
        ids = {*schema.texts.values()}
        columns = {name: X[name] if name in ids else self._without(X[name], missing) for name in held}
        return self._rows(schema, found | {"X": pa.table(columns)}, self.sha256)

    def _without(self, cells: Any, missing: Sequence[str]) -> Any:
        """Text cells with nulls in place of words that mean missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self.textual:
            return cells
        words = pa.array({"", *(word.lower() for word in missing or MISSING)})
        return pc.if_else(pc.is_in(pc.utf8_lower(cells), words), pa.scalar(None, cells.type), cells)

    def stored(self, kept: Mask) -> Iterator[Any]:
        """The selected rows, as tables of pyarrow or lines."""
        import pyarrow as pa

        keys = {name: value for name, (stored, value) in self._places.items() if stored is None}
        if not keys and (lines := self._data.as_lines()) is not None:
            yield from compress(lines, kept)
            return
        first = 0
        for batch in self._stored(self._data.schema.names):
            rows = pa.Table.from_batches([batch.filter(pa.array(kept[first : first + batch.num_rows]))])
            for name, value in keys.items():
                rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
            yield rows
            first += batch.num_rows

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
        held: dict[str, Growing] = {}
        ids: dict[str, list[AnyArray]] = {role: [] for role in schema.texts}
        for row, batch in self._batches(schema.stored, groups) if batches is None else batches:
            for name, values in self._converted(schema, batch, row).items():
                if name in ids:
                    ids[name].append(values)
                else:
                    held.setdefault(name, Growing(values.shape[1:], values.dtype)).append(values)
        by_role = {name: column.finish() for name, column in held.items()}
        return by_role | {role: joined_ids(found) for role, found in ids.items()}

    def _rows(self, schema: Schema, found: dict[str, AnyArray], sha256: str = "") -> Rows:
        """Rows from columns by role."""
        columns: dict[str, Any] = {"y": None, "qid": None} | {_FIELDS.get(role, role): found[role] for role in found}
        return Rows(**columns, path=self.name, sha256=sha256, schema=schema, lines=self.lines)

    def _converted(self, schema: Schema, batch: Any, row: int) -> dict[str, AnyArray]:
        """Features and columns of each role of a batch, whose first row in the table is ``row``."""
        part = _Batch(self, batch, row)
        names = schema.features or ()
        try:
            found = {"X": part.features(names, schema.dtype)}
        except InputError as error:
            refused = CellError(error.message, row=error.row, column=error.column, file=error.file, line=error.line)
            refused.cells = {name: self._without(batch.column(name), ()) for name in names}
            raise refused from error
        found |= {role: part.numbers(name, role, schema.may_be_empty) for role, name in schema.numbers.items()}
        return found | {role: part.ids(name, role, schema.may_be_empty) for role, name in schema.texts.items()}

    def _stored(self, names: Sequence[str], step: int = _BATCH_CELLS, groups: range | None = None) -> Iterator[Any]:
        """Batches of some stored columns."""
        with self._understood():
            for batch in self._data.batches([*names], step, groups):
                if not self.textual:
                    batch.validate(full=True)  # offsets and codes of a file may be out of range
                yield batch

    def _batches(self, names: Sequence[str], groups: range | None = None) -> Iterator[tuple[int, Any]]:
        """Batches of some columns, with those of lists expanded, and the number of their first row."""
        names = names or self.columns[:1]  # one column, to count the rows
        stored = dict.fromkeys(filter(None, (self._places[name][0] for name in names)))
        stored = stored or dict.fromkeys(self._data.schema.names[:1])
        step = max(_BATCH_CELLS // len(names), 1)
        first = row = 0 if groups is None else sum(self.group_sizes[: groups.start])
        for batch in self._stored([*stored], step, groups):
            yield row, self._flat(batch, names, row)
            row += batch.num_rows
        if row == first:
            raise self.refuse("the table has no rows.")

    def _list_size(self, field: Any) -> int | None:
        """Number of columns that represent a column of lists of numbers; None for other columns."""
        import pyarrow as pa
        import pyarrow.compute as pc

        lists = (pa.ListType, pa.LargeListType, pa.FixedSizeListType)
        if not isinstance(field.type, lists) or not is_number(field.type.value_type):
            return None
        first = islice(self._data.batches([field.name], 1024, None), 1)
        sizes = (size for batch in first for size in pc.list_value_length(batch.column(0)).to_pylist())
        return next(filter(None, sizes), None)

    def _flat(self, batch: Any, names: Sequence[str], row: int) -> Any:
        """The requested columns, with those of lists expanded."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for stored in filter(self._sizes.get, batch.schema.names):
            size = self._sizes[stored]
            lengths = pc.fill_null(pc.list_value_length(batch.column(stored)), -1)
            k = pc.index(pc.equal(lengths, size), False).as_py()
            if k >= 0:
                message = f"column {stored!r} needs a list of {size} numbers, as in other rows."
                raise self.refuse_row(row + k, message, column=stored)
        columns = []
        for name in names:
            stored, place = self._places[name]
            if stored is None:
                columns.append(pa.repeat(place, batch.num_rows))
                continue
            column = batch.column(stored)
            columns.append(column if place is None else pc.list_element(column, place))
        return pa.RecordBatch.from_arrays(columns, names=[*names])

    def _key(self, value: str) -> Any:
        """Value of a partition's key: a whole number if written as one, else text."""
        import pyarrow as pa

        if is_whole(value) and not self.textual:
            return pa.scalar(int(value))
        return pa.scalar(None if value == _NO_KEY else value, pa.string())

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
            raise self.refuse(f"this is not {self._kind}, or it is damaged ({line}).") from None


def partition_keys(path: str) -> dict[str, str]:
    """Columns in the names of a file's folders, ``column=value``, as Hive and Spark write partitions."""
    folders = reversed(os.path.dirname(path).split(os.sep))
    keys = [folder.partition("=") for folder in takewhile(lambda folder: "=" in folder[1:], folders)]
    return {unquote(key): unquote(value) for key, _, value in reversed(keys)}


def is_number(kind: Any) -> bool:
    """Whether a type is that of numbers or truth values, or of entirely missing cells."""
    from pyarrow import types

    known = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(is_kind(kind) for is_kind in known)


def _holds_integers(kind: Any) -> bool:
    """Whether ids of a type are int64, including pandas' type for integers with missing ones, and not texts."""
    import pyarrow as pa

    return bool((pa.types.is_integer(kind) and not pa.types.is_uint64(kind)) or pa.types.is_floating(kind))


@dataclass(frozen=True)
class _Batch:
    """Columns of some rows, the first of which is row ``start`` of the table."""

    table: Table
    batch: Any
    start: int

    def features(self, names: tuple[str, ...], dtype: np.dtype[Any]) -> AnyArray:
        import pyarrow as pa

        if not names:
            return np.empty((self.batch.num_rows, 0), dtype)
        # pyarrow converts columns to rows several times faster than numpy
        columns = [pa.array(self._cells(name, "feature", dtype)) for name in names]
        rows: AnyArray = pa.RecordBatch.from_arrays(columns, names=[*names]).to_tensor().to_numpy()
        if not np.isfinite(rows).all():
            for name in names:
                self.numbers(name, "feature", dtype=dtype)  # raises an error about the first bad cell
        return rows

    def numbers(
        self, name: str, what: str, may_be_empty: Sequence[str] = (), dtype: DTypeLike = np.float64
    ) -> AnyArray:
        """A column of finite numbers, with nonnegative weights; NaN for a missing label if allowed."""
        out = self._cells(name, what, dtype)
        bad = np.isinf(out) if what in may_be_empty else ~np.isfinite(out)
        if what == "weight":
            bad |= out < 0
        if bad.any():
            k = int(np.argmax(bad))
            cell = self.batch.column(name)[k].as_py()
            shown = "has an empty cell" if cell is None or cell == "" else f"holds {quoted(str(cell).strip())}"
            sign = ", not negative" * (what == "weight")
            wanted = f"it must contain finite numbers ({out.dtype}){sign}.{_REMEDIES.get(what, '')}"
            message = f"column {name!r} ({what}) {shown}: {wanted}"
            raise self.table.refuse_row(self.start + k, message, column=name)
        return out

    def _cells(self, name: str, what: str, dtype: DTypeLike) -> AnyArray:
        """A column of numbers: NaN for missing cells, infinity for cells that are not numbers of this type."""
        import pyarrow as pa

        column = self.batch.column(name)
        kind = column.type
        if self.table.textual:
            found = _parsed(column)
        elif not is_number(kind):
            message = f"column {name!r} ({what}) contains {kind}, not numbers.{_REMEDIES.get(what, '')}"
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
            return found.astype(dtype, copy=False)

    def ids(self, name: str, what: str, may_be_empty: Sequence[str]) -> AnyArray:
        """Ids as whole numbers or texts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.batch.column(name)
        try:
            if pa.types.is_floating(column.type):  # pandas' representation of integers with a missing one
                column = column.cast(pa.int64())
                pc.add(pc.abs(column), 1).cast(self.batch.column(name).type)  # refuses those that may have been rounded
            if _holds_integers(column.type) and not column.null_count:
                whole: AnyArray = column.cast(pa.int64()).to_numpy()
                return whole
            coded = pc.fill_null(column.cast(pa.string()), "").dictionary_encode()
        except pa.ArrowException as error:
            message = f"the ids in column {name!r} are neither whole numbers nor UTF-8 text ({error})."
            raise self.table.refuse(message, column=name) from None
        different = coded.dictionary.to_pylist()
        codes = coded.indices.to_numpy()
        if "" in different and what not in may_be_empty:
            k = self.start + int(np.argmax(codes == different.index("")))
            raise self.table.refuse_row(k, f"column {name!r} is empty: every row needs an id.", column=name)
        found = ids_of(different) if self.table.textual else objects(different)
        return np.asarray(found[codes])


_REMEDIES = {
    "event": " Write 1 if the event was observed, and 0 if it was censored.",
    "feature": " Fill it or leave the column out (ignore). A TableEncoder makes features of other cells.",
    "label": " Higher labels are better: write 1 for yes and 0 for no, or 0, 1, 2, ... for grades.",
}


def _parsed(cells: Any) -> Array:
    """Numbers of cells: NaN for missing ones, infinity for those that are not numbers."""
    import pyarrow as pa

    try:
        found: Array = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
        if np.isfinite(found).all():
            return found
    except pa.ArrowInvalid:
        pass
    coded = cells.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    values = np.array([*map(cell_number, texts)])
    values[~np.isfinite(values)] = np.inf
    values[[text.strip().lower() in MISSING for text in texts]] = np.nan
    return np.asarray(values[coded.indices.to_numpy()])
