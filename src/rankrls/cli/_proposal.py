"""The whole call of ``rankrls fit`` that a table probably needs, for users who named no columns."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from rankrls._cells import cell_number
from rankrls._errors import InputError
from rankrls.cli._files import is_dataset
from rankrls.cli._options import Options, option_text
from rankrls.io.files import expanded_paths
from rankrls.io.formats import is_table, open_table
from rankrls.io.tables import is_number

_NAMES = {
    "label": ("label", "relevance", "rel", "grade", "rating", "judgement", "judgment", "target", "y"),
    "qid": ("qid", "query_id", "queryid", "query", "search_id", "search", "session_id", "session", "user_id"),
    "id": ("docid", "doc_id", "item_id", "product_id", "sku", "asin", "document", "item", "product", "url", "id"),
}
"""Usual names of the columns of a role, the surest name first."""
_TIMES = ("time", "days", "months", "years", "duration", "survival", "futime", "followup", "lenfol", "os", "pfs")
_EVENTS = (
    *("event", "status", "died", "dead", "death", "relapse", "recurrence", "failure", "observed", "fustat", "fstat"),
)
_CENSORED = ("censored", "censor", "cens", "censoring")
"""Usual names of the columns of censored times, of their events, and of the opposite of events."""
_CHOICES = ("winner", "preferred", "preference", "choice", "vote")
_VOTERS = ("voter", "judge", "annotator", "prompt", "prompt_id", "question_id", "question", "group")
"""Usual names of the columns of choices between two sides, and of what makes votes dependent."""
_SIDES = (("left", "right"), ("a", "b"), ("1", "2"))
"""Words that tell the columns of two sides apart."""
_TRUTHS = {"0", "1", "0.0", "1.0", "true", "false"}
Cells: TypeAlias = Mapping[str, list[Any]]
"""The first cells of each column of a table."""


def with_proposal(error: InputError, options: Options) -> InputError:
    """An error about columns that no option named, with the call that names those that look right."""
    unnamed = error.parameter in ("label", "qid") and not options.given(error.parameter)
    if not (unnamed or "ignore" in error.settings):
        return error
    call = call_to_copy(options)
    return error if call is None else error.replace(message=f"{error.message} {call}")


def call_to_copy(options: Options) -> str | None:
    """The call with the columns that look like label, query and id; None if there is nothing to add."""
    added: list[str] = []
    if not options.by_pairs:
        try:
            cells, texts = _first_cells(options.train)
        except (InputError, OSError):
            return None
        try:
            added = _missing_options(options, cells, texts) if cells else []
        except InputError as error:
            return error.message
    if options.save is None and options.words[0] == "fit":
        added += ["--model", f"{options.train.name.partition('.')[0] or 'model'}.rankrls"]
    return f"Perhaps: rankrls {shlex.join([*options.words, *added])}" if added else None


def _missing_options(options: Options, cells: Cells, texts: Collection[str]) -> list[str]:
    """Options that name columns of a table."""
    roles: dict[str, str] = options.given(*_NAMES)
    found = {} if roles else _columns_of_votes(cells, texts) or _columns_of_times(cells, texts)
    added = [word for role, name in found.items() for word in (f"--{role}", name)]
    if "preferred" in found:
        return added
    roles |= found
    wanted = [] if found else ["label"] if options.all_rows else ["label", "qid"]
    for role in [*wanted, "id"]:
        usual = "docid" if role == "id" else role
        if role in roles or usual in cells:
            roles.setdefault(role, usual)
            continue
        free = [name for name in cells if name not in roles.values() and _suits(role, cells[name], name in texts)]
        column = _column_named(free, _NAMES[role])
        if column is not None:
            roles[role] = column
            added += [f"--{role}", column]
        elif role in wanted and not (role == "qid" and options.group is not None):
            added += [f"--{role}", "COLUMN"]
    unread = [name for name in texts if name not in roles.values()]
    if unread and not options.given("columns", "features", "ignore"):
        # an encoder needs all rows in memory, which a data set may exceed
        added += ["--ignore", option_text(unread)] if is_dataset(options.train) else ["--columns", "auto"]
    return added


def _suits(role: str, cells: list[Any], is_text: bool) -> bool:
    """Whether cells can have a role: labels are numbers, query ids repeat, and most ids of items do not."""
    different = len(set(cells))
    return {"label": not is_text, "qid": different < len(cells), "id": 2 * different > len(cells)}[role]


def _columns_of_votes(cells: Cells, texts: Collection[str]) -> dict[str, str]:
    """The columns of two sides, whose names differ in a word, of the choice and of groups; empty if there are none."""
    pairs = [
        (left, right)
        for left in cells
        for first, second in _SIDES
        if (right := re.sub(rf"(?<![^\W_]){first}(?![^\W_])", second, left)) != left and {left, right} <= {*texts}
    ]
    choice = _column_named(texts, _CHOICES)
    if not pairs or choice is None or choice in pairs[0]:
        return {}
    found = {"left": pairs[0][0], "right": pairs[0][1], "preferred": choice}
    group = _column_named([name for name in cells if name not in found.values()], _VOTERS)
    return found if group is None else found | {"group": group}


def _columns_of_times(cells: Cells, texts: Collection[str]) -> dict[str, str]:
    """The columns of censored times and of events; empty if there are none, or if there are labels or queries."""
    time = _column_named([name for name in cells if name not in texts], _TIMES)
    event = _column_named([name for name in cells if len(set(cells[name])) <= 2], _EVENTS + _CENSORED)
    if time is None or event is None or any(_column_named(cells, _NAMES[role]) for role in ("label", "qid")):
        return {}
    if _column_named([event], _CENSORED) or not {str(cell).lower() for cell in cells[event]} <= _TRUTHS:
        problem = f"Column {event!r} seems to tell censored times from events in another way than --event, which needs"
        raise InputError(f"{problem} 1 for an event and 0 for a censored time. Add such a column.", column=event)
    return {"label": time, "event": event}


def _first_cells(train: Path) -> tuple[Cells, list[str]]:
    """The first rows of a table by column, and the names of the columns that are not numbers; no columns of text."""
    cells: dict[str, list[Any]] = {}
    texts: list[str] = []
    path = expanded_paths(train)[0]
    if not is_table(path):
        return cells, texts
    with open_table(path) as table:
        batch = table.first_cells()
    for name, column in zip(table.columns, batch.columns, strict=True):
        found = column.slice(0, 10_000).to_pylist()
        values = [cell_number(str(cell)) for cell in found]
        is_text = not ((is_number(column.type) or table.textual) and all(map(math.isfinite, values)))
        cells[name] = found if is_text else values
        if is_text:
            texts.append(name)
    return cells, texts


def _column_named(columns: Collection[str], names: Collection[str]) -> str | None:
    """The column that has the first of some names, or else has it as one of its words."""
    words = {column: re.split("[^a-z0-9]+", column.lower()) for column in columns}
    whole = [column for name in names for column in columns if column.lower() == name]
    part = [column for name in names for column in columns if name in words[column]]
    return next(iter([*whole, *part]), None)
