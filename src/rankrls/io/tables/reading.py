"""Tables with named columns to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from rankrls._checks import check_word
from rankrls.io._rows import few, float_type
from rankrls.io.tables.columns import Columns, ColumnTable, RawTable, TableError, Wanted, assign
from rankrls.io.tables.delimited import DELIMITERS
from rankrls.io.tables.formats import FORMATS, Source, open_table
from rankrls.io.tables.parts import AS_IT_IS, Gathered, Opened, Request, gather


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
    delimiter: str = "auto",
    dtype: DTypeLike = np.float64,
) -> ColumnTable:
    r"""Read learning-to-rank data from a table with named columns: CSV, TSV, Parquet, Arrow (Feather) or a data frame.

    Every column that is not the label, the query id or the item's id, and that is not ignored, is a feature. A feature
    is a finite number in every row: a column that holds anything else has to be ignored by name, and a missing value
    is an error that names its line and column, for what should stand there is not for a reader to guess. ``true`` and
    ``false`` are 1 and 0.

    A column of a typed format may hold lists of numbers, all of one length, as embeddings are stored. Each place in
    the lists is then a feature: of a column "emb" they are called ``emb[0]``, ``emb[1]``, and so on. A list is taken
    whole.

    Parameters
    ----------
    path : path, binary file object or data frame
        Read to its end. Text is UTF-8, plain or gzip (known by its first bytes). A data frame is that of pandas,
        polars, pyarrow or any other library with ``__arrow_c_stream__``.
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
    format : {"auto", "csv", "parquet", "arrow"}, default="auto"
        "auto": Parquet if the file's name ends in ``.parquet`` or ``.pq``, Arrow if it ends in ``.arrow``, ``.feather``
        or ``.ipc``, text if it ends in ``.csv``, ``.tsv`` or ``.tab``; otherwise what its first and last bytes say.
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
        A ValueError, ``path:line: what is wrong`` (without lines, the row): a column that is not there, with those
        of similar names; a name that is there twice; a cell that is missing or no number; an id that is empty, holds a
        NUL or is not UTF-8; a whole number that no float64 is; a row or a list of another length. Its attributes
        ``file``, ``line``, ``row``, ``column`` and ``remedy`` hold the facts.
    OSError
        If the file cannot be read.

    Notes
    -----
    O(bytes), read by pyarrow a megabyte at a time for each thread into the final array: the peak of memory is little
    more than the table, whatever the size of the text. The first line names the columns; blank lines, CRLF line ends, a
    byte order mark and a missing last line end do not matter; cells may be quoted. Blanks around a cell are no part of
    it, blanks inside its quotes are. A number is what Python's ``float`` makes of it, to the last bit; decimal commas
    and underscores are refused.

    A block of text that pyarrow refuses, or may read otherwise than is promised here, is read again cell by cell, some
    ten times more slowly: that finds the line of an error, and reads what is unusual and right.

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
    wanted = Wanted.checked(label, qid, id, features, ignore, labels)
    return read_table(path, wanted, format, delimiter, dtype)


def read_raw(source: Source, wanted: Wanted, format: str, names: Sequence[str] | None) -> RawTable:
    """A table whose columns stay as they are; the column of query ids is one of them.

    Parameters
    ----------
    source, wanted, format : as for :func:`read_table`
    names : sequence of str or None
        The columns that are wanted of those that are there; None for all that ``wanted`` makes features.
    """
    import pyarrow as pa

    with open_table(source, format, TableError) as table:
        there = [*table.columns]
        columns = assign(table.refuse, there, wanted if names is None else replace(wanted, features=(), ignore=()))
        chosen = columns.features if names is None else tuple(name for name in names if name in there)
        if names and not chosen:
            listed = few(there, 8)
            problem = "there is none of the columns that the model was learned from, {0} (columns: {1})."
            raise table.refuse(problem, ", ".join(map(repr, names)), listed, column=names[0], parameter="features")
        held = [*dict.fromkeys([*chosen, *(() if columns.qid is None else (columns.qid,))])]
        request = Request.of(replace(columns, features=()), np.dtype(np.float64), lines=True)
        cells = {AS_IT_IS + name: name for name in held} if table.textual else {}
        found = gather(table, replace(request, texts=request.texts | cells))
        whole = getattr(table, "whole", None)
        if whole is None:
            X = pa.table({name: pa.array(found.texts[AS_IT_IS + name], pa.large_string()) for name in held})
        else:
            X = whole().select(held)
        return RawTable(X=X, feature_names=chosen, lines=found.lines, **_others(table, columns, found))


def read_table(source: Source, wanted: Wanted, format: str, delimiter: str, dtype: DTypeLike) -> ColumnTable:
    """:func:`load_table`, its arguments about columns checked."""
    check_word("format", format, ("auto", *FORMATS))
    check_word("delimiter", delimiter, ("auto", *DELIMITERS))
    out = float_type(dtype)
    with open_table(source, format, TableError, delimiter=delimiter) as table:
        lists = table.lists({wanted.label, wanted.qid, wanted.id, *wanted.usual_names.values()})
        columns = assign(table.refuse, table.columns, wanted, lists)
        found = gather(table, Request.of(columns, out))
        X = found.X if columns.event is None else np.ascontiguousarray(found.X[:, :-1])
        return ColumnTable(X=X, feature_names=columns.features, **_others(table, columns, found))


def _others(table: Opened, columns: Columns, found: Gathered) -> dict[str, Any]:
    """What a table holds beside its features."""
    return {
        "y": found.y,
        "qid": found.texts.get("qid"),
        "ids": found.texts.get("id"),
        "label": columns.label,
        "qid_name": columns.qid,
        "id_name": columns.id,
        "path": table.name,
        "sha256": table.sha256(),
        "event": None if columns.event is None else found.X[:, -1].astype(np.float64),
        "utility_names": columns.utilities,
    }
