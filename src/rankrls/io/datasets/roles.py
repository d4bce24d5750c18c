"""Which columns of tables are read, and that they are the same ones in every file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from rankrls.io.datasets.dataset import Rows
from rankrls.io.datasets.files import File
from rankrls.io.tables.columns import Refuse, Wanted, assign
from rankrls.io.tables.parts import Opened, Part, Request

__all__ = ["Columns", "TableFiles", "chosen_columns", "same_names"]


@dataclass(frozen=True)
class Columns:
    """Columns by name, and whether a label may be missing."""

    features: tuple[str, ...]
    label: str | None
    qid: str
    id: str | None
    weight: str | None
    may_miss: bool

    @property
    def names(self) -> list[str]:
        """All of them."""
        others = (self.label, self.qid, self.id, self.weight)
        return [*self.features, *(name for name in others if name is not None)]

    def request(
        self, header: Sequence[str], dtype: np.dtype[Any], *, features: bool = True, ids: bool = False
    ) -> Request:
        """What is read of a table with these columns."""
        place = {name: k for k, name in enumerate(header)}
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


def chosen_columns(table: Opened, wanted: Wanted) -> Columns:
    """The columns of a file.

    Raises
    ------
    InputError
        If one is not there; query ids have to be.
    """
    header = table.columns
    roles = assign(table.refuse, header, wanted)
    if roles.qid is None:
        problem = "there is no column {0!r}:"
        remedy = "Name the column of query ids by {qid}."
        name = wanted.usual_names["qid"]
        raise table.refuse(problem, name, remedy=remedy, column=name, parameter="qid")
    called = lambda place: None if place is None else header[place]
    return Columns(
        features=tuple(header[k] for k in roles.features),
        label=called(roles.label),
        qid=header[roles.qid],
        id=called(roles.id),
        weight=called(roles.weight),
        may_miss=wanted.labels == "optional",
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
