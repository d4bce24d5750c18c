"""Which column of a table is the label, the query id, the item's id, and which are features."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import check_word
from rankrls._errors import InputError
from rankrls.io._rows import few, objects
from rankrls.io._table import FileTable

Labels = Literal["required", "partly", "optional", "ignored"]
_USUAL = {"label": "label", "qid": "qid", "id": "docid"}
_WORDS = {"label": "label", "qid": "query id", "id": "item's id", "event": "event", "weight": "weight"}
_SHOWN = 8
_COMPARED = 5_000  # columns that a name with a slip may have meant: each takes a comparison sign by sign
_INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls an index without a name when it writes Parquet
_PART = re.compile(r"(.*)\[\d+\]", re.DOTALL)


class TableError(InputError):
    """A table holds something that a learner cannot use: ``file:line: what is wrong``, with the facts as attributes."""


Refuse = Callable[..., InputError]
"""Makes an error about a file out of a template, its values and further facts."""


@dataclass(frozen=True, eq=False, repr=False)
class ColumnTable(FileTable):
    """Rows of a table with named columns.

    Attributes
    ----------
    X : ndarray of shape (m, n), C-contiguous
        Features.
    y : ndarray of shape (m,), float64, or None
        Labels; None where there is no such column, or none was asked for.
    qid : ndarray of shape (m,) or None
        Query ids: int64 if every id is a whole number, otherwise an object array of strings, each different one of
        which is held once. None if there is no such column.
    ids : ndarray of shape (m,) or None
        The items' ids, likewise.
    feature_names : tuple of str
        Names of the columns of ``X``; ``emb[0]``, ``emb[1]``, ... where a column "emb" holds lists.
    label, qid_name, id_name : str or None
        Names of the columns of ``y``, ``qid`` and ``ids``.
    path : str
        Where the table came from, as errors name it.
    sha256 : str
        Of the file's bytes as they lie on disk; empty for a data frame.
    event : ndarray of shape (m,), float64, or None
        Of right-censored times, if a column was asked for: 1 where the event was observed.
    utility_names : tuple of str
        Where a row is a query that ranks several items, the names of their columns; ``y`` is then of shape (m, items),
        NaN where a utility is not known.
    """

    X: NDArray[Any]
    y: NDArray[np.float64] | None
    qid: NDArray[Any] | None
    ids: NDArray[Any] | None
    feature_names: tuple[str, ...]
    label: str | None
    qid_name: str | None
    id_name: str | None
    path: str
    sha256: str
    event: NDArray[np.float64] | None = None
    utility_names: tuple[str, ...] = ()

    comments: ClassVar[None] = None  # those of LetorTable, which tables do not have

    @property
    def feature_ids(self) -> list[str]:
        """What the file calls the columns of ``X``."""
        return [*self.feature_names]

    @property
    def docids(self) -> NDArray[Any] | None:
        """The items' ids, as text."""
        return None if self.ids is None else objects(map(str, self.ids.tolist()))

    def by_item(self, names: Sequence[str]) -> tuple[ColumnTable, NDArray[np.intp]]:
        """A row without features for each item of each query, where its utility is known, and which of all they are.

        Queries are called by their rows' ids, if these differ, and else by their numbers from 0.
        """
        m, d = self.n_rows, len(names)
        y = None if self.y is None else self.y.ravel()
        kept = np.arange(m * d) if y is None else np.flatnonzero(~np.isnan(y))
        named = self.ids is not None and len({*self.ids.tolist()}) == m
        qid = self.ids if self.ids is not None and named else np.arange(m)
        held: dict[str, Any] = {"y": None if y is None else y[kept], "qid": np.repeat(qid, d)[kept]}
        held |= {"ids": objects([*names] * m)[kept], "X": np.zeros((len(kept), 0)), "feature_names": ()}
        return replace(self, **held, utility_names=()), kept


@dataclass(frozen=True, eq=False, repr=False)
class RawTable(ColumnTable):
    """A table whose ``X`` is a table of pyarrow, with the cells as they stand in the file.

    Attributes
    ----------
    lines : ndarray of int64, shape (m,), or None
        The line of each row, of text.
    """

    lines: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Wanted:
    """What the caller says about columns; None is the usual name, where there is such a column.

    ``features`` of () are none: ids and labels only are read. ``utilities`` are columns of labels, by names or
    patterns, one for each item that a row ranks: there is then no one label.
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
            problem = "{features} is a number for LETOR text, at least 1 (names are for tables); got {0!r}."
            raise InputError(problem, text, parameter="features", file=file)
        return int(text)

    @property
    def usual_names(self) -> dict[str, str]:
        """What holds where nothing is given."""
        return {**_USUAL, **self.usual}

    @staticmethod
    def checked(label: Any, qid: Any, id: Any, features: Any, ignore: Any, labels: Any) -> Wanted:
        """The arguments of :func:`load_table`, checked."""
        for name, value in (("label", label), ("qid", qid), ("id", id)):
            if value is not None and not isinstance(value, str):
                raise InputError(
                    f"{{{name}}} must be the name of a column, or None; got {{0!r}}.", value, parameter=name
                )
        check_word("labels", labels, ("required", "optional", "ignored"))
        if features is not None:
            features = _names("features", features)
            if not features:
                raise InputError("{features} is empty: there is nothing to learn from.", parameter="features")
        return Wanted(label, qid, id, features, _names("ignore", ignore), labels)


def _names(what: str, value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{{{what}}} must hold names of columns; got {{0!r}}.", value, parameter=what)
    return names


@dataclass(frozen=True)
class Columns:
    """The columns that are read, by name, and whether a label may be missing.

    ``lists`` are columns of lists, each number of which is a feature, and how long their lists are.
    """

    features: tuple[str, ...]
    label: str | None
    qid: str | None
    id: str | None
    event: str | None
    weight: str | None
    utilities: tuple[str, ...]
    lists: Mapping[str, int]
    may_miss: bool

    @property
    def others(self) -> list[str]:
        """Those of a data set that are no features."""
        return [name for name in (self.label, self.qid, self.id, self.weight) if name is not None]

    @property
    def names(self) -> list[str]:
        """All of a data set, the numbers of lists by their own names."""
        return [*self.features, *self.others]

    @property
    def stored(self) -> list[str]:
        """The columns of a file that they are."""
        of_lists = {name for column in self.lists for name in expanded(column, self.lists)}
        return [*(name for name in self.features if name not in of_lists), *self.lists, *self.others]


class _Header:
    """Names of columns, and of the features that a column of lists is."""

    def __init__(self, refuse: Refuse, columns: Sequence[str], lists: Mapping[str, int]) -> None:
        self.refuse, self.columns, self.lists = refuse, columns, lists
        self.names: list[str] = []
        self.column_of: dict[str, str] = {}
        first: dict[str, int] = {}
        for k, column in enumerate(columns):
            for name in expanded(column, lists):
                if name in first:
                    problem = (
                        "columns {0} and {1} are both called {2!r};" if name else "columns {0} and {1} have no name:"
                    )
                    self.fail(problem, first[name] + 1, k + 1, name, remedy="names must differ.", column=name)
                first[name] = k
                self.column_of[name] = column
                self.names.append(name)

    def parts(self, column: str) -> list[str]:
        """The features that a column is."""
        return expanded(column, self.lists)

    def has(self, name: str) -> bool:
        """Whether it is a column, or a number of a column's lists."""
        return name in self.column_of or name in self.lists

    def matching(self, pattern: str, option: str) -> list[str]:
        """What a name or a pattern stands for; a column of lists is all of its features."""
        if self.has(pattern):
            return self.parts(pattern)
        if _is_pattern(pattern):
            fits = _fits(pattern)
            found = [*filter(fits, self.names)]
            if any(map(fits, self.lists)):  # all of a list's numbers, and the others in their places
                found = [n for n in self.names if fits(n) or fits(self.column_of[n])]
            if found:
                return found
            problem = "no column is called like {0!r} (" + option + "){1}"
            self.fail(problem, pattern, _listed(self.columns), column=pattern)
        self.fail(f"there is no column {{0!r}} to {option}{{1}}", pattern, _hint(pattern, self.columns), column=pattern)

    def check_whole(self, features: Sequence[str]) -> None:
        """Refuse some numbers of a list without the others: they are those of another, shorter one."""
        chosen = set(features)
        for column, size in self.lists.items():
            wanted = [name for name in self.parts(column) if name in chosen]
            if 0 < len(wanted) < size:
                problem = "{0}, but only {1} {2} wanted;"
                facts = (_lists_of(column, size), _ends(wanted), _are(wanted))
                self.fail(problem, *facts, remedy="a list is taken whole.", column=column)

    def fail(self, problem: str, *values: Any, **facts: Any) -> NoReturn:
        """Refuse the file."""
        raise self.refuse(problem, *values, **facts)


def expanded(column: str, lists: Mapping[str, int]) -> list[str]:
    """Names of the features that a column is: its own, or ``column[0]``, ``column[1]``, ... where it holds lists."""
    size = lists.get(column)
    return [column] if size is None else [f"{column}[{k}]" for k in range(size)]


def assign(refuse: Refuse, columns: Sequence[str], wanted: Wanted, lists: Mapping[str, int] | None = None) -> Columns:
    """Give each column its role.

    Parameters
    ----------
    refuse : callable
        Makes the errors, which name the place of the header.
    columns : sequence of str
        Names of all columns.
    wanted : Wanted
    lists : mapping of str to int, optional
        How many numbers are in a list, of the columns that hold lists. Each number is a feature; all are, or none.

    Raises
    ------
    TableError
        For a name that is there twice, a column that is asked for and not there, or that has two roles, where a list
        is of another length than the features that are asked for, and where no feature is left.
    """
    header = _Header(refuse, columns, lists or {})
    roles: dict[str, str] = {}
    ignored = {name for pattern in wanted.ignore for name in header.matching(pattern, "ignore")}
    ranked = {name: "label" for pattern in wanted.utilities or () for name in header.matching(pattern, "rank")}
    ranked = {name: role for name, role in ranked.items() if name not in ignored and name != wanted.id}
    asked = {role: name for role in ("event", "weight") if (name := getattr(wanted, role)) is not None}
    for role, usual in {**wanted.usual_names, **asked}.items():
        given = getattr(wanted, role)
        if given is None and (usual in ranked or (ranked and role == "label")):
            continue
        if given is not None and given not in header.column_of:
            problem = "there is no column {0!r} for the {1}{2}"
            header.fail(problem, given, _WORDS[role], _hint(given, columns), column=given, parameter=role)
        name = usual if given is None else given
        if name not in header.column_of or (given is None and name in (wanted.features or ())):
            continue
        if given is None and name in roles.values():
            continue  # the usual name of one role, given to another
        if name in roles.values():
            other = next(r for r, n in roles.items() if n == name)
            problem = "the column {0!r} cannot be both the {1} and the {2}."
            header.fail(problem, name, _WORDS[other], _WORDS[role], column=name, parameter=role)
        roles[role] = name
    if wanted.labels in ("required", "partly") and "label" not in roles and not ranked:
        usual = wanted.usual_names["label"]
        problem = "there is no column {0!r}{1}"
        remedy = "Say which one holds the labels ({label})."
        header.fail(problem, usual, _listed(columns), remedy=remedy, column=usual, parameter="label")
    taken = {name: role for role, name in roles.items()}
    if wanted.labels == "ignored":
        roles.pop("label", None)
    if wanted.features is None:
        others = {*taken, *ignored, *ranked}
        chosen = [n for n in header.names if n not in others and not _INDEX.fullmatch(n)]
        if "" in chosen:
            remedy = "Name it, or leave it out: pandas writes its index so unless told index=False."
            header.fail("column {0} has no name.", columns.index("") + 1, remedy=remedy, column=columns.index(""))
    else:
        chosen = _chosen(header, wanted.features, taken | ranked, ignored)
    if not chosen and wanted.features != ():
        problem = "no column is left for the features{0}"
        header.fail(problem, _listed(columns), remedy="See {features} and {ignore}.", parameter="features")
    header.check_whole(chosen)
    used = {*chosen, *ranked, *roles.values()}
    held = {column: size for column, size in header.lists.items() if not used.isdisjoint(header.parts(column))}
    return Columns(
        features=tuple(chosen),
        **{role: roles.get(role) for role in _WORDS},
        utilities=tuple(ranked),
        lists=held,
        may_miss=wanted.labels in ("partly", "optional"),
    )


def _chosen(header: _Header, features: tuple[str, ...], taken: dict[str, str], ignored: set[str]) -> list[str]:
    chosen: dict[str, None] = {}
    missing = [name for name in features if not _is_pattern(name) and not header.has(name)]
    if missing:
        _refuse_missing(header, missing)
    for name in features:
        if name in taken:
            problem = "the column {0!r} cannot be both the {1} and a feature."
            header.fail(problem, name, _WORDS[taken[name]], column=name, parameter="features")
        chosen.update(dict.fromkeys(n for n in header.matching(name, "features") if n not in taken))
    return [name for name in chosen if name not in ignored]


def _refuse_missing(header: _Header, missing: list[str]) -> NoReturn:
    part = _PART.fullmatch(missing[0])
    column = part.group(1) if part else ""
    if column in header.lists:
        facts = (_lists_of(column, header.lists[column]), _ends(missing), _are(missing))
        header.fail("{0}, but {1} {2} wanted too.", *facts, column=column, parameter="features")
    problem = "there is no column {0}{1}" if len(missing) == 1 else "there are no columns {0}{1}"
    shown, hint = few([*map(repr, missing)], _SHOWN), _hint(missing[0], header.columns)
    header.fail(problem, shown, hint, column=missing[0], parameter="features")


def _lists_of(column: str, size: int) -> str:
    return f"the column {column!r} holds lists of {size} number{'s' * (size != 1)}, each a feature"


def _ends(names: list[str]) -> str:
    return repr(names[0]) if len(names) == 1 else f"{names[0]!r} to {names[-1]!r}"


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _fits(pattern: str) -> Callable[[str], object]:
    """What tells whether a name is like a pattern, compiled once, in time that is linear in the name.

    ``*`` is any text and ``?`` one sign; brackets are themselves, since features are often called bm25[title].
    """
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]"))).match


def matching(word: str, names: Sequence[str]) -> list[str]:
    """Features that a name, a pattern or a column of lists stands for."""
    if word in names:
        return [word]
    fits: Callable[[str], object] = _fits(word) if _is_pattern(word) else word.__eq__
    of_list = lambda name: name.endswith("]") and (part := _PART.fullmatch(name)) and fits(part.group(1))
    return [name for name in names if fits(name) or of_list(name)]


def _hint(name: str, header: Sequence[str]) -> str:
    lower = {other.lower(): other for other in header[:_COMPARED]}
    near = [lower[n] for n in get_close_matches(name.lower(), lower, n=3, cutoff=0.6)]
    return f"; there is {' and '.join(map(repr, near))}." if near else _listed(header)


def _listed(header: Sequence[str]) -> str:
    return f" (columns: {few(header, _SHOWN)})."
