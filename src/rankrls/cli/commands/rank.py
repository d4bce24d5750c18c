"""``rankrls rank``: each query's items, best first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from rankrls._errors import InputError
from rankrls.cli._files import check_target, written
from rankrls.cli._models import load_model
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result
from rankrls.io._rows import objects
from rankrls.io.data import Rows
from rankrls.io.items import item_names
from rankrls.io.tables.writing import cell
from rankrls.models._pipelines import check_target as check_which
from rankrls.ranking import rank_scores

if TYPE_CHECKING:
    from rankrls.ranking import Ranking

__all__ = ["run"]

_BREAKS_A_LINE = re.compile(r'["\t\r\n]')


def run(options: Options, report: Report) -> Result:
    """List the items of each query."""
    if options.run.split() != [options.run]:
        raise InputError("{run} must be one word; got {0!r}.", options.run)
    check_target(options.output, options.model, options.data)
    stored = load_model(options.model, report)
    queries: Any = "ignored" if options.everything else "optional"
    table = stored.read(options.data, options.reading(queries=queries, labels="ignored"), report)
    if stored.by_query:
        stored.check_queries(table)
    scores = stored.scores(table, report).reshape(table.n_rows, -1)
    scores = scores[:, check_which(options.target, scores.shape[1])]
    names = _names(table, options.names_in_ranking)
    k = options.top_items
    if options.layout == "trec":
        ranking = rank_scores(_single(scores), qid=table.qid, k=k, docno=names)
        return written(options.output, report, lambda: _trec(ranking, names, scores, options.run), None)
    ranking = rank_scores(scores, qid=table.qid, k=k)
    return written(options.output, report, lambda: _tsv(ranking, names), lambda: _columns(ranking, names))


def _names(table: Rows, ids: str) -> list[str]:
    """What each row is called, one word or comment each."""
    if ids == "auto":
        ids = "row" if table.docids is None else "docid"
    names = item_names(table, ids)
    return [str(row) for row in range(table.n_rows)] if names is None else names


def _single(scores: Any) -> Any:
    """The scores as trec_eval holds them."""
    with np.errstate(over="ignore"):
        single = scores.astype(np.float32).astype(np.float64)
    return np.clip(single, -np.finfo(np.float32).max, np.finfo(np.float32).max)


def _columns(ranking: Ranking, names: list[str]) -> dict[str, Any]:
    """The columns of a table; without the queries' where there are none."""
    return {
        "query": ranking.qid,
        "rank": ranking.positions,
        "item": objects(names)[ranking.rows],
        "score": ranking.scores,
        "row": ranking.rows,
    }


def _tsv(ranking: Ranking, names: list[str]) -> str:
    queries = [""] * len(ranking) if ranking.qid is None else ranking.qid.tolist()
    queries = [cell(q) if isinstance(q, str) and _BREAKS_A_LINE.search(q) else q for q in queries]
    columns = zip(queries, ranking.positions.tolist(), ranking.rows.tolist(), ranking.scores.tolist(), strict=True)
    lines = (f"{q}\t{place}\t{' '.join(names[row].split())}\t{score!r}\t{row}\n" for q, place, row, score in columns)
    return "query\trank\titem\tscore\trow\n" + "".join(lines)


def _trec(ranking: Ranking, names: list[str], scores: Any, run: str) -> str:
    queries = ["1"] * len(ranking) if ranking.qid is None else [str(query) for query in ranking.qid.tolist()]
    rows = ranking.rows.tolist()
    for row, query in zip(rows, queries, strict=True):
        if len(names[row].split()) != 1:
            raise InputError(
                "A trec run names documents by one word each; row {0} is called {1!r}.", row, names[row], row=row
            )
        if len(query.split()) != 1:
            raise InputError(
                "A trec run names queries by one word each; row {0} is of query {1!r}.", row, query, row=row
            )
    columns = zip(queries, ranking.positions.tolist(), rows, scores[ranking.rows].tolist(), strict=True)
    return "".join(f"{q} Q0 {names[row]} {place} {score!r} {run}\n" for q, place, row, score in columns)
