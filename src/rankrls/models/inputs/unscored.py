"""Rows without labels beside those that have some."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import column_or_1d

from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls._queries import QueryLayout, query_layout
from rankrls.models.families.base import check_one_target, check_square
from rankrls.models.inputs.validation import (
    check_comparable,
    check_matrix,
    check_no_extra_qid,
    labelled_items,
    split_labels,
)

__all__ = ["PartlyScored", "partly_scored", "rows_as_items"]


@dataclass(frozen=True, eq=False)
class PartlyScored:
    """All rows, scored or not, those of ``X_unscored`` last; rows of weight zero are gone.

    Attributes
    ----------
    Z : dense or CSR, the rows; or the kernel matrix between them
    layout : QueryLayout
    weights : ndarray or None
    numbers : ndarray of intp
        Of each row, among the rows of X and then of ``X_unscored`` as they were given.
    scored : ndarray of bool
    known : LabelledItems
        The scored rows, whose items are their numbers in Z, as a matrix of one column.
    """

    Z: Any
    layout: QueryLayout
    weights: NDArray[np.float64] | None
    numbers: NDArray[np.intp]
    scored: NDArray[np.bool_]
    known: LabelledItems


def partly_scored(
    estimator: Any, X: Any, y: Any, qid: Any, sample_weight: Any, X_unscored: Any, qid_unscored: Any, *, kernel: str
) -> PartlyScored:
    """Check what ``fit`` was given: NaN in y marks an unscored row."""
    data, numbers, scored = _split_rows(estimator, X, y, qid, sample_weight, kernel=kernel)
    m = data.n_rows if data.kept is None else len(data.kept)
    known = rows_as_items(data, np.flatnonzero(scored))
    check_comparable(known, float(estimator.regression_weight))
    Z, more = _with_unscored(estimator, data, X_unscored, qid_unscored, precomputed=kernel == "precomputed")
    weights = None if data.weights is None else np.concatenate((data.weights, np.ones(more)))
    layout = data.layout if not more else _unscored_layout(data, np.arange(data.n_rows), more, qid_unscored)
    numbers = np.concatenate((numbers, m + np.arange(more)))
    return PartlyScored(Z, layout, weights, numbers, np.concatenate((scored, np.zeros(more, dtype=bool))), known)


def rows_as_items(data: LabelledItems, rows: NDArray[np.intp]) -> LabelledItems:
    """Some rows with their labels, whose items are their numbers, as a matrix of one column."""
    kept = np.zeros(data.n_rows if data.kept is None else len(data.kept), dtype=bool)
    kept[data.given_numbers(rows)] = True
    layout = query_layout(data.layout.ids[data.layout.codes[rows]], len(rows))  # folds follow the ids
    items = rows[:, None].astype(np.float64)
    return replace(data.take(rows, items=False), X=items, layout=layout, kept=None if kept.all() else kept)


def _split_rows(
    estimator: Any, X: Any, y: Any, qid: Any, sample_weight: Any, *, kernel: str
) -> tuple[LabelledItems, NDArray[np.intp], NDArray[np.bool_]]:
    """Rows of which some have a label and the others NaN, their numbers among those given, and which are scored."""
    labels, missing = split_labels(y)
    if labels is not None and (given := np.asarray(labels)).ndim == 2 and given.shape[1] == 1:
        labels = column_or_1d(given, warn=True)
    data = labelled_items(estimator, X, labels, qid, sample_weight, kernel=kernel)
    check_one_target(estimator, data)
    check_square(data.X, kernel)
    numbers = data.given_numbers(np.arange(data.n_rows))
    scored = np.ones(len(numbers), dtype=bool) if missing is None else ~missing[numbers]
    if not scored.any():
        raise InputError("Every row is unscored: some rows need a label in {y}.")
    return data, numbers, scored


def _with_unscored(
    estimator: Any, data: LabelledItems, X_unscored: Any, qid_unscored: Any, *, precomputed: bool
) -> tuple[Any, int]:
    """All rows, those of X_unscored last, and how many they are."""
    if X_unscored is None:
        if qid_unscored is not None:
            raise InputError("{qid_unscored} was given without {X_unscored}.")
        return data.X, 0
    if precomputed:
        raise InputError(
            "With a precomputed kernel unscored rows are rows of {X} whose label in {y} is NaN.",
            parameter="X_unscored",
        )
    check_no_extra_qid(data.has_qid, qid_unscored, "fit's unscored rows (qid_unscored)")
    if qid_unscored is not None and not data.has_qid:
        raise InputError("{qid_unscored} was given without {qid}: all rows have a query or none.")
    X_more = check_matrix(estimator, X_unscored, reset=False)
    if sparse.issparse(data.X) or sparse.issparse(X_more):
        return sparse.csr_array(sparse.vstack((data.X, X_more))), X_more.shape[0]
    return np.vstack((data.X, X_more)), X_more.shape[0]


def _unscored_layout(data: LabelledItems, rows: NDArray[np.intp], more: int, qid_unscored: Any) -> QueryLayout:
    """Queries of some rows of X and of X_unscored together."""
    if not data.has_qid:
        return query_layout(None, len(rows) + more)
    if not more:
        return query_layout(data.layout.codes[rows], len(rows))
    given = query_layout(qid_unscored, more)
    if not len(rows):
        return given
    ids = [*data.layout.ids[data.layout.codes[rows]].tolist(), *given.ids[given.codes].tolist()]
    return query_layout(ids, len(ids))
