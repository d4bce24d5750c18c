"""Arrays to tables with named columns."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankrls._errors import InputError
from rankrls.io._atomic import atomic_write
from rankrls.io._rows import BLANKS, is_utf8
from rankrls.io._writer import as_features, check_shape, packed
from rankrls.io.tables.opened import table_format

_BLOCK_CELLS = 1 << 18
_QUOTED = '["\\r\\n,;\\t|]|^\ufeff|^$'
"""The cells that stand in quotes."""


def save_table(
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    *,
    ids: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    label: str = "label",
    qid_name: str = "qid",
    id_name: str = "docid",
) -> None:
    """Write learning-to-rank data as a table that :func:`load_table` reads back: CSV, TSV, Parquet or Arrow.

    The columns are the label, the query id, the item's id, as far as they are given, and then the features. The file
    is written under another name and renamed when it is complete and on disk.

    Parameters
    ----------
    path : path
        Ends in ``.csv``, ``.tsv``, either with ``.gz``, ``.parquet``, ``.arrow`` or ``.feather``.
    X : array-like or sparse array of shape (m, n)
        Features; of a sparse one the zeros are written too.
    y : array-like of shape (m,), optional
        Labels; NaN is an empty cell.
    qid, ids : array-like of shape (m,), optional
        Whole numbers or strings: any text of UTF-8 that is not empty and holds no NUL.
    feature_names : sequence of n str, optional
        By default f1, f2, ...
    label, qid_name, id_name : str
        Names of those columns.

    Raises
    ------
    ValueError
        If the path's ending is none of these, lengths differ, a feature is NaN or infinite, an id is empty, holds a NUL
        or is not UTF-8, or two columns have the same name. Nothing is left behind.
    OSError
        If the file cannot be written. The target keeps its old content.

    Notes
    -----
    O(m n). Numbers of text are the shortest decimals that are the same float64. Memory is a block of rows. Strings all
    of which look like whole numbers are read back from text as such.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankrls.io import save_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.csv")
    ...     save_table(path, [[0.5, 1e-9], [0, 4]], [2, 0], qid=["a b", "c"], feature_names=["bm25", "age"])
    ...     with open(path) as file:
    ...         print(file.read(), end="")
    label,qid,bm25,age
    2,a b,0.5,1e-9
    0,c,0,4
    """
    features = as_features(X)
    rows, n = features.shape
    names = [f"f{k}" for k in range(1, n + 1)] if feature_names is None else [str(name) for name in feature_names]
    if len(names) != n:
        raise InputError(f"feature_names has {len(names)} names, but X has {n} columns.", parameter="feature_names")
    leading: list[tuple[str, NDArray[Any]]] = []
    given: Any = (("y", label, y), ("qid", qid_name, qid), ("ids", id_name, ids))
    for what, name, values in given:
        if values is not None:
            texts = any(isinstance(value, str) for value in values)  # an array of fixed width would cut them off
            column = np.asarray(values, dtype=np.float64 if what == "y" else object if texts else None)
            check_shape(what, column, rows, "value")
            leading.append((name, column))

    def block(part: slice) -> list[NDArray[Any]]:
        values = features[part] if isinstance(features, np.ndarray) else features[part].toarray()
        if table_format(path) == "csv":
            values = np.asarray(values, np.float64)  # the shortest decimals of a float32 are those of another float64
        for k, column in np.argwhere(~np.isfinite(values)).tolist():
            row, name = part.start + k, names[column]
            message = f"X is {values[k, column]} in row {row}, column {name!r}: features must be finite."
            raise InputError(message, parameter="X", row=row, column=name)
        return [*(column[part] for _, column in leading), *values.T]

    step = max(_BLOCK_CELLS // (len(leading) + n), 1)
    blocks = map(block, (slice(start, min(start + step, rows)) for start in range(0, rows, step)))
    write_blocks(path, [*(name for name, _ in leading), *names], blocks)


def write_blocks(path: str | os.PathLike[str], names: Sequence[str], blocks: Iterable[Sequence[NDArray[Any]]]) -> None:
    """Write columns that come some rows at a time as the table that the path's ending says.

    Parameters
    ----------
    path : path
    names : sequence of str
    blocks : iterable
        The columns of the first rows, of the next ones, and so on.
    """
    import pyarrow as pa

    check_names(names)

    def tables() -> Iterator[Any]:
        row = 0
        for block in blocks:
            columns = [_column(name, values, row) for name, values in zip(names, block, strict=True)]
            yield pa.Table.from_arrays(columns, names=[*names])
            row += len(block[0])

    write_tables(path, tables())


def write_tables(path: str | os.PathLike[str], tables: Iterable[Any], format: str = "auto") -> None:
    """Write tables of pyarrow, one behind the other, in a format, or that which the path's ending says."""
    from pyarrow import ipc, parquet

    path = os.fspath(path)
    kind = table_format(path) if format == "auto" else format
    if kind is None or (kind != "csv" and path.lower().endswith(".gz")):
        message = "the name of a table ends in .csv, .tsv (either with .gz), .parquet, .arrow or .feather."
        raise InputError(message, file=path)
    with atomic_write(path) as file:
        if kind == "csv":
            with packed(file, path) as sink:
                _write_text(path, sink, tables)
            return
        tables = iter(tables)
        first = next(tables)
        open_writer: Any = parquet.ParquetWriter if kind == "parquet" else ipc.new_file
        with open_writer(file, first.schema) as writer:
            for table in chain([first], tables):
                writer.write_table(table)


def _write_text(path: str, sink: Any, tables: Iterable[Any]) -> None:
    """Delimited text in the shortest decimals, with quotes if there are cells that need them."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    delimiter = "," if path.lower().removesuffix(".gz").endswith(".csv") else "\t"
    header: list[str] = []
    for table in tables:
        if not header:
            header = table.column_names
            sink.write((delimiter.join(map(cell, header)) + "\n").encode())
        texts = [column for column in table.columns if not pa.types.is_primitive(column.type)]
        for text in {*header}.union(*(column.unique().to_pylist() for column in texts)):
            if text != text.strip(BLANKS) or "\0" in text:
                message = f"{text!r} has a blank at an end or a NUL, which text does not keep. Write Parquet instead."
                raise InputError(message)
        odd = any(pc.any(pc.match_substring_regex(column, _QUOTED)).as_py() for column in texts)
        how = csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="needed" if odd else "none")
        csv.write_csv(table, sink, how)


def check_names(names: Sequence[str]) -> None:
    """Refuse names of columns that are there twice."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"two columns are called {twice!r}; names must differ.", column=twice)


def _column(name: str, values: NDArray[Any], start: int) -> Any:
    """Some rows of a column for pyarrow."""
    import pyarrow as pa

    if values.dtype.kind not in "UTO":
        return pa.array(np.ascontiguousarray(values), from_pandas=True)
    texts = [*map(str, values.tolist())]
    for row, text in enumerate(texts, start):
        if not text or not is_utf8(text):
            message = f"the text {text!r} in row {row}, column {name!r}, is empty or not UTF-8."
            raise InputError(message, row=row, column=name)
    return pa.array(texts, pa.string())


def cell(text: str) -> str:
    """A text as a cell: in quotes if it would be read otherwise without."""
    return '"' + text.replace('"', '""') + '"' if re.search(_QUOTED, text) else text
