"""``rankrls compare``: several models on one file, and whether their differences are chance."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rankrls._errors import InputError
from rankrls.cli._datasets import USUAL, is_dataset, open_data
from rankrls.cli._files import load_model, scores_of
from rankrls.cli._findings import asked_measures, check_measures
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table, printable
from rankrls.comparison import compare_dataset, compare_rankings
from rankrls.comparison.judgement import suitable_measures
from rankrls.io._atomic import check_target
from rankrls.persistence.stored import StoredModel


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
    check_target(options.html or "-", options.data, *paths)
    models = [load_model(path, report) for path in paths if _is_model(path)]
    files = [path for path in paths if path not in [stored.path for stored in models]]
    data: Any
    if is_dataset(options.data):
        data = _opened(models, files, options, report)
        named, measures = {labels[stored.path]: stored.model for stored in models}, asked_measures(options, USUAL)
        compare = partial(compare_dataset, named, data, memory=options.memory)
        described = f"{data.n_rows} rows in {len(data.files)} file{'s' * (len(data.files) != 1)}"
    else:
        data, scores = scores_of(options.data, models, files, options.reading(), report)
        measures = asked_measures(options, suitable_measures(data.y))
        compare = partial(compare_rankings, data.y, {labels[path]: scores[path] for path in paths}, qid=data.qid)
        described = f"{data.n_rows} rows, SHA-256 {data.sha256}"
    baseline = None if options.baseline is None else labels[options.baseline]
    with report.working("comparing", "comparing"):
        found = compare(measures=measures, convention=options.convention, baseline=baseline)
    top = options.top_queries
    if options.html is not None:
        title = options.title or f"Rankings of {options.data.name}"
        about = {"data": f"{options.data}, {described}"} | {
            labels[path]: f"{path}, SHA-256 {_digest(path)}" for path in paths
        }
        about = {name: printable(text) for name, text in about.items()}
        found.save_html(options.html, title=printable(title), top=max(top, 10), about=about)
        report.note(f"the page is {options.html}")
    tables = [Table(title, columns, rows) for title, columns, rows in found.tables(str(options.data), top=top)]
    return Result({"command": "compare", "data": data.summary(), **found.as_dict(top=top)}, tables)


def _opened(models: Sequence[StoredModel], files: Sequence[Path], options: Options, report: Report) -> Any:
    """Data that are read a part at a time, for models that can share them."""
    if files:
        problem = "it is no model, and scores of rows need all rows in memory: DATA is read a part at a time."
        raise InputError(problem, file=str(files[0]))
    data = open_data(options.data, options, report, models[0])
    for stored in models:
        if stored.encoder is not None or stored.items or stored.n_features != data.n_features:
            problem = "the models have to take the same features, as numbers, where DATA is read a part at a time."
            raise InputError(problem, file=str(stored.path))
    return data


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
