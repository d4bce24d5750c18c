"""Multiple judgements of the same item in one query."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from rankrls._checks import check_word
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls._typing import AnyArray, Index
from rankrls.io.rows import Rows


def resolve_conflicts(table: Rows, how: Literal["mean", "last", "refuse"] = "mean") -> Rows:
    r"""Reduce items with different labels in one query to one row each.

    Parameters
    ----------
    table : Rows
        Rows with labels, query ids and item ids; without one of these, nothing is changed.
    how : {"mean", "last", "refuse"}, default="mean"
        Label of the row that is kept, which is the last one: the mean of the item's labels, or its own. "refuse" raises
        an error instead.

    Returns
    -------
    Rows
        Rows in their order. Items with equal labels keep all rows, as do rows without a label (NaN).

    Raises
    ------
    InputError
        With ``how="refuse"``, at the first row of such an item.

    Notes
    -----
    O(m log m).

    Examples
    --------
    >>> import io
    >>> from rankrls.io import load_letor, resolve_conflicts
    >>> text = b"2 qid:7 1:0.5 # docid = a\n0 qid:7 1:3 # docid = b\n1 qid:7 1:0.5 # docid = a\n"
    >>> table = load_letor(io.BytesIO(text))
    >>> resolve_conflicts(table, "mean").y
    array([0. , 1.5])
    """
    check_word("how", how, ("mean", "last", "refuse"))
    items = _conflicting_items(table, table.docids)
    rows = np.flatnonzero(items >= 0)
    if table.y is None or not len(rows):
        return table
    if how == "refuse":
        row = int(rows[0])
        raise InputError(conflict_text(table), file=table.path, row=row, line=table.line_of(row), column="label")
    labels = table.y.copy()
    if how == "mean":
        number_of_items = int(items.max()) + 1
        totals = np.bincount(items[rows], labels[rows], number_of_items)
        counts = np.bincount(items[rows], minlength=number_of_items)
        labels[rows] = totals[items[rows]] / counts[items[rows]]
    last_of_each = {int(item): row for item, row in zip(items[rows], rows, strict=True)}
    kept = np.union1d(np.flatnonzero(items < 0), [*last_of_each.values()])
    return replace(table, y=labels).take(kept)


def conflict_text(table: Rows) -> str:
    """Number of items with different labels in one query, with an example; empty if there are none."""
    ids = table.docids
    items = _conflicting_items(table, ids)
    rows = np.flatnonzero(items >= 0)
    if ids is None or table.qid is None or not len(rows):
        return ""
    first, second = np.flatnonzero(items == items[rows[0]])[:2]
    count = len(np.unique(items[rows]))
    example = f"item {ids[first]!r} of query {str(table.qid[first])!r} in rows {first} and {second}"
    return f"{count} item{'s have' if count > 1 else ' has'} different labels in one query, such as {example}."


def _conflicting_items(table: Rows, ids: AnyArray | None) -> Index:
    """Number of each item with different labels in one query, in its rows; -1 in all others."""
    found = np.full(table.n_rows, -1, dtype=np.intp)
    if table.y is None or table.qid is None or ids is None:
        return found
    known = np.flatnonzero(~np.isnan(table.y))
    if not len(known):
        return found
    queries, items = (query_layout(values, len(values)).codes[known] for values in (table.qid, ids))
    pairs = np.unique(queries * (items.max() + 1) + items, return_inverse=True)[1]
    lowest = np.full(len(known), np.inf)
    highest = np.full(len(known), -np.inf)
    np.minimum.at(lowest, pairs, table.y[known])
    np.maximum.at(highest, pairs, table.y[known])
    found[known] = np.where((lowest < highest)[pairs], pairs, -1)
    return found
