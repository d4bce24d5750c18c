"""Rankings as text: lines with names between tabs, or a run as trec_eval and ir_measures read it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.ranking import Ranking, rank_scores


def tab_lines(columns: Iterable[NDArray[Any] | None], rows: int) -> str:
    """Columns of some rows as text between tabs; one that is None is empty."""
    text = io.StringIO()
    cells = ([""] * rows if column is None else column.tolist() for column in columns)
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(zip(*cells, strict=True))
    return text.getvalue()


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
    for k, word in chain(enumerate(called), enumerate(queries)):
        if len(word.split()) != 1:
            row = int(ranking.rows[k])
            raise InputError(f"a trec run names queries and documents by one word; row {row} has {word!r}.", row=row)
    columns = zip(queries, called, ranking.positions.tolist(), ranking.scores.tolist(), strict=True)
    return "".join(f"{q} Q0 {name} {place} {score!r} {run}\n" for q, name, place, score in columns)
