"""Estimators for labelled and unlabelled rows: checks of their rows and of their views."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np

from rankrls._checks import refuse_foreign_arguments
from rankrls._comparisons import KnownItems
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls._typing import IdsLike, ItemsLike, LabelsLike, VectorLike
from rankrls.models.intake import check_comparable, labelled_items
from rankrls.models.ranker import Ranker
from rankrls.models.spec import Accepts, Spec


class PartlyLabelledRanker(Ranker):
    """Estimator fitted to rows of which some have a label."""

    _accepts = Accepts(missing_labels=True)

    @refuse_foreign_arguments
    def fit(
        self, X: ItemsLike, y: LabelsLike, *, qid: IdsLike | None = None, sample_weight: VectorLike | None = None
    ) -> Self:
        """Fit rows with and without labels; parameters are selected by held-out labelled queries, if any.

        Parameters
        ----------
        X : as for :meth:`RankRLS.fit`
        y : array-like of shape (m,), or (m, targets) for estimators with several targets
            Labels; higher is better, and NaN marks an unlabelled row.
        qid : array-like of shape (m,), optional
            One query id per row. With None, all rows form one global ranking.
        sample_weight : array-like of shape (m,), optional
            Nonnegative row weights.

        Returns
        -------
        self
        """
        spec = self._spec()
        known = partly_labelled(spec, X, y, qid, sample_weight)
        return self._set_fitted(spec.fit(known, spec.query_plan(known)))


def partly_labelled(
    spec: Spec, X: ItemsLike, y: LabelsLike, qid: IdsLike | None, sample_weight: VectorLike | None
) -> KnownItems:
    """Checked rows of which some have a label; NaN in y marks an unlabelled row."""
    data = labelled_items(spec, X, y, qid, sample_weight, comparable=False)
    missing = np.isnan(data.Y)
    labelled = np.logical_not(missing.all(axis=1))
    partly = missing.any(axis=1) & labelled
    if partly.any():
        row = int(data.given_numbers(np.flatnonzero(partly))[0])
        problem = f"Input y contains NaN for some targets of row {row}: each row needs all its labels or none."
        raise InputError(problem, parameter="y", row=row)
    if not labelled.any():
        raise InputError("Every row is unlabelled (NaN in y): at least one query needs labels.", parameter="y")
    rows = np.flatnonzero(labelled)
    data = replace(data, Y=np.where(missing, 0.0, data.Y))
    kept = np.isin(np.arange(data.n_given), data.given_numbers(rows))
    part = data.take(rows, items=False)
    known = KnownItems(
        rows[:, None].astype(np.float64),
        None if kept.all() else kept,
        data.has_qid,
        data.one_target,
        part.Y,
        query_layout(data.layout.ids[data.layout.codes[rows]], len(rows)),  # folds depend on the ids
        part.weights,
        data,
        labelled,
        features=data.features,
    )
    check_comparable(known, spec.regression_weight)
    return known
