"""``rankrls evaluate`` and ``rankrls compare``: measures of rankings, and whether their differences are chance."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.cli._files import comparable_pairs, load_model, scores_of
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table, printable, show
from rankrls.comparison import compare_rankings
from rankrls.comparison.judgement import judge, judge_pairs, suitable_measures
from rankrls.io.data import read_pairs
from rankrls.metrics import resolve_measure


def evaluate(options: Options, report: Report) -> Result:
    """Evaluate a ranking of a file's queries."""
    for name in options.metrics or ():
        resolve_measure(name, options.convention)  # before anything is read
    for name in ("metrics", "per_query"):
        if options.by_pairs and getattr(options, name):
            problem = f"--{name.replace('_', '-')} needs labels. Preferences are evaluated by pair_accuracy."
            raise InputError(problem, parameter=name)
    *models, options.data = options.files
    if len(models) != (options.scores is None):
        raise InputError("evaluate needs MODEL and DATA, or DATA and a file of scores (scores).", parameter="scores")
    stored = [load_model(path, report) for path in models]
    whole = options.everything and not options.scores  # else ids still say which row a score is of
    queries: Any = "ignored" if whole else "optional" if options.by_pairs or options.everything else "required"
    reading = options.reading(queries=queries, labels="ignored" if options.pairs else "required")
    data, found = scores_of(options, stored, [options.scores] if options.scores else [], reading, report)
    data = replace(data, qid=None) if options.everything else data
    ((path, scores),) = found.items()
    about: dict[str, Any] = {"convention": options.convention}
    title = f"{path} on {data.path}, {options.convention} measures"
    by = ("mean", "queries")
    with report.working("evaluating"):
        if options.by_pairs:
            by_query = bool(stored) and stored[0].by_query
            if by_query:
                stored[0].check_queries(data)
            event = options.event is not None
            pairs = comparable_pairs(data) if event else read_pairs(options.pairs, data, report.note)
            judged = {options.called("pair_accuracy"): judge_pairs(pairs, scores, data.qid if by_query else None)}
            about = {"pairs": pairs.summary()}
            title = f"{path} on {options.pairs or data.path}"
            by = ("share", "preferences")
        else:
            measures = options.metrics or suitable_measures(data.y, ["pair_accuracy"] * options.of_items)
            judged = judge(measures, options.convention, data, scores, must_judge=options.metrics is not None)
            judged = {options.called(name): each for name, each in judged.items()}
    about["measures"] = {}
    rows = []
    for name, each in judged.items():
        interval = each.interval()
        about["measures"][name] = {**each.as_dict(), "interval": interval, "confidence": 0.95}
        shown = "-" if interval is None else f"{interval[0]:.4f} to {interval[1]:.4f}"
        rows.append([name, show(each.value), shown, each.judged])
    tables = [Table(title, ["", by[0], "95 % interval", by[1]], rows)]
    if options.per_query:
        ids = query_layout(data.qid, data.n_rows).ids.tolist()
        about["per_query"] = {"qid": ids, **{name: each.per_query for name, each in judged.items()}}
        rows = [[qid, *(show(each.per_query[k]) for each in judged.values())] for k, qid in enumerate(ids)]
        tables = [Table("Queries", ["qid", *judged], rows), *tables]
    return Result({"command": "evaluate", "scores_of": str(path), "data": data.summary(), **about}, tables)


def compare(options: Options, report: Report) -> Result:
    """Compare rankings of one file."""
    for name in options.metrics or ():
        resolve_measure(name, options.convention)
    paths = [*dict.fromkeys([*options.models, *([] if options.baseline is None else [options.baseline])])]
    if len(paths) < 2:
        raise InputError("compare needs DATA and two or more models or files of scores.", parameter="models")
    names = {path: printable(path.stem) for path in paths}
    if len(set(names.values())) < len(paths):
        names = {path: printable(str(path)) for path in paths}
    models = [load_model(path, report) for path in paths if _is_model(path)]
    files = [path for path in paths if path not in [stored.path for stored in models]]
    data, scores = scores_of(options, models, files, options.reading(queries="required", labels="required"), report)
    with report.working("comparing"):
        found = compare_rankings(
            data.y,
            {names[path]: scores[path] for path in paths},
            qid=data.qid,
            docno=data.docids,
            measures=options.metrics or suitable_measures(data.y),
            convention=options.convention,
            baseline=None if options.baseline is None else names[options.baseline],
        )
    if options.html is not None:
        about = {"data": f"{options.data}, {data.n_rows} rows, SHA-256 {data.sha256}"}
        about |= {names[path]: f"{path}, SHA-256 {_digest(path)}" for path in paths}
        found.save_html(
            options.html,
            title=printable(options.title or f"Rankings of {options.data.name}"),
            top=max(options.top, 10),
            about={name: printable(text) for name, text in about.items()},
        )
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
