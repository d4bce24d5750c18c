"""``rankrls evaluate``: measures of a model's, or of any tool's, scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.cli._findings import check_measures, measure_of, measures_for, show
from rankrls.cli._models import StoredModel, load_model, scores_of
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.cli._votes import comparable_pairs
from rankrls.cli.datasets.opened import is_dataset
from rankrls.cli.datasets.scores import evaluate as evaluate_parts
from rankrls.comparison.judgement import Judgement, judge, judge_pairs
from rankrls.io import PairTable
from rankrls.io.data import Rows
from rankrls.io.items import item_names, read_pairs

__all__ = ["run"]


def run(options: Options, report: Report) -> Result:
    """Judge the ranking of a file's queries."""
    check_measures(options.metrics, options)
    if len(options.files) == 2 and is_dataset(options.files[1]):
        return evaluate_parts(options, report)
    stored, table, scores = _scored(options, report)
    whose = str(options.scores if stored is None else stored.path)
    result = {"command": "evaluate", "scores_of": whose, "data": table.summary()}
    if options.judged_pairs is not None or options.event is not None:
        timed = options.event is not None
        pairs = comparable_pairs(table) if timed else _pairs(options, table, stored, report)
        qid = table.qid if stored is not None and stored.by_query else None
        found = {options.pair_measure: judge_pairs(pairs, scores, qid)}
        result |= {"pairs": pairs.summary()}
        title = f"{whose} on {table.path if timed else options.judged_pairs}"
        shown = Table(title, ["", "share", "95 % interval", "preferences"], _rows(found))
        return Result(result | {"measures": _measures(found)}, [shown])
    names = [measure_of(name, options) for name in options.metrics or measures_for(table.y)]
    with report.working("judging", "judging"):
        found = judge(names, options.convention, table, scores, must_judge=names if options.metrics else ())
        result |= {"convention": options.convention, "measures": _measures(found)}
    title = f"{whose} on {table.path}, {options.convention} measures"
    tables = [Table(title, ["", "mean", "95 % interval", "queries"], _rows(found))]
    if options.per_query:
        queries = query_layout(table.qid, table.n_rows).ids.tolist()
        result["per_query"] = {"qid": queries, **{name: j.per_query for name, j in found.items()}}
        rows = [[qid, *(show(j.per_query[k]) for j in found.values())] for k, qid in enumerate(queries)]
        tables.insert(0, Table("Queries", ["qid", *found], rows))
    return Result(result, tables)


def _scored(options: Options, report: Report) -> tuple[StoredModel | None, Rows, Any]:
    """The model, if one is judged, the rows, and the score of each."""
    by_labels = options.judged_pairs is None
    asked = by_labels and options.event is None
    queries = "ignored" if options.everything else "required" if asked else "optional"
    reading = options.reading(queries=queries, labels="required" if by_labels else "ignored")
    if options.scores is None:
        if len(options.files) != 2:
            raise InputError("evaluate needs MODEL and DATA, or {scores=FILE} and DATA (see rankrls evaluate --help).")
        stored = load_model(options.files[0], report)
        table, scores = scores_of(options.files[1], [stored], [], reading, report)
        return stored, table, scores[stored.path]
    if len(options.files) != 1:
        raise InputError("with {scores}, evaluate needs DATA only (see rankrls evaluate --help).")
    if options.everything:  # the qid still say which row a score is of
        reading = replace(reading, queries="optional")
    table, scores = scores_of(options.files[0], [], [options.scores], reading, report)
    return None, replace(table, qid=None) if options.everything else table, scores[options.scores]


def _pairs(options: Options, table: Rows, stored: StoredModel | None, report: Report) -> PairTable:
    ids = options.item_ids
    assert options.judged_pairs is not None
    if stored is not None and stored.by_query:
        stored.check_queries(table)
    if ids is None and stored is not None and stored.ids is not None:
        ids = stored.ids
        try:
            item_names(table, ids)
        except InputError as error:
            raise error.followed(f"(The model was fitted with {{ids={ids}}}; else give {{ids=row}}.)") from None
    with report.working("reading", f"reading {options.judged_pairs}"):
        return read_pairs(options.judged_pairs, table, ids, report.note)[0]


def _measures(found: dict[str, Judgement]) -> dict[str, Any]:
    return {name: {**j.as_dict(), "interval": j.interval(), "confidence": 0.95} for name, j in found.items()}


def _rows(found: dict[str, Judgement]) -> list[list[str]]:
    """Mean, interval and how much was judged."""
    ends = {name: "-" if (i := j.interval()) is None else f"{i[0]:.4f} to {i[1]:.4f}" for name, j in found.items()}
    return [[name, show(j.value), ends[name], str(j.judged)] for name, j in found.items()]
