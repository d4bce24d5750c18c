"""Open files that are read a part at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from os import PathLike
from typing import Any, Literal

from rankrls._checks import check_count, check_word
from rankrls._errors import InputError, InputWarning
from rankrls.io.datasets.dataset import Dataset
from rankrls.io.datasets.files import File, Paths, expanded_paths, one_format
from rankrls.io.datasets.index import Begun, Cut, cut, together
from rankrls.io.tables.columns import Wanted

_PART_BYTES = 1 << 26
_MANY_ROWS = 1_000_000
_MODULES = {"letor": "letor", "csv": "tables", "parquet": "parquet"}


def open_dataset(
    path: Paths,
    *,
    label: str | None = None,
    qid: str | None = None,
    id: str | None = None,
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
    weight: str | None = None,
    labels: Literal["required", "optional", "ignored"] = "required",
    format: Literal["auto", "letor", "csv", "parquet"] = "auto",
    rows_per_part: int | Callable[[int], int] | None = None,
) -> Dataset:
    r"""Open files that memory need not hold: Parquet, CSV or TSV, or LETOR text.

    Query ids, labels and weights are read, and of Parquet the footers; the features only when a part is read. The files
    are one data set, in the order in which they are given. The rows of a query lie together, also over the end of a
    file. Text is plain, not packed: each part is read from its bytes on.

    Parameters
    ----------
    path : path or sequence of paths
        A file, several, a pattern such as ``"shards/*.parquet"``, or a folder, with its partitions (folders called
        ``key=value``). Files of a pattern or a folder are read in the order of their names, ``part-2`` before
        ``part-10``. All have one format, by their names, and one schema.
    label, qid, id : str, optional
        Names of columns of tables. By default "label", "qid" and "docid", where there are such columns; that of the
        query ids has to be there.
    features : sequence of str, optional
        Names or patterns of the feature columns, as for :func:`load_table`; by default all others. Columns hold
        numbers, or of Parquet lists of numbers, all of one length: the features of a column "emb" are called
        ``emb[0]``, ``emb[1]``, ... Of LETOR text one word, how many features there are: ``"136"``.
    ignore : sequence of str, default=()
        Columns that are no features, by names or patterns.
    weight : str, optional
        Name of a column of weights, finite and not negative.
    labels : {"required", "optional", "ignored"}, default="required"
        Whether every row needs a label, as for :func:`load_table`; rows without one have NaN.
    format : {"auto", "letor", "csv", "parquet"}, default="auto"
        "auto": by the files' names; LETOR text if they say nothing.
    rows_per_part : int or callable, optional
        Rows of a part, at most. By default as many as make 64 MiB of features; a function of the number of features
        may make them fewer. A query that is longer than a part comes in several, which know the labels of the whole.

    Returns
    -------
    Dataset
        ``n_rows``, ``n_queries``, ``feature_names`` and so on; iterate over it, or read one of its ``parts``.

    Raises
    ------
    InputError
        For files of several schemas, naming file and column; query ids that come back after another query, naming both
        places; labels, weights and features that are missing or no numbers.
    OSError
        If a file cannot be read.

    Notes
    -----
    O(rows) for Parquet, O(bytes) for text, which is scanned once; O(cells) to read all parts. Memory: that of a part,
    and 8 bytes a query while the data are opened.

    Parts end where row groups end, as far as queries allow it. A part that begins inside a row group has to decode what
    comes before, unless the same thread has just read that: parts that are read in their order cost a thread one pass
    over each group. Groups of some 100,000 rows are a good size; ``rankrls convert`` writes them.

    Features of Parquet are float32 if every feature column is no wider, and one of them is float32; otherwise float64.
    LETOR text that writes fewer than one cell in ten comes as CSR arrays. The same features that :func:`load_table` and
    :func:`load_letor` give, to the last bit.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from rankrls.io import open_dataset, save_table
    >>> X, qid = np.arange(12, dtype=np.float32).reshape(6, 2), [7, 7, 8, 8, 8, 9]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_table(os.path.join(folder, "a.parquet"), X[:4], [2, 0, 1, 0], qid[:4], feature_names=["bm25", "age"])
    ...     save_table(os.path.join(folder, "b.parquet"), X[4:], [0, 1], qid[4:], feature_names=["bm25", "age"])
    ...     data = open_dataset(os.path.join(folder, "*.parquet"), rows_per_part=4)
    ...     print(data)
    ...     for part in data:
    ...         print(part.number, part.X.dtype, part.query, part.y)
    <Dataset of 2 parquet files: 6 rows, 2 features, 3 queries, 2 parts>
    0 float32 [0 0] [2. 0.]
    1 float32 [1 1 1 2] [1. 0. 0. 1.]
    """
    wanted = replace(Wanted.checked(label, qid, id, features, ignore, labels), weight=weight)
    if not callable(rows_per_part) and rows_per_part is not None:
        check_count("rows_per_part", rows_per_part, none="64 MiB of features")
    data = look(path, wanted, format, rows_per_part)
    _warn_of_large_groups(data)
    return data


def look(
    path: Paths,
    wanted: Wanted,
    format: str,
    rows_per_part: int | Callable[[int], int] | None,
    watched: Callable[[Begun], Begun] = lambda found: found,
) -> Dataset:
    """:func:`open_dataset`, its arguments checked; ``watched`` hands on what is seen of the rows."""
    files = tuple(File.of(file) for file in expanded_paths(path))
    opening = begin(files, wanted, format)

    def cut_into(rows: int) -> Dataset:
        outlines = lambda: opening.outlines(files)
        return opened(files, opening, cut(watched(together(outlines, files, opening.qid_name)), rows))

    data = cut_into(_most_rows(rows_per_part, opening))
    if (less := _most_rows(rows_per_part, opening)) < max(address.rows for address in data.parts):
        data = cut_into(less)  # the first lines of the text name fewer features than others
    named = [path] if isinstance(path, str | PathLike) else path
    return replace(data, path=", ".join(str(each) for each in named))


def _most_rows(rows_per_part: int | Callable[[int], int] | None, opening: Any) -> int:
    """Rows of a part, as far as the files have been looked at."""
    usual = max(_PART_BYTES // max(opening.row_bytes, 1), 1)
    if callable(rows_per_part):
        return max(min(int(rows_per_part(opening.n_features)), usual), 1)
    return usual if rows_per_part is None else int(rows_per_part)


def _warn_of_large_groups(data: Dataset) -> None:
    """Say so if much is read again, because parts begin deep inside of row groups."""
    again = sum(span.skip for address in data.parts for span in address.spans)
    if data.source.format == "parquet" and again > max(_MANY_ROWS, data.n_rows):
        problem = (
            "row groups are so large that every thread decodes all of them, and another process {0:.1f} rows for each"
        )
        problem += " that it uses:"
        remedy = "Write smaller ones by rankrls convert DATA FOLDER --rows-per-file N, or raise {rows_per_part}."
        share = 1 + again / data.n_rows
        warning = InputWarning(problem, share, remedy=remedy, file=data.files[0].name, parameter="rows_per_part")
        warnings.warn(warning, stacklevel=3)


def begin(files: tuple[File, ...], wanted: Wanted, format: str) -> Any:
    """Look at the schema of files; what comes back gives their outlines, and then says how rows are read."""
    check_word("format", format, ("auto", *_MODULES))
    kind = one_format([file.name for file in files]) if format == "auto" else format
    if kind == "arrow":
        remedy = "Write shards: rankrls convert DATA FOLDER --rows-per-file N."
        raise InputError("an Arrow file cannot be read a part at a time.", remedy=remedy, file=files[0].name)
    opener = import_module(f"rankrls.io.datasets.{_MODULES[kind]}")  # when it is needed
    return opener.open_files(files, wanted)


def opened(files: tuple[File, ...], opening: Any, found: Cut) -> Dataset:
    """The data set, after all rows have been looked at."""
    if found.rows == 0:
        raise InputError("the files have no rows.", file=files[0].name)
    return Dataset(files, opening.settled(), found.parts, found.rows, found.runs)
