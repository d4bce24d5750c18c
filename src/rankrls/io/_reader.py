"""LETOR text to arrays.

A file is read in one pass where its first lines tell what the table will be: dense, with whole numbers as query ids.
That pass judges nothing: what the first lines did not tell, or what is wrong, makes it give up, and the file is read
again in two passes, which know every case and word every error.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankrls._checks import check_count
from rankrls._compiled.threads import map_threads, stream_threads
from rankrls._compiled.threads import n_threads as usual_threads
from rankrls._errors import InputError
from rankrls.io._plan import DENSE_FROM, Filled, Plan, Target, at_most, check_width, line_count, parsed_alone
from rankrls.io._rows import float_type
from rankrls.io._scan import RowsSeen, scan_block
from rankrls.io._source import Block, block_size, blocks, foreign, open_bytes, read_text
from rankrls.io._table import Comments, LetorError, LetorTable

__all__ = ["load_letor"]

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
    nothing = RowsSeen.room(0)
    try:
        text = read_text(path, lambda block: scan_block(block.text, block.first, block.last, nothing)[0], workers)
    except MemoryError:
        raise MemoryError(f"{getattr(path, 'name', path)}: the file does not fit into memory.") from None
    if not text.blocks:
        raise LetorError("the file is empty.", file=text.name)
    plan = Plan.make(text.name, np.array(text.answers), n_features, zero_based, dense, out_dtype)

    def fill(k: int) -> Filled:
        block, text.blocks[k] = text.blocks[k], None  # whose memory goes back when it has been parsed
        assert block is not None
        return plan.fill(block, k)

    problems = map_threads(fill, range(len(text.blocks)), threads=workers)
    for k, filled in enumerate(problems):
        if filled.bad is not None:
            raise filled.bad.located(file=text.name, line=plan.first_line(k) + (filled.bad.line or 0))
    check_width(plan.columns, plan.zero_based, n_features, "n_features", text.name)
    return plan.table(text.sha256)


def _check_options(n_features: Any, zero_based: Any, dense: Any, dtype: Any, n_threads: Any) -> np.dtype[Any]:
    for name, value in (("n_features", n_features), ("n_threads", n_threads)):
        if value is not None:
            check_count(name, value, none="as many as there are")
    for name, value in (("zero_based", zero_based), ("dense", dense)):
        if value is not True and value is not False and not (isinstance(value, str) and value == "auto"):
            raise InputError(f"{{{name}}} must be True, False or 'auto'; got {{0!r}}.", value, parameter=name)
    return float_type(dtype)


class _Shape(NamedTuple):
    columns: int
    zero_based: bool
    with_qid: bool


class _Part(NamedTuple):
    """A block that has been parsed."""

    lines: int
    filled: Filled
    target: Target


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
        stream = blocks(source, block_size(status.st_size, threads))
        first = next(stream, None)
        shape = None if first is None else _shape_of(first, n_features, zero_based, dense)
        if first is None or shape is None:
            return None
        lines, size = line_count(first), first.last - first.first
        most = lines if size >= status.st_size - 8 else int(1.5 * lines * status.st_size / size) + 1
        try:
            room = np.zeros(most * shape.columns, dtype=dtype)
        except (MemoryError, ValueError):
            return None
        head = _parsed(first, lines, shape, room[: lines * shape.columns])
        if head is None:
            return None
        parts, row = [head], head.filled.rows

        def placed() -> Iterator[tuple[Block, int, NDArray[Any]]]:
            nonlocal row
            for block in stream:
                lines = line_count(block)
                yield block, lines, room[row * shape.columns : (row + lines) * shape.columns]
                row += lines

        for part in stream_threads(
            lambda given: _parsed(given[0], given[1], shape, given[2]), placed(), threads=threads
        ):
            if part is None or part.filled.rows != part.lines:
                return None
            parts.append(part)
    return _table(name, parts, shape, room, n_features, dense, str(digest.hexdigest()))


def _shape_of(
    block: Block, n_features: int | None, zero_based: bool | Literal["auto"], dense: bool | Literal["auto"]
) -> _Shape | None:
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
    return None if sparse or not 0 < columns <= _ONE_PASS_COLUMNS else _Shape(columns, from_zero, with_qid)


def _parsed(block: Block, lines: int, shape: _Shape, room: NDArray[Any]) -> _Part | None:
    """A block parsed into its room, with bounds in the place of counts; None if that cannot be, or a line is bad."""
    if len(room) < lines * shape.columns:
        return None
    sums = at_most(block, lines, with_qid=shape.with_qid, text_qid=False)
    plan, filled = parsed_alone("", block, sums, shape.columns, shape.zero_based, True, room.dtype, room)
    if filled.bad is not None:
        return None
    target = plan.target
    comments = target.comment_text[: target.comment_ends[-1] if filled.rows else 0].copy()  # without unneeded room
    return _Part(lines, filled, target._replace(comment_text=comments))


def _table(
    name: str,
    parts: list[_Part],
    shape: _Shape,
    room: NDArray[Any],
    n_features: int | None,
    dense: bool | Literal["auto"],
    sha256: str,
) -> LetorTable | None:
    rows, entries = (sum(getattr(part.filled, of) for part in parts) for of in ("rows", "entries"))
    named = max(part.filled.columns for part in parts)
    few = dense == "auto" and entries < DENSE_FROM * rows * shape.columns
    if rows == 0 or few or (n_features is None and named != shape.columns):
        return None
    joined = {of: np.concatenate([getattr(part.target, of) for part in parts]) for of in ("y", "qid", "comment_text")}
    before = np.cumsum([0, *(len(part.target.comment_text) for part in parts[:-1])])
    ends = [part.target.comment_ends + start for part, start in zip(parts, before, strict=True)]
    return LetorTable(
        X=room[: rows * shape.columns].reshape(rows, shape.columns),
        y=joined["y"],
        qid=joined["qid"] if shape.with_qid else None,
        comments=Comments(joined["comment_text"], np.concatenate(ends)),
        path=name,
        sha256=sha256,
        zero_based=shape.zero_based,
        n_named=named,
    )
