"""One pass over query ids, labels and weights: where queries begin, and how the rows are cut into parts."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io._rows import IdBlock
from rankrls.io.datasets.dataset import Address, Piece, Span
from rankrls.io.datasets.files import File
from rankrls.io.datasets.runs import Runs, Seen, are_whole, keys_of, names_of

__all__ = ["Cut", "Levels", "Outline", "Together", "Watch", "cut"]

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
        self._limit = limit
        self._units: deque[_Begun] = deque()  # from the open part on
        self._row = self._part = self._part_query = 0
        self._open = -1  # where the query begins whose end has not come; its unit and what its labels are
        self._open_unit = (0, 0)
        self._open_query = -1
        self._levels = Levels()
        self._before = (0, 0)  # start of the query before, and of its unit

    @property
    def queries(self) -> int:
        """How many have begun."""
        return self._open_query + 1

    @property
    def rows(self) -> int:
        """How many there were."""
        return self._row

    def add(self, outline: Outline, begins: NDArray[np.bool_]) -> None:
        """More rows, and which of them begin a query."""
        unit, y, weight = outline.unit, outline.y, outline.weight
        at = np.flatnonzero(begins)
        starts = at + self._row
        if not self._units or self._units[-1].unit is not unit:
            self._units.append(_Begun.of(outline, self._row, at))
        start_of_unit = self._units[-1].row
        first = int(at[0]) if len(at) else len(begins)
        if self._open >= 0:
            self._levels.add(y, weight, slice(0, first))
        if len(at):
            inner = len(at) - 1  # queries that begin and end in these rows
            if self._open >= 0:
                self._complete(
                    np.array([self._open]), starts[:1], self._open_unit, self._open_query, lambda _: self._levels
                )
            self._open_query += 1
            whole = lambda k: Levels().add(y, weight, slice(int(at[k]), int(at[k + 1])))
            self._complete(starts[:-1], starts[1:], (start_of_unit, unit.rows), self._open_query, whole)
            self._open_query += inner
            self._open, self._open_unit = int(starts[-1]), (start_of_unit, unit.rows)
            self._levels = Levels().add(y, weight, slice(int(at[-1]), None))
        self._row += len(begins)

    def finish(self) -> tuple[Address, ...]:
        """All parts, after the last rows."""
        if self._open >= 0:
            last = np.array([self._open]), np.array([self._row])
            self._complete(*last, self._open_unit, self._open_query, lambda _: self._levels)
            self._close(self._row, self._open_query + 1)
        return tuple(self.parts)

    def _complete(
        self,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        unit: tuple[int, int],
        query: int,
        levels: Callable[[int], Levels],
    ) -> None:
        """Queries whose ends are known, all of which begin in one unit; the first has the number ``query``."""
        if not len(starts):
            return
        limit, (begin, rows) = self._limit, unit
        before = np.r_[self._before[0], starts[:-1]]
        at_border = np.zeros(len(starts), dtype=bool)
        at_border[0] = begin != self._before[1]
        crosses = np.zeros(len(starts), dtype=bool)
        if rows > limit:  # shares of equal size, a little below the limit
            share = math.ceil(rows / math.ceil(_SLACK * rows / limit))
            crosses = (starts - begin) // share > np.maximum(before - begin, 0) // share
        long = ends - starts > limit
        done = 0
        while done < len(starts):
            rest = slice(done, None)
            full = (
                (ends[rest] - self._part > limit)
                | crosses[rest]
                | (at_border[rest] & (begin + rows - self._part > limit))
            )
            stop = long[rest] | (full & (starts[rest] > self._part))
            k = int(np.argmax(stop))
            if not stop[k]:
                break
            k += done
            self._close(int(starts[k]), query + k)
            if long[k]:
                self._pieces(int(starts[k]), int(ends[k]), query + k, levels(k))
            done = k + 1
        self._before = (int(starts[-1]), begin)

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


class Watch(Protocol):
    """What is told of the ids of all rows while they are cut into parts."""

    def add(self, outline: Outline, begins: NDArray[np.bool_]) -> None:
        """More rows, and which of them begin a run of equal ids."""
        ...

    def finish(self) -> None:
        """All rows have been told."""
        ...


class Cut(NamedTuple):
    """Parts of whole runs of equal ids, and how many rows and runs there are.

    ``numbers`` says whether all ids are of a type of whole numbers, ``whole`` whether all could be.
    """

    parts: tuple[Address, ...]
    rows: int
    runs: int
    numbers: bool
    whole: bool


def cut(outlines: Iterable[Outline], limit: int, watch: Watch) -> Cut:
    """Parts of whole queries of at most ``limit`` rows.

    A query that goes on in the next unit or file stays in one part. One of more than ``limit`` rows is a part, or
    several, of its own. Of a unit with more than ``limit`` rows the parts are about equally large.

    Notes
    -----
    O(rows). Memory: one address a part, the labels of the queries that are longer than a part, and what the watch
    keeps.
    """
    cutter, runs, numbers, whole = _Cutter(limit), Runs(), True, True
    for outline in outlines:
        begins = runs.begins(outline.qid)
        cutter.add(outline, begins)
        watch.add(outline, begins)
        numbers = numbers and outline.qid[0] is None
        whole = whole and are_whole(outline.qid, np.flatnonzero(begins))
    watch.finish()
    return Cut(cutter.finish(), cutter.rows, cutter.queries, numbers, whole)


class Together:
    """Sees to it that the rows of every query lie together.

    Parameters
    ----------
    outlines : callable
        Gives what there is in the order of the data once more, if an id seems to come back.
    files : tuple of File
    qid : str or None
        Name of the column, for errors.

    Notes
    -----
    8 bytes a query.
    """

    def __init__(self, outlines: Callable[[], Iterable[Outline]], files: tuple[File, ...], qid: str | None) -> None:
        self._outlines, self._files, self._qid = outlines, files, qid
        self._seen = Seen()

    def add(self, outline: Outline, begins: NDArray[np.bool_]) -> None:
        """More rows; refuse an id that comes back."""
        self._refuse(self._seen.add(keys_of(outline.qid, np.flatnonzero(begins))))

    def finish(self) -> None:
        """Refuse an id that came back."""
        self._refuse(self._seen.repeated())

    def _refuse(self, suspects: NDArray[np.int64]) -> None:
        """Refuse an id that comes back, if it really is the same."""
        if not len(suspects):
            return
        runs, known, file, row = Runs(), dict[str, tuple[str, int]](), -1, 0
        for outline in self._outlines():
            if outline.unit.file != file:
                file, row = outline.unit.file, 0
            path = self._files[file].name
            at = np.flatnonzero(runs.begins(outline.qid))
            at = at[np.isin(keys_of(outline.qid, at), suspects)]
            for k, name in zip(at.tolist(), names_of(outline.qid, at), strict=True):
                word, number = ("row", row + k) if outline.lines is None else ("line", int(outline.lines[k]))
                if name in known:
                    line = None if outline.lines is None else number
                    facts: dict[str, Any] = {"row": row + k, "line": line, "column": self._qid, "file": path}
                    raise _scattered(name, word, known[name], number, facts)
                known[name] = (path, number)
            row += len(outline.qid[1])


def _scattered(name: str, word: str, first: tuple[str, int], again: int, facts: dict[str, Any]) -> InputError:
    path, place = first
    problem = "query {0!r} begins in {1} {2} of {3}, and again, behind others, in {1} {4}"
    problem += "." if path == facts["file"] else " of this file."
    remedy = "Group the rows: rankrls convert DATA FOLDER --rows-per-file N --sort."
    return InputError(problem, name, word, place, path, again, remedy=remedy, **facts)
