"""Advice for reading errors: the whole call of ``rankrls fit`` that a table probably needs, and complete options."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection
from itertools import combinations
from pathlib import Path

from rankrls._cells import cell_number
from rankrls._errors import InputError
from rankrls.cli._files import is_dataset
from rankrls.cli._options import Options, given, option_text
from rankrls.io.files import expanded_paths
from rankrls.io.formats import is_table
from rankrls.io.reading import open_table
from rankrls.io.tables import CellError
from rankrls.persistence.stored import columns_error

_NAMES = {
    "label": ("label", "relevance", "rel", "grade", "rating", "judgement", "judgment", "target", "y"),
    "qid": ("qid", "query", "search", "session", "user"),
    "id": ("docid", "doc", "sku", "asin", "document", "item", "product", "url", "id"),
    "time": ("time", "days", "months", "years", "duration", "survival", "followup", "os", "pfs"),
    "event": ("event", "status", "died", "dead", "death", "relapse", "recurrence", "failure", "censored", "censoring"),
    "preferred": ("winner", "preferred", "preference", "choice", "vote"),
    "group": ("voter", "judge", "annotator", "prompt", "question", "group"),
}
"""Usual names of the columns of a role, the surest name first. Labels, queries and ids of the first name are read."""
_SIDES = ({"left", "right"}, {"a", "b"}, {"1", "2"})
"""Words that tell the columns of two sides apart."""
_TRUTHS = {"0", "1", "0.0", "1.0", "true", "false"}


def advised(error: InputError, options: Options) -> InputError:
    """Reading error whose advice completes the options of the call, or names columns that no option named."""
    known = columns_error(error) if isinstance(error, CellError) else error
    ignored = known.settings.get("ignore")
    if ignored is not None:
        names = [*(options.ignore or ()), *(name for name in ignored if name != options.qid)]
        known = known.with_setting("ignore", names)
    unnamed = known.parameter in ("label", "qid") and not options.given(known.parameter)
    call = call_to_copy(options) if unnamed or ignored is not None else None
    return known if call is None else known.replace(message=f"{known.message} {call}")


def call_to_copy(options: Options) -> str | None:
    """The call with the columns that look like label, query and id; None if there is nothing to add."""
    added: dict[str, str] = {}
    if not options.by_pairs:
        try:
            cells = _first_cells(options.train)
        except (InputError, OSError):
            return None
        added = _missing_options(options, cells) if cells else {}
    if options.save is None and options.words[0] == "fit":
        added["model"] = f"{options.train.name.partition('.')[0] or 'model'}.rankrls"
    words = [word for name, value in added.items() for word in (f"--{name}", value)]
    return f"Perhaps: rankrls {shlex.join([*options.words, *words])}" if words else None


def _missing_options(options: Options, cells: dict[str, set[str]]) -> dict[str, str]:
    """Options that name the columns of a table, given the different cells of its first rows."""
    texts = [name for name in cells if not all(math.isfinite(cell_number(cell)) for cell in cells[name])]
    named: dict[str, str] = options.given("label", "qid", "id")
    votes = {} if named else _columns_of_votes(cells, texts)
    if votes:
        return votes
    found = {} if named else _columns_of_times(cells)
    roles = ["label", "qid", "id"]
    if found:
        roles = ["id"]
    elif options.given("all_rows", "group"):
        roles = ["label", "id"]
    for role in roles:
        usual = _NAMES[role][0]
        if role in named or usual in cells:
            named.setdefault(role, usual)
            continue
        free = [name for name in cells if name not in {*named.values(), *found.values()}]
        column = _column_named(free, _NAMES[role])
        if column is not None or role != "id":
            found[role] = column or "COLUMN"
    unread = [name for name in texts if name not in {*named.values(), *found.values()}]
    if unread and not options.given("columns", "features", "ignore"):
        # an encoder needs all rows in memory, which a data set may exceed
        found |= {"ignore": option_text(unread)} if is_dataset(options.train) else {"columns": "auto"}
    return found


def _columns_of_votes(cells: Collection[str], texts: list[str]) -> dict[str, str]:
    """The columns of two sides, whose names differ in a word, of the choice and of groups; empty if there are none."""
    sides = [pair for pair in combinations(texts, 2) if {*_words(pair[0])} ^ {*_words(pair[1])} in _SIDES]
    choice = _column_named(texts, _NAMES["preferred"])
    if not sides or choice is None:
        return {}
    left, right = sorted(sides[0], key=_words)
    group = _column_named([name for name in cells if name not in (left, right, choice)], _NAMES["group"])
    return given({"left": left, "right": right, "preferred": choice, "group": group})


def _columns_of_times(cells: dict[str, set[str]]) -> dict[str, str]:
    """The columns of censored times and of events; empty if there are none, or if there are labels or queries.

    An event that is not coded as 1, and as 0 if the time is censored, is left to the user.
    """
    time = _column_named(cells, _NAMES["time"])
    event = _column_named(cells, _NAMES["event"])
    if time is None or event is None or any(_column_named(cells, _NAMES[role]) for role in ("label", "qid")):
        return {}
    is_coded = cells[event] <= _TRUTHS and "cens" not in event.lower()
    return {"label": time, "event": event if is_coded else "COLUMN_WITH_1_IF_OBSERVED"}


def _first_cells(train: Path) -> dict[str, set[str]]:
    """The different cells in the first rows of a table, by column; no columns of LETOR text."""
    path = expanded_paths(train)[0]
    if not is_table(path):
        return {}
    with open_table(path) as table:
        columns = zip(table.columns, table.first_cells().columns, strict=True)
        return {name: {str(cell).lower() for cell in column.slice(0, 10_000).to_pylist()} for name, column in columns}


def _column_named(columns: Collection[str], names: Collection[str]) -> str | None:
    """The column that has the first of some names, or else has it as one of its words."""
    whole = [column for name in names for column in columns if column.lower() == name]
    part = [column for name in names for column in columns if name in _words(column)]
    return next(iter([*whole, *part]), None)


def _words(column: str) -> list[str]:
    """Words of a column's name."""
    return re.split("[^a-z0-9]+", column.lower())
