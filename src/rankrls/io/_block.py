"""Rows of LETOR text as arrays, a block at a time."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls.io._parse import Job, Problem, Target, parse_block
from rankrls.io._rows import LARGEST_SINGLE, SAVE_AS_UTF8, IdBlock, Ids, coded, is_utf8, quoted
from rankrls.io._scan import Sums
from rankrls.io._source import Block
from rankrls.io._table import Comments, LetorError, LetorTable

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_COLUMNS = 1 << 27
"""Features from which on their number has to be confirmed: what works on so many columns takes gigabytes."""

_SLICE = 1 << 16

DENSE_FROM = 0.1
"""Share of written cells from which on a table is dense: a sparse product costs some ten times a dense one a cell."""


class Shape(NamedTuple):
    """What rows are read as."""

    columns: int
    zero_based: bool
    dense: bool
    with_qid: bool
    text_qid: bool

    @staticmethod
    def of(
        sums: NDArray[np.int64],
        n_features: int | None,
        zero_based: bool | Literal["auto"],
        dense: bool | Literal["auto"],
    ) -> Shape:
        """That of blocks of which ``sums`` say what they hold, as far as it is not given."""
        total = sums.sum(axis=0)
        if zero_based == "auto":
            zero_based = bool(sums[:, Sums.LEAST_ID].min() == 0)
        named = max(int(sums[:, Sums.LARGEST_ID].max()) + int(zero_based), 0)
        columns = named if n_features is None else n_features
        if dense == "auto":
            dense = bool(total[Sums.ENTRIES] >= DENSE_FROM * total[Sums.ROWS] * columns)
        with_qid = bool(sums[np.argmax(sums[:, Sums.ROWS] > 0), Sums.FIRST_HAS_QID])
        return Shape(columns, zero_based, dense, with_qid, with_qid and bool(total[Sums.TEXT_QID]))

    @property
    def first_id(self) -> int:
        """The feature of column 0."""
        return 0 if self.zero_based else 1


class Parsed(NamedTuple):
    """The rows of a block, up to the first bad line.

    Attributes
    ----------
    X : ndarray, or tuple of ndarray
        Of sparse rows values, columns, and where rows begin among them.
    y : ndarray
    qid : IdBlock, or None
    comment_text, comment_ends : ndarray
        As :class:`Comments` takes them.
    entries, named : int
        Values that are written, and columns up to the last one that a row names; if no line is bad.
    bad : LetorError or None
        What is wrong with the first bad line.
    """

    X: Any
    y: NDArray[np.float64]
    qid: IdBlock | None
    comment_text: NDArray[np.uint8]
    comment_ends: NDArray[np.int64]
    entries: int
    named: int
    bad: LetorError | None


def parsed(
    block: Block,
    sums: NDArray[np.int64],
    shape: Shape,
    name: str,
    line: int,
    room: NDArray[Any] | None = None,
    dtype: Any = np.float64,
) -> Parsed:
    """Parse a block that begins in a line of a file, and of which ``sums`` say what it holds, or holds at most.

    Dense features go into ``room``, if given, which holds zeros. Values that are too large for the dtype are refused;
    X is float64 where it is not the room.
    """
    rows, entries = int(sums[Sums.ROWS]), int(sums[Sums.ENTRIES])
    dense, with_qid, text_qid = shape.dense, shape.with_qid, shape.text_qid
    # arrays of zeros, and room for every number to be hard, cost nothing as far as they are not touched
    if room is not None and room.dtype == np.float64:
        values = room.reshape(-1)
    else:
        values = np.zeros(rows * shape.columns if dense else entries)
    target = Target(
        y=np.empty(rows),
        values=values,
        indptr=np.zeros(0 if dense else rows + 1, dtype=np.int64),
        indices=np.empty(0 if dense else entries, dtype=np.int64),
        qid=np.empty(rows if with_qid and not text_qid else 0, dtype=np.int64),
        qid_text=np.empty(int(sums[Sums.QID_BYTES]) if text_qid else 0, dtype=np.uint8),
        qid_ends=np.empty(rows if text_qid else 0, dtype=np.int64),
        comment_text=np.empty(int(sums[Sums.COMMENT_BYTES]), dtype=np.uint8),
        comment_ends=np.empty(rows, dtype=np.int64),
    )
    limit = LARGEST_SINGLE if dtype == np.float32 else np.inf
    job = Job(shape.first_id, shape.columns, dense, limit, with_qid, text_qid)
    hard = np.empty((entries + rows, 4), dtype=np.int64)
    seen = np.full(1 + (shape.columns if dense else 0), -1, dtype=np.int64)
    problem, at, first, last, number, n_hard, n, unsorted = parse_block(
        block.text, block.first, block.last, job, target, hard, seen
    )
    written, bad = int(seen[-1]), _settle_hard(block, hard[:n_hard], target, job)
    if unsorted:
        bad += _sort(block, target, n, job)
    if problem != Problem.NONE:
        bad.append(_described(problem, at, _token(block, first, last), number, job))
    qid: IdBlock | None = (None, target.qid[:n]) if with_qid else None
    if text_qid:
        qid, undecodable = _texts(block, target, n)
        bad += undecodable
    X: Any
    if dense:
        X = values[: n * shape.columns].reshape(n, shape.columns)
        if room is not None and room.dtype != np.float64:
            room[:n] = X
        columns = np.flatnonzero(seen[:-1] >= 0)
    else:
        columns = target.indices[: written if problem == Problem.NONE else 0]
        X = values, target.indices, target.indptr[: n + 1]
    ends = target.comment_ends[:n]
    found = min(bad, key=lambda error: error.line or 0, default=None)
    return Parsed(
        X=X,
        y=target.y[:n],
        qid=qid,
        comment_text=target.comment_text[: ends[-1] if n else 0].copy(),  # without the room that was not needed
        comment_ends=ends,
        entries=written,
        named=int(columns.max(initial=-1)) + 1,
        bad=None if found is None else found.located(file=name, line=line + (found.line or 0)),
    )


def index_type(entries: int, columns: int) -> Any:
    """Of the indices of a sparse array."""
    return np.int32 if max(entries, columns) <= np.iinfo(np.int32).max else np.int64


def as_csr(columns: int, values: NDArray[Any], indices: NDArray[Any], indptr: NDArray[np.int64]) -> csr_array:
    """Sorted rows as a sparse array."""
    from scipy.sparse import csr_array

    index = index_type(len(values), columns)
    shape = (len(indptr) - 1, columns)
    X = csr_array((values, indices.astype(index, copy=False), indptr.astype(index, copy=False)), shape=shape)
    X.has_canonical_format = True
    return X


def joined(name: str, sha256: str, shape: Shape, X: NDArray[Any] | csr_array, parts: list[Parsed]) -> LetorTable:
    """The table of the blocks of a file, whose features are already together."""
    qid = Ids()
    for part in parts:
        qid.append(*part.qid or (None, np.empty(0, dtype=np.int64)))
    before = np.cumsum([0, *(len(part.comment_text) for part in parts[:-1])])
    ends = [part.comment_ends + start for part, start in zip(parts, before, strict=True)]
    return LetorTable(
        X=X,
        y=np.concatenate([part.y for part in parts]),
        qid=qid.finish(numbers=False) if shape.with_qid else None,
        comments=Comments(np.concatenate([part.comment_text for part in parts]), np.concatenate(ends)),
        path=name,
        sha256=sha256,
        zero_based=shape.zero_based,
        n_named=max(part.named for part in parts),
    )


def _settle_hard(block: Block, hard: NDArray[np.int64], out: Target, job: Job) -> list[LetorError]:
    """Ask Python about the decimals that the compiled loop could not round. The first one that is too large."""
    for first, last, line, at in hard.tolist():
        token = _token(block, first, last)
        name, colon, digits = token.rpartition(b":")
        value = float(digits)
        if abs(value) >= (job.limit if at >= 0 else math.inf):
            return [_described(Problem.VALUE if colon else Problem.LABEL, line, token, int(name or 0), job)]
        if at >= 0:
            out.values[at] = value
        else:
            out.y[-1 - at] = value
    return []


def _sort(block: Block, out: Target, n_rows: int, job: Job) -> list[LetorError]:
    """Sort sparse rows by column; the first row that names a column twice."""
    here = slice(0, out.indptr[n_rows])
    row = np.repeat(np.arange(n_rows), np.diff(out.indptr[: n_rows + 1]))
    order = np.lexsort((out.indices[here], row))
    for values in (out.indices, out.values):
        values[here] = values[here][order]
    column = out.indices[here]
    twice = np.flatnonzero((np.diff(column) == 0) & (np.diff(row) == 0))
    if not len(twice):
        return []
    feature = int(column[twice[0]]) + job.first_id
    return [_described(Problem.TWICE, int(row_lines(block)[row[twice[0]]]), b"", feature, job)]


def _texts(block: Block, out: Target, n_rows: int) -> tuple[IdBlock, list[LetorError]]:
    """The query ids, if they are texts; the first that is not UTF-8."""
    ends = [0, *out.qid_ends[:n_rows].tolist()]
    data = out.qid_text[: ends[-1]].tobytes()
    known, codes = coded(data[start:end] for start, end in pairwise(ends))
    if not is_utf8(data):
        for code, raw in enumerate(known):
            if not is_utf8(raw):
                line = int(row_lines(block)[np.argmax(codes == code)])
                problem = "the query id {0} is not UTF-8 text:"
                return (None, codes), [LetorError(problem, quoted(raw), remedy=SAVE_AS_UTF8, line=line)]
    return ([raw.decode() for raw in known], codes), []


def _token(block: Block, first: int, last: int) -> bytes:
    return block.text[first:last].tobytes()


def row_lines(block: Block) -> NDArray[np.int64]:
    """The line of each row, counted from 0 inside the block."""
    lines = (line.strip(b" \t\r\v\f") for line in _token(block, block.first, block.last).split(b"\n"))
    return np.array([k for k, line in enumerate(lines) if line and not line.startswith(b"#")], dtype=np.int64)


def line_count(block: Block) -> int:
    """Lines of a block; slice by slice, so that what is compared stays in the processor's cache."""
    cuts = range(block.first, block.last, _SLICE)
    return sum(int(np.count_nonzero(block.text[at : min(at + _SLICE, block.last)] == 10)) for at in cuts)


def at_most(block: Block, lines: int) -> NDArray[np.int64]:
    """What a block of so many lines holds of a dense table at most: arrays' room for more stays untouched."""
    size = block.last - block.first
    sums = np.zeros(Sums.COUNT, dtype=np.int64)
    sums[[Sums.LINES, Sums.ROWS]], sums[Sums.ENTRIES] = lines, size // 4 + 1  # " 1:2"
    sums[[Sums.QID_BYTES, Sums.COMMENT_BYTES]] = size
    return sums


def check_width(columns: int, zero_based: bool, given: int | None, parameter: str, file: str | None = None) -> None:
    """Refuse text that names no feature, and so many that this is probably a slip, unless their number is given."""
    remedy, largest = f"pass {{{parameter}}} if that is right.", columns - int(zero_based)
    facts: dict[str, Any] = {"remedy": remedy, "file": file, "parameter": parameter}
    if columns == 0:
        raise LetorError("no line names a feature;", **facts)
    if given is None and columns > MOST_COLUMNS:
        problem = "feature {0} makes {1} columns, most of them empty:"
        raise LetorError(problem, largest, columns, column=largest, **facts)


def _described(problem: Problem, line: int, token: bytes, number: int, job: Job) -> LetorError:
    """What is wrong with a line of a block, counted from 0: the bad token as it stands there, and the feature id."""
    shown, wrong = quoted(token), partial(LetorError, line=line)
    if problem == Problem.LABEL:
        # a first cell with separators is that of a table
        parameter = "format" if b"," in token or b";" in token else None
        if b":" in token:
            return wrong("the line starts with {0}, but a label has to come first.", shown, parameter=parameter)
        return wrong("the label {0} {1}.", shown, _not_a_value(token), column="label", parameter=parameter)
    if problem == Problem.VALUE:
        value = token.partition(b":")[2]
        if not value:
            return wrong("feature {1} has no value ({0}).", shown, number, column=number)
        facts = (quoted(value), number, _not_a_value(value))
        return wrong("the value {0} of feature {1} {2}.", *facts, column=number)
    template, parameter = {
        Problem.TOKEN: ("{0} is not 'feature:value' with a whole number as feature id (nor 'qid:id').", None),
        Problem.ID_TOO_LONG: ("the feature id of {0} is too large.", None),
        Problem.ID_ZERO: ("feature id 0 ({0}), but {zero_based=False} says that ids start at 1.", "zero_based"),
        Problem.ID_TOO_HIGH: (
            "feature {1} ({0}) is beyond the {2} features that are read, with ids from {3} on.",
            "n_features",
        ),
        Problem.TWICE: ("feature {1} is named twice.", None),
        Problem.QID_EMPTY: ("the query id behind 'qid:' is missing.", None),
        Problem.QID_TWICE: ("there is a second query id, {0}.", None),
        Problem.QID_MISSING: ("the line has no qid, but the lines before it have one.", None),
        Problem.QID_UNEXPECTED: ("the line has a query id, {0}, but the lines before it have none.", None),
        Problem.QID_NUL: ("the query id {0} holds a NUL byte.", None),
        Problem.QID_TEXT: ("the query id {0} is no whole number, which all were before the file was changed.", None),
    }[problem]
    return wrong(template, shown, number, job.n_columns, job.first_id, parameter=parameter)


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
