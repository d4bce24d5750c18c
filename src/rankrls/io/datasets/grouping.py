"""Rows of queries that lie anywhere, brought together on the disk."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.threads import stream_threads
from rankrls.io._rows import objects
from rankrls.io.datasets.dataset import Dataset, Part
from rankrls.io.datasets.index import Outline
from rankrls.io.datasets.layout import Layout
from rankrls.io.datasets.runs import names_of

__all__ = ["Appearance", "grouped"]

_BUCKET_BYTES = 1 << 26
_MOST_BUCKETS = 256
_HEAD = np.dtype([("query", np.int64), ("y", np.float64)])


class Appearance:
    """The ids in the order in which they appear first, and how many rows each has.

    Attributes
    ----------
    names : dict of str to int
        The place of each id.
    """

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self._sizes = array("q")
        self._last = -1

    def add(self, outline: Outline, begins: NDArray[np.bool_]) -> None:
        """More rows, and which of them begin a run of equal ids."""
        at = np.flatnonzero(begins)
        ends = np.r_[at, len(begins)]
        if ends[0]:
            self._sizes[self._last] += int(ends[0])
        for name, size in zip(names_of(outline.qid, at), np.diff(ends).tolist(), strict=True):
            place = self.names.setdefault(name, len(self.names))
            if place == len(self._sizes):
                self._sizes.append(0)
            self._sizes[place] += size
            self._last = place

    def finish(self) -> None:
        """Nothing is left to do."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each query."""
        return np.array(self._sizes, dtype=np.int64)


def grouped(
    data: Dataset, appearance: Appearance, layout: Layout, folder: Path, limit: int
) -> Iterator[tuple[Any, int]]:
    """The rows of data query by query, as tables of at most ``limit`` rows, and how many rows stay together.

    That is the table's rows, or those of the whole query if it comes in several tables; 0 behind the first of them.

    Queries come in the order in which they appear first, rows of a query in their order. The rows are written to
    files, each with some consecutive queries of that order, and read again file by file.
    """
    sizes = appearance.sizes
    rows = max(_BUCKET_BYTES // (data.n_features * layout.dtype.itemsize + _HEAD.itemsize), limit, 1)
    rows = max(rows, math.ceil(data.n_rows / _MOST_BUCKETS))
    bucket_of = (np.cumsum(sizes) - sizes) // rows
    buckets = _Buckets(folder, layout)
    for part in stream_threads(lambda address: data.read(address, names=True), data.parts):
        assert part.query_names is not None  # they were asked for
        numbers = np.array([appearance.names[name] for name in part.query_names], dtype=np.int64)
        query = numbers[part.query - part.query[0]]
        buckets.add(part, query, bucket_of[query], layout.checked(part.X, part.first_row))
    names = [*appearance.names]
    for bucket in np.unique(bucket_of).tolist():
        yield from buckets.tables(bucket, names, sizes, limit)


class _Buckets:
    """Files of rows: features row by row, query and label, and ids."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        self._folder, self._layout = folder, layout
        self._numbered = False  # ids are whole numbers

    def add(self, part: Part, query: NDArray[np.int64], bucket: NDArray[np.int64], X: NDArray[Any]) -> None:
        """Rows to the ends of their files."""
        head = np.empty(len(query), dtype=_HEAD)
        head["query"], head["y"] = query, part.y
        order = np.argsort(bucket, kind="stable")
        borders = np.flatnonzero(np.diff(bucket[order], prepend=-1))
        for rows in np.split(order, borders[1:]):
            name = str(bucket[rows[0]])
            self._append(name, "X", X[rows].data)
            self._append(name, "head", head[rows].tobytes())
            if self._layout.id is not None:
                assert part.ids is not None  # every row has one
                self._add_ids(name, part.ids[rows])

    def tables(
        self, bucket: int, names: Sequence[str], sizes: NDArray[np.int64], limit: int
    ) -> Iterator[tuple[Any, int]]:
        """The rows of a file, query by query; the file goes."""
        layout, name = self._layout, str(bucket)
        head = np.fromfile(self._path(name, "head"), dtype=_HEAD)
        X = np.memmap(self._path(name, "X"), dtype=layout.dtype, mode="r", shape=(len(head), len(layout.features)))
        ids = None if layout.id is None else self._ids(name, len(head))
        order = np.argsort(head["query"], kind="stable")
        query = head["query"][order]
        starts = np.flatnonzero(np.diff(query, prepend=-1))
        for start, stop in _groups(np.r_[starts, len(query)], limit):
            rows, own = order[start:stop], query[start:stop]
            table = layout.table(
                X[rows],
                head["y"][rows],
                names[own[0] : own[-1] + 1],
                own - own[0],
                None if ids is None else ids[rows],
            )
            first = start == 0 or query[start - 1] != own[0]
            yield table, max(len(rows), int(sizes[own[0]])) if first else 0
        del X
        for kind in ("X", "head", "ids", "lengths"):
            self._path(name, kind).unlink(missing_ok=True)

    def _add_ids(self, name: str, ids: NDArray[Any]) -> None:
        self._numbered = ids.dtype != object
        if self._numbered:
            self._append(name, "ids", ids.tobytes())
            return
        texts = [text.encode() for text in ids.tolist()]
        self._append(name, "ids", b"".join(texts))
        self._append(name, "lengths", np.array([*map(len, texts)], dtype=np.int64).tobytes())

    def _ids(self, name: str, rows: int) -> NDArray[Any]:
        if self._numbered:
            return np.fromfile(self._path(name, "ids"), dtype=np.int64)
        ends = np.cumsum(np.fromfile(self._path(name, "lengths"), dtype=np.int64)).tolist()
        data = self._path(name, "ids").read_bytes()
        return objects(data[start:end].decode() for start, end in zip([0, *ends], ends, strict=False))

    def _append(self, name: str, kind: str, data: Any) -> None:
        with open(self._path(name, kind), "ab") as file:  # opened anew, since there may be more than may be open
            file.write(data)

    def _path(self, name: str, kind: str) -> Path:
        return self._folder / f"bucket-{name}.{kind}"


def _groups(borders: NDArray[np.intp], limit: int) -> Iterator[tuple[int, int]]:
    """Stretches of whole queries of at most so many rows; of a longer query the pieces."""
    start = int(borders[0])
    for low, high in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        if high - start <= limit:
            continue
        if low > start:
            yield start, low
        pieces = math.ceil((high - low) / limit)
        cuts = [low + (high - low) * k // pieces for k in range(pieces + 1)]
        if pieces > 1:
            yield from zip(cuts[:-1], cuts[1:], strict=True)
        start = low if pieces == 1 else high
    if start < borders[-1]:
        yield start, int(borders[-1])
