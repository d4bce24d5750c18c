"""Arrays to LETOR text."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankrls._checks import check_finite
from rankrls._compiled.threads import stream_threads
from rankrls._errors import InputError
from rankrls.io._atomic import atomic_write
from rankrls.io._rows import coded

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_BLOCK_ENTRIES = 200_000
_BREAKS_A_QID = re.compile("[ \t\r\v\f\n#\0]|^$")


def save_letor(
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    comments: Sequence[str] | None = None,
    zero_based: bool = False,
) -> None:
    """Write learning-to-rank data as LETOR text, which :func:`load_letor` reads back bit for bit.

    ``label qid:ID 1:value 2:value ... # comment``, one row a line. Numbers are the shortest decimals that are the same
    float64; float32 values are written as the float64 that equals them, so that they come back the same as either. The
    file is written under another name and renamed when it is complete and on disk: it is there as a whole, or what was
    there before is.

    Parameters
    ----------
    path : path
        Compressed with gzip where it ends in ``.gz``.
    X : array-like or sparse array of shape (m, n)
        Features. Of a sparse one the stored entries are written. Where columns at the end (or, with ``zero_based``,
        column 0) would be in no line, the first line names the last (first) one with value 0, so that the shape comes
        back too.
    y : array-like of shape (m,)
        Labels.
    qid : array-like of shape (m,), optional
        Whole numbers or strings, as they shall stand in the file: strings without blanks, ``#`` and NUL. (Strings all
        of which look like whole numbers are read back as such.)
    comments : sequence of m str, optional
        Go behind ``#``, without blanks at their ends; an empty one is left out.
    zero_based : bool, default=False
        Call column 0 feature 0 instead of 1.

    Raises
    ------
    ValueError
        Where lengths differ, a value is NaN or infinite, or a qid or comment cannot be written. Nothing is left behind.
    OSError
        Where the file cannot be written, the disk being full for one. The target keeps its old content.

    Notes
    -----
    O(entries), formatted by pyarrow on all threads; memory is a few blocks of text.

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
    features = as_features(X)
    rows, columns = features.shape
    labels = np.asarray(y, dtype=np.float64)
    check_shape("y", labels, rows, "label")
    check_finite("y", labels, "label")
    ids = None if qid is None else _qid_texts(qid, rows)
    notes = _comment_texts(comments, rows)
    first_id, entries = 0 if zero_based else 1, features.size
    if isinstance(features, np.ndarray):
        check_finite("X", features, "feature")
    else:
        features = _named_columns(features, [columns - 1] if first_id else sorted({0, columns - 1}))
    step = max(1, _BLOCK_ENTRIES // (entries // rows + 5))

    def block(start: int) -> bytes:
        here = slice(start, min(start + step, rows))
        part: Any = features[here]
        if isinstance(part, np.ndarray):
            indptr, at, values = (
                np.arange(len(part) + 1) * columns,
                np.tile(np.arange(columns), len(part)),
                part.ravel(),
            )
        else:
            indptr, at, values = part.indptr, part.indices, part.data
        return lines(indptr, at + first_id, values, labels[here], ids and ids[here], notes and notes[here])

    with atomic_write(path) as file, packed(file, os.fspath(path)) as sink:
        for text in stream_threads(block, range(0, rows, step)):
            sink.write(text)


def packed(file: IO[bytes], name: str) -> AbstractContextManager[IO[bytes]]:
    if name.endswith(".gz"):
        # no name and no time inside: the same table gives the same file
        return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)  # type: ignore[return-value]
    return nullcontext(file)


def as_features(X: Any) -> NDArray[Any] | csr_array:
    """Features to write; of a sparse array each entry once."""
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_array

        X = csr_array(X)
        if X.ndim == 2 and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = np.asarray(X)
    if X.ndim != 2:
        raise InputError(f"X must have two dimensions, rows and features; got shape {X.shape}.", parameter="X")
    if 0 in X.shape:
        raise InputError(f"X has shape {X.shape}: there is nothing to write.", parameter="X")
    return X


def check_shape(name: str, values: NDArray[Any], rows: int, each: str) -> None:
    """Refuse anything but one value for each row."""
    if values.shape != (rows,):
        raise InputError(
            f"{name} has shape {values.shape}, but X has {rows} rows: it needs one {each} per row.", parameter=name
        )


def _named_columns(X: csr_array, columns: list[int]) -> csr_array:
    """Sparse features whose first row names the columns that no row does, as 0, so that the shape comes back."""
    from scipy.sparse import csr_array

    finite = np.isfinite(X.data)
    if not finite.all():
        entry = int(np.argmin(finite))
        row, column = int(np.searchsorted(X.indptr, entry, side="right")) - 1, int(X.indices[entry])
        problem = f"X holds {X.data[entry]} in row {row}, column {column}: every feature must be a finite number."
        raise InputError(problem, parameter="X", row=row, column=column)
    missing = np.setdiff1d(columns, X.indices)
    starts = X.indptr + len(missing) * (np.arange(len(X.indptr)) > 0)
    values, at = np.append(np.zeros(len(missing), X.dtype), X.data), np.append(missing, X.indices)
    named = csr_array((values, at, starts), shape=X.shape)
    named.sort_indices()
    return named


def lines(
    indptr: NDArray[Any],
    ids: NDArray[Any],
    values: NDArray[Any],
    labels: NDArray[np.float64],
    qids: list[bytes] | None = None,
    notes: list[bytes] | None = None,
) -> bytes:
    """Rows as text: each one's label, query id, entries and comment."""
    import pyarrow as pa
    import pyarrow.compute as pc

    decimals = lambda numbers: pa.array(numbers).cast(pa.large_string())
    blank, colon, nothing = (pa.scalar(text, pa.large_string()) for text in (" ", ":", ""))
    entries = pc.binary_join_element_wise(blank, decimals(ids), colon, decimals(values.astype(np.float64)), nothing)
    rows = pa.LargeListArray.from_arrays(indptr.astype(np.int64), entries)
    parts = [decimals(labels), pc.binary_join(rows, nothing)]
    parts = [part.cast(pa.large_binary()) for part in parts]
    if qids is not None:
        parts.insert(1, pa.array([b" qid:" + qid for qid in qids], pa.large_binary()))
    if notes is not None:
        parts.append(pa.array([b" # " + note if note else b"" for note in notes], pa.large_binary()))
    ends = (pa.scalar(text, pa.large_binary()) for text in (b"\n", b""))
    return b"".join(pc.binary_join_element_wise(*parts, *ends).to_pylist())


def _qid_texts(qid: ArrayLike, rows: int) -> list[bytes]:
    ids = np.asarray(qid)
    check_shape("qid", ids, rows, "query id")
    different, codes = coded(ids.tolist())
    out = []
    for k, value in enumerate(different):
        if isinstance(value, bool) or not isinstance(value, str | int) or _BREAKS_A_QID.search(str(value)):
            row = int(np.argmax(codes == k))
            rule = "it must be a whole number or a string, not empty and without blanks, # and NUL."
            raise InputError(f"qid is {value!r} in row {row}: {rule}", parameter="qid", row=row)
        out.append(str(value).encode("utf-8", "surrogateescape"))
    return [out[code] for code in codes.tolist()]


def _comment_texts(comments: Sequence[str] | None, rows: int) -> list[bytes] | None:
    if comments is None:
        return None
    if len(comments) != rows:
        raise InputError(f"There are {len(comments)} comments, but X has {rows} rows.", parameter="comments")
    out = []
    for row, comment in enumerate(comments):
        if "\n" in comment:
            problem = f"The comment of row {row} holds a line end, which LETOR text cannot hold: {comment!r}."
            raise InputError(problem, parameter="comments", row=row)
        out.append(comment.strip(" \t\r\v\f").encode("utf-8", "surrogateescape"))
    return out
