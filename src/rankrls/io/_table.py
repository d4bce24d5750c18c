"""What a LETOR file holds, as arrays."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.io._rows import objects

if TYPE_CHECKING:
    import scipy.sparse

_FEW_LABELS = 12
_DOCID = re.compile(r"docid\s*[=:]\s*(\S+)")


class FileTable:
    """What every table of rows can say, whatever kind of file it came from."""

    X: Any
    y: NDArray[np.float64] | None
    qid: NDArray[Any] | None
    path: str
    sha256: str

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of ``X``."""
        return int(self.X.shape[1])

    def summary(self) -> dict[str, Any]:
        """What is in it, as plain values: where it came from, its size, and how often each label occurs."""
        y = np.zeros(0) if self.y is None else self.y
        n_queries = None if self.qid is None else query_layout(self.qid, self.n_rows).n_queries
        return {
            "path": self.path,
            "sha256": self.sha256,
            "rows": self.n_rows,
            "queries": n_queries,
            "features": self.n_features or None,  # none were read
            "sparse": not isinstance(self.X, np.ndarray),
            "labels": counted_labels(y),
        }

    def __repr__(self) -> str:
        kind = "dense" if isinstance(self.X, np.ndarray) else "sparse"
        queries = "no qid" if self.qid is None else f"{query_layout(self.qid, self.n_rows).n_queries} queries"
        return (
            f"<{type(self).__name__} {self.path}: {self.n_rows} rows, {self.n_features} features ({kind}), {queries}>"
        )


class LetorError(InputError):
    """A file is not LETOR text, or holds what a learner cannot use: ``file:line: what is wrong``, and its facts."""

    __module__ = "rankrls.io"


@dataclass(frozen=True, eq=False, repr=False)
class LetorTable(FileTable):
    """Rows of a LETOR file.

    Attributes
    ----------
    X : ndarray of shape (m, n), C-contiguous, or csr_array of shape (m, n)
        Features; a feature that a line does not name is 0.
    y : ndarray of shape (m,), float64
        Labels.
    qid : ndarray of shape (m,) or None
        Query ids: int64 if every id is a whole number as ``str(int)`` writes it and fits, otherwise an object array of
        strings, as they stand in the file, each different one held once. None if no line has one.
    comments : list of str, or None
        What stands behind ``#`` in each row, without the blanks around it; None if that is nothing in all of them.
        Bytes that are not UTF-8 come out as surrogate escapes, so that writing them again gives the same bytes.
    path : str
        Where the table came from, as errors name it.
    sha256 : str
        Of the file's bytes as they lie on disk, so ``sha256sum`` of the file (compressed or not) gives the same.
    zero_based : bool
        True where column 0 is the feature that the file calls 0, False where it is the one called 1.
    n_named : int
        Columns of ``X`` up to the last one that a line names.
    """

    feature_names: ClassVar[None] = None  # those of ColumnTable, which LETOR text does not have
    label: ClassVar[None] = None
    qid_name: ClassVar[None] = None
    id_name: ClassVar[None] = None

    X: NDArray[Any] | scipy.sparse.csr_array  # scipy imports it when the annotation is evaluated, not before
    y: NDArray[np.float64]
    qid: NDArray[Any] | None
    comments: list[str] | None
    path: str
    sha256: str
    zero_based: bool
    n_named: int

    @property
    def first_feature(self) -> int:
        """Id that the file gives to column 0."""
        return 0 if self.zero_based else 1

    @property
    def feature_ids(self) -> list[str]:
        """What the file calls the columns of ``X``."""
        return [str(self.first_feature + column) for column in range(self.n_features)]

    @property
    def docids(self) -> NDArray[Any] | None:
        """The items' ids as text: what stands behind ``docid =`` in the comments if it does in every one, else None."""
        found = [_DOCID.search(comment) for comment in self.comments or [""]]
        return objects(match[1] for match in found if match) if all(found) else None


def counted_labels(y: NDArray[np.float64]) -> dict[str, Any]:
    """How often each of a few different labels occurs, ascending, or the ends of many; and how many are missing."""
    labels, counts = np.unique(y[~np.isnan(y)], return_counts=True)
    found: dict[str, Any] = {f"{v:g}": int(c) for v, c in zip(labels, counts, strict=True)}
    if len(labels) > _FEW_LABELS:
        found = {"min": float(labels[0]), "max": float(labels[-1]), "distinct": len(labels)}
    return found | ({"none": y.size - int(counts.sum())} if counts.sum() < y.size else {})
