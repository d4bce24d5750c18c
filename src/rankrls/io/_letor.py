"""LETOR text to arrays: whole lines are parsed in threads, and the first bad line is described."""

from __future__ import annotations

import math
import mmap
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import compress, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array

from rankrls._checks import check_count
from rankrls._compiled import map_threads, stream_threads
from rankrls._errors import InputError
from rankrls.io._letor_lines import NO_ID, Options, beyond, described, document_ids
from rankrls.io._letor_loop import Found, Room, parse_block, room_for, scatter
from rankrls.io._rows import Source, Text, float_type, ids_of, is_utf8, joined_ids
from rankrls.io.rows import Rows, Schema

_DENSE_FROM = 0.1
"""Share of written cells from which on a table is dense: a sparse product costs some ten times a dense one a cell."""
_MOST_COLUMNS = 1 << 27
"""More features have to be confirmed: what works on so many columns takes gigabytes."""
_BLANKS = b" \t\r\v\f"
_MAP_BYTES = 1 << 23


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
    features that a line does not name are 0. The qid can be anywhere after the label, or missing in all lines. Blank
    lines, lines with only a comment, CRLF line ends, a byte order mark and a missing last line end are allowed. Gzip is
    recognized by the file's first bytes, not by its name.

    Numbers are read as by Python's ``float``, to the last bit. (With ``dtype=numpy.float32`` they are then rounded.)
    NaN, infinities and decimals that overflow are errors.

    Parameters
    ----------
    path : path or binary file object
        Read to its end, once.
    n_features : int, optional
        Columns of ``X``. By default the largest feature id decides. Pass the training table's ``n_features`` if the
        shapes must agree; a line with a higher id is then an error. More than 2**27 columns, which a single wrong id
        can cause, must be given in this way.
    zero_based : bool or "auto", default="auto"
        Whether column 0 is feature 0 or feature 1. "auto": feature 0 if any line names it. Read a test file with the
        training table's ``zero_based``.
    dense : bool or "auto", default="auto"
        Whether ``X`` is an ndarray or a CSR array. "auto": dense if the file lists at least one cell in ten.
    dtype : dtype, default=float64
        Of ``X``: float64 or float32. Labels are float64.

    Returns
    -------
    Rows
        With ``X``, ``y``, ``qid``, ``comments``, ``docids``, ``path``, ``sha256`` and ``zero_based``.

    Raises
    ------
    InputError
        A ValueError, ``path:line: what is wrong``, for the first bad line of the file; also for an empty file and for
        damaged or truncated gzip data.
    OSError
        FileNotFoundError, PermissionError, IsADirectoryError and so on, if the file cannot be read.

    Notes
    -----
    O(bytes): the text is parsed once, in blocks of some megabytes, while it is read. Peak memory is about that of the
    arrays; for dense tables with lines that leave out features, half as much again.

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
        if choice is not True and choice is not False and not (isinstance(choice, str) and choice == "auto"):
            raise InputError(f"{key} must be True, False or 'auto'; got {choice!r}.", parameter=key)
    text = Text(path)
    options = Options(float_type(dtype), n_features, zero_based)
    blocks = [*_parsed(text, options)]
    options, share = _with_shape(blocks, text.name, options)
    return _joined(blocks, text, options, dense=share >= _DENSE_FROM if dense == "auto" else dense)


@dataclass(frozen=True, eq=False)
class _Block:
    """Consecutive rows of LETOR text.

    Attributes
    ----------
    lines : int
        With those that are no rows.
    y : ndarray of shape (m,)
    ends : ndarray of shape (m,)
        Where each row's entries end.
    ids, values : ndarray of shape (entries,)
        Feature ids as the text writes them, ascending in each row, in the smallest type that holds them.
    qid : ndarray of shape (m,), or None
        None where the rows have no query ids.
    comments : list of str, or None
        What stands behind ``#`` in each row; None if that is nothing in all of them.
    least, largest : int
        Feature ids.
    start : int
        A byte of the first row.
    bad : int, or None
        One of the first bad line.
    """

    lines: int
    y: NDArray[np.float64]
    ends: NDArray[np.int64]
    ids: NDArray[Any]
    values: NDArray[Any]
    qid: NDArray[Any] | None
    comments: list[str] | None
    least: int
    largest: int
    start: int
    bad: int | None


def letor_query_ids(path: Source) -> tuple[int, NDArray[Any] | None]:
    """How many rows a file has, and their query ids; features are checked and forgotten."""
    found = [(len(block.y), block.qid) for block in _parsed(Text(path), Options())]
    ids = [qid for _, qid in found if qid is not None]
    return sum(rows for rows, _ in found), joined_ids(ids) if ids else None


def letor_lines(path: Source) -> Iterator[bytes]:
    """The lines of a file that are rows, as they are, each with a line end."""
    for block in Text(path).blocks():
        for line in block.split(b"\n"):
            if (bare := line.strip(_BLANKS)) and not bare.startswith(b"#"):
                yield line + b"\n"


class LetorShape(NamedTuple):
    """The number of features of a file, whether they are counted from 0, and whether comments name the items."""

    n_features: int
    zero_based: bool
    has_ids: bool


def letor_shape(path: Source) -> LetorShape:
    """The shape of a file, found by reading it; memory is a few blocks of text."""
    text = Text(path)
    with_ids = list[bool]()

    def blocks() -> Iterator[_Block]:
        for block in _parsed(text, Options()):
            with_ids.append(document_ids(block.comments or [""], block.qid) is not None)
            yield block

    options, _ = _with_shape(blocks(), text.name, Options())
    return LetorShape(options.n_features or 0, bool(options.zero_based), all(with_ids))


def letor_tables(path: Source, *, n_features: int, zero_based: bool, dtype: DTypeLike) -> Iterator[Rows]:
    """The rows of a file as sparse tables of about a megabyte of text each, in order; memory is a few of them.

    A query may go on in the next table.
    """
    text = Text(path)
    options = Options(np.dtype(dtype), n_features, zero_based)
    for block in _parsed(text, options):
        yield _joined([block], text, options, dense=False)


def _parsed(text: Text, options: Options) -> Iterator[_Block]:
    """The rows of a file, block by block.

    Raises
    ------
    InputError
        For the first bad line.
    """
    memory = _Memory()

    def parse(text: bytes) -> tuple[bytes, _Block]:
        if memory.size < len(text):
            memory.size = len(text)
            memory.room = room_for(len(text))
        return text, _parse(text, memory.room, options, memory.maps)

    lines = 0
    with_qid = None
    for raw, block in stream_threads(parse, text.blocks()):
        bad = [] if block.bad is None else [block.bad]
        if len(block.y):
            with_qid = block.qid is not None if with_qid is None else with_qid
            bad += [] if (block.qid is not None) == with_qid else [block.start]
        if bad:
            number = raw.count(b"\n", 0, min(bad))
            error = described(raw.split(b"\n")[number], with_qid, options)
            raise error.replace(file=text.name, line=lines + number + 1)
        if len(block.y):
            yield block
        lines += block.lines
    if with_qid is None:
        raise InputError("the file has no rows: it is empty, or has only blank lines and comments.", file=text.name)


def _parse(text: bytes, room: Room, options: Options, maps: _Maps) -> _Block:
    """The rows of a block up to its first bad line."""
    limit = options.limit
    found: Found = parse_block(np.frombuffer(text, np.uint8), *options.taken, limit, room)
    rows = found.rows
    bad = [found.bad] if found.bad >= 0 else []
    labels, ends, notes, stops, ids, values, runs, hard = room
    for first, last, at in hard[: found.hard].tolist():
        value = float(text[first:last])
        target, place, most = (labels, -1 - at, math.inf) if at < 0 else (values, at, limit)
        target[place] = value
        bad += [first] if abs(value) >= most else []
    ids = ids[: found.entries]
    values = values[: found.entries]
    ends = ends[:rows].copy()
    if found.unsorted:
        ids, values, twice = _sorted(ends, ids, values)
        bad += stops[twice].tolist()
    starts, *places = runs[: found.runs].T.tolist()
    names = [text[first:last] for first, last in zip(*places, strict=True)]
    wrong = (not is_utf8(name) or b"\0" in name or bool(name) != bool(names[0]) for name in names)
    bad += [*compress(places[0], wrong)]
    qid = None
    if names and names[0]:
        qid = np.repeat(ids_of([name.decode(errors="replace") for name in names]), np.diff(starts, append=rows))
    comments = None
    if found.comments:
        spans = zip(notes[:rows].tolist(), stops[:rows].tolist(), strict=True)
        comments = [text[a:b].strip(_BLANKS).decode("utf-8", "surrogateescape") for a, b in spans]
    return _Block(
        lines=found.lines,
        y=labels[:rows].copy(),
        ends=ends,
        ids=maps.copy(ids, np.min_scalar_type(max(found.largest, 0))),
        values=maps.copy(values, options.dtype),
        qid=qid,
        comments=comments if comments and any(comments) else None,
        least=found.least,
        largest=found.largest,
        start=next(iter(places[0]), 0),
        bad=min(bad, default=None),
    )


class _Memory(threading.local):
    """Memory of each thread, which is used again."""

    def __init__(self) -> None:
        self.size = 0
        self.room = room_for(0)
        self.maps = _Maps()


class _Maps:
    """Memory that goes back to the system when all arrays in it are dropped: the allocator would keep most of it.

    Several arrays share a map, because a process may have 65,530.
    """

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, _MAP_BYTES)
        self._used = 0

    def copy(self, values: NDArray[Any], dtype: Any) -> NDArray[Any]:
        """A copy of values, cast to a type."""
        size = len(values) * np.dtype(dtype).itemsize
        if self._used + size > len(self._map):
            self._map = mmap.mmap(-1, max(size, _MAP_BYTES))
            self._used = 0
        out = np.frombuffer(self._map, np.uint8, size, self._used).view(dtype) if size else np.empty(0, dtype)
        out[:] = values
        self._used += -(-size // 16) * 16  # arrays begin at multiples of 16 bytes
        return out


def _sorted(ends: NDArray[np.int64], ids: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[Any, Any, Any]:
    """Entries with ascending ids in each row; the first row that names a feature twice, if there is one."""
    rows = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    order = np.lexsort((ids[: len(rows)], rows))
    ids = ids[order]
    values = values[order]
    return ids, values, rows[1:][(np.diff(ids) == 0) & (np.diff(rows) == 0)][:1]


def _with_shape(blocks: Iterable[_Block], name: str, options: Options) -> tuple[Options, float]:
    """The options with the number of features of some blocks and the first one's number; the share of written cells.

    Raises
    ------
    InputError
        If there is no feature; for so many that this is probably a slip, unless their number is given; and for a
        feature that is beyond those that are given because the text names feature 0 too.
    """
    rows = 0
    entries = 0
    least = NO_ID
    largest = -1
    for block in blocks:
        rows = rows + len(block.y)
        entries = entries + len(block.values)
        least = min(least, block.least)
        largest = max(largest, block.largest)
    zero_based = least == 0 if options.zero_based == "auto" else options.zero_based
    columns = max(largest + int(zero_based), 0)
    given = options.n_features
    if given is not None and columns > given:
        raise beyond(f"feature {largest}", largest, given, 0).replace(file=name)
    problem = ""
    if columns == 0:
        problem = "no line names a feature."
    elif columns > _MOST_COLUMNS:
        problem = f"feature {largest} makes {columns} columns, most of them empty."
    if problem and given is None:
        problem += " If that is right, give the number of features (n_features)."
        raise InputError(problem, file=name, parameter="n_features", column=max(largest, 0) or None)
    columns = given or columns
    return options._replace(n_features=columns, zero_based=zero_based), entries / (rows * columns)


def _joined(blocks: list[_Block], text: Text, options: Options, dense: bool) -> Rows:
    """The table of some blocks; the list is emptied on the way, so that each block's memory goes back."""
    largest = max(block.largest for block in blocks)
    comments = None
    if any(block.comments for block in blocks):
        comments = [note for block in blocks for note in block.comments or [""] * len(block.y)]
    ids = [block.qid for block in blocks if block.qid is not None]
    qid = joined_ids(ids) if ids else None
    first_feature = int(not options.zero_based)
    y = np.concatenate([block.y for block in blocks])
    return Rows(
        X=(_dense if dense else _sparse)(blocks, options),
        y=y,
        qid=qid,
        path=text.name,
        sha256=text.sha256,
        schema=Schema(first_feature=first_feature),
        comments=comments,
        n_named=max(largest + 1 - first_feature, 0),
    )


def _dense(blocks: list[_Block], options: Options) -> NDArray[Any]:
    starts = np.cumsum([0, *(len(block.y) for block in blocks)]).tolist()
    X = np.zeros((starts[-1], options.n_features or 0), dtype=options.dtype)
    waiting = dict(zip(pairwise(starts), blocks, strict=True))
    blocks.clear()

    def fill(rows: tuple[int, int]) -> None:
        block = waiting.pop(rows)
        scatter(block.ends, block.ids.astype(np.int64), int(not options.zero_based), block.values, X[slice(*rows)])

    map_threads(fill, [*waiting])
    return X


def _sparse(blocks: list[_Block], options: Options) -> Any:
    columns = options.n_features or 0
    entries = sum(len(block.values) for block in blocks)
    integer = np.int32 if max(columns, entries) <= np.iinfo(np.int32).max else np.int64
    values = np.empty(entries, dtype=options.dtype)
    indices = np.empty(entries, dtype=integer)
    ends = [np.zeros(1, dtype=np.int64)]
    before = 0
    while blocks:
        block = blocks.pop(0)
        here = slice(before, before + len(block.values))
        values[here] = block.values
        indices[here] = block.ids - int(not options.zero_based)
        ends.append(block.ends + before)
        before = here.stop
    indptr = np.concatenate(ends).astype(integer)
    X = csr_array((values, indices, indptr), shape=(len(indptr) - 1, columns))
    X.has_canonical_format = True
    return X
