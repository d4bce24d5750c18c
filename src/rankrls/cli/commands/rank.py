"""``rankrls rank``: each query's items, best first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls.cli._datasets import is_dataset, open_data
from rankrls.cli._files import load_model, read, scored, written
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result
from rankrls.io._atomic import check_target
from rankrls.io._rows import objects
from rankrls.io.items import item_names
from rankrls.io.rankings import HEAD, ranking_rows, trec_ranking, trec_rows
from rankrls.models._pipelines import check_target as check_which
from rankrls.ranking import rank_scores
from rankrls.streaming.ranked import NamedRanking, RankJob, ranked
from rankrls.streaming.scoring import unnamed


def run(options: Options, report: Report) -> Result:
    """List the items of each query."""
    if options.run.split() != [options.run]:
        raise InputError("{run} must be one word; got {0!r}.", options.run, parameter="run")
    check_target(options.output, options.model, options.data)
    each, parts = (_of_dataset if is_dataset(options.data) else _of_file)(options, report)
    if options.layout == "trec":
        return written(options.output, report, parts, lambda part: trec_rows(part, part.ids, options.run))

    def columns(part: Any) -> dict[str, Any]:
        about = {"query": part.qid, "rank": part.positions, "item": part.ids}
        return about | {"score": part.scores, "row": part.rows // each}

    return written(options.output, report, parts, lambda part: ranking_rows(part, part.ids, each), columns, head=HEAD)


def _of_file(options: Options, report: Report) -> tuple[int, Iterator[Any]]:
    """How many items each row is about, and the one ranking of all."""
    stored = load_model(options.model, report)
    queries = "ignored" if options.everything else "optional"
    table = read(options.data, options.reading(queries=queries, labels="ignored"), report, stored)
    if stored.by_query:
        stored.check_queries(table)
    scores = scored(stored, table, report).reshape(table.n_rows, -1)
    if stored.items:
        wide: Any = table
        (table, _), scores = wide.by_item(stored.items), scores.reshape(-1, 1)
    scores = scores[:, check_which(options.target, scores.shape[1])]
    ids = options.names_in_ranking
    if ids == "auto":
        ids = "row" if table.docids is None else "docid"
    names = item_names(table, ids) or [str(row) for row in range(table.n_rows)]
    if options.layout == "trec":
        found = trec_ranking(scores, table.qid, names, options.top_items)
    else:
        found = rank_scores(scores, qid=table.qid, k=options.top_items)
    return len(stored.items) or 1, iter([NamedRanking(**vars(found), ids=objects(names)[found.rows])])


def _of_dataset(options: Options, report: Report) -> tuple[int, Iterator[Any]]:
    """The same of data that are read a part at a time: the rankings of each part."""
    stored = load_model(options.model, report)
    data = open_data(options.data, options, report, stored, labels="ignored")
    job = RankJob(unnamed(stored.model), options.top_items, options.layout == "trec")
    return 1, (_named(part, options) for part in ranked(stored.model, data, job, memory=options.memory))


def _named(part: NamedRanking, options: Options) -> Any:
    """A ranking whose ids are what names the items."""
    wanted = options.names_in_ranking
    if wanted == "comment" or (wanted == "docid" and part.ids is None):
        problem = f"{{ids={wanted}}}: the data have no such ids, or they need all rows in memory."
        raise InputError(problem, remedy="Name the column of ids by {id}.", parameter="ids")
    if wanted == "row" or part.ids is None:
        return replace(part, ids=np.array([str(row) for row in part.rows.tolist()], dtype=object))
    return part
