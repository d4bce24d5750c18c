"""Rankings as text: lines with names between tabs, or a run as trec_eval and ir_measures read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io.tables.writing import cell
from rankrls.ranking import Ranking, rank_scores

__all__ = ["HEAD", "ranking_lines", "ranking_rows", "trec_rows", "trec_run"]

HEAD = "query\trank\titem\tscore\trow\n"
"""The names of the columns of :func:`ranking_rows`."""

_BREAKS_A_LINE = re.compile(r'["\t\r\n]')


def ranking_lines(ranking: Ranking, names: Sequence[str], items_per_row: int = 1) -> str:
    """Query, rank, item, score and row of each item, between tabs under a line of names.

    Parameters
    ----------
    ranking : Ranking
    names : sequence of str
        What each item is called.
    items_per_row : int, default=1
        Items that a row of the file is about.
    """
    return HEAD + ranking_rows(ranking, [names[k] for k in ranking.rows.tolist()], items_per_row)


def ranking_rows(ranking: Ranking, names: Sequence[str], items_per_row: int = 1) -> str:
    """The lines of :func:`ranking_lines` without the line of names; ``names`` of the ranked items, in their order."""
    queries = [""] * len(ranking) if ranking.qid is None else ranking.qid.tolist()
    queries = [cell(q) if isinstance(q, str) and _BREAKS_A_LINE.search(q) else q for q in queries]
    found = (ranking.positions, ranking.rows, ranking.scores)
    columns = zip(queries, names, *(column.tolist() for column in found), strict=True)
    lines = (
        f"{q}\t{place}\t{' '.join(str(name).split())}\t{score!r}\t{k // items_per_row}\n"
        for q, name, place, k, score in columns
    )
    return "".join(lines)


def trec_run(
    scores: NDArray[np.float64], qid: NDArray[np.generic] | None, names: Sequence[str], run: str, k: int | None = None
) -> str:
    """A run, ``query Q0 document rank score run`` a line, in the order that trec_eval gives equal scores.

    Parameters
    ----------
    scores : ndarray of shape (m,)
    qid : ndarray of shape (m,) or None
        Without, everything is query 1.
    names : sequence of m str
        Document ids.
    run : str
        Its name.
    k : int, optional
        Only the best of each query.

    Raises
    ------
    InputError
        If a query or a document is not named by one word.
    """
    most = np.finfo(np.float32).max
    with np.errstate(over="ignore"):  # trec_eval holds scores in single precision
        single = np.clip(scores.astype(np.float32), -most, most).astype(np.float64)
    found = rank_scores(single, qid=qid, k=k, docno=names)
    ranking = replace(found, scores=scores[found.rows])
    return trec_rows(ranking, [names[row] for row in found.rows.tolist()], run)


def trec_rows(ranking: Ranking, names: Sequence[str], run: str) -> str:
    """The lines of a run, of items that are in its order already; ``names`` of the ranked items, in their order."""
    queries = ["1"] * len(ranking) if ranking.qid is None else [str(query) for query in ranking.qid.tolist()]
    called = [str(name) for name in names]
    for row, document, query in zip(ranking.rows.tolist(), called, queries, strict=True):
        for what, named, word in (("documents", "called", document), ("queries", "of query", query)):
            if len(word.split()) != 1:
                problem = f"A trec run names {what} by one word each; row {{0}} is {named} {{1!r}}."
                raise InputError(problem, row, word, row=row)
    columns = zip(queries, called, ranking.positions.tolist(), ranking.scores.tolist(), strict=True)
    return "".join(f"{q} Q0 {name} {place} {score!r} {run}\n" for q, name, place, score in columns)
