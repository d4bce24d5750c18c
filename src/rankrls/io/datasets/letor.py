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
from rankrls.io._block import Parsed, Shape, as_csr, at_most, check_width, line_count, parsed, row_lines
from rankrls.io._rows import SAVE_AS_UTF8, IdBlock, coded, is_utf8
from rankrls.io._scan import RowsSeen, Sums, scan_block
from rankrls.io._source import Block, Limited, blocks
from rankrls.io._table import Comments, LetorError, docids_of
from rankrls.io.datasets.dataset import Source, Span
from rankrls.io.datasets.files import File, refuse_packed
from rankrls.io.datasets.index import Outline
from rankrls.io.tables.columns import Wanted
from rankrls.io.tables.parts import Rows

_BLOCK = 1 << 21
_MOST_CELLS = 1 << 25  # that a block is taken to hold before it is counted: there may be blank lines
_DOCIDS = re.compile(rb"#[^\n]*?docid[ \t\r\v\f]*[=:][ \t\r\v\f]*[^ \t\r\v\f\n][^\n]*")


@dataclass(frozen=True, kw_only=True)
class LetorFiles(Source):
    """How files of LETOR text are read."""

    shape: Shape

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
                        room = out[before - span.skip :][: int(sums[Sums.ROWS])]
                        room[:] = 0.0
                    part, qid = _with_ids(block, sums, self.shape, file.name, line, room)
                    here = span.among(before, len(part.y))
                    y = None if self.roles[0] is None else part.y
                    X = part.X if self.dense else as_csr(self.n_features, *part.X)
                    found = Rows(X, y, {"qid": qid}).among(here)
                    docids = _docids(part, file.name, here, line) if ids else None
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
            return at_most(block, lines)
        return scan_block(block.text, block.first, block.last, RowsSeen.room(0))[0]


class _Glance(NamedTuple):
    """What the index sees of a block: what is noted of its rows, and their ids, if there is nothing unusual."""

    block: Block
    sums: NDArray[np.int64]
    docids: int
    found: tuple[RowsSeen, IdBlock] | None


_NOTHING = np.zeros(Sums.COUNT, dtype=np.int64)
_NOTHING[Sums.LEAST_ID], _NOTHING[Sums.LARGEST_ID] = np.iinfo(np.int64).max, -1


class LetorOpening:
    """LETOR text that is being looked at: how it is read is known when all of it has been."""

    format, qid_name = "letor", None

    def __init__(self, files: Sequence[File], n_features: int | None, labels: bool) -> None:
        self._n_features, self._labels = n_features, labels
        self._begin()
        for glance in (glance for file in files for glance in self._glances(file)):
            self._add(glance)
            break
        total, shape = np.sum(self._sums, axis=0), self._shape()
        entries = 12 * int(total[Sums.ENTRIES]) // max(int(total[Sums.ROWS]), 1)
        self.row_bytes = max(8 * shape.columns if shape.dense else entries, 1)

    @property
    def n_features(self) -> int:
        """Features, as far as the text has been looked at."""
        return self._shape().columns

    def outlines(self, files: Sequence[File]) -> Iterator[Outline]:
        """Query ids and labels of all rows."""
        self._begin()
        for number, file in enumerate(files):
            at, line = 0, 1
            for glance in self._glances(file):
                self._add(glance)
                block, sums, _, found = glance
                rows = int(sums[Sums.ROWS])
                unit = Span(number, at, at + block.last, 0, rows, line)
                if rows and found is None:
                    shape = Shape.of(sums[None], self._n_features, "auto", False)
                    part, qid = _with_ids(block, sums, shape, file.name, line)
                    y = part.y if self._labels else None
                    yield Outline(unit, qid, y, None, row_lines(block) + line)
                elif found is not None and rows:
                    seen, qid = found
                    y = seen.label if self._labels else None
                    yield Outline(unit, qid, y, None, seen.line + line, seen.begin + at)
                at, line = at + block.last, line + int(sums[Sums.LINES])

    def settled(self) -> LetorFiles:
        """How the rows are read, after all have been looked at."""
        shape, rows = self._shape(), np.sum(self._sums, axis=0)[Sums.ROWS]
        check_width(shape.columns, shape.zero_based, self._n_features, "features")
        return LetorFiles(
            format="letor",
            n_features=shape.columns,
            dtype=np.dtype(np.float64),
            dense=shape.dense,
            roles=("label" if self._labels else None, "qid", "docid" if self._docids == rows else None),
            shape=shape,
        )

    def _glances(self, file: File) -> Iterator[_Glance]:
        with file.opened() as stream:
            refuse_packed(file, stream)
            yield from stream_threads(_glance, blocks(Limited(stream, file.size), _BLOCK))

    def _begin(self) -> None:
        self._sums, self._docids = [_NOTHING], 0

    def _add(self, glance: _Glance) -> None:
        self._sums.append(glance.sums)
        self._docids += glance.docids

    def _shape(self) -> Shape:
        """As far as the text has been looked at."""
        return Shape.of(np.array(self._sums), self._n_features, "auto", "auto")


def open_files(files: Sequence[File], wanted: Wanted) -> LetorOpening:
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
    return LetorOpening(files, wanted.count(files[0].name), wanted.labels != "ignored")


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


def _with_ids(
    block: Block,
    sums: NDArray[np.int64],
    shape: Shape,
    file: str,
    line: int,
    room: NDArray[np.float64] | None = None,
) -> tuple[Parsed, IdBlock]:
    """The rows of a block, all of which need query ids.

    Raises
    ------
    LetorError
        For the first bad line.
    """
    part = parsed(block, sums, shape, file, line, room)
    if part.bad is not None:
        raise part.bad
    if part.qid is None:
        remedy = "every line needs qid:ID."
        raise LetorError("no line has a qid.", remedy=remedy, file=file, line=line, parameter="qid")
    return part, part.qid


def _docids(part: Parsed, path: str, rows: slice, line: int) -> IdBlock | None:
    comments = Comments(part.comment_text, part.comment_ends)
    try:
        if docids_of(comments[rows.start : rows.start + 1], path) is None:
            return None  # as nearly always without looking at the others
        found = docids_of(comments[rows], path)
        return None if found is None else coded(found.tolist())
    except LetorError:
        problem = "a docid in the lines from here on is not UTF-8 text:"
        raise LetorError(problem, remedy=SAVE_AS_UTF8, file=path, line=line) from None
