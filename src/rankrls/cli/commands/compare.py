"""``rankrls compare``: several models on one file, and whether their differences are chance."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from rankrls._errors import InputError
from rankrls.cli._findings import check_measures, measure_of, measures_for
from rankrls.cli._models import load_model, scores_of
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table, printable
from rankrls.cli.datasets.opened import Opened, is_dataset
from rankrls.cli.datasets.rankings import about as about_parts
from rankrls.cli.datasets.rankings import compare as compare_parts
from rankrls.comparison import RankingReport, compare_rankings
from rankrls.io._atomic import check_target

__all__ = ["run"]


def run(options: Options, report: Report) -> Result:
    """Compare several rankings of one file."""
    check_measures(options.metrics, options)
    paths = [*options.models]
    if options.baseline is not None and options.baseline not in paths:
        paths.append(options.baseline)
    if len(paths) < 2:
        raise InputError("compare needs two rankings at least: DATA and then two or more MODEL files.")
    again = next((path for k, path in enumerate(paths) if path in paths[:k]), None)
    if again is not None:
        raise InputError("{0} is named twice.", again)
    labels = _labels(paths)
    if options.html is not None:
        check_target(options.html, options.data, *paths)
    models = [load_model(path, report) for path in paths if _is_model(path)]
    files = [path for path in paths if path not in [stored.path for stored in models]]
    baseline = None if options.baseline is None else labels[options.baseline]
    if is_dataset(options.data):
        if files:
            problem = "it is no model, and scores of rows need all rows in memory: DATA is read a part at a time."
            raise InputError(problem, file=str(files[0]))
        data, found = compare_parts({labels[stored.path]: stored for stored in models}, baseline, options, report)
        summary, described = Opened(str(options.data), data).summary(), about_parts(options.data, data)
    else:
        summary, described, found = _of_rows(models, files, labels, baseline, options, report)
    top = options.top_queries
    if options.html is not None:
        title = options.title or f"Rankings of {options.data.name}"
        about = {"data": described} | {labels[path]: f"{path}, SHA-256 {_digest(path)}" for path in paths}
        about = {name: printable(text) for name, text in about.items()}
        found.save_html(options.html, title=printable(title), top=max(top, 10), about=about)
        report.note(f"the page is {options.html}")
    tables = [Table(title, columns, rows) for title, columns, rows in found.tables(str(options.data), top=top)]
    return Result({"command": "compare", "data": summary, **found.as_dict(top=top)}, tables)


def _of_rows(
    models: Any, files: Any, labels: dict[Path, str], baseline: str | None, options: Options, report: Report
) -> tuple[Any, str, RankingReport]:
    """What the data are, in a dictionary and in words, and the rankings of all their rows compared."""
    table, scores = scores_of(options.data, models, files, options.reading(), report)
    assert table.y is not None
    with report.working("comparing", "comparing"):
        found = compare_rankings(
            table.y,
            {name: scores[path] for path, name in labels.items()},
            qid=table.qid,
            measures=[measure_of(name, options) for name in options.metrics or measures_for(table.y)],
            convention=options.convention,
            baseline=baseline,
        )
    return table.summary(), f"{options.data}, {table.n_rows} rows, SHA-256 {table.sha256}", found


def _labels(paths: list[Path]) -> dict[Path, str]:
    """What each file is called: its stem if the stems tell the files apart, else its whole path."""
    stems = {path: printable(path.stem) for path in paths}
    return stems if len(set(stems.values())) == len(paths) else {path: printable(str(path)) for path in paths}


def _is_model(path: Path) -> bool:
    """Whether a file is an archive, as model files are; text is a file of scores."""
    with path.open("rb") as file:
        return file.read(2) == b"PK" or path.suffix == ".rankrls"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
