"""Conversion of files of any format to rows, and rows that are copied unchanged."""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from rankrls._checks import check_count, check_word
from rankrls._errors import InputError, InputWarning, warn_user
from rankrls._records import unrecorded
from rankrls._typing import AnyArray, Array, Names
from rankrls.io._letor import LetorText
from rankrls.io._text import Source, TableSource, float_type, joined_ids, source_name
from rankrls.io.columns import ColumnRoles, Reader
from rankrls.io.files import POSITIONS, atomic_write, companion_file, expanded_paths, ids_of_sizes, number_lines
from rankrls.io.formats import ENDINGS, FORMATS, TABLES, Frame, format_of, is_data, is_table
from rankrls.io.rows import Rows, Schema, conflict_text
from rankrls.io.tables import Table
from rankrls.io.writing import write_stored

_REMEDY = "Convert the files to one schema."


def load_letor(
    path: Source,
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dense: bool | Literal["auto"] = "auto",
    dtype: DTypeLike = np.float64,
) -> Rows:
    r"""Read learning-to-rank data: LETOR, SVMlight, SVMrank or RankLib text, plain or gzip.

    Each line is a row: ``label qid:ID 1:value 2:value ... # comment``. Features can be in any order, each at most once;
    features missing from a line are 0. The qid can be anywhere after the label, or missing in all lines. Blank lines,
    lines with only a comment, CRLF line ends, a byte order mark and a missing last line end are allowed. Gzip is
    recognized by the file's first bytes, not by its name.

    Numbers are read as by Python's ``float``, to the last bit, and then rounded if ``dtype=numpy.float32``. NaN,
    infinities and decimals that overflow are errors.

    Parameters
    ----------
    path : path or binary file object
        File, which is read once.
    n_features : int, optional
        Number of columns of ``X``; by default the largest feature id. Pass the training table's ``n_features`` if the
        shapes must agree; a line with a higher id is then an error. More than 2**27 columns, which a single wrong id
        can cause, must be requested in this way.
    zero_based : bool or "auto", default="auto"
        Whether column 0 is feature 0 or feature 1. "auto": feature 0 if any line contains it. Read a test file with the
        training table's ``zero_based``.
    dense : bool or "auto", default="auto"
        Whether ``X`` is an ndarray or a CSR array. "auto": dense if the file contains at least one cell in ten.
    dtype : dtype, default=float64
        Type of ``X``: float64 or float32. Labels are float64.

    Returns
    -------
    Rows
        Rows with ``X``, ``y``, ``qid``, ``comments``, ``docids``, ``path``, ``sha256`` and ``zero_based``.

    Raises
    ------
    InputError
        For the first bad line, as ``path:line: what is wrong``; also if the file is empty, or gzip data are damaged or
        truncated.
    OSError
        FileNotFoundError, PermissionError, IsADirectoryError and so on, if the file cannot be read.

    See Also
    --------
    save_letor : Write the format.
    load_table : Tables with named columns.
    open_dataset : Data larger than memory.

    Notes
    -----
    O(bytes): the text is parsed once, in blocks of a few megabytes, while it is read. Peak memory is about that of the
    arrays; for dense tables whose lines omit features, half as much again.

    Examples
    --------
    >>> import io
    >>> from rankrls.io import load_letor
    >>> table = load_letor(io.BytesIO(b"2 qid:7 1:0.5 2:1e-3 # docid = 12\n0 qid:7 2:4\n"))
    >>> table.X
    array([[5.e-01, 1.e-03],
           [0.e+00, 4.e+00]])
    >>> table.y, table.qid
    (array([2., 0.]), array([7, 7]))
    >>> table.comments
    ['docid = 12', '']
    """
    if n_features is not None:
        check_count("n_features", n_features, none="as many as there are")
    for key, choice in (("zero_based", zero_based), ("dense", dense)):
        if not isinstance(choice, bool) and choice != "auto":
            raise InputError(f"{key} must be True, False or 'auto'; got {choice!r}.", parameter=key)
    known = Schema(
        n_features=n_features,
        first_feature=None if zero_based == "auto" else int(not zero_based),
        dtype=float_type(dtype),
        dense=None if dense == "auto" else dense,
    )
    with open_rows(path, "letor") as text:
        return text.read(known)


def load_table(
    path: TableSource,
    *,
    label: str | None = None,
    qid: str | None = None,
    id: str | None = None,
    features: Names | None = None,
    ignore: Names = (),
    labels: Literal["required", "optional", "ignored"] = "required",
    format: str = "auto",
    dtype: DTypeLike = np.float64,
) -> Rows:
    r"""Read learning-to-rank data from a table with named columns: a file, a data frame, or dicts of rows.

    Every column other than the label, the query id and the item id is a feature, unless it is ignored. A feature is a
    finite number in every row: a column with anything else must be ignored by name, and a missing value is an error
    that names its row and column. ``true`` and ``false`` are 1 and 0.

    In JSON and dicts, the fields of nested objects are columns called ``outer.inner``; so are the names in ``_ltrlog``,
    the features that Elasticsearch and OpenSearch log (0 for a feature without a value, which did not match).

    Folders called ``column=value`` directly above a file, as Hive and Spark write partitions, are columns too.

    A column of a typed format may contain lists of numbers of equal length, as embeddings are stored. Each position in
    the lists is then a feature: a column "emb" becomes ``emb[0]``, ``emb[1]``, and so on.

    Parameters
    ----------
    path : path, binary file object, data frame or list of dicts
        CSV, TSV, lines of JSON, Parquet or Arrow (Feather). Text is UTF-8, plain or gzip (recognized by its first
        bytes). The delimiter is the comma, semicolon, tab or vertical bar that is most frequent in the first line, or
        the tab if the file's name ends in ``.tsv``. A data frame can be from pandas, polars, pyarrow or any other
        library with ``__arrow_c_stream__``.
    label, qid, id : str, optional
        Names of columns. By default "label", "qid" and "docid", if they exist. The rows of a query need not be
        adjacent.
    features : sequence of str, optional
        Names of the feature columns, in the order of the columns of ``X``. In a pattern, ``*`` matches any text and
        ``?`` one character; it selects all matching columns, in file order. A column of lists is selected by its own
        name or those of its features. Other columns are not read.
    ignore : sequence of str, default=()
        Names or patterns of columns that are not features.
    labels : {"required", "optional", "ignored"}, default="required"
        Whether every row needs a label. "optional": an empty one is NaN, as accepted by
        :class:`~rankrls.TransductiveRankRLS`, and the column may be absent. "ignored": it is not read.
    format : {"auto", "csv", "jsonl", "parquet", "arrow"}, default="auto"
        Format. "auto": Parquet if the file's name ends in ``.parquet`` or ``.pq``, Arrow if it ends in ``.arrow``,
        ``.feather`` or ``.ipc``, lines of JSON if it ends in ``.jsonl`` or ``.ndjson``, text if it ends in ``.csv``,
        ``.tsv`` or ``.tab``; otherwise determined by its first bytes.
    dtype : dtype, default=float64
        Type of ``X``: float64 or float32. Labels are float64.

    Returns
    -------
    Rows
        Rows with ``X``, ``y``, ``qid``, ``ids``, ``feature_names``, ``path`` and ``sha256``.

    Raises
    ------
    InputError
        If a column does not exist, with a similar name; a name occurs twice; a cell is missing or not a number; an id
        is empty or not UTF-8; a whole number in a typed column of numbers is 2^53 or more; or a row or a list has
        another length. Its attributes ``file``, ``row`` (counted from 0 below the line of names) and ``column`` name
        the place; for quotes that do not match, ``line`` does.
    OSError
        If the file cannot be read.

    Warns
    -----
    InputWarning
        If items have different labels in one query; see :func:`resolve_conflicts`.

    See Also
    --------
    load_letor : LETOR, SVMlight and RankLib text.
    rankrls.preprocessing.TableEncoder : Categories, missing values, dates and texts.
    open_dataset : Data larger than memory.

    Notes
    -----
    O(bytes). Files other than lines of JSON are read a few megabytes at a time, and peak memory is about twice that of
    the arrays. In delimited text, the first line names the columns. Blank lines, CRLF line ends, a byte order mark and
    a missing last line end are allowed; cells may be quoted, and have at most 131,072 characters; blanks around a cell
    are removed. Numbers are read as by Python's ``float``, to the last bit; decimal commas and underscores are refused.
    Ids are texts, so ``007`` is not 7; they become int64 only if every one is a whole number as written by Python.

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
    check_word("format", format, ("auto", *TABLES))
    roles = ColumnRoles.checked(label, qid, id, features, ignore, labels)
    with open_table(path, format) as file:
        table = file.read(file.schema(replace(roles, known=Schema(dtype=float_type(dtype)))))
    if conflict := conflict_text(table):
        warn_user(InputWarning(f"{conflict} rankrls.io.resolve_conflicts keeps one row of each.", file=table.path))
    return table


@dataclass(frozen=True)
class ReadOptions(ColumnRoles):
    """Options for reading files: roles of their columns, and the schema determined by the first file or a model.

    Attributes
    ----------
    features : tuple of str, optional
        Columns of features; for LETOR text one word, their number.
    queries : {"required", "optional", "ignored"}
        Whether every row needs a query id; "ignored" makes one ranking of all rows.
    missing : tuple of str, optional
        Cell texts that become null in text files, if columns of tables stay unchanged for an encoder; () means
        ``MISSING``. None reads numbers.
    sizes : path, optional
        File with the number of rows of each query, for rows without query ids; by default the file with the name of
        the rows followed by ``.query`` or ``.group``, if it exists.
    """

    queries: Literal["required", "optional", "ignored"] = "required"
    missing: tuple[str, ...] | None = None
    sizes: Path | None = None

    def read(self, path: Path, note: Callable[[str], object]) -> Rows:
        """Read a file; "-" is standard input.

        Parameters
        ----------
        path : path
        note : callable
            Function that is called with each note for the user.

        Raises
        ------
        InputError
            If a file cannot be read in this way, with the line; or if required query ids are missing.
        OSError
            If the file cannot be read.
        """
        format = format_of(path)
        with open_rows(sys.stdin.buffer if str(path) == "-" else path, format) as file:
            try:
                schema = file.schema(self)
                table = file.read(schema) if self.missing is None else file.cells(schema, self.missing)
            except InputError as error:
                if format != "letor" or (error.line is not None and error.column != "label"):
                    raise
                why = f"(It is read as LETOR text; tables end in {', '.join(ENDINGS)}.)"  # it may be another format
                raise error.replace(message=f"{error.message} {why}") from error
        if self.queries != "ignored":
            from_sizes = ids_of_sizes(path, self.sizes, table.n_rows, table.qid is not None, note)
            if from_sizes is not None:
                table = replace(table, qid=from_sizes[0])
            if table.qid is None and self.queries == "required":
                message = "there are no query ids. Name their column (qid), pass query sizes (group), or rank all rows"
                raise InputError(f"{message} together (global).", file=table.path, parameter="qid")
        clicks = self.position is not None or companion_file(path, POSITIONS) is not None
        judged = self.labels != "ignored" and self.event is None and not clicks
        if judged and (conflict := conflict_text(table)):
            note(f"{table.path}: {conflict} rankrls convert --conflicts keeps one row of each.")
        return replace(table, qid=None) if self.queries == "ignored" else table


def read_scores(path: Path, options: ReadOptions, rows: Rows) -> Array:
    """Score of each row from a file: one per line, or a table written by predict; "-" is standard input.

    In a table, scores are in the column "score", and ids in columns with the same names as in the data.

    Raises
    ------
    InputError
        If a line is not a score, with the line; if the number of scores is not that of the rows; or if ids differ.
    """
    both: list[tuple[Any, Any]] = []
    if is_table(path):
        columns = {role: getattr(options, role) or options.usual_names[role] for role in ("qid", "id")}
        roles = ColumnRoles(features=("score",), labels="ignored", known=Schema(columns=columns))
        with open_table(path) as file:
            table = file.read(file.schema(roles))
        values: Array = table.X[:, 0]
        both = [(table.qid, rows.qid), (table.ids, rows.docids)]
    else:
        values = number_lines(path, "score of one row")
    if len(values) != rows.n_rows:
        message = f"{len(values)} scores do not fit the {rows.n_rows} rows of {rows.path}. Each row needs one."
        raise InputError(message, file=str(path))
    for mine, theirs in both:
        if mine is None or theirs is None:
            continue
        differ = mine.astype(str) != theirs.astype(str)
        if differ.any():
            row = int(np.argmax(differ))
            message = f"row {row} has the id {str(mine[row])!r}, but {str(theirs[row])!r} in {rows.path}."
            raise InputError(f"{message} The scores must be in the order of the rows.", file=str(path), row=row)
    return values


@dataclass(frozen=True)
class Records:
    """Unchanged rows of files, which can be written again.

    Attributes
    ----------
    rows : pyarrow Table
        Rows in the form of :meth:`Reader.unchanged`.
    qid : list or None
        Query id of each row; None if the files have none.
    ending : str
        Ending of the names of such files.
    sizes_ending : str or None
        Ending of the name of the file with query sizes, if there is one.
    """

    rows: Any
    qid: list[Any] | None
    ending: str
    sizes_ending: str | None = None

    def write(self, target: Path, rows: Sequence[int]) -> None:
        """Write some rows, in their order, as one file of the same format.

        If query sizes are in a companion file of the rows, one is written too.
        """
        import pyarrow as pa

        kept = np.zeros(len(self.rows), dtype=bool)
        kept[[*rows]] = True
        found = self.rows.filter(pa.array(kept))
        format = format_of(target)
        write_stored(target, found["line"].to_pylist() if format == "letor" else [found], format)
        if self.sizes_ending is not None and self.qid is not None:
            with atomic_write(f"{target}{self.sizes_ending}", "w") as sizes:
                sizes.writelines(f"{count}\n" for count in Counter(compress(self.qid, kept)).values())


def read_records(path: Path, options: ReadOptions, note: Callable[[str], object]) -> Records:
    """Rows of a file, a folder or a pattern; ``note`` is called if another file contains their query ids.

    Raises
    ------
    InputError
        If a file is not of its format, or has other columns than the first.
    OSError
        If a file cannot be read.
    """
    import pyarrow as pa

    files = expanded_paths(path)
    format = format_of(files[0])
    tables = list[Any]()
    ids = list[AnyArray]()
    for name in files:
        with open_rows(name, format) as file:
            schema = file.schema(ColumnRoles(qid=options.qid, features=(), labels="ignored"))
            found = file.read(replace(schema, columns={k: v for k, v in schema.columns.items() if k == "qid"}))
        ids += [] if found.qid is None else [found.qid]
        with open_rows(name, format) as file:  # text is read once
            tables.append(file.unchanged())
        if tables[-1].column_names != tables[0].column_names:
            raise InputError(f"the columns differ from those of {files[0]}. {_REMEDY}", file=name)
    qid = joined_ids(ids).tolist() if len(ids) == len(files) else None
    bare = files[0].removesuffix(".gz")
    ending = Path(bare).suffix if is_data(bare) else ".txt"
    try:
        rows = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(f"the files have columns of different types ({error}). {_REMEDY}", file=str(path)) from None
    records = Records(rows, qid, ending + files[0].removeprefix(bare))
    from_sizes = ids_of_sizes(path, options.sizes, len(rows), qid is not None, note)
    if from_sizes is None:
        return records
    return replace(records, qid=from_sizes[0].tolist(), sizes_ending=from_sizes[1])


@contextmanager
def open_rows(source: Any, format: str) -> Iterator[Reader]:
    """Open a path or a binary file in the given format."""
    name = source_name(source)
    is_open = hasattr(source, "read")
    with nullcontext(source) if is_open else open(source, "rb") as file:
        if format != "letor" and (is_open or not file.seekable()):
            file = io.BytesIO(file.read())
        if format == "auto":
            start = file.read(8)
            file.seek(0)
            format = next(known for known in TABLES if start.startswith(FORMATS[known].start))
        stored = FORMATS[format].stored
        yield LetorText(name, file) if stored is None else Table(name, file, stored)


@contextmanager
def open_table(source: Any, format: str = "auto") -> Iterator[Table]:
    """Open a table and read its header.

    Parameters
    ----------
    source : path, binary file object, data frame or dicts of rows
    format : str, default="auto"
        A format of tables; "auto" selects by the name, or else by the first bytes.
    """
    name = f"<{type(source).__name__}>"
    source = unrecorded(source, "path")
    if hasattr(source, "__arrow_c_stream__"):
        yield Table(name, source, Frame)
        return
    by_name = format_of(source_name(source))
    if format == "auto" and by_name in TABLES:
        format = by_name
    with open_rows(source, format) as table:
        assert isinstance(table, Table)
        yield table
