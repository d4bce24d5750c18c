"""``rankrls split``: parts or folds of whole queries."""

from __future__ import annotations

import math
import re

import numpy as np

from rankrls._errors import InputError
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.io._atomic import new_folder
from rankrls.io.records import read_records
from rankrls.model_selection.parts import query_folds, query_parts

_OURS = re.compile(r"(Fold[0-9]+/)?(train|vali|test)\.[^/]+")
_PARTS = {2: ("train", "test"), 3: ("train", "vali", "test")}


def run(options: Options, report: Report) -> Result:
    """Split a file into parts of whole queries."""
    data, folder = options.data, options.folder
    shares = _shares(options.parts)
    with report.working("reading", f"reading {data}"):
        records = read_records(data, options.reading(), report.note)
    qid = records.qid
    if qid is None:
        problem = "there is no qid, and parts are of whole queries: name the column (qid), or give their sizes (group)."
        raise InputError(problem, parameter="qid", file=str(data))
    if options.folds:
        folds = query_folds(qid, options.folds, options.seed)
        parts = {f"Fold{i}/{p}": r for i, fold in enumerate(folds, 1) for p, r in zip(_PARTS[3], fold, strict=True)}
    else:
        parts = dict(zip(_PARTS[len(shares)], query_parts(qid, shares, options.seed), strict=True))
    names = {part: f"{part}{records.ending}" for part in parts}
    ids = np.unique([str(query) for query in qid], return_inverse=True)[1]
    found = {}
    with report.working("writing", f"writing to {folder}"), new_folder(folder, _OURS, force=options.force) as new:
        for part, rows in parts.items():
            (new / part).parent.mkdir(exist_ok=True)
            records.write(new / names[part], rows.tolist())
            counts = {"queries": len(np.unique(ids[rows])), "rows": len(rows)}
            found[part] = {"path": str(folder / names[part]), **counts}
    cells = [[str(value) for value in part.values()] for part in found.values()]
    table = Table(f"Parts of {data}", ["", "queries", "rows"], cells)
    return Result({"command": "split", "data": str(data), "seed": options.seed, "parts": found}, [table], optional=True)


def _shares(text: str) -> list[float]:
    """Two or three positive numbers."""
    try:
        found = [float(each) for each in text.split(",")]
    except ValueError:
        found = []
    if len(found) not in _PARTS or not all(0 < share < math.inf for share in found):
        raise InputError(
            f"parts must be two or three positive numbers, as in 60,20,20; got {text!r}.", parameter="parts"
        )
    return found
