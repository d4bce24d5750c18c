"""``rankrls rank``: the items of each query, best first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rankrls._errors import InputError
from rankrls.cli._options import Options
from rankrls.cli._reading import chunks, load_model, scored, written
from rankrls.cli._report import Report, Result
from rankrls.io._rows import objects
from rankrls.io.items import item_names
from rankrls.io.rankings import HEAD, ranking_rows, trec_ranking, trec_rows
from rankrls.models._pipelines import check_target
from rankrls.ranking import rank_scores


def run(options: Options, report: Report) -> Result:
    """List the items of each query."""
    if options.run.split() != [options.run]:
        raise InputError(f"run must be one word; got {options.run!r}.", parameter="run")
    parts = _rankings(options, report)
    if options.layout == "trec":
        return written(options.output, report, parts, lambda part: trec_rows(part, part.ids, options.run))

    def columns(part: Any) -> dict[str, Any]:
        about = {"query": part.qid, "rank": part.positions, "item": part.ids}
        return about | {"score": part.scores, "row": part.rows // part.each}

    return written(options.output, report, parts, lambda p: ranking_rows(p, p.ids, p.each), columns, head=HEAD)


def _rankings(options: Options, report: Report) -> Iterator[Any]:
    """The ranking of each chunk of rows, with the ids of its items, and how many items each row is about."""
    stored = load_model(options.model, report)
    queries: Any = "ignored" if options.everything else "optional"
    first = 0
    for table in chunks(options, options.reading(queries=queries, labels="ignored"), report, stored):
        if stored.by_query:
            stored.check_queries(table)
        scores = scored(stored, table, report).reshape(table.n_rows, -1)
        n_rows, rows = table.n_rows, table
        if stored.items:
            wide: Any = table
            (rows, _), scores = wide.by_item(stored.items), scores.reshape(-1, 1)
        scores = scores[:, check_target(options.target, scores.shape[1])]
        names = item_names(rows, options.ids) or [str(first + row) for row in range(rows.n_rows)]
        if options.layout == "trec":
            found = trec_ranking(scores, rows.qid, names, options.top)
        else:
            found = rank_scores(scores, qid=rows.qid, k=options.top)
        ids_of_rows = objects(names)[found.rows]
        found = replace(found, rows=found.rows + first)
        yield SimpleNamespace(**vars(found), ids=ids_of_rows, each=len(stored.items) or 1)
        first += n_rows
