"""Where each block's rows go: arrays of the right size for a whole file, filled block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls.io._parse import Job, Problem, Target, parse_block
from rankrls.io._rows import SAVE_AS_UTF8, coded, is_utf8, objects, quoted
from rankrls.io._scan import Sums
from rankrls.io._source import Block
from rankrls.io._table import Comments, LetorError, LetorTable

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "DENSE_FROM",
    "Filled",
    "Plan",
    "at_most",
    "check_width",
    "line_count",
    "parsed_alone",
    "row_lines",
]

MOST_COLUMNS = 1 << 27
"""Features from which on their number has to be confirmed: what works on so many columns takes gigabytes."""

_SLICE = 1 << 16

DENSE_FROM = 0.1
"""Share of written cells from which on a table is dense: a sparse product costs some ten times a dense one a cell."""


class Filled(NamedTuple):
    """What a block was found to hold.

    Attributes
    ----------
    rows : int
        Rows that were parsed.
    entries, columns : int
        Values that are written, and columns up to the last one that a row of a dense table names; if no line is bad.
    bad : LetorError or None
        The first bad line, counted from 0 inside its block.
    """

    rows: int
    entries: int
    columns: int
    bad: LetorError | None


@dataclass(frozen=True)
class Plan:
    """The arrays of a file, and each block's part of them.

    Attributes
    ----------
    sums, before : ndarray of shape (blocks, Sums.COUNT)
        What each block holds, and what all the blocks before it hold.
    """

    name: str
    sums: NDArray[np.int64]
    before: NDArray[np.int64]
    columns: int
    named: int
    zero_based: bool
    dense: bool
    with_qid: bool
    text_qid: bool
    single: bool
    target: Target

    @staticmethod
    def make(
        name: str,
        sums: NDArray[np.int64],
        n_features: int | None,
        zero_based: bool | Literal["auto"],
        dense: bool | Literal["auto"],
        dtype: np.dtype[Any],
        room: NDArray[Any] | None = None,
    ) -> Plan:
        """Decide the table's shape and kind, and allocate it.

        Dense features go into ``room``, if given, which holds zeros.
        """
        total = sums.sum(axis=0)
        rows, entries = int(total[Sums.ROWS]), int(total[Sums.ENTRIES])
        if rows == 0:
            raise LetorError("there is no row, only blank lines and comments.", file=name)
        if zero_based == "auto":
            zero_based = bool(sums[:, Sums.LEAST_ID].min() == 0)
        largest = int(sums[:, Sums.LARGEST_ID].max())
        named = max(largest + int(zero_based), 0)
        columns = named if n_features is None else n_features
        if dense == "auto":
            dense = entries >= DENSE_FROM * rows * columns
        with_qid = bool(sums[np.argmax(sums[:, Sums.ROWS] > 0), Sums.FIRST_HAS_QID])
        text_qid = with_qid and bool(total[Sums.TEXT_QID])
        values = rows * columns if dense else entries
        single = dtype == np.float32
        commented = bool(total[Sums.COMMENT_BYTES])
        try:
            # zeros, not empty: cells that no line names stay zero, and pages are touched by whoever fills them
            held = np.zeros(values, dtype=dtype) if room is None else room
            target = Target(
                y=np.empty(rows),
                double=held if not single else np.zeros(0),
                single=held if single else np.zeros(0, dtype=np.float32),
                indptr=np.zeros(0 if dense else rows + 1, dtype=np.int64),
                indices=np.empty(0 if dense else entries, dtype=np.int64),
                qid=np.empty(rows if with_qid and not text_qid else 0, dtype=np.int64),
                qid_text=np.empty(int(total[Sums.QID_BYTES]) if text_qid else 0, dtype=np.uint8),
                qid_ends=np.empty(rows if text_qid else 0, dtype=np.int64),
                comment_text=np.empty(int(total[Sums.COMMENT_BYTES]), dtype=np.uint8),
                comment_ends=np.empty(rows if commented else 0, dtype=np.int64),
            )
        except (MemoryError, ValueError) as error:
            raise MemoryError(
                f"{name}: a {'dense' if dense else 'sparse'} table of {rows} rows and {columns} columns with {entries} "
                f"values written does not fit into memory{' (dense=False makes it sparse)' if dense else ''}."
            ) from error
        before = np.cumsum(sums, axis=0) - sums
        return Plan(name, sums, before, columns, named, zero_based, dense, with_qid, text_qid, single, target)

    @property
    def _first_id(self) -> int:
        return 0 if self.zero_based else 1

    def first_line(self, k: int) -> int:
        """Number of a block's first line in the file, counted from 1."""
        return int(self.before[k, Sums.LINES]) + 1

    def fill(self, block: Block, k: int) -> Filled:
        """Parse block ``k`` into its part of the arrays."""
        job = Job(
            first_id=self._first_id,
            n_columns=self.columns,
            dense=self.dense,
            in_single=self.single,
            with_qid=self.with_qid,
            text_qid=self.text_qid,
            row=int(self.before[k, Sums.ROWS]),
            entry=int(self.before[k, Sums.ENTRIES]),
            qid_byte=int(self.before[k, Sums.QID_BYTES]),
            comment_byte=int(self.before[k, Sums.COMMENT_BYTES]),
        )
        # room for every number to be hard, which costs nothing while none is: untouched pages are never provided
        hard = np.empty((int(self.sums[k, Sums.ENTRIES] + self.sums[k, Sums.ROWS]), 4), dtype=np.int64)
        seen = np.full(1 + (self.columns if self.dense else 0), -1, dtype=np.int64)
        problem, line, first, last, number, n_hard, n_rows, unsorted = parse_block(
            block.text, block.first, block.last, job, self.target, hard, seen
        )
        bad = self._settle_hard(block, hard[:n_hard])
        if unsorted and (found := self._sort(block, job.row, job.row + n_rows)):
            bad.append(found)
        if problem != Problem.NONE:
            bad.append(self._wrong(problem, line, _token(block, first, last), number))
        if self.text_qid and (found := self._undecodable(block, k, n_rows)):
            bad.append(found)
        columns = int(np.flatnonzero(seen[:-1] >= 0).max(initial=-1)) + 1
        return Filled(n_rows, int(seen[-1]), columns, min(bad, key=lambda error: error.line or 0, default=None))

    def shortened(self, rows: int) -> Plan:
        """The same with the first rows of a dense table only: those that were parsed, of as many as there might be."""
        values, target = rows * self.columns, self.target
        rest = {name: getattr(target, name)[:rows] for name in ("y", "qid", "qid_ends", "comment_ends")}
        target = target._replace(double=target.double[:values], single=target.single[:values], **rest)
        return replace(self, target=target)

    def _settle_hard(self, block: Block, hard: NDArray[np.int64]) -> list[LetorError]:
        """Ask Python about the decimals that the compiled loop could not round. The first one that is too large."""
        values = self.target.single if self.single else self.target.double
        for first, last, line, at in hard.tolist():
            token = _token(block, first, last)
            name, colon, digits = token.rpartition(b":")
            value = float(digits)
            with np.errstate(over="ignore"):
                stored = values.dtype.type(value) if at >= 0 else value
            if not math.isfinite(stored):
                kind = Problem.VALUE if colon else Problem.LABEL
                return [self._wrong(kind, line, token, int(name or 0))]
            if at >= 0:
                values[at] = stored
            else:
                self.target.y[-1 - at] = value
        return []

    def _sort(self, block: Block, first_row: int, last_row: int) -> LetorError | None:
        """Sort the block's sparse rows by column; the first row that names a column twice."""
        t = self.target
        here = slice(t.indptr[first_row], t.indptr[last_row])
        row = np.repeat(np.arange(last_row - first_row), np.diff(t.indptr[first_row : last_row + 1]))
        order = np.lexsort((t.indices[here], row))
        for values in (t.indices, t.single if self.single else t.double):
            values[here] = values[here][order]
        column = t.indices[here]
        twice = np.flatnonzero((np.diff(column) == 0) & (np.diff(row) == 0))
        if not len(twice):
            return None
        line, feature = int(row_lines(block)[row[twice[0]]]), int(column[twice[0]]) + self._first_id
        return self._wrong(Problem.TWICE, line, b"", feature)

    def _undecodable(self, block: Block, k: int, n_rows: int) -> LetorError | None:
        """The first query id of the rows of block ``k`` that is not UTF-8."""
        start, first = int(self.before[k, Sums.QID_BYTES]), int(self.before[k, Sums.ROWS])
        ends = self.target.qid_ends[first : first + n_rows] - start
        data = self.target.qid_text[start : start + int(ends[-1])].tobytes() if n_rows else b""
        if data.isascii():
            return None
        for row, (begin, end) in enumerate(pairwise([0, *ends.tolist()])):
            if not is_utf8(data[begin:end]):
                problem, line = "the query id {0} is not UTF-8 text:", int(row_lines(block)[row])
                return LetorError(problem, quoted(data[begin:end]), remedy=SAVE_AS_UTF8, line=line)
        return None

    def _wrong(self, problem: Problem, line: int, token: bytes, number: int) -> LetorError:
        return _described(problem, token, number, self.columns, self._first_id).located(line=line)

    def features(self) -> NDArray[Any] | csr_array:
        """The features."""
        values = self.target.single if self.single else self.target.double
        rows = len(self.target.y)
        if self.dense:
            return values.reshape(rows, self.columns)
        from scipy.sparse import csr_array

        small = max(len(values), self.columns) <= np.iinfo(np.int32).max
        index = np.int32 if small else np.int64
        indices = self.target.indices.astype(index, copy=False)
        X = csr_array((values, indices, self.target.indptr.astype(index, copy=False)), shape=(rows, self.columns))
        X.has_canonical_format = True
        return X

    def queries(self) -> NDArray[Any] | None:
        """The query ids."""
        if not self.with_qid:
            return None
        if not self.text_qid:
            return self.target.qid
        data, ends = self.target.qid_text.tobytes(), self.target.qid_ends.tolist()
        known, codes = coded(data[start:end] for start, end in pairwise([0, *ends]))
        return objects(raw.decode() for raw in known)[codes]

    def table(self, sha256: str) -> LetorTable:
        """The rows, after every block has been filled."""
        return LetorTable(
            X=self.features(),
            y=self.target.y,
            qid=self.queries(),
            comments=self._comments(),
            path=self.name,
            sha256=sha256,
            zero_based=self.zero_based,
            n_named=self.named,
        )

    def _comments(self) -> Comments:
        ends = self.target.comment_ends
        if len(ends) == 0:
            ends = np.broadcast_to(np.int64(0), len(self.target.y))
        return Comments(self.target.comment_text, ends)


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


def parsed_alone(
    name: str,
    block: Block,
    sums: NDArray[np.int64],
    n_features: int | None,
    zero_based: bool | Literal["auto"],
    dense: bool,
    dtype: np.dtype[Any],
    room: NDArray[Any] | None = None,
) -> tuple[Plan, Filled]:
    """A block as arrays of its own, for which ``sums`` say what it holds, or of a dense table at most."""
    plan = Plan.make(name, sums[None], n_features, zero_based, dense, dtype, room)
    filled = plan.fill(block, 0)
    return plan.shortened(filled.rows) if dense else plan, filled


def at_most(block: Block, lines: int, *, with_qid: bool, text_qid: bool) -> NDArray[np.int64]:
    """What a block of so many lines holds of a dense table at most: arrays' room for more stays untouched."""
    size = block.last - block.first
    sums = np.zeros(Sums.COUNT, dtype=np.int64)
    sums[[Sums.LINES, Sums.ROWS]], sums[Sums.ENTRIES] = lines, size // 4 + 1  # " 1:2"
    sums[[Sums.QID_BYTES, Sums.COMMENT_BYTES]] = size
    sums[Sums.FIRST_HAS_QID], sums[Sums.TEXT_QID] = with_qid, text_qid
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


def _described(problem: Problem, token: bytes, number: int, columns: int, first_id: int) -> LetorError:
    """What is wrong with a line, as an error without its place.

    Parameters
    ----------
    problem : Problem
    token : bytes
        The bad token as it stands in the file.
    number : int
        The feature id concerned.
    columns, first_id : int
        How many columns there are, and the id of column 0.
    """
    shown = quoted(token)
    if problem == Problem.LABEL:
        # a first cell with separators is that of a table
        parameter = "format" if b"," in token or b";" in token else None
        if b":" in token:
            return LetorError("the line starts with {0}, but a label has to come first.", shown, parameter=parameter)
        return LetorError("the label {0} {1}.", shown, _not_a_value(token), column="label", parameter=parameter)
    if problem == Problem.VALUE:
        value = token.partition(b":")[2]
        if not value:
            return LetorError("feature {1} has no value ({0}).", shown, number, column=number)
        facts = (quoted(value), number, _not_a_value(value))
        return LetorError("the value {0} of feature {1} {2}.", *facts, column=number)
    template, parameter = {
        Problem.TOKEN: ("{0} is not 'feature:value' with a whole number as feature id (nor 'qid:id').", None),
        Problem.ID_TOO_LONG: ("the feature id of {0} is too large.", None),
        Problem.ID_ZERO: ("feature id 0 ({0}), but {zero_based=False} says that ids start at 1.", "zero_based"),
        Problem.ID_TOO_HIGH: (
            f"feature {{1}} ({{0}}) is beyond the {columns} features that are read, with ids from {first_id} on.",
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
    return LetorError(template, shown, number, parameter=parameter)


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
