"""Estimators that are fitted on rows with labels and rows without, and how both come in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.models import fitting
from rankrls.models.inputs.parameters import check_parameters
from rankrls.models.ranker import Ranker


@dataclass(frozen=True, eq=False)
class PartlyLabelled:
    """Rows of which some have a label; rows of weight zero are gone.

    Attributes
    ----------
    everything : LabelledItems
        All rows, with labels of 0 where there are none.
    labelled : ndarray of bool
    known : LabelledItems
        The labelled rows, whose items are their numbers among all, as a matrix of one column.
    """

    everything: LabelledItems
    labelled: NDArray[np.bool_]
    known: LabelledItems


class PartlyLabelledRanker(Ranker):
    """Fitted on rows of which some have a label."""

    _takes_unlabelled = True
    regression_weight: float

    def fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Fit rows with labels and rows without; what there is to choose is chosen by held-out labelled queries.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n)
        y : array-like of shape (m,)
            Labels, higher is better; NaN marks an unlabelled row.
        qid : array-like of shape (m,), optional
            One query id per row. None makes everything one global ranking.
        sample_weight : array-like of shape (m,), optional
            Row weights, not negative.

        Returns
        -------
        self
        """
        self._check()
        self._solve(partly_labelled(self, X, y, qid, sample_weight))
        return self

    def _check(self) -> None:
        """Check the parameters, as far as that is possible without data."""
        check_parameters(self)

    def _solve(self, rows: PartlyLabelled) -> None:
        raise NotImplementedError


def partly_labelled(model: Any, X: Any, y: Any, qid: Any, sample_weight: Any) -> PartlyLabelled:
    """Check what ``fit`` was given: NaN in y marks an unlabelled row."""
    data = fitting.labelled(model, X, y, qid, sample_weight, partly=True, comparable=False)
    fitting.check_square(data.X, fitting.data_kernel(model))
    missing = np.isnan(data.Y)
    labelled = np.logical_not(missing.all(axis=1))
    partly = missing.any(axis=1) & labelled
    if partly.any():
        row = int(data.given_numbers(np.flatnonzero(partly))[0])
        raise InputError(
            f"Input y contains NaN for some targets of row {row} and labels for others: a row has all its labels or "
            "none. Fit targets with different unlabelled queries separately.",
            parameter="y",
            row=row,
        )
    if not labelled.any():
        raise InputError("Every row is unlabelled (NaN in y): some query needs labels to learn from.", parameter="y")
    rows, data = np.flatnonzero(labelled), replace(data, Y=np.where(missing, 0.0, data.Y))
    layout = query_layout(data.layout.ids[data.layout.codes[rows]], len(rows))  # folds follow the ids
    kept = np.isin(np.arange(data.n_given), data.given_numbers(rows))
    items = rows[:, None].astype(np.float64)
    known = replace(data.take(rows, items=False), X=items, layout=layout, kept=None if kept.all() else kept)
    fitting.check_comparable(known, float(model.regression_weight))
    return PartlyLabelled(data, labelled, known)
