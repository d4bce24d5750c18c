"""Tables with named columns to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankrls._checks import check_word
from rankrls.io._rows import float_type, objects
from rankrls.io._table import FileTable
from rankrls.io.tables.arrays import Arrays, read_arrays
from rankrls.io.tables.columns import ColumnRoles, ReadPlan, TableError, plan_columns
from rankrls.io.tables.opened import FORMATS, Source, Table, open_table


@dataclass(frozen=True, eq=False, repr=False)
class ColumnTable(FileTable):
    """Rows of a table with named columns.

    Attributes
    ----------
    X : ndarray of shape (m, n), C-contiguous
        Features.
    y : ndarray of shape (m,), float64, or None
        Labels; None where there is no such column, or none was asked for.
    qid : ndarray of shape (m,) or None
        Query ids: int64 if every id is a whole number, otherwise an object array of strings, each different one of
        which is held once. None if there is no such column.
    ids : ndarray of shape (m,) or None
        The items' ids, likewise.
    feature_names : tuple of str
        Names of the columns of ``X``; ``emb[0]``, ``emb[1]``, ... where a column "emb" holds lists.
    label, qid_name, id_name : str or None
        Names of the columns of ``y``, ``qid`` and ``ids``.
    path : str
        Where the table came from, as errors name it.
    sha256 : str
        Of the file's bytes as they lie on disk; empty for a data frame.
    event : ndarray of shape (m,), float64, or None
        Of right-censored times, if a column was asked for: 1 where the event was observed.
    sample_weight : ndarray of shape (m,), float64, or None
        Weights of the rows, if a column was asked for.
    position, impressions : ndarray of shape (m,), float64, or None
        Where each row was shown and how often, if columns were asked for; ``y`` are then clicks.
    """

    X: NDArray[Any]
    y: NDArray[np.float64] | None
    qid: NDArray[Any] | None
    ids: NDArray[Any] | None
    feature_names: tuple[str, ...]
    label: str | None
    qid_name: str | None
    id_name: str | None
    path: str
    sha256: str
    event: NDArray[np.float64] | None = None
    sample_weight: NDArray[np.float64] | None = None
    position: NDArray[np.float64] | None = None
    impressions: NDArray[np.float64] | None = None

    comments: ClassVar[None] = None  # those of LetorTable, which tables do not have

    @property
    def feature_ids(self) -> list[str]:
        """What the file calls the columns of ``X``."""
        return [*self.feature_names]

    @property
    def docids(self) -> NDArray[Any] | None:
        """The items' ids, as text."""
        return None if self.ids is None else objects(map(str, self.ids.tolist()))


def load_table(
    path: Source,
    *,
    label: str | None = None,
    qid: str | None = None,
    id: str | None = None,
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
    labels: Literal["required", "optional", "ignored"] = "required",
    format: Literal["auto", "csv", "parquet", "arrow"] = "auto",
    dtype: DTypeLike = np.float64,
) -> ColumnTable:
    r"""Read learning-to-rank data from a table with named columns: CSV, TSV, Parquet, Arrow (Feather) or a data frame.

    Every column that is not the label, the query id or the item's id, and that is not ignored, is a feature. A feature
    is a finite number in every row: a column that holds anything else has to be ignored by name, and a missing value
    is an error that names its row and column, for what should stand there is not for a reader to guess. ``true`` and
    ``false`` are 1 and 0.

    A column of a typed format may hold lists of numbers, all of one length, as embeddings are stored. Each place in
    the lists is then a feature: of a column "emb" they are called ``emb[0]``, ``emb[1]``, and so on.

    Parameters
    ----------
    path : path, binary file object or data frame
        Read to its end. Text is UTF-8, plain or gzip (known by its first bytes). Between its cells stand commas,
        semicolons, tabs or bars: what the first line uses most, or tabs if the file's name ends in ``.tsv``. A data
        frame is that of pandas, polars, pyarrow or any other library with ``__arrow_c_stream__``.
    label, qid, id : str, optional
        Names of columns. By default "label", "qid" and "docid", where there are such columns. The rows of a query may
        lie anywhere.
    features : sequence of str, optional
        Names of the feature columns, in the order that ``X`` shall have. ``*`` stands for any text in a name and ``?``
        for one sign, and such a pattern for all columns it fits, in the file's order. A column of lists is named by its
        own name or those of its features. Other columns are not looked at.
    ignore : sequence of str, default=()
        Columns that are no features, by names or patterns.
    labels : {"required", "optional", "ignored"}, default="required"
        Whether every row needs a label. "optional": an empty one is NaN, as
        :class:`~rankrls.TransductiveRankRLS` takes it, and the column may be absent. "ignored": it is not read.
    format : {"auto", "csv", "parquet", "arrow"}, default="auto"
        "auto": Parquet if the file's name ends in ``.parquet`` or ``.pq``, Arrow if it ends in ``.arrow``, ``.feather``
        or ``.ipc``, text if it ends in ``.csv``, ``.tsv`` or ``.tab``; otherwise what its first bytes say.
    dtype : dtype, default=float64
        Of ``X``: float64 or float32. Labels are float64.

    Returns
    -------
    ColumnTable
        With ``X``, ``y``, ``qid``, ``ids``, ``feature_names``, ``path`` and ``sha256``.

    Raises
    ------
    TableError
        A ValueError: a column that is not there, with a similar name; a name that is there twice; a cell that is
        missing or no number; an id that is empty or not UTF-8; a whole number of 2^53 or more in a typed column of
        numbers; a row or a list of another length. Its attributes ``file``, ``row`` (counted from 0 below the line of
        names) and ``column`` say where; of quotes that do not match, ``line``.
    OSError
        If the file cannot be read.

    Notes
    -----
    O(bytes). pyarrow reads some megabytes at a time, text as text, and only features, labels and weights become
    numbers: the peak of memory is little more than the arrays. The first line names the columns; blank lines, CRLF line
    ends, a byte order mark and a missing last line end do not matter; cells may be quoted; blanks around a cell are no
    part of it. A number is what Python's ``float`` makes of it, to the last bit; decimal commas and underscores are
    refused. Ids are texts, ``007`` is not 7; they become int64 only if every one is a whole number as Python writes it.

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
    (array([2., 0.]), array(['red shoes', 'red shoes'], dtype=object))
    """
    return read_table(path, ColumnRoles.checked(label, qid, id, features, ignore, labels), format, dtype)


def read_table(source: Source, roles: ColumnRoles, format: str = "auto", dtype: DTypeLike = np.float64) -> ColumnTable:
    """:func:`load_table`, its arguments about columns checked."""
    check_word("format", format, ("auto", *FORMATS))
    with open_table(source, format, TableError) as table:
        plan = plan_columns(table, roles)
        return _column_table(table, plan, read_arrays(table, plan, float_type(dtype)))


def read_raw(source: Source, roles: ColumnRoles, format: str, names: Sequence[str] | None) -> ColumnTable:
    """A table whose ``X`` is a table of pyarrow, with the cells as they stand in the file.

    Parameters
    ----------
    source, roles, format : as for :func:`read_table`
    names : sequence of str or None
        The columns that are wanted of those that are there; None for all that ``roles`` makes features. The column of
        query ids is held too.
    """
    import pyarrow as pa

    with open_table(source, format, TableError) as table:
        plan = plan_columns(table, roles if names is None else replace(roles, features=(), ignore=()))
        if names is not None:
            plan = replace(plan, features=tuple(name for name in names if name in table.columns))
        batches = [*table.batches(plan.stored)]
        found = read_arrays(table, replace(plan, features=()), batches=batches)
        held = [*dict.fromkeys([*plan.features, *(name for role, name in plan.texts.items() if role == "qid")])]
        X = pa.Table.from_batches([batch for _, batch in batches]).select(held)
        return _column_table(table, plan, replace(found, X=X))


def _column_table(table: Table, plan: ReadPlan, found: Arrays) -> ColumnTable:
    return ColumnTable(
        X=found.X,
        y=found.y,
        qid=found.texts.get("qid"),
        ids=found.texts.get("id"),
        feature_names=plan.features,
        label=plan.label,
        qid_name=plan.texts.get("qid"),
        id_name=plan.texts.get("id"),
        path=table.name,
        sha256=table.sha256,
        event=found.numbers.get("event"),
        sample_weight=found.numbers.get("weight"),
        position=found.numbers.get("position"),
        impressions=found.numbers.get("impressions"),
    )
