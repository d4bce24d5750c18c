"""Tables with more than numbers on the command line: what was said of their columns, and their rows as features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rankrls._errors import InputError
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Table
from rankrls.io.data import Reading, Rows, like_queries

if TYPE_CHECKING:
    from rankrls.preprocessing import TableEncoder

__all__ = ["TOLD", "columns_table", "described_columns", "encoded", "encoder_for", "fitted", "in_one_error"]

TOLD = (
    *("columns", "categorical", "dates", "text", "query_text", "text_features", "impute", "date_format"),
    "min_frequency",
)
"""The options that say something of columns; they are parameters of :class:`~rankrls.preprocessing.TableEncoder`."""


def encoder_for(options: Options) -> TableEncoder | None:
    """The encoder that the options ask for; None if they say nothing of columns."""
    told = {name: getattr(options, name) for name in TOLD if getattr(options, name) is not None}
    if not told:
        return None
    from rankrls.preprocessing import TableEncoder

    told.setdefault("columns", "named")
    if told["columns"] == "named":
        told.setdefault("impute", None)
    return TableEncoder(**told, sparse_output="auto" if options.scale == "none" else False)


def fitted(encoder: TableEncoder, table: Any, report: Report) -> Rows:
    """Training rows as features; the encoder is fitted to them."""
    asked, held = table.qid_name, table.X.column_names
    by_text = table.qid is not None and table.qid.dtype == object
    if encoder.query_text is None and asked in held and by_text:
        encoder.set_params(query_text=asked)
    elif asked in held and asked != encoder.query_text:
        table = replace(table, X=table.X.drop_columns([asked]))
    with report.working("encoding", f"encoding {table.path}"):
        out = _features(encoder.fit_transform, encoder, table)
    if encoder.columns == "named" and encoder.impute is not None and not (encoder.imputers_ or encoder.lists_):
        problem = "{impute} is about numbers, and no column holds any."
        raise InputError(problem, file=table.path, parameter="impute")
    return out


def encoded(encoder: TableEncoder, table: Any, report: Report) -> Rows:
    """Other rows as features; missing and unseen cells are counted in a note."""
    with report.working("encoding", f"encoding {table.path}"):
        out = _features(encoder.transform, encoder, table)
        unusual = encoder.count_unusual(table.X)
    if unusual:
        cells = ", ".join(
            f"{name} {' and '.join(f'{count} {what}' for what, count in counts.items())}"
            for name, counts in unusual.items()
        )
        report.note(
            f"{table.path} has cells that are missing or unseen in training: {cells}. They are treated as there."
        )
    return out


def in_one_error(error: InputError, reading: Reading, source: Any) -> InputError:
    """The error of a table with a cell that is no number, or of all its columns that are not.

    The file is read again, as texts; where that is not possible the error is that of the cell. What is wrong with the
    labels, or that there are no query ids, is said too.
    """
    from rankrls.preprocessing import TableEncoder

    lenient = replace(reading, raw=True, queries="optional")
    found: list[InputError] = []
    try:
        try:
            table: Any = lenient.read(source, lambda text: None)
        except InputError as of_labels:
            found.append(of_labels)
            table = replace(lenient, labels="ignored").read(source, lambda text: None)
        queries = like_queries(table) if reading.queries == "required" and table.qid is None else []
        rows = table.X.select([name for name in table.feature_names if name not in queries])
    except (InputError, OSError):
        return error
    for check in (lambda: TableEncoder(columns="named", impute=None).fit(rows), lambda: reading.check_queries(table)):
        try:
            check()
        except InputError as other:
            found.append(other)
    said = [other for other in found if str(other) != str(error)]
    if said and "ignore" in error.remedy:  # the cell is one of a column that the others name
        error, *said = said[0].located(file=error.file, line=error.line), *said[1:]
    for more in said:
        error = error.then(more)
    return error


def described_columns(encoder: TableEncoder | None) -> dict[str, Any]:
    """What each column is used as, for JSON and for the model's provenance."""
    if encoder is None:
        return {}
    return {"columns_used": [vars(use) for use in encoder.columns_]}


def columns_table(uses: Sequence[Mapping[str, Any]]) -> list[Table]:
    """The same for people; no table if nothing was encoded."""
    cells = ("name", "kind", "reason", "n_missing", "n_features")
    rows = [[str(use.get(cell, "")) for cell in cells] for use in uses]
    return [] if not rows else [Table("Columns", ["", "used as", "because", "missing", "features"], rows, left=3)]


def _features(encode: Callable[[Any], Any], encoder: TableEncoder, table: Any) -> Rows:
    """The table with features in place of its cells; errors name the file and the line."""
    try:
        X = encode(table.X)
    except InputError as error:
        row = error.row
        line = None if row is None or table.lines is None else int(table.lines[row])
        raise error.located(file=table.path, line=line) from error
    names = tuple(encoder.get_feature_names_out().tolist())
    rows: Rows = replace(table, X=X, feature_names=names)
    return rows
