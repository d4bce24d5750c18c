"""LETOR text to blocks of rows: whole lines are parsed in threads, and the first bad line is described."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.threads import stream_threads
from rankrls.io._letor_loop import Found, Problem, Room, parse_block
from rankrls.io._rows import LARGEST_SINGLE, SAVE_AS_UTF8, quoted
from rankrls.io._source import Block, blocks, foreign
from rankrls.io._table import LetorError

MOST_COLUMNS = 1 << 27
"""More features have to be confirmed: what works on so many columns takes gigabytes."""

_NO_LIMIT = 10**18


@dataclass(frozen=True)
class LetorBlock:
    """Consecutive rows of LETOR text.

    Attributes
    ----------
    y : ndarray of shape (m,)
    ends : ndarray of shape (m,)
        Where each row's entries end.
    ids : ndarray of shape (entries,)
        Feature ids as the text writes them, ascending in each row; those of one row where ``full``.
    values : ndarray of shape (entries,)
    full : bool
        Whether every row names the same consecutive features.
    qid_starts : ndarray
        Where runs of rows of one query begin; empty if the rows have no query ids.
    qids : ndarray of int64, or list of str
        The query id of each run.
    comments : list of str, or None
        What stands behind ``#`` in each row; None if that is nothing in all of them.
    """

    y: NDArray[np.float64]
    ends: NDArray[np.int64]
    ids: NDArray[Any]
    values: NDArray[Any]
    full: bool
    qid_starts: NDArray[np.int64]
    qids: NDArray[np.int64] | list[str]
    comments: list[str] | None


class Seen(NamedTuple):
    """What a file has held so far; lines are counted from 1."""

    rows: int = 0
    entries: int = 0
    lines: int = 0
    least: int = np.iinfo(np.int64).max
    largest: int = -1
    line_of_largest: int = 0
    with_qid: bool | None = None


class LetorReader:
    """The blocks of a file, in order, and what they have held so far; the last of these is known when all are read.

    Parameters
    ----------
    source : object with ``readinto``
    start : bytes
        The first bytes of the file.
    name : str
        As errors name the file.
    size : int
        Bytes of a block.
    threads : int
    n_features, zero_based, dtype
        As for :func:`load_letor`.
    """

    def __init__(
        self,
        source: Any,
        start: bytes,
        name: str,
        size: int,
        threads: int,
        n_features: int | None = None,
        zero_based: bool | Literal["auto"] = "auto",
        dtype: Any = np.float64,
    ) -> None:
        self.seen, self.name, self._dtype = Seen(), name, dtype
        self._n_features, self._zero_based = n_features, zero_based
        self._least = int(zero_based is False)
        self._largest = _NO_LIMIT if n_features is None else n_features - int(zero_based is True)
        self._source, self._size, self._threads = source, size, threads
        self._rooms: list[Room] = []
        self._spare: list[bytearray] = []
        if what := foreign(start):
            problem = f"this is {what}, not LETOR text; plain text and gzip are read."
            raise LetorError(problem, file=name, parameter="format")

    def __iter__(self) -> Iterator[LetorBlock]:
        stream = blocks(self._source, self._size, spare=self._spare)
        for block, found, bad in stream_threads(self._parsed, stream, threads=self._threads):
            error = self._judged(found, bad)
            if error is not None:
                raise error
            if len(block.y):
                yield block
        self._check_feature_0()
        if self.seen.lines == 0:
            raise LetorError("the file is empty.", file=self.name)
        if self.seen.rows == 0:
            raise LetorError("there is no row, only blank lines and comments.", file=self.name)

    @property
    def zero_based(self) -> bool:
        """Whether column 0 is feature 0."""
        return self.seen.least == 0 if self._zero_based == "auto" else self._zero_based

    def columns(self) -> int:
        """How many features there are.

        Raises
        ------
        LetorError
            If there is none, and for so many that this is probably a slip, unless their number is given.
        """
        if self._n_features is not None:
            return self._n_features
        columns, largest = max(self.seen.largest + int(self.zero_based), 0), self.seen.largest
        if columns == 0:
            problem = "no line names a feature; pass n_features if that is right."
            raise LetorError(problem, file=self.name, parameter="n_features")
        if columns > MOST_COLUMNS:
            problem = (
                f"feature {largest} makes {columns} columns, most of them empty: pass n_features if that is right."
            )
            raise LetorError(problem, file=self.name, parameter="n_features", column=largest)
        return columns

    def _judged(self, found: Found, bad: LetorError | None) -> LetorError | None:
        """Add a block to what has been seen; what is wrong with its first bad line, or with one before it."""
        seen, rows = self.seen, found.rows
        with_qid = found.runs > 0
        at_largest = found.line_of_largest
        self.seen = Seen(
            seen.rows + rows,
            seen.entries + found.entries,
            seen.lines + found.lines,
            min(seen.least, found.least),
            max(seen.largest, found.largest),
            seen.line_of_largest or (at_largest and seen.lines + at_largest),
            with_qid if rows and seen.with_qid is None else seen.with_qid,
        )
        if rows and seen.with_qid is not None and with_qid != seen.with_qid:
            problem = "the line has no qid, but the lines before it have one."
            if with_qid:
                problem = "the line has a query id, but the lines before it have none."
            bad = LetorError(problem, line=found.first_line)
        if bad is None:
            return None
        line = seen.lines + (bad.line or 0)
        self._check_feature_0(line)
        return bad.replace(file=self.name, line=line)

    def _check_feature_0(self, before: int | None = None) -> None:
        """Refuse a feature that would be the last one if the text had not named feature 0 as well."""
        given, line = self._n_features, self.seen.line_of_largest
        if given is None or self._zero_based != "auto" or self.seen.least > 0 or not line:
            return
        if before is None or line < before:
            problem = _too_high(given, "", given, 0)
            raise LetorError(problem, file=self.name, line=line, column=given, parameter="n_features")

    def _parsed(self, block: Block) -> tuple[LetorBlock, Found, LetorError | None]:
        """The rows of a block, what it holds, and its first bad line, which is counted from 1 inside the block."""
        try:
            room = self._rooms.pop()
        except IndexError:
            room = None
        size = len(block.text)
        if room is None or len(room.comments) < size:
            room = Room.for_text(size)
        limit = LARGEST_SINGLE if self._dtype == np.float32 else np.inf
        found: Found = parse_block(block.text, block.first, block.last, self._least, self._largest, limit, room)
        rows, entries = found.rows, found.entries
        problems = [*_settle_hard(block, room, found, limit)]
        if found.problem:
            problems.append(_described(block, found, self._n_features, self._zero_based))
            entries = int(room.ends[rows - 1]) if rows else 0
            found = found._replace(least=int(room.ids[:entries].min(initial=_NO_LIMIT)))
        ends, ids, values = room.ends[:rows].copy(), room.ids[:entries], room.values[:entries]
        width = found.largest - found.least + 1
        full = entries > 0 and not found.gaps and entries == rows * width
        if found.unsorted:
            ids, values, twice = _sorted(ends, ids, values)
            if twice is not None:
                row, feature = twice
                problem = f"feature {feature} is named twice."
                problems.append(LetorError(problem, line=_row_line(block, row), column=feature))
        kind: Any = np.int32 if found.largest <= np.iinfo(np.int32).max else np.int64
        qid_starts, qids, undecodable = _query_ids(block, room, found)
        out = LetorBlock(
            y=room.labels[:rows].copy(),
            ends=ends,
            ids=_mapped(ids[:width] if full else ids, kind),
            values=_mapped(values, self._dtype),
            full=full,
            qid_starts=qid_starts,
            qids=qids,
            comments=_comments(room, rows),
        )
        if len(room.comments) == size:
            self._rooms.append(room)
        self._spare.append(block.area)
        bad = min([*problems, *undecodable], key=lambda error: error.line or 0, default=None)
        return out, found, bad


def _mapped(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """A copy in memory that goes back to the system when it is dropped: the allocator would keep most of it."""
    size = len(values) * np.dtype(dtype).itemsize
    out = np.frombuffer(mmap.mmap(-1, size), dtype=dtype) if size else np.empty(0, dtype=dtype)
    out[:] = values
    return out


def _sorted(
    ends: NDArray[np.int64], ids: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[np.float64], tuple[int, int] | None]:
    """Entries with ascending ids in each row; the first row that names a feature twice, and the feature."""
    from scipy.sparse import csr_array

    shape = (len(ends), int(ids.max(initial=0)) + 1)
    rows = csr_array((values.copy(), ids.copy(), np.concatenate(([0], ends))), shape=shape)
    rows.sort_indices()
    same = np.diff(rows.indices) == 0
    same[ends[(ends > 0) & (ends < len(ids))] - 1] = False  # the last of one row and the first of the next
    twice = np.flatnonzero(same)
    if not len(twice):
        return rows.indices, rows.data, None
    return rows.indices, rows.data, (int(np.searchsorted(ends, twice[0], side="right")), int(rows.indices[twice[0]]))


def _settle_hard(block: Block, room: Room, found: Found, limit: float) -> Iterator[LetorError]:
    """Ask Python about the decimals that the compiled loop could not round; those that are too large."""
    for first, last, at in room.hard[: found.hard].tolist():
        token = _token(block, first, last)
        name, _, digits = token.rpartition(b":")
        value = float(digits)
        if at >= 0:
            room.values[at] = value
        else:
            room.labels[-1 - at] = value
        if abs(value) >= (limit if at >= 0 else math.inf):
            yield (
                _bad_value(token, int(name), _line(block, first)) if at >= 0 else _bad_label(token, _line(block, first))
            )


def _query_ids(
    block: Block, room: Room, found: Found
) -> tuple[NDArray[np.int64], NDArray[np.int64] | list[str], list[LetorError]]:
    """Where the runs of one query id begin, their ids, and the first one that is not UTF-8."""
    runs = room.runs[: found.runs]
    starts = runs[:, 0].copy()
    if not found.words:
        return starts, runs[:, 3].copy(), []
    names = []
    for first, last in runs[:, 1:3].tolist():
        raw = _token(block, first, last)
        try:
            names.append(raw.decode())
        except UnicodeDecodeError:
            problem = f"the query id {quoted(raw)} is not UTF-8 text: {SAVE_AS_UTF8}"
            return starts, [], [LetorError(problem, line=_line(block, first), column="qid")]
    return starts, names, []


def _comments(room: Room, rows: int) -> list[str] | None:
    ends = [0, *room.comment_ends[:rows].tolist()]
    text = room.comments[: ends[-1]].tobytes()
    return [text[a:b].decode("utf-8", "surrogateescape") for a, b in pairwise(ends)] if text else None


def _token(block: Block, first: int, last: int) -> bytes:
    return block.text[first:last].tobytes()


def _line(block: Block, byte: int) -> int:
    """The line of a byte, counted from 1 inside the block."""
    return 1 + int(np.count_nonzero(block.text[block.first : byte] == 10))


def _row_line(block: Block, row: int) -> int:
    """The line of a row, counted from 1 inside the block."""
    lines = (line.strip(b" \t\r\v\f") for line in _token(block, block.first, block.last).split(b"\n"))
    return [k for k, line in enumerate(lines, 1) if line and not line.startswith(b"#")][row]


def _described(block: Block, found: Found, n_features: int | None, zero_based: bool | Literal["auto"]) -> LetorError:
    """What is wrong with the first bad line of a block."""
    first, last, feature = found.first, found.last, found.feature
    token, line = _token(block, first, last), _line(block, first)
    shown = quoted(token)
    match found.problem:
        case Problem.LABEL:
            return _bad_label(token, line)
        case Problem.VALUE:
            return _bad_value(token, feature, line)
        case Problem.TOKEN:
            problem = f"{shown} is not 'feature:value' with a whole number as feature id (nor 'qid:id')."
        case Problem.ID_TOO_LONG:
            problem = f"the feature id of {shown} is too large."
        case Problem.ID_TOO_LOW:
            problem = f"feature id 0 ({shown}), but zero_based=False says that ids start at 1."
            return LetorError(problem, line=line, column=feature, parameter="zero_based")
        case Problem.ID_TOO_HIGH:
            first_id = 0 if zero_based is True or (zero_based == "auto" and found.least == 0) else 1
            problem = _too_high(feature, f" ({shown})", n_features or 0, first_id)
            return LetorError(problem, line=line, column=feature, parameter="n_features")
        case Problem.QID_EMPTY:
            problem = "the query id behind 'qid:' is missing."
        case Problem.QID_TWICE:
            problem = f"there is a second query id, {shown}."
        case Problem.QID_MISSING:
            problem = "the line has no qid, but the lines before it have one."
        case Problem.QID_UNEXPECTED:
            problem = f"the line has a query id, {shown}, but the lines before it have none."
        case _:
            problem = f"the query id {shown} holds a NUL byte."
    return LetorError(problem, line=line)


def _too_high(feature: int, shown: str, n_features: int, first_id: int) -> str:
    return f"feature {feature}{shown} is beyond the {n_features} features that are read, with ids from {first_id} on."


def _bad_label(token: bytes, line: int) -> LetorError:
    # a first cell with separators is that of a table
    parameter = "format" if b"," in token or b";" in token else None
    problem = f"the label {quoted(token)} {_not_a_value(token)}."
    if b":" in token:
        problem = f"the line starts with {quoted(token)}, but a label has to come first."
    return LetorError(problem, line=line, column="label", parameter=parameter)


def _bad_value(token: bytes, feature: int, line: int) -> LetorError:
    value = token.partition(b":")[2]
    problem = f"the value {quoted(value)} of feature {feature} {_not_a_value(value)}."
    if not value:
        problem = f"feature {feature} has no value ({quoted(token)})."
    return LetorError(problem, line=line, column=feature)


def _not_a_value(token: bytes) -> str:
    try:
        value = float(token)
    except ValueError:
        return "is not a number"
    if math.isnan(value) or token.lower().lstrip(b"+-").startswith(b"inf"):
        return "is not finite"
    if math.isinf(value):
        return "is too large for a float64"
    return "is too large for float32" if abs(value) > 1e38 else "is not a number"  # 1_000 is none here
