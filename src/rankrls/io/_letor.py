"""LETOR text to arrays: whole lines are parsed in threads, and an error describes the first bad line."""

from __future__ import annotations

import math
import mmap
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankrls._compiled import map_threads, stream_threads
from rankrls._errors import InputError
from rankrls._typing import AnyArray, Array
from rankrls.io._letor_loop import Found, Room, parse_block, room_for, scatter
from rankrls.io._text import LARGEST_SINGLE, Source, Text, ids_of, is_utf8, joined_ids, quoted
from rankrls.io.columns import ColumnRoles, Reader
from rankrls.io.rows import Lines, Rows, Schema, document_ids

_DENSE_FROM = 0.1
"""Share of written cells from which a table is dense: per cell, a sparse product costs about ten times a dense one."""
_MOST_COLUMNS = 1 << 27
"""Number of features above which confirmation is needed: computations on so many columns need gigabytes."""
_NO_ID = 10**18
_BLANKS = b" \t\r\v\f"
_COLUMNS = {"label": "label", "qid": "qid", "id": "docid"}
_OF_TABLES = ("label", "qid", "id", "ignore", "event", "position", "impressions")


@dataclass(frozen=True, eq=False)
class _Block:
    """Consecutive rows of LETOR text.

    Attributes
    ----------
    found : Found
        Numbers of lines, including those that are not rows, and so on; smallest and largest feature id.
    numbers : ndarray of shape (m,)
        Line of each row, where the first line is 1.
    y : ndarray of shape (m,)
    ends : ndarray of shape (m,)
        End of each row's entries.
    ids, values : ndarray of shape (entries,)
        Feature ids as written, ascending in each row, in the smallest type that represents them.
    qid : ndarray of shape (m,), or None
        Query ids; None if the rows have none.
    comments : list of str, or None
        Text after ``#`` in each row; None if no row has any.
    start : int
        Position of a byte of the first row.
    bad : list of int
        Positions of bytes of bad lines, among them the first one.
    """

    found: Found
    numbers: NDArray[np.int64]
    y: Array
    ends: NDArray[np.int64]
    ids: AnyArray
    values: AnyArray
    qid: AnyArray | None
    comments: list[str] | None
    start: int
    bad: list[int]


class LetorText(Reader):
    """LETOR text.

    Parameters
    ----------
    name : str
        Name in errors.
    source : path or binary file object
    """

    def __init__(self, name: str, source: Source) -> None:
        self.name = name
        self.lines = Lines()
        self._text = Text(source)

    def schema(self, roles: ColumnRoles) -> Schema:
        """Shape of X, as far as known; columns have no names, so roles are those of the format."""
        known = roles.known
        if known.features or known.columns:  # of a table that has been read before
            return replace(known, features=None, columns={})
        for role in _OF_TABLES:
            if getattr(roles, role):
                raise self.refuse(f"{role} needs a table, but by its ending this file is LETOR text.", parameter=role)
        if roles.features is None or known.n_features is not None:
            return known
        if roles.features == ():
            return replace(known, features=())
        text = ",".join(roles.features)
        if not text.isdecimal() or int(text) < 1:
            message = f"features is a number for LETOR text, at least 1 (names are for tables); got {text!r}."
            raise self.refuse(message, parameter="features")
        return replace(known, n_features=int(text))

    def scan(self, roles: ColumnRoles) -> Schema:
        """Shape of X, and whether comments name the items, determined by reading the text; memory is a few blocks."""
        schema = self.schema(roles)
        columns = dict(_COLUMNS)
        found = list[Found]()
        for block in self._blocks(schema):
            found.append(block.found)
            if document_ids(block.comments or [""], block.qid) is None:
                columns.pop("id", None)
            if block.qid is None:
                columns.pop("qid", None)
        return replace(_with_shape(found, self.name, schema)[0], columns=columns)

    def read(self, schema: Schema) -> Rows:
        """All rows; if no features are requested, they are checked but not stored."""
        if schema.features == ():
            nothing = np.empty(0)
            blocks = [replace(block, ids=nothing, values=nothing) for block in self._blocks(schema)]
            return self._rows(blocks, replace(schema, n_features=0, first_feature=schema.first_feature or 0))
        blocks = [*self._blocks(schema)]
        schema, share = _with_shape([block.found for block in blocks], self.name, schema)
        dense = share >= _DENSE_FROM if schema.dense is None else schema.dense
        return self._rows(blocks, replace(schema, dense=dense))

    def parts(self, schema: Schema) -> Iterator[Rows]:
        """Sparse rows in parts of about a megabyte of text; memory is a few parts."""
        return (self._rows([block], replace(schema, dense=False)) for block in self._blocks(schema))

    def unchanged(self) -> Any:
        """The lines that are rows, each with its end, as the column "line"."""
        import pyarrow as pa

        rows = (line + b"\n" for line in self._text.lines() if (bare := line.strip()) and not bare.startswith(b"#"))
        return pa.table({"line": pa.array(rows, pa.large_binary())})

    def _blocks(self, schema: Schema) -> Iterator[_Block]:
        """Rows, block by block.

        Raises
        ------
        InputError
            For the first bad line.
        """
        lines = n_rows = 0
        with_qid = None
        assert self.lines is not None
        for raw, block in stream_threads(partial(_Memory().parse, schema), self._text.blocks()):
            bad = block.bad
            if len(block.y):
                with_qid = block.qid is not None if with_qid is None else with_qid
                bad += [] if (block.qid is not None) == with_qid else [block.start]
            if bad:
                number = raw.count(b"\n", 0, min(bad))
                error = _described(raw.split(b"\n")[number], with_qid, schema)
                raise error.replace(file=self.name, line=lines + number + 1)
            if len(block.y):
                self.lines.append(n_rows, block.numbers + lines)
                yield block
            lines += block.found.lines
            n_rows += len(block.y)
        if with_qid is None:
            raise self.refuse("the file has no rows: it is empty, or has only blank lines and comments.")

    def _rows(self, blocks: list[_Block], schema: Schema) -> Rows:
        """Rows of some blocks; the list is emptied on the way, to free each block's memory."""
        last = max(block.found.largest for block in blocks) + 1 - (schema.first_feature or 0)
        comments = None
        if any(block.comments for block in blocks):
            comments = [note for block in blocks for note in block.comments or [""] * len(block.y)]
        ids = [block.qid for block in blocks if block.qid is not None]
        y = np.concatenate([block.y for block in blocks])
        if schema.features == ():
            X: Any = np.empty((len(y), 0))
        else:
            X = (_dense if schema.dense else _sparse)(blocks, schema)
        return Rows(
            X=X,
            y=y,
            qid=joined_ids(ids) if ids else None,
            path=self.name,
            sha256=self._text.sha256,
            schema=schema,
            comments=comments,
            n_named=max(last, 0),
            lines=self.lines,
        )


def _parse(text: bytes, room: Room, schema: Schema) -> _Block:
    """Rows of a block up to its first bad line."""
    found: Found = parse_block(np.frombuffer(text, np.uint8), *_ids_taken(schema), room)
    rows = found.rows
    bad = [found.bad] if found.bad >= 0 else []
    labels, ends, notes, stops, numbers, ids, values, runs, words = room
    if found.words:
        spans = words[: found.words, :2]
        owners = words[: found.words, 2]
        read = _numbers_at(text, spans)
        of_rows = owners < 0
        good = np.abs(read) < np.where(of_rows, np.inf, _value_limit(schema))
        bad += spans[~good, 0][:1].tolist()
        read[~good] = 0.0  # the cast to float32 would warn
        labels[-1 - owners[of_rows]] = read[of_rows]
        values[owners[~of_rows]] = read[~of_rows]
    ids = ids[: found.entries]
    values = values[: found.entries]
    ends = ends[:rows].copy()
    if found.unsorted:
        ids, values, twice = _sorted(ends, ids, values)
        bad += stops[twice].tolist()
    starts, firsts, lasts = runs[: found.runs].T.tolist()
    names = [text[first:last] for first, last in zip(firsts, lasts, strict=True)]
    wrong = (not is_utf8(name) or b"\0" in name or bool(name) != bool(names[0]) for name in names)
    bad += [*compress(firsts, wrong)]
    qid = None
    if names and names[0]:
        qid = np.repeat(ids_of([name.decode(errors="replace") for name in names]), np.diff(starts, append=rows))
    comments = None
    if found.comments:
        places = zip(notes[:rows].tolist(), stops[:rows].tolist(), strict=True)
        comments = [text[a:b].strip(_BLANKS).decode("utf-8", "surrogateescape") for a, b in places]
    return _Block(
        found=found,
        numbers=numbers[:rows].copy(),
        y=labels[:rows].copy(),
        ends=ends,
        ids=_mapped(ids, np.min_scalar_type(max(found.largest, 0))),
        values=_mapped(values, schema.dtype),
        qid=qid,
        comments=comments if comments and any(comments) else None,
        start=next(iter(firsts), 0),
        bad=bad,
    )


def _numbers_at(text: bytes, spans: NDArray[np.int64]) -> Array:
    """Numbers of words, given their first and last bytes, as Python's ``float`` reads them; NaN for other words."""
    import pyarrow as pa

    ends = pa.py_buffer(np.ascontiguousarray(spans))
    words = pa.LargeStringArray.from_buffers(spans.size - 1, ends, pa.py_buffer(text))  # and the texts between them
    try:
        return np.array(words.take(np.arange(0, spans.size, 2)).cast(pa.float64()))
    except pa.ArrowInvalid:
        return np.array([_number_of(text[first:last]) for first, last in spans.tolist()])


class _Memory(threading.local):
    """Memory of each thread, for reuse."""

    room = room_for(0)
    size = 0

    def parse(self, schema: Schema, text: bytes) -> tuple[bytes, _Block]:
        """A block of text and its rows."""
        if self.size < len(text):
            self.size = len(text)
            self.room = room_for(len(text))
        return text, _parse(text, self.room, schema)


def _mapped(values: AnyArray, dtype: Any) -> AnyArray:
    """Copy in memory that returns to the system when it is dropped; the allocator would keep most of it."""
    size = len(values) * np.dtype(dtype).itemsize
    out = np.frombuffer(mmap.mmap(-1, size, access=mmap.ACCESS_COPY), dtype) if size else np.empty(0, dtype)
    out[:] = values
    return out


def _sorted(ends: NDArray[np.int64], ids: NDArray[np.int64], values: Array) -> tuple[Any, Any, Any]:
    """Entries with ascending ids in each row; the first row that contains a feature twice, if any."""
    rows = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    order = np.lexsort((ids[: len(rows)], rows))
    ids = ids[order]
    values = values[order]
    return ids, values, rows[1:][(np.diff(ids) == 0) & (np.diff(rows) == 0)][:1]


def _with_shape(found: list[Found], name: str, schema: Schema) -> tuple[Schema, float]:
    """Schema with the number of features of some blocks and the number of the first; and the share of written cells.

    Raises
    ------
    InputError
        If there is no feature; if there are so many that this is probably a mistake, unless their number is given; or
        if a feature exceeds the given number because the text also contains feature 0.
    """
    least = min(block.least for block in found)
    largest = max(block.largest for block in found)
    first_feature = int(least != 0) if schema.first_feature is None else schema.first_feature
    columns = max(largest + 1 - first_feature, 0)
    given = schema.n_features
    if given is not None and columns > given:
        raise _out_of_range(largest, replace(schema, first_feature=0)).replace(file=name)
    problem = ""
    if columns == 0:
        problem = "no line names a feature."
    elif columns > _MOST_COLUMNS:
        problem = f"feature {largest} makes {columns} columns, most of them empty."
    if problem and given is None:
        problem += " If that is intended, pass the number of features (n_features)."
        raise InputError(problem, file=name, parameter="n_features", column=max(largest, 0) or None)
    columns = given or columns
    cells = columns * sum(block.rows for block in found)
    share = sum(block.entries for block in found) / cells
    return replace(schema, n_features=columns, first_feature=first_feature), share


def _dense(blocks: list[_Block], schema: Schema) -> AnyArray:
    starts = np.cumsum([0, *(len(block.y) for block in blocks)]).tolist()
    X = np.zeros((starts[-1], schema.n_features or 0), dtype=schema.dtype)
    waiting = dict(zip(pairwise(starts), blocks, strict=True))
    blocks.clear()

    def fill(rows: tuple[int, int]) -> None:
        block = waiting.pop(rows)
        scatter(block.ends, block.ids.astype(np.int64), schema.first_feature or 0, block.values, X[slice(*rows)])

    map_threads(fill, [*waiting])
    return X


def _sparse(blocks: list[_Block], schema: Schema) -> Any:
    columns = schema.n_features or 0
    entries = sum(len(block.values) for block in blocks)
    integer = np.int32 if max(columns, entries) <= np.iinfo(np.int32).max else np.int64
    values = np.empty(entries, dtype=schema.dtype)
    indices = np.empty(entries, dtype=integer)
    ends = [np.zeros(1, dtype=np.int64)]
    before = 0
    while blocks:
        block = blocks.pop(0)
        here = slice(before, before + len(block.values))
        values[here] = block.values
        indices[here] = block.ids - (schema.first_feature or 0)
        ends.append(block.ends + before)
        before = here.stop
    indptr = np.concatenate(ends).astype(integer)
    X = csr_array((values, indices, indptr), shape=(len(indptr) - 1, columns))
    X.has_canonical_format = True
    return X


def _ids_taken(schema: Schema) -> tuple[int, int]:
    """Smallest and largest accepted feature id."""
    largest = _NO_ID if schema.n_features is None else schema.n_features - int(schema.first_feature == 0)
    return int(schema.first_feature == 1), largest


def _value_limit(schema: Schema) -> float:
    """Bound from which values are too large."""
    return LARGEST_SINGLE if schema.dtype == np.float32 else math.inf


def _described(line: bytes, with_qid: bool | None, schema: Schema) -> InputError:
    """Error that describes a bad line."""
    label, *tokens = line.partition(b"#")[0].split()
    if not math.isfinite(_number_of(label)):
        return InputError(f"a line begins with the label, a finite number; got {quoted(label)}.", column="label")
    has_qid = False
    ids = set[int]()
    for token in tokens:
        name, colon, value = token.partition(b":")
        if name == b"qid" and colon:
            if has_qid or not value or b"\0" in value or not is_utf8(value):
                problem = f"{quoted(token)} is not a query id: a line has one, in UTF-8 and without NUL bytes."
                return InputError(problem, column="qid")
            has_qid = True
        elif not colon or not name.isdigit() or len(name) > 18:
            problem = f"{quoted(token)} is not 'feature:value' with a whole number as feature id (nor 'qid:id')."
            return InputError(problem)
        else:
            feature = int(name)
            least, largest = _ids_taken(schema)
            if not least <= feature <= largest:
                return _out_of_range(feature, schema)
            if not abs(_number_of(value)) < _value_limit(schema):
                problem = f"the value {quoted(value)} of feature {feature} is not a finite number ({schema.dtype})."
                return InputError(problem, column=feature)
            if feature in ids:
                return InputError(f"feature {feature} is named twice.", column=feature)
            ids.add(feature)
    has = "no" if with_qid else "a"
    return InputError(f"the line has {has} query id, unlike the lines before it.", column="qid")


def _number_of(word: bytes) -> float:
    """The number that Python reads, but without underscores; NaN for other words."""
    try:
        return math.nan if b"_" in word else float(word)
    except ValueError:
        return math.nan


def _out_of_range(feature: int, schema: Schema) -> InputError:
    """Error about a feature that is not among those that are read."""
    least, largest = _ids_taken(schema)
    problem = f"feature {feature} is not among those that are read, from {least} to {largest}."
    return InputError(problem, column=feature, parameter="n_features" if feature > largest else "zero_based")
