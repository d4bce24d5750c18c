"""Parquet to arrays, a batch of rows at a time."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankrls._extras import needed
from rankrls.io._columns import ColumnTable, TableError, Wanted, assign, expanded

__all__ = ["first_line", "import_pyarrow", "read_parquet"]

_BATCH_CELLS = 1 << 19
_FIRST_ROWS = 256  # looked at for the length of a column's lists
_PIECE = 1 << 20


def import_pyarrow(what: str) -> Any:
    """``pyarrow`` with its Parquet part, or an error that says how to get it."""
    return needed(what, "parquet", "pyarrow", "pyarrow.parquet")


def read_parquet(path: str | os.PathLike[str] | BinaryIO, wanted: Wanted, dtype: DTypeLike) -> ColumnTable:
    """Read a Parquet file; see :func:`rankrls.io.load_table`."""
    if hasattr(path, "read"):
        name, data = str(getattr(path, "name", "<stream>")), path.read()
        return _read(name, io.BytesIO(data), hashlib.sha256(data).hexdigest(), wanted, np.dtype(dtype))
    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while piece := file.read(_PIECE):
            digest.update(piece)
    return _read(os.fspath(path), os.fspath(path), digest.hexdigest(), wanted, np.dtype(dtype))


def _read(name: str, file: Any, sha256: str, wanted: Wanted, dtype: np.dtype[Any]) -> ColumnTable:
    pa = import_pyarrow(f"{name}: reading Parquet")
    try:
        parquet = pa.parquet.ParquetFile(file)
        schema = parquet.schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{name}: this is no Parquet file, or a damaged one ({first_line(error)}).") from None
    rows, columns = parquet.metadata.num_rows, list(schema.names)
    if rows == 0:
        raise TableError(f"{name}: the table has no rows.")
    try:
        lists = _lists(pa, parquet, wanted)
    except pa.ArrowException as error:
        raise TableError(f"{name}: the Parquet data are damaged ({first_line(error)}).") from None
    roles = assign(name, columns, wanted, lists)
    header = [feature for column in columns for feature in expanded(column, lists)]
    places = {header[column]: k for k, column in enumerate(roles.features)}
    parts = {column: expanded(column, lists) for column in columns}
    # the columns of features, and the columns of X that each becomes
    into = {column: np.array([places[p] for p in of]) for column, of in parts.items() if of[0] in places}
    for column in into:
        if column not in lists:
            _check_type(pa, name, column, schema.field(column).type, is_label=False)
    if roles.label is not None:
        _check_type(pa, name, header[roles.label], schema.field(header[roles.label]).type, is_label=True)
    n = len(roles.features)
    try:
        X = np.empty((rows, n), dtype=dtype)
    except MemoryError:
        raise MemoryError(f"{name}: a table of {rows} rows and {n} features does not fit into memory.") from None
    y = None if roles.label is None else np.empty(rows)
    texts: dict[str, list[NDArray[Any]]] = {"qid": [], "id": []}
    start = 0
    used = [*into, *(header[k] for k in (roles.label, roles.qid, roles.id) if k is not None)]
    try:
        for batch in _batches(pa, parquet, used, max(_BATCH_CELLS // max(n + len(used) - len(into), 1), 1)):
            part = slice(start, start + batch.num_rows)
            for column, at in into.items():
                if column in lists:
                    X[part, at] = _block(pa, name, column, batch, start, np.empty((batch.num_rows, len(at)), dtype))
                else:
                    _column(pa, name, column, batch, start, X[part, at[0]], "feature")
            if y is not None and roles.label is not None:
                may_miss = wanted.labels == "optional"
                _column(pa, name, header[roles.label], batch, start, y[part], "label", may_miss=may_miss)
            for role, found in texts.items():
                place = getattr(roles, role)
                if place is not None:
                    found.append(_ids(pa, name, header[place], batch, start, role))
            start = part.stop
    except pa.ArrowException as error:
        raise TableError(f"{name}: the Parquet data are damaged ({first_line(error)}).") from None
    ids = {role: np.concatenate(found) if found else None for role, found in texts.items()}
    return ColumnTable(
        X=X,
        y=y,
        qid=ids["qid"],
        ids=ids["id"],
        feature_names=tuple(header[k] for k in roles.features),
        label=None if roles.label is None else header[roles.label],
        qid_name=None if roles.qid is None else header[roles.qid],
        id_name=None if roles.id is None else header[roles.id],
        path=name,
        sha256=sha256,
    )


def _batches(pa: Any, parquet: Any, columns: list[str], rows: int) -> Iterator[Any]:
    """Some rows at a time. A row group for itself: one iteration over all would keep what it has unpacked."""
    for group in range(parquet.metadata.num_row_groups):
        yield from parquet.iter_batches(batch_size=rows, row_groups=[group], columns=columns, use_threads=False)
        pa.default_memory_pool().release_unused()


def _lists(pa: Any, parquet: Any, wanted: Wanted) -> dict[str, int]:
    """How many numbers a list has, of the columns that hold lists of numbers: as many as the first with any."""
    types, found = pa.types, {}
    schema = parquet.schema_arrow
    roles = {wanted.label, wanted.qid, wanted.id, *wanted.usual_names.values()}
    for name, kind in zip(schema.names, schema.types, strict=True):
        fixed = types.is_fixed_size_list(kind)
        if name in roles or not (fixed or types.is_list(kind) or types.is_large_list(kind)):
            continue
        if not _is_number(pa, kind.value_type) or schema.names.count(name) > 1:
            continue
        size = kind.list_size if fixed else _first_length(pa, parquet, name)
        if size:
            found[name] = size
    return found


def _first_length(pa: Any, parquet: Any, column: str) -> int:
    for batch in _batches(pa, parquet, [column], _FIRST_ROWS):
        lengths = _lengths(batch.column(column))
        if (lengths > 0).any():
            return int(lengths[np.argmax(lengths > 0)])
    return 0


def _lengths(values: Any) -> NDArray[np.int64]:
    """Of each list; -1 where it is null."""
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.list_value_length(values), -1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _is_number(pa: Any, kind: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _check_type(pa: Any, name: str, column: str, kind: Any, *, is_label: bool) -> None:
    if _is_number(pa, kind) or pa.types.is_null(kind):
        return  # where every value is missing, it is said with the row
    what = "labels are numbers" if is_label else "leave the column out, or name the features"
    raise TableError(f"{name}: the column {column!r} holds {kind}, no numbers: {what}.")


def _column(
    pa: Any, name: str, column: str, batch: Any, start: int, out: NDArray[Any], what: str, *, may_miss: bool = False
) -> None:
    """A column of a batch into a column of an array; ``start`` is the row of the file that the batch begins with."""
    _numbers(pa, name, batch.column(column), lambda k: (start + k, column), out, what, may_miss=may_miss)


def _block(pa: Any, name: str, column: str, batch: Any, start: int, out: NDArray[Any]) -> NDArray[Any]:
    """A column of lists of a batch into an array with a row for each."""
    values, size = batch.column(column), out.shape[1]
    lengths = _lengths(values)
    if (lengths != size).any():
        row = int(np.argmax(lengths != size))
        length = int(lengths[row])
        if length < 0:
            _fail(name, start + row, f"column {column!r} is missing: a list of {size} numbers is wanted.")
        found = f"a list of {length} number{'s' * (length != 1)}"
        what = f"column {column!r} holds {found}, and others hold {size}: all must be of one length."
        _fail(name, start + row, what)

    def place(k: int) -> tuple[int, str]:
        return start + k // size, f"{column}[{k % size}]"

    _numbers(pa, name, values.flatten(), place, out.reshape(-1), "feature")
    return out


def _numbers(
    pa: Any,
    name: str,
    values: Any,
    place: Callable[[int], tuple[int, str]],
    out: NDArray[Any],
    what: str,
    *,
    may_miss: bool = False,
) -> None:
    """Numbers into an array; ``place`` tells the file's row and the column of the k-th."""
    if values.null_count and not may_miss:
        row, column = place(int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))))
        _fail(name, row, f"column {column!r} is missing: a {what} is a number.")
    if not pa.types.is_floating(values.type):
        values = values.cast(pa.float64())
    found = values.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        out[...] = found
    bad = np.isinf(out) if may_miss else ~np.isfinite(out)
    if bad.any():
        k = int(np.argmax(bad))
        (row, column), value = place(k), float(found[k])
        if np.isfinite(value):
            _fail(name, row, f"the value {value!r} of column {column!r} is too large for {out.dtype}.")
        _fail(name, row, f"column {column!r} is {value!r}: a {what} is a finite number.")


def _ids(pa: Any, name: str, column: str, batch: Any, start: int, role: str) -> NDArray[Any]:
    values, types = batch.column(column), pa.types
    if values.null_count:
        row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        why = "every row needs a query id" if role == "qid" else "every row needs an id"
        _fail(name, start + row, f"column {column!r} is missing: {why}.")
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if types.is_integer(values.type):
        try:
            return np.asarray(values.cast(pa.int64()))
        except pa.ArrowInvalid:
            return np.array([str(v) for v in values.to_pylist()])
    if types.is_floating(values.type):  # how pandas stores whole numbers beside a missing one
        found = np.asarray(values, dtype=np.float64)
        whole = np.isfinite(found) & (found == np.floor(found)) & (np.abs(found) < 2.0**53)
        if not whole.all():
            row = int(np.argmin(whole))
            _fail(name, start + row, f"column {column!r} is {float(found[row])!r}: an id is a whole number or a text.")
        return found.astype(np.int64)
    return np.array([str(v) for v in values.to_pylist()])


def _fail(name: str, row: int, message: str) -> NoReturn:
    raise TableError(f"{name}: row {row}, counted from 0: {message}")


def first_line(error: BaseException) -> str:
    """What went wrong, in a line."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
