"""``rankrls predict``: one score a line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rankrls.cli import _options as options
from rankrls.cli._report import Report

EXAMPLES = "Example: rankrls predict m.skops test.txt -o scores.txt"

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A model that rankrls fit or rankrls.save wrote.")
]
Data = Annotated[Path, typer.Argument(metavar="DATA", show_default=False, help="LETOR / SVMlight text, plain or gzip.")]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Where the scores go; - is standard output.")
]


def command(
    model: Model,
    data: Data,
    output: Output = "-",
    threads: options.Threads = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """Score the rows of a file.

    One line a row, in the file's order. Higher is better; only differences inside a query mean anything. Numbers are
    written so that reading them gives the same number again. A model of several targets writes one score each,
    separated by tabs.
    """
    report = Report(False, verbose, quiet)
    from rankrls.cli._data import check_target, limited_threads
    from rankrls.cli._models import load_model

    with limited_threads(threads):
        if output != "-":
            check_target(output, model, data)
        stored = load_model(model, report)
        table = stored.read(data, report, queries="optional")
        with report.working("scoring", "scoring"):
            scores = stored.scores(table)
    text = _lines(scores)
    if output == "-":
        sys.stdout.write(text)
        return
    from rankrls.io import atomic_write

    with report.working("writing", f"writing {output}"), atomic_write(output, "w") as file:
        file.write(text)


def _lines(scores: object) -> str:
    rows = scores.tolist()  # type: ignore[attr-defined]
    return "".join(("\t".join(map(repr, row)) if isinstance(row, list) else repr(row)) + "\n" for row in rows)
