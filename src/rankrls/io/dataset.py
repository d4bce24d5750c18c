"""Parquet files that are read in parts of a few row groups, and files of whole queries written for this."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from zlib import crc32

import numpy as np

from rankrls._checks import check_count
from rankrls._errors import InputError
from rankrls._typing import AnyArray, Index, Names, PathLike, Values
from rankrls.io.columns import ColumnRoles, Reader, check_names
from rankrls.io.files import Paths, check_outside, expanded_paths, new_folder, path_list
from rankrls.io.formats import format_of, parquet_writer
from rankrls.io.reading import open_rows, open_table
from rankrls.io.rows import Rows, Schema

_PART_BYTES = 1 << 26
_GROUP_BYTES = 1 << 26
_SORTED_BYTES = 1 << 25
_MOST_BUCKETS = 256  # number of files that are open together
_MOST_COLUMNS = 20_000
_OURS = re.compile(r"part-[0-9]{5}\.parquet")


@dataclass(frozen=True)
class Part(ABC):
    """Rows of a dataset that are read when needed, usually whole queries.

    Attributes
    ----------
    first_row : int
        Number of rows of the dataset before these.
    n_rows : int
        Number of rows.
    """

    first_row: int
    n_rows: int

    @abstractmethod
    def read(self) -> Rows:
        """Read the rows, those of each query together."""


@dataclass(frozen=True)
class RowGroups(Part):
    """Consecutive row groups of one file. Small, and can be pickled.

    Attributes
    ----------
    first_row, n_rows
        As for :class:`Part`.
    path : str
    time : int
        Time of the file's last modification, in nanoseconds.
    groups : range
        Numbers of the row groups.
    n_queries : int
        Number of queries.
    schema : Schema
        Columns to read; X is float32 if all feature columns are, in all files, else float64.
    """

    path: str
    time: int
    groups: range
    n_queries: int
    schema: Schema

    def read(self) -> Rows:
        """Read the rows.

        Returns
        -------
        Rows
            ``X``, ``y``, ``qid``, ``ids`` and ``sample_weight`` of the rows, in file order.

        Raises
        ------
        InputError
            If a file has changed since it was opened, or contains values that a learner cannot use.
        OSError
            If the file cannot be read.
        """
        with open_table(self.path, "parquet") as table:
            if os.stat(self.path).st_mtime_ns != self.time:
                raise table.refuse("the file has changed since it was opened. Open the dataset again.")
            rows = table.read(self.schema, self.groups)
        return rows if rows.y is not None else replace(rows, y=np.full(self.n_rows, np.nan))


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows that are read when needed, such as those of Parquet files; returned by :func:`open_dataset`.

    Parts of Parquet files are small and can be pickled: another process reads them from the same paths.

    Attributes
    ----------
    parts : tuple of Part
        Parts in data order; each contains whole queries.
    path : str
        Path that was opened, as given.
    n_features : int
        Number of columns of X.
    feature_names : tuple of str, or None
        Names of the features.
    n_queries : int
        Number of queries in all parts; 0 if parts do not contain whole queries.
    """

    parts: tuple[Part, ...]
    path: str
    n_features: int
    feature_names: tuple[str, ...] | None
    n_queries: int

    @property
    def n_rows(self) -> int:
        """Number of rows in all parts."""
        return sum(part.n_rows for part in self.parts)

    def summary(self) -> Values:
        """Source and sizes, as in :meth:`Rows.summary`; labels are not counted."""
        sizes = {"rows": self.n_rows, "queries": self.n_queries, "features": self.n_features}
        return {"path": self.path, **sizes, "sparse": False, "labels": {}, "parts": len(self.parts)}

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Rows]:
        return (part.read() for part in self.parts)

    def __repr__(self) -> str:
        sizes = f"{self.n_rows} rows, {self.n_features} features, {self.n_queries} queries, {len(self.parts)} parts"
        return f"<Dataset: {sizes}>"


def open_dataset(
    path: Paths,
    *,
    label: str | None = None,
    qid: str | None = None,
    id: str | None = None,
    features: Names | None = None,
    ignore: Names = (),
    weight: str | None = None,
    labels: Literal["required", "optional", "ignored"] = "required",
    rows_per_part: int | None = None,
    whole_queries: bool = True,
) -> Dataset:
    r"""Open Parquet files for streaming.

    The files form one dataset, in the given order. The rows of a query must be adjacent and in one file. A part is as
    many row groups as fit, and ends at the end of a query. Files of ``rankrls convert`` and :func:`write_shards`
    contain whole queries in each row group.

    Parameters
    ----------
    path : path or sequence of paths
        A file, several files, a pattern such as ``"shards/*.parquet"``, or a folder that contains them. Files of a
        pattern or a folder are read in the order of their names, ``part-2`` before ``part-10``. All must have the same
        columns. Folders called ``column=value`` directly above a file, as Hive and Spark write partitions, are columns
        too.
    label, qid, id : str, optional
        Names of columns. By default "label", "qid" and "docid", if they exist; the column of query ids is required.
    features : sequence of str, optional
        Names or patterns of the feature columns, as for :func:`load_table`; by default all others. Columns contain
        numbers, or lists of numbers of equal length.
    ignore : sequence of str, default=()
        Names or patterns of columns that are not features.
    weight : str, optional
        Name of a column of finite, nonnegative weights.
    labels : {"required", "optional", "ignored"}, default="required"
        Whether every row needs a label, as for :func:`load_table`; missing labels are NaN.
    rows_per_part : int, optional
        Maximum number of rows of a part, as far as row groups and queries allow it. By default, as many as make 64 MiB
        of features in double precision.
    whole_queries : bool, default=True
        Whether parts contain whole queries. With False, the rows of a query may be anywhere, or have no query ids;
        parts are then suitable only for predictions of models that score rows independently.

    Returns
    -------
    Dataset
        ``n_rows``, ``n_queries``, ``feature_names`` and so on; iterate over it, or read one of its ``parts``.

    Raises
    ------
    InputError
        If files are not Parquet or have other columns; or if query ids are not adjacent, naming both places. Labels and
        features are checked when a part is read.
    OSError
        If a file cannot be read.

    Notes
    -----
    O(rows), because the query ids are read; O(cells) to read all parts. Memory is that of a part, and about 60 bytes
    per query while the data are opened.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from rankrls.io import open_dataset, save_table
    >>> X, qid = np.arange(12, dtype=np.float32).reshape(6, 2), [7, 7, 8, 8, 8, 9]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_table(os.path.join(folder, "a.parquet"), X[:2], [2, 0], qid[:2], feature_names=["bm25", "age"])
    ...     save_table(os.path.join(folder, "b.parquet"), X[2:], [1, 0, 0, 1], qid[2:], feature_names=["bm25", "age"])
    ...     data = open_dataset(os.path.join(folder, "*.parquet"))
    ...     print(data)
    ...     for part in data:
    ...         print(part.X.dtype, part.qid, part.y)
    <Dataset: 6 rows, 2 features, 3 queries, 2 parts>
    float32 [7 7] [2. 0.]
    float32 [8 8 8 9] [1. 0. 0. 1.]
    """
    roles = replace(ColumnRoles.checked(label, qid, id, features, ignore, labels), weight=weight)
    if rows_per_part is not None:
        check_count("rows_per_part", rows_per_part, none="64 MiB of features")
    paths = [*map(os.path.abspath, expanded_paths(path))]
    schema = common_schema(paths, "parquet", roles, whole_queries=whole_queries)
    most = rows_per_part or max(_PART_BYTES // (8 * max(schema.n_features or 0, 1)), 1)
    parts = tuple(_parts(paths, schema, most, Queries(schema.columns["qid"]) if whole_queries else None))
    if not parts:
        raise InputError("the files have no rows.", file=paths[0])
    n_queries = sum(part.n_queries for part in parts)
    return Dataset(parts, ", ".join(path_list(path)), schema.n_features or 0, schema.features, n_queries)


def common_schema(paths: Sequence[str], format: str, roles: ColumnRoles, *, whole_queries: bool = True) -> Schema:
    """Schema of the first file, whose columns all files need, with a shape and types that suit all of them.

    Raises
    ------
    InputError
        If a file has no query ids, or has other columns.
    """
    schemas = list[Schema]()
    for path in paths:
        with open_rows(path, format) as file:
            schema = file.scan(roles)
            if whole_queries and "qid" not in schema.columns:
                name = roles.usual_names["qid"]
                message = f"there are no query ids ({name}): every row needs one. Name their column (qid)."
                raise file.refuse(message, column=name, parameter="qid")
            schemas.append(schema)
            if schema.features is not None and (odd := {*schemas[0].stored} ^ {*schema.stored}):
                message = f"all files need the same columns (features); this file or {paths[0]} lacks {min(odd)!r}."
                raise file.refuse(message, column=min(odd))
    first = schemas[0]
    return replace(
        first,
        columns={role: name for role, name in first.columns.items() if all(role in each.columns for each in schemas)},
        integers=frozenset.intersection(*(each.integers for each in schemas)),
        n_features=max(each.n_features or 0 for each in schemas),
        first_feature=None if first.first_feature is None else min(each.first_feature or 0 for each in schemas),
        dtype=max(each.dtype for each in schemas),
    )


def check_whole_queries(data: Dataset) -> None:
    """Refuse a dataset whose parts do not contain whole queries."""
    if not data.n_queries:
        raise InputError(
            "the parts do not contain whole queries. Open the data with whole_queries=True.", parameter="data"
        )


def _parts(paths: Sequence[str], schema: Schema, most: int, queries: Queries | None) -> Iterator[RowGroups]:
    """Row groups combined up to a number of rows, but to the end of a query if ``queries`` are given."""
    ids_only = Schema(columns={role: name for role, name in schema.columns.items() if role == "qid"})
    first_row = 0  # first row of the part
    for path in paths:
        with open_table(path, "parquet") as table:
            time = os.stat(path).st_mtime_ns
            first_group = n_rows = n_queries = row = 0
            if queries is not None:
                queries.last = None  # queries do not continue in the next file
            for group, size in enumerate(table.group_sizes):
                if not size:
                    continue
                begins = np.zeros(1, dtype=np.intp)
                if queries is not None:
                    begins = queries.begin(table.read_roles(ids_only, range(group, group + 1))["qid"], table, row)
                if n_rows and begins[:1].tolist() == [0] and n_rows + size > most:
                    yield RowGroups(first_row, n_rows, path, time, range(first_group, group), n_queries, schema)
                    first_group = group
                    first_row += n_rows
                    n_rows = n_queries = 0
                n_rows += size
                n_queries += 0 if queries is None else len(begins)
                row += size
            if n_rows:
                groups = range(first_group, len(table.group_sizes))
                yield RowGroups(first_row, n_rows, path, time, groups, n_queries, schema)
                first_row += n_rows


class Queries:
    """Queries seen so far in rows that are read in order."""

    def __init__(self, column: str) -> None:
        self.seen = set[int]()  # hashes of ids
        self.last: str | None = None  # id of the last row
        self._column = column

    def begin(self, ids: AnyArray, file: Reader, first_row: int) -> Index:
        """Rows at which queries begin; InputError if a query reappears after others."""
        rows = _begins(ids)[int(str(ids[0]) == self.last) :]
        for row in rows.tolist():
            if (key := hash(str(ids[row]))) in self.seen:
                message = f"query {str(ids[row])!r} is not in adjacent rows of one file."
                message += " Sort the rows by query: convert the data to shards (sort)."
                raise file.refuse_row(first_row + row, message, column=self._column, parameter="qid")
            self.seen.add(key)
        self.last = str(ids[-1])
        return rows


def write_shards(
    path: Paths,
    folder: PathLike,
    *,
    rows_per_file: int = 1_000_000,
    force: bool = False,
    sort: bool = False,
    label: str | None = None,
    qid: str | None = None,
    id: str | None = None,
    features: Names | None = None,
    ignore: Names = (),
    feature_names: Sequence[str] | None = None,
) -> dict[str, int]:
    r"""Write data of any format and size as Parquet files that :func:`open_dataset` reads a part at a time.

    Each row group contains whole queries. The rows of a query must be adjacent in the data, or be sorted (``sort``).

    Parameters
    ----------
    path : path or sequence of paths
        LETOR text, CSV or TSV, plain or gzip, Parquet or Arrow: a file, several files, a pattern, or a folder. All must
        have the same format and columns.
    folder : path
        Folder, which is created if it does not exist. The files in it are called ``part-00000.parquet`` and so on.
    rows_per_file : int, default=1,000,000
        Maximum number of rows of a file, unless one query has more.
    force : bool, default=False
        Whether a folder written by this function may be replaced.
    sort : bool, default=False
        Whether to bring the rows of each query together, in their order. The order of queries then changes.
    label, qid, id, features, ignore
        Columns, as for :func:`open_dataset`; for LETOR text, ``features`` is their number. Every other column must
        contain numbers, and is written.
    feature_names : sequence of str, optional
        Names to write; by default those of the files, or f1, f2, ... for LETOR text.

    Returns
    -------
    dict
        Numbers of ``files``, ``rows`` and ``queries`` that were written, and of ``features``.

    Raises
    ------
    InputError
        If a value is missing or not a number, query ids are not adjacent, a folder is not empty (see ``force``) or is
        an input, or there are more than 20,000 features. Nothing is then written.
    OSError
        If a file cannot be read or written, for example because the disk is full. The folder keeps its old content.

    Notes
    -----
    O(cells). For LETOR text, a first pass determines the number of features. Memory is that of a few row groups, and
    about 60 bytes per query. Ids that are text stay text. With ``sort``, rows are first written to temporary files next
    to the new ones, one per about 32 MiB of data but at most 256, each with all rows of its queries; memory is that of
    one of them.

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
    check_outside(path_list(path), folder)
    format = format_of(files[0])
    schema = common_schema(files, format, roles)
    names = [*(schema.features or (f"f{k}" for k in range(1, (schema.n_features or 0) + 1)))]
    if feature_names is not None:
        if len(feature_names) != len(names):
            message = f"feature_names has {len(feature_names)} names, but the data have {len(names)} features."
            raise InputError(message, parameter="feature_names")
        names = [*map(str, feature_names)]
    if len(names) > _MOST_COLUMNS:
        message = f"{len(names)} features are too many columns for Parquet. Fit the text file in memory."
        raise InputError(message, file=files[0], parameter="features")
    coded = [schema.columns[role] for role in ("label", "qid", "id") if role in schema.columns]
    check_names([*coded, *names])
    most = min(max(_GROUP_BYTES // (8 * max(len(names), 1)), 1), int(rows_per_file))
    qid = schema.columns["qid"]
    queries = Queries(qid)

    def tables() -> Iterator[Any]:
        for path in files:
            first = 0
            with open_rows(path, format) as file:
                for part in file.parts(schema):
                    if part.qid is not None and not sort:
                        queries.begin(part.qid, file, first)
                    for start in range(0, part.n_rows, most):  # a block of text contains many sparse rows
                        yield _table(part.take(slice(start, start + most)), schema, names)
                    first += part.n_rows

    writer: Any = None
    n_files = n_rows = n_queries = in_file = 0
    target = new_folder(Path(folder), _OURS, force=force)
    with target as new, TemporaryDirectory(dir=new) as aside, ExitStack() as opened:
        found = tables()
        if sort:
            n_buckets = min(1 + sum(map(os.path.getsize, files)) // _SORTED_BYTES, _MOST_BUCKETS)
            found = _by_query(found, qid, Path(aside), n_buckets)
        for group in _row_groups(found, qid, most):
            if writer is None or in_file + group.num_rows > rows_per_file:
                opened.close()
                part = new / f"part-{n_files:05d}.parquet"
                writer = opened.enter_context(parquet_writer(part, group.schema, coded))
                n_files += 1
                in_file = 0
            writer.write_table(group, row_group_size=group.num_rows)
            in_file += group.num_rows
            n_rows += group.num_rows
            n_queries += len(_begins(group[qid]))
    return {"files": n_files, "rows": n_rows, "queries": n_queries, "features": len(names)}


def _by_query(tables: Iterable[Any], qid: str, folder: Path, n_buckets: int) -> Iterator[Any]:
    """Rows with those of a query together: written to several files by query, each of which is then sorted."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import ipc

    writers: list[Any] = []
    with ExitStack() as opened:
        for table in tables:
            while len(writers) < n_buckets:
                file = opened.enter_context(pa.OSFile(str(folder / f"{len(writers)}.arrow"), "wb"))  # or it stays open
                writers.append(opened.enter_context(ipc.new_file(file, table.schema)))
            bucket_of = np.array([crc32(str(name).encode()) % n_buckets for name in table[qid].to_pylist()])
            for bucket, writer in enumerate(writers):
                writer.write_table(table.filter(pa.array(bucket_of == bucket)))
    for bucket in range(n_buckets):
        with pa.memory_map(str(folder / f"{bucket}.arrow")) as source:
            rows = ipc.open_file(source).read_all()
            yield rows.take(pc.sort_indices(rows[qid]))


def _row_groups(tables: Iterable[Any], qid: str, most: int) -> Iterator[Any]:
    """Groups of rows of whole queries, with a maximum size unless a query is larger."""
    import pyarrow as pa

    waiting = None
    for table in tables:
        waiting = table if waiting is None else pa.concat_tables([waiting, table])
        while waiting.num_rows > most and len(cuts := _begins(waiting[qid])[1:]):
            stop = int(cuts[max(int(np.searchsorted(cuts, most, side="right")) - 1, 0)])
            yield waiting.slice(0, stop)
            waiting = waiting.slice(stop)
    yield waiting


def _begins(ids: Any) -> Index:
    """Rows at which the ids change, including the first one."""
    values = np.asarray(ids)
    return np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))


def _table(rows: Rows, schema: Schema, names: Sequence[str]) -> Any:
    """Rows as a table of pyarrow, with other names of the features."""
    import pyarrow as pa

    columns = {}
    if "label" in schema.columns:
        columns[schema.columns["label"]] = pa.array(rows.y, from_pandas=True)
    for role, name in schema.texts.items():
        ids = pa.array(rows.qid if role == "qid" else rows.docids)
        columns[name] = ids.cast(pa.int64() if role in schema.integers else pa.string())
    X = rows.X if isinstance(rows.X, np.ndarray) else rows.X.toarray()
    return pa.table(columns | dict(zip(names, np.ascontiguousarray(X.T), strict=True)))
