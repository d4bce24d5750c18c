"""``rankrls evaluate``: measures of a model's, or of any tool's, scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.cli._datasets import USUAL, is_dataset, open_data
from rankrls.cli._files import load_model, scores_of
from rankrls.cli._findings import asked_measures, check_measures, show
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.cli._votes import comparable_pairs
from rankrls.comparison.judgement import judge, judge_dataset, judge_pairs, suitable_measures
from rankrls.io import PairTable
from rankrls.io.data import Rows
from rankrls.io.items import item_names, read_pairs
from rankrls.persistence.stored import StoredModel


def run(options: Options, report: Report) -> Result:
    """Judge the ranking of a file's queries."""
    check_measures(options.metrics, options)
    in_parts = len(options.files) == 2 and is_dataset(options.files[1])
    stored, data, scores = (_opened if in_parts else _scored)(options, report)
    whose = str(options.scores if stored is None else stored.path)
    about: dict[str, Any] = {"convention": options.convention}
    title = f"{whose} on {data.path}, {options.convention} measures"
    with report.working("judging", "judging"):
        if options.judged_pairs is not None or options.event is not None:
            timed = options.event is not None
            pairs = comparable_pairs(data) if timed else _pairs(options, data, stored, report)
            qid = data.qid if stored is not None and stored.by_query else None
            found = {options.pair_measure: judge_pairs(pairs, scores, qid)}
            about, title = {"pairs": pairs.summary()}, f"{whose} on {data.path if timed else options.judged_pairs}"
        elif in_parts:
            found = judge_dataset(scores, data, asked_measures(options, USUAL), options.convention, options.memory)
        else:
            measures = asked_measures(options, suitable_measures(data.y))
            found = judge(measures, options.convention, data, scores, must_judge=options.metrics is not None)
    ends = {name: judgement.interval() for name, judgement in found.items()}
    about["measures"] = {name: {**j.as_dict(), "interval": ends[name], "confidence": 0.95} for name, j in found.items()}
    shown = {name: "-" if end is None else f"{end[0]:.4f} to {end[1]:.4f}" for name, end in ends.items()}
    rows = [[name, show(j.value), shown[name], str(j.judged)] for name, j in found.items()]
    by = ("share", "preferences") if "pairs" in about else ("mean", "queries")
    tables = [Table(title, ["", by[0], "95 % interval", by[1]], rows)]
    if options.per_query:
        queries = query_layout(data.qid, data.n_rows).ids.tolist()
        rows = [[qid, *(show(j.per_query[k]) for j in found.values())] for k, qid in enumerate(queries)]
        about["per_query"] = {"qid": queries, **{name: j.per_query for name, j in found.items()}}
        tables = [Table("Queries", ["qid", *found], rows), *tables]
    return Result({"command": "evaluate", "scores_of": whose, "data": data.summary(), **about}, tables)


def _opened(options: Options, report: Report) -> tuple[StoredModel, Any, Any]:
    """A model, and data that are read a part at a time; the model has their scores."""
    stored = load_model(options.files[0], report)
    return stored, open_data(options.files[1], options, report, stored), stored.model


def _scored(options: Options, report: Report) -> tuple[StoredModel | None, Any, Any]:
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
