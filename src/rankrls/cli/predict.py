"""``rankrls predict``: one score a line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rankrls.cli import _options as options
from rankrls.cli._columns import NOT_SAID, Columns, takes_columns
from rankrls.cli._report import Report

EXAMPLES = "Example: rankrls predict m.rankrls test.txt -o scores.txt"

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A model that rankrls fit or rankrls.save wrote.")
]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Where the scores go; - is standard output.")
]


@takes_columns
def command(
    model: Model,
    data: options.Rows,
    output: Output = "-",
    columns: Columns = NOT_SAID,
    threads: options.Threads = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """Score the rows of a file.

    One line a row, in the file's order. Higher is better; only differences inside a query mean anything. Numbers are
    written so that reading them gives the same number again. A model of several targets writes one score each,
    separated by tabs. With -o a name that ends in .csv, .tsv, .parquet or .arrow: a table with the query ids, the
    items' ids and the scores.
    """
    report = Report(False, verbose, quiet)
    from rankrls.cli._data import check_target, limited_threads
    from rankrls.cli._models import load_model

    with limited_threads(threads):
        if output != "-":
            check_target(output, model, data)
        stored = load_model(model, report)
        table = stored.read(data, report, queries="optional", columns=columns)
        with report.working("scoring", "scoring"):
            scores = stored.scores(table)
    if output == "-":
        sys.stdout.write(_lines(scores))
        return
    from rankrls.io import atomic_write
    from rankrls.io.tables.formats import table_format

    if table_format(output) is not None:
        with report.working("writing", f"writing {output}"):
            _write_table(output, table, scores)
        return
    text = _lines(scores)
    with report.working("writing", f"writing {output}"), atomic_write(output, "w") as file:
        file.write(text)


def _write_table(path: str, table: Any, scores: Any) -> None:
    """Query ids and items' ids, as far as the data have them, beside the scores."""
    from rankrls.cli._judging import document_ids
    from rankrls.io.tables.writing import write_columns

    columns = scores.reshape(len(scores), -1).T
    names = ["score"] if len(columns) == 1 else [f"score_{k}" for k in range(len(columns))]
    found = {
        getattr(table, "qid_name", None) or "qid": table.qid,
        getattr(table, "id_name", None) or "docid": document_ids(table),
    }
    given = {name: values for name, values in found.items() if values is not None}
    everything = [*given.values(), *columns]
    write_columns(path, [*given, *names], len(scores), lambda rows: [column[rows] for column in everything])


def _lines(scores: object) -> str:
    rows = scores.tolist()  # type: ignore[attr-defined]
    return "".join(("\t".join(map(repr, row)) if isinstance(row, list) else repr(row)) + "\n" for row in rows)
