"""``rankrls compare``: several rankings of one file, and whether their differences are chance."""

from __future__ import annotations

import hashlib
from pathlib import Path

from rankrls._errors import InputError
from rankrls.cli._options import Options
from rankrls.cli._reading import load_model, scores_of
from rankrls.cli._report import Report, Result, Table, printable
from rankrls.comparison import compare_rankings
from rankrls.comparison.judgement import suitable_measures
from rankrls.metrics import resolve_measure


def run(options: Options, report: Report) -> Result:
    """Compare rankings of one file."""
    for name in options.metrics or ("map",):
        resolve_measure(name, options.convention)
    paths = [*options.models]
    if options.baseline is not None and options.baseline not in paths:
        paths.append(options.baseline)
    if len(paths) < 2:
        raise InputError("compare needs DATA and two or more models or files of scores.", parameter="models")
    again = next((path for k, path in enumerate(paths) if path in paths[:k]), None)
    if again is not None:
        raise InputError(f"{again} is named twice.", parameter="models")
    stems = {path: printable(path.stem) for path in paths}
    names = stems if len(set(stems.values())) == len(paths) else {path: printable(str(path)) for path in paths}
    models = [load_model(path, report) for path in paths if _is_model(path)]
    files = [path for path in paths if path not in [stored.path for stored in models]]
    data, scores = scores_of(options, models, files, options.reading(), report)
    measures = options.metrics or suitable_measures(data.y)
    baseline = None if options.baseline is None else names[options.baseline]
    with report.working("comparing", "comparing"):
        found = compare_rankings(
            data.y,
            {names[path]: scores[path] for path in paths},
            qid=data.qid,
            docno=data.docids,
            measures=measures,
            convention=options.convention,
            baseline=baseline,
        )
    if options.html is not None:
        title = printable(options.title or f"Rankings of {options.data.name}")
        about = {"data": f"{options.data}, {data.n_rows} rows, SHA-256 {data.sha256}"}
        about |= {names[path]: f"{path}, SHA-256 {_digest(path)}" for path in paths}
        about = {name: printable(text) for name, text in about.items()}
        found.save_html(options.html, title=title, top=max(options.top, 10), about=about)
        report.note(f"the page is {options.html}")
    tables = [Table(title, columns, rows) for title, columns, rows in found.tables(str(options.data), top=options.top)]
    return Result({"command": "compare", "data": data.summary(), **found.as_dict(top=options.top)}, tables)


def _is_model(path: Path) -> bool:
    """Whether a file is an archive, as model files are; text is a file of scores."""
    with path.open("rb") as file:
        return file.read(2) == b"PK" or path.suffix == ".rankrls"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
