"""``rankrls predict``: one score a line."""

from __future__ import annotations

from typing import Any

from rankrls._errors import InputError
from rankrls._items import Items
from rankrls.cli._files import read_items, written
from rankrls.cli._models import load_model
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result
from rankrls.cli.datasets.opened import is_dataset
from rankrls.cli.datasets.scores import predict
from rankrls.io._atomic import check_target
from rankrls.io.items import item_features

__all__ = ["run"]


def run(options: Options, report: Report) -> Result:
    """Score the rows of a file."""
    check_target(options.output, options.model, options.data, options.items)
    if is_dataset(options.data):
        return predict(options, report)
    stored = load_model(options.model, report)
    table = stored.read(options.data, options.reading(queries="optional", labels="ignored"), report)
    if options.items is not None and stored.item_features is None:
        problem = "it knows no features of items: {items} needs a model that was fitted with {items}."
        raise InputError(problem, file=str(stored.path), parameter="items")
    others = read_items(options, report, stored.item_features)
    scores = stored.scores(table, report, None if others is None else Items(item_features(others, None)))

    def columns() -> dict[str, Any]:
        parts = scores.reshape(len(scores), -1).T
        names = ["score"] if len(parts) == 1 else [f"score_{k}" for k in range(len(parts))]
        names = [*(stored.items if others is None else others.docids)] or names
        return {
            table.qid_name or "qid": table.qid,
            table.id_name or "docid": table.docids,
            **dict(zip(names, parts, strict=True)),
        }

    def text() -> str:
        lines = (row if isinstance(row, list) else [row] for row in scores.tolist())
        return "".join("\t".join(map(repr, line)) + "\n" for line in lines)

    return written(options.output, report, text, columns)
