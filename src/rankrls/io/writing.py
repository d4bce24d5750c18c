"""Conversion of arrays to LETOR text and to tables with named columns, and of rankings to text."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from rankrls._cells import is_missing, unmasked
from rankrls._checks import check_finite
from rankrls._compiled import stream_threads
from rankrls._errors import InputError
from rankrls._rows import check_finite_features, row_slices
from rankrls._typing import AnyArray, Array, PathLike
from rankrls.io._text import BLANKS, objects
from rankrls.io.columns import check_names
from rankrls.io.files import atomic_write
from rankrls.io.formats import ENDINGS, FORMATS, format_of, is_table
from rankrls.io.rows import Rows
from rankrls.ranking import Ranking, rank_scores

_BLOCK_CELLS = 1 << 18
_BREAKS_A_QID = re.compile("[ \t\r\v\f\n#\0]|^$")


def save_letor(
    path: PathLike,
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    comments: Sequence[str] | None = None,
    zero_based: bool = False,
) -> None:
    """Write learning-to-rank data as LETOR text, from which :func:`load_letor` reads the same numbers, to the last bit.

    Each line is a row: ``label qid:ID 1:value 2:value ... # comment``. Numbers are the shortest decimals that represent
    the same float64; float32 values are written as equal float64, so that they are read back unchanged in either type.
    The file is written under another name and renamed when it is complete and on disk, so it is written completely or
    not changed.

    Parameters
    ----------
    path : path
        Path; the file is compressed with gzip if it ends in ``.gz``.
    X : array-like or sparse array of shape (m, n)
        Features. For sparse X, writes only stored entries: pass ``n_features`` and ``zero_based`` to :func:`load_letor`
        if the last or first column may have no entry.
    y : array-like of shape (m,)
        Labels.
    qid : array-like of shape (m,), optional
        Whole numbers or strings, which are written unchanged: strings without blanks, ``#`` and NUL. (Strings that all
        look like whole numbers are read back as such.)
    comments : sequence of m str, optional
        Texts written after ``#``, stripped; empty ones are left out. Single words, such as doc-0096, are read as item
        ids.
    zero_based : bool, default=False
        Whether column 0 is feature 0 instead of 1.

    Raises
    ------
    ValueError
        If lengths differ, a value is NaN or infinite, or a qid or comment cannot be written. No file is then left.
    OSError
        If the file cannot be written, for example because the disk is full. The target keeps its old content.

    Notes
    -----
    O(entries), with formatting by pyarrow on all threads; memory is a few blocks of text.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankrls.io import load_letor, save_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.txt")
    ...     save_letor(path, [[0.5, 1e-9], [0, 4]], [2, 0], qid=[7, 7], comments=["docid = 12", ""])
    ...     with open(path) as file:
    ...         print(file.read(), end="")
    2 qid:7 1:0.5 2:1e-9 # docid = 12
    0 qid:7 1:0 2:4
    """
    features = _features(X, None)
    rows, columns = features.shape
    labels = _vector("y", y, rows, np.float64)
    check_finite("y", labels, "label")
    ids = [b""] * rows if qid is None else _qid_texts(_vector("qid", qid, rows))
    notes = [b""] * rows if comments is None else _comment_texts(_vector("comments", comments, rows, object))
    first_id = int(not zero_based)
    step = max(1, _BLOCK_CELLS // (features.size // rows + 5))

    def block(here: slice) -> bytes:
        part: Any = features[here]
        if sparse.issparse(part):
            entries = part.indptr, part.indices + first_id, part.data
        else:
            ends = np.arange(len(part) + 1) * columns
            entries = ends, np.tile(np.arange(first_id, first_id + columns), len(part)), part.ravel()
        return lines(*entries, labels[here], ids[here], notes[here])

    write_stored(path, stream_threads(block, row_slices(rows, step)), "letor")


def save_table(
    path: PathLike,
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
    """Write learning-to-rank data as a table that :func:`load_table` reads: text, Parquet or Arrow.

    The columns are the label, the query id and the item id, if given, followed by the features. The file is written
    under another name and renamed when it is complete and on disk.

    Parameters
    ----------
    path : path
        Path that ends in ``.csv``, ``.tsv``, ``.jsonl``, optionally with ``.gz``, ``.parquet``, ``.arrow`` or
        ``.feather``.
    X : array-like or sparse array of shape (m, n)
        Features; for sparse X, zeros are written too.
    y : array-like of shape (m,), optional
        Labels; NaN becomes an empty cell.
    qid, ids : array-like of shape (m,), optional
        Whole numbers or strings that are not empty. Text formats keep no blanks around them.
    feature_names : sequence of n str, optional
        Names of the features; f1, f2, ... by default.
    label, qid_name, id_name : str
        Names of these columns.

    Raises
    ------
    ValueError
        If the path has another ending, lengths differ, a feature is NaN or infinite, an id is empty or not UTF-8, or
        two columns have the same name. No file is then left.
    OSError
        If the file cannot be written. The target keeps its old content.

    Notes
    -----
    O(m n). Numbers in text are the shortest decimals that represent the same float64. Memory is a block of rows.
    Strings that all look like whole numbers are read back from text as such.

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
    names = None if feature_names is None else [*map(str, feature_names)]
    features = _features(X, names)
    rows, n = features.shape
    names = [f"f{k}" for k in range(1, n + 1)] if names is None else names
    leading: list[tuple[str, AnyArray]] = []
    given: Any = (("y", label, y), ("qid", qid_name, qid), ("ids", id_name, ids))
    for what, name, values in given:
        if values is not None:
            column = _vector(what, values, rows, np.float64 if what == "y" else None)
            leading.append((name, _id_texts(name, column)))

    def block(part: slice) -> list[AnyArray]:
        values = features[part].toarray() if sparse.issparse(features) else features[part]
        if format_of(path) == "csv":
            values = np.asarray(values, np.float64)  # the shortest decimals of a float32 are those of another float64
        return [*(column[part] for _, column in leading), *values.T]

    step = max(_BLOCK_CELLS // (len(leading) + n), 1)
    write_blocks(path, [*(name for name, _ in leading), *names], map(block, row_slices(rows, step)))


def write_rows(path: Path, table: Rows, names: Sequence[str] | None, note: Callable[[str], object]) -> None:
    """Write a table in the format of the file's name, with everything that the format can store.

    Parameters
    ----------
    path : path
    table : Rows
    names : sequence of str, optional
        Names of the features, if other than in the table.
    note : callable
        Function that is called with a note about content that the format cannot store.

    Raises
    ------
    InputError
        If LETOR text, or a table, cannot store some values.
    """
    if not is_table(path):
        assert table.y is not None
        comments: Sequence[str] | None = table.comments
        if comments is None and table.docids is not None:
            comments = [f"docid = {name}" for name in table.docids]
        save_letor(path, table.X, table.y, table.qid, comments=comments, zero_based=table.zero_based)
        if table.feature_names is not None:
            names = ", ".join(table.feature_names)
            note(f"LETOR text has no names; the features 1 to {table.n_features} are {names}.")
        return
    ids = table.docids
    columns = table.schema.columns
    save_table(
        path,
        table.X,
        table.y,
        table.qid,
        ids=ids,
        feature_names=names or table.feature_names or [f"f{name}" for name in table.feature_ids],
        label=columns.get("label", "label"),
        qid_name=columns.get("qid", "qid"),
        id_name=columns.get("id", "docid"),
    )
    if table.comments and ids is None:
        note(f"the comments of {table.path} are left out: they do not all name a docid.")


def write_blocks(path: PathLike, names: Sequence[str], blocks: Iterable[Sequence[AnyArray]]) -> None:
    """Write columns, given in parts of some rows, as a table in the format of the path's ending.

    Parameters
    ----------
    path : path
    names : sequence of str
    blocks : iterable
        Columns of the first rows, of the next ones, and so on.
    """
    import pyarrow as pa

    check_names(names)
    format = format_of(path)
    if not is_table(path) or (os.fspath(path).lower().endswith(".gz") and not FORMATS[format].is_text):
        raise InputError(
            f"the name of a table ends in {', '.join(ENDINGS)}; .gz may follow those of text.", file=os.fspath(path)
        )

    columns = ([pa.array(values, from_pandas=True) for values in block] for block in blocks)
    write_stored(path, (pa.Table.from_arrays(block, names=[*names]) for block in columns), format)


def write_stored(path: PathLike, rows: Iterable[Any], format: str) -> None:
    """Write tables of pyarrow, or lines of LETOR text, in a format of ``FORMATS``."""
    path = os.fspath(path)
    with atomic_write(path) as file, ExitStack() as opened:
        if path.endswith(".gz"):
            # no name and no time inside, so that the same table gives the same file
            packed: Any = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
            file = opened.enter_context(packed)
        FORMATS[format].write(file, path, rows)


def _features(X: Any, names: Sequence[str] | None) -> Any:
    """Finite features to write; for a sparse array, without duplicate entries."""
    if hasattr(X, "tocsr"):
        X = sparse.csr_array(X, copy=True)
        X.sum_duplicates()
    else:
        X = np.asarray(unmasked(X))
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(f"X has shape {X.shape}; at least one row and one feature are needed.", parameter="X")
    if names is not None and len(names) != X.shape[1]:
        raise InputError(
            f"feature_names has {len(names)} names, but X has {X.shape[1]} columns.", parameter="feature_names"
        )
    check_finite_features(X, names)
    return X


def _vector(name: str, values: ArrayLike, rows: int, dtype: Any = None) -> AnyArray:
    """Array with one value for each row."""
    out = np.asarray(unmasked(values), dtype=dtype)
    if out.dtype.kind == "U":
        out = np.asarray(values, dtype=object)  # fixed widths would truncate texts
    if out.shape != (rows,):
        raise InputError(
            f"{name} has shape {out.shape}, but X has {rows} rows: it needs one value per row.", parameter=name
        )
    return out


def lines(
    indptr: AnyArray, ids: AnyArray, values: AnyArray, labels: Array, qids: list[bytes], notes: list[bytes]
) -> bytes:
    """Rows as text: label, query id, entries and comment; texts of query ids and comments begin with a blank."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def decimals(numbers: AnyArray) -> Any:
        return pa.array(numbers).cast(pa.string())

    entries = pc.binary_join_element_wise(" ", decimals(ids), ":", decimals(values.astype(np.float64)), "")
    rows = pc.binary_join(pa.ListArray.from_arrays(indptr.astype(np.int32), entries), "")
    texts = (decimals(labels), pa.array(qids, pa.binary()), rows, pa.array(notes, pa.binary()))
    joined = pc.binary_join_element_wise(*(text.cast(pa.binary()) for text in texts), b"\n", b"")
    return b"".join(joined.to_pylist())


def _qid_texts(ids: AnyArray) -> list[bytes]:
    for row, value in enumerate(ids.tolist()):
        if isinstance(value, bool) or not isinstance(value, str | int) or _BREAKS_A_QID.search(str(value)):
            rule = "it must be a whole number or a string, not empty and without blanks, # and NUL."
            raise InputError(f"qid is {value!r} in row {row}: {rule}", parameter="qid", row=row)
    return [f" qid:{value}".encode("utf-8", "surrogateescape") for value in ids.tolist()]


def _comment_texts(comments: AnyArray) -> list[bytes]:
    for row, comment in enumerate(comments):
        if "\n" in comment:
            problem = f"The comment of row {row} contains a line end, which LETOR text cannot store: {comment!r}."
            raise InputError(problem, parameter="comments", row=row)
    bare = [comment.strip(BLANKS) for comment in comments]
    return [f" # {comment}".encode("utf-8", "surrogateescape") if comment else b"" for comment in bare]


def _id_texts(name: str, ids: AnyArray) -> AnyArray:
    """Ids, texts as ``str``."""
    if ids.dtype.kind not in "TO":
        return ids
    texts = ["" if is_missing(value) else str(value) for value in ids.tolist()]
    if "" in texts:
        row = texts.index("")
        raise InputError(f"column {name!r} is empty in row {row}: every row needs an id.", row=row, column=name)
    return objects(texts)


def tab_lines(columns: Iterable[AnyArray | None], rows: int) -> str:
    """Columns of some rows as tab-separated text; None gives an empty column."""
    text = io.StringIO()
    cells = ([""] * rows if column is None else column.tolist() for column in columns)
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(zip(*cells, strict=True))
    return text.getvalue()


def trec_ranking(scores: Array, qid: AnyArray | None, docno: Sequence[str], k: int | None = None) -> Ranking:
    """Items of each query in the order of trec_eval.

    trec_eval stores scores in single precision, and orders equal ones with the greater document id first.
    """
    most = np.finfo(np.float32).max
    with np.errstate(over="ignore"):
        single = np.clip(scores.astype(np.float32), -most, most).astype(np.float64)
    found = rank_scores(single, qid=qid, k=k, docno=docno)
    return replace(found, scores=scores[found.rows])


def trec_rows(ranking: Ranking, names: Sequence[str], run: str) -> str:
    """A run with ``query Q0 document rank score run`` on each line; without query ids, everything is query 1.

    Parameters
    ----------
    ranking : Ranking
        Ranking by :func:`trec_ranking`.
    names : sequence of str
        Document ids of the ranked items, in their order.
    run : str
        Name of the run.

    Raises
    ------
    InputError
        If a query or a document name is not a single word.
    """
    queries = ["1"] * len(ranking.rows) if ranking.qid is None else [str(query) for query in ranking.qid.tolist()]
    called = [str(name) for name in names]
    for k, word in chain(enumerate(called), enumerate(queries)):
        if len(word.split()) != 1:
            row = int(ranking.rows[k])
            raise InputError(f"ids in the trec format cannot contain blanks; row {row} has {word!r}.", row=row)
    columns = zip(queries, called, ranking.positions.tolist(), ranking.scores.tolist(), strict=True)
    return "".join(f"{q} Q0 {name} {place} {score!r} {run}\n" for q, name, place, score in columns)
