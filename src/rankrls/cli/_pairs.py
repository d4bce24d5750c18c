"""Preferences on the command line: read, described, judged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.cli._data import names_of
from rankrls.cli._judging import Judgement, document_ids
from rankrls.io.preferences import read_pair_text
from rankrls.metrics import preference_accuracy

if TYPE_CHECKING:
    from rankrls.cli._report import Report
    from rankrls.io import ColumnTable, LetorTable, PairTable

__all__ = ["MEASURE", "choose_ids", "describe_pairs", "item_ids", "judge_pairs", "read_pairs"]

MEASURE = "pair_accuracy"


def read_pairs(path: Path, table: LetorTable | ColumnTable, ids: str | None, report: Report) -> tuple[PairTable, str]:
    """The preferences of a file between the rows of a table, and what names an item there.

    Parameters
    ----------
    path : path
    table : LetorTable or ColumnTable
    ids : {"row", "docid", "comment"}, or None
        What names an item: its row, counted from 0; its id (in LETOR text what stands behind "docid =" in its comment);
        or its whole comment. None: see :func:`choose_ids`.
    report : Report

    Raises
    ------
    ValueError
        With the line; where the rows have no such id; and where both readings are possible.
    """
    with report.working("reading", f"reading {path}"):
        text = read_pair_text(path)
        chosen = choose_ids([*text.items.flat], table, str(path)) if ids is None else ids
        found = text.table(table.n_rows, item_ids(table, chosen))
    if text.ignored:
        near = [f"{name!r} for {meant!r}?" for name in text.ignored if (meant := text.near(name))]
        several = len(text.ignored) > 1
        note = (
            f"{path}: the column{'s' * several} {', '.join(map(repr, text.ignored))} {'are' if several else 'is'} not "
            f"looked at{' (' + ' '.join(near) + ')' if near else ''}; those that mean something are winner, loser, "
            "strength, weight, and group for what is held out together, such as an annotator."
        )
        if note not in report.notes:
            report.note(note)
    return found, chosen


def choose_ids(items: Sequence[str], table: LetorTable | ColumnTable, whose: str) -> str:
    """What names an item, where nothing says it: "row" or "docid", whichever fits all of them.

    Where the rows have no ids, their numbers. Where neither fits, the one that fits more; the error is then its own.

    Raises
    ------
    ValueError
        Where all fit as row numbers and more than half as ids too, and these are different rows.
    """
    names = document_ids(table)
    if names is None:
        return "row"
    known: dict[str, int] = {}
    for row, name in enumerate(names.tolist()):
        known.setdefault(str(name), row)
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


def item_ids(table: LetorTable | ColumnTable, ids: str) -> list[str] | None:
    """What names each row, by ``--ids``; None are the row numbers."""
    if ids == "row":
        return None
    if ids == "comment":
        comments = getattr(table, "comments", None)
        if not comments:
            raise InputError("no line has a comment, so there is nothing for {ids=comment} to name.", file=table.path)
        return [*comments]
    found = document_ids(table)
    if found is None and names_of(table) is not None:
        raise InputError("{ids=docid} needs a column of ids: name it by {id}.", file=table.path)
    if found is None:
        raise InputError("{ids=docid} needs 'docid = NAME' in the comment of every line.", file=table.path)
    return [str(name) for name in found.tolist()]


def describe_pairs(pairs: PairTable) -> dict[str, Any]:
    """What is in a file, for people and for the model's provenance."""
    return {
        "path": pairs.path,
        "sha256": pairs.sha256,
        "preferences": pairs.n_pairs,
        "ties": 0 if pairs.strength is None else int((pairs.strength == 0.0).sum()),
        "items": len(np.unique(np.concatenate((pairs.winners, pairs.losers)))),
        "groups": None if pairs.groups is None else len(np.unique(pairs.groups)),
    }


def judge_pairs(pairs: PairTable, scores: NDArray[np.float64], qid: Any = None) -> Judgement:
    """The weighted share of preferences that the scores order rightly.

    The standard error takes groups of preferences, where the file has them, as what is drawn; otherwise each
    preference. ``qid`` is that of a model which compares items of one query only.

    Raises
    ------
    ValueError
        Where no preference can be judged, and for one between items of two queries.
    """
    if qid is not None:
        across = qid[pairs.winners] != qid[pairs.losers]
        if across.any():
            e = int(np.argmax(across))
            i, j = int(pairs.winners[e]), int(pairs.losers[e])
            raise InputError(
                "preference {0} compares row {1} of query {2} with row {3} of query {4}, but the model was fitted with "
                "queries, and its scores mean something inside a query only.",
                *(e, i, qid[i], j, qid[j]),
                file=pairs.path,
            )
    try:
        values = preference_accuracy(
            scores, pairs.winners, pairs.losers, strength=pairs.strength, weight=pairs.weight, per_pair=True
        )
    except InputError as error:
        raise error.located(file=pairs.path) from None
    judged = ~np.isnan(values)
    right = values[judged]
    weight = np.ones(len(right)) if pairs.weight is None else pairs.weight[judged]
    mean = float(weight @ right / weight.sum())
    parts = weight * (right - mean)
    if pairs.groups is not None:
        parts = np.bincount(np.unique(pairs.groups[judged], return_inverse=True)[1], parts)
    spread = float(np.sqrt(parts @ parts) / weight.sum()) if len(parts) > 1 else np.nan
    return Judgement(mean, spread, values, unit="preferences")
