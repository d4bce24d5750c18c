"""``rankrls convert``: the same data in another format."""

from __future__ import annotations

from typing import Any

from rankrls._errors import InputError
from rankrls.cli._files import read
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result
from rankrls.io._atomic import check_target
from rankrls.io.data import read_names, write_rows
from rankrls.io.tables.formats import table_format

__all__ = ["run"]


def run(options: Options, report: Report) -> Result:
    """Write data in another format."""
    check_target(options.out, options.data, options.names)
    to_letor = table_format(options.out) is None
    if to_letor and options.names is not None:
        problem = "{names} means nothing to {0}: LETOR text has numbers for names."
        raise InputError(problem, options.out, parameter="names")
    labels: Any = "required" if to_letor else "optional"
    table = read(options.data, options.reading(queries="optional", labels=labels), report)
    given = None if options.names is None else read_names(options.names)
    with report.working("writing", f"writing {options.out}"):
        write_rows(options.out, table, given, report.note)
    return Result()
