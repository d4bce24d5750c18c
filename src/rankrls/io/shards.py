"""Data of any size as Parquet files whose row groups hold whole queries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import check_count
from rankrls._errors import InputError
from rankrls.io._letor import letor_shape, letor_tables
from rankrls.io.columns import ColumnRoles
from rankrls.io.dataset import Queries, common_columns
from rankrls.io.files import Paths, check_outside, expanded_paths, new_folder
from rankrls.io.opened import open_table, table_format
from rankrls.io.rows import Rows
from rankrls.io.tables import converted
from rankrls.io.writing import check_names

_GROUP_BYTES = 1 << 26
_MOST_COLUMNS = 20_000
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
) -> dict[str, int]:
    r"""Write data of any format and size as Parquet files that :func:`open_dataset` reads a part at a time.

    Each row group holds whole queries. The rows of a query must be adjacent in the data: sort them first if they are
    not.

    Parameters
    ----------
    path : path or sequence of paths
        LETOR text, CSV or TSV, plain or gzip, Parquet or Arrow: a file, several, a pattern, or a folder. All have one
        format and the same columns.
    folder : path
        It is created if it does not exist. The files in it are called ``part-00000.parquet`` and so on.
    rows_per_file : int, default=1,000,000
        Rows of a file, at most, unless one query has more.
    float32 : bool, default=False
        Write features as float32, rounded.
    force : bool, default=False
        Whether a folder that this function has written may be replaced.
    label, qid, id, features, ignore
        As for :func:`open_dataset`; for LETOR text, ``features`` is their number. Every other column must hold numbers,
        and is written.
    feature_names : sequence of str, optional
        Names to write; by default those of the files, of LETOR text f1, f2, ...

    Returns
    -------
    dict
        The numbers of ``files``, ``rows`` and ``queries`` that were written, and of ``features``.

    Raises
    ------
    InputError
        For a value that is missing or not a number, query ids that are not adjacent, a folder that is not empty (see
        ``force``) or is one of the inputs, and for more than 20,000 features. Then nothing is written.
    OSError
        If a file cannot be read or written, for example because the disk is full. The folder keeps its old content.

    Notes
    -----
    O(cells). For LETOR text a first pass finds the number of features. The memory is that of a few row groups, and
    about 60 bytes per query. Ids that are text stay text.

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
    from pyarrow import parquet

    roles = ColumnRoles.checked(label, qid, id, features, ignore, "optional")
    check_count("rows_per_file", rows_per_file)
    files = expanded_paths(path)
    check_outside(files, folder)
    source = (_letor_source if table_format(files[0]) is None else _table_source)(files, roles, float32)
    names = source.features if feature_names is None else [*map(str, feature_names)]
    if len(names) != len(source.features):
        message = f"feature_names has {len(names)} names, but the data have {len(source.features)} features."
        raise InputError(message, parameter="feature_names")
    if len(names) > _MOST_COLUMNS:
        message = f"{len(names)} features are too many columns for Parquet. Fit the text file in memory."
        raise InputError(message, file=files[0], parameter="features")
    source = source._replace(features=names)
    check_names([*source.coded, *names])
    queries = Queries(source.ids["qid"])
    most = min(max(_GROUP_BYTES // (8 * max(len(names), 1)), 1), int(rows_per_file))

    def tables() -> Iterator[tuple[Any, NDArray[np.intp]]]:
        for first, rows in source.rows:
            if rows.qid is None:
                raise InputError("every line needs a query id.", file=rows.path, parameter="qid")
            yield source.table(rows), queries.begin(rows.qid, rows.path, first)

    writer: Any = None
    n_files = n_rows = in_file = 0
    with new_folder(Path(folder), _OURS, force=force) as new, ExitStack() as opened:
        for group in _row_groups(tables(), most):
            if writer is None or in_file + group.num_rows > rows_per_file:
                opened.close()
                how: Any = {"use_dictionary": source.coded, "write_statistics": False}
                part = new / f"part-{n_files:05d}.parquet"
                writer = opened.enter_context(parquet.ParquetWriter(part, group.schema, **how))
                n_files = n_files + 1
                in_file = 0
            writer.write_table(group, row_group_size=group.num_rows)
            in_file = in_file + group.num_rows
            n_rows = n_rows + group.num_rows
    return {"files": n_files, "rows": n_rows, "queries": len(queries.seen), "features": len(names)}


def _row_groups(tables: Iterable[tuple[Any, NDArray[np.intp]]], most: int) -> Iterator[Any]:
    """Rows of whole queries, at most so many unless a query has more.

    Tables come with the rows at which queries begin in them.
    """
    import pyarrow as pa

    waiting = None
    cuts = np.zeros(0, dtype=np.intp)
    for table, begins in tables:
        cuts = np.append(cuts, begins + (0 if waiting is None else waiting.num_rows))
        waiting = table if waiting is None else pa.concat_tables([waiting, table])
        cuts = cuts[cuts > 0]
        while waiting.num_rows > most and len(cuts):
            stop = int(cuts[max(int(np.searchsorted(cuts, most, side="right")) - 1, 0)])
            yield waiting.slice(0, stop)
            waiting = waiting.slice(stop)
            cuts = cuts[cuts > stop] - stop
    yield waiting


class _Source(NamedTuple):
    """What is written: names of columns, those of ids by what they are, and some rows after others.

    ``whole`` are the ids that are whole numbers. Before rows stands the number of the first in its file.
    """

    features: list[str]
    label: str | None
    ids: dict[str, str]
    whole: frozenset[str]
    rows: Iterator[tuple[int, Rows]]

    @property
    def coded(self) -> list[str]:
        """The columns before the features."""
        return [*([] if self.label is None else [self.label]), *self.ids.values()]

    def table(self, rows: Rows) -> Any:
        """Rows as a table of pyarrow."""
        import pyarrow as pa

        columns = [] if self.label is None else [pa.array(rows.y, from_pandas=True)]
        for role in self.ids:
            columns.append(
                pa.array(rows.qid if role == "qid" else rows.docids).cast(
                    pa.int64() if role in self.whole else pa.string()
                )
            )
        X = rows.X if isinstance(rows.X, np.ndarray) else rows.X.toarray()
        columns += map(pa.array, np.ascontiguousarray(X.T))
        return pa.table(columns, names=[*self.coded, *self.features])


def _table_source(files: Sequence[str], roles: ColumnRoles, float32: bool) -> _Source:
    """Files of tables with the same columns."""
    format = table_format(files[0]) or ""
    schema, dtype, whole = common_columns(files, format, roles)

    def rows() -> Iterator[tuple[int, Rows]]:
        for file in files:
            with open_table(file, format) as table:
                first = 0
                for part in converted(table, schema, np.float32 if float32 else dtype):
                    yield first, part.rows(schema, table)
                    first += len(part.X)

    return _Source([*schema.features], schema.columns.get("label"), schema.texts, whole, rows())


def _letor_source(files: Sequence[str], roles: ColumnRoles, float32: bool) -> _Source:
    """Files of LETOR text, with the items' ids if the comments of all rows name them."""
    shapes = [letor_shape(file) for file in files]
    n_features = roles.count(files[0]) or max(shape.n_features for shape in shapes)
    how: Any = {"n_features": n_features, "zero_based": any(shape.zero_based for shape in shapes)}
    how["dtype"] = np.float32 if float32 else np.float64
    ids = {"qid": "qid"}
    if all(shape.has_ids for shape in shapes):
        ids["id"] = "docid"

    def rows() -> Iterator[tuple[int, Rows]]:
        step = max(_GROUP_BYTES // (8 * n_features), 1)  # of sparse rows many are in a block of text
        for file in files:
            first = 0
            for table in letor_tables(file, **how):
                for start in range(0, table.n_rows, step):
                    yield first + start, table.take(slice(start, start + step))
                first += table.n_rows

    names = [f"f{k}" for k in range(1, n_features + 1)]
    return _Source(names, "label", ids, frozenset(), rows())
