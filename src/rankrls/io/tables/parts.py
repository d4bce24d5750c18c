"""What every format of tables gives: parts of some columns, which are gathered into arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankrls.io._rows import Growing, IdBlock, Ids
from rankrls.io.tables.columns import Columns, Refuse

AS_IT_IS = "cell "
"""What the role of a column begins with whose cells stay texts, also if they are numbers."""


@dataclass(frozen=True)
class Request:
    """Which columns are read, by name; the numbers of lists by the names that :func:`expanded` gives.

    Attributes
    ----------
    numbers : tuple of str
        Columns of finite numbers, in the order that ``X`` shall have.
    dtype : dtype
        Of ``X``.
    texts : dict of str to str
        Columns of ids behind what each is: "qid", "winner", and so on.
    label : str or None
        A column of numbers for itself.
    may_miss : bool
        Whether a label may be missing.
    lines : bool
        Whether the line of each row is wanted.
    called : str
        What a number is that is not a label, for errors.
    weight : str or None
        A column of finite numbers for itself.
    utilities : tuple of str
        Columns of labels, one for each item that the row ranks, in the place of the one of ``label``.
    lists : dict of str to int
        The columns of lists whose numbers are read, and how long their lists are.
    """

    numbers: tuple[str, ...]
    dtype: np.dtype[Any]
    texts: dict[str, str]
    label: str | None = None
    may_miss: bool = False
    lines: bool = False
    called: str = "feature"
    weight: str | None = None
    utilities: tuple[str, ...] = ()
    lists: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def of(
        columns: Columns, dtype: np.dtype[Any], *, features: bool = True, ids: bool = True, lines: bool = False
    ) -> Request:
        """Columns of a file; the event is one more number behind the features."""
        events = () if columns.event is None else (columns.event,)
        places = {"qid": columns.qid, "id": columns.id if ids else None}
        return Request(
            numbers=(*(columns.features if features else ()), *events),
            dtype=dtype,
            texts={role: name for role, name in places.items() if name is not None},
            label=columns.label,
            may_miss=columns.may_miss,
            lines=lines,
            weight=columns.weight,
            utilities=columns.utilities,
            lists=columns.lists,
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns of labels."""
        return self.utilities if self.label is None else (self.label,)

    @property
    def alone(self) -> tuple[str, ...]:
        """The columns of numbers that are no part of ``X``."""
        return self.labels if self.weight is None else (*self.labels, self.weight)

    @property
    def otherwise(self) -> str:
        """What to do about a column that holds no numbers."""
        if self.called != "feature":
            return f"a {self.called} is a number."
        return "leave the column out ({ignore}), or name the features ({features})."


class Stretch(NamedTuple):
    """Where rows stand in a file of text: their first byte, the one behind their last, and the line of the first."""

    first: int
    last: int
    line: int


class Rows(NamedTuple):
    """Some rows of a file; ids by what they are: "qid", "id", and so on."""

    X: Any
    y: NDArray[np.float64] | None
    texts: Mapping[str, IdBlock]
    lines: NDArray[np.int64] | None = None
    weight: NDArray[np.float64] | None = None
    stretch: Stretch | None = None

    def among(self, rows: slice) -> Rows:
        """Some of them."""
        cut = lambda values: None if values is None else values[rows]
        texts = {role: (different, codes[rows]) for role, (different, codes) in self.texts.items()}
        return Rows(self.X[rows], cut(self.y), texts, cut(self.lines), cut(self.weight))


class Opened(Protocol):
    """A table whose header has been read, and whose rows have not."""

    name: str
    refuse: Refuse
    textual: bool

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns."""
        ...

    def lists(self, others: set[str | None], known: Mapping[str, int] = ...) -> Mapping[str, int]:
        """How many numbers are in a list, of the columns that hold lists; others, and known ones, are not looked at."""
        ...

    def parts(self, request: Request) -> Iterator[Rows]:
        """All rows, some at a time."""
        ...

    def sha256(self) -> str:
        """Hash of the file's bytes, after its last part."""
        ...


Opening = AbstractContextManager[Opened]


@dataclass(frozen=True, eq=False)
class Gathered:
    """The columns of a request."""

    X: NDArray[Any]
    y: NDArray[np.float64] | None
    texts: dict[str, NDArray[Any]]
    lines: NDArray[np.int64] | None


def gather(table: Opened, request: Request) -> Gathered:
    """Read the columns of a table; memory is that of the arrays and of a few parts."""
    X = Growing((len(request.numbers),), request.dtype)
    y = Growing((len(request.utilities),) if request.utilities else (), np.float64)
    lines = Growing((), np.int64)
    ids = {role: Ids() for role in request.texts}
    rows = 0
    for part in table.parts(request):
        try:
            X.append(part.X)
            if part.y is not None:
                y.append(part.y)
            for role, (texts, codes) in part.texts.items():
                ids[role].append(texts, codes)
        except MemoryError:
            size = f"more than {rows} rows and {len(request.numbers)} features"
            raise MemoryError(f"{table.name}: a table of {size} does not fit into memory.") from None
        if part.lines is not None:
            lines.append(part.lines)
        rows += len(part.X)
    return Gathered(
        X=X.finish(),
        y=y.finish() if request.labels else None,
        texts={
            role: column.finish(numbers=table.textual and not role.startswith(AS_IT_IS)) for role, column in ids.items()
        },
        lines=lines.finish() if request.lines and table.textual else None,
    )


def needed(role: str) -> str:
    """What every row needs in a column of ids."""
    return "a query id" if role == "qid" else "an id"


def may_be_empty(role: str) -> bool:
    """Whether a cell of words may be empty: of a group, of a side of a vote, and if cells are read as they are."""
    return role == "group" or role.startswith(("side ", AS_IT_IS))
