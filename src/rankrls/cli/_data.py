"""Files to tables that agree with each other."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from rankrls._errors import InputError
from rankrls.cli._columns import NOT_SAID, Columns
from rankrls.cli._report import Report
from rankrls.cli._spelling import said

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankrls.io import ColumnTable, LetorTable

__all__ = [
    "Labels",
    "Queries",
    "check_kind",
    "describe",
    "described_labels",
    "feature_names",
    "file_rows",
    "labels_of",
    "limited_threads",
    "names_of",
    "read",
    "read_for_model",
    "read_names",
    "shortened",
]

Queries = Literal["required", "optional", "ignored"]
Labels = Literal["required", "optional", "ignored"]
_WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")
_FEW_LABELS = 12
_FEW_NAMES = 6
_SHORT_PATH = 40
_BY_NAME = "tables end in .csv, .tsv, .parquet or .arrow, or are named by {input_format}"


def read(
    path: Path,
    report: Report,
    *,
    queries: Queries,
    columns: Columns = NOT_SAID,
    labels: Labels = "required",
    names: Sequence[str] | None = None,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dense: bool | Literal["auto"] = "auto",
) -> LetorTable | ColumnTable:
    """Read a file: LETOR text or a table, by its name.

    Parameters
    ----------
    path : path
        "-" is standard input.
    report : Report
    queries : {"required", "optional", "ignored"}
        Whether every row needs a qid; "ignored" (``--global``) makes one ranking of all rows.
    columns : Columns
        What the user says about columns and the format.
    labels : {"required", "optional", "ignored"}
        Whether every row of a table needs a label; one of LETOR text always does.
    names : sequence of str, optional
        The features of the data or the model that were read before; of a table these columns are taken, and no others.
    n_features, zero_based, dense
        As for :func:`rankrls.io.load_letor`.

    Raises
    ------
    ValueError
        For a file that cannot be read so, with the line; and for one without qid where one is required.
    OSError
        Where the file cannot be read.
    """
    check_kind(path)
    source: Any = sys.stdin.buffer if str(path) == "-" else path
    table: LetorTable | ColumnTable
    with report.working("reading", f"reading {path}"):
        if columns.format_of(path) == "letor":
            table = _read_letor(source, columns, names, n_features, zero_based, dense)
        else:
            table = _read_table(source, columns.format_of(path), columns, labels, names, n_features, report)
    if queries == "ignored":
        return replace(table, qid=None)
    if table.qid is None and queries == "required":
        if names_of(table) is None:
            raise InputError("no line has a qid. Pass {everything} to rank all rows together.", file=table.path)
        raise InputError(
            "there is no column 'qid'. Name it by {qid}, or pass {everything} to rank all rows together.",
            file=table.path,
        )
    return table


def check_kind(path: Path) -> None:
    """Refuse what is no file of rows, whatever the options make of it."""
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory, where a file should be read", str(path))
    if path.suffix.lower() in _WORKBOOKS and path.exists():
        remedy = "Save its sheet as CSV (UTF-8) and read that."
        raise InputError("this is a workbook of a spreadsheet.", remedy=remedy, file=str(path))


def _read_letor(
    source: Any, columns: Columns, names: Sequence[str] | None, n_features: int | None, zero_based: Any, dense: Any
) -> LetorTable:
    from rankrls.io import load_letor

    if n_features is None and names is None:
        n_features = columns.feature_count
        flag = columns.of_tables()
        if flag is not None and not columns.usual:
            raise InputError(
                "{0} is about columns of tables, and this is read as LETOR text (" + _BY_NAME + ".)",
                flag,
                file=str(source),
            )
    try:
        return load_letor(source, n_features=n_features, zero_based=zero_based, dense=dense)
    except InputError as error:
        if error.parameter != "format":
            raise  # unlike a file of another kind
        raise InputError("{0} (It is read as LETOR text; " + _BY_NAME + ".)", said(error)) from error


def _read_table(
    source: Any,
    format: str,
    columns: Columns,
    labels: Labels,
    names: Sequence[str] | None,
    n_features: int | None,
    report: Report,
) -> ColumnTable:
    import numpy as np

    from rankrls.io.tables.columns import Wanted
    from rankrls.io.tables.reading import read_table

    chosen = columns.names("features") if names is None else tuple(names)
    ignore = () if names is not None else columns.names("ignore") or ()
    wanted = Wanted(columns.label, columns.qid, columns.id, chosen, ignore, labels, columns.usual)
    table = read_table(source, wanted, format, "auto", np.float64)
    if n_features is not None and table.n_features != n_features:
        raise InputError(
            "{0} columns are features ({1}), but {2} without names are wanted: name them in their order by {features}.",
            *(table.n_features, _listed(table.feature_names), n_features),
            file=table.path,
        )
    if n_features is not None and names is None:
        report.note(
            f"features are wanted by number, 1 to {n_features}; the columns of {table.path} are taken in this order: "
            f"{_listed(table.feature_names)}."
        )
    return table


def names_of(table: LetorTable | ColumnTable) -> tuple[str, ...] | None:
    """Names of the features, where the file has them."""
    return getattr(table, "feature_names", None)


def feature_names(table: LetorTable | ColumnTable) -> list[str]:
    """What a file calls its features: names, or numbers."""
    names = names_of(table)
    first = getattr(table, "first_feature", 1)
    return [str(first + j) for j in range(table.n_features)] if names is None else [*names]


def labels_of(table: LetorTable | ColumnTable) -> NDArray[np.float64]:
    """Labels of a file that was read with them."""
    if table.y is None:
        raise InputError("the labels have not been read.", file=table.path)
    return table.y


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_FEW_NAMES]) + (f" and {len(names) - _FEW_NAMES} more" if len(names) > _FEW_NAMES else "")


def read_for_model(
    path: Path,
    report: Report,
    *,
    queries: Queries,
    n_features: int,
    zero_based: Any,
    columns: Columns = NOT_SAID,
    labels: Labels = "required",
    names: Sequence[str] | None = None,
) -> LetorTable | ColumnTable:
    """Read a file for a model of ``n_features`` features, called ``names`` where it knows them.

    Of a table the model's columns are taken by name, or in their order where it knows no names. In LETOR text a line
    that names a further feature is an error; features that the file never names are 0, and noted.
    """
    if names is not None and columns.features is not None:
        raise InputError("{features} means nothing here: the model names its features itself.")
    given: Any = {"queries": queries, "columns": columns, "labels": labels, "names": names}
    if columns.format_of(path) != "letor":
        return read(path, report, **given, n_features=None if names is not None else n_features)
    if str(path) == "-":  # it can be read once
        return read(path, report, **given, n_features=n_features, zero_based=zero_based)
    table: Any = read(path, report, **given, zero_based=zero_based)
    if names is not None:
        report.note(f"{path} has features by number; the model's, in their order, are {_listed(names)}.")
    if table.n_features == n_features:
        return cast("LetorTable", table)
    if table.n_features < n_features:
        report.note(
            f"{path} names features up to number {table.first_feature + table.n_features - 1} only; the model has "
            f"{n_features}, and the others count as 0."
        )
    try:
        return read(path, report, **given, n_features=n_features, zero_based=table.zero_based)
    except InputError as error:
        raise InputError("{0} (The model has {1} features.)", said(error), n_features) from error


def describe(table: LetorTable | ColumnTable) -> dict[str, Any]:
    """What is in a file, for people and for the model's provenance."""
    import numpy as np

    from rankrls._queries import query_layout

    labels, counts = np.unique([] if table.y is None else table.y, return_counts=True)
    few = len(labels) <= _FEW_LABELS
    return {
        "path": table.path,
        "sha256": table.sha256,
        "rows": table.n_rows,
        "queries": None if table.qid is None else query_layout(table.qid, table.n_rows).n_queries,
        "features": table.n_features or None,  # none were read
        "sparse": not isinstance(table.X, np.ndarray),
        "labels": {f"{v:g}": int(c) for v, c in zip(labels, counts, strict=True)}
        if few
        else {"min": float(labels[0]), "max": float(labels[-1]), "distinct": len(labels)},
    }


def described_labels(part: dict[str, Any]) -> str:
    """The labels of a file that was described."""
    found = part["labels"]
    if "distinct" in found:
        return f"{found['distinct']} from {found['min']:g} to {found['max']:g}"
    return "  ".join(f"{label}: {count}" for label, count in found.items())


def file_rows(parts: dict[str, dict[str, Any]], *names: str) -> list[list[str]]:
    """Rows of a table of files that were described: the role, the path, and some of what is known."""
    cell = lambda value: "-" if value is None else str(value)
    return [
        [role, shortened(str(part.get("path"))), *(cell(part.get(name)) for name in names)]
        for role, part in parts.items()
    ]


def shortened(path: str) -> str:
    """A path that leaves room in a table for the rest."""
    parts = Path(path).parts
    return path if len(path) <= _SHORT_PATH or len(parts) < 3 else str(Path("...", *parts[-2:]))


def read_names(path: Path) -> list[str]:
    """Names of features from a file, one a line."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError("not a text file in UTF-8; it needs one feature name a line.", file=str(path)) from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise InputError("an empty line; it needs one feature name a line.", file=str(path), line=number)
    return [line.strip() for line in lines]


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """At most that many threads inside, for compiled loops and for BLAS."""
    if threads is None:
        variable = os.environ.get("RANKRLS_NUM_THREADS", "").strip()
        if variable and not (variable.isascii() and variable.isdigit() and int(variable)):
            remedy = "Set it to a number of threads, or give {threads=N}."
            raise InputError("RANKRLS_NUM_THREADS is {0!r}, no number of threads.", variable, remedy=remedy)
        yield
        return
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
