"""``rankrls predict``: one score a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls._items import Items
from rankrls.cli._datasets import is_dataset, open_data
from rankrls.cli._files import load_model, read, read_items, scored, written
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result
from rankrls.io._atomic import check_target
from rankrls.io.items import item_features
from rankrls.persistence.stored import StoredModel
from rankrls.streaming import predict

Part = tuple[dict[str, Any], dict[str, Any]]
"""Columns that say what some rows are, and their scores."""


def run(options: Options, report: Report) -> Result:
    """Score the rows of a file."""
    check_target(options.output, options.model, options.data, options.items)
    stored = load_model(options.model, report)
    if is_dataset(options.data):
        data = open_data(options.data, options, report, stored, labels="ignored")
        parts = _numbered(predict(stored.model, data, memory=options.memory))
    else:
        parts = iter([_of_file(stored, options, report)])
    return written(options.output, report, parts, _lines, lambda part: part[0] | part[1])


def _of_file(stored: StoredModel, options: Options, report: Report) -> Part:
    table = read(options.data, options.reading(queries="optional", labels="ignored"), report, stored)
    if options.items is not None and stored.item_features is None:
        problem = "it knows no features of items: {items} needs a model that was fitted with {items}."
        raise InputError(problem, file=str(stored.path), parameter="items")
    others = read_items(options, report, stored.item_features)
    scores = scored(stored, table, report, None if others is None else Items(item_features(others, None)))
    columns = scores.reshape(len(scores), -1).T
    names = ["score"] if len(columns) == 1 else [f"score_{k}" for k in range(len(columns))]
    names = [*(stored.items if others is None else others.docids)] or names
    about = {table.qid_name or "qid": table.qid, table.id_name or "docid": table.docids}
    return about, dict(zip(names, columns, strict=True))


def _numbered(parts: Iterator[Any]) -> Iterator[Part]:
    """Scores with the running numbers of their rows."""
    row = 0
    for scores in parts:
        yield {"row": np.arange(row, row + len(scores))}, {"score": scores}
        row += len(scores)


def _lines(part: Part) -> str:
    columns = (scores.tolist() for scores in part[1].values())
    return "".join("\t".join(map(repr, row)) + "\n" for row in zip(*columns, strict=True))
