"""The whole call of ``rankrls fit`` that a table probably needs, for users who named no columns."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rankrls._cells import cell_number
from rankrls._errors import InputError
from rankrls.cli._files import is_dataset
from rankrls.cli._options import Options, option_text
from rankrls.io.files import expanded_paths
from rankrls.io.formats import TABLES, format_of, open_table
from rankrls.io.tables import is_number

_NAMES = {
    "label": ("label", "relevance", "rel", "grade", "rating", "judgement", "judgment", "target", "y"),
    "qid": ("qid", "query_id", "queryid", "query", "search_id", "search", "session_id", "session", "user_id"),
    "id": ("docid", "doc_id", "item_id", "product_id", "sku", "asin", "document", "item", "product", "url", "id"),
}
"""Usual names of the columns of a role, the surest name first."""
_TIMES = ("time", "days", "months", "years", "duration", "survival", "futime", "followup", "lenfol", "os", "pfs")
_EVENTS = (
    "event",
    "status",
    "died",
    "dead",
    "death",
    "relapse",
    "recurrence",
    "failure",
    "observed",
    "fustat",
    "fstat",
)
"""Usual names of the columns of censored times, and of their events."""
_CHOICES = ("winner", "preferred", "preference", "choice", "vote")
_VOTERS = ("voter", "judge", "annotator", "prompt", "prompt_id", "question_id", "question", "group")
"""Usual names of the columns of choices between two sides, and of what makes votes dependent."""
_SIDES = (("left", "right"), ("a", "b"), ("1", "2"))
"""Words that tell the columns of two sides apart."""
_TRUTHS = {"0", "1", "0.0", "1.0", "true", "false"}
_MOST_GRADES = 10


def with_proposal(error: InputError, options: Options) -> InputError:
    """An error about columns that no option named, with the call that names those that look right."""
    unnamed = error.parameter in ("label", "qid") and not options.given(error.parameter)
    if not (unnamed or "ignore" in error.settings):
        return error
    call = call_to_copy(options)
    return error if call is None else error.replace(message=f"{error.message} {call}")


def call_to_copy(options: Options) -> str | None:
    """The columns that look like label, query and id, and the call with them; None if there is nothing to add."""
    added: list[str] = []
    try:
        if not options.by_pairs:
            added = _missing_options(options)
    except (InputError, OSError):
        return None
    if options.save is None and options.words[0] == "fit":
        added += ["--model", f"{options.train.name.partition('.')[0] or 'model'}.rankrls"]
    return f"Perhaps: rankrls {shlex.join([*options.words, *added])}" if added else None


def _missing_options(options: Options) -> list[str]:
    """Options that name columns of a table."""
    path = expanded_paths(options.train)[0]
    if format_of(path) not in TABLES:
        return []
    numbers, others = _first_cells(path)
    cells = numbers | others
    wanted = ["label"] if options.all_rows else ["label", "qid"]
    suits: dict[str, Callable[[str], bool]] = {
        "label": lambda name: name in numbers,
        "qid": lambda name: len(set(cells[name])) < len(cells[name]),
        "id": lambda name: 2 * len(set(cells[name])) > len(cells[name]),
    }
    added: list[str] = []
    roles = options.given(*_NAMES)
    if not roles and (votes := _columns_of_votes(cells, others)):
        return [word for role, name in votes.items() for word in (f"--{role}", name)]
    if not roles and not any(_column_named([*cells], _NAMES[role]) for role in ("label", "qid")):
        time = _column_named([*numbers], _TIMES)
        binary = [name for name in cells if {str(cell).lower() for cell in cells[name]} <= _TRUTHS]
        event = _column_named(binary, _EVENTS)
        if time is not None and event is not None:
            roles = {"label": time, "event": event}
            added = ["--label", time, "--event", event]
            wanted = []
    usual = {"label": "label", "qid": "qid", "id": "docid"}
    for role in [*wanted, "id"]:
        if role in roles or usual[role] in cells:
            roles.setdefault(role, usual[role])
            continue
        free = [name for name in cells if name not in roles.values() and suits[role](name)]
        found = _column_named(free, _NAMES[role])
        if found is None and role == "label":
            found = _only_grades({name: numbers[name] for name in free})
        if found is not None:
            roles[role] = found
            added += [f"--{role}", found]
        elif role in wanted and not (role == "qid" and options.group is not None):
            added += [f"--{role}", "COLUMN"]
    unread = [name for name in others if name not in roles.values()]
    if unread and not options.given("columns", "features", "ignore"):
        # an encoder needs all rows in memory, which a data set may exceed
        added += ["--ignore", option_text(unread)] if is_dataset(options.train) else ["--columns", "auto"]
    return added


def _columns_of_votes(cells: Mapping[str, list[Any]], texts: Mapping[str, list[Any]]) -> dict[str, str]:
    """The columns of two sides, whose names differ in a word, of the choice and of groups; empty if there are none."""
    pairs = [
        (left, right)
        for left in texts
        for first, second in _SIDES
        if (right := re.sub(rf"(?<![^\W_]){first}(?![^\W_])", second, left)) != left and right in texts
    ]
    choice = _column_named([*texts], _CHOICES)
    if not pairs or choice is None or choice in pairs[0]:
        return {}
    found = {"left": pairs[0][0], "right": pairs[0][1], "preferred": choice}
    group = _column_named([name for name in cells if name not in found.values()], _VOTERS)
    return found if group is None else found | {"group": group}


def _first_cells(path: str) -> tuple[dict[str, list[float]], dict[str, list[Any]]]:
    """The first rows of a table by column: columns of numbers, and the others."""
    numbers: dict[str, list[float]] = {}
    others: dict[str, list[Any]] = {}
    with open_table(path) as table:
        batch = table.first_cells()
    for name, column in zip(table.columns, batch.columns, strict=True):
        cells = column.slice(0, 10_000).to_pylist()
        values = [cell_number(str(cell)) for cell in cells]
        if (is_number(column.type) or table.textual) and all(map(math.isfinite, values)):
            numbers[name] = values
        else:
            others[name] = cells
    return numbers, others


def _column_named(columns: Sequence[str], names: Sequence[str]) -> str | None:
    """The column that has the first of some names, or else has it as one of its words."""
    words = {column: re.split("[^a-z0-9]+", column.lower()) for column in columns}
    whole = [column for name in names for column in columns if column.lower() == name]
    part = [column for name in names for column in columns if name in words[column]]
    return next(iter([*whole, *part]), None)


def _only_grades(columns: dict[str, list[float]]) -> str | None:
    """The only column of few different whole numbers, if there is one."""
    grades = [
        name
        for name, values in columns.items()
        if 1 < len(set(values)) <= _MOST_GRADES and all(value >= 0 and value.is_integer() for value in values)
    ]
    return grades[0] if len(grades) == 1 else None
