"""Data of any size as Parquet files whose row groups hold whole queries."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import check_count
from rankrls._errors import InputError
from rankrls.io._atomic import new_folder
from rankrls.io._letor import letor_shape, letor_tables
from rankrls.io._rows import Ids, is_whole, objects
from rankrls.io.datasets.dataset import SORTED_FIRST
from rankrls.io.datasets.files import Paths, expanded_paths, one_format
from rankrls.io.tables.arrays import converted, feature_type
from rankrls.io.tables.columns import ColumnRoles, TableError, plan_columns
from rankrls.io.tables.opened import open_table
from rankrls.io.tables.writing import check_names

_GROUP_BYTES = 1 << 26
_MOST_COLUMNS = 20_000
_FEW, _SAMPLE = 256, 4096  # different values in a sample of a column, up to which it is written as codes
_OURS = re.compile(r"part-[0-9]{5}\.parquet")


def write_shards(
    path: Paths,
    folder: str | os.PathLike[str],
    *,
    rows_per_file: int = 1_000_000,
    float32: bool = False,
    force: bool = False,
    label: str | None = None,
    qid: str | None = None,
    id: str | None = None,
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
    feature_names: Sequence[str] | None = None,
    format: Literal["auto", "letor", "csv", "parquet", "arrow"] = "auto",
) -> dict[str, int]:
    r"""Write data of any format and size as Parquet files that :func:`open_dataset` reads a part at a time.

    Each row group holds whole queries, so that a part of it can be read and used by itself. The rows of a query lie
    together already: sort them first where they do not.

    Parameters
    ----------
    path : path or sequence of paths
        LETOR text, CSV or TSV, plain or gzip, Parquet or Arrow: a file, several, a pattern, or a folder. All have one
        format and the same columns.
    folder : path
        Made if it does not exist. The files in it are called ``part-00000.parquet`` and so on.
    rows_per_file : int, default=1,000,000
        Rows of a file, at most, unless one query has more.
    float32 : bool, default=False
        Write features as float32, rounded.
    force : bool, default=False
        Whether a folder that was written by this function before may be replaced.
    label, qid, id, features, ignore
        As for :func:`open_dataset`; ``features`` of LETOR text is how many there are. Every other column has to hold
        numbers, and is written.
    feature_names : sequence of str, optional
        Names to write; by default those of the files, of LETOR text f1, f2, ...
    format : {"auto", "letor", "csv", "parquet", "arrow"}, default="auto"

    Returns
    -------
    dict
        How many ``files``, ``rows`` and ``queries`` were written, and of how many ``features``.

    Raises
    ------
    InputError
        For a value that is missing or no number, query ids that come back behind others, a folder that is not empty
        (see ``force``) or is read, and for more than 20,000 features. Nothing is left behind.
    OSError
        If a file cannot be read or written, the disk being full for one. The folder keeps its old content.

    Notes
    -----
    O(cells), in one pass; of LETOR text the features are counted in a first one. Memory: a few row groups, and some 60
    bytes a query. A query is held as a whole.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankrls.io import open_dataset, write_shards
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text, shards = os.path.join(folder, "a.txt"), os.path.join(folder, "shards")
    ...     with open(text, "w") as file:
    ...         _ = file.write("2 qid:7 1:0.5 2:1\n0 qid:7 1:2 2:4\n1 qid:8 1:0.25 2:3\n")
    ...     print(write_shards(text, shards, rows_per_file=2))
    ...     data = open_dataset(shards)
    ...     print([part.X.tolist() for part in data])
    {'files': 2, 'rows': 3, 'queries': 2, 'features': 2}
    [[[0.5, 1.0], [2.0, 4.0]], [[0.25, 3.0]]]
    """
    roles = ColumnRoles.checked(label, qid, id, features, ignore, "optional")
    check_count("rows_per_file", rows_per_file)
    files = expanded_paths(path)
    for file in files:
        if Path(os.path.realpath(folder)) in Path(os.path.realpath(file)).parents:
            message = f"the folder would be replaced, and {file} is read from it. Name another folder."
            raise InputError(message, file=str(folder), parameter="folder")
    kind = one_format(files) if format == "auto" else format
    source = (_letor_source if kind == "letor" else _table_source)(files, kind, roles)
    columns = source.columns
    names = columns.features if feature_names is None else [*map(str, feature_names)]
    if len(names) != len(columns.features):
        message = f"feature_names has {len(names)} names, but the data have {len(columns.features)} features."
        raise InputError(message, parameter="feature_names")
    if len(names) > _MOST_COLUMNS:
        message = f"{len(names)} features are more columns than Parquet is good for. Fit the text itself in memory."
        raise InputError(message, file=files[0], parameter="features")
    columns = replace(columns, features=names, dtype=np.dtype(np.float32) if float32 else columns.dtype)
    with new_folder(Path(folder), _OURS, force=force) as new:
        while True:  # text is read again if an id is found to be no whole number, as all before were
            try:
                with _Writer(new, columns, int(rows_per_file)) as writer:
                    for block in source.blocks():
                        writer.add(block)
                break
            except _NotWholeError as error:
                columns = replace(columns, whole=columns.whole - {error.role})
    return {"files": writer.files, "rows": writer.rows, "queries": len(writer.seen), "features": len(names)}


@dataclass(frozen=True, eq=False)
class _Block:
    """Some rows; ids are int64 or texts."""

    X: Any
    y: NDArray[np.float64] | None
    qid: NDArray[Any]
    ids: NDArray[Any] | None
    file: str

    def among(self, rows: slice) -> _Block:
        y, ids = (None if values is None else values[rows] for values in (self.y, self.ids))
        return _Block(self.X[rows], y, self.qid[rows], ids, self.file)


class _NotWholeError(Exception):
    """An id that is no whole number, where all before were."""

    def __init__(self, role: str) -> None:
        super().__init__(role)
        self.role = role


@dataclass(frozen=True)
class _Columns:
    """The columns of the files; ``whole`` are the ids that are whole numbers, "qid" and "id"."""

    features: list[str]
    label: str | None
    qid: str
    id: str | None
    dtype: np.dtype[Any]
    whole: frozenset[str]

    @property
    def names(self) -> list[str]:
        """All columns, in their order."""
        return [*(name for name in (self.label, self.qid, self.id) if name is not None), *self.features]

    def table(self, block: _Block, first_row: int) -> Any:
        """Rows as a table of pyarrow."""
        import pyarrow as pa

        columns = [] if self.label is None else [pa.array(block.y, from_pandas=True)]
        columns.append(self._ids("qid", block.qid))
        if self.id is not None:
            assert block.ids is not None
            columns.append(self._ids("id", block.ids))
        X = block.X if isinstance(block.X, np.ndarray) else block.X.toarray()
        with np.errstate(over="ignore"):
            by_column = np.ascontiguousarray(X.T, dtype=self.dtype)
        if not np.isfinite(by_column).all():
            k, row = (int(v) for v in np.argwhere(~np.isfinite(by_column))[0])
            name, at = self.features[k], first_row + row
            message = f"the value {X[row, k]} of column {name!r} is too large for float32."
            raise InputError(message, file=block.file, row=at, column=name, parameter="float32")
        return pa.table([*columns, *map(pa.array, by_column)], names=self.names)

    def _ids(self, role: str, values: NDArray[Any]) -> Any:
        import pyarrow as pa

        if role not in self.whole:
            return pa.array([str(value) for value in values.tolist()], pa.string())
        if values.dtype == object:
            if not all(map(is_whole, {*values.tolist()})):
                raise _NotWholeError(role)
            values = np.array([int(value) for value in values.tolist()], dtype=np.int64)
        return pa.array(values)


class _Source(NamedTuple):
    """What is written, and its rows from the first on, each time."""

    columns: _Columns
    blocks: Callable[[], Iterator[_Block]]


def _table_source(files: Sequence[str], format: str, roles: ColumnRoles) -> _Source:
    """Files of tables with the same columns."""
    with open_table(files[0], format, TableError) as table:
        plan = plan_columns(table, roles)
        if "qid" not in plan.texts:
            message = "there is no column of query ids: name it (qid). One ranking of all rows needs one too."
            raise table.refuse(message, parameter="qid")
        dtype = feature_type(table, plan)
        whole = frozenset(role for role, name in plan.texts.items() if table.textual or "int" in str(table.types[name]))
    label = plan.labels[0] if plan.labels else None
    columns = _Columns([*plan.features], label, plan.texts["qid"], plan.texts.get("id"), dtype, whole)

    def blocks() -> Iterator[_Block]:
        for file in files:
            with open_table(file, format, TableError) as table:
                for rows in converted(table, plan, dtype):
                    ids = {role: Ids() for role in rows.texts}
                    for role, held in ids.items():
                        held.append(*rows.texts[role])
                    found = {role: held.finish(numbers=False) for role, held in ids.items()}
                    yield _Block(rows.X, rows.y, found["qid"], found.get("id"), file)

    return _Source(columns, blocks)


def _letor_source(files: Sequence[str], format: str, roles: ColumnRoles) -> _Source:
    """Files of LETOR text, whose features are counted first."""
    shapes = [letor_shape(file) for file in files]
    n_features = roles.count(files[0]) or max(columns for _, columns, _, _ in shapes)
    zero_based, dense = any(shape[2] for shape in shapes), all(shape[3] for shape in shapes)

    def tables() -> Iterator[Any]:
        for file in files:
            yield from letor_tables(file, n_features=n_features, zero_based=zero_based, dense=dense)

    id = None if next(tables()).docids is None else "docid"
    names = [f"f{k}" for k in range(1, n_features + 1)]
    columns = _Columns(names, "label", "qid", id, np.dtype(np.float64), frozenset(("qid", "id")))

    def blocks() -> Iterator[_Block]:
        for table in tables():
            if table.qid is None:
                raise InputError("no line has a qid: every line needs qid:ID.", file=table.path, parameter="qid")
            ids = None if id is None else table.docids
            if id is not None and ids is None:
                message = "some comments name a docid ('docid = NAME') and others do not."
                raise InputError(message, file=table.path, parameter="id")
            yield _Block(table.X, table.y, table.qid, ids, table.path)

    return _Source(columns, blocks)


class _Writer:
    """Row groups of whole queries, in files of at most so many rows unless a query has more."""

    def __init__(self, folder: Path, columns: _Columns, rows_per_file: int) -> None:
        check_names(columns.names)
        self.files = self.rows = 0
        self.seen: set[int] = set()
        self._folder, self._columns, self._most = folder, columns, rows_per_file
        self._group = min(max(_GROUP_BYTES // (8 * max(len(columns.features), 1)), 1), rows_per_file)
        self._waiting: list[_Block] = []
        self._open = ExitStack()
        self._writer: Any = None
        self._in_file = 0
        self._last: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        with self._open:
            if raised[0] is None:
                self._write(whole=True)

    def add(self, block: _Block) -> None:
        """More rows."""
        begins = np.concatenate(([str(block.qid[0]) != self._last], block.qid[1:] != block.qid[:-1]))
        for row in np.flatnonzero(begins).tolist():
            key = hash(str(block.qid[row]))
            if key in self.seen:
                message = f"query {block.qid[row]!r} comes back behind other queries. {SORTED_FIRST}"
                at = self.rows + sum(len(held.qid) for held in self._waiting) + row
                raise InputError(message, file=block.file, row=at, column=self._columns.qid, parameter="qid")
            self.seen.add(key)
        self._last = str(block.qid[-1])
        self._waiting.append(block)
        if sum(len(held.qid) for held in self._waiting) > self._group:
            self._write(whole=False)

    def _write(self, *, whole: bool) -> None:
        """The rows that wait as row groups, but for the last query, which may go on, unless all are there."""
        if not self._waiting:
            return
        block = _joined(self._waiting)
        ends = np.flatnonzero(block.qid[1:] != block.qid[:-1]) + 1
        ends = np.append(ends, len(block.qid)) if whole else ends
        start = 0
        while len(ends) and start < ends[-1]:
            fits = ends[(ends > start) & (ends <= start + self._group)]
            stop = int(fits[-1] if len(fits) else ends[np.argmax(ends > start)])
            self._write_group(block.among(slice(start, stop)))
            start = stop
        self._waiting = [] if whole else [block.among(slice(start, None))]

    def _write_group(self, block: _Block) -> None:
        from pyarrow import parquet

        table = self._columns.table(block, self.rows)
        if self._writer is None or self._in_file + table.num_rows > self._most:
            self._open.close()
            sample = table.slice(0, _SAMPLE)
            features = set(self._columns.features)
            codes = [n for n in self._columns.names if n not in features or len(sample.column(n).unique()) <= _FEW]
            path = self._folder / f"part-{self.files:05d}.parquet"
            how: dict[str, Any] = {"use_dictionary": codes, "write_statistics": False}
            self._writer = self._open.enter_context(parquet.ParquetWriter(path, table.schema, **how))
            self.files, self._in_file = self.files + 1, 0
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._in_file += table.num_rows
        self.rows += table.num_rows


def _joined(blocks: Sequence[_Block]) -> _Block:
    if len(blocks) == 1:
        return blocks[0]
    from scipy import sparse

    dense = all(isinstance(block.X, np.ndarray) for block in blocks)
    X = np.concatenate([b.X for b in blocks]) if dense else sparse.vstack([b.X for b in blocks], format="csr")
    y = None if blocks[0].y is None else np.concatenate([b.y for b in blocks])
    ids = None if blocks[0].ids is None else _all_ids([b.ids for b in blocks])
    return _Block(X, y, _all_ids([b.qid for b in blocks]), ids, blocks[0].file)


def _all_ids(parts: Sequence[Any]) -> NDArray[Any]:
    if len({ids.dtype for ids in parts}) > 1:  # whole numbers, and texts
        return objects(str(value) for ids in parts for value in ids.tolist())
    return np.concatenate(parts)
