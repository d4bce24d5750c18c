"""Data sets on the command line: which paths are some, and how they are opened."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rankrls._errors import InputError
from rankrls.cli._options import Options
from rankrls.cli._report import Report
from rankrls.io import open_dataset
from rankrls.models.families.selecting import AUTO_VALUES
from rankrls.persistence.stored import StoredModel
from rankrls.streaming.memory import exceeds_memory, rows_that_fit

USUAL = ("map", "ndcg@10", "p@10", "mrr", "disagreement")
"""What is judged if nothing is said."""

_WHOLE = "everything group target items event judged_pairs per_query"
"""The options of commands on models that need all rows in memory."""


def is_dataset(path: Path) -> bool:
    """Whether a path is a folder or a pattern of files."""
    return path.is_dir() or (not path.exists() and any(sign in str(path) for sign in "*?["))


def streams(options: Options) -> bool:
    """Whether TRAIN is read a part at a time."""
    if is_dataset(options.train) or options.scheduler is not None:
        return True
    held = not options.train.is_file() or options.train.suffix == ".gz" or options.by_pairs
    return not held and exceeds_memory(options.train, options.memory)


def check_parts(options: Options, what: str, possible: Callable[[str], bool]) -> None:
    """Refuse an option that is not possible where data are read a part at a time."""
    whole = next((name for name in options.changed() if not possible(name)), None)
    if whole is not None:
        problem = f"{{{whole}}} needs all rows in memory, and {what} is read a part at a time."
        raise InputError(problem, parameter=whole)


def open_data(path: Path, options: Options, report: Report, model: StoredModel | None = None, **how: Any) -> Any:
    """Open a data set, in parts of which the threads' share fits into ``--memory``; if one is given for a model."""
    if model is not None:
        check_parts(options, "DATA", lambda name: name not in _WHOLE.split())
    how |= options.opening
    if options.memory is not None:
        how["rows_per_part"] = partial(rows_that_fit, options.memory, values=AUTO_VALUES)
    with report.working("opening", f"opening {path}"):
        return open_dataset(path, **how) if model is None else model.open(path, **how)
