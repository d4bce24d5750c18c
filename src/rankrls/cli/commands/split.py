"""``rankrls split``: parts or folds of whole queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rankrls._errors import InputError
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.io._atomic import check_target
from rankrls.io._together import written_together
from rankrls.io.records import read_records
from rankrls.model_selection.parts import query_folds, query_parts

_PARTS = {2: ("train", "test"), 3: ("train", "vali", "test")}


def run(options: Options, report: Report) -> Result:
    """Split a file into parts of whole queries."""
    data, folder = options.data, options.folder
    with report.working("reading", f"reading {data}"):
        records = read_records(data, options.reading(), report.note)
    qid = records.qid
    if qid is None:
        problem = "there is no qid, and parts are of whole queries."
        remedy = "Of tables {qid} names the column; {group} is a file with the sizes of the queries."
        raise InputError(problem, remedy=remedy, file=str(data), parameter="qid")
    if options.folds:
        folds = query_folds(qid, options.folds, options.seed)
        parts = {f"Fold{i}/{p}": r for i, fold in enumerate(folds, 1) for p, r in zip(_PARTS[3], fold, strict=True)}
    else:
        parts = dict(zip(_PARTS[len(options.parts)], query_parts(qid, options.parts, options.seed), strict=True))
    names = {part: f"{part}{records.ending}" for part in parts}
    beside = {part: f"{name}{records.sizes}" for part, name in names.items()} if records.sizes else {}
    written = [*names.values(), *beside.values()]
    there = [str(folder / name) for name in written if (folder / name).exists()]
    for path in there:
        check_target(path, data, None if options.group is None else Path(options.group))
    ids = np.unique([str(query) for query in qid], return_inverse=True)[1]
    found = {}
    with report.working("writing", f"writing to {folder}"), written_together(folder, written) as new:
        for part, rows in parts.items():
            records.write(new / names[part], rows.tolist())
            if beside:
                records.write_sizes(new / beside[part], rows.tolist())
            counts = {"queries": len(np.unique(ids[rows])), "rows": len(rows)}
            found[part] = {"path": str(folder / names[part]), **counts}
    if there:
        report.note(f"what was there has been replaced: {', '.join(there)}.")
    cells = [[str(value) for value in part.values()] for part in found.values()]
    table = Table(f"Parts of {data}", ["", "queries", "rows"], cells)
    return Result({"command": "split", "data": str(data), "seed": options.seed, "parts": found}, [table], optional=True)
