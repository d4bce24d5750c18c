"""Plain files of LETOR text, some bytes at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.threads import stream_threads
from rankrls._errors import InputError
from rankrls.io._plan import DENSE_FROM, at_most, check_width, line_count, parsed_alone, row_lines
from rankrls.io._rows import SAVE_AS_UTF8, coded, is_utf8
from rankrls.io._scan import RowsSeen, Sums, scan_block
from rankrls.io._source import Block, Limited, blocks
from rankrls.io._table import LetorError, LetorTable, docids_of
from rankrls.io.datasets.dataset import Source, Span
from rankrls.io.datasets.files import File, refuse_packed
from rankrls.io.datasets.index import Outline
from rankrls.io.tables.columns import Wanted
from rankrls.io.tables.parts import IdBlock, Rows

__all__ = ["LetorFiles", "open_letor_files"]

_BLOCK = 1 << 21
_MOST_CELLS = 1 << 25  # that a block is taken to hold before it is counted: there may be blank lines
_DOCIDS = re.compile(rb"#[^\n]*?docid[ \t\r\v\f]*[=:][ \t\r\v\f]*[^ \t\r\v\f\n][^\n]*")


@dataclass(frozen=True)
class LetorFiles(Source):
    """How files of LETOR text are read.

    Attributes
    ----------
    zero_based : bool
        Whether column 0 is feature 0.
    texts : bool
        Whether some query id is no whole number.
    """

    zero_based: bool
    texts: bool

    def rows(self, file: File, span: Span, *, ids: bool, out: NDArray[Any] | None) -> Iterator[Rows]:
        """The rows of a span; dense features are written into ``out``."""
        before, line = 0, span.line
        with file.opened() as stream:
            stream.seek(span.first)
            size = span.last - span.first
            for block in blocks(Limited(stream, size), min(_BLOCK, size), at_start=span.first == 0):
                sums = self._sums(block)
                if sums[Sums.ROWS]:
                    room = None  # so many rows at most are parsed to where they belong
                    if out is not None and before >= span.skip and sums[Sums.ROWS] <= span.skip + len(out) - before:
                        room = out[before - span.skip :][: int(sums[Sums.ROWS])].reshape(-1)
                        room[:] = 0.0
                    table = _parsed(file.name, block, sums, line, self.n_features, self.zero_based, self.dense, room)
                    here = span.among(before, table.n_rows)
                    y = None if self.roles[0] is None else table.y
                    found = Rows(table.X, y, {"qid": _id_block(table.qid)}).among(here)
                    docids = _docids(table, here, line) if ids else None
                    yield found if docids is None else found._replace(texts={**found.texts, "id": docids})
                    if (before := before + here.stop) == span.skip + span.rows:
                        return
                line += int(sums[Sums.LINES])

    def _sums(self, block: Block) -> NDArray[np.int64]:
        """What a block holds; of dense tables at most.

        Only what no text of so many bytes can exceed may be said of them: the file may not be what it was.
        """
        lines = line_count(block)
        if self.dense and lines * self.n_features <= _MOST_CELLS:
            return at_most(block, lines, with_qid=True, text_qid=self.texts)
        return scan_block(block.text, block.first, block.last, RowsSeen.room(0))[0]


class _Glance(NamedTuple):
    """What the index sees of a block: what is noted of its rows, and their ids, if there is nothing unusual."""

    block: Block
    sums: NDArray[np.int64]
    docids: int
    found: tuple[RowsSeen, IdBlock] | None


class LetorOpening:
    """LETOR text that is being looked at: how it is read is known when all of it has been."""

    format, qid_name = "letor", None

    def __init__(self, files: Sequence[File], n_features: int | None, labels: bool) -> None:
        self._n_features, self._labels = n_features, labels
        self._totals = np.zeros(Sums.COUNT, dtype=np.int64)
        self._least, self._largest, self._docids = np.iinfo(np.int64).max, -1, 0
        self.row_bytes = 8
        for glance in self._glances(files[0]):
            self._add(glance)
            self.row_bytes = self._bytes()
            break

    @property
    def n_features(self) -> int:
        """Features, as far as the text has been looked at."""
        return self._n_features or self._shape()[0]

    def outlines(self, files: Sequence[File]) -> Iterator[Outline]:
        """Query ids and labels of all rows."""
        self._totals[:], self._docids = 0, 0
        for number, file in enumerate(files):
            at, line = 0, 1
            for glance in self._glances(file):
                self._add(glance)
                block, sums, _, found = glance
                rows = int(sums[Sums.ROWS])
                unit = Span(number, at, at + block.last, 0, rows, line)
                if rows and found is None:
                    table = _parsed(file.name, block, sums, line, self._n_features, "auto", False)
                    y = table.y if self._labels else None
                    yield Outline(unit, _id_block(table.qid), y, None, row_lines(block) + line)
                elif found is not None and rows:
                    seen, qid = found
                    y = seen.label if self._labels else None
                    yield Outline(unit, qid, y, None, seen.line + line, seen.begin + at)
                at, line = at + block.last, line + int(sums[Sums.LINES])

    def settled(self) -> LetorFiles:
        """How the rows are read, after all have been looked at."""
        named, zero_based, dense = self._shape()
        columns = named if self._n_features is None else self._n_features
        check_width(columns, zero_based, self._n_features, "features")
        return LetorFiles(
            format="letor",
            feature_names=None,
            n_features=columns,
            dtype=np.dtype(np.float64),
            dense=dense,
            has_weights=False,
            qid_name=None,
            roles=(
                "label" if self._labels else None,
                "qid",
                "docid" if self._docids == self._totals[Sums.ROWS] else None,
            ),
            zero_based=zero_based,
            texts=bool(self._totals[Sums.TEXT_QID]),
        )

    def _glances(self, file: File) -> Iterator[_Glance]:
        with file.opened() as stream:
            refuse_packed(file, stream)
            yield from stream_threads(_glance, blocks(Limited(stream, file.size), _BLOCK))

    def _add(self, glance: _Glance) -> None:
        sums = glance.sums
        self._totals += sums
        self._docids += glance.docids
        self._least = min(self._least, int(sums[Sums.LEAST_ID]))
        self._largest = max(self._largest, int(sums[Sums.LARGEST_ID]))

    def _shape(self) -> tuple[int, bool, bool]:
        """Columns that are named, whether the first is feature 0, and whether most cells are written."""
        zero_based = self._least == 0
        columns = max(self._largest + int(zero_based), 0)
        rows, entries = int(self._totals[Sums.ROWS]), int(self._totals[Sums.ENTRIES])
        return columns, zero_based, entries >= DENSE_FROM * rows * (self._n_features or columns)

    def _bytes(self) -> int:
        columns, _, dense = self._shape()
        rows, entries = max(int(self._totals[Sums.ROWS]), 1), int(self._totals[Sums.ENTRIES])
        return max(8 * (self._n_features or columns) if dense else 12 * entries // rows, 1)


def open_letor_files(files: Sequence[File], wanted: Wanted) -> LetorOpening:
    """Look at the beginning of files of LETOR text.

    Raises
    ------
    InputError
        For packed text, and for columns that are named.
    """
    told = next((role for role in ("label", "qid", "id", "ignore", "weight") if getattr(wanted, role)), None)
    if told is not None:
        problem = f"{{{told}}} is about columns of tables, and this is read as LETOR text."
        raise InputError(problem, file=files[0].name, parameter=told)
    count = None if wanted.features is None else ",".join(wanted.features)
    if count is not None and not (count.isdecimal() and int(count) >= 1):
        problem = "{features} is a number for LETOR text (names are for tables); got {0!r}."
        raise InputError(problem, count, parameter="features", file=files[0].name)
    return LetorOpening(files, None if count is None else int(count), wanted.labels != "ignored")


def _glance(block: Block) -> _Glance:
    room = RowsSeen.room(line_count(block))
    sums, plain = scan_block(block.text, block.first, block.last, room)
    docids = 0
    if sums[Sums.COMMENT_BYTES]:
        docids = len(_DOCIDS.findall(block.text[block.first : block.last].tobytes()))
    if not plain:
        return _Glance(block, sums, docids, None)
    seen = room.head(int(sums[Sums.ROWS]))
    if not sums[Sums.TEXT_QID]:
        return _Glance(block, sums, docids, (seen, (None, seen.qid)))
    data = block.text[: block.last].tobytes()
    known, codes = coded(data[start:stop] for start, stop in zip(seen.first.tolist(), seen.last.tolist(), strict=True))
    if not all(is_utf8(raw) and b"\0" not in raw for raw in known):
        return _Glance(block, sums, docids, None)
    return _Glance(block, sums, docids, (seen, ([raw.decode() for raw in known], codes)))


def _parsed(
    path: str,
    block: Block,
    sums: NDArray[np.int64],
    line: int,
    n_features: int | None,
    zero_based: Any,
    dense: bool,
    room: NDArray[np.float64] | None = None,
) -> LetorTable:
    """The rows of a block that begins in a line; dense features go into ``room``, if given, which holds zeros.

    Raises
    ------
    LetorError
        For the first bad line; every line needs a query id.
    """
    plan, filled = parsed_alone(path, block, sums, n_features, zero_based, dense, np.dtype(np.float64), room)
    if filled.bad is not None:
        raise filled.bad.located(file=path, line=line + (filled.bad.line or 0))
    if not plan.with_qid:
        remedy = "every line needs qid:ID."
        raise LetorError("no line has a qid.", remedy=remedy, file=path, line=line, parameter="qid")
    return plan.table("")


def _id_block(qid: NDArray[Any] | None) -> IdBlock:
    assert qid is not None  # every line has one
    return coded(qid.tolist()) if qid.dtype == object else (None, qid)


def _docids(table: LetorTable, rows: slice, line: int) -> IdBlock | None:
    try:
        if docids_of(table.comments[rows.start : rows.start + 1], table.path) is None:
            return None  # as nearly always without looking at the others
        found = docids_of(table.comments[rows], table.path)
        return None if found is None else _id_block(found)
    except LetorError:
        problem = "a docid in the lines from here on is not UTF-8 text:"
        raise LetorError(problem, remedy=SAVE_AS_UTF8, file=table.path, line=line) from None
