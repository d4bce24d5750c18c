"""``rankrls evaluate``: measures of the scores of a model, or of any tool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.cli._options import Options
from rankrls.cli._reading import comparable_pairs, load_model, scores_of
from rankrls.cli._report import Report, Result, Table
from rankrls.cli._tables import show
from rankrls.comparison.judgement import judge, judge_pairs, suitable_measures
from rankrls.io import PairTable
from rankrls.io.items import read_pairs
from rankrls.metrics import resolve_measure


def run(options: Options, report: Report) -> Result:
    """Evaluate a ranking of a file's queries."""
    for name in options.metrics or ("map",):
        resolve_measure(name, options.convention)
    for name in ("metrics", "per_query"):
        if options.by_pairs and getattr(options, name):
            problem = f"{name} is about labels; preferences are evaluated by the share that is right."
            raise InputError(problem, parameter=name)
    *models, options.data = options.files
    if len(models) != (options.scores is None):
        raise InputError("evaluate needs MODEL and DATA, or DATA and a file of scores.", parameter="scores")
    stored = [load_model(path, report) for path in models]
    whole = options.everything and not options.scores  # else ids still say which row a score is of
    queries: Any = "ignored" if whole else "optional" if options.by_pairs or options.everything else "required"
    reading = options.reading(queries=queries, labels="ignored" if options.pairs else "required")
    files = [] if options.scores is None else [options.scores]
    data, found = scores_of(options, stored, files, reading, report)
    data = replace(data, qid=None) if options.everything else data
    ((path, scores),) = found.items()
    about: dict[str, Any] = {"convention": options.convention}
    title = f"{path} on {data.path}, {options.convention} measures"
    with report.working("evaluating", "evaluating"):
        if options.by_pairs:
            pairs = comparable_pairs(data) if options.event is not None else _pairs(options, data, stored, report)
            qid = data.qid if stored and stored[0].by_query else None
            judged = {options.pair_measure: judge_pairs(pairs, scores, qid)}
            about, title = {"pairs": pairs.summary()}, f"{path} on {options.pairs or data.path}"
        else:
            measures = options.metrics or suitable_measures(data.y)
            judged = judge(measures, options.convention, data, scores, must_judge=options.metrics is not None)
    ends = {name: each.interval() for name, each in judged.items()}
    about["measures"] = {n: {**each.as_dict(), "interval": ends[n], "confidence": 0.95} for n, each in judged.items()}
    shown = {name: "-" if end is None else f"{end[0]:.4f} to {end[1]:.4f}" for name, end in ends.items()}
    rows = [[name, show(each.value), shown[name], str(each.judged)] for name, each in judged.items()]
    by = ("share", "preferences") if "pairs" in about else ("mean", "queries")
    tables = [Table(title, ["", by[0], "95 % interval", by[1]], rows)]
    if options.per_query:
        ids = query_layout(data.qid, data.n_rows).ids.tolist()
        rows = [[qid, *(show(each.per_query[k]) for each in judged.values())] for k, qid in enumerate(ids)]
        about["per_query"] = {"qid": ids, **{name: each.per_query for name, each in judged.items()}}
        tables = [Table("Queries", ["qid", *judged], rows), *tables]
    return Result({"command": "evaluate", "scores_of": str(path), "data": data.summary(), **about}, tables)


def _pairs(options: Options, table: Any, models: list[Any], report: Report) -> PairTable:
    """The preferences between rows."""
    for stored in models:
        if stored.by_query:
            stored.check_queries(table)
    with report.working("reading", f"reading {options.pairs}"):
        return read_pairs(options.pairs, table, options.ids, report.note)
