"""Tables with named columns to arrays: the same for every format, checked, and refused by row and column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal
from warnings import warn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankrls._cells import cell_number
from rankrls._checks import check_word
from rankrls._errors import InputError, InputWarning
from rankrls._missing import MISSING
from rankrls.io._rows import Growing, Source, float_type, ids_of, joined_ids, objects, quoted
from rankrls.io._table import FileTable
from rankrls.io.columns import ColumnRoles, ReadPlan, check_column, plan_columns
from rankrls.io.judgements import conflict_text
from rankrls.io.opened import FORMATS, Table, is_number, open_table

_EXACT = 2.0**53


@dataclass(frozen=True, eq=False, repr=False)
class ColumnTable(FileTable):
    """Rows of a table with named columns.

    Attributes
    ----------
    X : ndarray of shape (m, n), C-contiguous
        Features.
    y : ndarray of shape (m,), float64, or None
        Labels; None if there is no such column.
    qid : ndarray of shape (m,) or None
        Query ids: int64 if every id is a whole number, otherwise an object array of strings. None if there is no such
        column.
    ids : ndarray of shape (m,) or None
        The items' ids, in the same form.
    feature_names : tuple of str
        Names of the columns of ``X``; ``emb[0]``, ``emb[1]``, ... where a column "emb" holds lists.
    label, qid_name, id_name : str or None
        Names of the columns of ``y``, ``qid`` and ``ids``.
    path : str
        The file, as errors name it.
    sha256 : str
        Of the bytes of the file; empty for a data frame.
    event : ndarray of shape (m,), float64, or None
        For right-censored times, if a column is named: 1 if the event was observed.
    sample_weight : ndarray of shape (m,), float64, or None
        Weights of the rows, if a column is named.
    position, impressions : ndarray of shape (m,), float64, or None
        The position of each row and how often it was shown, if columns are named; ``y`` are then clicks.
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

    def line_of(self, row: int | None) -> int | None:
        """The line of a row of a text file, from 1; None if it is not known."""
        with suppress(InputError, OSError), open_table(self.path) as table:
            return None if row is None else table.line_of(row)
        return None


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
) -> ColumnTable:
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
    ColumnTable
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
        warn(
            InputWarning(f"{conflict} rankrls.io.resolve_conflicts keeps one row of each.", file=table.path),
            stacklevel=2,
        )
    return table


def read_table(source: Source, roles: ColumnRoles, format: str = "auto", dtype: DTypeLike = np.float64) -> ColumnTable:
    """:func:`load_table`, its arguments about columns checked."""
    check_word("format", format, ("auto", *FORMATS))
    with open_table(source, format) as table:
        plan = plan_columns(table, roles)
        found = read_arrays(table, plan, float_type(dtype))
        return found.rows(plan, table.name, table.sha256)


def read_raw(
    source: Source, roles: ColumnRoles, format: str, names: Sequence[str] | None, missing: Sequence[str] = ()
) -> ColumnTable:
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
        plan = plan_columns(table, roles if names is None else replace(roles, features=(), ignore=()))
        if names is not None:
            for name in names:
                check_column(table, name, "needed by the model", "features")
            plan = replace(plan, features=tuple(names))
        batches = [*table.batches(plan.stored)]
        found = read_arrays(table, replace(plan, features=()), batches=batches)
        held = [*dict.fromkeys([*plan.features, *(name for role, name in plan.texts.items() if role == "qid")])]
        X = pa.Table.from_batches([batch for _, batch in batches]).select(held)
        if table.textual:
            words = pa.array({"", *(word.lower() for word in missing or MISSING)})
            ids = {*plan.texts.values()}
            X = pa.table({name: X[name] if name in ids else _without(X[name], words) for name in held})
        return replace(found, X=X).rows(plan, table.name, table.sha256)


def _without(cells: Any, words: Any) -> Any:
    """Cells with nulls in place of some texts in lower case."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pc.is_in(pc.utf8_lower(cells), words), pa.scalar(None, cells.type), cells)


@dataclass(frozen=True, eq=False)
class Arrays:
    """The columns of a plan: features, and numbers and ids by what they are."""

    X: Any
    numbers: dict[str, NDArray[np.float64]]
    texts: dict[str, NDArray[Any]]

    def rows(self, plan: ReadPlan, path: str, sha256: str = "") -> ColumnTable:
        """The rows with the names of their columns."""
        return ColumnTable(
            X=self.X,
            y=self.numbers.get("label"),
            qid=self.texts.get("qid"),
            ids=self.texts.get("id"),
            feature_names=plan.features,
            label=plan.numbers.get("label"),
            qid_name=plan.texts.get("qid"),
            id_name=plan.texts.get("id"),
            path=path,
            sha256=sha256,
            sample_weight=self.numbers.get("weight"),
            **{name: self.numbers.get(name) for name in ("event", "position", "impressions")},
        )


def read_arrays(
    table: Table,
    plan: ReadPlan,
    dtype: DTypeLike = np.float64,
    batches: Iterable[tuple[int, Any]] | None = None,
    n_rows: int = 0,
) -> Arrays:
    """Read the columns of a table, or of some of its rows; memory is that of the arrays and of a few batches.

    Parameters
    ----------
    table : Table
    plan : ReadPlan
    dtype : dtype
        Of the features.
    batches : iterable, optional
        Some of its batches, perhaps with further columns.
    n_rows : int
        How many rows there will be, if it is known: memory is then taken once.
    """
    held: dict[str, Growing] = {}
    ids: dict[str, list[NDArray[Any]]] = {role: [] for role in plan.texts}
    for part in converted(table, plan, dtype, batches):
        for name, values in {"X": part.X, **part.numbers}.items():
            held.setdefault(name, Growing(values.shape[1:], values.dtype, n_rows)).append(values)
        for role, found in part.texts.items():
            ids[role].append(found)
    texts = {role: joined_ids(found) for role, found in ids.items()}
    numbers: dict[str, Any] = {name: column.finish() for name, column in held.items()}
    return Arrays(numbers.pop("X"), numbers, texts)


def converted(
    table: Table, plan: ReadPlan, dtype: DTypeLike, batches: Iterable[tuple[int, Any]] | None = None
) -> Iterator[Arrays]:
    """Some rows after others, as :func:`read_arrays` reads all."""
    for row, batch in table.batches(plan.stored) if batches is None else batches:
        part = _Batch(table, batch, row)
        yield Arrays(
            X=part.features(plan.features, np.dtype(dtype)),
            numbers={role: part.numbers(name, role, plan.may_be_empty) for role, name in plan.numbers.items()},
            texts={role: part.ids(name, role, plan.may_be_empty) for role, name in plan.texts.items()},
        )


def holds_integers(kind: Any) -> bool:
    """Whether ids of a type are int64, also as pandas stores them beside missing ones, and no texts."""
    import pyarrow as pa

    return bool((pa.types.is_integer(kind) and not pa.types.is_uint64(kind)) or pa.types.is_floating(kind))


def feature_type(table: Table, plan: ReadPlan) -> np.dtype[Any]:
    """float32 if all columns of features are single precision, else float64."""
    kinds = {str(table.types[name]) for name in plan.features}
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
            message = f"column {name!r} ({what}) {shown}: it must hold finite {out.dtype} numbers{sign}.{_remedy(what)}"
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
            message = f"column {name!r} ({what}) holds {kind}, not numbers.{_remedy(what)}"
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
        different, codes = coded.dictionary.to_pylist(), coded.indices.to_numpy()
        if "" in different and what not in may_be_empty:
            k = self.start + int(np.argmax(codes == different.index("")))
            raise self.table.refuse_row(k, f"column {name!r} is empty: every row needs an id.", column=name)
        found = ids_of(different) if self.table.textual else objects(different)
        return found[codes]


def _remedy(what: str) -> str:
    remedy = " Fill it, leave the column out (ignore), or fit a TableEncoder to the table (columns)."
    return remedy if what == "feature" else ""


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
    return values[coded.indices.to_numpy()]
