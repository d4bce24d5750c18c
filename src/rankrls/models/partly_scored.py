"""Estimators that are fitted on rows with labels and rows without, and how both come in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.models import fitting
from rankrls.models.inputs.parameters import check_parameters
from rankrls.models.ranker import Ranker


@dataclass(frozen=True, eq=False)
class PartlyScored:
    """All rows, those of ``X_unscored`` last; rows of weight zero are gone.

    Attributes
    ----------
    everything : LabelledItems
        All rows, with labels of 0 where there are none.
    scored : ndarray of bool
    known : LabelledItems
        The labelled rows, whose items are their numbers among all, as a matrix of one column.
    """

    everything: LabelledItems
    scored: NDArray[np.bool_]
    known: LabelledItems


class PartlyScoredRanker(Ranker):
    """Fitted on rows of which some have a label."""

    _learns_unscored = True
    _single_target = True
    regression_weight: float

    def _check(self) -> None:
        """Check the parameters, as far as that is possible without data."""
        check_parameters(self)

    def _learn(self, rows: PartlyScored) -> None:
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        X_unscored: Any = None,
        qid_unscored: Any = None,
    ) -> Self:
        """Fit rows with labels and rows without; what there is to choose, by held-out labelled queries.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n)
        y : array-like of shape (m,)
            Labels, higher is better; NaN marks an unlabelled row.
        qid : array-like of shape (m,), optional
            One query id per row. None makes everything one global ranking.
        sample_weight : array-like of shape (m,), optional
            Row weights, not negative; rows of X_unscored weigh 1.
        X_unscored : array-like, sparse matrix or data frame of shape (l, n), optional
            Further unlabelled rows.
        qid_unscored : array-like of shape (l,), optional
            Their queries, needed where there is a qid. An id of a row of X is the same query.

        Returns
        -------
        self
        """
        self._check()
        rows = partly_scored(self, X, y, qid, sample_weight, X_unscored, qid_unscored)
        fitting.check_comparable(rows.known, float(self.regression_weight))
        self._learn(rows)
        return self


def partly_scored(
    model: Any, X: Any, y: Any, qid: Any, sample_weight: Any, X_unscored: Any = None, qid_unscored: Any = None
) -> PartlyScored:
    """Check what ``fit`` was given: NaN in y marks an unlabelled row."""
    data = fitting.labelled(model, X, y, qid, sample_weight, partly=True, comparable=False)
    kernel = fitting.data_kernel(model)
    fitting.check_square(data.X, kernel)
    missing = np.isnan(data.Y)
    scored = np.logical_not(missing.all(axis=1))
    partly = missing.any(axis=1) & scored
    if partly.any():
        row = int(data.given_numbers(np.flatnonzero(partly))[0])
        raise InputError(
            f"Input y contains NaN for some targets of row {row} and labels for others: a row has all its labels or "
            "none. Fit targets with different unlabelled queries separately.",
            parameter="y",
            row=row,
        )
    if not scored.any():
        raise InputError("Every row is unscored, NaN in y: some query needs labels to learn from.", parameter="y")
    data = replace(data, Y=np.where(missing, 0.0, data.Y))
    found = PartlyScored(data, scored, _as_items(data, np.flatnonzero(scored)))
    if X_unscored is None and qid_unscored is None:
        return found
    if X_unscored is None or (qid_unscored is None) == data.has_qid:
        raise InputError(
            "Unlabelled rows are X_unscored, with a query each (qid_unscored) if and only if there is a qid.",
            parameter="qid_unscored",
        )
    if fitting.is_precomputed(kernel):
        raise InputError(
            "With a precomputed kernel unlabelled rows are rows of X whose label in y is NaN.", parameter="X_unscored"
        )
    more = fitting.check_matrix(model, X_unscored, reset=False)
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
