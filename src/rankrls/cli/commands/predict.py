"""``rankrls predict`` and ``rankrls rank``: scores of rows, and the items of each query, best first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import expit

from rankrls._errors import InputError
from rankrls.cli._files import chunks, load_model, read, scored, written
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result
from rankrls.io._rows import objects
from rankrls.io.preferences import load_sides, rows_by_id
from rankrls.io.writing import tab_lines, trec_ranking, trec_rows
from rankrls.models._pipelines import check_target, fitted_ranker
from rankrls.ranking import rank_scores


def predict(options: Options, report: Report) -> Result:
    """Score the rows of a file, or predict the votes between two of them."""
    if options.pairs is not None or options.votes:
        return _probabilities(options, report)

    def lines(part: Any) -> str:
        return "".join("\t".join(map(repr, row)) + "\n" for row in part[1].tolist())

    def columns(part: Any) -> dict[str, Any]:
        table, scores = part
        names = ["score"] if scores.shape[1] == 1 else [f"score_{k}" for k in range(scores.shape[1])]
        ids = {table.qid_name or "qid": table.qid, table.id_name or "docid": table.docids}
        return ids | dict(zip(names, scores.T, strict=True))

    return written(options.output, report, _scores(options, report), lines, columns)


def _probabilities(options: Options, report: Report) -> Result:
    """The probability that a vote prefers the first item of each pair."""
    stored = load_model(options.model, report)
    slope = getattr(fitted_ranker(stored.whole), "win_slope_", None)
    if slope is None:
        problem = "has no win probabilities. Fit the model on votes, with held-out votes."
        raise InputError(problem, file=str(options.model))
    path = options.data if options.pairs is None else options.pairs
    with report.working("reading", path):
        sides = np.stack(load_sides(path, options.left, options.right))
    items, rows = np.unique(sides, return_inverse=True)
    if options.pairs is None:
        if stored.encoder is None or [*stored.encoder.columns_needed_] != ["item"]:
            raise InputError(
                "--left and --right are names or texts, but the model needs features. Use --pairs.", parameter="left"
            )
        if unseen := stored.encoder.count_unusual({"item": items}):
            report.note(f"{path} has items without training votes: {sum(unseen['item'].values())}.")
        scores = stored.whole.predict({"item": items})
    else:
        table = read(options.data, options.reading(), report, stored)
        row_of = rows_by_id(range(table.n_rows) if table.docids is None else table.docids)
        if missing := [item for item in items.tolist() if item not in row_of]:
            problem = f"{missing[0]!r} is the id of no row of {options.data}, or of several rows."
            raise InputError(f"{problem} Each item needs an id of its own.", parameter="pairs", file=str(path))
        scores = scored(stored, table, report)[[row_of[item] for item in items.tolist()]]
    first, second = scores[rows.reshape(2, -1)]
    found = {"left": sides[0], "right": sides[1], "difference": first - second}
    found["probability"] = expit(slope * found["difference"])

    def lines(part: dict[str, Any]) -> str:
        return "".join(f"{value!r}\n" for value in part["probability"].tolist())

    return written(options.output, report, [found], lines, dict)


def _scores(options: Options, report: Report) -> Iterator[Any]:
    """Rows and their scores (rows, targets), chunk by chunk."""
    stored = load_model(options.model, report)
    for table in chunks(options, options.reading(), report, stored):
        yield table, scored(stored, table, report).reshape(table.n_rows, -1)


def rank(options: Options, report: Report) -> Result:
    """List the items of each query."""
    if options.run.split() != [options.run]:
        raise InputError(f"--run must be one word; got {options.run!r}.", parameter="run")
    parts = _rankings(options, report)
    if options.layout == "trec":
        return written(options.output, report, parts, lambda part: trec_rows(part, part.ids, options.run))

    def columns(part: Any) -> dict[str, Any]:
        about = {"query": part.qid, "rank": part.positions, "item": part.ids}
        return about | {"score": part.scores, "row": part.rows}

    def lines(part: Any) -> Any:
        return tab_lines(columns(part).values(), len(part.rows))

    return written(options.output, report, parts, lines, columns, head="query\trank\titem\tscore\trow\n")


def _rankings(options: Options, report: Report) -> Iterator[Any]:
    """The ranking of each chunk of rows, with the ids of its items."""
    stored = load_model(options.model, report)
    reading = options.reading(queries="ignored" if options.everything else "optional")
    first = 0
    for table in chunks(options, reading, report, stored):
        if stored.by_query:
            stored.check_queries(table)
        scores = scored(stored, table, report).reshape(table.n_rows, -1)
        scores = scores[:, check_target(options.target, scores.shape[1])]
        names: Any = [str(first + row) for row in range(table.n_rows)] if table.docids is None else table.docids
        if options.layout == "trec":
            found = trec_ranking(scores, table.qid, names, options.top)
        else:
            found = rank_scores(scores, qid=table.qid, k=options.top)
        ids_of_rows = objects(names)[found.rows]
        found = replace(found, rows=found.rows + first)
        yield SimpleNamespace(**vars(found), ids=ids_of_rows)
        first += table.n_rows
