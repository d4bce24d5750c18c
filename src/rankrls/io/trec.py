"""Judgements and runs in the text formats of TREC."""

from __future__ import annotations

import math

from rankrls._cells import cell_number
from rankrls._errors import InputError
from rankrls.io._text import Source, Text, is_utf8, quoted

_QRELS = "query iteration document label"
_RUN = "query Q0 document rank score run"


def load_qrels(path: Source) -> dict[str, dict[str, float]]:
    r"""Read relevance judgements, with ``query iteration document label`` on each line.

    Parameters
    ----------
    path : path or binary file object
        Text, plain or gzip. The second column is ignored.

    Returns
    -------
    dict of str to dict of str to float
        Labels of the judged documents of each query.

    Raises
    ------
    InputError
        If a line has another number of columns, a label is not a number, or a query has a document twice.

    Notes
    -----
    O(lines) time and memory.

    Examples
    --------
    >>> import io
    >>> from rankrls.io import load_qrels
    >>> load_qrels(io.BytesIO(b"q1 0 d7 2\nq1 0 d3 0\n"))
    {'q1': {'d7': 2.0, 'd3': 0.0}}
    """
    return _load(path, _QRELS, "label")


def load_run(path: Source) -> dict[str, dict[str, float]]:
    r"""Read a run, with ``query Q0 document rank score run`` on each line.

    Parameters
    ----------
    path : path or binary file object
        Text, plain or gzip. Only the query, the document and its score are used: as in trec_eval, scores rather than
        ranks determine the ranking.

    Returns
    -------
    dict of str to dict of str to float
        Scores of the retrieved documents of each query.

    Raises
    ------
    InputError
        If a line has another number of columns, a score is not a finite number, or a query has a document twice.

    Notes
    -----
    O(lines) time and memory.

    Examples
    --------
    >>> import io
    >>> from rankrls.io import load_run
    >>> load_run(io.BytesIO(b"q1 Q0 d3 1 7.5 bm25\nq1 Q0 d9 2 6.25 bm25\n"))
    {'q1': {'d3': 7.5, 'd9': 6.25}}
    """
    return _load(path, _RUN, "score")


def _load(path: Source, columns: str, column: str) -> dict[str, dict[str, float]]:
    """Numbers of one column by query and document."""
    names = columns.split()
    at = names.index(column)
    text = Text(path)
    found: dict[str, dict[str, float]] = {}
    for line, row in enumerate(text.lines(), 1):
        cells = row.split()
        if not cells:
            continue
        if len(cells) != len(names) or not is_utf8(row):
            raise InputError(
                f"a line must be {columns!r} in UTF-8, between blanks; got {quoted(row)}.", file=text.name, line=line
            )
        value = cell_number(cells[at].decode())
        if not math.isfinite(value):
            problem = f"the {column} must be a finite number; got {quoted(cells[at])}."
            raise InputError(problem, column=column, file=text.name, line=line)
        query = cells[0].decode()
        document = cells[2].decode()
        documents = found.setdefault(query, {})
        if document in documents:
            problem = f"query {query!r} has document {document!r} a second time. Keep one of the lines."
            raise InputError(problem, column="document", file=text.name, line=line)
        documents[document] = value
    if not found:
        raise InputError(f"there is no line {columns!r}.", file=text.name)
    return found
