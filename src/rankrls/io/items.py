"""What names an item of a table: the number of its row, its id, or its whole comment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rankrls._errors import InputError
from rankrls.io.data import Rows
from rankrls.io.preferences import PairTable, load_pairs
from rankrls.io.tables.opened import Source


def item_names(table: Rows, ids: str | None = None) -> list[str] | None:
    """What names each row.

    Parameters
    ----------
    table : LetorTable or ColumnTable
    ids : {"row", "docid", "comment"}, optional
        Its number, counted from 0, for which None is returned; its id (in LETOR text what stands behind "docid =" in
        its comment); or its whole comment. By default its id, or its number if the rows have no ids.

    Raises
    ------
    InputError
        If the rows have no such names.
    """
    names = table.comments if ids == "comment" else table.docids
    if ids == "row" or (ids is None and names is None):
        return None
    if names is None:
        where = "a comment in the lines" if ids == "comment" else "'docid = NAME' in the comment of every line"
        needed = where if table.feature_names is None else "a column of ids: name it (id)"
        raise InputError(f"ids={ids} needs {needed}.", parameter="ids", file=table.path)
    return [*names]


def row_of(item: str, table: Rows, ids: str | None, query: str | None = None) -> int:
    """The row that an item's name means, in one query if that is given.

    Raises
    ------
    InputError
        If there is no such row, or more than one.
    """
    names = item_names(table, ids) or [*map(str, range(table.n_rows))]
    inside = [query] * table.n_rows if query is None or table.qid is None else [*map(str, table.qid.tolist())]
    found = [row for row, of in enumerate(zip(names, inside, strict=True)) if of == (item, query)]
    if len(found) != 1:
        where = "" if query is None else f" of query {query}"
        message = f"{len(found)} rows{where} are called {item!r}; name one, by its query or its number (ids=row)."
        raise InputError(message, file=table.path)
    return found[0]


def read_pairs(path: Source, table: Rows, ids: str | None, note: Callable[[str], Any]) -> PairTable:
    """The preferences of a file between the rows of a table, whose items are named as :func:`item_names` says.

    ``note`` is told of columns that are not read.
    """
    pairs = load_pairs(path, n_items=table.n_rows, ids=item_names(table, ids))
    if pairs.ignored:
        known = "winner, loser, strength, weight and group"
        note(f"{path}: columns that are not read: {', '.join(map(repr, pairs.ignored))}; those that are: {known}.")
    return pairs
