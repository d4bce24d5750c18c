"""LETOR text to arrays.

A file is read in one pass where its first lines tell what the table will be: dense, with whole numbers as query ids.
That pass judges nothing: what the first lines did not tell, or what is wrong, makes it give up, and the file is read
again in two passes, which know every case and word every error.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankrls._checks import check_count
from rankrls._compiled.threads import map_threads, stream_threads
from rankrls._compiled.threads import n_threads as usual_threads
from rankrls._errors import InputError
from rankrls.io._block import (
    DENSE_FROM,
    Parsed,
    Shape,
    as_csr,
    at_most,
    check_width,
    index_type,
    joined,
    line_count,
    parsed,
)
from rankrls.io._rows import float_type
from rankrls.io._scan import RowsSeen, Sums, scan_block
from rankrls.io._source import Block, block_size, blocks, foreign, open_bytes
from rankrls.io._table import LetorError, LetorTable

if TYPE_CHECKING:
    pass

_SEEN = 1 << 16
_ONE_PASS_COLUMNS = 1 << 16
"""More columns are not read in one pass: room for rows that may not be there would be large."""
_ENTRY = re.compile(rb"([0-9]{1,9}):")
_QID = re.compile(rb"qid:-?[0-9]{1,18}")


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
    O(bytes). A plain file that begins as a dense table with whole numbers as query ids is parsed while it is read, on
    all threads, and takes the memory of its arrays. Anything else, and a file whose later lines have more features or
    no longer are of that kind, takes two passes: the first counts, the second parses into arrays of the right size, and
    gives each block of text back when it is done. Peak memory is then about that of the text or of the arrays,
    whichever is larger.

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
    >>> list(table.comments)
    ['docid = 12', '']
    """
    out_dtype = _check_options(n_features, zero_based, dense, dtype, n_threads)
    workers = usual_threads() if n_threads is None else int(n_threads)
    if not hasattr(path, "read"):
        found = _read_dense(path, n_features, zero_based, dense, out_dtype, workers)
        if found is not None:
            return found
    return _read_counted(path, n_features, zero_based, dense, out_dtype, workers)


def _check_options(n_features: Any, zero_based: Any, dense: Any, dtype: Any, n_threads: Any) -> np.dtype[Any]:
    for name, value in (("n_features", n_features), ("n_threads", n_threads)):
        if value is not None:
            check_count(name, value, none="as many as there are")
    for name, value in (("zero_based", zero_based), ("dense", dense)):
        if value is not True and value is not False and not (isinstance(value, str) and value == "auto"):
            raise InputError(f"{{{name}}} must be True, False or 'auto'; got {{0!r}}.", value, parameter=name)
    return float_type(dtype)


def _read_counted(
    path: str | os.PathLike[str] | BinaryIO,
    n_features: int | None,
    zero_based: bool | Literal["auto"],
    dense: bool | Literal["auto"],
    dtype: np.dtype[Any],
    threads: int,
) -> LetorTable:
    """The table of a file whose blocks are counted while they are read, and parsed when all have been counted."""
    with open_bytes(path, LetorError) as (name, start, source, digest):
        what = foreign(start)
        if what is not None:
            remedy = "plain text and gzip are read."
            raise LetorError("this is {0}, not LETOR text;", what, remedy=remedy, file=name, parameter="format")
        step = block_size(None if hasattr(path, "read") else os.stat(path).st_size, threads)
        nothing = RowsSeen.room(0)
        count = lambda block: (block, scan_block(block.text, block.first, block.last, nothing)[0])
        try:
            counted = [*stream_threads(count, blocks(source, step), threads=threads)]
        except MemoryError:
            raise MemoryError(f"{name}: the file does not fit into memory.") from None
    if not counted:
        raise LetorError("the file is empty.", file=name)
    text: list[Block | None] = [block for block, _ in counted]
    sums = np.array([found for _, found in counted])
    counted.clear()
    rows, entries = (int(sums[:, of].sum()) for of in (Sums.ROWS, Sums.ENTRIES))
    if rows == 0:
        raise LetorError("there is no row, only blank lines and comments.", file=name)
    shape = Shape.of(sums, n_features, zero_based, dense)
    columns = shape.columns
    try:
        # zeros, not empty: cells that no line names stay zero, and pages are touched by whoever fills them
        values = np.zeros((rows, columns) if shape.dense else entries, dtype=dtype)
        indices = np.empty(0 if shape.dense else entries, dtype=index_type(entries, columns))
        indptr = np.zeros(0 if shape.dense else rows + 1, dtype=np.int64)
    except (MemoryError, ValueError) as error:
        kind, hint = ("dense", " (dense=False makes it sparse)") if shape.dense else ("sparse", "")
        size = f"{rows} rows and {columns} columns with {entries} values written"
        raise MemoryError(f"{name}: a {kind} table of {size} does not fit into memory{hint}.") from error
    before = np.cumsum(sums, axis=0) - sums

    def fill(k: int) -> Parsed:
        block, text[k] = text[k], None  # whose memory goes back when it has been parsed
        assert block is not None
        row, entry, line = before[k, [Sums.ROWS, Sums.ENTRIES, Sums.LINES]].tolist()
        room = values[row : row + int(sums[k, Sums.ROWS])] if shape.dense else None
        part = parsed(block, sums[k], shape, name, line + 1, room, dtype)
        if not shape.dense and part.bad is None:
            here = slice(entry, entry + part.entries)
            values[here], indices[here], begins = part.X
            indptr[row + 1 : row + len(begins)] = begins[1:] + entry
        return part._replace(X=None)

    parts = [*map_threads(fill, range(len(text)), threads=threads)]
    bad = next((part.bad for part in parts if part.bad is not None), None)
    if bad is not None:
        raise bad
    check_width(columns, shape.zero_based, n_features, "n_features", name)
    X = values if shape.dense else as_csr(columns, values, indices, indptr)
    return joined(name, str(digest.hexdigest()), shape, X, parts)


def _read_dense(
    path: str | os.PathLike[str],
    n_features: int | None,
    zero_based: bool | Literal["auto"],
    dense: bool | Literal["auto"],
    dtype: np.dtype[Any],
    threads: int,
) -> LetorTable | None:
    """The table of a file; None if it has to be read in two passes.

    Lines are counted in each block as it comes, so that it is known where its rows belong; parsing then goes on beside
    reading and hashing. Room is reserved for half as many rows again as the first block's lines let expect, and is
    provided by the system when it is written to.
    """
    status = os.stat(path)
    if dense is False or not stat.S_ISREG(status.st_mode):
        return None
    with open_bytes(path, LetorError) as (name, start, source, digest):
        if foreign(start) or start.startswith(b"\x1f\x8b"):
            return None
        spare: list[mmap.mmap] = []
        stream = blocks(source, block_size(status.st_size, threads), spare=spare)
        first = next(stream, None)
        shape = None if first is None else _shape_of(first, n_features, zero_based, dense)
        if first is None or shape is None:
            return None
        lines, size = line_count(first), first.last - first.first
        most = lines if size >= status.st_size - 8 else int(1.5 * lines * status.st_size / size) + 1
        try:
            room = np.zeros((most, shape.columns), dtype=dtype)
        except (MemoryError, ValueError):
            return None

        def part_of(block: Block, lines: int, room: NDArray[Any]) -> Parsed | None:
            """With bounds in the place of counts; None if that cannot be, or a line is bad."""
            if len(room) < lines:
                return None
            part = parsed(block, at_most(block, lines), shape, name, 1, room, dtype)
            spare.append(block.area)
            return part if part.bad is None else None

        head = part_of(first, lines, room[:lines])
        if head is None:
            return None
        parts, row = [head], len(head.y)

        def placed() -> Iterator[tuple[Block, int, NDArray[Any]]]:
            nonlocal row
            for block in stream:
                lines = line_count(block)
                yield block, lines, room[row : row + lines]
                row += lines

        for lines, part in stream_threads(lambda given: (given[1], part_of(*given)), placed(), threads=threads):
            if part is None or len(part.y) != lines:
                return None
            parts.append(part)
    rows, entries, named = row, sum(part.entries for part in parts), max(part.named for part in parts)
    few = dense == "auto" and entries < DENSE_FROM * rows * shape.columns
    if rows == 0 or few or (n_features is None and named != shape.columns):
        return None
    return joined(name, str(digest.hexdigest()), shape, room[:rows], parts)


def _shape_of(
    block: Block, n_features: int | None, zero_based: bool | Literal["auto"], dense: bool | Literal["auto"]
) -> Shape | None:
    """What the first lines say."""
    ids: list[int] = []
    rows, with_qid = 0, False
    seen = block.text[block.first : min(block.last, block.first + _SEEN)].tobytes()
    for line in seen.split(b"\n")[:-1]:
        tokens = line.partition(b"#")[0].split()[1:]
        if tokens:
            rows += 1
            qids = [token for token in tokens if token.startswith(b"qid:")]
            if not all(map(_QID.fullmatch, qids)):
                return None
            with_qid = with_qid or bool(qids)
            ids += [int(found[1]) for found in map(_ENTRY.match, tokens) if found]
    if not ids:
        return None
    from_zero = min(ids) == 0 if zero_based == "auto" else zero_based
    columns = max(ids) + int(from_zero) if n_features is None else n_features
    sparse = dense == "auto" and len(ids) < DENSE_FROM * rows * columns
    return None if sparse or not 0 < columns <= _ONE_PASS_COLUMNS else Shape(columns, from_zero, True, with_qid, False)
