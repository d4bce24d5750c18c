"""``rankrls compare``: several models on one file, and whether their differences are chance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rankrls._errors import InputError
from rankrls.cli._findings import check_measures, describe, measures_for
from rankrls.cli._models import load_model, scores_of
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table, printable
from rankrls.comparison import compare_rankings
from rankrls.io._atomic import check_target

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
    models = [load_model(path, report) for path in paths if _is_model(path)]
    files = [path for path in paths if path not in [stored.path for stored in models]]
    table, scores = scores_of(options.data, models, files, options.reading(), report)
    assert table.y is not None
    with report.working("comparing", "comparing"):
        found = compare_rankings(
            table.y,
            {labels[path]: scores[path] for path in paths},
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
