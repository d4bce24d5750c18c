"""``rankrls evaluate``: measures of a model's, or of any tool's, scores."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankrls.cli import _options as options
from rankrls.cli._columns import NOT_SAID, Columns, takes_columns
from rankrls.cli._report import Report
from rankrls.cli._words import in_options

if TYPE_CHECKING:
    from rankrls.io import ColumnTable, LetorTable

EXAMPLES = "Example: rankrls evaluate m.skops test.txt --metrics map,ndcg@10  (or: --scores scores.txt test.txt)"

Files = Annotated[
    list[Path], typer.Argument(metavar="[MODEL] DATA", show_default=False, help="The model, and data as for fit.")
]
Scores = Annotated[
    Path | None,
    typer.Option(
        "--scores", metavar="FILE", help="Judge these scores, one a line in DATA's order, instead of a model."
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
    ids: options.Ids = "row",
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

    options.check_choice("--ids", ids, options.IDS)
    if pairs is not None:
        for flag, given in (("--metrics", metrics), ("--per-query", per_query or None)):
            if given is not None:
                raise ValueError(f"{flag} is about labels, and --pairs judges by preferences: give one of the two.")
    queries: Any = "ignored" if everything else "required" if pairs is None else "optional"
    reading = {"queries": queries, "columns": columns, "labels": "required" if pairs is None else "ignored"}
    ids = columns.item_ids(ids)
    names = _judging.measure_names(metrics, convention)
    with limited_threads(threads):
        table, values, by_query = (
            _from_file(files, scores, reading, report) if scores else _from_model(files, reading, report)
        )
        if pairs is not None:
            _judge_pairs(pairs, ids, table, values, by_query, str(scores or files[0]), report)
            return
        with report.working("judging", "judging"):
            found = _judging.judge(
                names or _judging.measures_for(labels_of(table)), convention, table, values, must_judge=names or ()
            )
            intervals = {name: judgement.interval() for name, judgement in found.items()}
    ids = query_layout(table.qid, table.n_rows).ids.tolist()
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
            result["per_query"] = {"qid": ids, **{name: judgement.per_query for name, judgement in found.items()}}
        report.print_json(result)
        return
    if per_query:
        rows = [
            [qid, *(_judging.show(judgement.per_query[k]) for judgement in found.values())] for k, qid in enumerate(ids)
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


def _judge_pairs(
    path: Path, ids: str, table: LetorTable | ColumnTable, scores: Any, by_query: bool, whose: str, report: Report
) -> None:
    from rankrls.cli._data import describe
    from rankrls.cli._judging import show
    from rankrls.cli._pairs import MEASURE, describe_pairs, judge_pairs, read_pairs

    if by_query and table.qid is None:
        raise ValueError(f"{table.path}: the model was fitted with queries, so every line needs a qid.")
    pairs = read_pairs(path, table, ids, report)
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
) -> tuple[LetorTable | ColumnTable, Any, bool]:
    from rankrls.cli._models import load_model

    if len(files) != 2:
        raise ValueError("evaluate needs MODEL and DATA, or --scores FILE and DATA (see rankrls evaluate --help).")
    path, data = files
    stored = load_model(path, report)
    if reading["queries"] == "ignored" and stored.by_query:
        raise ValueError(f"{path} was fitted with queries: --global would compare scores of different queries.")
    table = stored.read(data, report, **reading)
    with report.working("scoring", "scoring"):
        return table, stored.one_score_a_row(table), stored.by_query


def _from_file(
    files: list[Path], scores: Path, reading: dict[str, Any], report: Report
) -> tuple[LetorTable | ColumnTable, Any, bool]:
    from rankrls.cli._data import read

    if len(files) != 1:
        raise ValueError("with --scores, evaluate needs DATA only (see rankrls evaluate --help).")
    table = read(files[0], report, **reading)
    values = read_scores(scores)
    if len(values) != table.n_rows:
        raise ValueError(f"{scores} has {len(values)} scores, but {files[0]} has {table.n_rows} rows.")
    return table, values, False


def read_scores(path: Path) -> Any:
    import numpy as np

    from rankrls.io._tables import table_format

    if str(path) != "-" and table_format(path) is not None and not _begins_with_a_number(path):
        return _scores_of_table(path)
    if str(path) == "-":
        text = sys.stdin.read().removeprefix("\ufeff")
    else:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    lines = text.rstrip().splitlines()
    if not lines:
        raise ValueError(f"{path}: the file holds no scores.")
    try:
        values = np.array(lines, dtype=np.float64)
    except ValueError:
        values = np.array([_number(line) for line in lines])
    bad = ~np.isfinite(values)
    if bad.any():
        line = int(np.argmax(bad))
        raise ValueError(f"{path}:{line + 1}: a score must be one finite number; got {lines[line][:40]!r}.")
    return values


def _scores_of_table(path: Path) -> Any:
    """The column "score" of a table, as predict writes it."""
    from rankrls.io import load_table

    with in_options():
        return load_table(path, features=["score"], labels="ignored").X[:, 0]


def _begins_with_a_number(path: Path) -> bool:
    """Whether a file is one score a line, whatever its name says."""
    with path.open("rb") as file:
        return math.isfinite(_number(file.readline(100).decode("utf-8-sig", "replace")))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
