"""One pass over query ids, labels and weights: where queries begin, and how the rows are cut into parts."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io._rows import IdBlock
from rankrls.io.datasets.dataset import Address, Piece, Span
from rankrls.io.datasets.files import File
from rankrls.io.datasets.runs import Runs, Seen, are_whole, keys_of, names_of

_SLACK = 1.1
"""So much smaller than the limit are the parts of a row group that is larger than it: queries end where they end."""


class Outline(NamedTuple):
    """What the index looks at, of some consecutive rows of one unit: of rows that are read together, which are some row
    groups of a Parquet file, or some lines of text.

    ``lines`` are those of the rows, of text; ``places`` the bytes with which they begin, where all rows of a unit are
    looked at together.
    """

    unit: Span
    qid: IdBlock
    y: NDArray[np.float64] | None
    weight: NDArray[np.float64] | None
    lines: NDArray[np.int64] | None = None
    places: NDArray[np.int64] | None = None


class _Begun(NamedTuple):
    """A unit, the row with which it begins, and where queries begin in it: rows of all, bytes and lines."""

    row: int
    unit: Span
    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    lines: NDArray[np.int64]

    @staticmethod
    def of(outline: Outline, row: int, at: NDArray[np.intp]) -> _Begun:
        """The unit of an outline that begins with this row of all; queries begin in the rows ``at`` of it."""
        if outline.places is None or outline.lines is None:
            return _Begun(row, outline.unit, *np.empty((3, 0), dtype=np.int64))
        return _Begun(row, outline.unit, row + at, outline.places[at], outline.lines[at])

    def span(self, start: int, end: int) -> Span | None:
        """What has to be read for its rows from ``start`` to ``end``; None for none."""
        unit = self.unit
        low, high = max(self.row, start), min(self.row + unit.rows, end)
        if high <= low:
            return None
        first, last, skip, line = unit.first, unit.last, low - self.row, unit.line
        if skip and len(at := np.flatnonzero(self.rows == low)):
            first, skip, line = int(self.places[at[0]]), 0, int(self.lines[at[0]])
        if high < self.row + unit.rows and len(at := np.flatnonzero(self.rows == high)):
            last = int(self.places[at[0]])
        return Span(unit.file, first, last, skip, high - low, line)


class Levels:
    """The different labels of rows, how many rows have each, and their weights; rows may come one block at a time."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]] = []
        self._size = self._merged = 0

    def add(self, y: NDArray[np.float64] | None, weight: NDArray[np.float64] | None, rows: slice) -> Levels:
        """More rows; those without a label do not count."""
        if y is None:
            return self
        here = y[rows]
        scored = ~np.isnan(here)
        weights = np.ones(len(here)) if weight is None else weight[rows]
        self._parts.append(_grouped(here[scored], np.ones(int(scored.sum()), dtype=np.int64), weights[scored]))
        self._size += len(self._parts[-1][0])
        if self._size > 2 * self._merged + 1000:
            self.merged()
        return self

    def merged(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
        """Labels, counts and weights of all rows."""
        empty = (np.empty(0), np.empty(0, dtype=np.int64), np.empty(0))
        labels, counts, weights = map(np.concatenate, zip(empty, *self._parts, strict=True))
        self._parts = [_grouped(labels, counts, weights)]
        self._size = self._merged = len(self._parts[0][0])
        return self._parts[0]


def _grouped(
    labels: NDArray[np.float64], counts: NDArray[np.int64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    different, at = np.unique(labels, return_inverse=True)
    n = np.bincount(at, counts, len(different)).astype(np.int64)
    return different, n, np.bincount(at, weights, len(different)).astype(np.float64)


class _Cutter:
    """Cuts rows into parts of whole queries, at the ends of units where that is possible."""

    def __init__(self, limit: int) -> None:
        self.parts: list[Address] = []
        self.rows = self.queries = 0  # how many there were; how many have begun
        self._limit = limit
        self._units: deque[_Begun] = deque()  # from the open part on
        self._part = self._part_query = 0
        self._open = np.empty(
            (3, 0), dtype=np.int64
        )  # where the last query begins, its unit begins, and the unit's rows
        self._levels = Levels()  # of that query
        self._before = (0, 0)  # where the query before begins, and its unit

    def add(self, outline: Outline, begins: NDArray[np.bool_]) -> None:
        """More rows, and which of them begin a query."""
        unit, y, weight = outline.unit, outline.y, outline.weight
        at = np.flatnonzero(begins)
        if not self._units or self._units[-1].unit is not unit:
            self._units.append(_Begun.of(outline, self.rows, at))
        borders, waiting = [*at.tolist(), len(begins)], self._open.shape[1]
        self._levels.add(y, weight, slice(0, borders[0]))
        levels = lambda k: Levels().add(y, weight, slice(borders[k], borders[k + 1]))
        units = np.full((2, len(at)), [[self._units[-1].row], [unit.rows]])
        known = np.hstack((self._open, np.vstack((at + self.rows, units))))
        self._complete(known[:, :-1], known[0, 1:], lambda k: levels(k - waiting) if k >= waiting else self._levels)
        self._open = known[:, -1:]
        if len(at):
            self._levels = levels(len(at) - 1)
        self.rows, self.queries = self.rows + len(begins), self.queries + len(at)

    def finish(self) -> tuple[Address, ...]:
        """All parts, after the last rows."""
        self._complete(self._open, np.array([self.rows]), lambda _: self._levels)
        self._close(self.rows, self.queries)
        return tuple(self.parts)

    def _complete(self, known: NDArray[np.int64], ends: NDArray[np.int64], levels: Callable[[int], Levels]) -> None:
        """Queries whose ends are known, the last that have begun: starts, starts and rows of their units, and ends."""
        if not known.size:
            return
        limit, query, (starts, begin, rows) = self._limit, self.queries - self._open.shape[1], known
        before = np.r_[self._before[0], starts[:-1]]
        late = (begin != np.r_[self._before[1], begin[:-1]]) * (begin + rows)  # where a unit ends that has just begun
        share = np.ceil(rows / np.ceil(_SLACK * rows / limit)).astype(
            np.int64
        )  # of equal size, a little below the limit
        crosses = (rows > limit) & ((starts - begin) // share > np.maximum(before - begin, 0) // share)
        long = ends - starts > limit
        done = 0
        while done < len(starts):
            rest = slice(done, None)
            full = (np.maximum(ends, late)[rest] - self._part > limit) | crosses[rest]
            stop = long[rest] | (full & (starts[rest] > self._part))
            k = int(np.argmax(stop))
            if not stop[k]:
                break
            k += done
            self._close(int(starts[k]), query + k)
            if long[k]:
                self._pieces(int(starts[k]), int(ends[k]), query + k, levels(k))
            done = k + 1
        self._before = (int(starts[-1]), int(begin[-1]))

    def _close(self, end: int, next_query: int) -> None:
        """End the open part before a row, with which a query begins."""
        if end > self._part:
            self._emit(end, self._part_query, next_query - self._part_query, None)
        self._part_query = next_query

    def _emit(self, end: int, query: int, queries: int, piece: Piece | None) -> None:
        start = self._part
        spans = tuple(self._spans(start, end))
        self.parts.append(Address(len(self.parts), start, end - start, query, queries, spans, piece))
        self._part = end

    def _pieces(self, start: int, end: int, query: int, levels: Levels) -> None:
        borders = [*self._borders(start, end)]
        labels, counts, weights = levels.merged()
        for k, border in enumerate(borders):
            piece = Piece(query, labels, counts, weights, k, len(borders), self._part - start)
            self._emit(border, query, 1, piece)
        self._part_query = query + 1

    def _borders(self, start: int, end: int) -> Iterator[int]:
        """Where pieces of a query end: with a unit if that is possible."""
        last = start
        for begin, unit, *_ in self._units:
            low, high = max(begin, start), min(begin + unit.rows, end)
            if high <= low:
                continue
            if high - last > self._limit and low > last:
                yield (last := low)
            count = math.ceil((high - last) / self._limit)
            for k in range(1, count):
                yield low + (high - low) * k // count
            if count > 1:
                last = low + (high - low) * (count - 1) // count
        yield end

    def _spans(self, start: int, end: int) -> Iterator[Span]:
        """Rows as what has to be read; units that lie behind one another in a file are read in one go."""
        while self._units and self._units[0].row + self._units[0].unit.rows <= start:
            self._units.popleft()
        span: Span | None = None
        for begun in self._units:
            more = begun.span(start, end)
            if more is None:
                continue
            if span is not None and (span.file, span.last) == (more.file, more.first):
                span = Span(span.file, span.first, more.last, span.skip, span.rows + more.rows, span.line)
                continue
            if span is not None:
                yield span
            span = more
        if span is not None:
            yield span


class Cut(NamedTuple):
    """Parts of whole runs of equal ids, and how many rows and runs there are.

    ``numbers`` says whether all ids are of a type of whole numbers, ``whole`` whether all could be.
    """

    parts: tuple[Address, ...]
    rows: int
    runs: int
    numbers: bool
    whole: bool


Begun = Iterator[tuple[Outline, NDArray[np.bool_]]]
"""What is seen of rows, and which of them begin a run of equal ids."""


def begun(outlines: Iterable[Outline]) -> Begun:
    """Where runs of equal ids begin."""
    runs = Runs()
    for outline in outlines:
        yield outline, runs.begins(outline.qid)


def cut(found: Begun, limit: int) -> Cut:
    """Parts of whole queries of at most ``limit`` rows.

    A query that goes on in the next unit or file stays in one part. One of more than ``limit`` rows is a part, or
    several, of its own. Of a unit with more than ``limit`` rows the parts are about equally large.

    Notes
    -----
    O(rows). Memory: one address a part, and the labels of the queries that are longer than a part.
    """
    cutter, numbers, whole = _Cutter(limit), True, True
    for outline, begins in found:
        cutter.add(outline, begins)
        numbers = numbers and outline.qid[0] is None
        whole = whole and are_whole(outline.qid, np.flatnonzero(begins))
    return Cut(cutter.finish(), cutter.rows, cutter.queries, numbers, whole)


def together(outlines: Callable[[], Iterable[Outline]], files: tuple[File, ...], qid: str | None) -> Begun:
    """What is there in the order of the data, if the rows of every query lie together.

    Parameters
    ----------
    outlines : callable
        Gives it, and once more if an id seems to come back.
    files : tuple of File
    qid : str or None
        Name of the column, for errors.

    Notes
    -----
    8 bytes a query.
    """
    seen = Seen()
    for outline, begins in begun(outlines()):
        _refuse(seen.add(keys_of(outline.qid, np.flatnonzero(begins))), outlines, files, qid)
        yield outline, begins
    _refuse(seen.repeated(), outlines, files, qid)


def _refuse(
    suspects: NDArray[np.int64], outlines: Callable[[], Iterable[Outline]], files: tuple[File, ...], qid: str | None
) -> None:
    """Refuse an id that comes back, if it really is the same."""
    if not len(suspects):
        return
    known, file, row = dict[str, tuple[str, int]](), -1, 0
    for outline, begins in begun(outlines()):
        if outline.unit.file != file:
            file, row = outline.unit.file, 0
        path, at = files[file].name, np.flatnonzero(begins)
        at = at[np.isin(keys_of(outline.qid, at), suspects)]
        for k, name in zip(at.tolist(), names_of(outline.qid, at), strict=True):
            line = None if outline.lines is None else int(outline.lines[k])
            word, number = ("row", row + k) if line is None else ("line", line)
            if name in known:
                facts: dict[str, Any] = {"row": row + k, "line": line, "column": qid, "file": path}
                raise _scattered(name, word, known[name], number, facts)
            known[name] = (path, number)
        row += len(begins)


def _scattered(name: str, word: str, first: tuple[str, int], again: int, facts: dict[str, Any]) -> InputError:
    path, place = first
    problem = "query {0!r} begins in {1} {2} of {3}, and again, behind others, in {1} {4}"
    problem += "." if path == facts["file"] else " of this file."
    remedy = "Group the rows: rankrls convert DATA FOLDER --rows-per-file N --sort."
    return InputError(problem, name, word, place, path, again, remedy=remedy, **facts)
