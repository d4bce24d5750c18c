"""Files to tables that agree with each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rankrls.cli._report import Report
from rankrls.cli._words import in_options

if TYPE_CHECKING:
    from rankrls.io import LetorTable

__all__ = [
    "check_target",
    "describe",
    "describe_rows",
    "limited_threads",
    "read",
    "read_for_model",
    "read_names",
    "shortened",
]

Queries = Literal["required", "optional", "ignored"]
_FEW_LABELS = 12
_SHORT_PATH = 40


def read(
    path: Path,
    report: Report,
    *,
    queries: Queries,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dense: bool | Literal["auto"] = "auto",
) -> LetorTable:
    """Read a file.

    Parameters
    ----------
    path : path
    report : Report
    queries : {"required", "optional", "ignored"}
        Whether every row needs a qid; "ignored" (``--global``) makes one ranking of all rows.
    n_features, zero_based, dense
        As for :func:`rankrls.io.load_letor`.

    Raises
    ------
    ValueError
        For text that is not LETOR, with the line; and for a file without qid where one is required.
    OSError
        Where the file cannot be read.
    """
    from rankrls.io import load_letor

    with report.working("reading", f"reading {path}"), in_options():
        table = load_letor(path, n_features=n_features, zero_based=zero_based, dense=dense)
    if queries == "ignored":
        return replace(table, qid=None)
    if table.qid is None and queries == "required":
        raise ValueError(f"{path}: no line has a qid. Pass --global to rank all rows together.")
    return table


def read_for_model(path: Path, report: Report, *, queries: Queries, n_features: int, zero_based: Any) -> LetorTable:
    """Read a file for a model of ``n_features`` features.

    A line that names a further feature is an error; features that the file never names are 0, and noted.
    """
    table = read(path, report, queries=queries, zero_based=zero_based)
    if table.n_features == n_features:
        return table
    if table.n_features < n_features:
        report.note(
            f"{path} names features up to number {table.first_feature + table.n_features - 1} only; the model has "
            f"{n_features}, and the others count as 0."
        )
    try:
        return read(path, report, queries=queries, n_features=n_features, zero_based=table.zero_based)
    except ValueError as error:
        raise ValueError(f"{error} (The model has {n_features} features.)") from error


def describe(table: LetorTable) -> dict[str, Any]:
    """What is in a file, for people and for the model's provenance."""
    import numpy as np

    from rankrls._queries import query_layout

    labels, counts = np.unique(table.y, return_counts=True)
    few = len(labels) <= _FEW_LABELS
    return {
        "path": table.path,
        "sha256": table.sha256,
        "rows": table.n_rows,
        "queries": None if table.qid is None else query_layout(table.qid, table.n_rows).n_queries,
        "features": table.n_features,
        "sparse": not isinstance(table.X, np.ndarray),
        "labels": {f"{v:g}": int(c) for v, c in zip(labels, counts, strict=True)}
        if few
        else {"min": float(labels[0]), "max": float(labels[-1]), "distinct": len(labels)},
    }


def describe_rows(parts: dict[str, dict[str, Any]]) -> list[list[str]]:
    """Rows of a table of what is in each file."""

    def labels(part: dict[str, Any]) -> str:
        found = part["labels"]
        if "distinct" in found:
            return f"{found['distinct']} from {found['min']:g} to {found['max']:g}"
        return "  ".join(f"{label}: {count}" for label, count in found.items())

    return [
        [
            role,
            shortened(part["path"]),
            labels(part),
            str(part["rows"]),
            "one ranking" if part["queries"] is None else str(part["queries"]),
            f"{part['features']}{' sparse' if part['sparse'] else ''}",
        ]
        for role, part in parts.items()
    ]


def shortened(path: str) -> str:
    """A path that leaves room in a table for the rest."""
    parts = Path(path).parts
    return path if len(path) <= _SHORT_PATH or len(parts) < 3 else str(Path("...", *parts[-2:]))


def read_names(path: Path) -> list[str]:
    """Names of features from a file, one a line."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file in UTF-8; it needs one feature name a line.") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise ValueError(f"{path}:{number}: an empty line; it needs one feature name a line.")
    return [line.strip() for line in lines]


def check_target(path: Path | str, *inputs: Path | str | None) -> None:
    """Refuse, before any work is done, a file that could not be written after it, or that the command reads."""
    for given in inputs:
        if given is not None and os.path.exists(path) and os.path.exists(given) and os.path.samefile(path, given):
            raise ValueError(f"{path} is read by this command and would be overwritten: name another file to write.")
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise IsADirectoryError(21, "Is a directory, where a file should be written", str(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, f"There is no folder {folder!r} to write to", str(path))
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, f"The folder {folder!r} may not be written", str(path))


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """At most that many threads inside, for compiled loops and for BLAS."""
    if threads is None:
        yield
        return
    if threads < 1:
        raise ValueError(f"--threads must be at least 1; got {threads}.")
    import scipy.linalg.blas  # noqa: F401  (its BLAS must be there before it can be limited)
    from threadpoolctl import threadpool_limits

    old = os.environ.get("RANKRLS_NUM_THREADS")
    os.environ["RANKRLS_NUM_THREADS"] = str(threads)
    try:
        with threadpool_limits(threads, user_api="blas"):
            yield
    finally:
        if old is None:
            del os.environ["RANKRLS_NUM_THREADS"]
        else:
            os.environ["RANKRLS_NUM_THREADS"] = old
