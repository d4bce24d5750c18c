"""Rows without labels beside those that have some."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls._queries import QueryLayout, query_layout
from rankrls.models.inputs.validation import check_matrix, check_no_extra_qid

__all__ = ["unscored_layout", "with_unscored"]


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
