"""``rankrls explain``: why one item is ranked above another."""

from __future__ import annotations

from rankrls import inspection
from rankrls._errors import InputError
from rankrls.cli._files import load_model, read
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.io.data import read_names
from rankrls.io.items import item_names, row_of


def explain(options: Options, report: Report) -> Result:
    """Say why item A is ranked above item B."""
    stored = load_model(options.model, report)
    table = read(options.data, options.reading(queries="optional", labels="ignored"), report, stored)
    stored.check_queries(table)
    names = None if options.names is None else read_names(options.names)
    if names is None and stored.names is None:
        names = table.feature_ids
    items = [item for item in (options.first, options.second) if item is not None]
    rows = [row_of(item, table, options.ids, options.query) for item in items]
    explained = inspection.explain(stored.model, table.X, qid=table.qid, feature_names=names, target=options.target)
    try:
        pair = explained.item(rows[0]) if len(rows) == 1 else explained.pair(*rows)
    except InputError as error:
        raise error.replace(file=str(options.data)) from error
    if pair.units != "as given":
        report.note(f"features {pair.units}.")
    called = (None, None) if item_names(table, options.ids) is None else (options.first, options.second)
    top = options.top or None
    found = {"command": "explain", "items": [*called] if called[0] is not None else None, **pair.as_dict(top=top)}
    columns = ["", "contribution", called[0] or f"row {pair.a}"]
    columns += ["mean" if pair.b is None else called[1] or f"row {pair.b}", "weight"]
    return Result(found, [Table(pair.title(*called), columns, pair.cells(top))])
