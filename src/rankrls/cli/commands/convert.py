"""``rankrls convert`` and ``rankrls split``: the same data in another format, or in parts of whole queries."""

from __future__ import annotations

import math
import re
from typing import Any

from rankrls._errors import InputError
from rankrls.cli._files import read
from rankrls.cli._options import Options, flag
from rankrls.cli._report import Report, Result, Table
from rankrls.io import resolve_conflicts, write_shards
from rankrls.io.files import check_outside, new_folder, read_names
from rankrls.io.formats import is_table
from rankrls.io.reading import read_records
from rankrls.io.writing import write_rows
from rankrls.model_selection import query_folds, query_parts

_OURS = re.compile(r"(Fold[0-9]+/)?(train|vali|test)\.[^/]+")
_PARTS = {2: ("train", "test"), 3: ("train", "vali", "test")}


def convert(options: Options, report: Report) -> Result:
    """Write data in another format."""
    names = None if options.names is None else read_names(options.names)
    if options.rows_per_file is not None:
        for name in options.given("group", "conflicts"):
            raise InputError(f"{flag(name)} cannot be used for shards. Convert to a file first.", parameter=name)
        with report.working("writing", options.out):
            found = write_shards(
                options.data,
                options.out,
                feature_names=names,
                rows_per_file=options.rows_per_file,
                force=options.force,
                sort=options.sort,
                **options.roles,
            )
        size = "{rows} rows of {queries} queries with {features} features are in {files} files".format(**found)
        report.note(f"{size} in {options.out}.")
        return Result()
    if options.sort:
        raise InputError("only shards are sorted by query. Add --rows-per-file.", parameter="sort")
    to_letor = not is_table(options.out)
    if to_letor and names is not None:
        raise InputError(
            f"--names cannot be used for {options.out}: LETOR text has no feature names.", parameter="names"
        )
    labels: Any = "required" if to_letor else "optional"
    table = read(options.data, options.reading(queries="optional", labels=labels), report)
    if options.conflicts is not None:
        table = resolve_conflicts(table, options.conflicts)
    with report.working("writing", options.out):
        write_rows(options.out, table, names, report.note)
    return Result()


def split(options: Options, report: Report) -> Result:
    """Split a file into parts of whole queries."""
    data = options.data
    folder = options.folder
    shares = options.parts if isinstance(options.parts, tuple) else ()
    if len(shares) not in _PARTS or not all(isinstance(each, int | float) and 0 < each < math.inf for each in shares):
        raise InputError(
            f"--parts must be two or three positive numbers, as in 60,20,20; got {options.parts!r}.", parameter="parts"
        )
    check_outside(filter(None, (data, options.group)), folder)
    with report.working("reading", data):
        records = read_records(data, options.reading(), report.note)
    qid = records.qid
    if qid is None:
        problem = "there are no query ids. Name their column (qid), or the file of query sizes (group)."
        raise InputError(problem, parameter="qid", file=str(data))
    if options.folds:
        folds = query_folds(qid, options.folds, options.seed)
        parts = {f"Fold{i}/{p}": r for i, fold in enumerate(folds, 1) for p, r in zip(_PARTS[3], fold, strict=True)}
    else:
        parts = dict(zip(_PARTS[len(shares)], query_parts(qid, shares, options.seed), strict=True))
    found = {}
    with report.working("writing", folder), new_folder(folder, _OURS, force=options.force) as new:
        for part, rows in parts.items():
            (new / part).parent.mkdir(exist_ok=True)
            name = f"{part}{records.ending}"
            records.write(new / name, rows.tolist())
            queries = {qid[row] for row in rows.tolist()}
            found[part] = {"path": str(folder / name), "queries": len(queries), "rows": len(rows)}
    table = Table.of(f"Parts of {data}", found.values(), ("path", "queries", "rows"))
    return Result({"data": str(data), "seed": options.seed, "parts": found}, [table], optional=True)
