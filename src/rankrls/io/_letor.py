"""LETOR text to arrays: the blocks of a file joined to a table, or one table each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankrls._checks import check_count
from rankrls._compiled.threads import map_threads
from rankrls._compiled.threads import n_threads as usual_threads
from rankrls._errors import InputError
from rankrls.io._letor_blocks import LetorBlock, LetorReader, Seen
from rankrls.io._letor_loop import scatter
from rankrls.io._rows import coded, float_type, objects
from rankrls.io._source import block_size, blocks, open_bytes
from rankrls.io._table import LetorTable

DENSE_FROM = 0.1
"""Share of written cells from which on a table is dense: a sparse product costs some ten times a dense one a cell."""


def load_letor(
    path: str | os.PathLike[str] | BinaryIO,
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dense: bool | Literal["auto"] = "auto",
    dtype: DTypeLike = np.float64,
    n_threads: int | None = None,
) -> LetorTable:
    r"""Read learning-to-rank data: LETOR, SVMlight, SVMrank or RankLib text, plain or gzip.

    One row a line: ``label qid:ID 1:value 2:value ... # comment``. Features that a line does not name are 0, in any
    order, each at most once; the qid may stand anywhere behind the label, or in no line at all. Blanks, blank lines,
    lines that hold a comment only, CRLF line ends, a byte order mark and a missing last line end are no matter. Gzip
    is known by the file's first bytes, not by its name.

    Numbers are what Python's ``float`` makes of them, to the last bit. (With ``dtype=numpy.float32`` that float64 is
    rounded once more.) NaN, infinities and decimals that overflow are errors.

    Parameters
    ----------
    path : path or binary file object
        Read to its end, once.
    n_features : int, optional
        Columns of ``X``. By default as many as the largest feature id asks for; give the training table's
        ``n_features`` if the shapes must agree. A line with a higher id is then an error. More than 2**27 columns, as
        a single wrong id makes them, have to be given so.
    zero_based : bool or "auto", default="auto"
        Whether column 0 is feature 0 or feature 1. "auto": feature 0 where any line names it. Where a training file
        does and the test file may not, give the training table's ``zero_based``.
    dense : bool or "auto", default="auto"
        Whether ``X`` is an ndarray or a CSR array. "auto": dense where the file writes at least one cell in ten.
    dtype : dtype, default=float64
        Of ``X``: float64 or float32. Labels are float64.
    n_threads : int, optional
        Threads that parse. By default ``RANKRLS_NUM_THREADS``, ``OMP_NUM_THREADS`` or the processors at hand. The
        table does not depend on it.

    Returns
    -------
    LetorTable
        With ``X``, ``y``, ``qid``, ``comments``, ``path``, ``sha256`` and ``zero_based``.

    Raises
    ------
    LetorError
        A ValueError, ``path:line: what is wrong``, for the first bad line of the file; also for an empty file and for
        damaged or truncated gzip data.
    OSError
        FileNotFoundError, PermissionError, IsADirectoryError and so on, where the file cannot be read.

    Notes
    -----
    O(bytes): the text is parsed once, in blocks of some megabytes, while it is read. Peak memory is about that of the
    arrays; for dense tables in which lines leave features out, half as much again.

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
    for key, value in (("n_features", n_features), ("n_threads", n_threads)):
        if value is not None:
            check_count(key, value, none="as many as there are")
    for key, choice in (("zero_based", zero_based), ("dense", dense)):
        if choice is not True and choice is not False and not (isinstance(choice, str) and choice == "auto"):
            raise InputError(f"{key} must be True, False or 'auto'; got {choice!r}.", parameter=key)
    kind = float_type(dtype)
    threads = usual_threads() if n_threads is None else int(n_threads)
    with open_bytes(path) as (name, start, source, digest):
        size = block_size(None if hasattr(path, "read") else os.stat(path).st_size, threads)
        reader = LetorReader(source, start, name, size, threads, n_features, zero_based, kind)
        parts = [*reader]
    return joined(reader, parts, dense, kind, digest.hexdigest(), threads)


@contextmanager
def _opened(path: str | os.PathLike[str] | BinaryIO, n_features: int | None, zero_based: Any) -> Iterator[LetorReader]:
    """A file to be read in blocks of float64, on all threads."""
    threads = usual_threads()
    with open_bytes(path) as (name, start, source, _):
        yield LetorReader(source, start, name, block_size(None, threads), threads, n_features, zero_based)


def letor_query_ids(path: str | os.PathLike[str] | BinaryIO) -> tuple[int, NDArray[Any] | None]:
    """How many rows a file has, and their query ids; features are checked and forgotten."""
    with _opened(path, None, "auto") as reader:
        parts = [replace(block, ids=block.ids[:0].copy(), values=block.values[:0].copy()) for block in reader]
    return reader.seen.rows, _joined_qid(parts) if reader.seen.with_qid else None


def letor_lines(path: str | os.PathLike[str] | BinaryIO) -> Iterator[bytes]:
    """The lines of a file that are rows, as they are, each with a line end."""
    with open_bytes(path) as (_, _, source, _):
        for block in blocks(source):
            for line in block.text[block.first : block.last].tobytes().split(b"\n"):
                if (bare := line.strip(b" \t\r\v\f")) and not bare.startswith(b"#"):
                    yield line + b"\n"


def letor_tables(
    path: str | os.PathLike[str], *, n_features: int, zero_based: bool, dense: bool
) -> Iterator[LetorTable]:
    """The rows of a file as tables of some megabytes of text each, in the file's order; memory is a few of them.

    Parameters
    ----------
    path : path
    n_features, zero_based, dense
        As :func:`letor_shape` finds them.

    Yields
    ------
    LetorTable
        Its ``sha256`` is empty. A query may go on in the next table.

    Raises
    ------
    LetorError, OSError
        As of :func:`load_letor`.
    """
    with _opened(path, n_features, zero_based) as reader:
        for block in reader:
            yield joined(reader, [block], dense, np.dtype(np.float64), "", 1)


def letor_shape(path: str | os.PathLike[str]) -> tuple[int, int, bool, bool]:
    """Rows and features of a file, whether its features are counted from 0, and whether a table of it is dense.

    One pass over the text; memory is a few blocks of it.
    """
    with _opened(path, None, "auto") as reader:
        for _block in reader:
            pass
    return reader.seen.rows, reader.columns(), reader.zero_based, _is_dense(reader.seen, reader.columns())


def _is_dense(seen: Seen, columns: int) -> bool:
    return seen.entries >= DENSE_FROM * seen.rows * columns


def joined(
    reader: LetorReader,
    parts: list[LetorBlock],
    dense: bool | Literal["auto"],
    dtype: np.dtype[Any],
    sha256: str,
    threads: int,
) -> LetorTable:
    """The table of some blocks; the list is emptied on the way, so that each block's memory goes back."""
    columns, zero_based, seen = reader.columns(), reader.zero_based, reader.seen
    dense = _is_dense(seen, columns) if dense == "auto" else dense
    largest = max(int(part.ids.max(initial=-1)) for part in parts)
    comments = None
    if any(part.comments for part in parts):
        comments = [text for part in parts for text in part.comments or [""] * len(part.y)]
    y, qid = np.concatenate([part.y for part in parts]), _joined_qid(parts) if seen.with_qid else None
    fill = _dense if dense else _sparse
    X = fill(parts, columns, 0 if zero_based else 1, dtype, threads)
    n_named = max(largest + int(zero_based), 0)
    return LetorTable(X, y, qid, comments, reader.name, sha256, zero_based, n_named)


def _joined_qid(parts: list[LetorBlock]) -> NDArray[Any]:
    runs = [np.diff(part.qid_starts, append=len(part.y)) for part in parts]
    if all(isinstance(part.qids, np.ndarray) for part in parts):
        return np.concatenate([np.repeat(np.asarray(part.qids), run) for part, run in zip(parts, runs, strict=True)])
    known, codes = coded(str(name) for part in parts for name in part.qids)
    return objects(known)[np.repeat(codes, np.concatenate(runs))]


def _dense(parts: list[LetorBlock], columns: int, shift: int, dtype: np.dtype[Any], threads: int) -> NDArray[Any]:
    starts = np.cumsum([0, *(len(part.y) for part in parts)]).tolist()
    waiting: list[LetorBlock | None] = [*parts]
    parts.clear()
    X = np.zeros((starts[-1], columns), dtype=dtype)

    def fill(k: int) -> None:
        part, waiting[k] = waiting[k], None
        assert part is not None
        room = X[starts[k] : starts[k + 1]]
        if part.full:
            first = int(part.ids[0]) - shift
            room[:, first : first + len(part.ids)] = part.values.reshape(len(room), -1)
        else:
            scatter(part.ends, part.ids, shift, part.values, room)

    map_threads(fill, range(len(waiting)), threads=threads)
    return X


def _sparse(parts: list[LetorBlock], columns: int, shift: int, dtype: np.dtype[Any], threads: int) -> Any:
    from scipy.sparse import csr_array

    before = np.cumsum([0, *(len(part.values) for part in parts)]).tolist()
    indptr, entries = np.concatenate([part.ends + at for part, at in zip(parts, before, strict=False)]), before[-1]
    index: Any = np.int32 if max(entries, columns) <= np.iinfo(np.int32).max else np.int64
    values, indices = np.empty(entries, dtype=dtype), np.empty(entries, dtype=index)
    for k in range(len(parts) - 1, -1, -1):
        part, here = parts.pop(), slice(before[k], before[k + 1])
        values[here] = part.values
        np.subtract(np.tile(part.ids, len(part.y)) if part.full else part.ids, shift, out=indices[here])
    X = csr_array((values, indices, np.concatenate(([0], indptr)).astype(index)), shape=(len(indptr), columns))
    X.has_canonical_format = True
    return X
