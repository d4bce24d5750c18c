"""Model files on the command line, and the scores that they and files of scores give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.cli._files import read
from rankrls.cli._report import Report
from rankrls.io.data import Reading, Rows
from rankrls.io.scores import read_scores
from rankrls.persistence.stored import StoredModel, by_item, stored_model

__all__ = ["load_model", "scored", "scores_of"]


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
