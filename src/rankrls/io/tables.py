"""Tables with named columns to arrays: the same for every format, checked, and refused by row and column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankrls._cells import cell_number
from rankrls._checks import check_word
from rankrls._errors import InputWarning, warn_user
from rankrls._missing import MISSING
from rankrls.io._rows import Growing, Source, float_type, ids_of, joined_ids, objects, quoted
from rankrls.io.columns import ColumnRoles, check_column, find_columns
from rankrls.io.judgements import conflict_text
from rankrls.io.opened import FORMATS, Table, is_number, open_table
from rankrls.io.rows import Rows, Schema

_EXACT = 2.0**53


def load_table(
    path: Source,
    *,
    label: str | None = None,
    qid: str | None = None,
    id: str | None = None,
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
    labels: Literal["required", "optional", "ignored"] = "required",
    format: str = "auto",
    dtype: DTypeLike = np.float64,
) -> Rows:
    r"""Read learning-to-rank data from a table with named columns: CSV, TSV, Parquet, Arrow (Feather) or a data frame.

    Every column that is not the label, the query id or the item's id, and that is not ignored, is a feature. A feature
    is a finite number in every row: a column that holds anything else must be ignored by name, and a missing value is
    an error that names its row and column. ``true`` and ``false`` are 1 and 0.

    A column of a typed format may hold lists of numbers, all of one length, as embeddings are stored. Each position in
    the lists is then a feature: a column "emb" becomes ``emb[0]``, ``emb[1]``, and so on.

    Parameters
    ----------
    path : path, binary file object or data frame
        Read to its end. Text is UTF-8, plain or gzip (recognized by its first bytes). The delimiter is the comma,
        semicolon, tab or vertical bar that the first line uses most, or the tab if the file's name ends in ``.tsv``. A
        data frame can be from pandas, polars, pyarrow or any other library with ``__arrow_c_stream__``.
    label, qid, id : str, optional
        Names of columns. By default "label", "qid" and "docid", if they exist. The rows of a query need not be
        adjacent.
    features : sequence of str, optional
        Names of the feature columns, in the order of the columns of ``X``. In a pattern, ``*`` matches any text and
        ``?`` one character; it names all matching columns, in the file's order. A column of lists is named by its own
        name or those of its features. Other columns are not looked at.
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
    Rows
        With ``X``, ``y``, ``qid``, ``ids``, ``feature_names``, ``path`` and ``sha256``.

    Raises
    ------
    InputError
        A ValueError: a column that is not there, with a similar name; a name that occurs twice; a cell that is missing
        or no number; an id that is empty or not UTF-8; a whole number of 2^53 or more in a typed column of numbers; a
        row or a list of another length. Its attributes ``file``, ``row`` (counted from 0 below the line of names) and
        ``column`` say where; of quotes that do not match, ``line``.
    OSError
        If the file cannot be read.

    Warns
    -----
    InputWarning
        If items have different labels in one query: see :func:`resolve_conflicts`.

    Notes
    -----
    O(bytes). pyarrow reads some megabytes at a time, text as text, and only features, labels and weights become
    numbers: the peak of memory is little more than the arrays. The first line names the columns; blank lines, CRLF line
    ends, a byte order mark and a missing last line end do not matter; cells may be quoted; blanks around a cell are no
    part of it. Numbers are read as by Python's ``float``, to the last bit; decimal commas and underscores are refused.
    Ids are texts, ``007`` is not 7; they become int64 only if every one is a whole number as Python writes it.

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
    table = read_table(path, ColumnRoles.checked(label, qid, id, features, ignore, labels), format, dtype)
    if conflict := conflict_text(table):
        warn_user(InputWarning(f"{conflict} rankrls.io.resolve_conflicts keeps one row of each.", file=table.path))
    return table


def read_table(source: Source, roles: ColumnRoles, format: str = "auto", dtype: DTypeLike = np.float64) -> Rows:
    """:func:`load_table`, its arguments about columns checked."""
    check_word("format", format, ("auto", *FORMATS))
    with open_table(source, format) as table:
        schema = find_columns(table, roles)
        found = read_columns(table, schema, float_type(dtype))
        return found.rows(schema, table, table.sha256)


def read_raw(
    source: Source, roles: ColumnRoles, format: str, names: Sequence[str] | None, missing: Sequence[str] = ()
) -> Rows:
    """A table whose ``X`` is a table of pyarrow, with the cells as they stand in the file.

    Parameters
    ----------
    source, roles, format : as for :func:`read_table`
    names : sequence of str or None
        The columns that a model needs; None for all that ``roles`` makes features. The column of query ids is held too.
    missing : sequence of str
        Cell texts of features in text files that become null, in any case, besides empty ones; by default ``MISSING``.
    """
    import pyarrow as pa

    with open_table(source, format) as table:
        schema = find_columns(table, roles if names is None else replace(roles, features=(), ignore=()))
        if names is not None:
            for name in names:
                check_column(table, name, "needed by the model", "features")
            schema = replace(schema, features=tuple(names))
        batches = [*table.batches(schema.stored)]
        found = read_columns(table, replace(schema, features=()), batches=batches)
        held = [*dict.fromkeys([*schema.features, *(name for role, name in schema.texts.items() if role == "qid")])]
        X = pa.Table.from_batches([batch for _, batch in batches]).select(held)
        if table.textual:
            words = pa.array({"", *(word.lower() for word in missing or MISSING)})
            ids = {*schema.texts.values()}
            X = pa.table({name: X[name] if name in ids else _without(X[name], words) for name in held})
        return found._replace(X=X).rows(schema, table, table.sha256)


def _without(cells: Any, words: Any) -> Any:
    """Cells with nulls in place of some texts in lower case."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pc.is_in(pc.utf8_lower(cells), words), pa.scalar(None, cells.type), cells)


class Columns(NamedTuple):
    """Features, and the other columns by role."""

    X: Any
    by_role: dict[str, NDArray[Any]]

    def rows(self, schema: Schema, table: Table, sha256: str = "") -> Rows:
        """The rows with the names of their columns."""
        return Rows(
            X=self.X,
            y=self.by_role.get("label"),
            qid=self.by_role.get("qid"),
            path=table.name,
            sha256=sha256,
            schema=schema,
            ids=self.by_role.get("id"),
            event=self.by_role.get("event"),
            sample_weight=self.by_role.get("weight"),
            position=self.by_role.get("position"),
            impressions=self.by_role.get("impressions"),
            lines=table.lines,
        )


def read_columns(
    table: Table,
    schema: Schema,
    dtype: DTypeLike = np.float64,
    batches: Iterable[tuple[int, Any]] | None = None,
    n_rows: int = 0,
) -> Columns:
    """Read the columns of a table, or of some of its rows; memory is that of the arrays and of a few batches.

    Parameters
    ----------
    table : Table
    schema : Schema
    dtype : dtype
        Of the features.
    batches : iterable, optional
        Some of its batches, perhaps with further columns.
    n_rows : int
        How many rows there will be, if it is known: memory is then taken once.
    """
    held: dict[str, Growing] = {}
    ids: dict[str, list[NDArray[Any]]] = {role: [] for role in schema.texts}
    for part in converted(table, schema, dtype, batches):
        arrays = {"X": part.X} | {role: part.by_role[role] for role in schema.numbers}
        for name, values in arrays.items():
            held.setdefault(name, Growing(values.shape[1:], values.dtype, n_rows)).append(values)
        for role, found in ids.items():
            found.append(part.by_role[role])
    by_role = {name: column.finish() for name, column in held.items()}
    by_role |= {role: joined_ids(found) for role, found in ids.items()}
    return Columns(by_role.pop("X"), by_role)


def converted(
    table: Table, schema: Schema, dtype: DTypeLike, batches: Iterable[tuple[int, Any]] | None = None
) -> Iterator[Columns]:
    """Some rows after others, as :func:`read_columns` reads all."""
    for row, batch in table.batches(schema.stored) if batches is None else batches:
        part = _Batch(table, batch, row)
        X = part.features(schema.features, np.dtype(dtype))
        by_role = {role: part.numbers(name, role, schema.may_be_empty) for role, name in schema.numbers.items()}
        by_role |= {role: part.ids(name, role, schema.may_be_empty) for role, name in schema.texts.items()}
        yield Columns(X, by_role)


def holds_integers(kind: Any) -> bool:
    """Whether ids of a type are int64, also as pandas stores them beside missing ones, and no texts."""
    import pyarrow as pa

    return bool((pa.types.is_integer(kind) and not pa.types.is_uint64(kind)) or pa.types.is_floating(kind))


def feature_type(table: Table, schema: Schema) -> np.dtype[Any]:
    """float32 if all columns of features are single precision, else float64."""
    kinds = {str(table.types[name]) for name in schema.features}
    return np.dtype(np.float32 if kinds <= {"float", "halffloat"} else np.float64)


@dataclass(frozen=True)
class _Batch:
    """Columns of some rows, the first of which is row ``start`` of the table."""

    table: Table
    batch: Any
    start: int

    def features(self, names: tuple[str, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        import pyarrow as pa

        if not names:
            return np.empty((self.batch.num_rows, 0), dtype)
        # pyarrow turns columns into rows several times faster than numpy
        columns = [pa.array(self._cells(name, "feature", dtype)) for name in names]
        rows: NDArray[Any] = pa.RecordBatch.from_arrays(columns, names=[*names]).to_tensor().to_numpy()
        if not np.isfinite(rows).all():
            for name in names:
                self.numbers(name, "feature", dtype=dtype)  # refuses the first bad cell
        return rows

    def numbers(
        self, name: str, what: str, may_be_empty: Sequence[str] = (), dtype: DTypeLike = np.float64
    ) -> NDArray[Any]:
        """A column of finite numbers, weights not negative; NaN for a label that may be missing."""
        out = self._cells(name, what, dtype)
        bad = np.isinf(out) if what in may_be_empty else ~np.isfinite(out)
        if what == "weight":
            bad |= out < 0
        if bad.any():
            k = int(np.argmax(bad))
            cell = self.batch.column(name)[k].as_py()
            shown = "is empty" if cell is None or cell == "" else f"holds {quoted(str(cell).strip())}"
            sign = ", not negative" * (what == "weight")
            wanted = f"it must hold finite numbers ({out.dtype}){sign}.{_REMEDIES.get(what, '')}"
            message = f"column {name!r} ({what}) {shown}: {wanted}"
            raise self.table.refuse_row(self.start + k, message, column=name)
        return out

    def _cells(self, name: str, what: str, dtype: DTypeLike) -> NDArray[Any]:
        """A column of numbers: NaN where nothing stands, infinity for what is no number of this type."""
        import pyarrow as pa

        column = self.batch.column(name)
        kind = column.type
        if self.table.textual:
            found = _parsed(column)
        elif not is_number(kind):
            message = f"column {name!r} ({what}) holds {kind}, not numbers.{_REMEDIES.get(what, '')}"
            raise self.table.refuse(message, column=name)
        else:
            if pa.types.is_decimal(kind):
                column = column.cast(pa.string())  # rounds once; the direct cast rounds twice
            if not pa.types.is_floating(kind):
                column = column.cast(pa.float64(), safe=False)
            found = column.to_numpy(zero_copy_only=False)
            if pa.types.is_integer(kind):
                found = np.where(np.abs(found) >= _EXACT, np.inf, found)
        if found.dtype == dtype:
            return found
        with np.errstate(over="ignore"):
            return found.astype(dtype)

    def ids(self, name: str, what: str, may_be_empty: Sequence[str]) -> NDArray[Any]:
        """Ids as whole numbers or texts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.batch.column(name)
        try:
            if pa.types.is_floating(column.type):  # how pandas stores whole numbers beside a missing one
                column = column.cast(pa.int64())
                pc.add(pc.abs(column), 1).cast(self.batch.column(name).type)  # refuses those that may be rounded
            if holds_integers(column.type) and not column.null_count:
                whole: NDArray[Any] = column.cast(pa.int64()).to_numpy()
                return whole
            coded = pc.fill_null(column.cast(pa.string()), "").dictionary_encode()
        except pa.ArrowException as error:
            message = f"the ids in column {name!r} are neither whole numbers nor UTF-8 text ({error})."
            raise self.table.refuse(message, column=name) from None
        different = coded.dictionary.to_pylist()
        codes = coded.indices.to_numpy()
        if "" in different and what not in may_be_empty:
            k = self.start + int(np.argmax(codes == different.index("")))
            raise self.table.refuse_row(k, f"column {name!r} is empty: every row needs an id.", column=name)
        found = ids_of(different) if self.table.textual else objects(different)
        return np.asarray(found[codes])


_REMEDIES = {
    "feature": " Fill it or leave the column out (ignore). A TableEncoder makes features of other cells.",
    "label": " Higher labels are better: write 1 for yes and 0 for no, or 0, 1, 2, ... for grades.",
}


def _parsed(cells: Any) -> NDArray[np.float64]:
    """Numbers of cells: NaN where nothing stands, infinity for what is no number."""
    import pyarrow as pa

    try:
        found: NDArray[np.float64] = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
        if np.isfinite(found).all():
            return found
    except pa.ArrowInvalid:
        pass
    coded = cells.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    values = np.array([*map(cell_number, texts)])
    values[~np.isfinite(values)] = np.inf
    values[[text.strip().lower() in MISSING for text in texts]] = np.nan
    return np.asarray(values[coded.indices.to_numpy()])
