"""Which columns of tables are read, and that they are the same ones in every file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from rankrls.io.datasets.dataset import Rows
from rankrls.io.datasets.files import File
from rankrls.io.tables.columns import Refuse, Wanted, assign, expanded
from rankrls.io.tables.parts import Opened, Part, Request

__all__ = ["Columns", "TableFiles", "chosen_columns", "same_names"]


@dataclass(frozen=True)
class Columns:
    """Columns by name, and whether a label may be missing.

    ``lists`` are columns of lists, each number of which is a feature, and how long their lists are.
    """

    features: tuple[str, ...]
    label: str | None
    qid: str
    id: str | None
    weight: str | None
    may_miss: bool
    lists: Mapping[str, int]

    @property
    def names(self) -> list[str]:
        """All of them, the numbers of lists by their own names."""
        return [*self.features, *self.others]

    @property
    def stored(self) -> list[str]:
        """The columns of a file that they are."""
        of_lists = {name for column in self.lists for name in expanded(column, self.lists)}
        return [*(name for name in self.features if name not in of_lists), *self.lists, *self.others]

    @property
    def others(self) -> list[str]:
        """Those that are no features."""
        return [name for name in (self.label, self.qid, self.id, self.weight) if name is not None]

    def request(
        self, header: Sequence[str], dtype: np.dtype[Any], *, features: bool = True, ids: bool = False
    ) -> Request:
        """What is read of a table with these columns."""
        names = [name for column in header for name in expanded(column, self.lists)]
        place = {name: k for k, name in enumerate(names)}
        texts = {"qid": place[self.qid], **({"id": place[self.id]} if ids and self.id is not None else {})}
        at = lambda name: None if name is None else place[name]
        numbers = tuple(place[name] for name in self.features) if features else ()
        return Request(numbers, dtype, texts, at(self.label), self.may_miss, lines=not features, weight=at(self.weight))

    def rows(self, part: Part) -> Rows:
        """Rows that were asked for by ``request``."""
        return Rows(part.X, part.y, part.weight, part.texts["qid"], part.texts.get("id"))


@dataclass(frozen=True)
class TableFiles:
    """What is the same of all tables.

    Attributes
    ----------
    columns : Columns
    """

    columns: Columns
    dense: ClassVar[bool] = True

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.columns.features

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return len(self.columns.features)

    @property
    def has_weights(self) -> bool:
        """Whether rows have weights."""
        return self.columns.weight is not None

    @property
    def qid_name(self) -> str:
        """The column of query ids."""
        return self.columns.qid

    @property
    def roles(self) -> tuple[str | None, str, str | None]:
        """What the columns of labels, query ids and items' ids are called."""
        return self.columns.label, self.columns.qid, self.columns.id

    @property
    def row_bytes(self) -> int:
        """Bytes of the features of a row."""
        return self.n_features * self.dtype.itemsize

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of X."""
        raise NotImplementedError

    def settled(self) -> Self:
        """How the rows are read, after all have been looked at."""
        return self


def chosen_columns(table: Opened, wanted: Wanted, known: Columns | None = None) -> Columns:
    """The columns of a file; ``known`` are those of another one.

    Raises
    ------
    InputError
        If one is not there; query ids have to be.
    """
    named = {wanted.label, wanted.qid, wanted.id, wanted.weight, *wanted.usual_names.values()}
    lists = table.lists(named, known.lists if known is not None else {})
    header = [name for column in table.columns for name in expanded(column, lists)]
    roles = assign(table.refuse, table.columns, wanted, lists)
    if roles.qid is None:
        problem = "there is no column {0!r}:"
        remedy = (
            "Name the column of query ids by {qid}. One ranking of all rows needs one too, with the same id in each."
        )
        name = wanted.usual_names["qid"]
        raise table.refuse(problem, name, remedy=remedy, column=name, parameter="qid")
    called = lambda place: None if place is None else header[place]
    features = [header[k] for k in roles.features]
    return Columns(
        features=tuple(features),
        label=called(roles.label),
        qid=header[roles.qid],
        id=called(roles.id),
        weight=called(roles.weight),
        may_miss=wanted.labels == "optional",
        lists={column: size for column, size in lists.items() if expanded(column, lists)[0] in {*features}},
    )


def same_names(refuse: Refuse, file: File, columns: Columns, others: Columns) -> None:
    """Refuse a file whose columns are not those of the first file; they may stand in another order."""
    known, found = columns.names, others.names
    for name in known:
        if name not in found:
            _differs(refuse, "there is no column {0!r}, which {1} has:", name, file)
    for name in found:
        if name not in known:
            _differs(refuse, "there is a column {0!r}, which {1} does not have:", name, file)


def _differs(refuse: Refuse, problem: str, name: str, file: File) -> NoReturn:
    remedy = "All files must have one schema; {features} names the columns that are read."
    raise refuse(problem, name, file.name, remedy=remedy, column=name)
