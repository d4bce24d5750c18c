"""``rankrls evaluate`` and ``rankrls compare``: measures of rankings, and whether their differences are chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.cli._files import comparable_pairs, read_and_score
from rankrls.cli._options import Options, flag, given
from rankrls.cli._report import Report, Result, Table, measure_text
from rankrls.comparison import (
    Evaluation,
    compare_rankings,
    compare_runs,
    evaluate_preferences,
    evaluate_rows,
    evaluation_of_queries,
    suitable_measures,
)
from rankrls.io import load_qrels, load_run
from rankrls.io.preferences import read_pairs
from rankrls.metrics._measure import RUN_MEASURES, ByDocument, join_run, resolve_measure
from rankrls.persistence.stored import stored_model

Evaluated: TypeAlias = tuple[dict[str, Any], dict[str, Evaluation], list[Any]]
"""Facts about a ranking, its measures, and the ids of its queries."""


def evaluate(options: Options, report: Report) -> Result:
    """Evaluate a ranking of a file's queries."""
    measured = _of_rows if options.qrels is None else _of_run
    about, evaluated, ids = measured(options, report)
    measures = {}
    rows = []
    for name, each in evaluated.items():
        interval = each.interval()
        measures[name] = {**each.as_dict(), "interval": interval, "confidence": 0.95}
        shown = "-" if interval is None else f"{interval[0]:.4f} to {interval[1]:.4f}"
        rows.append([name, measure_text(each.value), shown, each.n_evaluated])
    unit = next(iter(evaluated.values())).unit
    title = f"{about['scores_of']} on {options.qrels or options.pairs or options.data}"
    tables = [Table(title, ["", "mean" if unit == "queries" else "share", "95 % interval", unit], rows)]
    found = {**about, "convention": options.tool, "measures": measures}
    if options.per_query:
        found["per_query"] = {"qid": ids, **{name: each.per_query for name, each in evaluated.items()}}
        rows = [[qid, *(measure_text(each.per_query[k]) for each in evaluated.values())] for k, qid in enumerate(ids)]
        tables = [Table("Queries", ["qid", *evaluated], rows), *tables]
    return Result(found, tables)


def _of_rows(options: Options, report: Report) -> Evaluated:
    """Measures of the scores of a file's rows, by a model or from another file."""
    *models, options.data = options.files
    if len(models) != (options.scores is None):
        raise InputError("evaluate needs MODEL and DATA, or DATA and a file of scores (scores).", parameter="scores")
    stored = [stored_model(path) for path in models]
    for each in stored:
        columns = each.schema.columns
        if not options.by_pairs and options.label in (None, columns.get("label")):
            options.event = columns.get("event")  # times are censored, as in training
    for name in options.given("metrics", "per_query") if options.by_pairs else ():
        raise InputError(f"{flag(name)} needs labels. Preferences are evaluated by pair_accuracy.", parameter=name)
    whole = options.all_rows and not options.scores  # else ids still say which row a score is of
    queries: Any = "ignored" if whole else "optional" if options.by_pairs or options.all_rows else "required"
    reading = options.reading(queries=queries, labels="ignored" if options.pairs else "required")
    data, found = read_and_score(options, stored, [*given({"scores": options.scores}).values()], reading, report)
    if options.all_rows:
        data = replace(data, qid=None)
    ((path, scores),) = found.items()
    about = {"scores_of": str(path), "data": data.summary()}
    ids = query_layout(data.qid, data.n_rows).ids.tolist()
    with report.working("evaluating"):
        if not options.by_pairs:
            measures = options.metrics or suitable_measures(data.y, ["pair_accuracy"] * options.of_items)
            evaluated = evaluate_rows(measures, options.tool, data, scores)
            return about, {options.called(name): each for name, each in evaluated.items()}, ids
        if options.pairs is None:
            pairs = comparable_pairs(data, report)
        else:
            pairs = read_pairs(options.pairs, data, report.note)
        by_query = bool(stored) and stored[0].by_query
        one = evaluate_preferences(pairs, scores, data.qid if by_query else None)
        return about | {"pairs": pairs.summary()}, {options.called("pair_accuracy"): one}, ids


def _of_run(options: Options, report: Report) -> Evaluated:
    """Measures of a TREC run by judgements."""
    if len(options.files) != 1:
        raise InputError("evaluate needs one run with --qrels; compare needs several.", parameter="qrels")
    (path,) = options.files
    qrels, runs = _read_runs(options, options.files, report)
    run = join_run(qrels, runs[path])
    measures = {name: resolve_measure(name, options.tool) for name in options.metrics or RUN_MEASURES}
    evaluated = {name: evaluation_of_queries(run.per_query(measure)) for name, measure in measures.items()}
    about = {"scores_of": str(path), "qrels": str(options.qrels), "counts": run.counts}
    return about, evaluated, run.layout.ids.tolist()


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
        gaps = [f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count and name != "queries"]
        if gaps:
            report.note(f"{path} and {options.qrels}: {', '.join(gaps)}.")
    return qrels, runs


def compare(options: Options, report: Report) -> Result:
    """Compare rankings of one file."""
    runs = [] if options.qrels is None else [options.data]
    paths = [*dict.fromkeys([*runs, *options.models, *given({"baseline": options.baseline}).values()])]
    if len(paths) < 2:
        raise InputError("compare needs DATA and two or more different models or files of scores.", parameter="models")
    stems = [path.stem for path in paths]
    names = {path: path.stem if stems.count(path.stem) == 1 else str(path) for path in paths}
    how: dict[str, Any] = {"convention": options.tool, "baseline": names.get(options.baseline)}
    if options.qrels is not None:
        source = options.qrels
        about = {"qrels": str(source)}
        qrels, of_path = _read_runs(options, paths, report)
        rankings = {names[path]: run for path, run in of_path.items()}
        comparison = partial(compare_runs, qrels, rankings, measures=options.metrics or RUN_MEASURES)
    else:
        source = options.data
        models = {path: stored_model(path) for path in paths if _is_model(path)}
        files = [path for path in paths if path not in models]
        reading = options.reading(queries="optional", labels="required")
        data, scores = read_and_score(options, [*models.values()], files, reading, report)
        if data.qid is None:
            problem = "compare needs query ids. Name their column (qid), or evaluate each model."
            raise InputError(problem, parameter="qid", file=data.path)
        about = {"data": data.summary()}
        how |= {"qid": data.qid, "docno": data.docids, "measures": options.metrics or suitable_measures(data.y)}
        comparison = partial(compare_rankings, data.y, {names[path]: scores[path] for path in paths})
    with report.working("comparing", bars=True):
        compared = comparison(**how)
    if options.html is not None:
        compared.save_html(
            options.html,
            title=f"Rankings of {source.name}",
            about={"data": str(source)} | {names[path]: str(path) for path in paths},
        )
    tables = [Table(*table) for table in compared.tables(str(source))]
    return Result(about | compared.as_dict(), tables)


def _is_model(path: Path) -> bool:
    """Whether a file is an archive, as model files are; text is a file of scores."""
    with path.open("rb") as file:
        return file.read(2) == b"PK" or path.suffix == ".rankrls"
