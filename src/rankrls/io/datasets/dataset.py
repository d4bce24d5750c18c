"""Parquet files that are read a few row groups at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import check_count
from rankrls._errors import InputError
from rankrls.io.datasets.files import File, Paths, expanded_paths, has_data_ending
from rankrls.io.tables.arrays import Arrays, converted, feature_type, read_arrays
from rankrls.io.tables.columns import ColumnRoles, ReadPlan, TableError, plan_columns
from rankrls.io.tables.opened import Table, table_format
from rankrls.io.tables.reading import ColumnTable

_PART_BYTES = 1 << 26
SORTED_FIRST = "Sort the rows by query first, for instance with DuckDB or Polars, or write them by rankrls convert."


@dataclass(frozen=True)
class Layout:
    """What all files of a data set have in common.

    Attributes
    ----------
    plan : ReadPlan
        The columns that are read.
    dtype : dtype
        Of the features: float32 if all of their columns are, else float64.
    """

    plan: ReadPlan
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Part:
    """Whole queries: consecutive row groups of one file. It is small and can be pickled.

    Attributes
    ----------
    number : int
        Its place among the parts.
    n_rows, n_queries : int
        How many it has.
    first_row, first_query : int
        How many rows and queries come before it.
    file : File
    first_group, last_group : int
        The row groups; the last one is not included.
    layout : Layout
    """

    number: int
    n_rows: int
    first_row: int
    n_queries: int
    first_query: int
    file: File
    first_group: int
    last_group: int
    layout: Layout

    def read(self) -> ColumnTable:
        """Read its rows.

        Returns
        -------
        ColumnTable
            ``X``, ``y``, ``qid``, ``ids`` and ``sample_weight`` of the rows in their order in the file.

        Raises
        ------
        InputError
            For a file that has changed since it was opened, and for values that a learner cannot use.
        OSError
            If the file cannot be read.
        """
        plan = self.layout.plan
        with opened(self.file) as table:
            found = read_arrays(
                table, plan, self.layout.dtype, table.batches(plan.stored, range(self.first_group, self.last_group))
            )
        if len(found.X) != self.n_rows:
            raise self.file.changed()
        return ColumnTable(
            X=found.X,
            y=np.full(self.n_rows, np.nan) if found.y is None else found.y,
            qid=found.texts["qid"],
            ids=found.texts.get("id"),
            sample_weight=found.numbers.get("weight"),
            feature_names=plan.features,
            label=plan.labels[0] if plan.labels else None,
            qid_name=plan.texts["qid"],
            id_name=plan.texts.get("id"),
            path=self.file.name,
            sha256="",
        )


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows in Parquet files, of which nothing is held but where they lie. :func:`open_dataset` makes it.

    It is small and can be pickled: another process reads its parts from the same paths.

    Attributes
    ----------
    parts : tuple of Part
        In the order of the data; each holds whole queries.
    files : tuple of File
        What the files were when they were opened.
    layout : Layout
    path : str
        What was opened, as it was written.
    """

    parts: tuple[Part, ...]
    files: tuple[File, ...]
    layout: Layout
    path: str = ""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.layout.plan.features

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return len(self.feature_names)

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return sum(part.n_rows for part in self.parts)

    @property
    def n_queries(self) -> int:
        """Queries of all parts."""
        return sum(part.n_queries for part in self.parts)

    def summary(self) -> dict[str, Any]:
        """What is in it, as a table of rows says it; labels are not counted."""
        sizes = {"rows": self.n_rows, "queries": self.n_queries, "features": self.n_features}
        return {"path": self.path, **sizes, "sparse": False, "labels": {}, "parts": len(self.parts)}

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[ColumnTable]:
        return (part.read() for part in self.parts)

    def __repr__(self) -> str:
        sizes = f"{self.n_rows} rows, {self.n_features} features, {self.n_queries} queries, {len(self.parts)} parts"
        return f"<Dataset of {len(self.files)} file{'s' * (len(self.files) != 1)}: {sizes}>"


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
    rows_per_part: int | Callable[[int], int] | None = None,
) -> Dataset:
    r"""Open Parquet files that memory need not hold.

    The files are one data set, in the order in which they are given. The rows of a query lie together, in one file.
    A part is as many row groups as fit, and ends where a query does: files that ``rankrls convert`` or
    :func:`write_shards` has written hold whole queries in each row group.

    Parameters
    ----------
    path : path or sequence of paths
        A file, several, a pattern such as ``"shards/*.parquet"``, or a folder, with its partitions (folders called
        ``key=value``). Files of a pattern or a folder are read in the order of their names, ``part-2`` before
        ``part-10``. All have the same columns.
    label, qid, id : str, optional
        Names of columns. By default "label", "qid" and "docid", where there are such columns; that of the query ids has
        to be there.
    features : sequence of str, optional
        Names or patterns of the feature columns, as for :func:`load_table`; by default all others. Columns hold
        numbers, or lists of numbers, all of one length.
    ignore : sequence of str, default=()
        Columns that are no features, by names or patterns.
    weight : str, optional
        Name of a column of weights, finite and not negative.
    labels : {"required", "optional", "ignored"}, default="required"
        Whether every row needs a label, as for :func:`load_table`; rows without one have NaN.
    rows_per_part : int or callable, optional
        Rows of a part, at most, as far as row groups and queries allow it; or a function of the number of features. By
        default as many as make 64 MiB of features.

    Returns
    -------
    Dataset
        ``n_rows``, ``n_queries``, ``feature_names`` and so on; iterate over it, or read one of its ``parts``.

    Raises
    ------
    InputError
        For files that are not Parquet or have other columns; and for query ids that come back after another query, or
        in the next file, naming both places. Labels and features are checked when a part is read.
    OSError
        If a file cannot be read.

    Notes
    -----
    O(rows): the query ids are read. O(cells) to read all parts. Memory: that of a part, and 16 bytes a query while the
    data are opened.

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
    <Dataset of 2 files: 6 rows, 2 features, 3 queries, 2 parts>
    float32 [7 7] [2. 0.]
    float32 [8 8 8 9] [1. 0. 0. 1.]
    """
    roles = replace(ColumnRoles.checked(label, qid, id, features, ignore, labels), weight=weight)
    if rows_per_part is not None and not callable(rows_per_part):
        check_count("rows_per_part", rows_per_part, none="64 MiB of features")
    files = tuple(File.of(file) for file in expanded_paths(path))
    for file in files:
        if table_format(file.name) != "parquet" and has_data_ending(file.name):
            message = "only Parquet can be read a part at a time. Write Parquet files: rankrls convert DATA FOLDER."
            raise InputError(message, file=file.name, parameter="path")
    layout = _common_layout(files, roles)
    n_features = len(layout.plan.features)
    usual = max(_PART_BYTES // (layout.dtype.itemsize * max(n_features, 1)), 1)
    most = rows_per_part(n_features) if callable(rows_per_part) else rows_per_part or usual
    parts = tuple(_Index(files, layout).parts(most))
    if not parts:
        raise InputError("the files have no rows.", file=files[0].name)
    named = [path] if isinstance(path, str) or hasattr(path, "__fspath__") else path
    return Dataset(parts, files, layout, ", ".join(map(str, named)))


@contextmanager
def opened(file: File) -> Iterator[Table]:
    """A Parquet file, if it is still the same."""
    with file.opened() as stream:
        yield Table(file.name, stream, "parquet", TableError)


def _common_layout(files: Sequence[File], roles: ColumnRoles) -> Layout:
    """The columns of the first file, which all have to have."""
    first: ReadPlan | None = None
    types = []
    for file in files:
        with opened(file) as table:
            plan = plan_columns(table, roles)
            if "qid" not in plan.texts:
                name = roles.usual_names["qid"]
                message = f"there is no column {name!r}: name the column of query ids (qid)."
                raise table.refuse(message, column=name, parameter="qid")
            first = first or plan
            odd = {*first.stored} ^ {*plan.stored}
            if odd:
                name = min(odd)
                has = "has no" if name in first.stored else "has a"
                message = (
                    f"it {has} column {name!r}, unlike {files[0].name}: all files need the same columns (features)."
                )
                raise table.refuse(message, column=name)
            types.append(feature_type(table, plan))
    assert first is not None
    return Layout(first, max(types))


class _Index:
    """Where queries begin, of all files."""

    def __init__(self, files: Sequence[File], layout: Layout) -> None:
        self.files, self.layout = files, layout
        self.plan = ReadPlan(texts={"qid": layout.plan.texts["qid"]})
        self.keys: list[NDArray[np.int64]] = []  # of the queries that begin in each row group
        self.places: list[tuple[File, int]] = []

    def parts(self, most: int) -> Iterator[Part]:
        """Row groups together, up to so many rows, but to the end of a query; query ids that come back are refused."""
        number = first_row = first_query = 0
        last: int | None = None  # the key of the row before
        for file in self.files:
            with opened(file) as table:
                sizes = table.group_sizes
                begin, rows, queries = 0, 0, 0
                for group, size in enumerate(sizes):
                    keys = self._runs(table, group) if size else np.zeros(0, np.int64)
                    goes_on = size > 0 and keys[0] == last
                    if goes_on and not rows:
                        raise self._scattered(int(keys[0]), (file, group))
                    if rows and size and not goes_on and rows + size > most:
                        yield Part(number, rows, first_row, queries, first_query, file, begin, group, self.layout)
                        number, first_row, first_query = number + 1, first_row + rows, first_query + queries
                        begin, rows, queries = group, 0, 0
                    self.keys.append(keys[1:] if goes_on else keys)
                    self.places.append((file, group))
                    last = int(keys[-1]) if size else last
                    rows, queries = rows + size, queries + len(self.keys[-1])
            if rows:
                yield Part(number, rows, first_row, queries, first_query, file, begin, len(sizes), self.layout)
                number, first_row, first_query = number + 1, first_row + rows, first_query + queries
        found, counts = np.unique(np.concatenate(self.keys or [np.zeros(0, np.int64)]), return_counts=True)
        if (counts > 1).any():
            key = found[np.argmax(counts > 1)]
            again = [place for keys, place in zip(self.keys, self.places, strict=True) if key in keys][-1]
            raise self._scattered(int(key), again)

    def _runs(self, table: Table, group: int) -> NDArray[np.int64]:
        """A key of each run of equal query ids in a row group."""
        keys = np.concatenate([_keys(rows) for rows in self._read(table, group)])
        return keys[np.concatenate(([True], keys[1:] != keys[:-1]))]

    def _read(self, table: Table, group: int) -> Iterator[Arrays]:
        return converted(table, self.plan, np.float64, table.batches(self.plan.stored, range(group, group + 1)))

    def _scattered(self, key: int, place: tuple[File, int]) -> InputError:
        """An error about a query that begins twice, the second time here."""
        file, group = place
        name, row = "", 0
        with opened(file) as table:
            row = sum(table.group_sizes[:group])
            for rows in self._read(table, group):
                different, codes = rows.texts["qid"]
                found = np.flatnonzero(_keys(rows) == key)
                if len(found):
                    name = str(codes[found[-1]] if different is None else different[codes[found[-1]]])
                    break
        message = (
            f"query {name!r} comes back in row group {group}, behind other queries or another file. {SORTED_FIRST}"
        )
        return InputError(message, file=file.name, row=row, column=self.plan.texts["qid"], parameter="qid")


def _keys(rows: Arrays) -> NDArray[np.int64]:
    """A number for each row that is the same for equal query ids; others have the same with probability 2^-64."""
    different, codes = rows.texts["qid"]
    return codes if different is None else np.array([hash(text) for text in different], dtype=np.int64)[codes]
