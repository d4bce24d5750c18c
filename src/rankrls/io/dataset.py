"""Parquet files that are read in parts of a few row groups."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rankrls._checks import check_count
from rankrls._errors import InputError
from rankrls._typing import AnyArray, Index
from rankrls.io.columns import ColumnRoles
from rankrls.io.files import Paths, expanded_paths, path_list
from rankrls.io.formats import format_of, is_data, open_rows, open_table
from rankrls.io.reader import Reader
from rankrls.io.rows import Rows, Schema

_PART_BYTES = 1 << 26


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

    def summary(self) -> dict[str, Any]:
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
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
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
    paths = expanded_paths(path)
    for name in paths:
        if is_data(name) and format_of(name) != "parquet":
            command = "rankrls convert DATA FOLDER --rows-per-file 1000000"
            message = f"only Parquet files can be streamed. Convert the data: {command}."
            raise InputError(message, file=name, parameter="path")
    paths = [*map(os.path.abspath, paths)]
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
                has = "has no" if (name := min(odd)) in schemas[0].stored else "has a"
                message = f"it {has} column {name!r}, unlike {paths[0]}: all files need the same columns (features)."
                raise file.refuse(message, column=name)
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
        rows = np.flatnonzero(np.concatenate(([str(ids[0]) != self.last], ids[1:] != ids[:-1])))
        for row in rows.tolist():
            if (key := hash(str(ids[row]))) in self.seen:
                message = f"query {str(ids[row])!r} is not in adjacent rows of one file."
                message += " Sort the rows by query: convert the data to shards (sort)."
                raise file.refuse_row(first_row + row, message, column=self._column, parameter="qid")
            self.seen.add(key)
        self.last = str(ids[-1])
        return rows
