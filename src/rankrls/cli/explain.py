"""``rankrls explain``: why one item stands above another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankrls.cli import _options as options
from rankrls.cli._columns import NOT_SAID, Columns, takes_columns
from rankrls.cli._report import Report
from rankrls.cli._words import in_options

if TYPE_CHECKING:
    from rankrls.io import ColumnTable, LetorTable

EXAMPLES = "Example: rankrls explain m.rankrls test.txt 12 7  (or by document: --ids docid --query 3 doc12 doc7)"

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A model that rankrls fit or rankrls.save wrote.")
]
First = Annotated[str, typer.Argument(metavar="A", show_default=False, help="An item, as --ids names it.")]
Second = Annotated[
    str | None,
    typer.Argument(metavar="[B]", show_default=False, help="Another; without, the mean of A's query is taken."),
]
Ids = Annotated[
    str | None,
    typer.Option(
        "--ids",
        metavar="WORD",
        help="What names an item. row: the number of its row, from 0; docid: its id, in a table's column of ids or "
        "behind 'docid =' in its comment; comment: its whole comment. By default what the model was fitted with; else "
        "docid or row, whichever fits.",
    ),
]
Query = Annotated[
    str | None,
    typer.Option("--query", metavar="QID", help="Look for the items in this query only.", show_default=False),
]
Top = Annotated[int, typer.Option("--top", "-k", metavar="K", help="So many features; 0 for all.")]
Names = Annotated[
    Path | None,
    typer.Option("--names", metavar="FILE", help="The features' names, one a line, in column order."),
]
Target = Annotated[
    int | None, typer.Option("--target", metavar="K", help="Which target (from 0) of a model of several.")
]


@takes_columns
def command(
    model: Model,
    data: options.Rows,
    first: First,
    second: Second = None,
    ids: Ids = None,
    query: Query = None,
    top: Top = 10,
    names: Names = None,
    target: Target = None,
    columns: Columns = NOT_SAID,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """Say why item A stands above item B, feature by feature.

    What each feature adds to the difference of the scores, the largest part first: of linear models. Behind a scaler
    the values are scaled ones.
    """
    report = Report(as_json, verbose, quiet)
    ids = columns.item_ids(ids)
    if top < 0:
        raise ValueError(f"--top must be 0 (all) or more; got {top}.")
    from rankrls.cli._data import feature_names, read_names
    from rankrls.cli._models import load_model, scales_by_query
    from rankrls.cli._pairs import choose_ids
    from rankrls.inspection import explain

    stored = load_model(model, report)
    table = stored.read(data, report, queries="optional", columns=columns)
    if table.qid is None and (stored.by_query or scales_by_query(stored.model)):
        raise ValueError(f"{data}: the model was fitted with queries, so every line needs a qid.")
    given = None if names is None else read_names(names)
    if given is None and getattr(stored.first_step, "feature_names_in_", None) is None:
        given = feature_names(table)
    items = [item for item in (first, second) if item is not None]
    chosen = ids or stored.ids or choose_ids(items, table, str(data))
    rows = [_row(table, item, chosen, query) for item in items]
    with in_options({"feature_names": "--names", "target": "--target"}):
        found = explain(stored.model, table.X, qid=table.qid, feature_names=given, target=target)
    called = (None, None) if chosen == "row" else (first, second)
    try:
        pair = found.item(rows[0]) if len(rows) == 1 else found.pair(*rows)
    except ValueError as error:
        raise ValueError(f"{data}: {_in_names(str(error), rows, called)}") from error
    shown = pair.rows(top or None)
    if as_json:
        keys = ("feature", "contribution", "a", "b", "weight")
        report.print_json(
            {
                "command": "explain",
                "a": pair.a,
                "b": pair.b,
                "items": None if chosen == "row" else [first, second],
                "query": pair.query,
                "difference": pair.difference,
                "units": pair.units,
                "contributions": [dict(zip(keys, row, strict=True)) for row in shown],
            }
        )
        return
    heads = [
        "",
        "contribution",
        called[0] or f"row {pair.a}",
        "mean" if pair.b is None else called[1] or f"row {pair.b}",
        "weight",
    ]
    cells = [
        [name, f"{part:+.4g}", *("" if value != value else f"{value:.4g}" for value in values)]
        for name, part, *values in shown
    ]
    if pair.units != "as given":
        report.note(f"features {pair.units}.")
    report.print_table(pair.title(*called), heads, cells)


def _in_names(message: str, rows: list[int], called: tuple[str | None, str | None]) -> str:
    """A message about rows with what the items are called."""
    for row, name in zip(rows, called, strict=False):
        if name is not None:
            message = message.replace(f"Row {row} ", f"{name!r} ").replace(f" row {row} ", f" {name!r} ")
    return message


def _row(table: LetorTable | ColumnTable, item: str, ids: str, query: str | None) -> int:
    """The row that an item's name means."""
    from rankrls.cli._pairs import item_ids

    if query is not None and table.qid is None:
        raise ValueError(f"{table.path}: no line has a qid for --query to name.")
    inside = None if query is None else [str(qid) == query for qid in _ids(table)]
    if inside is not None and not any(inside):
        raise ValueError(f"{table.path}: there is no query {query}.")
    names = item_ids(table, ids)
    if names is None:
        row = int(item) if item.isascii() and item.isdigit() else -1
        if not 0 <= row < table.n_rows:
            raise ValueError(f"{table.path} has rows 0 to {table.n_rows - 1}; got {item!r}.")
        if inside is not None and not inside[row]:
            raise ValueError(f"{table.path}: row {row} is not in query {query}.")
        return row
    found = [row for row, name in enumerate(names) if name == item and (inside is None or inside[row])]
    where = "" if query is None else f" in query {query}"
    if not found:
        raise ValueError(f"{table.path}: no line{where} is called {item!r}.")
    if len(found) > 1:
        raise ValueError(
            f"{table.path}: {len(found)} lines{where} are called {item!r}; name one by --query or --ids row."
        )
    return found[0]


def _ids(table: LetorTable | ColumnTable) -> Any:
    assert table.qid is not None
    return table.qid.tolist()
