"""Parquet, Arrow files and data frames, a batch of rows at a time."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankrls._errors import InputError
from rankrls.io._rows import is_utf8, quoted
from rankrls.io.tables.batches import Flow, Reader, parquet_batches, validate
from rankrls.io.tables.columns import Refuse, expanded
from rankrls.io.tables.parts import IdBlock, Request, Rows, may_be_empty, needed

__all__ = ["ArrowTable", "open_arrow"]

_BATCH_CELLS = 1 << 22
_BLOCK_CELLS = 1 << 16  # so few that columns become rows inside the processor's cache
_TENSOR_CELLS = 1 << 17
_FIRST_ROWS = 256  # looked at for the length of a column's lists
_BUFFER = 1 << 16  # of each column
_EXACT = 1 << 53
_CALLED = {"parquet": "Parquet file", "arrow": "Arrow file", "frame": "data frame"}


@contextmanager
def open_arrow(source: Any, format: str, kind: type[InputError]) -> Iterator[ArrowTable]:
    """Open a Parquet file, an Arrow file or stream (Feather), or a data frame."""
    if format == "frame":
        yield ArrowTable(f"<{type(source).__name__}>", source, format, "", kind)
    elif hasattr(source, "read"):
        data = source.read()
        name = str(getattr(source, "name", "<stream>"))
        yield ArrowTable(name, io.BytesIO(data), format, hashlib.sha256(data).hexdigest(), kind)
    else:
        with open(source, "rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            yield ArrowTable(os.fspath(source), file, format, sha256, kind)


class ArrowTable:
    """A table of typed columns whose schema has been read."""

    textual = False

    def __init__(self, name: str, source: Any, format: str, sha256: str, kind: type[InputError]) -> None:
        self.name, self._source, self._format, self._sha256 = name, source, format, sha256
        self.refuse: Refuse = partial(kind, file=name)
        self._damaged = f"the data of this {_CALLED[format]} are damaged"
        self.metadata: Any = None  # of a Parquet file, which is read once
        with self._understood(f"this is no {_CALLED[format]}, or a damaged one"):
            self.schema = self._reader().schema
            self.columns: Sequence[str] = self.schema.names

    def sha256(self) -> str:
        """Hash of the file's bytes; empty for a data frame."""
        return self._sha256

    def whole(self) -> Any:
        """All of it, as a table of pyarrow."""
        with self._understood(self._damaged):
            table = self._reader().read_all()
            if self._format != "frame":
                validate(table.to_batches())
            return table

    @property
    def row_groups(self) -> list[int]:
        """How many rows are in each row group of a Parquet file."""
        return [self.metadata.row_group(k).num_rows for k in range(self.metadata.num_row_groups)]

    def flow(self, request: Request, groups: range | None = None) -> Flow:
        """What :meth:`parts` reads, of all rows or of some row groups of a Parquet file."""
        columns = _columns_of(request)
        texts = [columns[name][0] for name in request.texts.values()]
        step = max(_BATCH_CELLS // max(len(request.numbers) + len(texts), 1), 1)
        start = 0 if groups is None else sum(self.row_groups[: groups.start])
        return Flow(self.batches(step, [*dict.fromkeys(name for name, _ in columns.values())], texts, groups), start)

    def lists(self, others: set[str | None], known: Mapping[str, int] = MappingProxyType({})) -> Mapping[str, int]:
        """How many numbers a list has, of the columns that hold lists of numbers: as many as the first with any."""
        from pyarrow import types

        found = {}
        for name, kind in zip(self.schema.names, self.schema.types, strict=True):
            fixed = types.is_fixed_size_list(kind)
            if name in others or not (fixed or types.is_list(kind) or types.is_large_list(kind)):
                continue
            if not _is_number(kind.value_type) or self.schema.names.count(name) > 1:
                continue
            size = kind.list_size if fixed else known.get(name) or self._first_length(name)
            if size:
                found[name] = size
        return found

    def parts(
        self, request: Request, flow: Flow | None = None, rows: range | None = None, out: NDArray[Any] | None = None
    ) -> Iterator[Rows]:
        """All rows, a batch at a time, or some of those that a flow still has; features go into ``out``, if given."""
        self.check_types(request)
        columns = {name: column for name, (column, _) in _columns_of(request).items()}
        into: dict[str, list[int]] = {}  # columns of X that each column of the file becomes
        for place, name in enumerate(request.numbers):
            into.setdefault(columns[name], []).append(place)
        labels = [columns[name] for name in request.labels]
        flow = self.flow(request) if flow is None else flow
        row = first = flow.row if rows is None else rows.start
        for batch in flow.take(first, None if rows is None else rows.stop):
            with self._understood(self._damaged):
                shape = (batch.num_rows, len(request.numbers))
                X = np.empty(shape, request.dtype) if out is None else out[row - first :][: shape[0]]
                self._features(batch, row, into, request, X)
                y = w = None
                if labels:
                    given: dict[str, Any] = {"dtype": np.float64, "what": "label", "may_miss": request.may_miss}
                    found = [self._numbers(batch.column(name), _Places(name, row), **given) for name in labels]
                    y = np.stack(found, axis=1) if request.utilities else found[0]
                if request.weight is not None:
                    weight = columns[request.weight]
                    w = self._numbers(batch.column(weight), _Places(weight, row), np.float64, "weight")
                    if (w < 0).any():
                        k = int(np.argmax(w < 0))
                        remedy = "a weight is not negative."
                        self._fail(row + k, "column {0!r} is {1!r}:", weight, float(w[k]), remedy=remedy)
                texts = {role: columns[name] for role, name in request.texts.items()}
                ids = {role: self._ids(batch.column(name), name, row, role) for role, name in texts.items()}
            yield Rows(X, y, ids, weight=w)
            row += batch.num_rows
        if row == 0:
            raise self.refuse("the table has no rows.")

    def check_types(self, request: Request) -> None:
        """Refuse columns that hold no numbers where numbers are wanted."""
        columns = _columns_of(request)
        for column in dict.fromkeys(columns[name][0] for name in request.numbers):
            if column not in request.lists:
                self._check_type(column, request.otherwise)
        for name in request.alone:
            what = "weights" if name == request.weight else "labels"
            self._check_type(columns[name][0], f"{what} are numbers.")

    @contextmanager
    def _understood(self, what: str) -> Iterator[None]:
        """Say what is wrong with the file where pyarrow cannot read it."""
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # names of columns may not be UTF-8
            if isinstance(error, OSError) and error.errno is not None:
                raise
            line = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            raise self.refuse("{0} ({1}).", what, line) from None

    def _reader(
        self, names: Sequence[str] | None = None, ids: Sequence[str] = (), groups: range | None = None
    ) -> Reader:
        """All columns or some, of the three formats."""
        import pyarrow as pa
        from pyarrow import ipc, parquet

        if self._format == "frame":
            table = pa.table(self._source)
            stream = (table if names is None else table.select(names)).to_reader()
            return Reader(stream.schema, stream.read_all, lambda _: stream)
        self._source.seek(0)
        if self._format == "parquet":
            # ids as codes of their different texts, so that a long one is held once
            texts = [] if names is None else [n for n in ids if _is_text(self.schema.field(n).type)]
            # as it goes, not whole row groups at once
            how: dict[str, Any] = {"pre_buffer": False, "buffer_size": _BUFFER, "metadata": self.metadata}
            file = parquet.ParquetFile(self._source, read_dictionary=texts, **how)
            self.metadata = file.metadata
            if sum(self.row_groups) != self.metadata.num_rows:
                raise pa.ArrowInvalid("the row groups do not add up to the rows")
            return Reader(file.schema_arrow, file.read, partial(parquet_batches, file, names, groups))
        magic = self._source.read(6)
        self._source.seek(0)
        fields = None if names is None else [self.columns.index(n) for n in names]
        options = ipc.IpcReadOptions(included_fields=fields)
        if magic != b"ARROW1":
            stream = ipc.open_stream(self._source, options=options)
            return Reader(stream.schema, stream.read_all, lambda _: stream)
        held = ipc.open_file(self._source, options=options)
        return Reader(held.schema, held.read_all, lambda _: map(held.get_batch, range(held.num_record_batches)))

    def batches(
        self, rows: int, names: Sequence[str] | None = None, ids: Sequence[str] = (), groups: range | None = None
    ) -> Iterator[Any]:
        """All columns or some, at most so many rows at a time; of Parquet all row groups or some, and ids as codes."""
        with self._understood(self._damaged):
            reader = self._reader(self.columns if names is None else names, ids, groups)
            for batch in reader.batches(rows):
                if self._format != "frame":
                    validate([batch])
                for at in range(0, batch.num_rows, rows):
                    yield batch.slice(at, rows)

    def _first_length(self, column: str) -> int:
        for batch in self.batches(_FIRST_ROWS, [column]):
            lengths = _lengths(batch.column(column))
            if (lengths > 0).any():
                return int(lengths[np.argmax(lengths > 0)])
        return 0

    def _check_type(self, column: str, remedy: str) -> None:
        import pyarrow as pa

        kind = self.schema.field(column).type
        if not _is_number(kind) and not pa.types.is_null(kind):  # if every value is missing, the row is named
            problem = "the column {0!r} holds {1}, no numbers:"
            raise self.refuse(problem, column, kind, remedy=remedy, column=column)

    def _features(
        self, batch: Any, start: int, into: Mapping[str, list[int]], request: Request, X: NDArray[Any]
    ) -> None:
        """The features of a batch into an array, row by row."""
        if not into or self._copied(batch.select([*into]), into, X):
            return
        places, dtype, columns = _columns_of(request), request.dtype, []
        for column, at in into.items():
            if column in request.lists:
                order = [places[request.numbers[k]][1] for k in at]
                X[:, at] = self._block(batch.column(column), column, start, request)[:, order]
            else:
                values = batch.column(column)
                columns.append((at[0], self._numbers(values, _Places(column, start), dtype, request.called)))
        step = max(_BLOCK_CELLS // max(len(columns), 1), 1)
        for begin in range(0, len(X), step):
            rows = slice(begin, begin + step)
            for place, found in columns:
                X[rows, place] = found[rows]

    def _copied(self, batch: Any, into: Mapping[str, list[int]], X: NDArray[Any]) -> bool:
        """Copy columns of X's own type whose numbers are all there and finite; False if they are anything else.

        pyarrow turns columns into rows without Python's lock, so that threads that read do not wait for each other.
        """
        import pyarrow as pa

        own = pa.from_numpy_dtype(X.dtype)
        if [*into.values()] != [[k] for k in range(X.shape[1])] or not all(kind == own for kind in batch.schema.types):
            return False
        if any(column.null_count for column in batch.columns):
            return False
        step = max(_TENSOR_CELLS // max(X.shape[1], 1), 1)
        for begin in range(0, len(X), step):
            rows = batch.slice(begin, step).to_tensor().to_numpy()
            if not np.isfinite(rows).all():
                return False
            X[begin : begin + step] = rows
        return True

    def _block(self, values: Any, column: str, start: int, request: Request) -> NDArray[Any]:
        """A column of lists of a batch as an array with a row for each."""
        size = request.lists[column]
        lengths = _lengths(values)
        if (lengths != size).any():
            row = int(np.argmax(lengths != size))
            length = int(lengths[row])
            if length < 0:
                self._fail(
                    start + row, "column {0!r} is missing:", column, remedy=f"a list of {size} numbers is wanted."
                )
            found = f"a list of {length} number{'s' * (length != 1)}"
            problem = "column {0!r} holds {1}, and others hold {2}:"
            self._fail(start + row, problem, column, found, size, remedy="all must be of one length.")
        return self._numbers(values.flatten(), _Places(column, start, size), request.dtype, "feature").reshape(-1, size)

    def _numbers(
        self, values: Any, places: _Places, dtype: DTypeLike, what: str, *, may_miss: bool = False
    ) -> NDArray[Any]:
        """Numbers as an array."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if values.null_count and not may_miss:
            row, column = places(int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))))
            self._fail(row, "column {0!r} is missing:", column, remedy=f"a {what} is a number.")
        if pa.types.is_integer(values.type):
            self._check_whole(pc.fill_null(values, 0).to_numpy(zero_copy_only=False), places)
            values = values.cast(pa.float64(), safe=False)
        elif pa.types.is_decimal(values.type):
            values = values.cast(pa.string()).cast(pa.float64())  # rounds once; the direct cast rounds twice
        elif not pa.types.is_floating(values.type):
            values = values.cast(pa.float64())
        found = values.to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore"):
            out: NDArray[Any] = found.astype(dtype, copy=False)
        bad = np.isinf(out) if may_miss else ~np.isfinite(out)
        if bad.any():
            k = int(np.argmax(bad))
            (row, column), value = places(k), float(found[k])
            if np.isfinite(value):
                self._fail(row, "the value {1!r} of column {0!r} is too large for {2}.", column, value, out.dtype)
            self._fail(row, "column {0!r} is {1!r}:", column, value, remedy=f"a {what} is a finite number.")
        return out

    def _check_whole(self, values: NDArray[Any], places: _Places) -> None:
        """Refuse whole numbers that no float64 is."""
        for k in np.flatnonzero((values > _EXACT) | (values < -_EXACT)).tolist():
            value = int(values[k])
            if int(float(value)) != value:
                row, column = places(k)
                problem = "the value {1} of column {0!r} is a whole number that no float64 is:"
                self._fail(row, problem, column, value, remedy="store the column as floats, or leave it out.")

    def _ids(self, values: Any, column: str, start: int, role: str) -> IdBlock:
        """Ids as different texts and their numbers, or as whole numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        types = pa.types
        if types.is_dictionary(values.type) and values.dictionary.null_count:
            values = values.dictionary_decode()
        if values.null_count:
            if not may_be_empty(role):
                row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
                self._fail(start + row, "column {0!r} is missing:", column, remedy=f"every row needs {needed(role)}.")
            values = pc.fill_null(values.cast(pa.string()), "")
        if types.is_integer(values.type) and not types.is_uint64(values.type):
            return None, values.cast(pa.int64()).to_numpy()
        if types.is_floating(values.type):  # how pandas stores whole numbers beside a missing one
            found = np.asarray(values, dtype=np.float64)
            whole = np.isfinite(found) & (found == np.floor(found)) & (np.abs(found) < _EXACT)
            if not whole.all():
                row = int(np.argmin(whole))
                problem, remedy = "column {0!r} is {1!r}:", "an id is a whole number or a text."
                self._fail(start + row, problem, column, float(found[row]), remedy=remedy)
            return None, found.astype(np.int64)
        if not types.is_dictionary(values.type):
            if not _is_text(values.type):
                values = pa.array([str(v) for v in values.to_pylist()], pa.string())
            values = values.dictionary_encode()
        codes, texts = values.indices.to_numpy(), []
        different = values.dictionary
        for code, value in enumerate(
            different.cast(pa.large_binary()).to_pylist() if _is_text(different.type) else different.to_pylist()
        ):
            text = _decoded(value)
            if text is None or "\0" in text or (not text and not may_be_empty(role)):
                row = start + int(np.argmax(codes == code))
                wrong = "is not UTF-8 text:" if text is None else "holds a NUL:" if text else "is empty:"
                remedy = f"every row needs {needed(role)}, of UTF-8 text without NUL."
                self._fail(row, "the cell {1} of column {0!r} " + wrong, column, quoted(value), remedy=remedy)
            texts.append(text)
        return texts, codes

    def _fail(self, row: int, problem: str, column: str, *values: Any, remedy: str = "") -> NoReturn:
        problem = f"row {row}, counted from 0: {problem}"
        raise self.refuse(problem, column, *values, remedy=remedy, row=row, column=column)


class _Places(NamedTuple):
    """Where the values of a batch stand: the row of the file, and the name of the feature."""

    column: str
    start: int
    size: int | None = None

    def __call__(self, k: int) -> tuple[int, str]:
        if self.size is None:
            return self.start + k, self.column
        return self.start + k // self.size, f"{self.column}[{k % self.size}]"


def _columns_of(request: Request) -> dict[str, tuple[str, int]]:
    """The column of each name that is read, and its place in the column's lists."""
    names = (*request.numbers, *request.alone, *request.texts.values())
    of_lists = {name: (column, k) for column in request.lists for k, name in enumerate(expanded(column, request.lists))}
    return {name: of_lists.get(name, (name, 0)) for name in names}


def _decoded(value: Any) -> str | None:
    """An id as text; None if its bytes are not UTF-8."""
    if not isinstance(value, bytes):
        return str(value)
    return value.decode() if is_utf8(value) else None


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    )


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _lengths(values: Any) -> NDArray[np.int64]:
    """Of each list; -1 if it is null."""
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.list_value_length(values), -1).to_numpy(zero_copy_only=False), dtype=np.int64)
