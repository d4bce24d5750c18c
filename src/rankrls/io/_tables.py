"""Tables with named columns to arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import BinaryIO, Literal

import numpy as np
from numpy.typing import DTypeLike

from rankrls.io._columns import ColumnTable, Wanted

__all__ = ["column_names", "load_table", "read_table", "table_format"]

_ENDINGS = {".csv": "csv", ".tsv": "csv", ".tab": "csv", ".parquet": "parquet", ".pq": "parquet"}


def table_format(path: object) -> str | None:
    """``"csv"`` or ``"parquet"`` by a file's name; None where the name says neither."""
    name = str(path).lower().removesuffix(".gz")
    return next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)


def load_table(
    path: str | os.PathLike[str] | BinaryIO,
    *,
    label: str | None = None,
    qid: str | None = None,
    id: str | None = None,
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
    labels: Literal["required", "optional", "ignored"] = "required",
    format: Literal["auto", "csv", "parquet"] = "auto",
    delimiter: str = "auto",
    dtype: DTypeLike = np.float64,
) -> ColumnTable:
    r"""Read learning-to-rank data from a table with named columns: CSV, TSV or Parquet.

    Every column that is not the label, the query id or the item's id, and that is not ignored, is a feature. A feature
    is a finite number in every row: a column that holds anything else has to be ignored by name, and a missing value
    is an error that names its line and column, for what should stand there is not for a reader to guess. ``true`` and
    ``false`` are 1 and 0.

    A column of Parquet may hold lists of numbers, all of one length, as embeddings are stored. Each place in the lists
    is then a feature: of a column "emb" they are called ``emb[0]``, ``emb[1]``, and so on. A list is taken whole.

    Parameters
    ----------
    path : path or binary file object
        Read to its end. Text is UTF-8, plain or gzip (known by its first bytes).
    label, qid, id : str, optional
        Names of columns. By default "label", "qid" and "docid", where there are such columns. The rows of a query may
        lie anywhere.
    features : sequence of str, optional
        Names of the feature columns, in the order that ``X`` shall have. ``*`` stands for any text in a name and ``?``
        for one sign, and such a pattern for all columns it fits, in the file's order. A column of lists is named by its
        own name or those of all its features. Other columns are not looked at.
    ignore : sequence of str, default=()
        Columns that are no features, by names or patterns.
    labels : {"required", "optional", "ignored"}, default="required"
        Whether every row needs a label. "optional": an empty one is NaN, as
        :class:`~rankrls.TransductiveRankRLS` takes it, and the column may be absent. "ignored": it is not read.
    format : {"auto", "csv", "parquet"}, default="auto"
        "auto": Parquet where the file's name ends in ``.parquet`` or ``.pq``, else text.
    delimiter : {"auto", ",", ";", "\\t", "|"}, default="auto"
        Of text. "auto": the one that the first line uses most; a tab where the file's name ends in ``.tsv``.
    dtype : dtype, default=float64
        Of ``X``: float64 or float32. Labels are float64.

    Returns
    -------
    ColumnTable
        With ``X``, ``y``, ``qid``, ``ids``, ``feature_names``, ``path`` and ``sha256``.

    Raises
    ------
    TableError
        A ValueError, ``path:line: what is wrong`` (for Parquet with the row): a column that is not there, with those
        of similar names; a name that is there twice; a cell that is missing or no number; a row or a list of another
        length.
    OSError
        Where the file cannot be read.
    ImportError
        For Parquet without pyarrow, which ``rankrls[parquet]`` brings.

    Notes
    -----
    O(bytes), read a few megabytes at a time into the final array: the peak of memory is little more than the table,
    whatever the size of the text. The first line names the columns; blank lines, CRLF line ends, a byte order mark and
    a missing last line end do not matter; cells may be quoted. A number is what Python's ``float`` makes of it, to the
    last bit; decimal commas are refused.

    Examples
    --------
    >>> import io
    >>> from rankrls.io import load_table
    >>> text = b"query,clicks,url,bm25,grade\nred shoes,3,/a,7.5,2\nred shoes,0,/b,1e-3,0\n"
    >>> table = load_table(io.BytesIO(text), label="grade", qid="query", ignore=["url"])
    >>> table.feature_names
    ('clicks', 'bm25')
    >>> table.X
    array([[3.0e+00, 7.5e+00],
           [0.0e+00, 1.0e-03]])
    >>> table.y, table.qid
    (array([2., 0.]), array(['red shoes', 'red shoes'], dtype='<U9'))
    """
    wanted = Wanted.checked(label, qid, id, features, ignore, labels)
    return read_table(path, wanted, format, delimiter, dtype)


def read_table(
    path: str | os.PathLike[str] | BinaryIO, wanted: Wanted, format: str, delimiter: str, dtype: DTypeLike
) -> ColumnTable:
    """:func:`load_table`, its arguments about columns checked."""
    from rankrls.io._delimited import DELIMITERS, read_delimited

    if format not in ("auto", "csv", "parquet"):
        raise ValueError(f"format must be 'auto', 'csv' or 'parquet'; got {format!r}.")
    if delimiter != "auto" and delimiter not in DELIMITERS:
        raise ValueError(f"delimiter must be 'auto' or one of {', '.join(map(repr, DELIMITERS))}; got {delimiter!r}.")
    out = np.dtype(dtype)
    if out not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ValueError(f"dtype must be float64 or float32; got {out}.")
    if format == "auto":
        format = "parquet" if table_format(getattr(path, "name", path)) == "parquet" else "csv"
    if format == "parquet":
        from rankrls.io._parquet import read_parquet

        return read_parquet(path, wanted, out)
    return read_delimited(path, wanted, delimiter, out)


def column_names(path: str | os.PathLike[str], format: str) -> tuple[str, ...]:
    """What a table calls its columns; none where it is no table, which reading it will say."""
    from rankrls.io._delimited import header_of
    from rankrls.io._source import foreign, open_bytes

    if format == "parquet":
        from rankrls.io._parquet import import_pyarrow

        pa = import_pyarrow(f"{path}: reading Parquet")
        try:
            return tuple(pa.parquet.read_schema(path).names)
        except (pa.ArrowException, OSError):
            return ()
    try:
        with open_bytes(path) as (name, start, source, _):
            data, piece = b"", bytearray(1 << 16)
            while not data.strip().partition(b"\n")[1] and (count := source.readinto(memoryview(piece))):
                data += piece[:count]
            return () if foreign(start) is not None else header_of(name, data, "auto").names
    except ValueError:
        return ()
