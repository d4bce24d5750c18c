"""What a LETOR file holds, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Comments", "LetorError", "LetorTable"]


class LetorError(InputError):
    """A file is not LETOR text, or holds something that a learner cannot use: ``file:line: what is wrong``."""


class Comments(Sequence[str]):
    """What stands behind ``#`` in each row, decoded when asked for.

    Compares equal to any sequence of the same strings. Bytes that are not UTF-8 come out as surrogate escapes, so that
    writing them again gives the same bytes.

    Parameters
    ----------
    text : ndarray of uint8
        The comments one after another.
    ends : ndarray of int64, shape (m,)
        Where each row's comment ends in ``text``.
    """

    __slots__ = ("_ends", "_text")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self._text = text
        self._ends = ends

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[i] for i in range(*row.indices(len(self)))]
        number = range(len(self))[row]  # an index as lists understand it, with their IndexError
        start = int(self._ends[number - 1]) if number else 0
        return self._text[start : int(self._ends[number])].tobytes().decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        text, start = self._text.tobytes(), 0
        for end in self._ends.tolist():
            yield text[start:end].decode("utf-8", "surrogateescape")
            start = end

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __bool__(self) -> bool:
        """True where any row has a comment."""
        return len(self._text) > 0

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3])) + (", ..." if len(self) > 3 else "")
        return f"Comments([{shown}], {len(self)} rows)"


@dataclass(frozen=True, eq=False)
class LetorTable:
    """Rows of a LETOR file.

    Attributes
    ----------
    X : ndarray of shape (m, n), C-contiguous, or csr_array of shape (m, n)
        Features; a feature that a line does not name is 0.
    y : ndarray of shape (m,), float64
        Labels.
    qid : ndarray of shape (m,) or None
        Query ids: int64 where every id is a whole number as ``str(int)`` writes it and fits, otherwise strings, all of
        them as they stand in the file. None where no line has one.
    comments : Comments
        What stands behind ``#``, without the blanks around it; ``""`` in a row without. A sequence that decodes when
        asked; false where no row has a comment.
    path : str
        Where the table came from, as errors name it.
    sha256 : str
        Of the file's bytes as they lie on disk, so ``sha256sum`` of the file (compressed or not) gives the same.
    zero_based : bool
        True where column 0 is the feature that the file calls 0, False where it is the one called 1.
    """

    X: NDArray[Any] | csr_array
    y: NDArray[np.float64]
    qid: NDArray[Any] | None
    comments: Comments
    path: str
    sha256: str
    zero_based: bool

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """Number of columns of ``X``."""
        return int(self.X.shape[1])

    @property
    def first_feature(self) -> int:
        """Id that the file gives to column 0."""
        return 0 if self.zero_based else 1

    def __repr__(self) -> str:
        kind = "dense" if isinstance(self.X, np.ndarray) else "sparse"
        queries = "no qid" if self.qid is None else f"{len(np.unique(self.qid))} queries"
        return f"<LetorTable {self.path}: {self.n_rows} rows, {self.n_features} features ({kind}), {queries}>"
