"""Data that lie in files and are read a part at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io._rows import Ids
from rankrls.io.datasets.files import File
from rankrls.io.datasets.runs import Runs
from rankrls.io.tables.parts import Rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Piece:
    """What the piece of a query that is longer than a part knows of its whole query.

    Attributes
    ----------
    query : int
        The query's running number.
    labels : ndarray of float64
        The different labels of the whole query, ascending; rows without a label have none.
    counts, weights : ndarray
        How many rows have each of them, and the sum of their weights (equal to ``counts`` if rows have no weights).
    index, n_pieces : int
        Which piece of the query this is, from 0, and how many there are.
    start : int
        How many rows of the query come before this piece.
    """

    query: int
    labels: NDArray[np.float64]
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]
    index: int
    n_pieces: int
    start: int


@dataclass(frozen=True)
class Span:
    """Consecutive rows of one file.

    Attributes
    ----------
    file : int
        Its number.
    first, last : int
        The row groups, or the bytes, in which the rows lie; ``last`` is the first that is not needed.
    skip, rows : int
        How many rows to leave out there, and how many to take behind them.
    line : int
        The line of text that begins at byte ``first``.
    """

    file: int
    first: int
    last: int
    skip: int
    rows: int
    line: int

    def among(self, before: int, n: int) -> slice:
        """Which of the next ``n`` rows there it has, behind ``before`` others."""
        low, high = (min(max(row - before, 0), n) for row in (self.skip, self.skip + self.rows))
        return slice(low, high)


@dataclass(frozen=True, eq=False)
class Address:
    """Where a part lies: a small value that a process needs, beside the :class:`Dataset`, to read it.

    Attributes
    ----------
    number : int
        The part's place among the parts.
    first_row, rows : int
        Its first row, as a running number over all files, and how many it has.
    first_query, queries : int
        The running number of its first query, and how many it holds.
    spans : tuple of Span
    piece : Piece or None
        Of a query that is longer than a part.
    """

    number: int
    first_row: int
    rows: int
    first_query: int
    queries: int
    spans: tuple[Span, ...]
    piece: Piece | None


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a data set: whole queries, or one piece of a single query that is longer than a part.

    Attributes
    ----------
    number : int
        Its place among the parts.
    X : ndarray or csr_array of shape (m, n), float32 or float64
        Features.
    y : ndarray of shape (m,), float64
        Labels; NaN where there is none.
    weight : ndarray of shape (m,), float64, or None
        Weights of the rows, if the data have any.
    query : ndarray of shape (m,), int64
        Running number of each row's query over the whole data set.
    first_row : int
        Running number of the first row.
    query_names : list of str, or None
        The query ids as text, one for each query of the part in the order of its rows; None unless asked for.
    ids : ndarray of shape (m,), or None
        The items' ids, if there is such a column and they were asked for.
    piece : Piece or None
    """

    number: int
    X: NDArray[Any] | csr_array
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    query: NDArray[np.int64]
    first_row: int
    query_names: list[str] | None = None
    ids: NDArray[Any] | None = None
    piece: Piece | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """How files of one format are read.

    Attributes
    ----------
    format : {"parquet", "csv", "letor"}
    feature_names : tuple of str, or None
        Names of the features, of tables.
    n_features : int
        Columns of X.
    dtype : dtype
        Of X.
    dense : bool
        Whether X is an ndarray.
    has_weights : bool
        Whether rows have weights.
    qid_name : str or None
        The column of query ids, of tables.
    roles : tuple
        What the columns of labels, query ids and items' ids are called, or shall be.
    """

    format: str
    n_features: int
    dtype: np.dtype[Any]
    feature_names: tuple[str, ...] | None = None
    dense: bool = True
    has_weights: bool = False
    qid_name: str | None = None
    roles: tuple[str | None, str, str | None]

    def rows(self, file: File, span: Span, *, ids: bool, out: NDArray[Any] | None) -> Iterator[Rows]:
        """The rows of a span; dense features may come as a part of ``out``."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows in files, of which nothing is held but where they lie. :func:`open_dataset` makes it.

    It is small and can be pickled: another process reads its parts from the same paths.

    Attributes
    ----------
    feature_names : tuple of str, or None
        Names of the features; None for LETOR text.
    n_features, n_rows, n_queries : int
        Sizes of the whole.
    has_weights, has_qid : bool
        Whether rows have weights, and query ids (else all rows are one query).
    parts : tuple of Address
        In the order of the data. A part holds whole queries, or one piece of a single query that is longer than a part.
    files : tuple of File
        What the files were when they were opened.
    source : Source
        How they are read.
    path : str
        What was opened, as it was written.
    """

    files: tuple[File, ...]
    source: Source
    parts: tuple[Address, ...]
    n_rows: int
    n_queries: int
    has_qid: bool = True
    path: str = ""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features; None for LETOR text."""
        return self.source.feature_names

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self.source.n_features

    @property
    def has_weights(self) -> bool:
        """Whether rows have weights."""
        return self.source.has_weights

    def read(self, address: Address, *, names: bool = False) -> Part:
        """Read a part.

        Parameters
        ----------
        address : Address
            One of ``parts``.
        names : bool, default=False
            Whether the names of the queries and the items' ids are wanted too.

        Returns
        -------
        Part

        Raises
        ------
        InputError
            For a file that has changed since it was opened, and for values that a learner cannot use: a feature that is
            missing or not finite, with the file and the row (of text the line).
        OSError
            If a file cannot be read.

        Notes
        -----
        O(cells). A part that begins inside a row group of Parquet decodes, and drops, the rows of the group that come
        before it; the thread that has read a part before it goes on from there.
        """
        source, rows = self.source, address.rows
        dense = np.empty((rows, source.n_features), dtype=source.dtype) if source.dense else None
        sparse: list[Any] = []
        y = np.full(rows, np.nan)
        weight = np.empty(rows) if source.has_weights else None
        begins = np.empty(rows, dtype=bool)
        ids, all_ids = Ids(), names
        runs = Runs()
        at = 0
        for span in address.spans:
            file = self.files[span.file]
            for found in source.rows(file, span, ids=names, out=None if dense is None else dense[at : at + span.rows]):
                here = slice(at, at := at + found.X.shape[0])
                if dense is None:
                    sparse.append(found.X)
                elif not np.may_share_memory(found.X, dense):
                    dense[here] = found.X
                if found.y is not None:
                    y[here] = found.y
                if weight is not None:
                    weight[here] = found.weight
                begins[here] = runs.begins(found.texts["qid"], names=names)
                all_ids = all_ids and "id" in found.texts
                if all_ids:
                    ids.append(*found.texts["id"])
        if at != rows or runs.n != address.queries:
            raise self._changed(address)
        return Part(
            number=address.number,
            X=_stacked(sparse) if dense is None else dense,
            y=y,
            weight=weight,
            query=address.first_query - 1 + np.cumsum(begins, dtype=np.int64),
            first_row=address.first_row,
            query_names=runs.names if names else None,
            ids=ids.finish(numbers=False) if all_ids else None,
            piece=address.piece,
        )

    def check_unchanged(self) -> None:
        """Refuse files that are others than when they were opened, by size, time and footer (of text, both ends).

        Raises
        ------
        InputError
            Names the first file that has changed.
        """
        for file in self.files:
            file.check()

    def describe(self) -> dict[str, Any]:
        """What the data are, as plain values: the files with their sizes and footer hashes, and the counts."""
        return {
            "format": self.source.format,
            "files": [file.describe() for file in self.files],
            "rows": self.n_rows,
            "queries": self.n_queries,
            "features": self.n_features,
            "parts": len(self.parts),
        }

    def summary(self) -> dict[str, Any]:
        """What is in it, as a table of rows says it; labels are not counted."""
        sizes = {"rows": self.n_rows, "queries": self.n_queries, "features": self.n_features}
        return {"path": self.path, **sizes, "sparse": not self.source.dense, "labels": {}, "parts": len(self.parts)}

    def __iter__(self) -> Iterator[Part]:
        return map(self.read, self.parts)

    def __repr__(self) -> str:
        files = f"{len(self.files)} {self.source.format} file{'s' * (len(self.files) != 1)}"
        sizes = f"{self.n_rows} rows, {self.n_features} features, {self.n_queries} queries, {len(self.parts)} parts"
        return f"<Dataset of {files}: {sizes}>"

    def _changed(self, address: Address) -> InputError:
        file = self.files[address.spans[0].file]
        return file.changed("the rows of part {0} are not those that were found at opening.", address.number)


def _stacked(parts: Sequence[Any]) -> csr_array:
    from scipy.sparse import csr_array, vstack

    return csr_array(parts[0] if len(parts) == 1 else vstack(parts, format="csr"))
