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
            raise InputError("no line has a comment, so there is nothing for {ids=comment} to name.", file=table.path)
        return [*table.comments]
    found = table.docids
    if found is None:
        letor = "{ids=docid} needs 'docid = NAME' in the comment of every line."
        typed = "{ids=docid} needs a column of ids: name it by {id}."
        raise InputError(letor if table.feature_names is None else typed, file=table.path)
    return [*found]


def item_features(table: Any, names: Sequence[str] | None) -> NDArray[np.float64]:
    """Features of items in the order of their names; a row for each, which its id names. Without names, all rows.

    Raises
    ------
    InputError
        For a name that is there twice, and for an item without a row.
    """
    found: dict[str, int] = {}
    for row, name in enumerate(table.docids):
        if name in found:
            problem = "rows {0} and {1}, counted from 0, are both called {2!r}: an item has one."
            raise InputError(problem, found[name], row, name, file=table.path, row=row, parameter="items")
        found[name] = row
    missing = [name for name in names or () if name not in found]
    if missing:
        problem, remedy = "no row is called {0!r}, as a column of the labels is.", "Every item needs its features."
        raise InputError(problem, missing[0], remedy=remedy, file=table.path, column=missing[0], parameter="items")
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
        other = f"the id of row {by_id[k]}" if by_id[k] >= 0 else "no id, as most others are"
        raise InputError(
            "items may be named by ids or by row numbers: {0!r} is the number of a row of {1}, from 0, and {2}.",
            *(items[k], table.path, other),
            remedy="Say which is meant: {ids=docid} or {ids=row}.",
            file=whose,
        )
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
            raise InputError("no line has a qid for {query} to name.", file=table.path)
        inside = [row for row, qid in enumerate(table.qid.tolist()) if str(qid) == query]
        if not inside:
            raise InputError("there is no query {0}.", query, file=table.path)
    names = item_names(table, ids)
    if names is None:
        row = _row_number(item, table.n_rows)
        if row < 0:
            raise InputError("it has rows 0 to {0}; got {1!r}.", table.n_rows - 1, item, file=table.path)
        if query is not None and row not in inside:
            raise InputError("row {0} is not in query {1}.", row, query, file=table.path, row=row)
        return row
    found = [row for row in inside if names[row] == item]
    where = "" if query is None else f" in query {query}"
    if not found:
        raise InputError("no line{0} is called {1!r}.", where, item, file=table.path)
    if len(found) > 1:
        problem, remedy = "{0} lines{1} are called {2!r};", "name one by {query} or {ids=row}."
        raise InputError(problem, len(found), where, item, remedy=remedy, file=table.path)
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
        near = [f"{name!r} for {meant!r}?" for name in text.ignored if (meant := text.near(name))]
        several = len(text.ignored) > 1
        note(
            f"{path}: the column{'s' * several} {', '.join(map(repr, text.ignored))} {'are' if several else 'is'} not "
            f"looked at{' (' + ' '.join(near) + ')' if near else ''}; those that mean something are winner, loser, "
            "strength, weight, and group for what is held out together, such as an annotator."
        )
    return found, chosen
