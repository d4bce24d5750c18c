"""``rankrls evaluate`` and ``rankrls compare``: measures of rankings, and whether their differences are chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.cli._files import comparable_pairs, load_model, read_and_score
from rankrls.cli._options import Options, flag
from rankrls.cli._report import Report, Result, Table, measure_text
from rankrls.comparison import (
    Judgement,
    compare_rankings,
    compare_runs,
    judge,
    judge_pairs,
    judgement_of,
    suitable_measures,
)
from rankrls.io import load_qrels, load_run
from rankrls.io.preferences import read_pairs
from rankrls.metrics import resolve_measure
from rankrls.metrics._runs import RUN_MEASURES, ByDocument, join_run

_GAPS = {
    "queries_without_results": "queries of the judgements without results, each counted as an empty list",
    "queries_without_judgements": "queries without judgements, left out",
    "relevant_not_retrieved": "relevant documents that were not retrieved",
    "retrieved_not_judged": "retrieved documents without a judgement, counted as not relevant",
}


def evaluate(options: Options, report: Report) -> Result:
    """Evaluate a ranking of a file's queries."""
    for name in options.metrics or ():
        resolve_measure(name, options.tool)  # before anything is read
    if options.qrels is not None:
        return _evaluate_run(options, report)
    *models, options.data = options.files
    if len(models) != (options.scores is None):
        raise InputError("evaluate needs MODEL and DATA, or DATA and a file of scores (scores).", parameter="scores")
    stored = [load_model(path, report) for path in models]
    for each in stored:
        columns = each.schema.columns
        if not options.by_pairs and options.label in (None, columns.get("label")):
            options.event = columns.get("event")  # times are censored, as in training
    for name in options.given("metrics", "per_query") if options.by_pairs else ():
        problem = f"{flag(name)} needs labels. Preferences are evaluated by pair_accuracy."
        raise InputError(problem, parameter=name)
    whole = options.all_rows and not options.scores  # else ids still say which row a score is of
    queries: Any = "ignored" if whole else "optional" if options.by_pairs or options.all_rows else "required"
    reading = options.reading(queries=queries, labels="ignored" if options.pairs else "required")
    data, found = read_and_score(options, stored, [options.scores] if options.scores else [], reading, report)
    data = replace(data, qid=None) if options.all_rows else data
    ((path, scores),) = found.items()
    about: dict[str, Any] = {"scores_of": str(path), "data": data.summary()}
    with report.working("evaluating"):
        if options.by_pairs:
            if options.pairs is None:
                pairs = comparable_pairs(data, report)
            else:
                pairs = read_pairs(options.pairs, data, report.note)
            by_query = bool(stored) and stored[0].by_query
            judged = {"pair_accuracy": judge_pairs(pairs, scores, data.qid if by_query else None)}
            about["pairs"] = pairs.summary()
            title = f"{path} on {options.pairs or data.path}"
        else:
            measures = options.metrics or suitable_measures(data.y, ["pair_accuracy"] * options.of_items)
            judged = judge(measures, options.tool, data, scores)
            about["convention"] = options.tool
            title = f"{path} on {data.path}, {options.tool} measures"
    judged = {options.called(name): each for name, each in judged.items()}
    ids = query_layout(data.qid, data.n_rows).ids.tolist() if options.per_query else None
    return _measures(about, judged, ids, title)


def _evaluate_run(options: Options, report: Report) -> Result:
    """Evaluate a TREC run by judgements."""
    if len(options.files) != 1:
        raise InputError("evaluate needs one run with --qrels; compare needs several.", parameter="qrels")
    (path,) = options.files
    qrels, runs = _read_runs(options, options.files, report)
    run = join_run(qrels, runs[path])
    judged = {}
    for name in options.metrics or RUN_MEASURES:
        judged[name] = judgement_of(run.per_query(resolve_measure(name, options.tool)))
    found = {"scores_of": str(path), "qrels": str(options.qrels), "convention": options.tool, "counts": run.counts}
    ids = run.layout.ids.tolist() if options.per_query else None
    return _measures(found, judged, ids, f"{path} on {options.qrels}, {options.tool} measures")


def _read_runs(options: Options, paths: Sequence[Path], report: Report) -> tuple[ByDocument, dict[Path, ByDocument]]:
    """The judgements and the runs; a note says what they do not share."""
    with report.working("reading", options.qrels):
        qrels = load_qrels(options.qrels)
    runs: dict[Path, ByDocument] = {}
    for path in paths:
        with report.working("reading", path):
            runs[path] = load_run(path)
        try:
            counts = join_run(qrels, runs[path]).counts
        except InputError as error:
            raise error.replace(file=str(path)) from None
        if said := [f"{text}: {counts[name]}" for name, text in _GAPS.items() if counts[name]]:
            report.note(f"{path}: {'; '.join(said)}.")
    return qrels, runs


def _measures(found: dict[str, Any], judged: dict[str, Judgement], ids: list[Any] | None, title: str) -> Result:
    """The measures as a table; those of each query too if their ids are given."""
    measures = {}
    rows = []
    for name, each in judged.items():
        interval = each.interval()
        measures[name] = {**each.as_dict(), "interval": interval, "confidence": 0.95}
        shown = "-" if interval is None else f"{interval[0]:.4f} to {interval[1]:.4f}"
        rows.append([name, measure_text(each.value), shown, each.judged])
    unit = next(iter(judged.values())).unit
    tables = [Table(title, ["", "mean" if unit == "queries" else "share", "95 % interval", unit], rows)]
    found = {**found, "measures": measures}
    if ids is not None:
        found["per_query"] = {"qid": ids, **{name: each.per_query for name, each in judged.items()}}
        rows = [[qid, *(measure_text(each.per_query[k]) for each in judged.values())] for k, qid in enumerate(ids)]
        tables = [Table("Queries", ["qid", *judged], rows), *tables]
    return Result(found, tables)


def compare(options: Options, report: Report) -> Result:
    """Compare rankings of one file."""
    for name in options.metrics or ():
        resolve_measure(name, options.tool)
    runs = [] if options.qrels is None else [options.data]
    paths = [*dict.fromkeys([*runs, *options.models, *([] if options.baseline is None else [options.baseline])])]
    if len(paths) < 2:
        raise InputError("compare needs DATA and two or more different models or files of scores.", parameter="models")
    names = {path: path.stem for path in paths}
    if len(set(names.values())) < len(paths):
        names = {path: str(path) for path in paths}
    found: dict[str, Any] = {}
    if options.qrels is not None:
        source = options.qrels
        qrels, of_path = _read_runs(options, paths, report)
        found["qrels"] = str(source)
        rankings = {names[path]: run for path, run in of_path.items()}
        comparison = partial(compare_runs, qrels, rankings, measures=options.metrics or RUN_MEASURES)
    else:
        source = options.data
        models = [load_model(path, report) for path in paths if _is_model(path)]
        files = [path for path in paths if path not in [stored.path for stored in models]]
        reading = options.reading(queries="optional", labels="required")
        data, scores = read_and_score(options, models, files, reading, report)
        if data.qid is None:
            problem = "compare needs query ids. Name their column (qid), or evaluate each model."
            raise InputError(problem, parameter="qid", file=data.path)
        found["data"] = data.summary()
        comparison = partial(
            compare_rankings,
            data.y,
            {names[path]: scores[path] for path in paths},
            qid=data.qid,
            docno=data.docids,
            measures=options.metrics or suitable_measures(data.y),
        )
    with report.working("comparing", bars=True):
        compared = comparison(convention=options.tool, baseline=names.get(options.baseline))
    if options.html is not None:
        about = {"data": str(source)} | {names[path]: str(path) for path in paths}
        compared.save_html(options.html, title=f"Rankings of {source.name}", top=max(options.top, 10), about=about)
        report.note(f"the page is {options.html}")
    tables = [Table(*table) for table in compared.tables(str(source), top=options.top)]
    return Result(found | compared.as_dict(top=options.top), tables)


def _is_model(path: Path) -> bool:
    """Whether a file is an archive, as model files are; text is a file of scores."""
    with path.open("rb") as file:
        return file.read(2) == b"PK" or path.suffix == ".rankrls"
