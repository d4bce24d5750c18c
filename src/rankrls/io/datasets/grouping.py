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
from rankrls.io._rows import Growing
from rankrls.io.datasets.dataset import Dataset, Part, Span
from rankrls.io.datasets.index import Begun, Outline, begun, cut
from rankrls.io.datasets.layout import Layout
from rankrls.io.datasets.runs import names_of, run_sizes

_BUCKET_BYTES = 1 << 26
_MOST_BUCKETS = 256


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

    def noted(self, found: Begun) -> Begun:
        """What is handed on."""
        for outline, begins in found:
            rest, sizes = run_sizes(begins)
            if rest:
                self._sizes[self._last] += rest
            for name, size in zip(names_of(outline.qid, np.flatnonzero(begins)), sizes, strict=True):
                self._last = self.names.setdefault(name, len(self.names))
                if self._last == len(self._sizes):
                    self._sizes.append(0)
                self._sizes[self._last] += size
            yield outline, begins

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
    rows = max(_BUCKET_BYTES // (data.n_features * layout.dtype.itemsize + 16), limit, 1)
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
    """Files of rows, each of them some Arrow streams behind one another."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        self._folder, self._layout = folder, layout

    def add(self, part: Part, query: NDArray[np.int64], bucket: NDArray[np.int64], X: NDArray[Any]) -> None:
        """Rows to the ends of their files."""
        import pyarrow as pa

        order = np.argsort(bucket, kind="stable")
        borders = np.flatnonzero(np.diff(bucket[order], prepend=-1))
        for rows in np.split(order, borders[1:]):
            columns = {"query": query[rows], "y": part.y[rows]}
            columns["X"] = pa.FixedSizeListArray.from_arrays(pa.array(X[rows].ravel()), X.shape[1])
            if self._layout.id is not None:
                assert part.ids is not None  # every row has one
                columns["id"] = pa.array(part.ids[rows], pa.large_string() if part.ids.dtype == object else None)
            batch = pa.record_batch(columns)
            path = self._path(bucket[rows[0]])  # opened anew, since there may be more than may be open
            with open(path, "ab") as file, pa.ipc.new_stream(file, batch.schema) as stream:
                stream.write(batch)

    def tables(
        self, bucket: int, names: Sequence[str], sizes: NDArray[np.int64], limit: int
    ) -> Iterator[tuple[Any, int]]:
        """The rows of a file, query by query; the file goes."""
        X, all_queries, y, ids = self._read(bucket)
        order = np.argsort(all_queries, kind="stable")
        query = all_queries[order]
        seen = Outline(Span(0, 0, 1, 0, len(query), 1), (None, query), None, None)
        for part in cut(begun([seen]), limit).parts:
            start, stop = part.first_row, part.first_row + part.rows
            rows, own = order[start:stop], query[start:stop]
            table = self._layout.table(
                X[rows],
                y[rows],
                names[own[0] : own[-1] + 1],
                own - own[0],
                None if ids is None else ids[rows],
            )
            first = start == 0 or query[start - 1] != own[0]
            yield table, max(len(rows), int(sizes[own[0]])) if first else 0

    def _read(self, bucket: int) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.float64], NDArray[Any] | None]:
        import pyarrow as pa

        path, layout, n = self._path(bucket), self._layout, len(self._layout.features)
        X, query, y = Growing((n,), layout.dtype), Growing((), np.int64), Growing((), np.float64)
        ids: list[NDArray[Any]] = []
        with pa.OSFile(str(path)) as file:
            while file.tell() < file.size():
                (batch,) = pa.ipc.open_stream(file).read_all().to_batches()
                X.append(batch.column("X").flatten().to_numpy().reshape(-1, n))
                query.append(batch.column("query").to_numpy())
                y.append(batch.column("y").to_numpy())
                if layout.id is not None:
                    ids.append(batch.column("id").to_numpy(zero_copy_only=False))
        path.unlink()
        return X.finish(), query.finish(), y.finish(), np.concatenate(ids) if ids else None

    def _path(self, bucket: int) -> Path:
        return self._folder / f"bucket-{bucket}.arrows"
