"""Arrays to tables with named columns."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankrls.io._atomic import atomic_write
from rankrls.io._tables import table_format
from rankrls.io._writer import as_features, packed

__all__ = ["save_table", "write_columns"]

_BLOCK_CELLS = 1 << 18
_LARGEST_WHOLE = 2.0**53


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
    """Write learning-to-rank data as a table that :func:`load_table` reads back: CSV, TSV or Parquet.

    The columns are the label, the query id, the item's id, as far as they are given, and then the features. The file
    is written under another name and renamed when it is complete and on disk.

    Parameters
    ----------
    path : path
        Ends in ``.csv``, ``.tsv``, either with ``.gz``, or ``.parquet``.
    X : array-like or sparse array of shape (m, n)
        Features; of a sparse one the zeros are written too.
    y : array-like of shape (m,), optional
        Labels; NaN is an empty cell.
    qid, ids : array-like of shape (m,), optional
        Whole numbers or strings.
    feature_names : sequence of n str, optional
        By default f1, f2, ...
    label, qid_name, id_name : str
        Names of those columns.

    Raises
    ------
    ValueError
        Where the path's ending is none of these, lengths differ, a feature is NaN or infinite, or two columns have the
        same name. Nothing is left behind.
    OSError
        Where the file cannot be written. The target keeps its old content.
    ImportError
        For Parquet without pyarrow.

    Notes
    -----
    O(m n). Numbers of text are the shortest decimals that are the same float64. Memory is a block of rows.

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
    2,a b,0.5,1e-09
    0,c,0,4
    """
    features = as_features(X)
    rows, n = features.shape
    if rows == 0 or n == 0:
        raise ValueError(f"X has shape {features.shape}: there is nothing to write.")
    names = [f"f{k}" for k in range(1, n + 1)] if feature_names is None else [str(name) for name in feature_names]
    if len(names) != n:
        raise ValueError(f"feature_names has {len(names)} names, but X has {n} columns.")
    leading: list[tuple[str, NDArray[Any]]] = []
    for what, name, values in (("y", label, y), ("qid", qid_name, qid), ("ids", id_name, ids)):
        if values is None:
            continue
        column = np.asarray(values, dtype=np.float64) if what == "y" else np.asarray(values)
        if column.shape != (rows,):
            raise ValueError(f"{what} has shape {column.shape}, but X has {rows} rows: it needs one value per row.")
        leading.append((name, column))

    def block(part: slice) -> list[NDArray[Any]]:
        values = features[part] if isinstance(features, np.ndarray) else features[part].toarray()
        finite = np.isfinite(values)
        if not finite.all():
            row, column = (int(v) for v in np.argwhere(~finite)[0])
            where = f"in row {part.start + row}, column {names[column]!r}"
            raise ValueError(f"X is {values[row, column]} {where}: features must be finite.")
        return [*(column[part] for _, column in leading), *values.T]

    write_columns(path, [*(name for name, _ in leading), *names], rows, block)


def write_columns(
    path: str | os.PathLike[str],
    names: Sequence[str],
    rows: int,
    block: Callable[[slice], list[NDArray[Any]]],
) -> None:
    """Write columns as the table that the path's ending says.

    Parameters
    ----------
    path : path
    names : sequence of str
    rows : int
    block : callable
        Gives the columns of some rows.
    """
    path = os.fspath(path)
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise ValueError(f"two columns are called {twice!r}; names must differ.")
    kind = table_format(path)
    if kind is None:
        raise ValueError(f"{path}: the name of a table ends in .csv, .tsv (either with .gz) or .parquet.")
    step = max(_BLOCK_CELLS // len(names), 1)
    blocks = (block(slice(start, min(start + step, rows))) for start in range(0, rows, step))
    if kind == "parquet":
        _write_parquet(path, names, blocks)
        return
    ending = path.lower().removesuffix(".gz")
    delimiter = "," if ending.endswith(".csv") else "\t"
    with atomic_write(path) as file, packed(file, path) as sink:
        for k, columns in enumerate(blocks):
            text = io.StringIO(newline="")
            writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
            if k == 0:
                writer.writerow(names)
            writer.writerows(zip(*map(_cells, columns), strict=True))
            sink.write(text.getvalue().encode("utf-8", "surrogateescape"))


def _cells(column: NDArray[Any]) -> list[Any]:
    """Values as the csv module shall write them: 3 and not 3.0, nothing for NaN."""
    if column.dtype.kind != "f":
        return list(column.tolist())
    values = column.astype(np.float64).tolist()
    with np.errstate(invalid="ignore"):
        plain = (column != np.floor(column)) | (np.abs(column) >= _LARGEST_WHOLE) | ((column == 0) & np.signbit(column))
    return ["" if v != v else v if odd else int(v) for v, odd in zip(values, plain.tolist(), strict=True)]


def _write_parquet(path: str, names: Sequence[str], blocks: Iterator[list[NDArray[Any]]]) -> None:
    from rankrls.io._parquet import import_pyarrow

    pa = import_pyarrow(f"{path}: writing Parquet")
    writer = None
    with atomic_write(path) as file:
        try:
            for columns in blocks:
                arrays = [pa.array(np.ascontiguousarray(column), from_pandas=True) for column in columns]
                table = pa.Table.from_arrays(arrays, names=[*names])
                if writer is None:
                    writer = pa.parquet.ParquetWriter(file, table.schema)
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()
