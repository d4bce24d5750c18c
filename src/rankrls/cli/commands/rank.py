"""``rankrls rank``: each query's items, best first."""

from __future__ import annotations

from typing import Any

from rankrls._errors import InputError
from rankrls.cli._files import written
from rankrls.cli._models import load_model
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result
from rankrls.cli.datasets.opened import is_dataset
from rankrls.cli.datasets.rankings import rank as rank_parts
from rankrls.io._atomic import check_target
from rankrls.io._rows import objects
from rankrls.io.items import item_names
from rankrls.io.rankings import ranking_lines, trec_run
from rankrls.models._pipelines import check_target as check_which
from rankrls.ranking import rank_scores

__all__ = ["run"]


def run(options: Options, report: Report) -> Result:
    """List the items of each query."""
    if options.run.split() != [options.run]:
        raise InputError("{run} must be one word; got {0!r}.", options.run, parameter="run")
    check_target(options.output, options.model, options.data)
    if is_dataset(options.data):
        return rank_parts(options, report)
    stored = load_model(options.model, report)
    queries = "ignored" if options.everything else "optional"
    table = stored.read(options.data, options.reading(queries=queries, labels="ignored"), report)
    if stored.by_query:
        stored.check_queries(table)
    scores = stored.scores(table, report).reshape(table.n_rows, -1)
    each = 1
    if stored.items:
        wide: Any = table
        (table, _), scores, each = wide.by_item(stored.items), scores.reshape(-1, 1), len(stored.items)
    ids = options.names_in_ranking
    scores = scores[:, check_which(options.target, scores.shape[1])]
    if ids == "auto":
        ids = "row" if table.docids is None else "docid"
    names = item_names(table, ids) or [str(row) for row in range(table.n_rows)]
    if options.layout == "trec":
        lines = lambda: trec_run(scores, table.qid, names, options.run, options.top_items)
        return written(options.output, report, lines, None)
    ranking = rank_scores(scores, qid=table.qid, k=options.top_items)
    columns = lambda: {
        "query": ranking.qid,
        "rank": ranking.positions,
        "item": objects(names)[ranking.rows],
        "score": ranking.scores,
        "row": ranking.rows // each,
    }
    return written(options.output, report, lambda: ranking_lines(ranking, names, each), columns)
