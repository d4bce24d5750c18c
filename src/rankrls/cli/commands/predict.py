"""``rankrls predict``: one score per line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rankrls._errors import InputError
from rankrls._items import Items
from rankrls.cli._options import Options
from rankrls.cli._reading import chunks, load_model, read_items, scored, written
from rankrls.cli._report import Report, Result
from rankrls.io.items import item_features


def run(options: Options, report: Report) -> Result:
    """Score the rows of a file."""
    return written(options.output, report, _columns(options, report), _lines, lambda columns: columns[0] | columns[1])


def _columns(options: Options, report: Report) -> Iterator[Any]:
    """Ids and scores, as two dictionaries of columns for each chunk of rows."""
    stored = load_model(options.model, report)
    if options.items is not None and stored.item_features is None:
        problem = "it knows no features of items: items needs a model that was fitted with items."
        raise InputError(problem, parameter="items", file=str(stored.path))
    others = read_items(options, report, stored.item_features)
    items = None if others is None else Items(item_features(others, None))
    for table in chunks(options, options.reading(queries="optional", labels="ignored"), report, stored):
        scores = scored(stored, table, report, items)
        columns = scores.reshape(len(scores), -1).T
        names = ["score"] if len(columns) == 1 else [f"score_{k}" for k in range(len(columns))]
        names = [*(stored.items if others is None else others.docids)] or names
        ids = {table.qid_name or "qid": table.qid, table.id_name or "docid": table.docids}
        yield ids, dict(zip(names, columns, strict=True))


def _lines(columns: Any) -> str:
    values = (scores.tolist() for scores in columns[1].values())
    return "".join("\t".join(map(repr, row)) + "\n" for row in zip(*values, strict=True))
