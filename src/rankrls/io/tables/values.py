"""Columns of pyarrow to arrays: checked, and refused by row and column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankrls.io._rows import IdBlock, is_utf8, quoted
from rankrls.io.tables.columns import Refuse, expanded
from rankrls.io.tables.parts import Request, Rows, may_be_empty, needed

_BLOCK_CELLS = 1 << 17  # so few that columns become rows inside the processor's cache
_EXACT = 1 << 53


class Values:
    """The columns of a request as arrays.

    Parameters
    ----------
    request : Request
    refuse : callable
        Makes the errors.
    """

    def __init__(self, request: Request, refuse: Refuse) -> None:
        self.request, self._refuse = request, refuse
        self._place = places(request)
        self._flat: list[str] = []
        self._at: list[int] = []
        self._lists: dict[str, tuple[list[int], list[int]]] = {}  # places in X, and those in the lists
        for at, (column, k) in enumerate(map(self._place.__getitem__, request.numbers)):
            if column in request.lists:
                into, order = self._lists.setdefault(column, ([], []))
                into.append(at)
                order.append(k)
            else:
                self._flat.append(column)
                self._at.append(at)

    def rows(
        self,
        n: int,
        numbers: Callable[[str], Any],
        texts: Callable[[str], Any],
        start: int = 0,
        out: NDArray[Any] | None = None,
    ) -> Rows:
        """Some rows, of which the first is row ``start`` of the table; features go into ``out``, if given.

        Parameters
        ----------
        n, start : int
        numbers, texts : callable
            Give the arrays of pyarrow by the names of the columns, of those that hold numbers and of those that hold
            ids.
        out : ndarray, optional
        """
        request, column_of = self.request, lambda name: self._place[name][0]
        X = np.empty((n, len(request.numbers)), request.dtype) if out is None else out[:n]
        self._features(numbers, start, X)
        alone = lambda name, what, **how: self._numbers(
            numbers(column_of(name)), _Places(column_of(name), start), np.float64, what, **how
        )
        y = w = None
        if request.labels:
            found = [alone(name, "label", may_miss=request.may_miss) for name in request.labels]
            y = np.stack(found, axis=1) if request.utilities else found[0]
        if request.weight is not None:
            w = alone(request.weight, "weight")
            if (w < 0).any():
                k = int(np.argmax(w < 0))
                problem, remedy = "column {0!r} is {1!r}:", "a weight is not negative."
                self._fail(start + k, problem, request.weight, float(w[k]), remedy=remedy)
        ids = {role: self._ids(texts(column_of(name)), name, start, role) for role, name in request.texts.items()}
        return Rows(X, y, ids, weight=w)

    def _features(self, numbers: Callable[[str], Any], start: int, X: NDArray[Any]) -> None:
        """The features into an array, row by row.

        pyarrow turns columns into rows without Python's lock, so that threads that read do not wait for each other.
        """
        import pyarrow as pa

        for column, (into, order) in self._lists.items():
            X[:, into] = self._block(numbers(column), column, start)[:, order]
        if not self._flat:
            return
        given, own = [*map(numbers, self._flat)], pa.from_numpy_dtype(X.dtype)

        def converted() -> list[NDArray[Any]]:
            called = self.request.called
            return [
                self._numbers(values, _Places(column, start), X.dtype, called)
                for values, column in zip(given, self._flat, strict=True)
            ]

        as_they_are = all(values.type == own and not values.null_count for values in given)
        columns = given if as_they_are else [*map(pa.array, converted())]
        batch = pa.RecordBatch.from_arrays(columns, names=[*map(str, self._at)])
        into_all = slice(None) if len(self._at) == X.shape[1] else self._at
        step = max(_BLOCK_CELLS // len(columns), 1)
        for begin in range(0, len(X), step):
            rows = batch.slice(begin, step).to_tensor().to_numpy()
            if as_they_are and not np.isfinite(rows).all():
                converted()  # which says what is wrong
            X[begin : begin + step, into_all] = rows

    def _block(self, values: Any, column: str, start: int) -> NDArray[Any]:
        """A column of lists as an array with a row for each."""
        size, long = self.request.lists[column], lengths(values)
        if (long != size).any():
            row = int(np.argmax(long != size))
            length = int(long[row])
            if length < 0:
                remedy = f"a list of {size} numbers is wanted."
                self._fail(start + row, "column {0!r} is missing:", column, remedy=remedy)
            found = f"a list of {length} number{'s' * (length != 1)}"
            problem = "column {0!r} holds {1}, and others hold {2}:"
            self._fail(start + row, problem, column, found, size, remedy="all must be of one length.")
        of_lists = _Places(column, start, size)
        return self._numbers(values.flatten(), of_lists, self.request.dtype, "feature").reshape(-1, size)

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
            if not is_text(values.type):
                values = pa.array([str(v) for v in values.to_pylist()], pa.string())
            values = values.dictionary_encode()
        codes, different = values.indices.to_numpy(), values.dictionary
        if not is_text(different.type):
            different = pa.array([str(v) for v in different.to_pylist()], pa.string())
        raw = different.cast(pa.large_binary()).to_pylist()
        if b"" in raw or _wrong(b"\n".join(raw), "group"):  # seldom, so that ids are not looked at one by one
            for code, text in enumerate(raw):
                if wrong := _wrong(text, role):
                    row = start + int(np.argmax(codes == code))
                    remedy = f"every row needs {needed(role)}, of UTF-8 text without NUL."
                    self._fail(row, "the cell {1} of column {0!r} " + wrong, column, quoted(text), remedy=remedy)
        return [text.decode() for text in raw], codes

    def _fail(self, row: int, problem: str, column: str, *values: Any, remedy: str = "") -> NoReturn:
        problem = f"row {row}, counted from 0: {problem}"
        raise self._refuse(problem, column, *values, remedy=remedy, row=row, column=column)


class _Places(NamedTuple):
    """Where the values of a column stand: the row of the file, and the name of the feature."""

    column: str
    start: int
    size: int | None = None

    def __call__(self, k: int) -> tuple[int, str]:
        if self.size is None:
            return self.start + k, self.column
        return self.start + k // self.size, f"{self.column}[{k % self.size}]"


def places(request: Request) -> dict[str, tuple[str, int]]:
    """The column of each name that is read, and its place in the column's lists."""
    names = (*request.numbers, *request.alone, *request.texts.values())
    of_lists = {name: (column, k) for column in request.lists for k, name in enumerate(expanded(column, request.lists))}
    return {name: of_lists.get(name, (name, 0)) for name in names}


def _wrong(text: bytes, role: str) -> str:
    """What is wrong with an id; empty if nothing is."""
    if not is_utf8(text):
        return "is not UTF-8 text:"
    if b"\0" in text:
        return "holds a NUL:"
    return "" if text or may_be_empty(role) else "is empty:"


def is_text(kind: Any) -> bool:
    """Whether a type is that of texts or of bytes."""
    from pyarrow import types

    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    )


def is_number(kind: Any) -> bool:
    """Whether a type is that of numbers, or of truth values."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def lengths(values: Any) -> NDArray[np.int64]:
    """Of each list; -1 if it is null."""
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.list_value_length(values), -1).to_numpy(zero_copy_only=False), dtype=np.int64)
