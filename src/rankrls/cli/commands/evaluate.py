"""``rankrls evaluate``: measures of a model's, or of any tool's, scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.cli._data import describe, labels_of
from rankrls.cli._judging import Judgement, check_measures, judge, measures_for, show
from rankrls.cli._models import StoredModel, load_model
from rankrls.cli._options import Options
from rankrls.cli._pairs import MEASURE, describe_pairs, item_ids, judge_pairs, read_pairs
from rankrls.cli._report import Report, Result, Table
from rankrls.cli._scores import read_for_scores, read_scores
from rankrls.cli._spelling import said

if TYPE_CHECKING:
    from rankrls.io import ColumnTable, LetorTable

__all__ = ["run"]


@dataclass(frozen=True)
class _Scored:
    """Rows, the scores of each, whose they are, and the model if it is one's."""

    table: LetorTable | ColumnTable
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
        found = judge(
            names or measures_for(labels_of(table)), options.convention, table, scored.scores, must_judge=names or ()
        )
        result = _result(scored, found, {"convention": options.convention})
    title = f"{scored.whose} on {table.path}, {options.convention} measures"
    means = Table(title, ["", "mean", "95 % interval", "queries"], [[name, *j.row()] for name, j in found.items()])
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
        "measures": {name: judgement.with_interval() for name, judgement in found.items()},
    }


def _by_pairs(scored: _Scored, options: Options, report: Report) -> Result:
    table, stored, ids = scored.table, scored.stored, options.item_ids
    assert options.judged_pairs is not None
    if stored is not None and stored.by_query:
        stored.check_queries(table)
    if ids is None and stored is not None and stored.ids is not None:
        ids = stored.ids
        try:
            item_ids(table, ids)
        except InputError as error:
            raise InputError(
                "{0} (The model was fitted with --ids {1}; else give {ids=row}.)", said(error), ids
            ) from None
    pairs, _ = read_pairs(options.judged_pairs, table, ids, report)
    with report.working("judging", "judging"):
        found = judge_pairs(pairs, scored.scores, table.qid if stored is not None and stored.by_query else None)
    row = [MEASURE, *found.row()]
    shares = Table(f"{scored.whose} on {options.judged_pairs}", ["", "share", "95 % interval", "preferences"], [row])
    return Result(_result(scored, {MEASURE: found}, {"pairs": describe_pairs(pairs)}), [shares])


def _reading(options: Options) -> dict[str, Any]:
    by_labels = options.judged_pairs is None
    queries = "ignored" if options.everything else "required" if by_labels else "optional"
    return {"queries": queries, "columns": options.columns, "labels": "required" if by_labels else "ignored"}


def _from_model(options: Options, report: Report) -> _Scored:
    if len(options.files) != 2:
        raise InputError("evaluate needs MODEL and DATA, or {scores=FILE} and DATA (see rankrls evaluate --help).")
    path, data = options.files
    stored = load_model(path, report)
    table = stored.read(data, report, **_reading(options))
    return _Scored(table, stored.one_score_a_row(table, report), str(path), stored)


def _from_file(options: Options, report: Report) -> _Scored:
    if len(options.files) != 1:
        raise InputError("with {scores}, evaluate needs DATA only (see rankrls evaluate --help).")
    assert options.scores is not None
    found = read_scores(options.scores, options.columns)
    reading = _reading(options) | {"columns": found.for_columns(options.columns)}
    if options.everything:  # the qid still say which row a score is of
        reading["queries"] = "optional"
    table = read_for_scores(options.files[0], report, **reading)
    values = found.of_rows(table, report)
    return _Scored(replace(table, qid=None) if options.everything else table, values, str(options.scores))
