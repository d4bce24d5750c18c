"""Files that commands read, rows, models and scores, with a word about it; and write, whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.cli._report import Report, Result
from rankrls.io import atomic_write
from rankrls.io.data import Reading, Rows
from rankrls.io.scores import read_scores
from rankrls.io.tables.formats import table_format
from rankrls.io.tables.writing import write_blocks
from rankrls.persistence.stored import StoredModel, by_item, stored_model

T = TypeVar("T")


def read(path: Path, reading: Reading, report: Report, model: StoredModel | None = None) -> Rows:
    """Rows of a file, if one is given with the features of a model; "-" is standard input."""
    source = sys.stdin.buffer if str(path) == "-" else None
    with report.working("reading", f"reading {path}"):
        if model is not None:
            return model.read(path, reading, report.note, source=source)
        return reading.read(path, report.note, source=source)


def read_items(options: Any, report: Report, features: tuple[str, ...] | None = None) -> Any:
    """The table of ``--items``, with one column of names."""
    if options.items is None:
        return None
    reading = Reading(id=options.item_id or "item", features=features, labels="ignored", queries="ignored", dense=True)
    if reading.format_of(options.items) == "letor":
        problem = "items are read from a table with named columns: .csv, .parquet or .arrow."
        raise InputError(problem, file=str(options.items), parameter="items")
    return read(options.items, reading, report)


def load_model(path: Path, report: Report) -> StoredModel:
    """Load a model file."""
    with report.working("loading", f"loading {path}"):
        return stored_model(path)


def scored(stored: StoredModel, table: Rows, report: Report, items: Any = None) -> NDArray[np.float64]:
    """A model's scores of rows."""
    with report.working("scoring", f"scoring by {stored.path}"):
        return stored.scores(table, items)


def scores_of(
    data: Path, models: Sequence[StoredModel], files: Sequence[Path], reading: Reading, report: Report
) -> tuple[Rows, dict[Path, NDArray[np.float64]]]:
    """The rows of a file, and their scores by models of one target and from files of scores.

    What nobody has said about columns is said by the models, and then by the files of scores.
    """
    for stored in models:
        reading = reading.called({role: name for role, name in stored.usual.items() if role not in reading.usual})
    given = {path: read_scores(path, reading) for path in files}
    for found in given.values():
        reading = found.data(reading)
    table, shape = None, None
    scores = {}
    for stored in models:
        if table is None or shape != stored.reads_like:
            table, shape = read(data, reading, report, stored), stored.reads_like
        values = scored(stored, table, report)
        if not stored.items and values.size != table.n_rows:
            problem = "The model gives {0} scores a row, one for each target; judging needs one."
            raise InputError(problem, values.shape[1])
        scores[stored.path] = values.reshape(-1)
    if table is None:
        table = read(data, reading, report)
    if models and models[0].items:
        table, kept = by_item(table, models)
        scores = {path: values[kept] for path, values in scores.items()}
    return table, scores | {path: found.of_rows(table, report.note) for path, found in given.items()}


def written(
    output: str,
    report: Report,
    parts: Iterable[T],
    lines: Callable[[T], str],
    columns: Callable[[T], Mapping[str, Any]] | None = None,
    *,
    head: str = "",
) -> Result:
    """What comes a part at a time: as lines, or as columns where the file's name is that of a table.

    Parameters
    ----------
    output : str
        "-" is standard output.
    report : Report
    parts : iterable
    lines : callable
        The lines of a part.
    columns : callable or None
        Its arrays by name, without those that are None; None if these lines are never a table.
    head : str
        The first line.
    """
    text = chain((head,), map(lines, parts))
    if output == "-":
        return Result(text=text)
    with report.working("writing", f"writing {output}"):
        if columns is not None and table_format(output) is not None:
            blocks = map(_given, map(columns, parts))
            first = next(blocks)
            write_blocks(output, [*first], ([*block.values()] for block in chain((first,), blocks)))
        else:
            with atomic_write(output, "w") as file:
                file.writelines(text)
    return Result()


def _given(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: column for name, column in columns.items() if column is not None}
