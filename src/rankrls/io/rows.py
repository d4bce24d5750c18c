"""Rows of a file of any format: features, labels, ids, and what their columns are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._queries import query_layout
from rankrls._rows import take_items
from rankrls._typing import Array, Index
from rankrls.io._letor_lines import document_ids
from rankrls.io._rows import objects
from rankrls.io.opened import Lines

_FEW_LABELS = 12
_NUMBERS = ("label", "weight", "event", "strength", "position", "impressions")
_WRITTEN = ("label", "qid", "id")


@dataclass(frozen=True)
class Schema:
    """Names of the features and columns of a file.

    Attributes
    ----------
    features : tuple of str
        Columns of X in their order; () for LETOR text, which has no names.
    columns : mapping of str to str
        Column of each role: "label", "qid", "id", "weight", "event", "position", "impressions"; of preferences also
        "strength", "winner", "loser", and so on.
    may_be_empty : tuple of str
        Roles whose cells may be missing or empty.
    first_feature : int or None
        Number of column 0 in LETOR text, 0 or 1; None for tables.
    """

    features: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    may_be_empty: tuple[str, ...] = ()
    first_feature: int | None = None

    @property
    def numbers(self) -> dict[str, str]:
        """The columns of numbers by role."""
        return {role: name for role, name in self.columns.items() if role in _NUMBERS}

    @property
    def texts(self) -> dict[str, str]:
        """The columns of ids by role."""
        return {role: name for role, name in self.columns.items() if role not in _NUMBERS}

    @property
    def stored(self) -> list[str]:
        """The columns that are read, each once."""
        return [*dict.fromkeys([*self.features, *self.columns.values()])]

    def to_json(self) -> dict[str, Any]:
        """Plain values that later files have to agree with, for a model file."""
        if self.first_feature is not None:
            return {"zero_based": self.first_feature == 0}
        return {"columns": {role: self.columns[role] for role in _WRITTEN if role in self.columns}}


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows of LETOR text, of a table with named columns, or of Parquet files.

    Attributes
    ----------
    X : ndarray of shape (m, n), C-contiguous, or csr_array of shape (m, n)
        Features; a feature that a line of LETOR text does not name is 0.
    y : ndarray of shape (m,), float64, or None
        Labels; None if there is no such column.
    qid : ndarray of shape (m,) or None
        Query ids: int64 if every id is written as ``str(int)`` writes it and fits, otherwise an object array of
        strings, as in the file. None if there are none.
    path : str
        The file, as errors name it.
    sha256 : str
        Of the bytes of the file (compressed or not), as ``sha256sum`` prints it; empty for a data frame.
    schema : Schema
        Names of the features and columns.
    ids : ndarray of shape (m,) or None
        The items' ids in a column of a table, in the form of ``qid``.
    comments : list of str, or None
        The text after ``#`` in each row of LETOR text, stripped; None if no row has one. Bytes that are not UTF-8
        become surrogate escapes, so that :func:`save_letor` writes them unchanged.
    event : ndarray of shape (m,), float64, or None
        For right-censored times, if a column is named: 1 if the event was observed.
    sample_weight : ndarray of shape (m,), float64, or None
        Weights of the rows, if a column is named.
    position, impressions : ndarray of shape (m,), float64, or None
        The position of each row and how often it was shown, if columns are named; ``y`` are then clicks.
    n_named : int or None
        Columns of ``X`` up to the last one that a line of LETOR text names; None for tables.
    lines : Lines or None
        Lines of the rows, if the file is a table in text.
    """

    X: Any
    y: Array | None
    qid: NDArray[Any] | None
    path: str
    sha256: str = ""
    schema: Schema = Schema()
    ids: NDArray[Any] | None = None
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
        """Names of the columns of ``X``; ``emb[0]``, ``emb[1]``, ... where a column "emb" holds lists.

        None for LETOR text.
        """
        return self.schema.features if self.first_feature is None else None

    @property
    def first_feature(self) -> int | None:
        """Number that LETOR text gives to column 0; None for tables."""
        return self.schema.first_feature

    @property
    def zero_based(self) -> bool:
        """Whether column 0 is feature 0 of LETOR text (True) or feature 1 (False)."""
        return self.first_feature == 0

    @property
    def feature_ids(self) -> list[str]:
        """What the file calls the columns of ``X``."""
        if self.first_feature is None:
            return [*self.schema.features]
        return [str(self.first_feature + column) for column in range(self.n_features)]

    @property
    def label(self) -> str | None:
        """Name of the column of ``y``."""
        return self.schema.columns.get("label")

    @property
    def qid_name(self) -> str | None:
        """Name of the column of ``qid``."""
        return self.schema.columns.get("qid")

    @property
    def id_name(self) -> str | None:
        """Name of the column of ``ids``."""
        return self.schema.columns.get("id")

    @property
    def docids(self) -> NDArray[Any] | None:
        """The items' ids as text, an object array of shape (m,), or None.

        In LETOR text they are what follows ``docid =`` in all comments, or comments that are single words and differ
        in each query. What is not UTF-8 is read as Latin-1.
        """
        if self.comments is not None:
            return document_ids(self.comments, self.qid)
        return None if self.ids is None else objects(map(str, self.ids.tolist()))

    def take(self, rows: Index | slice) -> Rows:
        """Some of the rows."""
        known = {name: values for name, values in vars(self).items() if isinstance(values, np.ndarray | list)}
        taken = {name: take_items(values, rows) for name, values in {**known, "X": self.X}.items()}
        return replace(self, **taken, lines=None)

    def with_features(self, X: Any, names: Sequence[str]) -> Rows:
        """The same rows with other features."""
        return replace(self, X=X, schema=replace(self.schema, features=tuple(names), first_feature=None))

    def line_of(self, row: int | None) -> int | None:
        """The line of a row of a table's text, from 1; None if it is not known."""
        return None if row is None or self.lines is None else self.lines.of(row)

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
            "labels": _counted_labels(y),
        }

    def __repr__(self) -> str:
        return f"<Rows of {self.path}: {self.n_rows} rows, {self.n_features} features>"


def _counted_labels(y: Array) -> dict[str, Any]:
    """How often each of a few different labels occurs, ascending, or the ends of many; and how many are missing."""
    labels, counts = np.unique(y[~np.isnan(y)], return_counts=True)
    found: dict[str, Any] = {f"{v:g}": int(c) for v, c in zip(labels, counts, strict=True)}
    if len(labels) > _FEW_LABELS:
        found = {"min": float(labels[0]), "max": float(labels[-1]), "distinct": len(labels)}
    return found | ({"none": y.size - int(counts.sum())} if counts.sum() < y.size else {})
