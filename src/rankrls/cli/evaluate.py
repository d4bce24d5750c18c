"""``rankrls evaluate``: measures of a model's, or of any tool's, scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankrls.cli import _options as options
from rankrls.cli._columns import NOT_SAID, Columns, takes_columns
from rankrls.cli._report import Report

if TYPE_CHECKING:
    from rankrls.io import ColumnTable, LetorTable

EXAMPLES = "Example: rankrls evaluate m.rankrls test.txt --metrics map,ndcg@10  (or: --scores scores.txt test.txt)"

Files = Annotated[
    list[Path], typer.Argument(metavar="[MODEL] DATA", show_default=False, help="The model, and data as for fit.")
]
Scores = Annotated[
    Path | None,
    typer.Option(
        "--scores",
        metavar="FILE",
        help="Judge these scores instead of a model: one a line in DATA's order, or a table as predict writes it, "
        "matched by ids.",
    ),
]
PerQuery = Annotated[bool, typer.Option("--per-query", help="Also print each query's value.")]

Pairs = Annotated[
    Path | None,
    typer.Option(
        "--pairs",
        metavar="FILE",
        help="Judge by these preferences between DATA's rows instead of its labels: winner, loser and where wanted "
        "strength, weight, group (see rankrls fit --help).",
    ),
]


@takes_columns
def command(
    files: Files,
    scores: Scores = None,
    metrics: options.Measures = None,
    convention: options.Convention = "letor",
    per_query: PerQuery = False,
    pairs: Pairs = None,
    ids: options.Ids = None,
    everything: options.Everything = False,
    columns: Columns = NOT_SAID,
    as_json: options.Json = False,
    threads: options.Threads = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """Judge the ranking of a file's queries.

    By a model, or by a file of scores. Each measure comes with a 95 % interval, by drawing queries with replacement
    (2000 times, always the same).
    """
    report = Report(as_json, verbose, quiet)
    from rankrls._queries import query_layout
    from rankrls.cli import _judging
    from rankrls.cli._data import describe, labels_of, limited_threads

    ids = columns.item_ids(ids)
    if pairs is not None:
        for flag, given in (("--metrics", metrics), ("--per-query", per_query or None)):
            if given is not None:
                raise ValueError(f"{flag} is about labels, and --pairs judges by preferences: give one of the two.")
    queries: Any = "ignored" if everything else "required" if pairs is None else "optional"
    reading = {"queries": queries, "columns": columns, "labels": "required" if pairs is None else "ignored"}
    names = _judging.measure_names(metrics, convention)
    with limited_threads(threads):
        if scores:
            table, values, by_query = _from_file(files, scores, reading, report)
        else:
            table, values, by_query, remembered = _from_model(files, reading, report)
            if pairs is not None and ids is None and remembered is not None:
                _check_remembered(remembered, table)
                ids = remembered
        if pairs is not None:
            _judge_pairs(pairs, ids, table, values, by_query, str(scores or files[0]), report)
            return
        with report.working("judging", "judging"):
            found = _judging.judge(
                names or _judging.measures_for(labels_of(table)), convention, table, values, must_judge=names or ()
            )
            intervals = {name: judgement.interval() for name, judgement in found.items()}
    queried = query_layout(table.qid, table.n_rows).ids.tolist()
    if as_json:
        result: dict[str, Any] = {
            "command": "evaluate",
            "scores_of": str(scores or files[0]),
            "data": describe(table),
            "convention": convention,
            "measures": {
                name: {**judgement.as_dict(), "interval": intervals[name], "confidence": 0.95}
                for name, judgement in found.items()
            },
        }
        if per_query:
            result["per_query"] = {"qid": queried, **{name: judgement.per_query for name, judgement in found.items()}}
        report.print_json(result)
        return
    if per_query:
        rows = [
            [qid, *(_judging.show(judgement.per_query[k]) for judgement in found.values())]
            for k, qid in enumerate(queried)
        ]
        report.print_table("Queries", ["qid", *found], rows)
    rows = [
        [
            name,
            _judging.show(judgement.value),
            "-" if (ends := intervals[name]) is None else f"{ends[0]:.4f} to {ends[1]:.4f}",
            str(judgement.judged),
        ]
        for name, judgement in found.items()
    ]
    what = f"{scores or files[0]} on {table.path}, {convention} measures"
    report.print_table(what, ["", "mean", "95 % interval", "queries"], rows)


def _check_remembered(ids: str, table: LetorTable | ColumnTable) -> None:
    from rankrls.cli._pairs import item_ids

    try:
        item_ids(table, ids)
    except ValueError as error:
        raise ValueError(f"{error} (The model was fitted with --ids {ids}; else give --ids row.)") from None


def _judge_pairs(
    path: Path,
    ids: str | None,
    table: LetorTable | ColumnTable,
    scores: Any,
    by_query: bool,
    whose: str,
    report: Report,
) -> None:
    from rankrls.cli._data import describe
    from rankrls.cli._judging import show
    from rankrls.cli._pairs import MEASURE, describe_pairs, judge_pairs, read_pairs

    if by_query and table.qid is None:
        raise ValueError(f"{table.path}: the model was fitted with queries, so every line needs a qid.")
    pairs, _ = read_pairs(path, table, ids, report)
    with report.working("judging", "judging"):
        found = judge_pairs(pairs, scores, table.qid if by_query else None)
    ends = found.interval()
    if report.as_json:
        result = {"command": "evaluate", "scores_of": whose, "data": describe(table), "pairs": describe_pairs(pairs)}
        measures = {MEASURE: {**found.as_dict(), "interval": ends, "confidence": 0.95}}
        report.print_json(result | {"measures": measures})
        return
    interval = "-" if ends is None else f"{ends[0]:.4f} to {ends[1]:.4f}"
    report.print_table(
        f"{whose} on {path}",
        ["", "share", "95 % interval", "preferences"],
        [[MEASURE, show(found.value), interval, str(found.judged)]],
    )


def _from_model(
    files: list[Path], reading: dict[str, Any], report: Report
) -> tuple[LetorTable | ColumnTable, Any, bool, str | None]:
    from rankrls.cli._models import load_model

    if len(files) != 2:
        raise ValueError("evaluate needs MODEL and DATA, or --scores FILE and DATA (see rankrls evaluate --help).")
    path, data = files
    stored = load_model(path, report)
    if reading["queries"] == "ignored" and stored.by_query:
        raise ValueError(f"{path} was fitted with queries: --global would compare scores of different queries.")
    table = stored.read(data, report, **reading)
    with report.working("scoring", "scoring"):
        return table, stored.one_score_a_row(table), stored.by_query, stored.ids


def _from_file(
    files: list[Path], scores: Path, reading: dict[str, Any], report: Report
) -> tuple[LetorTable | ColumnTable, Any, bool]:
    from dataclasses import replace

    from rankrls.cli._scores import read_for_scores, read_scores

    if len(files) != 1:
        raise ValueError("with --scores, evaluate needs DATA only (see rankrls evaluate --help).")
    found = read_scores(scores, reading["columns"])
    columns = found.for_columns(reading["columns"])
    everything = reading["queries"] == "ignored"  # the qid still say which row a score is of
    table = read_for_scores(
        files[0], report, **reading | {"columns": columns, "queries": "optional" if everything else reading["queries"]}
    )
    values = found.of_rows(table, report)
    return (replace(table, qid=None) if everything else table), values, False
