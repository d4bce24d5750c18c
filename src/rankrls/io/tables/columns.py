"""Which column of a table is the label, the query id, the item's id, and which are features."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rankrls._checks import check_word
from rankrls._errors import InputError, did_you_mean
from rankrls.io._rows import few

Labels = Literal["required", "partly", "optional", "ignored"]
_USUAL = {"label": "label", "qid": "qid", "id": "docid"}
_WORDS = {"label": "label", "qid": "query id", "id": "item's id", "event": "event", "weight": "weight"}
_SHOWN = 8
_COMPARED = 5_000  # columns that a name with a slip may have meant: each takes a comparison sign by sign
_INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls an index without a name when it writes Parquet
_PART = re.compile(r"(.*)\[\d+\]", re.DOTALL)


class TableError(InputError):
    """A table holds something that a learner cannot use; the attributes say where."""

    __module__ = "rankrls.io"


Refuse = Callable[..., InputError]
"""Makes an error about a file out of a message and further facts."""


@dataclass(frozen=True)
class ColumnRoles:
    """What each column shall be; None is the usual name, where there is such a column.

    Attributes
    ----------
    label, qid, id, event, weight : str or None
        Names of columns.
    features : tuple of str, optional
        Names or patterns; by default all other columns. () are none: ids and labels only are read.
    ignore : tuple of str
        Names or patterns of columns that are no features.
    labels : {"required", "partly", "optional", "ignored"}
        Whether there has to be a column of labels, and whether each row needs one.
    usual : mapping of str to str
        Other names than "label", "qid" and "docid" for what is not given.
    utilities : tuple of str, optional
        Columns of labels, by names or patterns, one for each item that a row ranks: there is then no one label.
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
    utilities: tuple[str, ...] | None = None

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
        for name, value in (("label", label), ("qid", qid), ("id", id)):
            if value is not None and not isinstance(value, str):
                raise InputError(f"{name} must be the name of a column, or None; got {value!r}.", parameter=name)
        check_word("labels", labels, ("required", "optional", "ignored"))
        if features is not None:
            features = _names("features", features)
            if not features:
                raise InputError("features is empty: there is nothing to learn from.", parameter="features")
        return ColumnRoles(label, qid, id, features, _names("ignore", ignore), labels)


def _names(what: str, value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} must hold names of columns; got {value!r}.", parameter=what)
    return names


@dataclass(frozen=True)
class ReadPlan:
    """The columns of a table that are read, by name.

    Attributes
    ----------
    features : tuple of str
        Columns of X in their order; a number of a column of lists is called as :func:`expanded` says.
    labels : tuple of str
        The column of labels, or those of the utilities.
    weight, event : str or None
    texts : mapping of str to str
        Columns of ids by what they are: "qid", "id", "winner", and so on.
    lists : mapping of str to int
        The columns of lists among the features, and how long their lists are.
    may_miss : bool
        Whether a label may be missing.
    may_be_empty : tuple of str
        The keys of ``texts`` whose cells may be missing or empty.
    """

    features: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    weight: str | None = None
    event: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, int] = field(default_factory=dict)
    may_miss: bool = False
    may_be_empty: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[str]:
        """The columns of numbers, without those of lists."""
        of_lists = {name for column in self.lists for name in expanded(column, self.lists)}
        alone = [name for name in (self.weight, self.event) if name is not None]
        return [*dict.fromkeys([*(n for n in self.features if n not in of_lists), *self.labels, *alone])]

    @property
    def stored(self) -> list[str]:
        """The columns of the file that are read."""
        return [*dict.fromkeys([*self.numbers, *self.lists, *self.texts.values()])]


def expanded(column: str, lists: Mapping[str, int]) -> list[str]:
    """Names of the features that a column is: its own, or ``column[0]``, ``column[1]``, ... where it holds lists."""
    size = lists.get(column)
    return [column] if size is None else [f"{column}[{k}]" for k in range(size)]


def plan_columns(refuse: Refuse, columns: Sequence[str], roles: ColumnRoles, lists: Mapping[str, int]) -> ReadPlan:
    """Find the columns of each role.

    Parameters
    ----------
    refuse : callable
        Makes the errors.
    columns : sequence of str
        Names of all columns.
    roles : ColumnRoles
    lists : mapping of str to int
        How many numbers are in a list, of the columns that hold lists. Each number is a feature; all are, or none.

    Raises
    ------
    InputError
        For a name that is there twice, a column that is asked for and not there, or that has two roles, and where no
        feature is left.
    """
    header = _Header(refuse, columns, lists)
    ignored = header.all_matching(roles.ignore, "ignore")
    ranked = [n for n in header.all_matching(roles.utilities or (), "labels") if n not in ignored and n != roles.id]
    found = _single_columns(header, roles, ranked)
    if roles.labels in ("required", "partly") and "label" not in found and not ranked:
        usual = roles.usual_names["label"]
        message = f"there is no column {usual!r}{header.listed()} Say which one holds the labels (label)."
        raise refuse(message, column=usual, parameter="label")
    taken = {name: role for role, name in found.items()} | dict.fromkeys(ranked, "label")
    if roles.labels == "ignored":
        found.pop("label", None)
    if roles.features is None:
        chosen = [n for n in header.names if n not in taken and n not in ignored and not _INDEX.fullmatch(n)]
        if "" in chosen:
            at = columns.index("")
            message = (
                f"column {at + 1} has no name. Name it, or leave it out: pandas writes its index so unless told not to."
            )
            raise refuse(message, column=at)
    else:
        twice = next((name for name in roles.features if name in taken), None)
        if twice is not None:
            message = f"the column {twice!r} cannot be both the {_WORDS[taken[twice]]} and a feature."
            raise refuse(message, column=twice, parameter="features")
        named = header.all_matching(roles.features, "features")
        chosen = [n for n in named if n not in taken and n not in ignored]
    if not chosen and roles.features != ():
        message = f"no column is left for the features{header.listed()} See features and ignore."
        raise refuse(message, parameter="features")
    held = {column: size for column, size in lists.items() if not set(chosen).isdisjoint(expanded(column, lists))}
    for column in held:
        missing = [name for name in expanded(column, lists) if name not in chosen]
        if missing:
            message = f"column {column!r} holds lists, and {missing[0]!r} is not asked for: a list is taken whole."
            raise refuse(message, column=column, parameter="features")
    return ReadPlan(
        features=tuple(chosen),
        labels=(*ranked, *(found[role] for role in ("label",) if role in found)),
        weight=found.get("weight"),
        event=found.get("event"),
        texts={role: found[role] for role in ("qid", "id") if role in found},
        lists=held,
        may_miss=roles.labels in ("partly", "optional"),
    )


def _single_columns(header: _Header, roles: ColumnRoles, ranked: Sequence[str]) -> dict[str, str]:
    """The column of each role that has one."""
    found: dict[str, str] = {}
    for role in _WORDS:
        given, usual = getattr(roles, role), roles.usual_names.get(role)
        if given is None and (usual in ranked or (ranked and role == "label") or usual in (roles.features or ())):
            continue
        name = usual if given is None else given
        if name is None or name not in header.column_of:
            if given is not None:
                message = f"there is no column {given!r} for the {_WORDS[role]}{header.hint(given)}"
                raise header.refuse(message, column=given, parameter=role)
            continue
        if name in found.values():
            if given is None:
                continue  # the usual name of one role, given to another
            other = next(r for r, n in found.items() if n == name)
            message = f"the column {name!r} cannot be both the {_WORDS[other]} and the {_WORDS[role]}."
            raise header.refuse(message, column=name, parameter=role)
        found[role] = name
    return found


class _Header:
    """Names of columns, and of the features that a column of lists is."""

    def __init__(self, refuse: Refuse, columns: Sequence[str], lists: Mapping[str, int]) -> None:
        self.refuse, self.columns, self.lists = refuse, columns, lists
        self.column_of: dict[str, str] = {}
        for column in columns:
            for name in expanded(column, lists):
                if name in self.column_of:
                    called = f"called {name!r}" if name else "without a name"
                    raise refuse(f"two columns are {called}; names must differ.", column=name)
                self.column_of[name] = column
        self.names = [*self.column_of]

    def all_matching(self, words: Sequence[str], parameter: str) -> list[str]:
        """What names and patterns stand for, each once."""
        missing = [
            word for word in words if not _is_pattern(word) and word not in self.column_of and word not in self.lists
        ]
        if missing:
            shown = few([*map(repr, missing)], _SHOWN)
            are = "is no column" if len(missing) == 1 else "are no columns"
            message = f"there {are} {shown}{self.hint(missing[0])}"
            raise self.refuse(message, column=missing[0], parameter=parameter)
        found = {word: [word] if word in self.column_of else matching(word, self.names) for word in words}
        for word, names in found.items():
            if not names:
                message = f"no column is called like {word!r}{self.listed()}"
                raise self.refuse(message, column=word, parameter=parameter)
        return [*dict.fromkeys(name for names in found.values() for name in names)]

    def hint(self, name: str) -> str:
        """The end of a message about a column that is not there."""
        near = did_you_mean(name, self.columns[:_COMPARED])
        return f".{near}" if near else self.listed()

    def listed(self) -> str:
        """Likewise, with the columns that are there."""
        return f" (columns: {few(self.columns, _SHOWN)})."


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def matching(word: str, names: Sequence[str]) -> list[str]:
    """Features that a name, a pattern or a column of lists stands for.

    ``*`` is any text and ``?`` one sign; brackets are themselves, since features are often called bm25[title].
    """
    if word in names:
        return [word]
    pattern = re.compile(fnmatch.translate(word.replace("[", "[[]")) if _is_pattern(word) else re.escape(word) + r"\Z")

    def fits(name: str) -> bool:
        column = _PART.fullmatch(name) if name.endswith("]") else None
        return bool(pattern.match(name) or (column and pattern.match(column.group(1))))

    return [name for name in names if fits(name)]
