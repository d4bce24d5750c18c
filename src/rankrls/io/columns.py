"""Opened files of rows, of any format, and the roles of their columns: label, query id, item id, and features."""

from __future__ import annotations

import fnmatch
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from rankrls._checks import check_word
from rankrls._errors import InputError, did_you_mean
from rankrls.io._text import few
from rankrls.io.rows import Lines, Rows, Schema

if TYPE_CHECKING:
    from rankrls.io.tables import Table

Labels = Literal["required", "partly", "optional", "ignored"]
_USUAL = {"label": "label", "qid": "qid", "id": "docid"}
_SINGLE = ("label", "weight", "event", "position", "impressions", "qid", "id")
_SHOWN = 8
_INDEX = re.compile(r"(__index_level_\d+__)?")  # pandas' name for an unnamed index in Parquet and in text
_PART = re.compile(r"\[\d+\]\Z")


@dataclass(frozen=True)
class ColumnRoles:
    """Column of each role; None is the usual name, if a column has it.

    Attributes
    ----------
    label, qid, id, event, weight, position, impressions : str or None
        Names of columns.
    features : tuple of str, optional
        Names or patterns; by default all other columns. With (), only ids and labels are read.
    ignore : tuple of str
        Names or patterns of columns that are not features.
    labels : {"required", "partly", "optional", "ignored"}
        Whether a column of labels, and a label in each row, is required.
    known : Schema
        Schema determined by other files or a model. Only its features are read; its columns are the default names of
        roles, instead of "label", "qid" and "docid".
    """

    label: str | None = None
    qid: str | None = None
    id: str | None = None
    features: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    labels: Labels = "required"
    known: Schema = field(default_factory=Schema)
    event: str | None = None
    weight: str | None = None
    position: str | None = None
    impressions: str | None = None

    @property
    def usual_names(self) -> dict[str, str]:
        """Default column names."""
        return {role: self.known.columns.get(role, name) for role, name in _USUAL.items()}

    @staticmethod
    def checked(label: Any, qid: Any, id: Any, features: Any, ignore: Any, labels: Any) -> ColumnRoles:
        """Checked arguments of :func:`load_table`."""
        check_word("labels", labels, ("required", "optional", "ignored"))
        named = None if features is None else _names(features)
        return ColumnRoles(label, qid, id, named, _names(ignore), labels)


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(map(str, value))


class Reader(ABC):
    """A file whose columns are known and whose rows have not been read.

    Attributes
    ----------
    name : str
        Name of the file in errors.
    lines : Lines or None
        Lines of the rows that have been read from text.
    """

    name: str
    lines: Lines | None = None

    @abstractmethod
    def schema(self, roles: ColumnRoles) -> Schema:
        """Column of each role, determined without reading rows.

        Raises
        ------
        InputError
            If a requested column does not exist or has two roles, or no feature is left.
        """

    @abstractmethod
    def scan(self, roles: ColumnRoles) -> Schema:
        """Schema for :meth:`parts`, with the types of columns; LETOR text is read for it."""

    @abstractmethod
    def read(self, schema: Schema) -> Rows:
        """Read all rows.

        Raises
        ------
        InputError
            For the first row with a value that cannot be read, with its line in text.
        """

    @abstractmethod
    def parts(self, schema: Schema) -> Iterator[Rows]:
        """Read all rows in parts; a query may continue in the next part."""

    def cells(self, schema: Schema, missing: tuple[str, ...]) -> Rows:
        """Read all rows with a table of pyarrow as X, which contains the cells unchanged, for an encoder.

        Parameters
        ----------
        schema : Schema
        missing : tuple of str
            Cell texts of text files that become null, in any case, in addition to empty ones; by default ``MISSING``.

        Raises
        ------
        InputError
            For LETOR text, which has numbers only.
        """
        raise self.refuse("cells that are not numbers need a table, but by its ending this file is LETOR text.")

    @abstractmethod
    def unchanged(self) -> Any:
        """Read all rows with all columns as a table of pyarrow; a line of LETOR text is one cell."""

    def refuse(self, message: str, **facts: Any) -> InputError:
        """Error about the file."""
        return InputError(message, file=self.name, **facts)

    def refuse_row(self, row: int, message: str, **facts: Any) -> InputError:
        """Error about a row, from 0, which names its line in text."""
        line = None if self.lines is None else self.lines.of(row)
        return self.refuse(f"{'' if line else f'row {row}, counted from 0: '}{message}", row=row, line=line, **facts)


def find_columns(table: Table, roles: ColumnRoles) -> Schema:
    """Find the columns of each role.

    Raises
    ------
    InputError
        If a requested column does not exist or has two roles, or no feature is left.
    """
    known = roles.known.features
    if known is not None:
        check_columns(table, known, "features")
        roles = replace(roles, features=(), ignore=())
    ignored = _all_matching(table, roles.ignore, "ignore")
    asked = dict.fromkeys(roles.features or (), "features")
    given = {role: name for role in _SINGLE if (name := getattr(roles, role)) is not None}
    for role, name in given.items():
        check_columns(table, [name], role)
        if name in asked:
            raise table.refuse(
                f"the column {name!r} cannot be both {asked[name]} and {role}.", column=name, parameter=role
            )
        asked[name] = role
    usual = {role: name for role, name in roles.usual_names.items() if name in table.types and name not in asked}
    found = usual | given
    if roles.labels in ("required", "partly") and "label" not in found:
        name = roles.usual_names["label"]
        message = f"there is no column {name!r}. Name the column of labels (label).{_near(table, '')}"
        raise table.refuse(message, column=name, parameter="label")
    named = table.columns if roles.features is None else _all_matching(table, roles.features, "features")
    taken = {*found.values(), *ignored}
    chosen = [n for n in named if n not in taken and not (roles.features is None and _INDEX.fullmatch(n))]
    if not chosen and roles.features != ():
        raise table.refuse(
            f"no column is left for the features. Change features or ignore.{_near(table, '')}", parameter="features"
        )
    features = tuple(chosen) if known is None else known
    return replace(
        roles.known,
        features=features,
        n_features=len(features),
        dense=True,
        columns={role: name for role, name in found.items() if role != "label" or roles.labels != "ignored"},
        may_be_empty=("label",) if roles.labels in ("partly", "optional") else (),
        first_feature=None,
    )


def check_names(names: Sequence[str], file: str | None = None) -> None:
    """Refuse repeated names of columns."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        message = f"two columns are called {twice!r}. Use a different name for each, in text on the first line."
        raise InputError(message, file=file, column=twice)


def check_columns(table: Table, names: Sequence[str], parameter: str) -> None:
    """Refuse missing columns."""
    missing = [name for name in names if name not in table.types]
    if missing:
        there = "is no column" if len(missing) == 1 else "are no columns"
        message = f"there {there} {few([*map(repr, missing)], _SHOWN)} ({parameter}).{_near(table, missing[0])}"
        raise table.refuse(message, column=missing[0], parameter=parameter)


def _all_matching(table: Table, words: Sequence[str], parameter: str) -> list[str]:
    """Columns that match names and patterns, each once."""
    found = {word: matching(word, table.types) for word in words}
    check_columns(table, [word for word, names in found.items() if not names], parameter)
    return [*dict.fromkeys(name for names in found.values() for name in names)]


def _near(table: Table, name: str) -> str:
    """End of a message about a missing column: a similar one, or the first columns."""
    if len(table.columns) == 1:
        return f" The only column is {table.columns[0]!r}: cells are separated by ',', ';', '|' or a tab."
    return did_you_mean(name, table.columns) or f" (Columns: {few(table.columns, _SHOWN)}.)"


def matching(word: str, names: Collection[str]) -> list[str]:
    """Columns that match a name, a pattern or a column of lists.

    ``*`` matches any text and ``?`` one character; brackets are literal, since features are often called bm25[title].
    """
    if word in names:
        return [word]
    pattern = re.compile(fnmatch.translate(word.replace("[", "[[]")))
    return [name for name in names if pattern.match(name) or pattern.match(_PART.sub("", name))]


def feature_columns(words: Sequence[str], table: Rows, parameter: str) -> list[int]:
    """Columns of X that match names and patterns, or numbers in the file's numbering if it has no names.

    Raises
    ------
    InputError
        If the file lacks a feature.
    """
    numbers = {name: k for k, name in enumerate(table.feature_ids)}
    out: list[int] = []
    for word in words:
        found = matching(word, numbers)
        if not found:
            message = f"{parameter} names feature {word!r}, which {table.path} does not have ({few([*numbers])})."
            raise InputError(message, parameter=parameter)
        out += [numbers[name] for name in found]
    return out
