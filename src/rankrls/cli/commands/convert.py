"""``rankrls convert``: the same data in another format."""

from __future__ import annotations

from typing import Any

from rankrls._errors import InputError
from rankrls.cli._files import read
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result
from rankrls.io import write_shards
from rankrls.io._atomic import check_target
from rankrls.io.data import read_names, write_rows
from rankrls.io.tables.formats import table_format


def run(options: Options, report: Report) -> Result:
    """Write data in another format."""
    if options.rows_per_file is not None:
        return _as_shards(options, options.rows_per_file, report)
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


def _as_shards(options: Options, rows_per_file: int, report: Report) -> Result:
    """Write data of any size as Parquet files."""
    if options.group is not None:
        problem, remedy = "shards are made of rows with query ids, not of {group}.", "Add a column of ids."
        raise InputError(problem, remedy=remedy, parameter="group")
    given = None if options.names is None else read_names(options.names)
    with report.working("writing", f"writing to {options.out}"):
        found = write_shards(
            options.data,
            options.out,
            rows_per_file=rows_per_file,
            sort=options.sort,
            float32=options.float32,
            feature_names=given,
            **options.opening,
        )
    rows, queries, features, files = (found[name] for name in ("rows", "queries", "features", "files"))
    report.note(f"{rows} rows of {queries} queries with {features} features are in {files} files in {options.out}.")
    return Result()
