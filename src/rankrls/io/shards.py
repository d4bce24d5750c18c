"""Data of any size as Parquet files whose row groups contain whole queries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from rankrls._checks import check_count
from rankrls._errors import InputError
from rankrls._typing import Index
from rankrls.io._writers import parquet_writer
from rankrls.io.columns import ColumnRoles
from rankrls.io.dataset import Queries, common_schema
from rankrls.io.files import Paths, check_outside, expanded_paths, new_folder, path_list
from rankrls.io.formats import format_of, open_rows
from rankrls.io.reader import Reader
from rankrls.io.rows import Rows, Schema
from rankrls.io.writing import check_names

_GROUP_BYTES = 1 << 26
_SORTED_BYTES = 1 << 25
_MOST_BUCKETS = 256  # number of files that are open together
_MOST_COLUMNS = 20_000
_OURS = re.compile(r"part-[0-9]{5}\.parquet")


def write_shards(
    path: Paths,
    folder: str | os.PathLike[str],
    *,
    rows_per_file: int = 1_000_000,
    float32: bool = False,
    force: bool = False,
    sort: bool = False,
    label: str | None = None,
    qid: str | None = None,
    id: str | None = None,
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
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
    float32 : bool, default=False
        Whether features are rounded and written as float32.
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
    if float32:
        schema = replace(schema, dtype=np.dtype(np.float32))
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

    def tables() -> Iterator[_Located]:
        for path in files:
            first = 0
            with open_rows(path, format) as file:
                for part in file.parts(schema):
                    for start in range(0, part.n_rows, most):  # a block of text contains many sparse rows
                        rows = part.take(slice(start, start + most))
                        yield _Located(_table(rows, schema, names), file, first + start)
                    first += part.n_rows

    writer: Any = None
    n_files = n_rows = in_file = 0
    target = new_folder(Path(folder), _OURS, force=force)
    with target as new, TemporaryDirectory(dir=new) as aside, ExitStack() as opened:
        found = tables()
        if sort:
            n_buckets = min(1 + sum(map(os.path.getsize, files)) // _SORTED_BYTES, _MOST_BUCKETS)
            found = _by_query(found, qid, Path(aside), n_buckets)
        begun = ((table, queries.begin(table[qid].to_numpy(), file, first)) for table, file, first in found)
        for group in _row_groups(begun, most):
            if writer is None or in_file + group.num_rows > rows_per_file:
                opened.close()
                part = new / f"part-{n_files:05d}.parquet"
                writer = opened.enter_context(parquet_writer(part, group.schema, coded))
                n_files = n_files + 1
                in_file = 0
            writer.write_table(group, row_group_size=group.num_rows)
            in_file = in_file + group.num_rows
            n_rows = n_rows + group.num_rows
    return {"files": n_files, "rows": n_rows, "queries": len(queries.seen), "features": len(names)}


class _Located(NamedTuple):
    """Rows as a table of pyarrow, with their file and the number of the first one in it."""

    table: Any
    file: Reader
    first_row: int


def _by_query(tables: Iterable[_Located], qid: str, folder: Path, n_buckets: int) -> Iterator[_Located]:
    """Rows with those of a query together: written to several files by query, each of which is then sorted."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import ipc

    writers: dict[int, Any] = {}
    with ExitStack() as opened:
        for located in tables:
            table = located.table
            coded = table[qid].combine_chunks().dictionary_encode()
            buckets = np.array([crc32(str(name).encode()) % n_buckets for name in coded.dictionary.to_pylist()])
            bucket_of = buckets[coded.indices]
            for bucket in np.unique(bucket_of).tolist():
                if bucket not in writers:
                    file = opened.enter_context(pa.OSFile(str(folder / f"{bucket}.arrow"), "wb"))  # or it stays open
                    writers[bucket] = opened.enter_context(ipc.new_file(file, table.schema))
                writers[bucket].write_table(table.filter(pa.array(bucket_of == bucket)))
    for bucket in sorted(writers):
        with pa.memory_map(str(folder / f"{bucket}.arrow")) as source:
            rows = ipc.open_file(source).read_all()
            yield located._replace(table=rows.take(pc.sort_indices(rows[qid])))


def _row_groups(tables: Iterable[tuple[Any, Index]], most: int) -> Iterator[Any]:
    """Groups of rows of whole queries, with a maximum size unless a query is larger.

    Tables are passed with the rows at which their queries begin.
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
