"""``rankrls split``: parts or folds of whole queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.cli._files import check_target
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.io._together import written_together
from rankrls.io.records import read_records

__all__ = ["run"]

_PARTS = {2: ("train", "test"), 3: ("train", "vali", "test")}


def run(options: Options, report: Report) -> Result:
    """Split a file into parts of whole queries."""
    data, folder = options.data, options.folder
    with report.working("reading", f"reading {data}"):
        records = read_records(data, options.reading())
    if records.qid is None:
        raise InputError(
            "there is no qid, and parts are of whole queries. Of tables {qid} names the column.", file=str(data)
        )
    layout = query_layout(records.qid, len(records.qid))
    blocks = _blocks(layout, [1.0] * options.folds if options.folds else options.parts, options.seed)
    parts = _of_folds(blocks) if options.folds else dict(zip(_PARTS[len(blocks)], blocks, strict=True))
    names = {part: f"{part}{records.ending}" for part in parts}
    there = [str(folder / name) for name in names.values() if (folder / name).exists()]
    for path in there:
        check_target(path, data)
    found: dict[str, Any] = {}
    with report.working("writing", f"writing to {folder}"), written_together(folder, [*names.values()]) as new:
        for part, queries in parts.items():
            rows = _rows(layout, queries)
            records.write(new / names[part], rows.tolist())
            found[part] = {"path": str(folder / names[part]), "queries": len(queries), "rows": len(rows)}
    if there:
        report.note(f"what was there has been replaced: {', '.join(there)}.")
    table = Table(
        f"Parts of {data}",
        ["", "queries", "rows"],
        [[p["path"], str(p["queries"]), str(p["rows"])] for p in found.values()],
    )
    return Result({"command": "split", "data": str(data), "seed": options.seed, "parts": found}, [table], optional=True)


def _blocks(layout: Any, weights: list[float], seed: int) -> list[NDArray[np.intp]]:
    """Numbers of the queries of each part, in the sizes nearest to the weights."""
    n = layout.n_queries
    ends = np.round(np.cumsum(weights) / np.sum(weights) * n).astype(int)
    sizes = np.diff(ends, prepend=0)
    if (sizes == 0).any():
        raise InputError("{0} queries are too few for {1} parts of these shares: one would be empty.", n, len(weights))
    # drawn from the sorted ids, so that the order of the rows does not matter
    order = np.array(sorted(range(n), key=lambda k: str(layout.ids[k])))
    drawn = np.random.default_rng(seed).permutation(order)
    return np.split(drawn, ends[:-1])


def _of_folds(blocks: list[NDArray[np.intp]]) -> dict[str, NDArray[np.intp]]:
    k, out = len(blocks), {}
    for i in range(k):
        rest = [blocks[j] for j in range(k) if j not in (i, (i + 1) % k)]
        out[f"Fold{i + 1}/train"] = np.concatenate(rest)
        out[f"Fold{i + 1}/vali"] = blocks[(i + 1) % k]
        out[f"Fold{i + 1}/test"] = blocks[i]
    return out


def _rows(layout: Any, queries: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows of some queries, in the file's order."""
    chosen = np.zeros(layout.n_queries, dtype=bool)
    chosen[queries] = True
    return np.flatnonzero(chosen[layout.codes])
