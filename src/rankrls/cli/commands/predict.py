"""``rankrls predict`` and ``rankrls rank``: scores of rows, and the items of each query, best first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from rankrls._errors import InputError
from rankrls.cli._files import Columns, chunks, read, score_parts, score_rows, score_target, write_columns
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result
from rankrls.io._text import objects
from rankrls.io.preferences import load_sides, rows_by_id
from rankrls.io.writing import tab_lines, trec_ranking, trec_rows
from rankrls.models._pipelines import fitted_ranker
from rankrls.persistence.stored import stored_model
from rankrls.ranking import rank_scores


def predict(options: Options, report: Report) -> Result:
    """Score the rows of a file, or predict the votes between two of them."""
    if options.pairs is not None or options.votes:
        return _probabilities(options, report)

    def lines(part: Columns) -> str:
        scores = [*part.values()][2:]  # ids come first
        return tab_lines(scores, len(scores[0]))

    return write_columns(options.output, report, _scores(options, report), lines)


def _probabilities(options: Options, report: Report) -> Result:
    """The probability that a vote prefers the first item of each pair."""
    stored = stored_model(options.model)
    slope = vars(fitted_ranker(stored.whole)).get("win_slope_")
    if slope is None:
        raise InputError(
            "the model has no win probabilities. Fit it on votes, with held-out votes.", file=str(options.model)
        )
    path = options.data if options.pairs is None else options.pairs
    with report.working("reading", path):
        sides = load_sides(path, options.left, options.right)
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
        scores = score_target(stored, report, None, table)[[row_of[item] for item in items.tolist()]]
    first, second = scores[rows.reshape(2, -1)]
    found = {"left": sides[0], "right": sides[1], "difference": first - second}
    found["probability"] = expit(slope * found["difference"])

    def lines(part: Columns) -> str:
        return tab_lines([part["probability"]], len(first))

    return write_columns(options.output, report, [found], lines)


def _scores(options: Options, report: Report) -> Iterator[Columns]:
    """Ids of rows and a column of scores for each target, chunk by chunk."""
    stored = stored_model(options.model)
    for table in chunks(options, options.reading(), report, stored):
        columns = score_rows(stored, table, report).T
        names = ["score"] if len(columns) == 1 else [f"score_{k}" for k in range(len(columns))]
        known = table.schema.columns
        ids = {known.get("qid", "qid"): table.qid, known.get("id", "docid"): table.docids}
        yield ids | dict(zip(names, columns, strict=True))


def rank(options: Options, report: Report) -> Result:
    """List the items of each query."""
    stored = stored_model(options.model)
    reading = options.reading(queries="ignored" if options.all_rows else "optional")
    score = partial(score_target, stored, report, options.target)
    table, scores = score_parts(chunks(options, reading, report, stored), score, options.data)
    names: Any = [str(row) for row in range(table.n_rows)] if table.docids is None else table.docids
    is_trec = options.layout == "trec"
    if is_trec:
        found = trec_ranking(scores, table.qid, names, options.top)
    else:
        found = rank_scores(scores, qid=table.qid, k=options.top)
    items = objects(names)[found.rows]
    about = {"query": found.qid, "rank": found.positions, "item": items, "score": found.scores, "row": found.rows}

    def lines(part: Columns) -> str:
        if is_trec:
            return trec_rows(found, items.tolist(), "rankrls")
        return "\t".join(part) + "\n" + tab_lines(part.values(), len(items))

    return write_columns(options.output, report, [about], lines)
