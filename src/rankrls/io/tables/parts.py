"""What every format of tables gives: parts of some columns, which are gathered into arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankrls.io._rows import Growing, Ids
from rankrls.io.tables.columns import Refuse

__all__ = [
    "AS_IT_IS",
    "LARGEST_SINGLE",
    "Columns",
    "Opened",
    "Part",
    "Request",
    "Stretch",
    "gather",
    "may_be_empty",
    "needed",
]

AS_IT_IS = "cell "
"""What the role of a column begins with whose cells stay texts, also if they are numbers."""

LARGEST_SINGLE = float(2**128 - 2**103)
"""From here on a float32 is infinite."""


@dataclass(frozen=True)
class Request:
    """Which columns are read, by their places among the names of the features that :func:`expanded` gives.

    Attributes
    ----------
    numbers : tuple of int
        Columns of finite numbers, in the order that ``X`` shall have.
    dtype : dtype
        Of ``X``.
    texts : dict of str to int
        Columns of ids and what each is: "qid", "winner", and so on.
    label : int or None
        A column of numbers for itself.
    may_miss : bool
        Whether a label may be missing.
    lines : bool
        Whether the line of each row is wanted.
    called : str
        What a number is that is not a label, for errors.
    weight : int or None
        A column of finite numbers for itself.
    utilities : tuple of int
        Columns of labels, one for each item that the row ranks, in the place of the one of ``label``.
    """

    numbers: tuple[int, ...]
    dtype: np.dtype[Any]
    texts: dict[str, int]
    label: int | None = None
    may_miss: bool = False
    lines: bool = False
    called: str = "feature"
    weight: int | None = None
    utilities: tuple[int, ...] = ()

    @property
    def labels(self) -> tuple[int, ...]:
        """The columns of labels."""
        return self.utilities if self.label is None else (self.label,)

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


class Part(NamedTuple):
    """Some rows. Ids are different texts and their numbers, or without texts whole numbers."""

    X: NDArray[Any]
    y: NDArray[np.float64] | None
    texts: Mapping[str, tuple[list[str] | None, NDArray[Any]]]
    lines: NDArray[np.int64] | None = None
    weight: NDArray[np.float64] | None = None
    stretch: Stretch | None = None


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

    def parts(self, request: Request) -> Iterator[Part]:
        """All rows, a part at a time."""
        ...

    def sha256(self) -> str:
        """Hash of the file's bytes, after its last part."""
        ...


Opening = AbstractContextManager[Opened]


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a request."""

    X: NDArray[Any]
    y: NDArray[np.float64] | None
    texts: dict[str, NDArray[Any]]
    lines: NDArray[np.int64] | None


def gather(table: Opened, request: Request) -> Columns:
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
    return Columns(
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
