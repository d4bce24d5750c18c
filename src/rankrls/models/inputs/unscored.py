"""Rows without labels beside those that have some."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import column_or_1d

from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls._queries import QueryLayout, query_layout
from rankrls.models.families.base import check_one_target, check_square
from rankrls.models.inputs.validation import check_matrix, check_no_extra_qid, labelled_items, split_labels

__all__ = ["partly_scored", "unscored_layout", "with_unscored"]


def partly_scored(
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
        raise InputError("Every row is unscored: some rows need a label in {y}.", parameter="y")
    return data, numbers, scored


def with_unscored(
    estimator: Any, data: LabelledItems, X_unscored: Any, qid_unscored: Any, *, precomputed: bool
) -> tuple[Any, int]:
    """All rows, those of X_unscored last, and how many they are."""
    if X_unscored is None:
        if qid_unscored is not None:
            raise InputError("{qid_unscored} was given without {X_unscored}.", parameter="qid_unscored")
        return data.X, 0
    if precomputed:
        raise InputError(
            "With a precomputed kernel unscored rows are rows of {X} whose label in {y} is NaN.",
            parameter="X_unscored",
        )
    check_no_extra_qid(data.has_qid, qid_unscored, "fit's unscored rows (qid_unscored)")
    if qid_unscored is not None and not data.has_qid:
        raise InputError(
            "{qid_unscored} was given without {qid}: all rows have a query or none.", parameter="qid_unscored"
        )
    X_more = check_matrix(estimator, X_unscored, reset=False)
    if sparse.issparse(data.X) or sparse.issparse(X_more):
        return sparse.csr_array(sparse.vstack((data.X, X_more))), X_more.shape[0]
    return np.vstack((data.X, X_more)), X_more.shape[0]


def unscored_layout(data: LabelledItems, rows: NDArray[np.intp], more: int, qid_unscored: Any) -> QueryLayout:
    """Queries of the unscored rows of X and of X_unscored together."""
    if not data.has_qid:
        return query_layout(None, len(rows) + more)
    if not more:
        return query_layout(data.layout.codes[rows], len(rows))
    given = query_layout(qid_unscored, more)
    if not len(rows):
        return given
    ids = [*data.layout.ids[data.layout.codes[rows]].tolist(), *given.ids[given.codes].tolist()]
    return query_layout(ids, len(ids))
