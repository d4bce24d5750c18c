"""``rankrls split``: parts or folds of whole queries."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankrls.cli import _options as options
from rankrls.cli._columns import NOT_SAID, Columns, takes_columns
from rankrls.cli._report import Report

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXAMPLES = "Example: rankrls split all.csv parts --qid query  (or five folds: rankrls split all.txt folds --folds 5)"
_PARTS = {2: ("train", "test"), 3: ("train", "vali", "test")}

Folder = Annotated[
    Path, typer.Argument(metavar="FOLDER", show_default=False, help="Where the parts go; made where it is not there.")
]
Shares = Annotated[
    str, typer.Option("--parts", metavar="A,B[,C]", help="Shares of the queries: train, test; or train, vali, test.")
]
Folds = Annotated[
    int | None,
    typer.Option(
        "--folds",
        metavar="K",
        help="Instead: Fold1 to FoldK as LETOR has them, each with its own K-th of the queries to test, the next to "
        "validate, and the rest to train.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of the draw; the same number, the same parts.")]


@takes_columns
def command(
    data: options.Rows,
    folder: Folder,
    shares: Shares = "60,20,20",
    folds: Folds = None,
    seed: Seed = 0,
    columns: Columns = NOT_SAID,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """Split a file into parts of whole queries.

    No query is in two parts. Queries are drawn at random; which part one comes to depends on --seed and the query ids,
    not on the order of the rows. Rows are passed on as they are, all their columns and comments, in the file's order.
    The parts appear together when all are written. Parts of an earlier split are replaced together, if the folder holds
    nothing else.
    """
    report = Report(as_json, verbose, quiet)
    if folds is not None and folds < 3:
        raise ValueError(f"--folds must be at least 3 (to train, validate and test); got {folds}.")
    if seed < 0:
        raise ValueError(f"--seed must not be negative; got {seed}.")
    weights = _weights(shares)
    from rankrls._queries import query_layout
    from rankrls.cli._data import check_target
    from rankrls.cli._parts import written_together
    from rankrls.cli._records import read_records

    with report.working("reading", f"reading {data}"):
        records = read_records(data, columns)
    if records.qid is None:
        raise ValueError(f"{data}: there is no qid, and parts are of whole queries. Of tables --qid names the column.")
    layout = query_layout(records.qid, len(records.qid))
    blocks = _blocks(layout, [1.0] * folds if folds else weights, seed)
    parts = _of_folds(blocks) if folds else dict(zip(_PARTS[len(weights)], blocks, strict=True))
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
    if as_json:
        report.print_json({"command": "split", "data": str(data), "seed": seed, "parts": found})
    elif not quiet:
        table = [[p["path"], str(p["queries"]), str(p["rows"])] for p in found.values()]
        report.print_table(f"Parts of {data}", ["", "queries", "rows"], table)


def _weights(text: str) -> list[float]:
    try:
        weights = [float(word) for word in text.split(",")]
    except ValueError:
        weights = []
    if len(weights) not in _PARTS or not all(0 < w < math.inf for w in weights):
        raise ValueError(f"--parts must be two or three positive numbers, as in 80,20 or 60,20,20; got {text!r}.")
    return weights


def _blocks(layout: Any, weights: list[float], seed: int) -> list[NDArray[np.intp]]:
    """Numbers of the queries of each part, in the sizes nearest to the weights."""
    import numpy as np

    n = layout.n_queries
    ends = np.round(np.cumsum(weights) / np.sum(weights) * n).astype(int)
    sizes = np.diff(ends, prepend=0)
    if (sizes == 0).any():
        raise ValueError(f"{n} queries are too few for {len(weights)} parts of these shares: one would be empty.")
    # drawn from the sorted ids, so that the order of the rows does not matter
    order = np.array(sorted(range(n), key=lambda k: str(layout.ids[k])))
    drawn = np.random.default_rng(seed).permutation(order)
    return np.split(drawn, ends[:-1])


def _of_folds(blocks: list[NDArray[np.intp]]) -> dict[str, NDArray[np.intp]]:
    import numpy as np

    k, out = len(blocks), {}
    for i in range(k):
        rest = [blocks[j] for j in range(k) if j not in (i, (i + 1) % k)]
        out[f"Fold{i + 1}/train"] = np.concatenate(rest)
        out[f"Fold{i + 1}/vali"] = blocks[(i + 1) % k]
        out[f"Fold{i + 1}/test"] = blocks[i]
    return out


def _rows(layout: Any, queries: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows of some queries, in the file's order."""
    import numpy as np

    chosen = np.zeros(layout.n_queries, dtype=bool)
    chosen[queries] = True
    return np.flatnonzero(chosen[layout.codes])
