"""Rows of files of any format: features, labels, ids, their lines, and the names of their columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._checks import check_word
from rankrls._errors import InputError
from rankrls._queries import label_varies, query_layout
from rankrls._rows import take_items
from rankrls._typing import AnyArray, Array, Index, Values
from rankrls.io._text import is_utf8, joined_ids, objects

_FEW_LABELS = 12
_DOCID = re.compile(r"docid\s*[=:]\s*(\S+)")
_NUMBERS = ("label", "weight", "event", "strength", "position", "impressions")
_WRITTEN = ("label", "qid", "id", "event")


class Lines:
    """Line on which each row of a text file ends, from 1; rows are counted from 0."""

    def __init__(self) -> None:
        self._blocks: list[tuple[int, Sequence[int] | NDArray[np.int64]]] = []

    def append(self, first_row: int, lines: Sequence[int] | NDArray[np.int64]) -> None:
        """Add the lines of the next rows."""
        self._blocks.append((first_row, lines))

    def of(self, row: int) -> int | None:
        """Line of a row; None if unknown."""
        for first_row, lines in reversed(self._blocks):
            if first_row <= row < first_row + len(lines):
                return int(lines[row - first_row])
        return None


@dataclass(frozen=True)
class Schema:
    """Names and types of the features and columns of rows, for reading other files in the same way.

    Attributes
    ----------
    features : tuple of str, or None
        Columns of X in their order; () if no features are read; None for LETOR text, which has no names, and if
        unknown.
    columns : mapping of str to str
        Column of each role: "label", "qid", "id", "weight", "event", "position", "impressions"; for preferences also
        "strength", "winner", "loser", and so on.
    may_be_empty : tuple of str
        Roles whose cells may be missing or empty.
    integers : frozenset of str
        Roles of ids whose columns have a type of whole numbers.
    n_features : int or None
        Number of columns of X; None if unknown.
    first_feature : int or None
        Number of column 0 in LETOR text, 0 or 1; None for tables, and if unknown.
    dtype : dtype
        Type of X: float64 or float32.
    dense : bool or None
        Whether X of LETOR text is an ndarray; None if the share of written cells decides.
    """

    features: tuple[str, ...] | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    may_be_empty: tuple[str, ...] = ()
    integers: frozenset[str] = frozenset()
    n_features: int | None = None
    first_feature: int | None = None
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float64))
    dense: bool | None = None

    @property
    def numbers(self) -> dict[str, str]:
        """Columns of numbers by role."""
        return {role: name for role, name in self.columns.items() if role in _NUMBERS}

    @property
    def texts(self) -> dict[str, str]:
        """Columns of ids by role."""
        return {role: name for role, name in self.columns.items() if role not in _NUMBERS}

    @property
    def stored(self) -> list[str]:
        """Columns that are read, each once."""
        return [*dict.fromkeys([*(self.features or ()), *self.columns.values()])]

    def to_json(self) -> Values:
        """Plain values with which later files must agree, for a model file."""
        if self.first_feature is not None:
            return {"zero_based": self.first_feature == 0}
        return {"columns": {role: self.columns[role] for role in _WRITTEN if role in self.columns}}


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows of LETOR text, of a table with named columns, or of Parquet files.

    Attributes
    ----------
    X : ndarray of shape (m, n), C-contiguous, or csr_array of shape (m, n)
        Features; 0 for a feature missing from a line of LETOR text.
    y : ndarray of shape (m,), float64, or None
        Labels; None if there is no such column.
    qid : ndarray of shape (m,) or None
        Query ids: int64 if every id has the form of ``str(int)`` and fits, otherwise an object array of strings, as in
        the file. None if there are none.
    path : str
        File name in errors.
    sha256 : str
        SHA-256 of the bytes of the file (compressed or not), as ``sha256sum`` prints it; empty for a data frame.
    schema : Schema
        Names of the features and columns.
    ids : ndarray of shape (m,) or None
        Item ids from a column of a table, in the form of ``qid``.
    comments : list of str, or None
        Text after ``#`` in each row of LETOR text, stripped; None if no row has one. Bytes that are not UTF-8 become
        surrogate escapes, so that :func:`save_letor` writes them unchanged.
    event : ndarray of shape (m,), float64, or None
        For right-censored times, if a column is named: 1 if the event was observed.
    sample_weight : ndarray of shape (m,), float64, or None
        Row weights, if a column is named.
    position, impressions : ndarray of shape (m,), float64, or None
        Position and number of impressions of each row, if columns are named; ``y`` then contains clicks.
    n_named : int or None
        Number of columns of ``X`` up to the last one that occurs in LETOR text; None for tables.
    lines : Lines or None
        Lines of the rows, if the file is text.
    """

    X: Any
    y: Array | None
    qid: AnyArray | None
    path: str
    sha256: str = ""
    schema: Schema = Schema()
    ids: AnyArray | None = None
    comments: list[str] | None = None
    event: Array | None = None
    sample_weight: Array | None = None
    position: Array | None = None
    impressions: Array | None = None
    n_named: int | None = None
    lines: Lines | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of ``X``."""
        return int(self.X.shape[1])

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns of ``X``; ``emb[0]``, ``emb[1]``, ... if a column "emb" contains lists.

        None for LETOR text.
        """
        return self.schema.features if self.first_feature is None else None

    @property
    def first_feature(self) -> int | None:
        """Number of column 0 in LETOR text; None for tables."""
        return self.schema.first_feature

    @property
    def zero_based(self) -> bool:
        """Whether column 0 is feature 0 of LETOR text (True) or feature 1 (False)."""
        return self.first_feature == 0

    @property
    def feature_ids(self) -> list[str]:
        """Names of the columns of ``X`` in the file."""
        if self.feature_names is not None:
            return [*self.feature_names]
        return [str((self.first_feature or 0) + column) for column in range(self.n_features)]

    @property
    def docids(self) -> AnyArray | None:
        """Item ids as text, an object array of shape (m,), or None.

        In LETOR text, they are the words after ``docid =`` in all comments, or comments that are single words and
        differ within each query. Bytes that are not UTF-8 are read as Latin-1.
        """
        if self.comments is not None:
            return document_ids(self.comments, self.qid)
        return None if self.ids is None else objects(map(str, self.ids.tolist()))

    def take(self, rows: Index | slice) -> Rows:
        """A subset of the rows."""
        known = {name: values for name, values in vars(self).items() if isinstance(values, np.ndarray | list)}
        taken = {name: take_items(values, rows) for name, values in {**known, "X": self.X}.items()}
        return replace(self, **taken, lines=None)

    def line_of(self, row: int | None) -> int | None:
        """Line of a row of text, from 1; None if unknown."""
        return None if row is None or self.lines is None else self.lines.of(row)

    def summary(self) -> Values:
        """Source, sizes, and the number of each label, as plain values."""
        y = np.zeros(0) if self.y is None else self.y
        n_queries = None if self.qid is None else query_layout(self.qid, self.n_rows).n_queries
        return {
            "path": self.path,
            "sha256": self.sha256,
            "rows": self.n_rows,
            "queries": n_queries,
            "features": self.n_features or None,  # none were read
            "sparse": not isinstance(self.X, np.ndarray),
            "labels": _counted_labels(y),
        }

    def __repr__(self) -> str:
        return f"<Rows of {self.path}: {self.n_rows} rows, {self.n_features} features>"


def stack_rows(tables: Sequence[Rows]) -> Rows:
    """Features, labels and ids of the rows of several files or parts, one after another.

    Labels are NaN where a table has none.

    Raises
    ------
    InputError
        If one table has query ids and another has none.
    """
    if len(tables) == 1:
        return tables[0]
    ids = [table.qid for table in tables if table.qid is not None]
    if ids and len(ids) < len(tables):
        odd = next(table for table in tables if table.qid is None)
        raise InputError(
            "there are no query ids, but the other file has some. Both need them.", file=odd.path, parameter="qid"
        )
    features = [table.X for table in tables]
    dense = all(isinstance(X, np.ndarray) for X in features)
    items = [table.ids for table in tables if table.ids is not None]
    labels = [np.full(table.n_rows, np.nan) if table.y is None else table.y for table in tables]
    return Rows(
        X=np.vstack(features) if dense else sparse.csr_array(sparse.vstack(features)),
        y=None if all(table.y is None for table in tables) else np.concatenate(labels),
        qid=joined_ids(ids) if ids else None,
        path=tables[0].path,
        schema=tables[0].schema,
        ids=joined_ids(items) if len(items) == len(tables) else None,
    )


def row_of(item: str, table: Rows, query: str | None = None) -> int:
    """Row of an item, within one query if given; items are named by their ids, or by row numbers without ids.

    Raises
    ------
    InputError
        If no row has this name, or several have it.
    """
    kind = "id" if table.docids is not None else "number, because ids are not named (id)"
    names = [*map(str, range(table.n_rows))] if table.docids is None else table.docids.tolist()
    inside = repeat(query) if query is None or table.qid is None else map(str, table.qid.tolist())
    found = [row for row, of in enumerate(zip(names, inside)) if of == (item, query)]  # noqa: B905
    if len(found) != 1:
        message = f"{len(found)} rows have {item!r} as {kind}, such as {names[0]!r}."
        raise InputError(f"{message} Name one row, with its query (query) if ids repeat.", file=table.path)
    return found[0]


def document_ids(comments: Sequence[str], qid: AnyArray | None) -> AnyArray | None:
    """Ids from the comments of rows: the words after ``docid =``, or else single words that differ within a query.

    None if some comments contain neither. Bytes that are not UTF-8 are read as Latin-1.
    """
    marked = [_DOCID.search(comment) for comment in comments]
    words = [match[1] for match in marked if match]
    if len(words) < len(comments):
        words = [*comments]
        queries = repeat(None) if qid is None else qid.tolist()
        if any(len(word.split()) != 1 for word in words) or len({*zip(queries, words)}) < len(words):  # noqa: B905
            return None
    ids = []
    for word in words:
        encoded = word.encode("utf-8", "surrogateescape")
        coding = "utf-8" if is_utf8(encoded) else "latin-1"
        ids.append(encoded.decode(coding))
    return objects(ids)


def _counted_labels(y: Array) -> Values:
    """Count of each different label in ascending order, or the range of many; and the number of missing ones."""
    labels, counts = np.unique(y[~np.isnan(y)], return_counts=True)
    found: Values = {f"{v:g}": int(c) for v, c in zip(labels, counts, strict=True)}
    if len(labels) > _FEW_LABELS:
        found = {"min": float(labels[0]), "max": float(labels[-1]), "distinct": len(labels)}
    return found | ({"none": y.size - int(counts.sum())} if counts.sum() < y.size else {})


def resolve_conflicts(table: Rows, how: Literal["mean", "last", "refuse"] = "mean") -> Rows:
    r"""Reduce items with different labels in one query to one row each.

    Parameters
    ----------
    table : Rows
        Rows with labels, query ids and item ids; without one of these, nothing is changed.
    how : {"mean", "last", "refuse"}, default="mean"
        Label of the row that is kept, which is the last one: the mean of the item's labels, or its own. "refuse" raises
        an error instead.

    Returns
    -------
    Rows
        Rows in their order. Items with equal labels keep all rows, as do rows without a label (NaN).

    Raises
    ------
    InputError
        With ``how="refuse"``, at the first row of such an item.

    Notes
    -----
    O(m log m).

    Examples
    --------
    >>> import io
    >>> from rankrls.io import load_letor, resolve_conflicts
    >>> text = b"2 qid:7 1:0.5 # docid = a\n0 qid:7 1:3 # docid = b\n1 qid:7 1:0.5 # docid = a\n"
    >>> table = load_letor(io.BytesIO(text))
    >>> resolve_conflicts(table, "mean").y
    array([0. , 1.5])
    """
    check_word("how", how, ("mean", "last", "refuse"))
    items = _conflicting_items(table, table.docids)
    rows = np.flatnonzero(items >= 0)
    if table.y is None or not len(rows):
        return table
    if how == "refuse":
        row = int(rows[0])
        raise InputError(conflict_text(table), file=table.path, row=row, line=table.line_of(row), column="label")
    labels = table.y.copy()
    if how == "mean":
        means = np.bincount(items[rows], labels[rows]) / np.maximum(np.bincount(items[rows]), 1)
        labels[rows] = means[items[rows]]
    last_of_each = {int(item): row for item, row in zip(items[rows], rows, strict=True)}
    kept = np.union1d(np.flatnonzero(items < 0), [*last_of_each.values()])
    return replace(table, y=labels).take(kept)


def conflict_text(table: Rows) -> str:
    """Number of items with different labels in one query, with an example; empty if there are none."""
    ids = table.docids
    items = _conflicting_items(table, ids)
    rows = np.flatnonzero(items >= 0)
    if ids is None or table.qid is None or not len(rows):
        return ""
    first, second = np.flatnonzero(items == items[rows[0]])[:2]
    count = len(np.unique(items[rows]))
    example = f"item {ids[first]!r} of query {str(table.qid[first])!r} in rows {first} and {second}"
    return f"{count} item{'s have' if count > 1 else ' has'} different labels in one query, such as {example}."


def _conflicting_items(table: Rows, ids: AnyArray | None) -> Index:
    """Number of each item with different labels in one query, in its rows; -1 in all others."""
    found = np.full(table.n_rows, -1, dtype=np.intp)
    if table.y is None or table.qid is None or ids is None:
        return found
    known = np.flatnonzero(~np.isnan(table.y))
    queries, items = (query_layout(values, len(values)).codes[known] for values in (table.qid, ids))
    pairs = query_layout(queries * len(ids) + items, len(known))
    found[known] = np.where(label_varies(table.y[known], pairs)[pairs.codes], pairs.codes, -1)
    return found
