"""Which column of a table is the label, the query id, the item's id, and which are features."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rankrls._checks import check_word
from rankrls._errors import InputError, did_you_mean
from rankrls.io._rows import few
from rankrls.io.tables.opened import Table

Labels = Literal["required", "partly", "optional", "ignored"]
_USUAL = {"label": "label", "qid": "qid", "id": "docid"}
_WORDS = {
    "label": "the label",
    "qid": "the query id",
    "id": "the item's id",
    "event": "the event",
    "weight": "the weight",
    "position": "the position",
    "impressions": "the impressions",
}
_SHOWN = 8
_COMPARED = 5_000  # columns that a name with a slip may have meant: each takes a comparison sign by sign
_INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls an index without a name when it writes Parquet
_PART = re.compile(r"(.*)\[\d+\]", re.DOTALL)


class TableError(InputError):
    """A table holds something that a learner cannot use; the attributes say where."""

    __module__ = "rankrls.io"


@dataclass(frozen=True)
class ColumnRoles:
    """What each column shall be; None is the usual name, where there is such a column.

    Attributes
    ----------
    label, qid, id, event, weight, position, impressions : str or None
        Names of columns.
    features : tuple of str, optional
        Names or patterns; by default all other columns. () are none: ids and labels only are read.
    ignore : tuple of str
        Names or patterns of columns that are no features.
    labels : {"required", "partly", "optional", "ignored"}
        Whether there has to be a column of labels, and whether each row needs one.
    usual : mapping of str to str
        Other names than "label", "qid" and "docid" for what is not given.
    """

    label: str | None = None
    qid: str | None = None
    id: str | None = None
    features: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    labels: Labels = "required"
    usual: Mapping[str, str] = field(default_factory=dict)
    event: str | None = None
    weight: str | None = None
    position: str | None = None
    impressions: str | None = None

    def count(self, file: str) -> int | None:
        """How many features LETOR text is to have, of which no more can be said; None if nothing is."""
        if self.features is None:
            return None
        text = ",".join(self.features)
        if not text.isdecimal() or int(text) < 1:
            message = f"features is a number for LETOR text, at least 1 (names are for tables); got {text!r}."
            raise InputError(message, parameter="features", file=file)
        return int(text)

    @property
    def usual_names(self) -> dict[str, str]:
        """What holds where nothing is given."""
        return {**_USUAL, **self.usual}

    @staticmethod
    def checked(label: Any, qid: Any, id: Any, features: Any, ignore: Any, labels: Any) -> ColumnRoles:
        """The arguments of :func:`load_table`, checked."""
        check_word("labels", labels, ("required", "optional", "ignored"))
        named = None if features is None else _names(features)
        if named == ():
            raise InputError("features is empty: there is nothing to learn from.", parameter="features")
        return ColumnRoles(label, qid, id, named, _names(ignore), labels)


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(map(str, value))


@dataclass(frozen=True)
class ReadPlan:
    """The columns of a table that are read, by name.

    Attributes
    ----------
    features : tuple of str
        Columns of X in their order.
    label : str, optional
        The column of labels.
    numbers : mapping of str to str
        Columns of numbers by what they are: "weight", "event", "strength", "position", "impressions".
    texts : mapping of str to str
        Columns of ids by what they are: "qid", "id", "winner", and so on.
    may_miss : bool
        Whether a label may be missing.
    may_be_empty : tuple of str
        The keys of ``texts`` whose cells may be missing or empty.
    """

    features: tuple[str, ...] = ()
    label: str | None = None
    numbers: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    may_miss: bool = False
    may_be_empty: tuple[str, ...] = ()

    @property
    def stored(self) -> list[str]:
        """The columns that are read, each once."""
        label = [] if self.label is None else [self.label]
        return [*dict.fromkeys([*self.features, *label, *self.numbers.values(), *self.texts.values()])]


def plan_columns(table: Table, roles: ColumnRoles) -> ReadPlan:
    """Find the columns of each role.

    Raises
    ------
    InputError
        For a column that is asked for and not there, or that has two roles, and where no feature is left.
    """
    ignored = {*_all_matching(table, roles.ignore, "ignore")}
    found = _single_columns(table, roles)
    if roles.labels in ("required", "partly") and "label" not in found:
        usual = roles.usual_names["label"]
        message = f"there is no column {usual!r}{_listed(table)} Say which one holds the labels (label)."
        raise table.refuse(message, column=usual, parameter="label")
    named = table.columns if roles.features is None else _all_matching(table, roles.features, "features")
    taken = {*found.values()} | ignored
    chosen = [n for n in named if n not in taken and not (roles.features is None and _INDEX.fullmatch(n))]
    if "" in chosen:
        at = table.columns.index("")
        message = (
            f"column {at + 1} has no name. Name it, or leave it out: pandas writes its index so unless told not to."
        )
        raise table.refuse(message, column=at)
    if not chosen and roles.features != ():
        message = f"no column is left for the features{_listed(table)} See features and ignore."
        raise table.refuse(message, parameter="features")
    return ReadPlan(
        features=tuple(chosen),
        label=None if roles.labels == "ignored" else found.get("label"),
        numbers={role: found[role] for role in ("weight", "event", "position", "impressions") if role in found},
        texts={role: found[role] for role in ("qid", "id") if role in found},
        may_miss=roles.labels in ("partly", "optional"),
    )


def _single_columns(table: Table, roles: ColumnRoles) -> dict[str, str]:
    """The column of each role that has one; the usual name of a role if it has no other."""
    asked = dict.fromkeys(roles.features or (), "a feature")
    for role, words in _WORDS.items():
        name = getattr(roles, role)
        if name is None:
            continue
        if name not in table.columns:
            message = f"there is no column {name!r} for {words}{_hint(table, name)}"
            raise table.refuse(message, column=name, parameter=role)
        if name in asked:
            message = f"the column {name!r} cannot be both {asked[name]} and {words}."
            raise table.refuse(message, column=name, parameter=role)
        asked[name] = words
    found = {}
    for role in _WORDS:
        name = getattr(roles, role)
        usual = roles.usual_names.get(role)
        if name is None and usual in table.columns and usual not in asked:
            name = usual
        if name is not None:
            found[role] = name
    return found


def _all_matching(table: Table, words: Sequence[str], parameter: str) -> list[str]:
    """The columns that names and patterns stand for, each once."""
    found = {word: matching(word, table.columns) for word in words}
    missing = [word for word, names in found.items() if not names]
    if missing:
        like = "called like " * _is_pattern(missing[0])
        message = f"there is no column {like}{few([*map(repr, missing)], _SHOWN)}{_hint(table, missing[0])}"
        raise table.refuse(message, column=missing[0], parameter=parameter)
    return [*dict.fromkeys(name for names in found.values() for name in names)]


def _hint(table: Table, name: str) -> str:
    """The end of a message about a column that is not there."""
    near = did_you_mean(name, table.columns[:_COMPARED])
    return f".{near}" if near else _listed(table)


def _listed(table: Table) -> str:
    return f" (columns: {few(table.columns, _SHOWN)})."


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def matching(word: str, names: Sequence[str]) -> list[str]:
    """Columns that a name, a pattern or a column of lists stands for.

    ``*`` is any text and ``?`` one sign; brackets are themselves, since features are often called bm25[title].
    """
    if word in names:
        return [word]
    pattern = re.compile(fnmatch.translate(word.replace("[", "[[]")) if _is_pattern(word) else re.escape(word) + r"\Z")

    def fits(name: str) -> bool:
        column = _PART.fullmatch(name) if name.endswith("]") else None
        return bool(pattern.match(name) or (column and pattern.match(column.group(1))))

    return [name for name in names if fits(name)]
