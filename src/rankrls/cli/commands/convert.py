"""``rankrls convert``: the same data in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rankrls._errors import InputError
from rankrls.cli._files import check_target, read
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result
from rankrls.io import save_letor, save_table
from rankrls.io.data import read_names
from rankrls.io.tables.formats import table_format

__all__ = ["run"]


def run(options: Options, report: Report) -> Result:
    """Write data in another format."""
    check_target(options.out, options.data, options.names)
    to_letor = table_format(options.out) is None
    if to_letor and options.names is not None:
        raise InputError("{names} means nothing to {0}: LETOR text has numbers for names.", options.out)
    labels: Any = "required" if to_letor else "optional"
    table = read(options.data, options.reading(queries="optional", labels=labels), report)
    given = None if options.names is None else read_names(options.names)
    comments = table.comments
    ids = None if to_letor and comments is not None else table.docids
    with report.working("writing", f"writing {options.out}"):
        if to_letor:
            _write_letor(options.out, table, comments, ids)
        else:
            _write_table(options.out, table, ids, given)
    known = table.feature_names
    if to_letor and known is not None:
        report.note(f"LETOR text has no names; the features 1 to {len(known)} are {', '.join(known)}.")
    if not to_letor and comments and ids is None:
        report.note(f"the comments of {options.data} are left out: they do not all name a docid.")
    return Result()


def _write_letor(path: Path, table: Any, comments: Any, ids: Any) -> None:
    if ids is not None:
        comments = [f"docid = {name}" for name in ids.tolist()]
    zero_based = bool(getattr(table, "zero_based", False))
    try:
        save_letor(path, table.X, table.y, table.qid, comments=comments or None, zero_based=zero_based)
    except InputError as error:
        raise error.followed("(Write a table, .csv or .parquet, which holds any text; or rename them.)") from None


def _write_table(path: Path, table: Any, ids: Any, names: list[str] | None) -> None:
    called = {"label": table.label, "qid_name": table.qid_name, "id_name": table.id_name}
    known = table.feature_names or [f"f{name}" for name in table.feature_ids]
    given = {key: name for key, name in called.items() if name is not None}
    try:
        save_table(path, table.X, table.y, table.qid, ids=ids, feature_names=names or known, **given)
    except InputError as error:
        if names is None or error.parameter == "feature_names":
            raise
        raise error.prefixed("{names}: ") from None
