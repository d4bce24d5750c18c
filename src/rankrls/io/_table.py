"""What a LETOR file holds, as arrays; how it is read, and what is wrong with a line."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.io._rows import LARGEST_SINGLE, SAVE_AS_UTF8, is_utf8, objects, quoted

_FEW_LABELS = 12
NO_ID = 10**18
_DOCID = re.compile(r"docid\s*[=:]\s*(\S+)")


class FileTable:
    """What all tables of rows have in common."""

    X: Any
    y: NDArray[np.float64] | None
    qid: NDArray[Any] | None
    path: str
    sha256: str

    @property
    def docids(self) -> NDArray[Any] | None:
        """The items' ids, as text."""
        return None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of ``X``."""
        return int(self.X.shape[1])

    def line_of(self, row: int | None) -> int | None:
        """The line of a row of a text file, from 1; None if it is not known."""
        return None

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
        return f"<{type(self).__name__} {self.path}: {self.n_rows} rows, {self.n_features} features>"


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
        Query ids: int64 if every id is written as ``str(int)`` writes it and fits, otherwise an object array of
        strings, as in the file. None if no line has one.
    comments : list of str, or None
        The text after ``#`` in each row, stripped; None if no row has one. Bytes that are not UTF-8 become surrogate
        escapes, so that :func:`save_letor` writes them unchanged.
    docids : object ndarray of shape (m,), or None
        The items' ids: what follows ``docid =`` in all comments, or comments that are single words and differ in each
        query. What is not UTF-8 is read as Latin-1.
    path : str
        The file, as errors name it.
    sha256 : str
        Of the bytes of the file (compressed or not), as ``sha256sum`` prints it.
    zero_based : bool
        Whether column 0 is feature 0 of the file (True) or feature 1 (False).
    n_named : int
        Columns of ``X`` up to the last one that a line names.
    """

    feature_names: ClassVar[None] = None  # those of ColumnTable, which LETOR text does not have
    label: ClassVar[None] = None
    qid_name: ClassVar[None] = None
    id_name: ClassVar[None] = None

    X: NDArray[Any] | csr_array
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
        """The items' ids, or None."""
        return document_ids(self.comments or [""], self.qid)


def document_ids(comments: Sequence[str], qid: NDArray[Any] | None) -> NDArray[Any] | None:
    """Ids from the comments of rows: what follows ``docid =`` in each, or else single words that differ in a query.

    None if some comments hold neither. What is not UTF-8 is read as Latin-1.
    """
    marked = [_DOCID.search(comment) for comment in comments]
    words = [match[1] for match in marked if match]
    if len(words) < len(comments):
        words = [*comments]
        queries = repeat(None) if qid is None else qid.tolist()
        if any(len(word.split()) != 1 for word in words) or len({*zip(queries, words)}) < len(words):  # noqa: B905
            return None
    encoded = (word.encode("utf-8", "surrogateescape") for word in words)
    return objects(text.decode("utf-8" if is_utf8(text) else "latin-1") for text in encoded)


def counted_labels(y: NDArray[np.float64]) -> dict[str, Any]:
    """How often each of a few different labels occurs, ascending, or the ends of many; and how many are missing."""
    labels, counts = np.unique(y[~np.isnan(y)], return_counts=True)
    found: dict[str, Any] = {f"{v:g}": int(c) for v, c in zip(labels, counts, strict=True)}
    if len(labels) > _FEW_LABELS:
        found = {"min": float(labels[0]), "max": float(labels[-1]), "distinct": len(labels)}
    return found | ({"none": y.size - int(counts.sum())} if counts.sum() < y.size else {})


class Options(NamedTuple):
    """How a file is read."""

    dtype: np.dtype[Any] = np.dtype(np.float64)
    n_features: int | None = None
    zero_based: bool | Literal["auto"] = "auto"

    @property
    def taken(self) -> tuple[int, int]:
        """The least and the largest feature id that is taken."""
        largest = NO_ID if self.n_features is None else self.n_features - int(self.zero_based is True)
        return int(self.zero_based is False), largest

    @property
    def limit(self) -> float:
        """Values from here on are too large."""
        return LARGEST_SINGLE if self.dtype == np.float32 else math.inf


def described(line: bytes, with_qid: bool | None, options: Options) -> InputError:
    """What is wrong with a bad line."""
    label, *tokens = line.partition(b"#")[0].split()
    if b":" in label:
        problem = f"the line starts with {quoted(label)}, but a label has to come first."
        return InputError(problem, column="label")
    if why := _not_a_value(label, math.inf):
        return InputError(f"the label {quoted(label)} {why}.", column="label")
    least, largest = options.taken
    has_qid, ids = False, set[int]()
    for token in tokens:
        shown, (name, colon, value) = quoted(token), token.partition(b":")
        if name == b"qid" and colon:
            problems = {
                "the query id behind 'qid:' is missing.": not value,
                f"there is a second query id, {shown}.": has_qid,
                f"the query id {quoted(value)} is not UTF-8 text: {SAVE_AS_UTF8}": not is_utf8(value),
                f"the query id {shown} holds a NUL byte.": b"\0" in value,
                f"the line has a query id, {shown}, but the lines before it have none.": with_qid is False,
            }
            facts: dict[str, Any] = {"column": "qid"}
            has_qid = True
        elif not colon or not name.isdigit() or len(name) > 18:
            return InputError(f"{shown} is not 'feature:value' with a whole number as feature id (nor 'qid:id').")
        elif (feature := int(name)) > largest:
            return beyond(f"feature {feature} ({shown})", feature, options.n_features, options.zero_based is not True)
        else:
            why = _not_a_value(value, options.limit) if value else ""
            problems = {
                f"feature id 0 ({shown}), but zero_based=False means that ids start at 1.": feature < least,
                f"feature {feature} has no value ({shown}).": not value,
                f"the value {quoted(value)} of feature {feature} {why}.": bool(why),
                f"feature {feature} is named twice.": feature in ids,
            }
            facts = {"column": feature, "parameter": "zero_based" if feature < least else None}
            ids.add(feature)
        if problem := next((text for text, wrong in problems.items() if wrong), ""):
            return InputError(problem, **facts)
    return InputError("the line has no qid, but the lines before it have one.", column="qid")


def _not_a_value(text: bytes, limit: float) -> str:
    """Why a word is no number that is read; "" if it is one."""
    try:
        value = float(text.replace(b"_", b"x"))  # Python reads underscores
    except ValueError:
        return "is not a number"
    if math.isnan(value) or b"n" in text.lower():
        return "is not finite"
    return f"is too large for {'a float64' if math.isinf(value) else 'float32'}" if abs(value) >= limit else ""


def beyond(what: str, feature: int, n_features: int | None, first: int) -> InputError:
    problem = f"{what} is beyond the {n_features} features that are read, with ids from {int(first)} on."
    return InputError(problem, column=feature, parameter="n_features")
