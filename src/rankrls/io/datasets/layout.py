"""The columns of shards, and how rows become them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io.datasets.dataset import Dataset
from rankrls.io.datasets.index import Cut
from rankrls.io.tables.writing import check_names

_BLOCK_ROWS = 512  # that become columns at a time, inside the processor's cache
_SAMPLE = 4096
_FEW = 256  # different values of a column in the sample, up to which it is written as a dictionary


@dataclass(frozen=True)
class Layout:
    """Which columns there are, by name.

    Attributes
    ----------
    features : tuple of str
    label, qid, id : str or None
        None if there are none.
    whole : bool
        Whether query ids are whole numbers.
    dtype : dtype
        Of the features.
    """

    features: tuple[str, ...]
    label: str | None
    qid: str
    id: str | None
    whole: bool
    dtype: np.dtype[Any]

    @staticmethod
    def of(data: Dataset, found: Cut, names: Sequence[str] | None, *, single: bool) -> Layout:
        """The columns of a data set, its features called otherwise if names are given."""
        source = data.source
        if names is not None and len(names) != source.n_features:
            problem = "{feature_names} has {0} names, but the data have {1} features."
            raise InputError(problem, len(names), source.n_features, parameter="feature_names")
        features = names or source.feature_names or [f"f{k}" for k in range(1, source.n_features + 1)]
        label, qid, id = source.roles
        dtype = np.dtype(np.float32) if single else source.dtype
        whole = found.numbers if source.format == "parquet" else found.whole  # texts of a typed format stay texts
        layout = Layout(tuple(map(str, features)), label, qid, id, whole, dtype)
        check_names(layout.names)
        return layout

    @property
    def names(self) -> list[str]:
        """All columns, in their order."""
        return [*(name for name in (self.label, self.qid, self.id) if name is not None), *self.features]

    def checked(self, X: Any, first_row: int) -> NDArray[Any]:
        """Features as they are written; refuse those that are too large."""
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        with np.errstate(over="ignore"):
            out: NDArray[Any] = dense.astype(self.dtype, copy=False)
        if out is not dense and not np.isfinite(out).all():
            k, column = (int(v) for v in np.argwhere(~np.isfinite(out))[0])
            problem = "the value {0} of column {1!r} is too large for float32, in row {2} of all rows, counted from 0."
            row, name = first_row + k, self.features[column]
            raise InputError(problem, float(dense[k, column]), name, row, row=row, column=name, parameter="float32")
        return out

    def table(
        self,
        X: NDArray[Any],
        y: NDArray[np.float64],
        names: Sequence[str],
        query: NDArray[np.int64],
        ids: NDArray[Any] | None,
    ) -> Any:
        """Rows as a table of pyarrow; ``query`` is the place of each row's query id among ``names``."""
        import pyarrow as pa

        columns: list[Any] = []
        if self.label is not None:
            columns.append(pa.array(y, from_pandas=True))
        if self.whole:
            columns.append(pa.array(np.array([*map(int, names)], dtype=np.int64)[query]))
        else:
            columns.append(pa.array(names, pa.string()).take(pa.array(query)))
        if self.id is not None:
            assert ids is not None  # every row has one
            columns.append(pa.array(ids.tolist() if ids.dtype == object else ids))
        by_column = np.empty(X.shape[::-1], dtype=X.dtype)
        for start in range(0, len(X), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            by_column[:, rows] = X[rows].T
        return pa.table([*columns, *map(pa.array, by_column)], names=self.names)

    def written(self, table: Any) -> dict[str, Any]:
        """How pyarrow writes a file that begins with these rows.

        Columns of few different values are written as codes of them. Of features no statistics are kept.
        """
        sample = table.slice(0, _SAMPLE)
        few = [name for name in self.features if len(sample.column(name).unique()) <= _FEW]
        others = self.names[: -len(self.features)]
        return {"use_dictionary": [*others, *few], "write_statistics": others}
