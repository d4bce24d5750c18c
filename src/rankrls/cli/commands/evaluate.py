"""``rankrls evaluate``: measures of a model's, or of any tool's, scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.cli._files import read
from rankrls.cli._findings import check_measures, describe, describe_pairs, measures_for, show
from rankrls.cli._models import StoredModel, load_model
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.comparison.judgement import PREFERENCES, Judgement, judge, judge_pairs
from rankrls.io.data import Reading, Rows
from rankrls.io.items import item_names, read_pairs
from rankrls.io.scores import read_scores

__all__ = ["run"]


@dataclass(frozen=True)
class _Scored:
    """Rows, the scores of each, whose they are, and the model if it is one's."""

    table: Rows
    scores: Any
    whose: str
    stored: StoredModel | None = None


def run(options: Options, report: Report) -> Result:
    """Judge the ranking of a file's queries."""
    check_measures(options.metrics, options.convention)
    scored = _from_model(options, report) if options.scores is None else _from_file(options, report)
    if options.judged_pairs is not None:
        return _by_pairs(scored, options, report)
    table, names = scored.table, options.metrics
    with report.working("judging", "judging"):
        found = judge(names or measures_for(table.y), options.convention, table, scored.scores, must_judge=names or ())
        result = _result(scored, found, {"convention": options.convention})
    title = f"{scored.whose} on {table.path}, {options.convention} measures"
    means = Table(title, ["", "mean", "95 % interval", "queries"], [[name, *_cells(j)] for name, j in found.items()])
    if not options.per_query:
        return Result(result, [means])
    queried = query_layout(table.qid, table.n_rows).ids.tolist()
    result["per_query"] = {"qid": queried, **{name: j.per_query for name, j in found.items()}}
    rows = [[qid, *(show(j.per_query[k]) for j in found.values())] for k, qid in enumerate(queried)]
    return Result(result, [Table("Queries", ["qid", *found], rows), means])


def _result(scored: _Scored, found: dict[str, Judgement], about: dict[str, Any]) -> dict[str, Any]:
    return {
        "command": "evaluate",
        "scores_of": scored.whose,
        "data": describe(scored.table),
        **about,
        "measures": {name: {**j.as_dict(), "interval": j.interval(), "confidence": 0.95} for name, j in found.items()},
    }


def _by_pairs(scored: _Scored, options: Options, report: Report) -> Result:
    table, stored, ids = scored.table, scored.stored, options.item_ids
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
        pairs, _ = read_pairs(options.judged_pairs, table, ids, report.note)
    with report.working("judging", "judging"):
        found = judge_pairs(pairs, scored.scores, table.qid if stored is not None and stored.by_query else None)
    row = [PREFERENCES, *_cells(found)]
    shares = Table(f"{scored.whose} on {options.judged_pairs}", ["", "share", "95 % interval", "preferences"], [row])
    return Result(_result(scored, {PREFERENCES: found}, {"pairs": describe_pairs(pairs)}), [shares])


def _cells(judgement: Judgement) -> list[str]:
    """Mean, interval and how much was judged."""
    ends = judgement.interval()
    return [show(judgement.value), "-" if ends is None else f"{ends[0]:.4f} to {ends[1]:.4f}", str(judgement.judged)]


def _reading(options: Options) -> Reading:
    by_labels = options.judged_pairs is None
    queries = "ignored" if options.everything else "required" if by_labels else "optional"
    return options.reading(queries=queries, labels="required" if by_labels else "ignored")


def _from_model(options: Options, report: Report) -> _Scored:
    if len(options.files) != 2:
        raise InputError("evaluate needs MODEL and DATA, or {scores=FILE} and DATA (see rankrls evaluate --help).")
    path, data = options.files
    stored = load_model(path, report)
    table = stored.read(data, _reading(options), report)
    return _Scored(table, stored.one_score_a_row(table, report), str(path), stored)


def _from_file(options: Options, report: Report) -> _Scored:
    if len(options.files) != 1:
        raise InputError("with {scores}, evaluate needs DATA only (see rankrls evaluate --help).")
    assert options.scores is not None
    reading = _reading(options)
    found = read_scores(options.scores, reading)
    if options.everything:  # the qid still say which row a score is of
        reading = replace(reading, queries="optional")
    table = read(options.files[0], found.data(reading), report)
    values = found.of_rows(table, report.note)
    return _Scored(replace(table, qid=None) if options.everything else table, values, str(options.scores))
