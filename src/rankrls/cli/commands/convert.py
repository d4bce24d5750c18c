"""``rankrls convert``: the same data in another format."""

from __future__ import annotations

from typing import Any

from rankrls._errors import InputError
from rankrls.cli._options import Options
from rankrls.cli._reading import read
from rankrls.cli._report import Report, Result
from rankrls.io import write_shards
from rankrls.io.data import read_names, write_rows
from rankrls.io.tables.opened import table_format


def run(options: Options, report: Report) -> Result:
    """Write data in another format."""
    names = None if options.names is None else read_names(options.names)
    if options.rows_per_file is not None:
        if options.group is not None:
            raise InputError("shards need query ids in the rows; group has none. Add a column.", parameter="group")
        how: Any = {"rows_per_file": options.rows_per_file, "float32": options.float32, "force": options.force}
        with report.working("writing", f"writing to {options.out}"):
            found = write_shards(options.data, options.out, feature_names=names, **how, **options.roles)
        rows, queries, features, files = (found[name] for name in ("rows", "queries", "features", "files"))
        report.note(f"{rows} rows of {queries} queries with {features} features are in {files} files in {options.out}.")
        return Result()
    to_letor = table_format(options.out) is None
    if to_letor and names is not None:
        problem = f"names has no meaning for {options.out}: LETOR text has numbers for names."
        raise InputError(problem, parameter="names")
    labels: Any = "required" if to_letor else "optional"
    table = read(options.data, options.reading(queries="optional", labels=labels), report)
    with report.working("writing", f"writing {options.out}"):
        write_rows(options.out, table, names, report.note)
    return Result()
