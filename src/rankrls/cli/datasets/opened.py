"""Data sets on the command line: which paths are some, and how they are opened."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankrls._compiled.threads import n_threads
from rankrls._errors import InputError
from rankrls.cli._models import StoredModel
from rankrls.cli._options import Options
from rankrls.cli._report import Report
from rankrls.io import open_dataset
from rankrls.io.tables.formats import table_format
from rankrls.models.families.selecting import AUTO_VALUES
from rankrls.selection.costs import free_memory
from rankrls.streaming.fitting import leaf_bytes
from rankrls.streaming.stream import bytes_of

__all__ = ["Opened", "is_dataset", "open_data", "open_for", "streams"]

_LEAST_ROWS = 50
_GROWTH = 2.5
"""What reading rows and learning from them takes, in sizes of their features in float64."""


def is_dataset(path: Path) -> bool:
    """Whether a path is a folder or a pattern of files."""
    return path.is_dir() or (not path.exists() and any(sign in str(path) for sign in "*?["))


def streams(options: Options) -> bool:
    """Whether TRAIN is read a part at a time."""
    if is_dataset(options.train) or options.scheduler is not None:
        return True
    if not options.train.is_file() or options.train.suffix == ".gz" or options.by_pairs:
        return False
    allowed = bytes_of(options.memory)
    allowed = free_memory() if allowed is None else allowed
    return allowed is not None and _needed(options.train) > allowed


def _needed(path: Path) -> float:
    """The memory that a fit of all rows of a file takes, about."""
    if table_format(path) == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        with suppress(pa.ArrowException, OSError):  # a file that is none is named where it is read
            found = pq.read_metadata(path)
            return 8.0 * _GROWTH * found.num_rows * found.num_columns
    return _GROWTH * path.stat().st_size


@dataclass(frozen=True)
class Opened:
    """A data set as the tables of results describe files."""

    path: str
    data: Any

    @property
    def feature_names(self) -> Any:
        return self.data.feature_names

    def summary(self) -> dict[str, Any]:
        data = self.data
        sizes = {"rows": data.n_rows, "queries": data.n_queries, "features": data.n_features}
        return {"path": self.path, **sizes, "sparse": not data.source.dense, "labels": {}, "parts": len(data.parts)}


def open_data(path: Path, options: Options, report: Report, **given: Any) -> Any:
    """Open a data set, in parts of which the threads' share fits into ``--memory``."""
    how: dict[str, Any] = {"label": options.label, "qid": options.qid, "id": options.id}
    how |= {"ignore": options.ignore or (), "features": options.features, "format": options.input_format or "auto"}
    with report.working("opening", f"opening {path}"):
        allowed = bytes_of(options.memory)
        fitting = None if allowed is None else lambda n: _rows_that_fit(allowed / n_threads(), n)
        return open_dataset(path, **how | given, rows_per_part=fitting)


def _rows_that_fit(memory: float, n_features: int) -> int:
    """Rows of a part that a fit of 21 regularization values works on in so much memory; at least fifty."""
    of = leaf_bytes(n_features, 1, values=AUTO_VALUES)
    return max(_LEAST_ROWS, int((memory - of(0)) / (of(1) - of(0))))


def open_for(stored: StoredModel, path: Path, options: Options, report: Report, **given: Any) -> Any:
    if stored.encoder is not None:
        raise InputError("a model that encodes tables needs all rows in memory.", file=str(stored.path))
    if stored.items:
        raise InputError("a model that ranks columns needs all rows in memory.", file=str(stored.path))
    usual = {role: getattr(options, role) or stored.usual.get(role) for role in ("label", "qid", "id")}
    if given.get("labels") == "ignored":
        usual["label"] = options.label
    names = options.features or stored.names
    if stored.names is None and names is None and (options.input_format or table_format(path) or "letor") == "letor":
        names = (str(stored.n_features),)
    data = open_data(path, options, report, **usual, features=names, **given)
    if data.n_features != stored.n_features:
        raise InputError(
            "the data have {0} features, the model {1}.", data.n_features, stored.n_features, file=str(path)
        )
    return data
