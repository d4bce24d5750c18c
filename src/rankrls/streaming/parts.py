"""A part's rows as comparisons, checked."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import LabelledItems, Setting
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.features.finite import check_finite_features
from rankrls.graph.labels import label_varies

if TYPE_CHECKING:
    from rankrls.io.datasets import Part


def rows_in(data: Any, address: Any) -> int:
    """Rows of a part that has not been read."""
    found = getattr(address, "rows", None)
    return -(-data.n_rows // max(1, len(data.parts))) if found is None else int(found)


def decoding_bytes(data: Any) -> float:
    """The memory that decoding takes beside the rows that come of it: a page of each column of Parquet, and a batch."""
    if getattr(getattr(data, "source", None), "format", None) != "parquet":
        return 0.0
    return float(min(2.0**26 + 2.0**19 * data.n_features, 24.0 * data.n_features * data.n_rows))


def query_names(part: Part) -> list[str]:
    """The names of a part's queries, in their order."""
    return [str(name) for name in part.query_names or ()]


def fold_of(name: str, folds: int) -> int:
    """The fold of a query, by a hash of its name: the same whatever the files, the parts and their order."""
    return int.from_bytes(blake2b(f"0:{name}".encode(), digest_size=8).digest(), "little") % folds


def row_folds(part: Part, data: LabelledItems, folds: int) -> NDArray[np.intp]:
    """The fold of each row of positive weight."""
    if folds == 1:
        return np.zeros(data.n_rows, dtype=np.intp)
    numbers = np.array([fold_of(name, folds) for name in query_names(part)], dtype=np.intp)
    rows = numbers[np.unique(np.asarray(part.query), return_inverse=True)[1]]
    return rows if data.kept is None else rows[data.kept]


def in_folds(part: Part, data: LabelledItems, folds: int) -> list[LabelledItems]:
    """The rows of positive weight in each fold."""
    if folds == 1:
        return [data]
    numbers = row_folds(part, data, folds)
    return [data.take(np.flatnonzero(numbers == k)) for k in range(folds)]


def counts(part: Part, data: LabelledItems) -> tuple[int, int, int]:
    """Rows and queries of positive weight, queries with two labels; a query that is cut counts in its first piece."""
    if part.piece is None:
        return data.n_rows, data.n_queries, int(label_varies(data.Y, data.layout).sum())
    labels = np.count_nonzero(part.piece.weights) if part.piece.index == 0 else 0
    return data.n_rows, int(labels > 0), int(labels > 1)


def labelled(part: Part, *, every: bool = False) -> LabelledItems:
    """The rows of a part as comparisons. Rows of weight zero go, unless ``every`` row is wanted; a part may have none.

    Raises
    ------
    InputError
        For labels, weights or features that are not finite; ``row`` is the running number in the data set.
    """
    y, weight = np.asarray(part.y, dtype=np.float64), part.weight
    _check_rows(part, np.isfinite(y), "{y} must be finite: row {0} has {1}.", y, "y")
    if weight is not None:
        good = np.isfinite(weight) & (weight >= 0.0)
        _check_rows(part, good, "{sample_weight} must be finite and not negative; row {0} has {1}.", weight, "weight")
        weight = None if (weight == 1.0).all() else weight
    check_finite_features(part.X, None, products=True, first_row=part.first_row)
    layout = query_layout(np.asarray(part.query), len(y))
    data = LabelledItems(part.X, None, True, True, y[:, None], layout, weight)
    return data if every else data.of_positive_weight(square=False)


def check_varied(found: Any, settings: Sequence[Setting]) -> None:
    """Refuse labels that order nothing; ``found`` counts rows, queries and those with two labels (``varied``)."""
    if not found.varied and any(setting.regression_weight == 0.0 for setting in settings):
        raise InputError(
            "Nothing to compare: none of the {0} queries holds two items with different labels ({1} rows).",
            *(found.queries, found.rows),
            remedy="Check the labels and the query ids.",
            parameter="y",
        )


def _check_rows(part: Part, good: NDArray[np.bool_], problem: str, values: NDArray[np.float64], name: str) -> None:
    if not good.all():
        row = int(np.argmin(good))
        remedy = "Every row needs a finite label." if name == "y" else ""
        raise InputError(
            problem,
            *(part.first_row + row, values[row]),
            remedy=remedy,
            parameter=name,
            row=part.first_row + row,
        )
