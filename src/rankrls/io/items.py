"""What names an item of a table: the number of its row, its id, or its whole comment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io.data import Rows
from rankrls.io.preferences import PairTable, read_pair_text
from rankrls.io.tables.formats import Source


def item_names(table: Rows, ids: str) -> list[str] | None:
    """What names each row.

    Parameters
    ----------
    table : LetorTable or ColumnTable
    ids : {"row", "docid", "comment"}
        Its number, counted from 0, for which None is returned; its id (in LETOR text what stands behind "docid =" in
        its comment); or its whole comment.

    Raises
    ------
    InputError
        If the rows have no such names.
    """
    if ids == "row":
        return None
    if ids == "comment":
        if not table.comments:
            raise InputError("no line has a comment for ids=comment to name.", parameter="ids", file=table.path)
        return [*table.comments]
    found = table.docids
    if found is None:
        letor = "'docid = NAME' in the comment of every line"
        needed = letor if table.feature_names is None else "a column of ids: name it (id)"
        raise InputError(f"ids=docid needs {needed}.", parameter="ids", file=table.path)
    return [*found]


def item_features(table: Any, names: Sequence[str] | None) -> NDArray[np.float64]:
    """Features of items in the order of their names; a row for each, which its id names. Without names, all rows.

    Raises
    ------
    InputError
        For a name that is there twice, and for an item without a row.
    """
    found: dict[str, int] = {}
    where: dict[str, Any] = {"file": table.path, "parameter": "items"}
    for row, name in enumerate(table.docids):
        first = found.setdefault(name, row)
        if first != row:
            message = f"rows {first} and {row}, counted from 0, are both called {name!r}: an item has one."
            raise InputError(message, row=row, **where)
    missing = next((name for name in names or () if name not in found), None)
    if missing is not None:
        message = f"no row is called {missing!r}, as a column of the labels is. Every item needs its features."
        raise InputError(message, column=missing, **where)
    rows = [*found.values()] if names is None else [found[name] for name in names]
    return np.ascontiguousarray(table.X[rows])


def choose_ids(items: Sequence[str], table: Rows, whose: str) -> str:
    """What names an item if nothing says it: "row" or "docid", whichever fits all of them.

    Row numbers if the rows have no ids. If neither fits, the one that fits more, whose error is then the one to tell.

    Raises
    ------
    InputError
        If all fit as row numbers and more than half as ids too, and these are different rows.
    """
    names = table.docids
    if names is None:
        return "row"
    known: dict[str, int] = {}
    for row, name in enumerate(names):
        known.setdefault(name, row)
    by_id = [known.get(item, -1) for item in items]
    by_row = [_row_number(item, table.n_rows) for item in items]
    # ids of which a few are unknown, in a table that lacks some items, are no row numbers either
    if -1 not in by_row and by_row != by_id and 2 * by_id.count(-1) < len(items):
        k = next(k for k, (i, j) in enumerate(zip(by_row, by_id, strict=True)) if i != j)
        message = f"{items[k]!r} is the number of a row of {table.path}, and most items are ids"
        raise InputError(f"{message}. Say which is meant: ids=docid or ids=row.", parameter="ids", file=whose)
    return "docid" if by_id.count(-1) < by_row.count(-1) else "row"


def _row_number(item: str, n_rows: int) -> int:
    if not (item.isascii() and item.isdigit()):
        return -1
    row = int(item) if len(item) < 20 else n_rows
    return row if row < n_rows else -1


def row_of(item: str, table: Rows, ids: str, query: str | None = None) -> int:
    """The row that an item's name means, in one query if that is given.

    Raises
    ------
    InputError
        If there is no such row, or more than one.
    """
    inside = [*range(table.n_rows)]
    if query is not None:
        if table.qid is None:
            raise InputError("no line has a qid for query to name.", parameter="query", file=table.path)
        inside = [row for row, qid in enumerate(table.qid.tolist()) if str(qid) == query]
        if not inside:
            raise InputError(f"there is no query {query}.", file=table.path)
    names = item_names(table, ids)
    if names is None:
        row = _row_number(item, table.n_rows)
        if row < 0:
            raise InputError(f"it has rows 0 to {table.n_rows - 1}; got {item!r}.", file=table.path)
        if query is not None and row not in inside:
            raise InputError(f"row {row} is not in query {query}.", file=table.path, row=row)
        return row
    found = [row for row in inside if names[row] == item]
    if len(found) != 1:
        count = f"{len(found)} lines{'' if query is None else f' of query {query}'} are called {item!r}"
        raise InputError(f"{count}; name one, by its query or its row (ids=row).", file=table.path)
    return found[0]


def read_pairs(path: Source, table: Rows, ids: str | None, note: Callable[[str], Any]) -> tuple[PairTable, str]:
    """The preferences of a file between the rows of a table, and what names an item there.

    Parameters
    ----------
    path : path
    table : LetorTable or ColumnTable
    ids : {"row", "docid", "comment"}, or None
        As for :func:`item_names`; None: see :func:`choose_ids`.
    note : callable
        Is told of columns that mean nothing.

    Raises
    ------
    InputError
        With the line; if the rows have no such id; and if both readings are possible.
    """
    text = read_pair_text(path)
    chosen = choose_ids([*text.items.flat], table, str(path)) if ids is None else ids
    found = text.table(table.n_rows, item_names(table, chosen))
    if text.ignored:
        known = "winner, loser, strength, weight and group"
        note(f"{path}: columns that are not read: {', '.join(map(repr, text.ignored))}; those that are: {known}.")
    return found, chosen
