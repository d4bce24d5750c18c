"""``rankrls compare``: several models on one file, and whether their differences are chance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankrls.cli import _options as options
from rankrls.cli._columns import NOT_SAID, Columns, takes_columns
from rankrls.cli._report import Report

if TYPE_CHECKING:
    from rankrls.comparison import RankingReport

EXAMPLES = "Example: rankrls compare test.txt a.rankrls b.rankrls --metrics map,ndcg@10 --html report.html"

Models = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL...", show_default=False, help="Model files, or files of scores as predict writes them."
    ),
]
Baseline = Annotated[
    Path | None, typer.Option("--baseline", metavar="MODEL", help="Compare the others with this one only.")
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Also write the report as one self-contained page.")
]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title of the page.")]
Top = Annotated[int, typer.Option("--top", metavar="N", help="How many of the queries that changed most to show.")]


@takes_columns
def command(
    data: options.Rows,
    models: Models,
    metrics: options.Measures = None,
    convention: options.Convention = "letor",
    baseline: Baseline = None,
    html: Html = None,
    title: Title = None,
    top: Top = 5,
    columns: Columns = NOT_SAID,
    as_json: options.Json = False,
    threads: options.Threads = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare several rankings of one file query by query.

    Means with 95 % bootstrap intervals, paired randomisation and Wilcoxon tests adjusted by Holm, queries won and
    lost, and the queries that changed most. A table; with --json an object, with --html a page with charts.
    """
    report = Report(as_json, verbose, quiet)
    from rankrls.cli._data import check_target, describe, limited_threads
    from rankrls.cli._judging import measure_names, measures_for

    names = measure_names(metrics, convention)
    if top < 1:
        raise ValueError(f"--top must be at least 1; got {top}.")
    paths = [*models, *([baseline] if baseline is not None and baseline not in models else [])]
    if len(paths) < 2:
        raise ValueError("compare needs two rankings at least: DATA and then two or more MODEL files.")
    if len(set(paths)) < len(paths):
        again = next(path for k, path in enumerate(paths) if path in paths[:k])
        raise ValueError(f"{again} is named twice.")
    labels = _labels(paths)
    if html is not None:
        check_target(html, data, *paths)
    with limited_threads(threads):
        table, scores = _scores(data, paths, labels, columns, report)
        from rankrls.comparison import compare_rankings

        with report.working("comparing", "comparing"):
            found = compare_rankings(
                table.y,
                scores,
                qid=table.qid,
                measures=names or measures_for(table.y),
                convention=convention,
                baseline=None if baseline is None else labels[paths.index(baseline)],
            )
    if html is not None:
        found.save_html(html, title=title or f"Rankings of {data.name}", top=max(top, 10))
    if as_json:
        report.print_json({"command": "compare", "data": describe(table), **found.as_dict(top=top)})
        return
    _print(report, found, data, top)
    if html is not None:
        report.note(f"the page is {html}")


def _labels(paths: list[Path]) -> list[str]:
    """Stems where they tell the files apart, else whole paths."""
    stems = [path.stem for path in paths]
    return stems if len(set(stems)) == len(stems) else [str(path) for path in paths]


def _scores(
    data: Path, paths: list[Path], labels: list[str], columns: Columns, report: Report
) -> tuple[Any, dict[str, Any]]:
    """The file, and each model's scores of its rows."""
    from rankrls.cli._models import load_model
    from rankrls.cli._scores import read_for_scores, read_scores

    models = {path: load_model(path, report) for path in paths if _is_model(path)}
    for stored in models.values():  # the names of the first that has any
        columns = columns.like({role: name for role, name in stored.usual.items() if role not in dict(columns.usual)})
    given = {path: read_scores(path, columns) for path in paths if path not in models}
    for found in given.values():
        columns = found.for_columns(columns)
    table, shape = None, None
    scores: dict[str, Any] = dict.fromkeys(labels)  # in the order of the arguments
    names = dict(zip(paths, labels, strict=True))
    for path, stored in models.items():
        read_like = (stored.n_features, stored.zero_based, stored.names, stored.usual)
        if shape != read_like:  # models of the same training data share one reading
            table = stored.read(data, report, queries="required", columns=columns, labels="required")
            shape = read_like
        assert table is not None
        with report.working("scoring", f"scoring by {path}"):
            scores[names[path]] = stored.one_score_a_row(table)
    if table is None:
        table = read_for_scores(data, report, queries="required", columns=columns, labels="required")
    for path, found in given.items():
        scores[names[path]] = found.of_rows(table, report)
    return table, scores


def _is_model(path: Path) -> bool:
    """Whether a file is an archive, as model files are; text is a file of scores."""
    with path.open("rb") as file:
        return file.read(2) == b"PK" or path.suffix == ".rankrls"


def _print(report: Report, found: RankingReport, data: Path, top: int) -> None:
    rows = [
        [m.name, *(f"{i.estimate:.4f} [{i.low:.4f}, {i.high:.4f}]" for i in (m.intervals[n] for n in found.names))]
        for m in found.measures
    ]
    report.print_table(f"Rankings of {data}, {len(found.qid)} queries, 95 % intervals", ["", *found.names], rows)
    for m in found.measures:
        rows = [
            [
                f"{r.first} - {r.second}",
                f"{r.difference:+.4f}",
                f"{r.low:+.4f} to {r.high:+.4f}",
                f"{r.wins}/{r.ties}/{r.losses}",
                f"{r.p_holm:.4f}",
                f"{w.p_holm:.4f}",
            ]
            for r, w in zip(m.randomization, m.wilcoxon, strict=True)
        ]
        columns = ["", "difference", "95 % interval", "won/tied/lost", "p randomisation", "p Wilcoxon"]
        report.print_table(f"{m.name}, p values by Holm", columns, rows)
    main = found.measures[0]
    for line in main.randomization:
        changed = found.changed(main.name, line.first, line.second, top=top)
        rows = [
            [str(c.qid), str(c.n_items), f"{c.first:.4f}", f"{c.second:.4f}", f"{c.difference:+.4f}"] for c in changed
        ]
        if rows:
            title = f"Queries whose {main.name} changed most"
            report.print_table(title, ["qid", "items", line.first, line.second, "difference"], rows)
