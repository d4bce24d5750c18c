"""LETOR text to arrays."""

from __future__ import annotations

import numbers
import os
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import DTypeLike

from rankrls._errors import InputError
from rankrls.io._table import LetorError, LetorTable

__all__ = ["MOST_COLUMNS", "load_letor"]

MOST_COLUMNS = 1 << 27
"""Features from which on their number has to be confirmed: what works on so many columns takes gigabytes."""


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
    O(bytes), in two compiled passes on all threads: the first counts, the second parses into arrays of the right size,
    and gives each block of text back when it is done. Peak memory is about that of the text or of the arrays,
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
    from rankrls._compiled.threads import map_threads
    from rankrls._compiled.threads import n_threads as usual_threads
    from rankrls.io._plan import Plan
    from rankrls.io._scan import RowsSeen, scan_block
    from rankrls.io._source import read_text

    workers = usual_threads() if n_threads is None else int(n_threads)
    nothing = RowsSeen.room(0)
    try:
        text = read_text(path, lambda block: scan_block(block.text, block.first, block.last, nothing)[0], workers)
    except MemoryError:
        raise MemoryError(f"{getattr(path, 'name', path)}: the file does not fit into memory.") from None
    if not text.blocks:
        raise LetorError("the file is empty.", file=text.name)
    plan = Plan.make(text.name, np.array(text.answers), n_features, zero_based, dense, out_dtype)

    problems = map_threads(lambda k: plan.fill(text, k), range(len(text.blocks)), threads=workers)
    for k, (_, bad) in enumerate(problems):
        if bad is not None:
            raise bad.error.located(file=text.name, line=plan.first_line(k) + bad.line)
    if plan.columns == 0:
        remedy = "pass {n_features} if that is right."
        raise LetorError("no line names a feature;", remedy=remedy, file=text.name, parameter="n_features")
    if n_features is None and plan.columns > MOST_COLUMNS:
        largest = plan.columns - int(plan.zero_based)
        problem, remedy = "feature {0} makes {1} columns, most of them empty:", "pass {n_features} if that is right."
        facts: dict[str, Any] = {"file": text.name, "column": largest, "parameter": "n_features"}
        raise LetorError(problem, largest, plan.columns, remedy=remedy, **facts)
    return LetorTable(
        X=plan.features(),
        y=plan.target.y,
        qid=plan.queries(),
        comments=plan.comments(),
        path=text.name,
        sha256=text.sha256,
        zero_based=plan.zero_based,
        n_named=plan.named,
    )


def _check_options(n_features: Any, zero_based: Any, dense: Any, dtype: Any, n_threads: Any) -> np.dtype[Any]:
    for name, value in (("n_features", n_features), ("n_threads", n_threads)):
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if value is not None and not (whole and value >= 1):
            problem = f"{{{name}}} must be a whole number from 1 on, or None; got {{0!r}}."
            raise InputError(problem, value, parameter=name)
    for name, value in (("zero_based", zero_based), ("dense", dense)):
        if value is not True and value is not False and not (isinstance(value, str) and value == "auto"):
            raise InputError(f"{{{name}}} must be True, False or 'auto'; got {{0!r}}.", value, parameter=name)
    out = np.dtype(dtype)
    if out not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise InputError("{dtype} must be float64 or float32; got {0}.", out, parameter="dtype")
    return out
