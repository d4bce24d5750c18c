"""One pass over query ids, labels and weights: where queries begin, and how the rows are cut into parts."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io.datasets.dataset import Address, Piece, Span
from rankrls.io.datasets.files import File
from rankrls.io.datasets.runs import IdBlock, Runs, Seen, keys_of, names_of

__all__ = ["Outline", "Unit", "cut"]

_SLACK = 1.1
"""So much smaller than the limit are the parts of a row group that is larger than it: queries end where they end."""


class Unit(NamedTuple):
    """Rows that are read together: row groups of a Parquet file, or some lines of text.

    ``first`` and ``last`` are numbers of row groups or of bytes; ``line`` is that of the first line of text.
    """

    file: int
    first: int
    last: int
    rows: int
    line: int = 1


class Outline(NamedTuple):
    """What the index looks at, of some consecutive rows of one unit."""

    unit: Unit
    qid: IdBlock
    y: NDArray[np.float64] | None
    weight: NDArray[np.float64] | None
    lines: NDArray[np.int64] | None = None


class _Levels:
    """The different labels of rows, how many rows have each, and their weights; rows may come one block at a time."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]] = []
        self._size = self._merged = 0

    def add(self, y: NDArray[np.float64] | None, weight: NDArray[np.float64] | None, rows: slice) -> _Levels:
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
        self._units: deque[tuple[int, Unit]] = deque()  # with the row where each begins, from the open part on
        self._row = self._part = self._part_query = 0
        self._open = -1  # where the query begins whose end has not come; its unit and what its labels are
        self._open_unit = (0, 0)
        self._open_query = -1
        self._levels = _Levels()
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
        if not self._units or self._units[-1][1] is not unit:
            self._units.append((self._row, unit))
        start_of_unit = self._units[-1][0]
        at = np.flatnonzero(begins)
        starts = at + self._row
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
            whole = lambda k: _Levels().add(y, weight, slice(int(at[k]), int(at[k + 1])))
            self._complete(starts[:-1], starts[1:], (start_of_unit, unit.rows), self._open_query, whole)
            self._open_query += inner
            self._open, self._open_unit = int(starts[-1]), (start_of_unit, unit.rows)
            self._levels = _Levels().add(y, weight, slice(int(at[-1]), None))
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
        levels: Callable[[int], _Levels],
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

    def _pieces(self, start: int, end: int, query: int, levels: _Levels) -> None:
        borders = [*self._borders(start, end)]
        labels, counts, weights = levels.merged()
        for k, border in enumerate(borders):
            piece = Piece(query, labels, counts, weights, k, len(borders), self._part - start)
            self._emit(border, query, 1, piece)
        self._part_query = query + 1

    def _borders(self, start: int, end: int) -> Iterator[int]:
        """Where pieces of a query end: with a unit if that is possible."""
        last = start
        for begin, unit in self._units:
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
        while self._units and self._units[0][0] + self._units[0][1].rows <= start:
            self._units.popleft()
        span: Span | None = None
        for begin, unit in self._units:
            low, high = max(begin, start), min(begin + unit.rows, end)
            if high <= low:
                continue
            if span is not None and (span.file, span.last) == (unit.file, unit.first):
                span = Span(span.file, span.first, unit.last, span.skip, span.rows + high - low, span.line)
                continue
            if span is not None:
                yield span
            span = Span(unit.file, unit.first, unit.last, low - begin, high - low, unit.line)
        if span is not None:
            yield span


def cut(
    outlines: Callable[[], Iterable[Outline]], files: tuple[File, ...], limit: int, qid: str | None
) -> tuple[tuple[Address, ...], int, int]:
    """Parts of whole queries of at most ``limit`` rows, the number of rows, and that of queries.

    A query that goes on in the next unit or file stays in one part. One of more than ``limit`` rows is a part, or
    several, of its own. Of a unit with more than ``limit`` rows the parts are about equally large.

    Parameters
    ----------
    outlines : callable
        Gives what there is in the order of the data; called again if an id seems to come back.
    files : tuple of File
    limit : int
    qid : str or None
        Name of the column, for errors.

    Raises
    ------
    InputError
        For an id that comes back after another one, with both places.

    Notes
    -----
    O(rows). Memory: 8 bytes a query, one address a part, and the labels of the queries that are longer than a part.
    """
    cutter, runs, seen = _Cutter(limit), Runs(), Seen()
    for outline in outlines():
        begins = runs.begins(outline.qid)
        cutter.add(outline, begins)
        suspects = seen.add(keys_of(outline.qid, np.flatnonzero(begins)))
        if len(suspects):
            _refuse_scattered(outlines(), files, suspects, qid)
    suspects = seen.repeated()
    if len(suspects):
        _refuse_scattered(outlines(), files, suspects, qid)
    return cutter.finish(), cutter.rows, cutter.queries


def _refuse_scattered(
    outlines: Iterable[Outline], files: tuple[File, ...], suspects: NDArray[np.int64], qid: str | None
) -> None:
    """Refuse an id that comes back, if it really is the same."""
    runs, known, file, row = Runs(), dict[str, tuple[str, int]](), -1, 0
    for outline in outlines:
        if outline.unit.file != file:
            file, row = outline.unit.file, 0
        at = np.flatnonzero(runs.begins(outline.qid))
        at = at[np.isin(keys_of(outline.qid, at), suspects)]
        for k, name in zip(at.tolist(), names_of(outline.qid, at), strict=True):
            path = files[file].path
            word, number = ("row", row + k) if outline.lines is None else ("line", int(outline.lines[k]))
            if name in known:
                first, place = known[name]
                problem = "query {0!r} begins in {1} {2} of {3}, and again, behind others, in {1} {4}"
                problem += " of this file." if first != path else "."
                remedy = "Group the rows: rankrls convert DATA FOLDER --rows-per-file N --sort."
                line = None if outline.lines is None else number
                facts: dict[str, Any] = {"row": row + k, "line": line, "column": qid, "file": path}
                raise InputError(problem, name, word, place, first, number, remedy=remedy, **facts)
            known[name] = (path, number)
        row += len(outline.qid[1])
