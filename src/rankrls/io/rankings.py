"""Rankings as text: lines with names between tabs, or a run as trec_eval and ir_measures read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io.tables.writing import cell
from rankrls.ranking import Ranking, rank_scores

HEAD = "query\trank\titem\tscore\trow\n"
"""The names of the columns of :func:`ranking_rows`."""

_BREAKS_A_LINE = re.compile(r'["\t\r\n]')


def ranking_rows(ranking: Ranking, names: Sequence[str], items_per_row: int = 1) -> str:
    """Query, rank, item, score and row of each item, between tabs: the lines below :data:`HEAD`.

    Parameters
    ----------
    ranking : Ranking
    names : sequence of str
        What each of the ranked items is called, in their order.
    items_per_row : int, default=1
        Items that a row of the file is about.
    """
    queries = [""] * len(ranking) if ranking.qid is None else ranking.qid.tolist()
    queries = [cell(q) if isinstance(q, str) and _BREAKS_A_LINE.search(q) else q for q in queries]
    found = (ranking.positions, ranking.rows, ranking.scores)
    columns = zip(queries, names, *(column.tolist() for column in found), strict=True)
    lines = (
        f"{q}\t{place}\t{' '.join(str(name).split())}\t{score!r}\t{k // items_per_row}\n"
        for q, name, place, k, score in columns
    )
    return "".join(lines)


def trec_ranking(
    scores: NDArray[np.float64], qid: NDArray[Any] | None, docno: Sequence[str], k: int | None = None
) -> Ranking:
    """The items of each query in the order that trec_eval gives equal scores.

    It holds scores in single precision, and puts the greater document id first.
    """
    most = np.finfo(np.float32).max
    with np.errstate(over="ignore"):
        single = np.clip(scores.astype(np.float32), -most, most).astype(np.float64)
    found = rank_scores(single, qid=qid, k=k, docno=docno)
    return replace(found, scores=scores[found.rows])


def trec_rows(ranking: Ranking, names: Sequence[str], run: str) -> str:
    """A run, ``query Q0 document rank score run`` a line; without query ids everything is query 1.

    Parameters
    ----------
    ranking : Ranking
        As :func:`trec_ranking` gives it.
    names : sequence of str
        Document ids of the ranked items, in their order.
    run : str
        Its name.

    Raises
    ------
    InputError
        If a query or a document is not named by one word.
    """
    queries = ["1"] * len(ranking) if ranking.qid is None else [str(query) for query in ranking.qid.tolist()]
    called = [str(name) for name in names]
    for row, document, query in zip(ranking.rows.tolist(), called, queries, strict=True):
        for what, named, word in (("documents", "called", document), ("queries", "of query", query)):
            if len(word.split()) != 1:
                raise InputError(f"A trec run names {what} by one word each; row {row} is {named} {word!r}.", row=row)
    columns = zip(queries, called, ranking.positions.tolist(), ranking.scores.tolist(), strict=True)
    return "".join(f"{q} Q0 {name} {place} {score!r} {run}\n" for q, name, place, score in columns)
