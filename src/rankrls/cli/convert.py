"""``rankrls convert``: the same data in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankrls.cli import _options as options
from rankrls.cli._columns import NOT_SAID, Columns, takes_columns
from rankrls.cli._report import Report

if TYPE_CHECKING:
    from rankrls.io import ColumnTable, LetorTable

EXAMPLES = "Example: rankrls convert train.txt train.parquet  (or: rankrls convert shop.csv shop.txt --label grade)"

Output = Annotated[
    Path,
    typer.Argument(
        metavar="OUT",
        show_default=False,
        help="Where it goes: a table by its name's ending (.csv, .tsv, .parquet, .arrow), else LETOR text; .gz packs.",
    ),
]
Names = Annotated[
    Path | None,
    typer.Option("--names", metavar="FILE", help="The features' names in OUT, one a line, in column order."),
]


@takes_columns
def command(
    data: options.Rows,
    output: Output,
    names: Names = None,
    columns: Columns = NOT_SAID,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """Write data in another format: LETOR text, CSV, TSV, Parquet or Arrow.

    Labels, query ids, items' ids and features, and every number to the last bit. An item's id is "docid = ..." in the
    comment of a line of LETOR text. Features of LETOR text are called f1, f2, ... unless --names says otherwise.
    """
    report = Report(False, verbose, quiet)
    from rankrls.cli._data import check_target, names_of, read, read_names
    from rankrls.io.tables.formats import table_format

    check_target(output, data, names)
    to_letor = table_format(output) is None
    if to_letor and names is not None:
        raise ValueError(f"--names means nothing to {output}: LETOR text has numbers for names.")
    labels: Any = "required" if to_letor else "optional"
    table = read(data, report, queries="optional", columns=columns, labels=labels)
    given = None if names is None else read_names(names)
    with report.working("writing", f"writing {output}"):
        if to_letor:
            _write_letor(output, table)
        else:
            _write_table(output, table, given)
    known = names_of(table)
    if to_letor and known is not None:
        report.note(f"LETOR text has no names; the features 1 to {len(known)} are {', '.join(known)}.")
    lost = getattr(table, "comments", None)
    if lost and not to_letor and not _has_ids(table):
        report.note(f"the comments of {data} are left out: they do not all name a docid.")


def _has_ids(table: LetorTable | ColumnTable) -> bool:
    from rankrls.cli._judging import document_ids

    return document_ids(table) is not None


def _write_letor(path: Path, table: Any) -> None:
    from rankrls.cli._judging import document_ids
    from rankrls.io import save_letor

    comments = getattr(table, "comments", None)
    if comments is None:
        ids = document_ids(table)
        comments = None if ids is None else [f"docid = {name}" for name in ids.tolist()]
    zero_based = bool(getattr(table, "zero_based", False))
    try:
        save_letor(path, table.X, table.y, table.qid, comments=comments or None, zero_based=zero_based)
    except ValueError as error:
        raise ValueError(f"{error} (Write a table, .csv or .parquet, which holds any text; or rename them.)") from None


def _write_table(path: Path, table: Any, names: list[str] | None) -> None:
    from rankrls.cli._data import names_of
    from rankrls.cli._judging import document_ids
    from rankrls.io import save_table

    called = {"label": table.label, "qid_name": table.qid_name, "id_name": table.id_name} if names_of(table) else {}
    first = getattr(table, "first_feature", 1)
    known = names_of(table) or [f"f{first + j}" for j in range(table.n_features)]
    given = {key: name for key, name in called.items() if name is not None}
    try:
        save_table(path, table.X, table.y, table.qid, ids=document_ids(table), feature_names=names or known, **given)
    except ValueError as error:
        raise ValueError(f"--names: {error}" if names is not None else str(error)) from None
