"""``rankrls rank``: each query's items, best first."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankrls.cli import _options as options
from rankrls.cli._columns import NOT_SAID, Columns, takes_columns
from rankrls.cli._report import Report

if TYPE_CHECKING:
    from rankrls.io import ColumnTable, LetorTable

EXAMPLES = "Example: rankrls rank m.rankrls test.txt --top 10  (for trec_eval: --format trec -o run.txt)"
FORMATS = ("tsv", "trec")
_BREAKS_A_LINE = re.compile(r'["\t\r\n]')

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A model that rankrls fit or rankrls.save wrote.")
]
Top = Annotated[int | None, typer.Option("--top", "-k", metavar="K", help="Only the best K of each query.")]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="WORD",
        help="tsv: query, rank, item, score, row, between tabs under a line of names; trec: a run as trec_eval and "
        "ir_measures read it.",
    ),
]
Ids = Annotated[
    str,
    typer.Option(
        "--ids",
        metavar="WORD",
        help="What names an item: row (its number, from 0), docid (what follows 'docid =' in its comment), comment; "
        "auto is docid where every line has one, else row.",
    ),
]
Run = Annotated[str, typer.Option("--run", metavar="NAME", help="The name of the run, the last word of a trec line.")]
Target = Annotated[
    int | None, typer.Option("--target", metavar="K", help="Which target (from 0) of a model of several.")
]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Where the ranking goes; - is standard output.")
]


@takes_columns
def command(
    model: Model,
    data: options.Rows,
    top: Top = None,
    format: Format = "tsv",
    ids: Ids = "auto",
    run: Run = "rankrls",
    target: Target = None,
    everything: options.Everything = False,
    output: Output = "-",
    columns: Columns = NOT_SAID,
    threads: options.Threads = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """List the items of each query, best first.

    Queries come in the file's order. Items of equal scores stand in the file's order, except in a trec run: there as
    trec_eval orders them, by the score in single precision and then the greater document id first. With -o a name that
    ends in .csv, .tsv, .parquet or .arrow: a table of the same columns.
    """
    report = Report(False, verbose, quiet)
    options.check_choice("--format", format, FORMATS)
    options.check_choice("--ids", ids, ("auto", *options.IDS))
    if top is not None and top < 1:
        raise ValueError(f"--top must be at least 1; got {top}.")
    if not run or run.split() != [run]:
        raise ValueError(f"--run must be one word; got {run!r}.")
    from rankrls.cli._data import check_target, limited_threads
    from rankrls.cli._models import load_model
    from rankrls.io.tables.formats import table_format
    from rankrls.ranking import rank_scores

    with limited_threads(threads):
        if output != "-":
            check_target(output, model, data)
        stored = load_model(model, report)
        if everything and stored.by_query:
            raise ValueError(f"{model} was fitted with queries: --global would compare scores of different queries.")
        table = stored.read(data, report, queries="ignored" if everything else "optional", columns=columns)
        if stored.by_query and table.qid is None:
            raise ValueError(f"{data}: the model was fitted with queries, so every line needs a qid.")
        with report.working("scoring", "scoring"):
            scores = _of_target(stored.scores(table), target)
    names = _names(table, ids)
    if format == "tsv":
        ranking = rank_scores(scores, qid=table.qid, k=top)
        if table_format(output) is not None:
            with report.working("writing", f"writing {output}"):
                _write_table(output, ranking, names)
            return
        text = _tsv(ranking, names)
    else:
        ranking = rank_scores(_single(scores), qid=table.qid, k=top, docno=names)
        text = _trec(ranking, names, scores, run)
    if output == "-":
        sys.stdout.write(text)
        return
    from rankrls.io import atomic_write

    with report.working("writing", f"writing {output}"), atomic_write(output, "w") as file:
        file.write(text)


def _names(table: LetorTable | ColumnTable, ids: str) -> list[str]:
    """What each row is called, one word or comment each."""
    from rankrls.cli._judging import document_ids
    from rankrls.cli._pairs import item_ids

    if ids == "auto":
        ids = "row" if document_ids(table) is None else "docid"
    names = item_ids(table, ids)
    return [str(row) for row in range(table.n_rows)] if names is None else names


def _of_target(scores: Any, target: int | None) -> Any:
    from rankrls.cli._words import in_options
    from rankrls.models._pipelines import check_target

    columns = scores.reshape(len(scores), -1)
    with in_options({"target": "--target"}):
        return columns[:, check_target(target, columns.shape[1])]


def _single(scores: Any) -> Any:
    """The scores as trec_eval holds them."""
    import numpy as np

    with np.errstate(over="ignore"):
        single = scores.astype(np.float32).astype(np.float64)
    return np.clip(single, -np.finfo(np.float32).max, np.finfo(np.float32).max)


def _tsv(ranking: Any, names: list[str]) -> str:
    from rankrls.io.tables.writing import cell

    queries = [""] * len(ranking) if ranking.qid is None else ranking.qid.tolist()
    queries = [cell(q) if isinstance(q, str) and _BREAKS_A_LINE.search(q) else q for q in queries]
    columns = zip(queries, ranking.positions.tolist(), ranking.rows.tolist(), ranking.scores.tolist(), strict=True)
    lines = (f"{q}\t{place}\t{' '.join(names[row].split())}\t{score!r}\t{row}\n" for q, place, row, score in columns)
    return "query\trank\titem\tscore\trow\n" + "".join(lines)


def _write_table(path: str, ranking: Any, names: list[str]) -> None:
    """The same columns as a table; without the queries' where there are none."""
    from rankrls.io._rows import objects
    from rankrls.io.tables.writing import write_columns

    columns = {
        "query": ranking.qid,
        "rank": ranking.positions,
        "item": objects(names)[ranking.rows],
        "score": ranking.scores,
        "row": ranking.rows,
    }
    given = {name: column for name, column in columns.items() if column is not None}
    write_columns(path, [*given], len(ranking), lambda rows: [column[rows] for column in given.values()])


def _trec(ranking: Any, names: list[str], scores: Any, run: str) -> str:
    queries = ["1"] * len(ranking) if ranking.qid is None else [str(query) for query in ranking.qid.tolist()]
    rows = ranking.rows.tolist()
    for row, query in zip(rows, queries, strict=True):
        if len(names[row].split()) != 1:
            raise ValueError(f"A trec run names documents by one word each; row {row} is called {names[row]!r}.")
        if len(query.split()) != 1:
            raise ValueError(f"A trec run names queries by one word each; row {row} is of query {query!r}.")
    columns = zip(queries, ranking.positions.tolist(), rows, scores[ranking.rows].tolist(), strict=True)
    return "".join(f"{q} Q0 {names[row]} {place} {score!r} {run}\n" for q, place, row, score in columns)
