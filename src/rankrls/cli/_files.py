"""Files that commands read and write: outputs are checked before any work is done, and written whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rankrls._errors import InputError
from rankrls.cli._report import Report, Result
from rankrls.io import atomic_write
from rankrls.io._atomic import is_written_in_place
from rankrls.io.data import Reading, Rows
from rankrls.io.tables.formats import table_format
from rankrls.io.tables.writing import write_columns

__all__ = ["check_target", "read", "written"]


def read(path: Path, reading: Reading, report: Report) -> Rows:
    """Rows of a file; "-" is standard input."""
    with report.working("reading", f"reading {path}"):
        return reading.read(path, report.note, source=sys.stdin.buffer if str(path) == "-" else None)


def check_target(path: Path | str, *inputs: Path | str | None) -> None:
    """Refuse, before any work is done, a file that could not be written after it, or that the command reads.

    "-" is standard output.
    """
    if str(path) == "-" or is_written_in_place(path):
        return
    for given in inputs:
        if given is not None and os.path.exists(path) and os.path.exists(given) and os.path.samefile(path, given):
            raise InputError("{0} is read by this command and would be overwritten: name another file to write.", path)
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise IsADirectoryError(21, "Is a directory, where a file should be written", str(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, f"There is no folder {folder!r} to write to", str(path))
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, f"The folder {folder!r} may not be written", str(path))


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
