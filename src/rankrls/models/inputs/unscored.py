"""Rows without labels beside those that have some."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.models import fitting
from rankrls.models.inputs.validation import check_matrix, check_no_extra_qid, split_labels


@dataclass(frozen=True, eq=False)
class PartlyScored:
    """All rows, those of ``X_unscored`` last; rows of weight zero are gone.

    Attributes
    ----------
    everything : LabelledItems
        All rows, with any labels where there are none.
    scored : ndarray of bool
    known : LabelledItems
        The scored rows, whose items are their numbers among all, as a matrix of one column.
    """

    everything: LabelledItems
    scored: NDArray[np.bool_]
    known: LabelledItems


def partly_scored(
    estimator: Any, X: Any, y: Any, qid: Any, sample_weight: Any, X_unscored: Any = None, qid_unscored: Any = None
) -> PartlyScored:
    """Check what ``fit`` was given: NaN in y marks an unscored row."""
    labels, missing = split_labels(y)
    data = fitting.labelled(estimator, X, labels, qid, sample_weight, partly=True)
    kernel, rows = fitting.data_kernel(estimator), np.arange(data.n_rows)
    fitting.check_square(data.X, kernel)
    scored = np.ones(len(rows), dtype=bool) if missing is None else ~missing[data.given_numbers(rows)]
    if not scored.any():
        raise InputError("Every row is unscored, NaN in y: some query needs labels to learn from.", parameter="y")
    found = PartlyScored(data, scored, _as_items(data, rows[scored]))
    if X_unscored is None:
        if qid_unscored is not None:
            raise InputError("qid_unscored was given without X_unscored.", parameter="qid_unscored")
        return found
    if kernel == "precomputed":
        raise InputError(
            "With a precomputed kernel unscored rows are rows of X whose label in y is NaN.", parameter="X_unscored"
        )
    check_no_extra_qid(data.has_qid, qid_unscored, "fit's unscored rows (qid_unscored)")
    if qid_unscored is not None and not data.has_qid:
        raise InputError("qid_unscored was given without qid: all rows have a query or none.", parameter="qid_unscored")
    more = check_matrix(estimator, X_unscored, reset=False)
    unlabelled = np.zeros(more.shape[0], dtype=bool)
    return replace(found, everything=_beside(data, more, qid_unscored), scored=np.append(scored, unlabelled))


def _as_items(data: LabelledItems, rows: NDArray[np.intp]) -> LabelledItems:
    """Some rows with their labels, whose items are their numbers, as a matrix of one column."""
    kept = np.zeros(data.n_rows if data.kept is None else len(data.kept), dtype=bool)
    kept[data.given_numbers(rows)] = True
    layout = query_layout(data.layout.ids[data.layout.codes[rows]], len(rows))  # folds follow the ids
    items = rows[:, None].astype(np.float64)
    return replace(data.take(rows, items=False), X=items, layout=layout, kept=None if kept.all() else kept)


def _beside(data: LabelledItems, X: Any, qid: Any) -> LabelledItems:
    """Rows and further ones behind them, of weight 1."""
    more, layout = X.shape[0], query_layout(None, data.n_rows + X.shape[0])
    if qid is not None:
        given = query_layout(qid, more)
        ids = [*data.layout.ids[data.layout.codes].tolist(), *given.ids[given.codes].tolist()]
        layout = query_layout(ids, len(ids))
    either = sparse.issparse(data.X) or sparse.issparse(X)
    return replace(
        data,
        X=sparse.csr_array(sparse.vstack((data.X, X))) if either else np.vstack((data.X, X)),
        Y=np.vstack((data.Y, np.zeros((more, data.Y.shape[1])))),
        layout=layout,
        weights=None if data.weights is None else np.append(data.weights, np.ones(more)),
        kept=None if data.kept is None else np.append(data.kept, np.ones(more, dtype=bool)),
    )
