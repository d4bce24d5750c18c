"""``rankrls compare``: several models on one file, and whether their differences are chance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankrls._errors import InputError
from rankrls.cli._files import check_target, read
from rankrls.cli._findings import check_measures, describe, measures_for
from rankrls.cli._models import load_model
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table, printable
from rankrls.comparison import compare_rankings
from rankrls.io.scores import read_scores

if TYPE_CHECKING:
    from rankrls.comparison import RankingReport

__all__ = ["run"]


def run(options: Options, report: Report) -> Result:
    """Compare several rankings of one file."""
    check_measures(options.metrics, options.convention)
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
    table, scores = _scores(options, labels, report)
    with report.working("comparing", "comparing"):
        found = compare_rankings(
            table.y,
            scores,
            qid=table.qid,
            measures=options.metrics or measures_for(table.y),
            convention=options.convention,
            baseline=None if options.baseline is None else labels[options.baseline],
        )
    top = options.top_queries
    if options.html is not None:
        title = options.title or f"Rankings of {options.data.name}"
        found.save_html(options.html, title=printable(title), top=max(top, 10))
        report.note(f"the page is {options.html}")
    return Result(
        {"command": "compare", "data": describe(table), **found.as_dict(top=top)}, _tables(found, options.data, top)
    )


def _labels(paths: list[Path]) -> dict[Path, str]:
    """What each file is called: its stem if the stems tell the files apart, else its whole path."""
    stems = {path: printable(path.stem) for path in paths}
    return stems if len(set(stems.values())) == len(paths) else {path: printable(str(path)) for path in paths}


def _scores(options: Options, labels: dict[Path, str], report: Report) -> tuple[Any, dict[str, Any]]:
    """The file, and each model's scores of its rows."""
    reading = options.reading()
    models = {path: load_model(path, report) for path in labels if _is_model(path)}
    for stored in models.values():  # the names of the first that has any
        reading = reading.called({role: name for role, name in stored.usual.items() if role not in reading.usual})
    given = {path: read_scores(path, reading) for path in labels if path not in models}
    for found in given.values():
        reading = found.data(reading)
    table, shape = None, None
    scores: dict[str, Any] = dict.fromkeys(labels.values())  # in the order of the arguments
    for path, stored in models.items():
        read_like = (stored.n_features, stored.zero_based, stored.names, stored.usual)
        if shape != read_like:  # models of the same training data share one reading
            table, shape = stored.read(options.data, reading, report), read_like
        assert table is not None
        scores[labels[path]] = stored.one_score_a_row(table, report)
    if table is None:
        table = read(options.data, reading, report)
    for path, found in given.items():
        scores[labels[path]] = found.of_rows(table, report.note)
    return table, scores


def _is_model(path: Path) -> bool:
    """Whether a file is an archive, as model files are; text is a file of scores."""
    with path.open("rb") as file:
        return file.read(2) == b"PK" or path.suffix == ".rankrls"


def _tables(found: RankingReport, data: Path, top: int) -> list[Table]:
    rows = [
        [m.name, *(f"{i.estimate:.4f} [{i.low:.4f}, {i.high:.4f}]" for i in (m.intervals[n] for n in found.names))]
        for m in found.measures
    ]
    tables = [Table(f"Rankings of {data}, {len(found.qid)} queries, 95 % intervals", ["", *found.names], rows)]
    columns = ["", "difference", "95 % interval", "won/tied/lost", "p randomisation", "p Wilcoxon"]
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
        tables.append(Table(f"{m.name}, p values by Holm", columns, rows))
    main = found.measures[0]
    for line in main.randomization:
        changed = found.changed(main.name, line.first, line.second, top=top)
        rows = [
            [str(c.qid), str(c.n_items), f"{c.first:.4f}", f"{c.second:.4f}", f"{c.difference:+.4f}"] for c in changed
        ]
        if rows:
            title = f"Queries whose {main.name} changed most"
            tables.append(Table(title, ["qid", "items", line.first, line.second, "difference"], rows))
    return tables
