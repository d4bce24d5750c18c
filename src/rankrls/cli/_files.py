"""Files that commands read and write: read with a word about it, written whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rankrls._errors import InputError
from rankrls.cli._report import Report, Result
from rankrls.io import atomic_write
from rankrls.io.data import Reading, Rows
from rankrls.io.tables.formats import table_format
from rankrls.io.tables.writing import write_columns

__all__ = ["read", "read_items", "written"]


def read(path: Path, reading: Reading, report: Report) -> Rows:
    """Rows of a file; "-" is standard input."""
    with report.working("reading", f"reading {path}"):
        return reading.read(path, report.note, source=sys.stdin.buffer if str(path) == "-" else None)


def read_items(options: Any, report: Report, features: tuple[str, ...] | None = None) -> Any:
    """The table of ``--items``, with one column of names."""
    if options.items is None:
        if options.item_id is not None:
            raise InputError("{item_id} is about {items}: give that too.", parameter="item_id")
        return None
    reading = Reading(id=options.item_id or "item", features=features, labels="ignored", queries="ignored", dense=True)
    if reading.format_of(options.items) == "letor":
        problem = "items are read from a table with named columns: .csv, .parquet or .arrow."
        raise InputError(problem, file=str(options.items), parameter="items")
    return read(options.items, reading, report)


def written(
    output: str, report: Report, text: Callable[[], str], columns: Callable[[], Mapping[str, Any]] | None
) -> Result:
    """Lines, or columns where the file's name is that of a table, in a file or for standard output.

    Parameters
    ----------
    output : str
        "-" is standard output.
    report : Report
    text : callable
    columns : callable or None
        Arrays by name, without those that are None; None if these lines are never a table.
    """
    if output == "-":
        return Result(text=text())
    with report.working("writing", f"writing {output}"):
        if columns is not None and table_format(output) is not None:
            given = {name: column for name, column in columns().items() if column is not None}
            count = len(next(iter(given.values())))
            write_columns(output, [*given], count, lambda rows: [column[rows] for column in given.values()])
        else:
            with atomic_write(output, "w") as file:
                file.write(text())
    return Result()
