"""``rankrls evaluate``: measures of a model's, or of any tool's, scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.cli._datasets import USUAL, Opened, is_dataset, open_data
from rankrls.cli._files import load_model, scores_of
from rankrls.cli._findings import asked_measures, check_measures, show
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.cli._votes import comparable_pairs
from rankrls.comparison.judgement import Judgement, judge, judge_dataset, judge_pairs, suitable_measures
from rankrls.io import PairTable
from rankrls.io.data import Rows
from rankrls.io.items import item_names, read_pairs
from rankrls.persistence.stored import StoredModel

__all__ = ["run"]


def run(options: Options, report: Report) -> Result:
    """Judge the ranking of a file's queries."""
    check_measures(options.metrics, options)
    if len(options.files) == 2 and is_dataset(options.files[1]):
        return _of_dataset(options, report)
    stored, table, scores = _scored(options, report)
    whose = str(options.scores if stored is None else stored.path)
    if options.judged_pairs is not None or options.event is not None:
        timed = options.event is not None
        pairs = comparable_pairs(table) if timed else _pairs(options, table, stored, report)
        qid = table.qid if stored is not None and stored.by_query else None
        found = {options.pair_measure: judge_pairs(pairs, scores, qid)}
        title = f"{whose} on {table.path if timed else options.judged_pairs}"
        return _result(whose, table, found, title, {"pairs": pairs.summary()}, "share", "preferences")
    assert table.y is not None
    measures = asked_measures(options, suitable_measures(table.y))
    with report.working("judging", "judging"):
        found = judge(measures, options.convention, table, scores, must_judge=options.metrics is not None)
    result = _by_labels(whose, table, found, options)
    if not options.per_query:
        return result
    queries = query_layout(table.qid, table.n_rows).ids.tolist()
    rows = [[qid, *(show(j.per_query[k]) for j in found.values())] for k, qid in enumerate(queries)]
    of_each = {"per_query": {"qid": queries, **{name: j.per_query for name, j in found.items()}}}
    return Result({**result.found, **of_each}, [Table("Queries", ["qid", *found], rows), *result.tables])


def _of_dataset(options: Options, report: Report) -> Result:
    """Judge a model's ranking of data that are read a part at a time."""
    stored = load_model(options.files[0], report)
    data = open_data(options.files[1], options, report, stored)
    with report.working("judging", "judging"):
        measures = asked_measures(options, USUAL)
        found = judge_dataset(stored.model, data, measures, options.convention, options.memory)
    return _by_labels(str(stored.path), Opened(str(options.files[1]), data), found, options)


def _by_labels(whose: str, data: Any, found: Mapping[str, Judgement], options: Options) -> Result:
    title = f"{whose} on {data.path}, {options.convention} measures"
    return _result(whose, data, found, title, {"convention": options.convention}, "mean", "queries")


def _result(
    whose: str, data: Any, found: Mapping[str, Judgement], title: str, about: dict[str, Any], value: str, unit: str
) -> Result:
    """Each measure with its interval and how much was judged."""
    ends = {name: judgement.interval() for name, judgement in found.items()}
    measures = {name: {**j.as_dict(), "interval": ends[name], "confidence": 0.95} for name, j in found.items()}
    shown = {name: "-" if end is None else f"{end[0]:.4f} to {end[1]:.4f}" for name, end in ends.items()}
    rows = [[name, show(j.value), shown[name], str(j.judged)] for name, j in found.items()]
    result = {"command": "evaluate", "scores_of": whose, "data": data.summary(), **about, "measures": measures}
    return Result(result, [Table(title, ["", value, "95 % interval", unit], rows)])


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
